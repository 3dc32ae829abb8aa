/*
 * mpt: MPT.
 *
 * LayerNorms, fused projection, GELU in its exact form; no biases in published models. In place of
 * positions scores have a bias by distance (ALiBi). Where clip_qkv is set, queries, keys and values are
 * kept within it, before any edit.
 *
 * The slopes are those that alibi_bias_max asks for, as in the program that trained these models and in
 * llama.cpp. transformers' own class takes 8 whatever the config says (MPT 7B StoryWriter says 16).
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"MPTForCausalLM", "MptForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"norm_1", "attn_norm", NULL},
    {"attn.Wqkv", "attn_qkv", NULL},
    {"attn.out_proj", "attn_output", NULL},
    {"norm_2", "ffn_norm", NULL},
    {"ffn.up_proj", "ffn_up", NULL},
    {"ffn.down_proj", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"wte", "token_embd", NULL},
    {"norm_f", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"no_bias", QKV_HF_MUST, NULL, 1},
    {"logit_scale", QKV_HF_REFUSE, NULL, 0},
    {"embedding_fraction", QKV_HF_MUST, NULL, 1}, /* scales gradients only */
    {"expansion_ratio", QKV_HF_MUST, NULL, 4},
    {"learned_pos_emb", QKV_HF_SKIP, NULL, 0}, /* without effect beside ALiBi */
    {"norm_type", QKV_HF_SKIP, NULL, 0},       /* the class has LayerNorms whatever it says */
    {"emb_pdrop", QKV_HF_SKIP, NULL, 0},
    {"init_config", QKV_HF_SKIP, NULL, 0},
    {"init_device", QKV_HF_SKIP, NULL, 0},
    {"tokenizer_name", QKV_HF_SKIP, NULL, 0},
    {"verbose", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Those of the object attn_config. */
static const qkv_hf_setting attention_settings[] = {
    {"alibi", QKV_HF_MUST, NULL, 1},
    {"alibi_bias_max", QKV_HF_FLOAT, "attention.max_alibi_bias", 0},
    {"attn_type", QKV_HF_WORD, "multihead_attention", 0},
    {"clip_qkv", QKV_HF_FLOAT, "attention.clamp_kqv", 0},
    {"prefix_lm", QKV_HF_MUST, NULL, 0},
    {"qk_ln", QKV_HF_MUST, NULL, 0},
    {"softmax_scale", QKV_HF_FLOAT, "attention.scale", 0},
    {"attn_uses_sequence_id", QKV_HF_MUST, NULL, 0},
    {"attn_impl", QKV_HF_SKIP, NULL, 0}, /* ways to compute the same */
    {"attn_pdrop", QKV_HF_SKIP, NULL, 0},
    {"model_type", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    qkv_hf_set_float(config, "attention.max_alibi_bias", 8);
    return qkv_hf_apply_object(config, "attn_config", attention_settings, err);
}

static const qkv_hf_class hf_classes[] = {
    {"mpt", "MPTForCausalLM",
     "{\"max_seq_len\": 2048, \"layer_norm_epsilon\": 1e-5, \"tie_word_embeddings\": true}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "transformer.",
    .block = "blocks.",
    .epsilon = "layer_norm_epsilon",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .configure = hf_configure,
    .plain_names = 1,
    .fixed_activation = 1,
};

const qkv_family qkv_family_mpt = {
    .name = "mpt",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ALIBI,
    .activation = QKV_ACT_GELU_ERF,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(O) | QKV_HAS(FFN_NORM) |
                      QKV_HAS(UP) | QKV_HAS(DOWN),
    .layer_optional = QKV_HAS_NORM_BIASES | QKV_HAS(QKV_BIAS) | QKV_HAS(O_BIAS) | QKV_HAS(UP_BIAS) |
                      QKV_HAS(DOWN_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .keys = QKV_READS(ALIBI) | QKV_READS(CLAMP) | QKV_READS(ATTN_SCALE),
    .hf = &hf,
};
