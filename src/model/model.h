/*
 * What a model is inside: the opened file, its numbers, its weights as ggml tensors over the
 * mapping, its vocabulary. Everything here is read-only once qkv_model_open has returned, except the
 * weights that are made when they are first needed (lazy_weights.h) and the hash (model_hash.c), under
 * locks of their own, and the number of those who need the model.
 */
#ifndef QKV_MODEL_MODEL_H
#define QKV_MODEL_MODEL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/fail.h"
#include "format/ggml_log.h"
#include "format/gguf_file.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "model/family/family.h"
#include "model/lazy_weights.h"
#include "qkv/model.h"
#include "tokenizer/vocab.h"

/*
 * The hash of a model's files, computed when it is first asked for: that reads all of them. Threads may
 * ask at the same time.
 */

typedef struct qkv_model_hash_cache qkv_model_hash_cache;

/* NULL when memory is short. */
qkv_model_hash_cache *qkv_model_hash_cache_new(void);
void qkv_model_hash_cache_free(qkv_model_hash_cache *cache);

/* XXH3-128 of all parts, as 32 hexadecimal digits. */
int qkv_model_hash_get(qkv_model_hash_cache *cache, const qkv_gguf *file, char out[33],
                       qkv_error *err);
/* How often it was computed. */
int qkv_model_hash_n_computed(qkv_model_hash_cache *cache);

/* How fast pairs of channels turn. */
typedef struct qkv_rope {
    int32_t dims; /* channels of a head that turn, 0 = none */
    float base;
    float attn_factor;    /* YaRN scales q and k by this */
    float *divisors;      /* dims/2 divisors of the frequencies, NULL = all 1 */
    float *long_divisors; /* those for prompts of more than long_from tokens, NULL = the same */
    int32_t long_from;
} qkv_rope;

enum { QKV_ROPE_GLOBAL, QKV_ROPE_LOCAL, QKV_ROPE_COUNT };

/* Blocks that a layer may consist of. */
enum { QKV_PART_ATTENTION = 1, QKV_PART_MIXER = 2, QKV_PART_FEED_FORWARD = 4 };

/* How experts are chosen and weighed: run/graph/router.c. */
typedef struct qkv_router {
    qkv_router_kind kind;
    int32_t is_normed;     /* the shares of the chosen experts sum to 1 before the factor */
    float factor;          /* of all shares */
    int32_t n_groups;      /* that experts stand in; 0 or 1: in none */
    int32_t n_groups_used; /* of which experts are chosen */
    int32_t group_best;    /* a group counts as much as its best expert, or as its best two: 1, 2 */
    int32_t on_input;      /* shares multiply what experts read, not what they give */
    float jitter;          /* of the sparse mixer */
} qkv_router;

enum { QKV_MAX_EXPERTS = 1024 };

/* x > 0: p x² + beta x; else (exp(min(x, eps)) - 1 - x) n + beta x, where p = softplus(alpha_p) and n = beta +
 * softplus(alpha_n). */
typedef struct qkv_xielu {
    float alpha_p, alpha_n, beta, eps;
} qkv_xielu;

/* What layers may differ in. One without attention has no heads, one without a feed-forward no neurons. */
typedef struct qkv_layer_shape {
    int32_t n_head;    /* H */
    int32_t n_kv_head; /* G */
    int32_t head_dim;  /* d, of queries and keys */
    int32_t value_dim; /* of values and of z */
    int32_t n_ff;      /* F */
    int32_t kv_layer; /* whose keys and values its queries see: its own number, or an earlier one */
} qkv_layer_shape;

/* Numbers of the architecture; letters as in the design. */
typedef struct qkv_hparams {
    int32_t n_layer;
    int32_t n_embd;          /* D */
    qkv_layer_shape largest; /* the largest number of all layers, of each */
    qkv_layer_shape *layers; /* n_layer */
    int32_t n_embd_own;      /* p, of the embeddings that layers have of their own; 0: none */
    int32_t n_vocab;         /* V */
    int32_t n_ctx;           /* C */
    int32_t n_expert;        /* E, 0 = none */
    int32_t n_expert_used;
    int32_t n_ff_expert;   /* f */
    int32_t n_ff_shared;   /* s, of the expert that all tokens have; 0 = none */
    int32_t n_dense;       /* the first layers have no experts */
    int32_t expert_period; /* of the others every n-th layer has them, counted from 1; 0: all */
    qkv_router router;
    int32_t causal;
    int32_t has_logits;
    int32_t has_final_norm;
    int32_t has_sink; /* a learned sink takes part in the softmax */
    /* What the family has and the file says that it does without. */
    int32_t no_linear_biases, no_norm_weights, no_head_norms;
    qkv_activation activation;
    int32_t parallel;   /* attention and feed-forward read the same input */
    int32_t window;     /* a query sees this many keys, itself included; of an encoder, on
                            * either side; 0 = all */
    int32_t is_chunked; /* the window is a chunk: a query sees the keys of its own, up to itself */
    int32_t window_period; /* every n-th layer sees all; 0: none does */
    uint8_t *windowed;     /* or which layers have the window, n_layer of them; NULL: by period */
    float norm_eps;
    float attn_scale;                  /* usually 1/sqrt(d) */
    float attn_softcap, logit_softcap; /* 0 = none */
    qkv_temperature temperature;
    int32_t
        has_bare_head_norms; /* queries and keys are normalised without weights where they turn */
    qkv_xielu *xielu;        /* of each layer, or NULL */
    float alibi_exponent;    /* scores have a bias by distance, see qkv_score_slope; 0: none */
    float head_clamp;        /* q, k and v stay within ± this; 0 = no limit */
    float embedding_scale, residual_scale, logit_scale; /* factors */
    qkv_rope_pairs rope_pairs;
    int32_t qk_permuted;           /* as in qkv_family */
    qkv_rope rope[QKV_ROPE_COUNT]; /* that of most layers, and that of layers with a window */
    uint8_t *parts;                /* QKV_PART_* of each layer; NULL: attention and feed-forward */
    qkv_mixer_kind mixer_kind;
    qkv_mixer_shape mixer;
    int32_t has_gate; /* attention's z is multiplied by a gate before W_o */
} qkv_hparams;

/* layer_parts.c: which blocks layers consist of, and the numbers of their mixers. */
int qkv_layer_parts_read(qkv_model *model, qkv_error *err);
/* 1 when the layer has the block, one of QKV_PART_*. */
int qkv_layer_has(const qkv_hparams *hp, int32_t il, int part);
/* "a gated delta-net layer": what a layer without some block is. */
const char *qkv_layer_name(const qkv_hparams *hp, int32_t il);
/* Channels of a mixer's convolution, [q, k, v] or [x, B, C]. */
int64_t qkv_mixer_channels(const qkv_hparams *hp);

/* Whether a layer has experts. */
int qkv_layer_has_experts(const qkv_hparams *hp, int32_t il);
/* The shape of a layer; of n_layer, which is after all of them, the largest numbers. */
const qkv_layer_shape *qkv_layer_shape_of(const qkv_hparams *hp, int32_t il);
/* The last layer up to this one from which a pass can start: no later one uses the keys and values of a
 * layer before it. */
int32_t qkv_layer_fork(const qkv_hparams *hp, int32_t il);
/* Query heads that share a key/value head; at least 1. */
int32_t qkv_layer_group(const qkv_layer_shape *shape);
/* Whether, and how, a layer looks at a part of the prompt only: 0, or the most keys that a query sees: the window, or
 * all of a chunk. */
int32_t qkv_layer_window(const qkv_model *model, int32_t il);
/* The first key that a query of a layer sees. */
int64_t qkv_layer_first_key(const qkv_model *model, int32_t il, int64_t query);
/* ALiBi: what is added to the score of a head for each token that the key comes after its query, which is
 * negative for earlier ones: slope · (key - query). 0: none. */
float qkv_score_slope(const qkv_hparams *hp, int32_t il, int32_t head);
/* Which of hp.rope a layer turns by; -1 where it does not turn. */
int qkv_layer_rope(const qkv_model *model, int32_t il);
/* Whether queries of a layer have a temperature. */
int qkv_layer_has_temperature(const qkv_model *model, int32_t il);

typedef struct qkv_layer {
    struct ggml_tensor *w[QKV_LAYER_WEIGHT_COUNT]; /* NULL where the model has none */
    struct ggml_tensor *mixer[QKV_MIXER_WEIGHT_COUNT];
} qkv_layer;

struct qkv_convert_options;

struct qkv_model {
    atomic_size_t n_owners;
    qkv_gguf *file;
    const qkv_family *family;
    qkv_hparams hp;
    qkv_vocab *vocab; /* NULL: token ids only */

    struct ggml_context
        *tensors; /* headers of the tensors; their data are in the mapping or in `converted` */
    ggml_backend_buffer_t *buffers;
    size_t n_buffers;
    qkv_lazy_weights *lazy; /* weights that are made when they are needed, or NULL */
    struct ggml_tensor *w[QKV_MODEL_WEIGHT_COUNT];
    struct ggml_tensor *output; /* w[OUTPUT], or w[TOKEN_EMBD] when tied; NULL: no logits */
    qkv_layer *layers;

    qkv_model_info info;
    char *tensor_types;
    char *label;           /* what figures call it */
    char weights_type[32]; /* of most of the parameters */
    char *position;
    char *notices;
    qkv_model_hash_cache *hash;
};

typedef int qkv_file_opener(qkv_gguf **out, const char *path, qkv_error *err);

/* A GGUF file, or a Hugging Face directory in the form of one. */
int qkv_model_file_open(qkv_gguf **out, const char *path, qkv_error *err);
/* A model of what an opener makes of the path; qkv_model_open's is the one above. */
int qkv_model_open_by(qkv_model **out, const char *path, qkv_file_opener *open, qkv_error *err);
/* convert.c: an opened model as a GGUF file. options as of qkv_model_convert. */
int qkv_model_write(const qkv_model *model, const char *path,
                    const struct qkv_convert_options *options, qkv_error *err);
/* hparams.c: reads and checks the numbers. */
int qkv_hparams_read(qkv_model *model, qkv_error *err);
void qkv_hparams_release(qkv_hparams *hp);
/* rope.c: reads how positions turn into hp->rope, and describes it in model->position. */
int qkv_rope_read(qkv_model *model, qkv_error *err);
/* weights.c: what a letter of a weight's shape (family.h) stands for, in a layer of that shape. */
int64_t qkv_hparams_dimension(const qkv_hparams *hp, const qkv_layer_shape *shape, char letter);
/* weights.c: finds, checks and binds every tensor. */
int qkv_weights_bind(qkv_model *model, qkv_error *err);
/* Makes what a layer needs and the file does not have as it is. */
int qkv_weights_prepare(const qkv_model *model, int32_t il, qkv_error *err);
void qkv_weights_release(qkv_model *model);

/* The sliding window of a layer: a query does not see keys that are so many tokens or more away.
 * 0: the layer sees everything, or the model has fewer layers. A negative number, -C: chunks of C tokens; a query
 * sees the keys of its own, up to itself. */
int32_t qkv_model_window(const qkv_model *model, int32_t layer);

/* The learned sink of a query head: e to its power takes part in the sum that each row's weights are
 * divided by. QKV_ERR_UNSUPPORTED where the model has none (`has_sink`). */
int qkv_model_sink(const qkv_model *model, int32_t layer, int32_t head, double *value,
                   qkv_error *err);

#endif
