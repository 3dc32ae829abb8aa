/*
 * gemma: Gemma 1.
 *
 * Embeddings times sqrt(D); RMS norms whose stored weights include the 1 of (1 + w); gated GELU in its
 * tanh form; heads wider than D/H; tied output. No key for the base of RoPE: 10000.
 */
#include "model/family/gemma.h"

static const char *const hf_architectures[] = {"GemmaForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"input_layernorm", "attn_norm", &qkv_maker_plus_one},
    {"post_attention_layernorm", "ffn_norm", &qkv_maker_plus_one},
    {NULL, NULL, NULL},
};

const qkv_hf_name qkv_gemma_model_names[] = {
    {"norm", "output_norm", &qkv_maker_plus_one},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"hidden_activation", QKV_HF_WORD, "gelu_pytorch_tanh", 0},
    {"use_bidirectional_attention", QKV_HF_REFUSE, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"gemma", "GemmaForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"head_dim\": 256, \"tie_word_embeddings\": true}", NULL},
    {NULL, NULL, NULL, NULL},
};

/* Configs that say "gelu" were written before the tanh form had a name there. */
static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .usual_activations = "|gelu|",
    .layer_names = hf_layer_names,
    .model_names = qkv_gemma_model_names,
    .settings = hf_settings,
};

const qkv_family qkv_family_gemma = {
    .name = "gemma",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .mlp = QKV_MLP_GATED,
    .embedding_sqrt = 1,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(ATTN_SCALE),
    .hf = &hf,
};
