/*
 * A llama of a GGUF file as a directory of Hugging Face's, with the dequantised weights as F32 in a
 * file per part of the model: real_directory MODEL.gguf DIRECTORY. The directory must exist.
 *
 * Rows of W_q and W_k go back into the order that transformers has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/gguf_file.h"
#include "model/model.h"

typedef struct writer {
    const qkv_model *model;
    const char *directory;
    qkv_text index; /* weight_map */
} writer;

static void give_up(const char *what) {
    fprintf(stderr, "real_directory: %s\n", what);
    exit(1);
}

static FILE *create(const writer *w, const char *name) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s", w->directory, name);
    FILE *file = path.failed ? NULL : fopen(path.data, "wb");
    if (!file) give_up(name);
    qkv_text_release(&path);
    return file;
}

static void finish(FILE *file, const char *name) {
    if (ferror(file) || fclose(file) != 0) give_up(name);
}

/* ---- names ---- */

static const struct {
    const char *gguf, *hf;
} names[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

enum { N_NAMES = sizeof names / sizeof *names };

/* ---- a file of weights ---- */

typedef struct shard {
    char name[64];
    qkv_text header;
    qkv_gguf_tensor tensors[N_NAMES];
    size_t n;
    uint64_t size;
} shard;

static void add(writer *w, shard *s, const char *gguf, const char *hf) {
    qkv_gguf_tensor t;
    if (!qkv_gguf_find_tensor(w->model->file, gguf, &t)) give_up(gguf);
    const uint64_t size = (uint64_t)(t.ne[0] * t.ne[1]) * sizeof(float);
    qkv_text_printf(&s->header, "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[", s->n ? ',' : '{', hf);
    if (t.ne[1] > 1) qkv_text_printf(&s->header, "%lld,", (long long)t.ne[1]);
    qkv_text_printf(&s->header, "%lld],\"data_offsets\":[%llu,%llu]}", (long long)t.ne[0],
                    (unsigned long long)s->size, (unsigned long long)(s->size + size));
    qkv_text_printf(&w->index, "%c\"%s\":\"%s\"", w->index.length ? ',' : '{', hf, s->name);
    s->tensors[s->n++] = t;
    s->size += size;
}

/* Which row of the GGUF file a row of transformers' is. */
static int64_t stored_row(const writer *w, const qkv_gguf_tensor *t, int64_t row) {
    if (!strstr(t->name, ".attn_q.") && !strstr(t->name, ".attn_k.")) return row;
    const int64_t d = w->model->hp.largest.head_dim, channel = row % d;
    return row - channel + (channel < d / 2 ? 2 * channel : 2 * (channel - d / 2) + 1);
}

static void put_tensor(const writer *w, const qkv_gguf_tensor *t, FILE *file) {
    const size_t row_size = ggml_row_size(t->type, t->ne[0]);
    float *row = malloc((size_t)t->ne[0] * sizeof *row);
    if (!row) give_up("out of memory");
    for (int64_t i = 0; i < t->ne[1]; i++) {
        const unsigned char *data = t->data + (size_t)stored_row(w, t, i) * row_size;
        if (t->type == GGML_TYPE_F32)
            memcpy(row, data, row_size);
        else
            ggml_get_type_traits(t->type)->to_float(data, row, t->ne[0]);
        fwrite(row, sizeof *row, (size_t)t->ne[0], file);
    }
    free(row);
}

static void put_shard(const writer *w, shard *s) {
    qkv_text_puts(&s->header, "}");
    while (s->header.length % 8) qkv_text_puts(&s->header, " ");
    if (s->header.failed) give_up("out of memory");
    FILE *file = create(w, s->name);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)s->header.length >> 8 * i);
    fwrite(length, 1, sizeof length, file);
    fwrite(s->header.data, 1, s->header.length, file);
    for (size_t i = 0; i < s->n; i++) put_tensor(w, &s->tensors[i], file);
    finish(file, s->name);
    qkv_text_release(&s->header);
}

static void put_layer(writer *w, int il) {
    shard s = {0};
    snprintf(s.name, sizeof s.name, "layer-%d.safetensors", il);
    for (size_t i = 0; i < N_NAMES; i++) {
        char gguf[64], hf[96];
        snprintf(gguf, sizeof gguf, "blk.%d.%s.weight", il, names[i].gguf);
        snprintf(hf, sizeof hf, "model.layers.%d.%s.weight", il, names[i].hf);
        add(w, &s, gguf, hf);
    }
    put_shard(w, &s);
}

static void put_ends(writer *w) {
    shard s = {.name = "ends.safetensors"};
    add(w, &s, "token_embd.weight", "model.embed_tokens.weight");
    add(w, &s, "output_norm.weight", "model.norm.weight");
    add(w, &s, "output.weight", "lm_head.weight");
    put_shard(w, &s);
}

/* ---- the rest ---- */

static void put_config(const writer *w) {
    const qkv_hparams *hp = &w->model->hp;
    qkv_text text = {0};
    qkv_text_printf(&text,
                    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
                    "\"hidden_act\":\"silu\",\"hidden_size\":%d,\"intermediate_size\":%d,"
                    "\"num_hidden_layers\":%d,\"num_attention_heads\":%d,"
                    "\"num_key_value_heads\":%d,\"max_position_embeddings\":%d,"
                    "\"vocab_size\":%d,\"rms_norm_eps\":%.9g,\"rope_theta\":%.9g,"
                    "\"tie_word_embeddings\":false,\"torch_dtype\":\"float32\"}\n",
                    hp->n_embd, hp->largest.n_ff, hp->n_layer, hp->largest.n_head,
                    hp->largest.n_kv_head, hp->n_ctx, hp->n_vocab, (double)hp->norm_eps,
                    (double)hp->rope[QKV_ROPE_GLOBAL].base);
    FILE *file = create(w, "config.json");
    if (text.failed || fputs(text.data, file) < 0) give_up("config.json");
    finish(file, "config.json");
    qkv_text_release(&text);
}

static void put_index(const writer *w) {
    FILE *file = create(w, "model.safetensors.index.json");
    if (w->index.failed || fprintf(file, "{\"weight_map\":%s}}\n", w->index.data) < 0)
        give_up("the index");
    finish(file, "the index");
}

int main(int argc, char **argv) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    if (argc != 3) give_up("MODEL.gguf DIRECTORY");
    if (qkv_model_open(&model, argv[1], &err) != QKV_OK) give_up(err.message);
    if (strcmp(model->family->name, "llama") != 0) give_up("no llama");
    writer w = {.model = model, .directory = argv[2]};
    put_ends(&w);
    for (int il = 0; il < model->hp.n_layer; il++) put_layer(&w, il);
    put_index(&w);
    put_config(&w);
    qkv_text_release(&w.index);
    qkv_model_free(model);
    return 0;
}
