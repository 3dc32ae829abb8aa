/*
 * Can two models be compared? They must have the same architecture, shape and vocabulary: then the
 * same place of both means the same thing. Types of weights, RoPE's settings and what the weights
 * hold may differ; that is what is compared.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "measure/compare.h"

/* X(field of qkv_model_info, what it is called) */
#define SHAPE_LIST(X)                                                                              \
    X(n_layer, "layers")                                                                           \
    X(n_head, "query heads per layer")                                                             \
    X(n_kv_head, "key/value heads per layer")                                                      \
    X(head_dim, "numbers per head")                                                                \
    X(n_embd, "numbers per token (width)")                                                         \
    X(n_ff, "numbers in the feed-forward block")                                                   \
    X(n_expert, "experts per layer")                                                               \
    X(n_expert_used, "experts per token")                                                          \
    X(n_vocab, "tokens in the vocabulary")

#define SHAPE_FIELD(field, what) {(what), offsetof(qkv_model_info, field)},
static const struct shape_field {
    const char *what;
    size_t offset;
} shape_fields[] = {SHAPE_LIST(SHAPE_FIELD)};
#undef SHAPE_FIELD

static int32_t shape_of(const qkv_model_info *info, const struct shape_field *field) {
    int32_t value;
    memcpy(&value, (const char *)info + field->offset, sizeof value);
    return value;
}

static int check_shapes(const qkv_model_info *a, const qkv_model_info *b, qkv_error *err) {
    if (strcmp(a->architecture, b->architecture) != 0)
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "the models are of different architectures, %s (%s) and %s (%s), and cannot "
            "be compared",
            a->architecture, a->path, b->architecture, b->path);
    for (size_t i = 0; i < sizeof shape_fields / sizeof *shape_fields; i++) {
        const int32_t x = shape_of(a, &shape_fields[i]), y = shape_of(b, &shape_fields[i]);
        if (x != y)
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "the models have different shapes and cannot be compared: %s has "
                            "%" PRId32 " %s, %s has %" PRId32,
                            a->path, x, shape_fields[i].what, b->path, y);
    }
    return QKV_OK;
}

/* ---- vocabularies ---- */

/* Both texts are freed by the caller. */
static int same_token(const qkv_model *const models[2], int32_t token, char *texts[2],
                      size_t lengths[2], int *is_same, qkv_error *err) {
    for (int m = 0; m < 2; m++) {
        const int status = qkv_token_text(models[m], &texts[m], &lengths[m], token, err);
        if (status != QKV_OK) return status;
    }
    *is_same = lengths[0] == lengths[1] && memcmp(texts[0], texts[1], lengths[0]) == 0;
    return QKV_OK;
}

static int fail_token(int32_t token, char *const texts[2], const size_t lengths[2],
                      qkv_error *err) {
    enum { SHOWN = 40 };
    qkv_text shown[2] = {{0}, {0}};
    for (int m = 0; m < 2; m++) qkv_text_append_short(&shown[m], texts[m], lengths[m], SHOWN);
    const int status =
        shown[0].failed || shown[1].failed
            ? qkv_fail_memory(err)
            : qkv_fail(err, QKV_ERR_ARGUMENT,
                       "the models have different vocabularies and cannot be compared: token "
                       "%" PRId32 " is '%s' in the first and '%s' in the second",
                       token, shown[0].data ? shown[0].data : "",
                       shown[1].data ? shown[1].data : "");
    for (int m = 0; m < 2; m++) qkv_text_release(&shown[m]);
    return status;
}

static int check_vocabularies(const qkv_model *first, const qkv_model *second, qkv_error *err) {
    const qkv_model *const models[2] = {first, second};
    const qkv_model_info *a = qkv_model_get_info(first), *b = qkv_model_get_info(second);
    const int without = (strcmp(a->tokenizer, "none") == 0) + (strcmp(b->tokenizer, "none") == 0);
    if (without) return QKV_OK; /* ids are all there is to go by */
    int status = QKV_OK;
    for (int32_t token = 0; token < a->n_vocab && status == QKV_OK; token++) {
        char *texts[2] = {NULL, NULL};
        size_t lengths[2] = {0, 0};
        int is_same = 1;
        status = same_token(models, token, texts, lengths, &is_same, err);
        if (status == QKV_OK && !is_same) status = fail_token(token, texts, lengths, err);
        qkv_text_free(texts[0]);
        qkv_text_free(texts[1]);
    }
    return status;
}

int qkv_compare_models(const qkv_model *first, const qkv_model *second, qkv_error *err) {
    if (first == second) return QKV_OK;
    const int status = check_shapes(qkv_model_get_info(first), qkv_model_get_info(second), err);
    return status == QKV_OK ? check_vocabularies(first, second, err) : status;
}
