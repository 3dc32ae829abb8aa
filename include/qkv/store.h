/*
 * Writing results to files, for numpy, PyTorch or any reader of safetensors.
 *
 *     qkv_store_write(result, plan, model, "out.safetensors", &err);
 *
 * The suffix says how. `.safetensors`: every tensor as `v0/pattern.3` (variant, site, layer; logits
 * without a layer), with the tokens, the model's hash and every variant's edits in `__metadata__`.
 * `.json`: the same as readable numbers, for small results. `.npy`: when exactly one tensor was
 * captured. Files are written to a temporary name and renamed.
 */
#ifndef QKV_STORE_H
#define QKV_STORE_H

#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

QKV_API int qkv_store_write(const qkv_result *result, const qkv_plan *plan, const qkv_model *model,
                            const char *path, qkv_error *err);

/* A safetensors file of matrices that belong to a figure: names, shapes and data are the caller's.
 * metadata is a list of n_metadata key, value pairs (2 * n_metadata strings). */
typedef struct qkv_store_tensor {
    const char *name;
    const float *data;
    int32_t n_dims;
    int64_t shape[3];
} qkv_store_tensor;

QKV_API int qkv_store_write_tensors(const qkv_store_tensor *tensors, size_t n_tensors,
                                    const char *const *metadata, size_t n_metadata,
                                    const char *path, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
