/*
 * granite: Granite 3, dense.
 *
 * As llama, with factors: on the embeddings, on what each block adds to the residual stream, on the
 * scores in place of 1/sqrt(d); and the logits are divided by one.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"GraniteForCausalLM", NULL};

static const qkv_hf_setting hf_settings[] = {
    {"attention_multiplier", QKV_HF_FLOAT, "attention.scale", 0},
    {"embedding_multiplier", QKV_HF_FLOAT, "embedding_scale", 0},
    {"residual_multiplier", QKV_HF_FLOAT, "residual_scale", 0},
    {"logits_scaling", QKV_HF_FLOAT, "logit_scale", 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"granite", "GraniteForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"attention_multiplier\": 1.0,"
     " \"embedding_multiplier\": 1.0, \"residual_multiplier\": 1.0,"
     " \"logits_scaling\": 1.0}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 32, \"max_position_embeddings\": 2048,"
     " \"tie_word_embeddings\": false}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .settings = hf_settings,
};

const qkv_family qkv_family_granite = {
    .name = "granite",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .qk_permuted = 1,
    .logit_scale_divides = 1,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS) | QKV_HAS(GATE_BIAS) |
                      QKV_HAS(UP_BIAS) | QKV_HAS(DOWN_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS),
    .keys = QKV_READS(ATTN_SCALE) | QKV_READS(EMBEDDING_SCALE) | QKV_READS(RESIDUAL_SCALE) |
            QKV_READS(LOGIT_SCALE),
    .hf = &hf,
};
