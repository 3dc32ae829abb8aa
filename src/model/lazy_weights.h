/*
 * Weights that are made when a pass first needs them.
 *
 * A GGUF file's matrices are used where they lie. Those of a Hugging Face directory may have to be
 * transposed, stacked or regrouped: opening a model must not read them all, so each is made when the
 * graph of its layer is built for the first time. Models are shared by threads; a lock makes each of
 * them once.
 */
#ifndef QKV_MODEL_LAZY_WEIGHTS_H
#define QKV_MODEL_LAZY_WEIGHTS_H

#include "base/fail.h"
#include "format/gguf_file.h"
#include "ggml-backend.h"
#include "ggml.h"

typedef struct qkv_lazy_weights qkv_lazy_weights;

/* Notes that `tensor`, of this layer, will be made as `t` says. *lazy is made with the first. */
int qkv_lazy_weights_add(qkv_lazy_weights **lazy, struct ggml_tensor *tensor,
                         const qkv_gguf_tensor *t, int32_t layer, qkv_error *err);
/* Makes those of a layer that have not been made yet. `lazy` may be NULL. */
int qkv_lazy_weights_make(qkv_lazy_weights *lazy, int32_t layer, qkv_error *err);
void qkv_lazy_weights_free(qkv_lazy_weights *lazy);

#endif
