/*
 * Unstable: may change in every version.
 *
 * Two models of one architecture on the same tokens: which heads, layers and outputs differ, and by
 * how much. For a model and its quantised copy, or a base model and what was trained from it.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *first = NULL, *second = NULL;
 *     qkv_session *one = NULL, *other = NULL;
 *     qkv_compare *compare = NULL;
 *     qkv_compared out = QKV_COMPARED_INIT;
 *     if (qkv_model_open(&first, "model.gguf", &err) == QKV_OK &&
 *         qkv_model_open(&second, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&one, first, NULL, &err) == QKV_OK &&
 *         qkv_session_new(&other, second, NULL, &err) == QKV_OK &&
 *         qkv_compare_new(&compare, first, second, NULL, &err) == QKV_OK &&
 *         qkv_compare_add(compare, one, other, tokens, 4, NULL, &err) == QKV_OK &&
 *         qkv_compare_get(compare, &out)) {
 *         printf("KL %g, other most likely token at %g of the positions\n", out.kl, out.flips);
 *         printf("head 1 of layer 3: %g\n", qkv_compare_head(compare, 3, 1));
 *     }
 *     qkv_compare_free(compare);
 *     qkv_session_free(one);
 *     qkv_session_free(other);
 *     qkv_model_free(first);
 *     qkv_model_free(second);
 *
 * Every token of every prompt weighs the same: means are over all rows, positions and tokens that were
 * added. Of patterns, a bounded number of rows of the first model is kept at a time and the second
 * model's are compared with them as they come. So memory depends neither on the number of prompts nor,
 * beyond one layer's states, on their length: what does not fit takes more passes. The numbers are the
 * same whatever the memory.
 *
 * A comparison keeps both models alive and belongs to one thread at a time.
 */
#ifndef QKV_COMPARE_H
#define QKV_COMPARE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_compare qkv_compare;

typedef struct qkv_compare_options {
    size_t size;
    /* The distance of patterns: "tv", "js", "kl" or "max_change", as the metrics of these names
     * (qkv/measure.h) with the first model as the baseline; NULL: tv. */
    const char *distance;
    const char *edits; /* of the second model, as of qkv_plan_add_variant; NULL: none */
    /* Bytes for what is kept of the first model at a time; 0: as many as its session may use. */
    size_t memory;
} qkv_compare_options;

#define QKV_COMPARE_OPTIONS_INIT                                                                   \
    { .size = sizeof(qkv_compare_options) }

/* Models can be compared when architecture, layers, heads, widths and vocabulary are the same; the
 * error names the first that is not. options may be NULL. */
QKV_API int qkv_compare_new(qkv_compare **out, const qkv_model *first, const qkv_model *second,
                            const qkv_compare_options *options, qkv_error *err);
QKV_API void qkv_compare_free(qkv_compare *compare);

/* What the outputs of both models have in common. NaN where there is nothing to say: an encoder has no
 * logits, a prompt of one token no loss. */
typedef struct qkv_compared {
    size_t size;
    uint64_t n_prompts, n_tokens;
    double kl;                  /* mean over positions of KL(first || second), nats */
    double kl_last;             /* the same at the last token of each prompt */
    double flips;               /* share of positions whose most likely next token is another */
    double loss[2];             /* -ln p of the prompts' tokens, mean, nats: first and second */
    uint64_t n_passes;          /* pairs of passes that it took */
    uint64_t changed, selected; /* values that the edits wrote otherwise, of how many */
} qkv_compared;

#define QKV_COMPARED_INIT                                                                          \
    { .size = sizeof(qkv_compared) }

/* Runs one prompt through both models and adds it to the sums; *of_prompt (may be NULL) receives what
 * came of this one. The sessions are those of the two models, in their order; one model may be both,
 * and so may one session. A failure leaves the sums as they were. */
QKV_API int qkv_compare_add(qkv_compare *compare, qkv_session *first, qkv_session *second,
                            const int32_t *tokens, size_t n_tokens, qkv_compared *of_prompt,
                            qkv_error *err);

/* Over all prompts so far. Returns 1, or 0 without a comparison. */
QKV_API int qkv_compare_get(const qkv_compare *compare, qkv_compared *out);
/* The distance of a head's patterns; NaN where there is no such head, or nothing was added. */
QKV_API double qkv_compare_head(const qkv_compare *compare, int32_t layer, int32_t head);
/* The lowest and the highest that it is for a single prompt. Returns 1, or 0 where there is no such head,
 * or nothing was added. Both may be NULL. */
QKV_API int qkv_compare_head_range(const qkv_compare *compare, int32_t layer, int32_t head,
                                   double *lowest, double *highest);
/* The residual streams after a layer (resid_post): the mean over tokens of the angle between both
 * models' vectors in degrees, and of |second - first| / |first|. Tokens with a vector of zeros are left
 * out; NaN where none is left. Returns 1, or 0 where there is no such layer. Both may be NULL. */
QKV_API int qkv_compare_layer(const qkv_compare *compare, int32_t layer, double *angle,
                              double *error);
/* The mean of KL(first || second) at a position over the prompts that have it, and how many these are.
 * Returns 0 past the end. Both may be NULL. */
QKV_API int qkv_compare_position(const qkv_compare *compare, size_t position, double *kl,
                                 uint64_t *n_prompts);

/* A position where the models expect different tokens. */
typedef struct qkv_compare_flip {
    size_t size;
    uint64_t prompt; /* in the order of qkv_compare_add, from 0 on */
    int64_t position;
    int32_t tokens[2];       /* the most likely next one: of the first, of the second */
    double probabilities[2]; /* of these, each in its own model */
    double kl;
} qkv_compare_flip;

#define QKV_COMPARE_FLIP_INIT                                                                      \
    { .size = sizeof(qkv_compare_flip) }

/* Those with the largest KL, the largest first; as many as 32. Returns 0 past the end. */
QKV_API int qkv_compare_get_flip(const qkv_compare *compare, size_t index, qkv_compare_flip *flip);

#ifdef __cplusplus
}
#endif

#endif
