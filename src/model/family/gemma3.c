/*
 * gemma3: Gemma 3, its language part.
 *
 * As gemma2 without soft-caps, with queries and keys RMS-normalised per head. Every sixth layer sees
 * everything and turns by the global base with its scaling; the others have the window and the local
 * base. The file does not say the six. The 27B model (62 layers) scales its scores by the width per
 * head.
 */
#include "model/family/gemma.h"

static const char *const hf_architectures[] = {"Gemma3ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    QKV_GEMMA_SANDWICH_NORMS,
    {"self_attn.q_norm", "attn_q_norm", &qkv_maker_plus_one},
    {"self_attn.k_norm", "attn_k_norm", &qkv_maker_plus_one},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"final_logit_softcapping", QKV_HF_FLOAT, "final_logit_softcapping", 0},
    {"attn_logit_softcapping", QKV_HF_MUST, NULL, 0},
    {"hidden_act", QKV_HF_SKIP, NULL, 0},
    {"use_bidirectional_attention", QKV_HF_REFUSE, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"gemma3_text", "Gemma3ForCausalLM",
     "{\"max_position_embeddings\": 131072, \"num_attention_heads\": 8,"
     " \"num_key_value_heads\": 4, \"head_dim\": 256, \"rms_norm_eps\": 1e-6,"
     " \"rope_theta\": 1000000.0, \"rope_local_base_freq\": 10000.0,"
     " \"query_pre_attn_scalar\": 256, \"sliding_window\": 4096, \"tie_word_embeddings\": true}",
     "{\"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 26}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .activation = "hidden_activation",
    .layer_names = hf_layer_names,
    .model_names = qkv_gemma_model_names,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_PERIOD | QKV_HF_WINDOW_TYPES,
    .configure = qkv_hf_read_query_scale,
};

const qkv_family qkv_family_gemma3 = {
    .name = "gemma3",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .mlp = QKV_MLP_GATED,
    .embedding_sqrt = 1,
    .window_period = 6,
    .local_rope = 1,
    .local_base = 10000,
    .width_scaled_layers = 62,
    .layer_required =
        QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_NORMS | QKV_HAS(POST_ATTN_NORM) | QKV_HAS(POST_FFN_NORM),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(ATTN_SCALE) | QKV_READS(LOGIT_SOFTCAP),
    .hf = &hf,
};
