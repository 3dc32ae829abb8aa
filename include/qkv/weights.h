/*
 * Unstable: may change in every version.
 *
 * The weights of a model as numbers of single precision, whatever type they are stored in.
 *
 *     qkv_model *model = NULL;
 *     qkv_weight weight = QKV_WEIGHT_INIT;
 *     float row[4096];
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_weight_find(model, "q", 0, &weight, &err) == QKV_OK && weight.width <= 4096 &&
 *         qkv_weight_read(model, "q", 0, 0, 1, row, &err) == QKV_OK) {
 *         printf("%d x %d in %s, first value %g\n", (int)weight.shape[0], (int)weight.shape[1],
 *                weight.type, row[0]);
 *     }
 *     qkv_model_free(model);
 *
 * A matrix has a row for every output: with x from resid_pre after the layer's norm, q = W_q x + b_q.
 * Every model has "q", "k" and "v", also where the file holds them as one matrix; so has "gate". Their rows
 * stand in the order of captures, which is the original model's. "output" is there also where a model
 * uses the token embedding for it. Nothing is kept: values are converted when they are asked for.
 * Any thread may read.
 */
#ifndef QKV_WEIGHTS_H
#define QKV_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QKV_WEIGHT_NAME_SIZE = 32 };

typedef struct qkv_weight {
    size_t size;
    char name[QKV_WEIGHT_NAME_SIZE]; /* "q", "k_bias", "down", "token_embd", ... */
    int32_t layer;                   /* -1: it belongs to none */
    const char *tensor; /* that it is, or is a part of: "blk.3.attn_q.weight"; the model's */
    const char *type;   /* "F16", "Q4_K", ...; the model's */
    int32_t n_dims;
    int64_t shape[3]; /* row-major */
    int64_t n_rows;   /* all but the last axis; of a vector its length */
    int64_t width;    /* values of a row; of a vector 1 */
} qkv_weight;

#define QKV_WEIGHT_INIT                                                                            \
    { .size = sizeof(qkv_weight) }

/* One after the other, those of no layer first. Fills *weight and returns 1, or 0 past the end. */
QKV_API int qkv_weight_get(const qkv_model *model, size_t index, qkv_weight *weight);
/* By name; layer is -1 for those of no layer. *weight may be NULL. */
QKV_API int qkv_weight_find(const qkv_model *model, const char *name, int32_t layer,
                            qkv_weight *weight, qkv_error *err);
/* n rows from `first` on, n * width values. */
QKV_API int qkv_weight_read(const qkv_model *model, const char *name, int32_t layer, int64_t first,
                            int64_t n, float *values, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
