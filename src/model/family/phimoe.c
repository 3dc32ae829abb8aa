/*
 * phimoe: Phi 3.5 with experts.
 *
 * LayerNorm with biases, biases of all heads, of the attention's output and of the logits. Of the experts two are
 * chosen by a sparse mixer: the best, then the best of the others, each with its share of a softmax over those
 * that come close to it (run/graph/router.c). llama.cpp knows the architecture, but chooses and weighs otherwise.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"PhimoeForCausalLM", "PhiMoEForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"block_sparse_moe.gate.weight", "ffn_gate_inp.weight", NULL},
    {"block_sparse_moe.experts.#.w1.weight", "ffn_gate_exps.weight", &qkv_maker_stack},
    {"block_sparse_moe.experts.#.w2.weight", "ffn_down_exps.weight", &qkv_maker_stack},
    {"block_sparse_moe.experts.#.w3.weight", "ffn_up_exps.weight", &qkv_maker_stack},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"router_jitter_noise", QKV_HF_FLOAT, "expert_jitter", 0},
    {"input_jitter_noise", QKV_HF_SKIP, NULL, 0}, /* training */
    {"lm_head_bias", QKV_HF_SKIP, NULL, 0},       /* tensors say it */
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    const int64_t used = gguf_find_key(config->meta, "phimoe.expert_used_count");
    if (used >= 0 && gguf_get_val_u32(config->meta, used) != 2)
        return qkv_fail(
            err, QKV_ERR_UNSUPPORTED,
            "%s: num_experts_per_tok is supported only as 2: the sparse mixer chooses two",
            config->path);
    qkv_hf_set_int(config, "expert_feed_forward_length", config->n_ff);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"phimoe", "PhimoeForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"rope_theta\": 1000000.0, \"num_key_value_heads\": 8,"
     " \"num_local_experts\": 16, \"num_experts_per_tok\": 2, \"router_jitter_noise\": 0.01}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .epsilon = "rms_norm_eps",
    .window = QKV_HF_WINDOW,
    .longrope_has_magnitudes = 1,
    .configure = hf_configure,
};

const qkv_family qkv_family_phimoe = {
    .name = "phimoe",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .router = QKV_ROUTER_MIXER,
    .layer_required =
        QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(FFN_NORM) | QKV_HAS_EXPERTS,
    .layer_optional = QKV_HAS_NORM_BIASES | QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT_NORM_BIAS) | QKV_HAS_MODEL(OUTPUT) |
                      QKV_HAS_MODEL(OUTPUT_BIAS) | QKV_HAS_MODEL(ROPE_LONG) |
                      QKV_HAS_MODEL(ROPE_SHORT),
    .keys = QKV_READS(EXPERTS),
    .hf = &hf,
};
