/*
 * The weights of a GGUF model as plain float arrays, for the scalar reference.
 *
 * Dimension letters as everywhere: D model width, H query heads, G key/value heads, d head width,
 * F feed-forward width, V vocabulary. Every matrix is [outputs][inputs]. ggml only reads the file
 * and dequantises; everything it says about the model is read again here, by other code than the
 * library's.
 */
#ifndef QKV_TESTS_REF_MODEL_H
#define QKV_TESTS_REF_MODEL_H

#include <stddef.h>

typedef struct ref_layer {
    float *attn_norm, *attn_norm_bias;      /* [D] */
    float *wq, *wk, *wv, *wo;               /* [H d][D] [G d][D] [G d][D] [D][H d] */
    float *bq, *bk, *bv, *bo;               /* or NULL */
    float *ffn_norm, *ffn_norm_bias;        /* [D] */
    float *gate, *up, *down;                /* [F][D] [F][D] [D][F]; gate NULL: plain MLP */
    float *gate_bias, *up_bias, *down_bias; /* or NULL */
} ref_layer;

typedef struct ref_model {
    int n_layer, D, H, G, d, F, V;
    int window; /* 0 = none */
    int gpt2;   /* LayerNorm, learned positions, GELU; else RMSNorm, RoPE, SwiGLU */
    double norm_epsilon;
    double rope_base;
    double rope_factor;  /* positions are divided by it */
    int yarn_context;    /* original context of YaRN, 0 = no YaRN */
    float *rope_divisor; /* [d / 2] of the frequencies, or NULL */
    float *token_embd;   /* [V][D] */
    float *position_embd;
    float *output_norm, *output_norm_bias;
    float *output; /* [V][D] */
    ref_layer *layers;
    void *memory[1024]; /* every array, for freeing */
    size_t n_memory;
} ref_model;

/* Ends the program with a message when the file is not what it should be: tests make or check
 * their models first. */
ref_model *ref_model_load(const char *path);
void ref_model_free(ref_model *model);

#endif
