/*
 * cohere2: Command R7B and A.
 *
 * As command-r without QK-norm; three layers with a window and RoPE, then one that sees everything and
 * does not turn.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Cohere2ForCausalLM", NULL};

static const qkv_hf_setting hf_settings[] = {
    {"logit_scale", QKV_HF_FLOAT, "logit_scale", 0},
    {"none", QKV_HF_TEXT, "rope.scaling.type", 0},
    {"use_gated_activation", QKV_HF_MUST, NULL, 1},
    {"use_parallel_block", QKV_HF_MUST, NULL, 1},
    {"use_embedding_sharing", QKV_HF_MUST, NULL, 1},
    {"use_parallel_embedding", QKV_HF_SKIP, NULL, 0},
    {"use_qk_norm", QKV_HF_SKIP, NULL, 0},
    {"rotary_pct", QKV_HF_MUST, NULL, 1},
    {"layer_switch", QKV_HF_MUST, NULL, 4},
    {"order_of_interleaved_layers", QKV_HF_WORD, "local_attn_first", 0},
    {"position_embedding_type", QKV_HF_WORD, "rope_gptj", 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"cohere2", "Cohere2ForCausalLM",
     "{\"layer_norm_eps\": 1e-5, \"logit_scale\": 0.0625, \"sliding_window\": 4096}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_PERIOD | QKV_HF_WINDOW_TYPES,
};

const qkv_family qkv_family_cohere2 = {
    .name = "cohere2",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .parallel = 1,
    .window_period = 4,
    .rope_skip_period = 4,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS_GATED_MLP,
    .layer_optional = QKV_HAS_HEAD_BIASES,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(LOGIT_SCALE),
    .hf = &hf,
};
