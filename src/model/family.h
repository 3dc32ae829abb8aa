/*
 * Architecture families, described by data.
 *
 * A family says which tensors a model of it has and how its block is put together; the forward pass
 * (run/forward.c) reads these fields and never asks which family it is. Adding a family is one file
 * with a const qkv_family and one line in QKV_FAMILY_LIST.
 *
 * Letters in shapes: D width, Q = H*d, K = G*d, F feed-forward, V vocabulary, C context, S = Q + 2K
 * (fused projection), R = rotated pairs.
 */
#ifndef QKV_MODEL_FAMILY_H
#define QKV_MODEL_FAMILY_H

#include <stdint.h>

/* X(slot, name in the file, shape innermost first). Names of layer tensors are prefixed with
 * blk.N. */
#define QKV_LAYER_WEIGHT_LIST(X)                                                                   \
    X(ATTN_NORM, "attn_norm.weight", "D")                                                          \
    X(ATTN_NORM_BIAS, "attn_norm.bias", "D")                                                       \
    X(QKV, "attn_qkv.weight", "DS")                                                                \
    X(QKV_BIAS, "attn_qkv.bias", "S")                                                              \
    X(Q, "attn_q.weight", "DQ")                                                                    \
    X(Q_BIAS, "attn_q.bias", "Q")                                                                  \
    X(K, "attn_k.weight", "DK")                                                                    \
    X(K_BIAS, "attn_k.bias", "K")                                                                  \
    X(V, "attn_v.weight", "DK")                                                                    \
    X(V_BIAS, "attn_v.bias", "K")                                                                  \
    X(O, "attn_output.weight", "QD")                                                               \
    X(O_BIAS, "attn_output.bias", "D")                                                             \
    X(FFN_NORM, "ffn_norm.weight", "D")                                                            \
    X(FFN_NORM_BIAS, "ffn_norm.bias", "D")                                                         \
    X(GATE, "ffn_gate.weight", "DF")                                                               \
    X(GATE_BIAS, "ffn_gate.bias", "F")                                                             \
    X(UP, "ffn_up.weight", "DF")                                                                   \
    X(UP_BIAS, "ffn_up.bias", "F")                                                                 \
    X(DOWN, "ffn_down.weight", "FD")                                                               \
    X(DOWN_BIAS, "ffn_down.bias", "D")

#define QKV_MODEL_WEIGHT_LIST(X)                                                                   \
    X(TOKEN_EMBD, "token_embd.weight", "DV")                                                       \
    X(POSITION_EMBD, "position_embd.weight", "DC")                                                 \
    X(OUTPUT_NORM, "output_norm.weight", "D")                                                      \
    X(OUTPUT_NORM_BIAS, "output_norm.bias", "D")                                                   \
    X(OUTPUT, "output.weight", "DV")                                                               \
    X(ROPE_FREQS, "rope_freqs.weight", "R")

#define QKV_WEIGHT_ENUM(slot, name, shape) QKV_LAYER_##slot,
enum qkv_layer_weight { QKV_LAYER_WEIGHT_LIST(QKV_WEIGHT_ENUM) QKV_LAYER_WEIGHT_COUNT };
#undef QKV_WEIGHT_ENUM
#define QKV_WEIGHT_ENUM(slot, name, shape) QKV_MODEL_##slot,
enum qkv_model_weight { QKV_MODEL_WEIGHT_LIST(QKV_WEIGHT_ENUM) QKV_MODEL_WEIGHT_COUNT };
#undef QKV_WEIGHT_ENUM

#define QKV_HAS(slot) (UINT64_C(1) << QKV_LAYER_##slot)
#define QKV_HAS_MODEL(slot) (UINT64_C(1) << QKV_MODEL_##slot)

typedef enum qkv_norm_kind { QKV_NORM_RMS, QKV_NORM_LAYER } qkv_norm_kind;
typedef enum qkv_position_kind { QKV_POSITION_ROPE, QKV_POSITION_LEARNED } qkv_position_kind;
typedef enum qkv_activation { QKV_ACT_SILU, QKV_ACT_GELU_TANH } qkv_activation;

/* Which channels RoPE turns together: (2i, 2i+1), or (i, i + n/2). */
typedef enum qkv_rope_pairs { QKV_ROPE_ADJACENT, QKV_ROPE_HALVES } qkv_rope_pairs;

typedef struct qkv_family {
    const char *name; /* general.architecture */
    qkv_norm_kind norm;
    qkv_position_kind position;
    qkv_rope_pairs rope_pairs;
    qkv_activation activation;
    int gated_mlp;
    /* The file reorders the rows of W_q and W_k inside each head: channel 2i is the original i. */
    int qk_permuted;
    uint64_t layer_required, layer_optional; /* sets of QKV_HAS(slot) */
    uint64_t model_required, model_optional; /* sets of QKV_HAS_MODEL(slot) */
} qkv_family;

/* X(identifier): the object is qkv_family_IDENTIFIER, in family_IDENTIFIER.c */
#define QKV_FAMILY_LIST(X)                                                                         \
    X(llama)                                                                                       \
    X(gpt2)

#define QKV_FAMILY_DECLARE(id) extern const qkv_family qkv_family_##id;
QKV_FAMILY_LIST(QKV_FAMILY_DECLARE)
#undef QKV_FAMILY_DECLARE

/* NULL when there is none of that name. */
const qkv_family *qkv_family_find(const char *name);
/* The i-th family, NULL past the end. */
const qkv_family *qkv_family_get(int index);

#endif
