/*
 * gemma: Gemma 1.
 *
 * Embeddings times sqrt(D); RMS norms whose stored weights include the 1 of (1 + w); gated GELU in its
 * tanh form; heads wider than D/H; tied output. No key for the base of RoPE: 10000.
 */
#include "model/family.h"

const qkv_family qkv_family_gemma = {
    .name = "gemma",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .mlp = QKV_MLP_GATED,
    .embedding_sqrt = 1,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(ATTN_SCALE),
};
