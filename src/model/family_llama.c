/*
 * llama: Llama 1 to 3, Mistral, SmolLM and all that GGUF files under this name.
 *
 * RMS norm before each block, RoPE on adjacent channels (the converter reorders the rows of W_q and
 * W_k for it), grouped key/value heads, gated SiLU feed-forward, no biases by default. Llama 3's
 * frequency scaling comes as the tensor rope_freqs.weight. Without output.weight the token
 * embedding is the output projection.
 */
#include "model/family.h"

const qkv_family qkv_family_llama = {
    .name = "llama",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .gated_mlp = 1,
    .qk_permuted = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(Q) | QKV_HAS(K) | QKV_HAS(V) | QKV_HAS(O) |
                      QKV_HAS(FFN_NORM) | QKV_HAS(GATE) | QKV_HAS(UP) | QKV_HAS(DOWN),
    .layer_optional = QKV_HAS(Q_BIAS) | QKV_HAS(K_BIAS) | QKV_HAS(V_BIAS) | QKV_HAS(O_BIAS) |
                      QKV_HAS(GATE_BIAS) | QKV_HAS(UP_BIAS) | QKV_HAS(DOWN_BIAS),
    .model_required = QKV_HAS_MODEL(TOKEN_EMBD) | QKV_HAS_MODEL(OUTPUT_NORM),
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS),
};
