/*
 * qwen2moe: Qwen 1.5 and 2 with experts in every layer.
 *
 * As qwen2; the best k of all experts keep their shares of a softmax over all, and a shared expert is
 * added, times the sigmoid of its own gate.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Qwen2MoeForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"mlp.gate.weight", "ffn_gate_inp.weight", NULL},
    {"mlp.experts.#.gate_proj.weight", "ffn_gate_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.up_proj.weight", "ffn_up_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.down_proj.weight", "ffn_down_exps.weight", &qkv_maker_stack},
    {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight", NULL},
    {"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight", NULL},
    {"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight", NULL},
    {"mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight", NULL},
    {NULL, NULL, NULL},
};

/* Which layers have a window, the class decides by rules of its own; no published model has one. */
static const qkv_hf_setting hf_settings[] = {
    {"moe_intermediate_size", QKV_HF_INT, "expert_feed_forward_length", 0},
    {"shared_expert_intermediate_size", QKV_HF_INT, "expert_shared_feed_forward_length", 0},
    {"decoder_sparse_step", QKV_HF_MUST, NULL, 1},
    {"mlp_only_layers", QKV_HF_REFUSE, NULL, 0},
    {"use_sliding_window", QKV_HF_MUST, NULL, 0},
    {"sliding_window", QKV_HF_SKIP, NULL, 0},
    {"qkv_bias", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"qwen2_moe", "Qwen2MoeForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"num_experts\": 60, \"num_experts_per_tok\": 4,"
     " \"moe_intermediate_size\": 1408, \"shared_expert_intermediate_size\": 5632,"
     " \"norm_topk_prob\": false}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW_TYPES,
    .configure = qkv_hf_read_expert_norm,
};

const qkv_family qkv_family_qwen2moe = {
    .name = "qwen2moe",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .experts_keep_shares = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(FFN_NORM) |
                      QKV_HAS_EXPERTS | QKV_HAS_SHARED_EXPERT | QKV_HAS(SHARED_ROUTER),
    .layer_optional = QKV_HAS_HEAD_BIASES,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS),
    .hf = &hf,
};
