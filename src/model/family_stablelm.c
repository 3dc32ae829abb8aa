/*
 * stablelm: StableLM 3B, 2 1.6B and 2 12B.
 *
 * LayerNorms, gated SiLU, RoPE on a part of the channels (base 10000, no key), biases on query, key and
 * value in some. The 12B model has attention and feed-forward side by side behind one norm, and
 * LayerNorms per head, each head with weights of its own, on queries and keys.
 */
#include <stddef.h>

#include "model/family.h"

static const qkv_slot_override norms_of_each_head[] = {
    {QKV_LAYER_Q_NORM, NULL, "dH"}, {QKV_LAYER_K_NORM, NULL, "dG"}, {-1, NULL, NULL}};

const qkv_family qkv_family_stablelm = {
    .name = "stablelm",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(ATTN_NORM_BIAS) | QKV_HAS_SPLIT_HEADS |
                      QKV_HAS(O) | QKV_HAS_GATED_MLP,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS_HEAD_NORMS,
    .sequential_required = QKV_HAS(FFN_NORM) | QKV_HAS(FFN_NORM_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(PARALLEL),
    .overrides = norms_of_each_head,
};
