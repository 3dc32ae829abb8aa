/*
 * qwen3next: Qwen 3 Next.
 *
 * As qwen35moe, with other layouts: value heads that share a key head follow each other; directories have q,
 * k, v and z of each key head in one matrix, and both gates in another.
 */
#include "model/family/delta_net.h"

static const char *const hf_architectures[] = {"Qwen3NextForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    QKV_DELTA_NET_NORMS,
    QKV_DELTA_NET_EXPERTS,
    {"linear_attn.in_proj_qkvz.weight", "attn_qkv.weight", &qkv_maker_delta_qkv},
    {"linear_attn.in_proj_qkvz.weight", "attn_gate.weight", &qkv_maker_delta_gate},
    {"linear_attn.in_proj_ba.weight", "ssm_ba.weight", NULL},
    {"linear_attn.conv1d.weight", "ssm_conv1d.weight", &qkv_maker_conv},
    {"linear_attn.A_log", "=ssm_a", &qkv_maker_decay},
    {"linear_attn.dt_bias", "ssm_dt.bias", NULL},
    {"linear_attn.out_proj.weight", "ssm_out.weight", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"moe_intermediate_size", QKV_HF_INT, "expert_feed_forward_length", 0},
    {"shared_expert_intermediate_size", QKV_HF_INT, "expert_shared_feed_forward_length", 0},
    {"decoder_sparse_step", QKV_HF_MUST, NULL, 1},
    {"mlp_only_layers", QKV_HF_REFUSE, NULL, 0},
    {"attention_bias", QKV_HF_REFUSE, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"qwen3_next", "Qwen3NextForCausalLM",
     "{" QKV_DELTA_NET_DEFAULTS ", \"num_experts\": 512, \"num_experts_per_tok\": 10,"
     " \"moe_intermediate_size\": 512, \"shared_expert_intermediate_size\": 512,"
     " \"norm_topk_prob\": true}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static int configure(qkv_hf_config *config, qkv_error *err) {
    const int status = qkv_hf_read_expert_norm(config, err);
    return status == QKV_OK ? qkv_hf_read_delta_net(config, err) : status;
}

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .model_names = qkv_delta_net_model_names,
    .settings = hf_settings,
    .ignored_part = "mtp",
    .partial_rotary = 1,
    .configure = configure,
};

const qkv_family qkv_family_qwen3next = {
    .name = "qwen3next",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_DELTA_NET_EXPERTS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS),
    .mixer = QKV_MIXER_DELTA_RUNS,
    .mixer_required = QKV_HAS_DELTA_NET | QKV_HAS_MIXER(BETA_ALPHA),
    .attention_gate = 1,
    .overrides = qkv_delta_net_overrides,
    .hf = &hf,
};
