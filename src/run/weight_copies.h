/*
 * F32 copies of weights that are stored in another type.
 *
 * A product needs its weight as F32. Turning it into F32 anew in every pass costs about as much
 * time as a short prompt's product itself; a session therefore keeps the copies of the weights it
 * has used, as far as its budget for them goes. What does not fit is converted in each pass that
 * needs it.
 */
#ifndef QKV_RUN_WEIGHT_COPIES_H
#define QKV_RUN_WEIGHT_COPIES_H

#include <stddef.h>

#include "ggml-backend.h"
#include "ggml.h"

typedef struct qkv_weight_copy {
    const struct ggml_tensor *weight;
    struct ggml_tensor *copy;
    struct ggml_context *ctx; /* holds the copy's header */
    ggml_backend_buffer_t buffer;
} qkv_weight_copy;

typedef struct qkv_weight_copies {
    qkv_weight_copy *weights;
    size_t n_weights, capacity;
    size_t size, budget; /* bytes */
} qkv_weight_copies;

/* The F32 copy, or NULL when there is none. */
struct ggml_tensor *qkv_weight_copies_find(const qkv_weight_copies *copies,
                                           const struct ggml_tensor *weight);
/* Makes a copy, with so many threads, when the budget allows; returns 1 when it did. */
int qkv_weight_copies_add(qkv_weight_copies *copies, const struct ggml_tensor *weight,
                          int n_threads);
void qkv_weight_copies_release(qkv_weight_copies *copies);

#endif
