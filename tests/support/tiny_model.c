/*
 * Weights are drawn so that attention is neither flat nor one-hot, and every bias, norm and factor
 * is far enough from doing nothing that leaving it out shows in the results.
 */
#include "support/tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/dice.h"
#include "support/scratch.h"

enum { CONTROL_TOKENS = 3, MERGES = 3, NAME_SIZE = 64 };

/* ---- tensors ---- */

static int is_named(const char *name, const char *wanted) {
    return wanted && strcmp(name, wanted) == 0;
}

static void fill(tiny_file *file, struct ggml_tensor *t, double centre, double spread) {
    dice d = {file->random};
    const size_t n = (size_t)ggml_nelements(t);
    float *values = malloc(n * sizeof *values);
    if (!values) abort();
    for (size_t i = 0; i < n; i++) values[i] = (float)(centre + spread * dice_normal(&d));
    file->random = d.state;
    if (t->type == GGML_TYPE_F32)
        memcpy(t->data, values, n * sizeof *values);
    else if (t->type == GGML_TYPE_I32)
        memset(t->data, 0, ggml_nbytes(t));
    else
        ggml_quantize_chunk(t->type, values, t->data, 0, (int64_t)(n / (size_t)t->ne[0]), t->ne[0],
                            NULL);
    free(values);
}

static void add_tensor(tiny_file *file, const char *name, enum ggml_type type, int rows, int cols,
                       double centre, double spread) {
    const tiny_options *o = &file->options;
    if (is_named(name, o->omitted)) return;
    if (is_named(name, o->mistyped)) type = GGML_TYPE_I32;
    const int extra = is_named(name, o->misshapen);
    struct ggml_tensor *t =
        rows ? ggml_new_tensor_2d(file->tensors, type, cols, rows + extra)
             : ggml_new_tensor_1d(file->tensors, GGML_TYPE_F32 == type ? type : GGML_TYPE_I32,
                                  cols + extra);
    ggml_set_name(t, name);
    fill(file, t, centre, spread);
    gguf_add_tensor(file->gguf, t);
}

/* A matrix whose product with a normalised vector has elements of about the size `gain`. */
static void add_matrix(tiny_file *file, const char *name, int rows, int cols, double gain) {
    add_tensor(file, name, file->options.type, rows, cols, 0.0, gain / sqrt(cols));
}

static void add_vector(tiny_file *file, const char *name, int n, double centre, double spread) {
    add_tensor(file, name, GGML_TYPE_F32, 0, n, centre, spread);
}

static const char *in_layer(char out[NAME_SIZE], int layer, const char *rest) {
    snprintf(out, NAME_SIZE, "blk.%d.%s", layer, rest);
    return out;
}

static void add_llama_layer(tiny_file *file, int il) {
    const tiny_options *o = &file->options;
    const int wide = o->n_head * o->head_dim, narrow = o->n_kv_head * o->head_dim;
    char name[NAME_SIZE];
    add_vector(file, in_layer(name, il, "attn_norm.weight"), o->n_embd, 1.0, 0.2);
    add_matrix(file, in_layer(name, il, "attn_q.weight"), wide, o->n_embd, 1.4);
    add_matrix(file, in_layer(name, il, "attn_k.weight"), narrow, o->n_embd, 1.4);
    add_matrix(file, in_layer(name, il, "attn_v.weight"), narrow, o->n_embd, 1.0);
    if (o->qkv_bias) {
        add_vector(file, in_layer(name, il, "attn_q.bias"), wide, 0.0, 0.5);
        add_vector(file, in_layer(name, il, "attn_k.bias"), narrow, 0.0, 0.5);
        add_vector(file, in_layer(name, il, "attn_v.bias"), narrow, 0.0, 0.5);
    }
    add_matrix(file, in_layer(name, il, "attn_output.weight"), o->n_embd, wide, 1.0);
    if (o->out_bias) add_vector(file, in_layer(name, il, "attn_output.bias"), o->n_embd, 0, 0.5);
    add_vector(file, in_layer(name, il, "ffn_norm.weight"), o->n_embd, 1.0, 0.2);
    add_matrix(file, in_layer(name, il, "ffn_gate.weight"), o->n_ff, o->n_embd, 1.0);
    add_matrix(file, in_layer(name, il, "ffn_up.weight"), o->n_ff, o->n_embd, 1.0);
    add_matrix(file, in_layer(name, il, "ffn_down.weight"), o->n_embd, o->n_ff, 1.0);
    if (o->ffn_bias) {
        add_vector(file, in_layer(name, il, "ffn_gate.bias"), o->n_ff, 0.0, 0.5);
        add_vector(file, in_layer(name, il, "ffn_up.bias"), o->n_ff, 0.0, 0.5);
        add_vector(file, in_layer(name, il, "ffn_down.bias"), o->n_embd, 0.0, 0.5);
    }
}

/* Query, key and value are one matrix, gate and up another. */
static void add_phi3_layer(tiny_file *file, int il) {
    const tiny_options *o = &file->options;
    const int wide = o->n_head * o->head_dim, narrow = o->n_kv_head * o->head_dim;
    char name[NAME_SIZE];
    add_vector(file, in_layer(name, il, "attn_norm.weight"), o->n_embd, 1.0, 0.2);
    add_matrix(file, in_layer(name, il, "attn_qkv.weight"), wide + 2 * narrow, o->n_embd, 1.2);
    add_matrix(file, in_layer(name, il, "attn_output.weight"), o->n_embd, wide, 1.0);
    add_vector(file, in_layer(name, il, "ffn_norm.weight"), o->n_embd, 1.0, 0.2);
    add_matrix(file, in_layer(name, il, "ffn_up.weight"), 2 * o->n_ff, o->n_embd, 1.0);
    add_matrix(file, in_layer(name, il, "ffn_down.weight"), o->n_embd, o->n_ff, 1.0);
}

static void add_gpt2_layer(tiny_file *file, int il) {
    const tiny_options *o = &file->options;
    char name[NAME_SIZE];
    add_vector(file, in_layer(name, il, "attn_norm.weight"), o->n_embd, 1.0, 0.2);
    add_vector(file, in_layer(name, il, "attn_norm.bias"), o->n_embd, 0.0, 0.3);
    add_matrix(file, in_layer(name, il, "attn_qkv.weight"), 3 * o->n_embd, o->n_embd, 1.2);
    add_vector(file, in_layer(name, il, "attn_qkv.bias"), 3 * o->n_embd, 0.0, 0.5);
    add_matrix(file, in_layer(name, il, "attn_output.weight"), o->n_embd, o->n_embd, 1.0);
    add_vector(file, in_layer(name, il, "attn_output.bias"), o->n_embd, 0.0, 0.3);
    add_vector(file, in_layer(name, il, "ffn_norm.weight"), o->n_embd, 1.0, 0.2);
    add_vector(file, in_layer(name, il, "ffn_norm.bias"), o->n_embd, 0.0, 0.3);
    add_matrix(file, in_layer(name, il, "ffn_up.weight"), o->n_ff, o->n_embd, 1.0);
    add_vector(file, in_layer(name, il, "ffn_up.bias"), o->n_ff, 0.0, 0.3);
    add_matrix(file, in_layer(name, il, "ffn_down.weight"), o->n_embd, o->n_ff, 1.0);
    add_vector(file, in_layer(name, il, "ffn_down.bias"), o->n_embd, 0.0, 0.3);
}

static int is_family(const tiny_file *file, const char *name) {
    return strcmp(file->options.family, name) == 0;
}

static void add_layer(tiny_file *file, int il) {
    if (is_family(file, "gpt2"))
        add_gpt2_layer(file, il);
    else if (is_family(file, "phi3"))
        add_phi3_layer(file, il);
    else
        add_llama_layer(file, il);
}

static void add_divisors(tiny_file *file) {
    const tiny_options *o = &file->options;
    const int pairs = o->head_dim / 2;
    if (o->rope == TINY_ROPE_LLAMA3) add_vector(file, "rope_freqs.weight", pairs, 3.0, 0.4);
    if (o->rope == TINY_ROPE_LONG) {
        add_vector(file, "rope_factors_short.weight", pairs, 1.5, 0.1);
        add_vector(file, "rope_factors_long.weight", pairs, 4.0, 0.5);
    }
}

static void add_tensors(tiny_file *file) {
    const tiny_options *o = &file->options;
    const int gpt2 = is_family(file, "gpt2");
    add_tensor(file, "token_embd.weight", o->type, TINY_VOCAB, o->n_embd, 0.0, 1.0);
    if (gpt2)
        add_tensor(file, "position_embd.weight", GGML_TYPE_F32, o->n_ctx, o->n_embd, 0.0, 0.5);
    if (!gpt2) add_divisors(file);
    for (int il = 0; il < o->n_layer; il++) add_layer(file, il);
    add_vector(file, "output_norm.weight", o->n_embd, 1.0, 0.2);
    if (gpt2) add_vector(file, "output_norm.bias", o->n_embd, 0.0, 0.3);
    if (o->untied) add_matrix(file, "output.weight", TINY_VOCAB, o->n_embd, 1.0);
}

/* ---- vocabulary ---- */

/* The printable stand-in of a byte in byte-level vocabularies: itself where it is printable, else
 * the next free code point from U+0100 on. */
static uint32_t stand_in(int byte) {
    uint32_t next = 0x100;
    for (int b = 0; b < 256; b++) {
        const int printable =
            (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
        const uint32_t code = printable ? (uint32_t)b : next++;
        if (b == byte) return code;
    }
    return 0;
}

static void add_vocabulary(struct gguf_context *gguf) {
    static const char *const control[CONTROL_TOKENS] = {"<unk>", "<s>", "</s>"};
    static const char *const merged[MERGES] = {"th", "the", "in"};
    const char *merges[MERGES] = {"t h", "th e", "i n"};
    char bytes[256][5] = {{0}};
    const char *tokens[TINY_VOCAB];
    int32_t types[TINY_VOCAB];
    for (int i = 0; i < TINY_VOCAB; i++) {
        const int byte = i - CONTROL_TOKENS;
        types[i] = i < CONTROL_TOKENS ? 3 : 1;
        if (byte >= 0 && byte < 256) qkv_utf8_encode(stand_in(byte), bytes[byte]);
        tokens[i] = byte < 0 ? control[i] : byte < 256 ? bytes[byte] : merged[byte - 256];
    }
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(gguf, "tokenizer.ggml.pre", "gpt-2");
    gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", tokens, TINY_VOCAB);
    gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, TINY_VOCAB);
    gguf_set_arr_str(gguf, "tokenizer.ggml.merges", merges, MERGES);
    gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", 2);
    gguf_set_val_u32(gguf, "tokenizer.ggml.unknown_token_id", 0);
}

/* ---- keys ---- */

static const char *family_key(const tiny_file *file, char out[NAME_SIZE], const char *rest) {
    snprintf(out, NAME_SIZE, "%s.%s", file->options.family, rest);
    return out;
}

static void set_u32(tiny_file *file, const char *key, int value) {
    char name[NAME_SIZE];
    gguf_set_val_u32(file->gguf, family_key(file, name, key), (uint32_t)value);
}

static void set_f32(tiny_file *file, const char *key, double value) {
    char name[NAME_SIZE];
    gguf_set_val_f32(file->gguf, family_key(file, name, key), (float)value);
}

static void add_rope_keys(tiny_file *file) {
    const tiny_options *o = &file->options;
    char name[NAME_SIZE];
    set_u32(file, "rope.dimension_count", o->head_dim);
    set_f32(file, "rope.freq_base", 10000.0);
    if (o->rope == TINY_ROPE_YARN || o->rope == TINY_ROPE_LONG)
        set_u32(file, "rope.scaling.original_context_length", o->rope_context);
    if (o->rope == TINY_ROPE_LONG) set_f32(file, "rope.scaling.attn_factor", 1.2);
    if (o->rope != TINY_ROPE_LINEAR && o->rope != TINY_ROPE_YARN) return;
    const int yarn = o->rope == TINY_ROPE_YARN;
    gguf_set_val_str(file->gguf, family_key(file, name, "rope.scaling.type"),
                     yarn ? "yarn" : "linear");
    set_f32(file, "rope.scaling.factor", yarn ? 4.0 : 2.0);
}

static void add_keys(tiny_file *file) {
    const tiny_options *o = &file->options;
    gguf_set_val_str(file->gguf, "general.architecture", o->family);
    gguf_set_val_str(file->gguf, "general.name", "tiny random model");
    set_u32(file, "block_count", o->n_layer);
    set_u32(file, "context_length", o->n_ctx);
    set_u32(file, "embedding_length", o->n_embd);
    set_u32(file, "feed_forward_length", o->n_ff);
    set_u32(file, "attention.head_count", o->n_head);
    if (is_family(file, "gpt2")) {
        set_f32(file, "attention.layer_norm_epsilon", 1e-5);
    } else {
        set_u32(file, "attention.head_count_kv", o->n_kv_head);
        set_u32(file, "attention.key_length", o->head_dim);
        set_u32(file, "attention.value_length", o->head_dim);
        set_u32(file, "vocab_size", TINY_VOCAB);
        set_f32(file, "attention.layer_norm_rms_epsilon", 1e-5);
        if (o->window) set_u32(file, "attention.sliding_window", o->window);
        add_rope_keys(file);
    }
    add_vocabulary(file->gguf);
}

static void set_default(int *value, int otherwise) {
    if (*value == 0) *value = otherwise;
}

void tiny_build(tiny_file *file, const tiny_options *options) {
    *file = (tiny_file){.options = *options, .random = options->seed + 1};
    set_default(&file->options.n_layer, 3);
    set_default(&file->options.n_embd, 32);
    set_default(&file->options.n_head, 4);
    set_default(&file->options.n_kv_head, file->options.n_head);
    set_default(&file->options.head_dim, 8);
    set_default(&file->options.n_ff, 64);
    set_default(&file->options.n_ctx, 64);
    set_default(&file->options.rope_context, 16);
    file->tensors = ggml_init((struct ggml_init_params){.mem_size = (size_t)16 << 20});
    file->gguf = gguf_init_empty();
    if (!file->tensors || !file->gguf) abort();
    add_keys(file);
    add_tensors(file);
}

const char *tiny_save(const tiny_file *file, const char *name) {
    const char *path = scratch_path(name);
    if (!gguf_write_to_file(file->gguf, path, false)) abort();
    return path;
}

enum { PARTS = 2 };

static const char *save_part(const tiny_file *file, const char *stem, int part) {
    struct gguf_context *gguf = gguf_init_empty();
    char name[NAME_SIZE];
    int32_t count = 0;
    if (!gguf) abort();
    if (part == 0) gguf_set_kv(gguf, file->gguf);
    for (struct ggml_tensor *t = ggml_get_first_tensor(file->tensors); t;
         t = ggml_get_next_tensor(file->tensors, t))
        if (count++ % PARTS == part) gguf_add_tensor(gguf, t);
    gguf_set_val_u16(gguf, "split.no", (uint16_t)part);
    gguf_set_val_u16(gguf, "split.count", PARTS);
    gguf_set_val_i32(gguf, "split.tensors.count", count);
    snprintf(name, sizeof name, "%s-%05d-of-%05d.gguf", stem, part + 1, PARTS);
    const char *path = scratch_path(name);
    if (!gguf_write_to_file(gguf, path, false)) abort();
    gguf_free(gguf);
    return path;
}

const char *tiny_save_split(const tiny_file *file, const char *stem) {
    const char *path = save_part(file, stem, 0);
    for (int part = 1; part < PARTS; part++) save_part(file, stem, part);
    return path;
}

void tiny_free(tiny_file *file) {
    gguf_free(file->gguf);
    ggml_free(file->tensors);
}

const char *tiny_model(const tiny_options *options, const char *name) {
    tiny_file file;
    tiny_build(&file, options);
    const char *path = tiny_save(&file, name);
    tiny_free(&file);
    return path;
}
