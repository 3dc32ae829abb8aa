/*
 * What must hold between captured tensors and weights, whatever the model: the arithmetic of the study
 * `check`, in plain loops and double precision, apart from the code that computed the captures.
 *
 * Each function widens a gap: the largest difference that it finds, divided by the largest size of what is
 * compared, and where it is. Tensors are captures as qkv/session.h has them. A number that is not finite is a
 * gap without end.
 */
#ifndef QKV_STUDY_INVARIANTS_H
#define QKV_STUDY_INVARIANTS_H

#include <stdint.h>

#include "qkv/session.h"

typedef struct invariant_gap {
    double largest;
    int32_t layer, head, token; /* -1: it is not about one */
} invariant_gap;

/* A norm of rows: over their root mean square, or, where it is centred, their standard deviation. Without
 * weights there is none. */
typedef struct invariant_norm {
    const float *weight, *bias; /* as many as a row has values; bias may be NULL */
    int centred;
    double epsilon;
} invariant_norm;

/* pattern [H, T, T] · v [T, G, d] = z [T, H, d] */
void qkv_invariant_mix(invariant_gap *gap, int32_t layer, const qkv_tensor *pattern,
                       const qkv_tensor *v, const qkv_tensor *z);

/* Rows of a pattern sum to 1. Where sinks [H] take a share, scores [H, T, T] say how much. */
void qkv_invariant_rows(invariant_gap *gap, int32_t layer, const qkv_tensor *pattern,
                        const qkv_tensor *scores, const float *sinks);

/* pre + attn, normed, + mlp, normed, = post; all [T, D]. */
typedef struct invariant_stream {
    const qkv_tensor *pre, *attn, *mlp, *post;
    invariant_norm after_attn, after_mlp;
} invariant_stream;

/* QKV_ERR_MEMORY, or QKV_OK. */
int qkv_invariant_residual(invariant_gap *gap, int32_t layer, const invariant_stream *stream,
                           qkv_error *err);

/* A matrix of n rows of `width` values, some rows at a time. */
typedef struct invariant_matrix {
    int (*read)(void *user, int64_t first, int64_t n, float *rows, qkv_error *err);
    void *user;
    int64_t n, width;
    const float *bias;   /* NULL: none */
    invariant_norm norm; /* of the products */
    double factor;       /* that they are multiplied by in the end */
} invariant_matrix;

/* W x = y, token by token: x [T, width], however it is divided, and y [T, n]. Of many tokens, eight. */
int qkv_invariant_product(invariant_gap *gap, int32_t layer, const invariant_matrix *w,
                          const qkv_tensor *x, const qkv_tensor *y, qkv_error *err);

/* What the last token changes: rows before it are the same in a and b, which are of two prompts that differ in
 * it. [H, T, T] or [T, D]. */
void qkv_invariant_earlier_rows(invariant_gap *gap, int32_t layer, const qkv_tensor *a,
                                const qkv_tensor *b);
/* No weight is on a later token. */
void qkv_invariant_no_future(invariant_gap *gap, int32_t layer, const qkv_tensor *pattern);

/* n numbers that should be the same. layer, token: -1: of none. */
void qkv_invariant_same(invariant_gap *gap, int32_t layer, int32_t token, const float *a,
                        const float *b, int64_t n);

#endif
