/*
 * Weights that are made when a pass first needs them.
 *
 * A GGUF file's matrices are used where they lie. Those of a Hugging Face directory may have to be
 * transposed, stacked or regrouped: opening a model must not read them all, so each is made when the
 * graph of its layer is built for the first time. Models are shared by threads; a lock makes each of
 * them once.
 */
#ifndef QKV_MODEL_LATE_H
#define QKV_MODEL_LATE_H

#include "base/fail.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "model/gguf_file.h"

typedef struct qkv_late qkv_late;

/* Notes that `tensor`, of this layer, will be made as `t` says. *late is made with the first. */
int qkv_late_add(qkv_late **late, struct ggml_tensor *tensor, const qkv_gguf_tensor *t,
                 int32_t layer, qkv_error *err);
/* Makes those of a layer that have not been made yet. `late` may be NULL. */
int qkv_late_make(qkv_late *late, int32_t layer, qkv_error *err);
void qkv_late_free(qkv_late *late);

#endif
