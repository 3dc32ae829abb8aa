/*
 * Writes models with random weights.
 *
 * Which tensors there are and how large they are is read from the family's description, so that
 * what is written here is what weights.c asks for. The header is made in memory by ggml, the data
 * follow in pieces of a few MiB: a model may be larger than the memory. Weights have the standard
 * deviation 0.02 that GPT-2 was initialised with; those of norms are 1.
 *
 * Refused: shapes that no model could have, and types that do not fit the rows.
 */
#include "model/synthetic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/random.h"
#include "base/text.h"
#include "format/gguf_write.h"
#include "model/model.h"

/* X(name, family, layers, heads, key/value heads, width, feed-forward, vocabulary, context)
 * SmolLM's context is that of its longer-reading sisters, for measurements of long prompts. */
#define SHAPE_LIST(X)                                                                              \
    X("gpt2-124m", gpt2, 12, 12, 12, 768, 3072, 50257, 1024)                                       \
    X("smollm-135m", llama, 30, 9, 3, 576, 1536, 49152, 32768)                                     \
    X("llama-1b", llama, 16, 32, 8, 2048, 8192, 128256, 131072)

typedef struct shape {
    const char *name;
    const qkv_family *family;
    int32_t numbers[7]; /* as in fields[] */
} shape;

#define SHAPE_ENTRY(name, family, ...) {name, &qkv_family_##family, {__VA_ARGS__}},
static const shape shapes[] = {SHAPE_LIST(SHAPE_ENTRY)};
#undef SHAPE_ENTRY
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };

/* The numbers of a shape in the order they are written, and the largest that can be meant. */
static const struct field {
    const char *what;
    int32_t max;
    size_t offset;
} fields[] = {
    {"layers", 4096, offsetof(qkv_hparams, n_layer)},
    {"heads", 4096, offsetof(qkv_hparams, largest.n_head)},
    {"key/value heads", 4096, offsetof(qkv_hparams, largest.n_kv_head)},
    {"width", 1 << 20, offsetof(qkv_hparams, n_embd)},
    {"feed-forward width", 1 << 20, offsetof(qkv_hparams, largest.n_ff)},
    {"vocabulary", 1 << 24, offsetof(qkv_hparams, n_vocab)},
    {"context", 1 << 30, offsetof(qkv_hparams, n_ctx)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields, DEFAULT_CONTEXT = 4096 };

enum { CHUNK = 1 << 20 }; /* values that are made at a time, at least one row */

typedef struct writer {
    const char *shape_text;
    const qkv_family *family;
    qkv_hparams hp;
    enum ggml_type type;
    uint64_t seed;
    struct ggml_context *tensors;
    struct gguf_context *header;
    qkv_output out;
    float *values;
    void *encoded;
} writer;

const char *qkv_synthetic_shape_name(size_t index) {
    return index < SHAPE_COUNT ? shapes[index].name : NULL;
}

/* ---- shapes ---- */

static int fail_shape(const char *text, qkv_error *err) {
    qkv_text names = {0};
    for (size_t i = 0; i < SHAPE_COUNT; i++) qkv_text_printf(&names, "%s, ", shapes[i].name);
    int status =
        qkv_fail(err, QKV_ERR_ARGUMENT,
                 "'%s' is not a shape; there are %sor give [FAMILY:]LAYERS,HEADS,KV,D,FF,V[,CTX]",
                 text, names.data ? names.data : "");
    qkv_text_release(&names);
    return status;
}

static int32_t *field_of(qkv_hparams *hp, size_t i) {
    return (int32_t *)(void *)((char *)hp + fields[i].offset);
}

static int parse_numbers(qkv_hparams *hp, const char *text, const char *numbers, qkv_error *err) {
    size_t n = 0;
    for (const char *at = numbers;; at++) {
        const size_t length = strcspn(at, ",");
        int64_t value;
        if (n == FIELD_COUNT || !qkv_parse_int(at, length, &value)) return fail_shape(text, err);
        if (value < 1 || value > fields[n].max)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "shape '%s': %s must be 1 to %d", text,
                            fields[n].what, fields[n].max);
        *field_of(hp, n++) = (int32_t)value;
        at += length;
        if (*at == '\0') break;
    }
    if (n == FIELD_COUNT - 1) hp->n_ctx = DEFAULT_CONTEXT;
    return n >= FIELD_COUNT - 1 ? QKV_OK : fail_shape(text, err);
}

static int check_heads(qkv_hparams *hp, const char *text, qkv_error *err) {
    qkv_layer_shape *heads = &hp->largest;
    if (heads->n_kv_head < 1 || heads->n_head % heads->n_kv_head != 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "shape '%s': %d heads cannot share %d key/value heads evenly", text,
                        heads->n_head, heads->n_kv_head);
    if (heads->n_head < 1 || hp->n_embd % (2 * heads->n_head) != 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "shape '%s': width %d does not give %d heads an even number of channels",
                        text, hp->n_embd, heads->n_head);
    heads->head_dim = heads->value_dim = hp->n_embd / heads->n_head;
    hp->rope[QKV_ROPE_GLOBAL].dims = heads->head_dim;
    return QKV_OK;
}

static int fail_family(const char *text, const char *name, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    const char *known;
    for (size_t i = 0; (known = qkv_family_name(i)); i++) qkv_nearest_try(&near, known);
    return qkv_fail(err, QKV_ERR_ARGUMENT, "shape '%s': there is no family '%s'%s", text, name,
                    qkv_nearest_hint(&near));
}

static int read_custom(writer *w, const char *text, qkv_error *err) {
    const char *colon = strchr(text, ':');
    w->family = &qkv_family_llama;
    if (colon) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
        w->family = qkv_family_find(name);
        if (!w->family) return fail_family(text, name, err);
        if (w->family->mixer != QKV_MIXER_NONE)
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "shape '%s': models of the family %s have layers without attention, "
                            "whose shapes cannot be told",
                            text, name);
    }
    return parse_numbers(&w->hp, text, colon ? colon + 1 : text, err);
}

/* What a shape does not say. */
static void choose_rest(writer *w) {
    w->hp.parallel = w->family->parallel;
    if (!(w->family->layer_required & QKV_HAS(ROUTER))) return;
    w->hp.n_expert = 8;
    w->hp.n_expert_used = 2;
    w->hp.n_ff_expert = w->hp.n_ff_shared = w->hp.largest.n_ff;
}

static int read_shape(writer *w, const char *text, qkv_error *err) {
    int status = QKV_OK;
    w->shape_text = text;
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        if (strcmp(shapes[i].name, text) != 0) continue;
        w->family = shapes[i].family;
        for (size_t k = 0; k < FIELD_COUNT; k++) *field_of(&w->hp, k) = shapes[i].numbers[k];
    }
    if (!w->family) status = read_custom(w, text, err);
    if (w->family) choose_rest(w);
    return status == QKV_OK ? check_heads(&w->hp, text, err) : status;
}

/* ---- the header ---- */

static int add_tensor(writer *w, const char *name, const char *letters, qkv_error *err) {
    int64_t ne[3] = {1, 1, 1};
    const int n_dims = (int)strlen(letters);
    for (int i = 0; i < n_dims; i++)
        ne[i] = letters[i] == '*' ? 2 : qkv_hparams_dimension(&w->hp, &w->hp.largest, letters[i]);
    const enum ggml_type type = letters[1] ? w->type : GGML_TYPE_F32;
    if (ne[0] % ggml_blck_size(type) != 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "shape '%s' cannot be written as %s: the rows of %s have %lld values, no "
                        "multiple of that type's blocks of %lld",
                        w->shape_text, ggml_type_name(type), name, (long long)ne[0],
                        (long long)ggml_blck_size(type));
    struct ggml_tensor *tensor = ggml_new_tensor(w->tensors, type, n_dims, ne);
    ggml_set_name(tensor, name);
    gguf_add_tensor(w->header, tensor);
    return QKV_OK;
}

static qkv_slot_set needed(const writer *w, int il) {
    const qkv_family *family = w->family;
    qkv_slot_set all = family->layer_required;
    if (!w->hp.parallel) all |= family->sequential_required;
    if (family->first_unnormed && il == 0) all &= ~QKV_HAS(ATTN_NORM);
    return all;
}

static int add_tensors(writer *w, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < QKV_MODEL_WEIGHT_COUNT && status == QKV_OK; i++) {
        if (!(w->family->model_required >> i & 1)) continue;
        const qkv_weight_slot slot = qkv_family_model_slot(i);
        status = add_tensor(w, slot.name, slot.shape, err);
    }
    for (int il = 0; il < w->hp.n_layer; il++) {
        for (int i = 0; i < QKV_LAYER_WEIGHT_COUNT && status == QKV_OK; i++) {
            if (!(needed(w, il) >> i & 1)) continue;
            const qkv_weight_slot slot = qkv_family_layer_slot(w->family, i);
            char name[GGML_MAX_NAME];
            snprintf(name, sizeof name, "blk.%d.%s", il, slot.name);
            status = add_tensor(w, name, slot.shape, err);
        }
    }
    return status;
}

static void set_number(writer *w, const char *suffix, int32_t value) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", w->family->name, suffix);
    gguf_set_val_u32(w->header, key, (uint32_t)value);
}

/* xIELU's numbers, as a model starts its training with. */
static void set_xielu(writer *w) {
    static const struct {
        const char *key;
        float value;
    } lists[] = {{"xielu.alpha_p", 0.2f},
                 {"xielu.alpha_n", -0.9f},
                 {"xielu.beta", 0.5f},
                 {"xielu.eps", -1e-6f}};
    float values[1024];
    const size_t n = (size_t)w->hp.n_layer < 1024 ? (size_t)w->hp.n_layer : 1024;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (size_t il = 0; il < n; il++) values[il] = lists[i].value;
        gguf_set_arr_data(w->header, lists[i].key, GGUF_TYPE_FLOAT32, values, n);
    }
}

static void set_metadata(writer *w) {
    const qkv_hparams *hp = &w->hp;
    gguf_set_val_str(w->header, "general.architecture", w->family->name);
    gguf_set_val_str(w->header, "general.name", w->shape_text);
    set_number(w, "block_count", hp->n_layer);
    set_number(w, "context_length", hp->n_ctx);
    set_number(w, "embedding_length", hp->n_embd);
    set_number(w, "feed_forward_length", hp->largest.n_ff);
    set_number(w, "attention.head_count", hp->largest.n_head);
    set_number(w, "attention.head_count_kv", hp->largest.n_kv_head);
    set_number(w, "vocab_size", hp->n_vocab);
    if (hp->n_expert) {
        set_number(w, "expert_count", hp->n_expert);
        set_number(w, "expert_used_count", hp->n_expert_used);
        set_number(w, "expert_feed_forward_length", hp->n_ff_expert);
    }
    if (w->family->activation == QKV_ACT_XIELU) set_xielu(w);
    if (w->family->position == QKV_POSITION_ROPE)
        set_number(w, "rope.dimension_count", hp->rope[QKV_ROPE_GLOBAL].dims);
    char key[128];
    if (w->family->keys & QKV_READS(ALIBI)) {
        snprintf(key, sizeof key, "%s.%s", w->family->name, qkv_family_key_name(QKV_KEY_ALIBI));
        gguf_set_val_f32(w->header, key, 8);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", w->family->name,
             w->family->norm == QKV_NORM_RMS ? "rms_" : "");
    gguf_set_val_f32(w->header, key, 1e-5f);
    gguf_set_val_str(w->header, "tokenizer.ggml.model",
                     "no_vocab"); /* llama.cpp wants to be told */
}

static int make_header(writer *w, qkv_error *err) {
    const size_t slots =
        QKV_MODEL_WEIGHT_COUNT + (size_t)w->hp.n_layer * (size_t)QKV_LAYER_WEIGHT_COUNT;
    const struct ggml_init_params params = {.mem_size = slots * ggml_tensor_overhead(),
                                            .no_alloc = true};
    if (qkv_memory_allows(params.mem_size)) w->tensors = ggml_init(params);
    w->header = gguf_init_empty();
    if (!w->tensors || !w->header) return qkv_fail_memory(err);
    set_metadata(w);
    return add_tensors(w, err);
}

/* ---- the data ---- */

/* Close to normal and cheap: the sum of four uniform numbers, the 16-bit quarters of one random
 * word. Its tails end at 3.5 standard deviations, which no measurement of speed can tell. */
static float weight(uint64_t key, uint64_t index) {
    const double deviation = 37837.22; /* of the sum: sqrt((2^32 - 1) / 3) */
    const uint64_t bits = qkv_random_mix(key, index);
    const int64_t sum =
        (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return (float)(0.02 / deviation * (double)(sum - INT64_C(131070)));
}

static void fill(float *values, size_t n, uint64_t key, uint64_t first) {
    for (size_t i = 0; i < n; i++) values[i] = weight(key, first + i);
}

/* Values first to first + n of a tensor, in its type. */
static int put_values(writer *w, const struct ggml_tensor *tensor, uint64_t key, uint64_t first,
                      size_t n, qkv_error *err) {
    if (strstr(tensor->name, "norm.weight") || strstr(tensor->name, "norm_2.weight")) {
        for (size_t i = 0; i < n; i++) w->values[i] = 1;
    } else {
        fill(w->values, n, key, first);
    }
    if (tensor->type == GGML_TYPE_F32)
        return qkv_gguf_put(&w->out, w->values, n * sizeof *w->values, err);
    const int64_t rows = (int64_t)n / tensor->ne[0];
    const size_t size =
        ggml_quantize_chunk(tensor->type, w->values, w->encoded, 0, rows, tensor->ne[0], NULL);
    if (size != (size_t)rows * ggml_row_size(tensor->type, tensor->ne[0]))
        return qkv_fail(err, QKV_ERR_BACKEND, "ggml cannot quantise to %s",
                        ggml_type_name(tensor->type));
    return qkv_gguf_put(&w->out, w->encoded, size, err);
}

static int put_tensor(writer *w, const struct ggml_tensor *tensor, uint64_t key, qkv_error *err) {
    const uint64_t total = (uint64_t)ggml_nelements(tensor), row = (uint64_t)tensor->ne[0];
    const uint64_t step = row < CHUNK ? CHUNK / row * row : row;
    int status = QKV_OK;
    for (uint64_t at = 0; at < total && status == QKV_OK; at += step) {
        const uint64_t n = total - at < step ? total - at : step;
        status = put_values(w, tensor, key, at, (size_t)n, err);
    }
    if (status != QKV_OK) return status;
    return qkv_gguf_put_padding(&w->out, ggml_nbytes(tensor), err);
}

static int put_model(writer *w, qkv_error *err) {
    int status = qkv_gguf_put_header(&w->out, w->header, err);
    uint64_t index = 0;
    struct ggml_tensor *tensor = ggml_get_first_tensor(w->tensors);
    for (; tensor && status == QKV_OK; tensor = ggml_get_next_tensor(w->tensors, tensor)) {
        status = put_tensor(w, tensor, qkv_random_mix(w->seed, index++), err);
    }
    return status == QKV_OK ? qkv_output_finish(&w->out, err) : status;
}

int qkv_synthetic_write(const char *path, const char *shape_text, const char *type, uint64_t seed,
                        qkv_error *err) {
    writer w = {.seed = seed};
    if (!path || !shape_text || !type)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a model needs a path, a shape and a type");
    int status = read_shape(&w, shape_text, err);
    if (status == QKV_OK) status = qkv_weight_type_parse(&w.type, type, err);
    if (status == QKV_OK) status = make_header(&w, err);
    if (status == QKV_OK) {
        /* One row is at most 2^20 values; no type takes more room than F32. */
        w.values = qkv_calloc(CHUNK, sizeof *w.values);
        w.encoded = qkv_calloc(CHUNK, sizeof *w.values);
        if (!w.values || !w.encoded) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = qkv_output_open(&w.out, path, err);
    if (status == QKV_OK) status = put_model(&w, err);

    qkv_output_abandon(&w.out);
    free(w.encoded);
    free(w.values);
    gguf_free(w.header);
    ggml_free(w.tensors);
    return status;
}
