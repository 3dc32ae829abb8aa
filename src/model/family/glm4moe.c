/*
 * glm4moe: GLM 4.5, 4.6 and 4.7.
 *
 * As llama, with RoPE on halves of the first part of each head, a norm of queries and keys per head in some
 * models, and experts in all layers but the first: chosen by the sigmoid of their scores plus a bias, weighed
 * by the sigmoid alone, brought to a sum of 1 and multiplied by a factor. A shared expert is added. Layers that
 * predict further tokens are left out, as transformers does. The norm before the feed-forward is called
 * post_attention_norm.
 */
#include "model/hf/hf.h"

static const qkv_slot_override norm_name[] = {
    {QKV_LAYER_FFN_NORM, "post_attention_norm.weight", NULL}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"Glm4MoeForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"post_attention_layernorm", "post_attention_norm", NULL},
    {"mlp.gate.weight", "ffn_gate_inp.weight", NULL},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias", NULL},
    {"mlp.experts.#.gate_proj.weight", "ffn_gate_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.up_proj.weight", "ffn_up_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.down_proj.weight", "ffn_down_exps.weight", &qkv_maker_stack},
    {"mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight", NULL},
    {"mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight", NULL},
    {"mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"moe_intermediate_size", QKV_HF_INT, "expert_feed_forward_length", 0},
    {"n_shared_experts", QKV_HF_INT, "expert_shared_count", 0},
    {"first_k_dense_replace", QKV_HF_INT, "leading_dense_block_count", 0},
    {"n_group", QKV_HF_INT, "expert_group_count", 0},
    {"topk_group", QKV_HF_INT, "expert_group_used_count", 0},
    {"routed_scaling_factor", QKV_HF_FLOAT, "expert_weights_scale", 0},
    {"norm_topk_prob", QKV_HF_BOOL, "expert_weights_norm", 0},
    {"use_qk_norm", QKV_HF_SKIP, NULL, 0}, /* tensors say it */
    {"num_nextn_predict_layers", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    (void)err;
    qkv_hf_set_int(config, "expert_gating_func", 2); /* sigmoid */
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"glm4_moe", "Glm4MoeForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"num_key_value_heads\": 8, \"partial_rotary_factor\": 0.5,"
     " \"n_routed_experts\": 128, \"num_experts_per_tok\": 8, \"moe_intermediate_size\": 1408,"
     " \"n_shared_experts\": 1, \"first_k_dense_replace\": 1, \"n_group\": 1, \"topk_group\": 1,"
     " \"routed_scaling_factor\": 1.0, \"norm_topk_prob\": true}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .partial_rotary = 1,
    .leaves_later_layers = 1,
    .configure = hf_configure,
};

const qkv_family qkv_family_glm4moe = {
    .name = "glm4moe",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .router = QKV_ROUTER_SIGMOID,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(FFN_NORM) |
                      QKV_HAS_EXPERTS | QKV_HAS_SHARED_EXPERT,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS_HEAD_NORMS | QKV_HAS(CHOICE_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS) | QKV_READS(SHARED_EXPERTS) | QKV_READS(EXPERT_GROUPS) |
            QKV_READS(EXPERT_SCALE) | QKV_READS(EXPERT_GATING) | QKV_READS(DENSE_LAYERS) |
            QKV_READS(LATER_LAYERS),
    .overrides = norm_name,
    .hf = &hf,
};
