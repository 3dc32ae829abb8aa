/*
 * qwen3: Qwen 3.
 *
 * As qwen2 without biases; queries and keys are RMS-normalised per head before RoPE, and heads are
 * wider than D/H.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Qwen3ForCausalLM", NULL};

static const qkv_hf_class hf_classes[] = {
    {"qwen3", "Qwen3ForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"use_sliding_window\": false, \"sliding_window\": 4096,"
     " \"max_window_layers\": 28, \"head_dim\": 128}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 22016, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 32,"
     " \"max_position_embeddings\": 32768, \"tie_word_embeddings\": false}"},
    {"qwen3_vl_text", "Qwen3ForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"use_sliding_window\": false, \"head_dim\": 128,"
     " \"rope_theta\": 500000.0}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 22016, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 32,"
     " \"max_position_embeddings\": 128000, \"tie_word_embeddings\": false}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_USE | QKV_HF_WINDOW_FIRST | QKV_HF_WINDOW_TYPES,
};

const qkv_family qkv_family_qwen3 = {
    .name = "qwen3",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_NORMS,
    .layer_optional = QKV_HAS_HEAD_BIASES,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
