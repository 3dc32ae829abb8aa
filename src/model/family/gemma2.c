/*
 * gemma2: Gemma 2.
 *
 * As gemma, with norms before and after both blocks, soft-capped scores (before the mask) and logits,
 * and a window in every other layer, the first included. The 27B model (46 layers) scales its scores
 * by the width per head.
 */
#include "model/family/gemma.h"

static const char *const hf_architectures[] = {"Gemma2ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    QKV_GEMMA_SANDWICH_NORMS,
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"attn_logit_softcapping", QKV_HF_FLOAT, "attn_logit_softcapping", 0},
    {"final_logit_softcapping", QKV_HF_FLOAT, "final_logit_softcapping", 0},
    {"sliding_window_size", QKV_HF_SKIP, NULL, 0},
    {"hidden_act", QKV_HF_SKIP, NULL, 0},
    {"use_bidirectional_attention", QKV_HF_REFUSE, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"gemma2", "Gemma2ForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"head_dim\": 256, \"query_pre_attn_scalar\": 256,"
     " \"sliding_window\": 4096, \"attn_logit_softcapping\": 50.0,"
     " \"final_logit_softcapping\": 30.0, \"tie_word_embeddings\": true}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .activation = "hidden_activation",
    .layer_names = hf_layer_names,
    .model_names = qkv_gemma_model_names,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_TYPES,
    .configure = qkv_hf_read_query_scale,
};

const qkv_family qkv_family_gemma2 = {
    .name = "gemma2",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .mlp = QKV_MLP_GATED,
    .embedding_sqrt = 1,
    .window_period = 2,
    .width_scaled_layers = 46,
    .layer_required = QKV_HAS_LLAMA_LAYER | QKV_HAS(POST_ATTN_NORM) | QKV_HAS(POST_FFN_NORM),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(ATTN_SCALE) | QKV_READS(ATTN_SOFTCAP) | QKV_READS(LOGIT_SOFTCAP),
    .hf = &hf,
};
