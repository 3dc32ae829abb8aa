/*
 * minimax-m2: MiniMax M2.
 *
 * As llama, with RoPE on halves of the first part of each head and queries and keys normalised over all heads
 * together. Experts in every layer: chosen by the sigmoid of their scores plus a bias, weighed by the sigmoid
 * alone, brought to a sum of 1.
 */
#include "model/hf/hf.h"

static const qkv_slot_override whole_width_norms[] = {
    {QKV_LAYER_Q_NORM, NULL, "Q"}, {QKV_LAYER_K_NORM, NULL, "K"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"MiniMaxM2ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"block_sparse_moe.gate.weight", "ffn_gate_inp.weight", NULL},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias", NULL},
    {"block_sparse_moe.experts.#.w1.weight", "ffn_gate_exps.weight", &qkv_maker_stack},
    {"block_sparse_moe.experts.#.w2.weight", "ffn_down_exps.weight", &qkv_maker_stack},
    {"block_sparse_moe.experts.#.w3.weight", "ffn_up_exps.weight", &qkv_maker_stack},
    {NULL, NULL, NULL},
};

/* Published configurations have much that the class does not read: it always does these things. */
static const qkv_hf_setting hf_settings[] = {
    {"scoring_func", QKV_HF_WORD, "sigmoid", 0},
    {"use_qk_norm", QKV_HF_MUST, NULL, 1},
    {"qk_norm_type", QKV_HF_WORD, "per_layer", 0},
    {"use_routing_bias", QKV_HF_MUST, NULL, 1},
    {"shared_intermediate_size", QKV_HF_MUST, NULL, 0},
    {"attn_window_size", QKV_HF_REFUSE, NULL, 0},
    {"sliding_window", QKV_HF_REFUSE, NULL, 0},
    {"num_mtp_modules", QKV_HF_SKIP, NULL, 0},
    {"mtp_transformer_layers", QKV_HF_SKIP, NULL, 0},
    {"use_mtp", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* In 1 of n layers attention would be of another kind; the class has none such. */
static int check_types(qkv_hf_config *config, qkv_error *err) {
    json_t *types = qkv_hf_take(config, "attn_type_list");
    int fits = 1;
    for (size_t i = 0; i < json_array_size(types); i++)
        fits = fits && json_integer_value(json_array_get(types, i)) == 1;
    json_decref(types);
    if (fits) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: attn_type_list has layers without softmax attention", config->path);
}

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    qkv_hf_set_int(config, "expert_gating_func", 2); /* sigmoid */
    qkv_hf_set_int(config, "expert_feed_forward_length", config->n_ff);
    return check_types(config, err);
}

static const qkv_hf_class hf_classes[] = {
    {"minimax_m2", "MiniMaxM2ForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"rope_theta\": 5000000.0, \"head_dim\": 128,"
     " \"num_key_value_heads\": 8, \"num_local_experts\": 256, \"num_experts_per_tok\": 8}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .partial_rotary = 1,
    .rotary_width = "rotary_dim",
    .leaves_later_layers = 1,
    .configure = hf_configure,
};

const qkv_family qkv_family_minimax_m2 = {
    .name = "minimax-m2",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .router = QKV_ROUTER_SIGMOID,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(FFN_NORM) | QKV_HAS_EXPERTS | QKV_HAS(CHOICE_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS) | QKV_READS(EXPERT_GATING),
    .overrides = whole_width_norms,
    .hf = &hf,
};
