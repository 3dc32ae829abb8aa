/*
 * qwen3moe: Qwen 3 with experts in every layer.
 *
 * As qwen3; the best k of all experts share the token, weighted by the softmax of their scores.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Qwen3MoeForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"mlp.gate.weight", "ffn_gate_inp.weight", NULL},
    {"mlp.experts.#.gate_proj.weight", "ffn_gate_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.up_proj.weight", "ffn_up_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.down_proj.weight", "ffn_down_exps.weight", &qkv_maker_stack},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"moe_intermediate_size", QKV_HF_INT, "expert_feed_forward_length", 0},
    {"decoder_sparse_step", QKV_HF_MUST, NULL, 1},
    {"mlp_only_layers", QKV_HF_REFUSE, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"qwen3_moe", "Qwen3MoeForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"use_sliding_window\": false, \"sliding_window\": 4096, \"norm_topk_prob\": false}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_USE,
    .configure = qkv_hf_read_expert_norm,
};

const qkv_family qkv_family_qwen3moe = {
    .name = "qwen3moe",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(FFN_NORM) | QKV_HAS_EXPERTS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS),
    .hf = &hf,
};
