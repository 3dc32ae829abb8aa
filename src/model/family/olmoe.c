/*
 * olmoe: OLMoE.
 *
 * As llama with RoPE on halves, queries and keys normalised over all heads together, and experts in every
 * layer: the best k keep their shares of a softmax over all. Where clip_qkv is set, queries, keys and
 * values are kept within it, after the norm and before any edit.
 */
#include "model/hf/hf.h"

static const qkv_slot_override whole_width_norms[] = {
    {QKV_LAYER_Q_NORM, NULL, "Q"}, {QKV_LAYER_K_NORM, NULL, "K"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"OlmoeForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"mlp.gate.weight", "ffn_gate_inp.weight", NULL},
    {"mlp.experts.#.gate_proj.weight", "ffn_gate_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.up_proj.weight", "ffn_up_exps.weight", &qkv_maker_stack},
    {"mlp.experts.#.down_proj.weight", "ffn_down_exps.weight", &qkv_maker_stack},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"clip_qkv", QKV_HF_FLOAT, "attention.clamp_kqv", 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"olmoe", "OlmoeForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"num_experts\": 64, \"num_experts_per_tok\": 8,"
     " \"norm_topk_prob\": false}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .configure = qkv_hf_read_expert_norm,
};

const qkv_family qkv_family_olmoe = {
    .name = "olmoe",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .experts_keep_shares = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(FFN_NORM) | QKV_HAS_EXPERTS,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS) | QKV_READS(CLAMP),
    .overrides = whole_width_norms,
    .hf = &hf,
};
