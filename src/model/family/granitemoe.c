/*
 * granitemoe: Granite 3 with experts.
 *
 * As granite, with experts in every layer: the best k, and a softmax over their scores.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"GraniteMoeForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"block_sparse_moe.router.layer.weight", "ffn_gate_inp.weight", NULL},
    {"block_sparse_moe.input_linear.weight", "ffn_gate_exps.weight", &qkv_maker_first_rows},
    {"block_sparse_moe.input_linear.weight", "ffn_up_exps.weight", &qkv_maker_second_rows},
    {"block_sparse_moe.output_linear.weight", "ffn_down_exps.weight", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"attention_multiplier", QKV_HF_FLOAT, "attention.scale", 0},
    {"embedding_multiplier", QKV_HF_FLOAT, "embedding_scale", 0},
    {"residual_multiplier", QKV_HF_FLOAT, "residual_scale", 0},
    {"logits_scaling", QKV_HF_FLOAT, "logit_scale", 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"granitemoe", "GraniteMoeForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"attention_multiplier\": 1.0,"
     " \"embedding_multiplier\": 1.0, \"residual_multiplier\": 1.0, \"logits_scaling\": 1.0,"
     " \"num_local_experts\": 8, \"num_experts_per_tok\": 2}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
};

const qkv_family qkv_family_granitemoe = {
    .name = "granitemoe",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .qk_permuted = 1,
    .logit_scale_divides = 1,
    .layer_required =
        QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(FFN_NORM) | QKV_HAS_EXPERTS,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS),
    .keys = QKV_READS(EXPERTS) | QKV_READS(ATTN_SCALE) | QKV_READS(EMBEDDING_SCALE) |
            QKV_READS(RESIDUAL_SCALE) | QKV_READS(LOGIT_SCALE),
    .hf = &hf,
};
