/* See ref_model.h. */
#include "reference/ref_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "gguf.h"

typedef struct source_file {
    struct gguf_context *gguf;
    struct ggml_context *tensors;
    char family[32];
    ref_model *model;
} source_file;

static void give_up(const char *what, const char *name) {
    fprintf(stderr, "reference: %s: %s\n", name, what);
    abort();
}

static float *new_array(ref_model *m, size_t n) {
    float *array = calloc(n, sizeof *array);
    if (!array || m->n_memory == sizeof m->memory / sizeof *m->memory)
        give_up("too much for the reference", "model");
    m->memory[m->n_memory++] = array;
    return array;
}

/* ---- keys ---- */

static int64_t find_key(const source_file *f, const char *rest) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", f->family, rest);
    return gguf_find_key(f->gguf, name);
}

static int key_int(const source_file *f, const char *rest, int fallback) {
    const int64_t id = find_key(f, rest);
    return id < 0 ? fallback : (int)gguf_get_val_u32(f->gguf, id);
}

static double key_double(const source_file *f, const char *rest, double fallback) {
    const int64_t id = find_key(f, rest);
    return id < 0 ? fallback : (double)gguf_get_val_f32(f->gguf, id);
}

/* ---- tensors ---- */

/* NULL when the file has no such tensor. */
static float *load(source_file *f, const char *name, size_t expected) {
    const struct ggml_tensor *t = ggml_get_tensor(f->tensors, name);
    if (!t) return NULL;
    const size_t n = (size_t)ggml_nelements(t);
    if (n != expected) give_up("unexpected size", name);
    float *array = new_array(f->model, n);
    if (t->type == GGML_TYPE_F32)
        memcpy(array, t->data, n * sizeof *array);
    else
        ggml_get_type_traits(t->type)->to_float(t->data, array, (int64_t)n);
    return array;
}

static float *load_in_layer(source_file *f, int il, const char *rest, int rows, int cols) {
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s", il, rest);
    return load(f, name, (size_t)rows * (size_t)cols);
}

/* Rows of q and k of the llama family lie in GGUF as pairs (2i, 2i+1) that turn together. Here
 * they are put back into the order of the published models: (i, i + d/2). */
static void unpair(const ref_model *m, float *rows, int n_head, int cols) {
    if (!rows) return;
    const size_t width = (size_t)cols;
    float *copy = malloc((size_t)m->d * width * sizeof *copy);
    if (!copy) give_up("out of memory", "model");
    for (int h = 0; h < n_head; h++) {
        float *head = rows + (size_t)h * (size_t)m->d * width;
        memcpy(copy, head, (size_t)m->d * width * sizeof *copy);
        for (int i = 0; i < m->d; i++) {
            const int from = i < m->d / 2 ? 2 * i : 2 * (i - m->d / 2) + 1;
            memcpy(head + (size_t)i * width, copy + (size_t)from * width, width * sizeof *copy);
        }
    }
    free(copy);
}

static void load_attention(source_file *f, ref_layer *l, int il) {
    ref_model *m = f->model;
    const int wide = m->H * m->d, narrow = m->G * m->d;
    l->wq = load_in_layer(f, il, "attn_q.weight", wide, m->D);
    l->wk = load_in_layer(f, il, "attn_k.weight", narrow, m->D);
    l->wv = load_in_layer(f, il, "attn_v.weight", narrow, m->D);
    l->bq = load_in_layer(f, il, "attn_q.bias", wide, 1);
    l->bk = load_in_layer(f, il, "attn_k.bias", narrow, 1);
    l->bv = load_in_layer(f, il, "attn_v.bias", narrow, 1);
    if (!l->wq || !l->wk || !l->wv) give_up("no q, k or v", "attention");
    unpair(m, l->wq, m->H, m->D);
    unpair(m, l->wk, m->G, m->D);
    unpair(m, l->bq, m->H, 1);
    unpair(m, l->bk, m->G, 1);
}

/* gpt2 has one matrix for all three: first every q, then every k, then every v. */
static void load_fused_attention(source_file *f, ref_layer *l, int il) {
    ref_model *m = f->model;
    const int wide = m->H * m->d;
    float *w = load_in_layer(f, il, "attn_qkv.weight", 3 * wide, m->D);
    float *b = load_in_layer(f, il, "attn_qkv.bias", 3 * wide, 1);
    if (!w || !b) give_up("no fused qkv", "attention");
    l->wq = w;
    l->wk = w + (size_t)wide * (size_t)m->D;
    l->wv = l->wk + (size_t)wide * (size_t)m->D;
    l->bq = b;
    l->bk = b + wide;
    l->bv = l->bk + wide;
}

static void load_layer(source_file *f, int il) {
    ref_model *m = f->model;
    ref_layer *l = &m->layers[il];
    if (m->gpt2)
        load_fused_attention(f, l, il);
    else
        load_attention(f, l, il);
    l->attn_norm = load_in_layer(f, il, "attn_norm.weight", m->D, 1);
    l->attn_norm_bias = load_in_layer(f, il, "attn_norm.bias", m->D, 1);
    l->wo = load_in_layer(f, il, "attn_output.weight", m->D, m->H * m->d);
    l->bo = load_in_layer(f, il, "attn_output.bias", m->D, 1);
    l->ffn_norm = load_in_layer(f, il, "ffn_norm.weight", m->D, 1);
    l->ffn_norm_bias = load_in_layer(f, il, "ffn_norm.bias", m->D, 1);
    l->gate = load_in_layer(f, il, "ffn_gate.weight", m->F, m->D);
    l->up = load_in_layer(f, il, "ffn_up.weight", m->F, m->D);
    l->down = load_in_layer(f, il, "ffn_down.weight", m->D, m->F);
    l->gate_bias = load_in_layer(f, il, "ffn_gate.bias", m->F, 1);
    l->up_bias = load_in_layer(f, il, "ffn_up.bias", m->F, 1);
    l->down_bias = load_in_layer(f, il, "ffn_down.bias", m->D, 1);
    if (!l->attn_norm || !l->wo || !l->ffn_norm || !l->up || !l->down)
        give_up("a tensor is missing", "layer");
}

/* ---- the whole ---- */

static void read_keys(source_file *f) {
    ref_model *m = f->model;
    m->gpt2 = strcmp(f->family, "gpt2") == 0;
    m->n_layer = key_int(f, "block_count", 0);
    m->D = key_int(f, "embedding_length", 0);
    m->H = key_int(f, "attention.head_count", 1);
    m->G = key_int(f, "attention.head_count_kv", m->H);
    m->d = key_int(f, "attention.key_length", m->D / m->H);
    m->F = key_int(f, "feed_forward_length", 0);
    m->window = key_int(f, "attention.sliding_window", 0);
    m->norm_epsilon = key_double(
        f, m->gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 0);
    m->rope_base = key_double(f, "rope.freq_base", 10000.0);
    m->rope_factor = key_double(f, "rope.scaling.factor", 1.0);
    const int64_t type = find_key(f, "rope.scaling.type");
    if (type >= 0 && strcmp(gguf_get_val_str(f->gguf, type), "yarn") == 0)
        m->yarn_context = key_int(f, "rope.scaling.original_context_length", 0);
}

static void read_tensors(source_file *f) {
    ref_model *m = f->model;
    const struct ggml_tensor *embd = ggml_get_tensor(f->tensors, "token_embd.weight");
    if (!embd) give_up("missing", "token_embd.weight");
    m->V = (int)embd->ne[1];
    const size_t table = (size_t)m->V * (size_t)m->D;
    m->token_embd = load(f, "token_embd.weight", table);
    m->output = load(f, "output.weight", table);
    if (!m->output) m->output = m->token_embd;
    if (m->gpt2)
        m->position_embd =
            load(f, "position_embd.weight", (size_t)key_int(f, "context_length", 0) * (size_t)m->D);
    m->output_norm = load(f, "output_norm.weight", (size_t)m->D);
    m->output_norm_bias = load(f, "output_norm.bias", (size_t)m->D);
    m->rope_divisor = load(f, "rope_freqs.weight", (size_t)m->d / 2);
    m->layers = calloc((size_t)m->n_layer, sizeof *m->layers);
    if (!m->layers || !m->output_norm) give_up("a tensor is missing", "model");
    for (int il = 0; il < m->n_layer; il++) load_layer(f, il);
}

ref_model *ref_model_load(const char *path) {
    source_file f = {.model = calloc(1, sizeof(ref_model))};
    const struct gguf_init_params params = {.no_alloc = false, .ctx = &f.tensors};
    f.gguf = gguf_init_from_file(path, params);
    if (!f.model || !f.gguf) give_up("cannot be read", path);
    const int64_t family = gguf_find_key(f.gguf, "general.architecture");
    if (family < 0) give_up("no architecture", path);
    snprintf(f.family, sizeof f.family, "%s", gguf_get_val_str(f.gguf, family));
    read_keys(&f);
    read_tensors(&f);
    gguf_free(f.gguf);
    ggml_free(f.tensors);
    return f.model;
}

void ref_model_free(ref_model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->n_memory; i++) free(model->memory[i]);
    free(model->layers);
    free(model);
}
