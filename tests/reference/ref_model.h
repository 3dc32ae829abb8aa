/*
 * The weights of a GGUF model as plain float arrays, for the scalar reference.
 *
 * Dimension letters as everywhere: D model width, H query heads, G key/value heads, d head width,
 * F feed-forward width, E experts, V vocabulary. Every matrix is
 * [outputs][inputs]. ggml only reads the file and dequantises; everything it says about the model
 * is read again here, by other code than the library's.
 */
#ifndef QKV_TESTS_REF_MODEL_H
#define QKV_TESTS_REF_MODEL_H

#include <stddef.h>

#include "reference/ref_family.h"

/* w [rows][cols], b [rows] or NULL. Of experts: E of them, one after the other. */
typedef struct ref_linear {
    float *w, *b;
} ref_linear;

/* Without a weight there is no norm at this place. */
typedef struct ref_norm {
    float *weight, *bias;
} ref_norm;

/* How far a pair of channels turns per position. */
typedef struct ref_rope {
    double base;
    double factor; /* positions are divided by it */
    double size;   /* turned vectors are multiplied by it */
    int yarn;      /* fast pairs keep their positions; the turns that make a pair fast or slow: */
    double fast, slow;   /* within the original context */
    int whole_pairs;     /* the blend between them starts and ends at a whole pair */
    int context;         /* the original one */
    float *divisor;      /* [pairs] of the frequencies, or NULL */
    float *long_divisor; /* for prompts longer than the original context, or NULL */
} ref_rope;

/* What layers may differ in: query heads, key/value heads, head width, channels of it that turn, and
 * feed-forward width. */
typedef struct ref_shape_of_layer {
    int H, G, d, turned, F;
} ref_shape_of_layer;

typedef struct ref_layer {
    ref_shape_of_layer shape;
    int kv_layer; /* whose keys and values its queries see; others than its own: it has none */
    ref_norm attn_before, attn_after, attn_sum;
    ref_norm ffn_before, ffn_after, ffn_sum;
    ref_linear q, k, v, o;   /* [H d][D] [G d][D] [G d][D] [D][H d] */
    ref_norm q_norm, k_norm; /* [d], or [heads d] */
    float *sinks;            /* [H]: scores of a key that has no value, or NULL */
    ref_linear router;       /* [E][D]; no weight: one feed-forward for all tokens */
    float *choice_bias;  /* [E]: added to the weights of experts for the choice alone, or NULL */
    ref_linear gate;     /* [F][D]; no weight: plain MLP */
    ref_linear up, down; /* [F][D] [D][F] */
    ref_linear shared_router; /* [1][D]: how open the gate of the shared expert is */
    ref_linear shared_gate, shared_up,
        shared_down; /* of the expert that every token has, or none */
    float *scale;    /* [1]: the layer's output is multiplied by it; NULL: it is not */
    ref_linear own_gate, own_proj; /* [p][D] [D][p]; no weight: no embeddings of its own */
    ref_norm own_norm;
    double xielu
        [4]; /* p, n, beta, eps: x > 0: p x² + beta x; else n (e^min(x, eps) - 1 - x) + beta x */
    int window;           /* keys a query sees, itself included; 0 = all */
    const ref_rope *rope; /* NULL: does not turn */
} ref_layer;

typedef struct ref_model {
    const ref_family *family;
    int n_layer, D, V;
    int H, G, d, F; /* the least of all layers; see ref_in_layer */
    int n_own;      /* p, width of the embeddings that layers have of their own; 0: none */
    int n_expert, n_expert_used, n_shared; /* n_shared: width of the shared expert */
    int keeps_shares;
    int n_group, n_group_used; /* of experts; 0 or 1: none */
    int f;                     /* feed-forward width of one expert */
    double share_factor;       /* of all experts' shares */
    double jitter;             /* of the sparse mixer */
    double temperature; /* queries are multiplied by 1 + this · ln(1 + floor(position / step)) */
    int temperature_step;
    int parallel;
    int bare_norms; /* norms of the residual stream have no weights: ones */
    ref_activation activation;
    double norm_epsilon;
    double score_scale, score_cap; /* cap 0 = none */
    double last_slope; /* ALiBi: 2^-this is the slope of the last of 2^n heads; 0: none */
    double head_limit; /* of q, k and v, on both sides; 0 = none */
    double embedding_scale, residual_scale;
    double logit_scale, logit_cap;
    int turned; /* channels of a head that turn, from the first */
    ref_rope rope, local_rope;
    float *token_embd;    /* [V][D] */
    float *position_embd; /* [context][D] or NULL */
    float *token_type;    /* [D] of the first type, or NULL */
    ref_norm embd_norm, output_norm;
    float *own_embd;           /* [V][n_layer p] */
    ref_linear own_model_proj; /* [n_layer p][D] */
    ref_norm own_model_norm;   /* [p] */
    ref_linear output;         /* [V][D]; no weight: no logits */
    ref_layer *layers;
    struct ref_others *others; /* of the prompt that was last asked for: ref_other.h */
    void *memory[1024];        /* every array, for freeing */
    size_t n_memory;
} ref_model;

/* Ends the program with a message when the file is not what it should be: tests make or check
 * their models first. */
ref_model *ref_model_load(const char *path);
void ref_model_free(ref_model *model);
/* The model with the numbers of a layer as its own; it owns nothing. */
ref_model ref_in_layer(const ref_model *model, int layer);

#endif
