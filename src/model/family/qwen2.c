/*
 * qwen2: Qwen 1.5, 2 and 2.5.
 *
 * As llama, with RoPE on halves and biases on query, key and value alone.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Qwen2ForCausalLM", NULL};

static const qkv_hf_setting hf_settings[] = {
    {"use_mrope", QKV_HF_SKIP, NULL, 0}, /* of the models for images alone */
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Of Qwen 2 VL and Qwen 2.5 VL. */
#define VISION_DEFAULTS                                                                            \
    "{\"rms_norm_eps\": 1e-5, \"use_sliding_window\": false, \"sliding_window\": 4096,"            \
    " \"max_window_layers\": 80}"
#define VISION_PART_DEFAULTS                                                                       \
    "{\"hidden_size\": 8192, \"intermediate_size\": 29568, \"num_hidden_layers\": 80,"             \
    " \"num_attention_heads\": 64, \"num_key_value_heads\": 8,"                                    \
    " \"max_position_embeddings\": 32768, \"tie_word_embeddings\": false}"

static const qkv_hf_class hf_classes[] = {
    {"qwen2", "Qwen2ForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"use_sliding_window\": false, \"sliding_window\": 4096,"
     " \"max_window_layers\": 28}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 22016, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 32,"
     " \"max_position_embeddings\": 32768, \"tie_word_embeddings\": false}"},
    {"qwen2_vl_text", "Qwen2ForCausalLM", VISION_DEFAULTS, VISION_PART_DEFAULTS},
    {"qwen2_5_vl_text", "Qwen2ForCausalLM", VISION_DEFAULTS, VISION_PART_DEFAULTS},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_USE | QKV_HF_WINDOW_FIRST | QKV_HF_WINDOW_TYPES,
};

const qkv_family qkv_family_qwen2 = {
    .name = "qwen2",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_BIASES,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
