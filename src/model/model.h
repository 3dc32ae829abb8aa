/*
 * What a model is inside: the opened file, its numbers, its weights as ggml tensors over the
 * mapping, its vocabulary. Everything here is read-only once qkv_model_open has returned.
 */
#ifndef QKV_MODEL_MODEL_H
#define QKV_MODEL_MODEL_H

#include <stdint.h>

#include "ggml-backend.h"
#include "ggml.h"
#include "model/family.h"
#include "model/gguf_file.h"
#include "model/vocab.h"
#include "qkv/model.h"

/* Numbers of the architecture; letters as in the design. */
typedef struct qkv_hparams {
    int32_t n_layer;
    int32_t n_embd;    /* D */
    int32_t n_head;    /* H */
    int32_t n_kv_head; /* G */
    int32_t head_dim;  /* d */
    int32_t n_ff;      /* F */
    int32_t n_vocab;   /* V */
    int32_t n_ctx;     /* C */
    int32_t window;    /* a query sees this many keys, itself included; 0 = all */
    float norm_eps;
    float attn_scale;  /* 1/sqrt(d) */
    int32_t rope_dims; /* channels that turn, 0 = none */
    float rope_base;
    float rope_attn_factor; /* YaRN scales q and k by this */
    float *rope_divisors;   /* rope_dims/2 divisors of the frequencies, NULL = all 1 */
} qkv_hparams;

typedef struct qkv_layer {
    struct ggml_tensor *w[QKV_LAYER_WEIGHT_COUNT]; /* NULL where the model has none */
} qkv_layer;

struct qkv_model {
    qkv_gguf *file;
    const qkv_family *family;
    qkv_hparams hp;
    qkv_vocab *vocab; /* NULL: token ids only */

    struct ggml_context
        *tensors; /* headers of the tensors; their data are in the mapping or in `converted` */
    ggml_backend_buffer_t *buffers;
    size_t n_buffers;
    struct ggml_tensor *w[QKV_MODEL_WEIGHT_COUNT];
    struct ggml_tensor *output; /* w[OUTPUT], or w[TOKEN_EMBD] when tied */
    qkv_layer *layers;

    qkv_model_info info;
    char *tensor_types;
    char *position;
};

/* hparams.c: reads and checks the numbers. */
int qkv_hparams_read(qkv_model *model, qkv_error *err);
/* rope.c: reads the scaling of RoPE into hp->rope_*, and describes it in model->position. */
int qkv_rope_read(qkv_model *model, qkv_error *err);
/* weights.c: what a letter of a weight's shape (family.h) stands for. */
int64_t qkv_hparams_dimension(const qkv_hparams *hp, char letter);
/* weights.c: finds, checks and binds every tensor. */
int qkv_weights_bind(qkv_model *model, qkv_error *err);
void qkv_weights_release(qkv_model *model);

#endif
