/*
 * Any model as one GGUF file.
 *
 * The source is opened as for running, so that whatever would not run is not written. Its keys are
 * taken over; rows of W_q and W_k are reordered where GGUF files of the family have them so and the
 * source has not. Tensors go through memory a few MiB at a time, except those that have to be made
 * from several (tensor_maker.c), which take their own size.
 */
#define _POSIX_C_SOURCE 200809L
#include "qkv/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/forked.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/steps.h"
#include "format/gguf_write.h"
#include "kernel/convert.h"
#include "model/model.h"

#define TOKENS_KEY "tokenizer.ggml.tokens"
#define TYPES_KEY "tokenizer.ggml.token_type"
#define SCORES_KEY "tokenizer.ggml.scores"

enum {
    CHUNK = 1 << 20, /* values that are converted at a time, at least one row */
    PIECE = 4 << 20  /* bytes that are written at a time */
};

/* X(type, where rows do not divide into its blocks, general.file_type): as llama.cpp has it. */
#define TYPE_LIST(X)                                                                               \
    X(F32, F32, 0)                                                                                 \
    X(F16, F16, 1)                                                                                 \
    X(Q4_0, F16, 2)                                                                                \
    X(Q4_1, F16, 3)                                                                                \
    X(Q8_0, F16, 7)                                                                                \
    X(Q5_0, F16, 8)                                                                                \
    X(Q5_1, F16, 9)                                                                                \
    X(Q2_K, Q4_0, 10)                                                                              \
    X(Q3_K, Q4_0, 11)                                                                              \
    X(Q4_K, Q5_0, 14)                                                                              \
    X(Q5_K, Q5_1, 16)                                                                              \
    X(Q6_K, Q8_0, 18)                                                                              \
    X(IQ3_XXS, IQ4_NL, 23)                                                                         \
    X(IQ4_NL, F16, 25)                                                                             \
    X(IQ3_S, IQ4_NL, 26)                                                                           \
    X(IQ4_XS, IQ4_NL, 30)                                                                          \
    X(BF16, BF16, 32)                                                                              \
    X(TQ1_0, Q4_0, 36)                                                                             \
    X(TQ2_0, Q4_0, 37)

static const struct type_entry {
    enum ggml_type type, fallback;
    uint32_t file_type;
} types[] = {
#define TYPE_ENTRY(type, fallback, number) {GGML_TYPE_##type, GGML_TYPE_##fallback, number},
    TYPE_LIST(TYPE_ENTRY)
#undef TYPE_ENTRY
};

typedef struct converter {
    const qkv_model *model;
    const qkv_convert_options *options;
    enum ggml_type type; /* GGML_TYPE_COUNT: as stored */
    struct ggml_context *tensors;
    struct gguf_context *header;
    qkv_output out;
    float *values;
    void *encoded;
    float *decoded; /* what would be read again */
    qkv_steps steps;
    double n_put; /* bytes of tensors */
} converter;

static const struct type_entry *find_type(enum ggml_type type) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].type == type) return &types[i];
    }
    return NULL;
}

/* ---- what is written ---- */

/* Matrices of products. The rest is small, and matters more than it takes. */
static int is_quantised(const qkv_gguf_tensor *t) {
    static const char *const kept[] = {"norm", "ffn_gate_inp", "position_embd", "token_types"};
    const char *dot = strrchr(t->name, '.');
    if (t->ne[1] <= 1 || !dot || strcmp(dot, ".weight") != 0) return 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (strstr(t->name, kept[i])) return 0;
    }
    return 1;
}

static void tell_fallback(const converter *c, const qkv_gguf_tensor *t, enum ggml_type used) {
    char line[256];
    if (!c->options->note) return;
    snprintf(line, sizeof line,
             "%s is written as %s: its rows of %lld values do not divide into %s's blocks of %lld",
             t->name, ggml_type_name(used), (long long)t->ne[0], ggml_type_name(c->type),
             (long long)ggml_blck_size(c->type));
    c->options->note(c->options->user, line);
}

static enum ggml_type type_of(const converter *c, const qkv_gguf_tensor *t) {
    if (!is_quantised(t)) return GGML_TYPE_F32;
    enum ggml_type type = c->type == GGML_TYPE_COUNT ? t->type : c->type;
    if (t->ne[0] % ggml_blck_size(type) == 0) return type;
    const struct type_entry *entry = find_type(type);
    type = entry ? entry->fallback : GGML_TYPE_F16;
    if (t->ne[0] % ggml_blck_size(type) != 0) type = GGML_TYPE_F16;
    tell_fallback(c, t, type);
    return type;
}

/* Embeddings are often padded to a round number of rows; llama.cpp wants a token for each of them:
 * [PAD139]. */
static int pad_names(converter *c, const struct gguf_context *from, size_t n, qkv_error *err) {
    const size_t total = (size_t)c->model->hp.n_vocab;
    const int64_t key = gguf_find_key(from, TOKENS_KEY);
    char(*names)[32] = qkv_calloc(total - n, sizeof *names);
    const char **list = qkv_calloc(total, sizeof *list);
    const int status = names && list ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < total && status == QKV_OK; i++) {
        if (i >= n) snprintf(names[i - n], sizeof *names, "[PAD%zu]", i);
        list[i] = i < n ? gguf_get_arr_str(from, key, i) : names[i - n];
    }
    if (status == QKV_OK) gguf_set_arr_str(c->header, TOKENS_KEY, list, total);
    free(names);
    free((void *)list);
    return status;
}

/* An array of 32-bit numbers, one per token, where the file has it. */
static int pad_numbers(converter *c, const struct gguf_context *from, const char *name, size_t n,
                       const void *filler, qkv_error *err) {
    const size_t total = (size_t)c->model->hp.n_vocab;
    const int64_t key = gguf_find_key(from, name);
    if (key < 0) return QKV_OK;
    uint32_t *numbers = qkv_calloc(total, sizeof *numbers);
    if (!numbers) return qkv_fail_memory(err);
    memcpy(numbers, gguf_get_arr_data(from, key), n * sizeof *numbers);
    for (size_t i = n; i < total; i++) memcpy(&numbers[i], filler, sizeof *numbers);
    gguf_set_arr_data(c->header, name, gguf_get_arr_type(from, key), numbers, total);
    free(numbers);
    return QKV_OK;
}

static int pad_tokens(converter *c, const struct gguf_context *from, size_t n, qkv_error *err) {
    static const int32_t unused = 5, low = -1000;
    static const float low_score = -1000;
    const int64_t key = gguf_find_key(from, SCORES_KEY);
    const int floats = key >= 0 && gguf_get_arr_type(from, key) == GGUF_TYPE_FLOAT32;
    int status = pad_names(c, from, n, err);
    if (status == QKV_OK) status = pad_numbers(c, from, TYPES_KEY, n, &unused, err);
    if (status == QKV_OK)
        status = pad_numbers(c, from, SCORES_KEY, n,
                             floats ? (const void *)&low_score : (const void *)&low, err);
    return status;
}

/* The vocabulary was loaded with the model: its arrays are of the kinds and lengths they should be. */
static int set_tokens(converter *c, qkv_error *err) {
    const struct gguf_context *from = c->model->file->parts[0].header;
    if (!c->model->vocab) {
        gguf_set_val_str(c->header, "tokenizer.ggml.model", "no_vocab");
        return QKV_OK;
    }
    const size_t n = (size_t)qkv_vocab_size(c->model->vocab);
    return n < (size_t)c->model->hp.n_vocab ? pad_tokens(c, from, n, err) : QKV_OK;
}

static void set_keys(converter *c) {
    gguf_set_kv(c->header, c->model->file->parts[0].header);
    gguf_remove_key(c->header, "split.no");
    gguf_remove_key(c->header, "split.count");
    gguf_remove_key(c->header, "split.tensors.count");
    gguf_remove_key(c->header, GGUF_KEY_GENERAL_ALIGNMENT);
    gguf_set_val_u32(c->header, "general.quantization_version", GGML_QNT_VERSION);
    const struct type_entry *entry = find_type(c->type);
    if (c->type != GGML_TYPE_COUNT) gguf_remove_key(c->header, "general.file_type");
    if (entry) gguf_set_val_u32(c->header, "general.file_type", entry->file_type);
}

static int make_header(converter *c, qkv_error *err) {
    const qkv_gguf *file = c->model->file;
    const struct ggml_init_params params = {
        .mem_size = (file->n_tensors + 1) * ggml_tensor_overhead(), .no_alloc = true};
    if (qkv_memory_allows(params.mem_size)) c->tensors = ggml_init(params);
    c->header = gguf_init_empty();
    if (!c->tensors || !c->header) return qkv_fail_memory(err);
    set_keys(c);
    int status = set_tokens(c, err);
    for (size_t i = 0; i < file->n_tensors; i++) {
        const qkv_gguf_tensor *t = &file->tensors[i];
        struct ggml_tensor *tensor = ggml_new_tensor(c->tensors, type_of(c, t), 4, t->ne);
        ggml_set_name(tensor, t->name);
        gguf_add_tensor(c->header, tensor);
    }
    return status;
}

/* ---- the data ---- */

/* A tensor's rows on their way into the file. */
typedef struct row_source {
    const char *name;
    const unsigned char *data;
    enum ggml_type type;
    int64_t width, count; /* values of a row, rows */
    int64_t head_dim;     /* rows are reordered inside heads of this many; 0: they are not */
} row_source;

/* Which row of the source a row of the file is: 2i is i, 2i + 1 is i + d/2. */
static int64_t original_row(const row_source *s, int64_t row) {
    if (!s->head_dim) return row;
    const int64_t channel = row % s->head_dim;
    return row - channel + channel / 2 + (channel % 2) * (s->head_dim / 2);
}

static int is_reordered(const converter *c, const char *name) {
    const char *dot = strrchr(name, '.');
    if (!c->model->family->qk_permuted || !c->model->file->original_order || !dot) return 0;
    const size_t length = (size_t)(dot - name);
    return length > 7 &&
           (strncmp(dot - 7, ".attn_q", 7) == 0 || strncmp(dot - 7, ".attn_k", 7) == 0);
}

static row_source rows_of(const converter *c, const qkv_gguf_tensor *t, const void *data) {
    row_source s = {.name = t->name, .data = data, .type = t->type, .width = t->ne[0]};
    if (is_reordered(c, t->name)) {
        int il = -1;
        (void)sscanf(t->name, "blk.%d.", &il);
        s.head_dim = qkv_layer_shape_of(&c->model->hp, il)->head_dim;
        if (t->ne[1] == 1) s.width = 1; /* a bias: a row per channel */
    }
    s.count = t->ne[0] / s.width * t->ne[1] * t->ne[2] * t->ne[3];
    return s;
}

/* n rows as numbers, in the file's order. */
static void read_rows(const row_source *s, int64_t first, int64_t n, float *out) {
    const size_t size = ggml_row_size(s->type, s->width);
    const qkv_convert_fn convert = qkv_converter(s->type);
#pragma omp parallel for if (!qkv_is_forked())
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *row = s->data + (size_t)original_row(s, first + i) * size;
        convert(row, out + i * s->width, s->width);
    }
}

/* Numbers, and the scales of blocks, may be too large for a type: they would be read as infinite. */
static int check_range(const converter *c, const char *name, enum ggml_type type, int64_t width,
                       int64_t n, qkv_error *err) {
    const size_t row = ggml_row_size(type, width);
    const qkv_convert_fn convert = qkv_converter(type);
    int64_t lost = 0;
    float largest = 0;
#pragma omp parallel for if (!qkv_is_forked()) reduction(+ : lost) reduction(max : largest)
    for (int64_t i = 0; i < n; i++) {
        const float *values = c->values + i * width;
        float *read = c->decoded + i * width;
        convert((const char *)c->encoded + (size_t)i * row, read, width);
        for (int64_t k = 0; k < width; k++) {
            if (isfinite(read[k]) || !isfinite(values[k])) continue;
            lost++;
            if (fabsf(values[k]) > largest) largest = fabsf(values[k]);
        }
    }
    if (lost == 0) return QKV_OK;
    return qkv_fail(
        err, QKV_ERR_NUMERIC,
        "tensor %s has %lld values, up to %g, that are too large for the type %s; write "
        "the model as bf16 or f32",
        name, (long long)lost, (double)largest, ggml_type_name(type));
}

/* A piece at a time, so that the work can be stopped between two. */
static int put_bytes(converter *c, const void *data, size_t size, qkv_error *err) {
    int status = QKV_OK;
    for (size_t at = 0; at < size && status == QKV_OK;) {
        const size_t n = size - at < PIECE ? size - at : PIECE;
        if (qkv_steps_reach(&c->steps, c->n_put, (double)n)) return qkv_fail_cancelled(err);
        status = qkv_gguf_put(&c->out, (const char *)data + at, n, err);
        at += n;
        c->n_put += (double)n;
    }
    return status;
}

static int put_rows(converter *c, const row_source *s, enum ggml_type type, int64_t first,
                    int64_t n, qkv_error *err) {
    const size_t row = ggml_row_size(type, s->width);
    read_rows(s, first, n, c->values);
    if (type == GGML_TYPE_F32) return put_bytes(c, c->values, (size_t)n * row, err);
    size_t written = 0;
#pragma omp parallel for if (!qkv_is_forked()) reduction(+ : written)
    for (int64_t i = 0; i < n; i++)
        written +=
            ggml_quantize_chunk(type, c->values, c->encoded, i * s->width, 1, s->width, NULL);
    if (written != (size_t)n * row)
        return qkv_fail(err, QKV_ERR_BACKEND, "ggml cannot quantise to %s", ggml_type_name(type));
    const int status = check_range(c, s->name, type, s->width, n, err);
    return status == QKV_OK ? put_bytes(c, c->encoded, written, err) : status;
}

static int put_tensor(converter *c, const qkv_gguf_tensor *t, enum ggml_type type, const void *data,
                      qkv_error *err) {
    const row_source s = rows_of(c, t, data);
    int status = QKV_OK;
    if (type == t->type && !s.head_dim) {
        status = put_bytes(c, data, t->size, err);
        return status == QKV_OK ? qkv_gguf_put_padding(&c->out, t->size, err) : status;
    }
    const int64_t step = s.width < CHUNK ? CHUNK / s.width : 1;
    for (int64_t first = 0; first < s.count && status == QKV_OK; first += step) {
        const int64_t n = s.count - first < step ? s.count - first : step;
        status = put_rows(c, &s, type, first, n, err);
    }
    const size_t size = ggml_row_size(type, s.width) * (size_t)s.count;
    return status == QKV_OK ? qkv_gguf_put_padding(&c->out, size, err) : status;
}

/* From where it lies, or made first. */
static int put_source(converter *c, const qkv_gguf_tensor *t, enum ggml_type type, qkv_error *err) {
    if (t->data) return put_tensor(c, t, type, t->data, err);
    void *made = malloc(t->size);
    if (!made) return qkv_fail_memory(err);
    qkv_gguf_load(t, made);
    const int status = put_tensor(c, t, type, made, err);
    free(made);
    return status;
}

static int put_model(converter *c, qkv_error *err) {
    const qkv_gguf *file = c->model->file;
    double total = 0;
    for (size_t i = 0; i < file->n_tensors; i++)
        total += (double)ggml_nbytes(ggml_get_tensor(c->tensors, file->tensors[i].name));
    qkv_steps_begin(&c->steps, "bytes", total);
    int status = qkv_gguf_put_header(&c->out, c->header, err);
    for (size_t i = 0; i < file->n_tensors && status == QKV_OK; i++) {
        const qkv_gguf_tensor *t = &file->tensors[i];
        const struct ggml_tensor *tensor = ggml_get_tensor(c->tensors, t->name);
        status = put_source(c, t, tensor->type, err);
    }
    if (status == QKV_OK) status = qkv_output_finish(&c->out, err);
    qkv_steps_end(&c->steps, status == QKV_OK);
    return status;
}

/* Written in the place of its own source, the model as it was would be gone. */
static int check_target(const converter *c, const char *path, qkv_error *err) {
    const qkv_gguf *file = c->model->file;
    struct stat target, part;
    if (stat(path, &target) != 0) return QKV_OK;
    for (size_t i = 0; i < file->n_parts; i++) {
        if (stat(file->parts[i].path, &part) == 0 && part.st_dev == target.st_dev &&
            part.st_ino == target.st_ino)
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "%s is part of the model that is read; write to another file", path);
    }
    return QKV_OK;
}

static void tell_notices(const converter *c) {
    const char *notice;
    for (size_t i = 0; c->options->note && (notice = qkv_model_notice(c->model, i)); i++)
        c->options->note(c->options->user, notice);
}

static int convert(converter *c, const char *path, qkv_error *err) {
    int status = check_target(c, path, err);
    if (status == QKV_OK) status = make_header(c, err);
    if (status != QKV_OK) return status;
    tell_notices(c);
    const qkv_gguf *file = c->model->file;
    size_t room = CHUNK;
    for (size_t i = 0; i < file->n_tensors; i++) {
        if ((size_t)file->tensors[i].ne[0] > room) room = (size_t)file->tensors[i].ne[0];
    }
    c->values = qkv_calloc(room, sizeof *c->values);
    c->encoded = qkv_calloc(room, sizeof *c->values); /* no type takes more room than F32 */
    c->decoded = qkv_calloc(room, sizeof *c->decoded);
    if (!c->values || !c->encoded || !c->decoded) return qkv_fail_memory(err);
    if (c->type != GGML_TYPE_COUNT) ggml_quantize_init(c->type);
    status = qkv_output_open(&c->out, path, err);
    return status == QKV_OK ? put_model(c, err) : status;
}

/* The options, before anything is opened. */
static int begin(converter *c, qkv_convert_options *how, const qkv_convert_options *options,
                 qkv_error *err) {
    *c = (converter){.options = how, .type = GGML_TYPE_COUNT};
    int status = qkv_sized_read(how, sizeof *how, options, "qkv_convert_options", err);
    if (status == QKV_OK) status = qkv_steps_set(&c->steps, how->progress, err);
    if (status == QKV_OK && how->type) status = qkv_weight_type_parse(&c->type, how->type, err);
    return status;
}

static int write_model(converter *c, const qkv_model *model, const char *path, qkv_error *err) {
    c->model = model;
    qkv_ggml_log_enter();
    const int status = convert(c, path, err);
    qkv_ggml_log_leave();
    qkv_output_abandon(&c->out);
    free(c->encoded);
    free(c->decoded);
    free(c->values);
    gguf_free(c->header);
    ggml_free(c->tensors);
    return status;
}

int qkv_model_write(const qkv_model *model, const char *path, const qkv_convert_options *options,
                    qkv_error *err) {
    qkv_convert_options how = QKV_CONVERT_OPTIONS_INIT;
    converter c;
    const int status = begin(&c, &how, options, err);
    return status == QKV_OK ? write_model(&c, model, path, err) : status;
}

int qkv_model_convert(const char *model_path, const char *path, const qkv_convert_options *options,
                      qkv_error *err) {
    qkv_convert_options how = QKV_CONVERT_OPTIONS_INIT;
    converter c;
    qkv_model *model = NULL;
    if (!model_path || !path)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a model and a file to write are needed");
    int status = begin(&c, &how, options, err);
    if (status == QKV_OK) status = qkv_model_open(&model, model_path, err);
    if (status == QKV_OK) status = write_model(&c, model, path, err);
    qkv_model_free(model);
    return status;
}
