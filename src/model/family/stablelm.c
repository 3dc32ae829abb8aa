/*
 * stablelm: StableLM 3B, 2 1.6B and 2 12B.
 *
 * LayerNorms, gated SiLU, RoPE on a part of the channels (base 10000, no key), biases on query, key and
 * value in some. The 12B model has attention and feed-forward side by side after one norm, and
 * LayerNorms per head, each head with weights of its own, on queries and keys.
 */
#include "model/hf/hf.h"

static const qkv_slot_override norms_of_each_head[] = {
    {QKV_LAYER_Q_NORM, NULL, "dH"}, {QKV_LAYER_K_NORM, NULL, "dG"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"StableLmForCausalLM", "StableLMEpochForCausalLM",
                                               NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"self_attn.q_layernorm.norms.#.weight", "attn_q_norm.weight", &qkv_maker_stack},
    {"self_attn.k_layernorm.norms.#.weight", "attn_k_norm.weight", &qkv_maker_stack},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"use_parallel_residual", QKV_HF_BOOL, "use_parallel_residual", 0},
    {"qk_layernorm", QKV_HF_SKIP, NULL, 0},
    {"rotary_scaling_factor", QKV_HF_MUST, NULL, 1},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"stablelm", "StableLmForCausalLM",
     "{\"layer_norm_eps\": 1e-5, \"use_parallel_residual\": false,"
     " \"partial_rotary_factor\": 0.25}",
     NULL},
    {"stablelm_epoch", "StableLMEpochForCausalLM",
     "{\"use_parallel_residual\": false, \"rope_pct\": 0.25}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .partial_rotary = 1,
};

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
    .hf = &hf,
};
