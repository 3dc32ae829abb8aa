/*
 * A checkpoint of llama2.c is opened as the GGUF file that it would be, like a Hugging Face
 * directory, and written as any model is (convert.c). Its rows of W_q and W_k are in the pairs that
 * GGUF files of llama have.
 */
#include "model/llama2c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/model.h"
#include "qkv/convert.h"

/* What llama2.c has built in. */
static const float NORM_EPS = 1e-5F, ROPE_BASE = 10000;

enum { HEADER_NUMBERS = 7, MOST_LAYERS = 1000, MOST_VALUES = 1 << 20, NAME_SIZE = 48 };

typedef struct checkpoint {
    qkv_gguf *file;
    int64_t width, ff, layers, heads, kv_heads, vocab, context;
    int own_output;
    const unsigned char *at;
    size_t left;
    char (*names)[NAME_SIZE]; /* of the tensors */
} checkpoint;

/* ---- the header ---- */

static int64_t number_at(const unsigned char *data, int index) {
    return (int32_t)(uint32_t)qkv_little_endian(data + (size_t)4 * (size_t)index, 4);
}

static int is_between(int64_t value, int64_t high) {
    return value > 0 && value <= high;
}

static int read_header(checkpoint *c, qkv_error *err) {
    const qkv_mapping *map = &c->file->parts[0].map;
    const size_t size = (size_t)4 * HEADER_NUMBERS;
    if (map->size < size)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is too short for a checkpoint of llama2.c",
                        c->file->parts[0].path);
    int64_t *const numbers[HEADER_NUMBERS] = {&c->width,    &c->ff,    &c->layers, &c->heads,
                                              &c->kv_heads, &c->vocab, &c->context};
    for (int i = 0; i < HEADER_NUMBERS; i++) *numbers[i] = number_at(map->data, i);
    c->own_output = c->vocab < 0;
    if (c->own_output) c->vocab = -c->vocab;
    if (!is_between(c->width, MOST_VALUES) || !is_between(c->ff, MOST_VALUES) ||
        !is_between(c->layers, MOST_LAYERS) || !is_between(c->heads, c->width) ||
        !is_between(c->kv_heads, c->heads) || !is_between(c->vocab, INT32_MAX) ||
        !is_between(c->context, MOST_VALUES) || c->width % c->heads != 0 ||
        c->heads % c->kv_heads != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s is not a checkpoint of llama2.c: its header has "
                        "numbers that no model has",
                        c->file->parts[0].path);
    c->at = map->data + size;
    c->left = map->size - size;
    return QKV_OK;
}

/* ---- the tensors ---- */

static int skip(checkpoint *c, int64_t n, qkv_error *err) {
    const size_t size = (size_t)n * sizeof(float);
    if (size > c->left)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is too short for the model that its header says",
                        c->file->parts[0].path);
    c->at += size;
    c->left -= size;
    return QKV_OK;
}

/* A tensor of a layer, or of the model (il < 0). */
static int take(checkpoint *c, int il, const char *name, int64_t columns, int64_t rows,
                qkv_error *err) {
    qkv_gguf *file = c->file;
    char *own = c->names[file->n_tensors];
    if (il < 0)
        snprintf(own, NAME_SIZE, "%s.weight", name);
    else
        snprintf(own, NAME_SIZE, "blk.%d.%s.weight", il, name);
    const qkv_gguf_tensor t = {.name = own,
                               .type = GGML_TYPE_F32,
                               .ne = {columns, rows, 1, 1},
                               .data = c->at,
                               .size = (size_t)(columns * rows) * sizeof(float)};
    const int status = skip(c, columns * rows, err);
    if (status == QKV_OK) file->tensors[file->n_tensors++] = t;
    return status;
}

static int take_layers(checkpoint *c, const char *name, int64_t columns, int64_t rows,
                       qkv_error *err) {
    int status = QKV_OK;
    for (int il = 0; il < c->layers && status == QKV_OK; il++)
        status = take(c, il, name, columns, rows, err);
    return status;
}

static int take_tensors(checkpoint *c, qkv_error *err) {
    const int64_t head = c->width / c->heads, kv = head * c->kv_heads;
    const struct {
        const char *name;
        int64_t columns, rows;
    } kinds[] = {
        {"attn_norm", c->width, 1},
        {"attn_q", c->width, c->width},
        {"attn_k", c->width, kv},
        {"attn_v", c->width, kv},
        {"attn_output", c->width, c->width},
        {"ffn_norm", c->width, 1},
        {"ffn_gate", c->width, c->ff},
        {"ffn_down", c->ff, c->width},
        {"ffn_up", c->width, c->ff},
    };
    const size_t n_kinds = sizeof kinds / sizeof *kinds, n = n_kinds * (size_t)c->layers + 3;
    c->file->tensors = qkv_calloc(n, sizeof *c->file->tensors);
    c->names = qkv_calloc(n, sizeof *c->names);
    c->file->source = c->names;
    c->file->free_source = free;
    if (!c->file->tensors || !c->names) return qkv_fail_memory(err);
    int status = take(c, -1, "token_embd", c->width, c->vocab, err);
    for (size_t i = 0; i < n_kinds && status == QKV_OK; i++)
        status = take_layers(c, kinds[i].name, kinds[i].columns, kinds[i].rows, err);
    if (status == QKV_OK) status = take(c, -1, "output_norm", c->width, 1, err);
    if (status == QKV_OK) status = skip(c, c->context * head, err); /* cosines and sines */
    if (status == QKV_OK && c->own_output) status = take(c, -1, "output", c->width, c->vocab, err);
    if (status == QKV_OK && c->left > 0)
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          "%s: %zu bytes too many for the model that its "
                          "header says",
                          c->file->parts[0].path, c->left);
    return status;
}

/* ---- the keys ---- */

static void set_keys(const checkpoint *c, struct gguf_context *header) {
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"llama.block_count", c->layers},
        {"llama.context_length", c->context},
        {"llama.embedding_length", c->width},
        {"llama.feed_forward_length", c->ff},
        {"llama.attention.head_count", c->heads},
        {"llama.attention.head_count_kv", c->kv_heads},
        {"llama.rope.dimension_count", c->width / c->heads},
        {"llama.vocab_size", c->vocab},
        {"general.file_type", 0}, /* all F32 */
    };
    gguf_set_val_str(header, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        gguf_set_val_u32(header, numbers[i].key, (uint32_t)numbers[i].value);
    gguf_set_val_f32(header, "llama.attention.layer_norm_rms_epsilon", NORM_EPS);
    gguf_set_val_f32(header, "llama.rope.freq_base", ROPE_BASE);
}

static int open_part(qkv_gguf *file, const char *dir, qkv_error *err) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/" QKV_LLAMA2C_CHECKPOINT, dir);
    file->parts = qkv_calloc(1, sizeof *file->parts);
    if (path.failed || !file->parts) {
        qkv_text_release(&path);
        return qkv_fail_memory(err);
    }
    file->n_parts = 1;
    file->parts[0].path = path.data;
    file->path = path.data;
    file->parts[0].header = gguf_init_empty();
    if (!file->parts[0].header) return qkv_fail_memory(err);
    return qkv_mapping_open(&file->parts[0].map, path.data, err);
}

static int fill(qkv_gguf *file, const char *dir, qkv_error *err) {
    checkpoint c = {.file = file};
    int status = open_part(file, dir, err);
    if (status == QKV_OK) status = read_header(&c, err);
    if (status == QKV_OK) status = take_tensors(&c, err);
    if (status != QKV_OK) return status;
    set_keys(&c, file->parts[0].header);
    return qkv_llama2c_read_tokenizer(file->parts[0].header, dir, (size_t)c.vocab, err);
}

static int open_checkpoint(qkv_gguf **out, const char *dir, qkv_error *err) {
    return qkv_gguf_build(out, dir, fill, err);
}

static void set_fact(struct gguf_context *header, const char *key, const char *value) {
    if (value) gguf_set_val_str(header, key, value);
}

int qkv_llama2c_convert(const char *dir, const char *path, const qkv_llama2c_facts *facts,
                        const qkv_progress *progress, qkv_error *err) {
    qkv_convert_options options = QKV_CONVERT_OPTIONS_INIT;
    qkv_model *model = NULL;
    int status = qkv_model_open_by(&model, dir, open_checkpoint, err);
    if (status == QKV_OK) {
        struct gguf_context *header = model->file->parts[0].header;
        set_fact(header, "general.name", facts->name);
        set_fact(header, "general.license", facts->licence);
        set_fact(header, "general.source.url", facts->source);
        options.progress = progress;
        status = qkv_model_write(model, path, &options, err);
    }
    qkv_model_free(model);
    return status;
}
