/*
 * gemma3: Gemma 3, text only.
 *
 * As gemma2 without soft-caps, with queries and keys RMS-normalised per head. Every sixth layer sees
 * everything and turns by the global base with its scaling; the others have the window and the local
 * base. The file does not say the six. The 27B model (62 layers) scales its scores by the width per
 * head.
 */
#include "model/family.h"

const qkv_family qkv_family_gemma3 = {
    .name = "gemma3",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .mlp = QKV_MLP_GATED,
    .embedding_sqrt = 1,
    .window_period = 6,
    .local_rope = 1,
    .width_scaled_layers = 62,
    .layer_required =
        QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_NORMS | QKV_HAS(POST_ATTN_NORM) | QKV_HAS(POST_FFN_NORM),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(ATTN_SCALE) | QKV_READS(LOGIT_SOFTCAP),
};
