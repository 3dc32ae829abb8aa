/*
 * lfm2: LFM2, dense.
 *
 * Short convolutions in most layers, attention in the others: as llama, with RMSNorm on queries and keys per
 * head. The final norm is called token_embd_norm in files.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Lfm2ForCausalLM", NULL};

static const qkv_hf_name hf_model_names[] = {{"embed_tokens", "token_embd", NULL},
                                             {"embedding_norm", "token_embd_norm", NULL},
                                             {NULL, NULL, NULL}};

static const qkv_hf_name hf_layer_names[] = {
    {"operator_norm", "attn_norm", NULL},
    {"ffn_norm", "ffn_norm", NULL},
    {"self_attn.out_proj", "attn_output", NULL},
    {"self_attn.q_layernorm", "attn_q_norm", NULL},
    {"self_attn.k_layernorm", "attn_k_norm", NULL},
    {"feed_forward.w1", "ffn_gate", NULL},
    {"feed_forward.w2", "ffn_down", NULL},
    {"feed_forward.w3", "ffn_up", NULL},
    {"conv.in_proj.weight", "shortconv.in_proj.weight", NULL},
    {"conv.conv.weight", "shortconv.conv.weight", &qkv_maker_conv},
    {"conv.out_proj.weight", "shortconv.out_proj.weight", NULL},
    {NULL, NULL, NULL},
};

/* The width of heads follows from that of the model, and older configs say other things twice. */
static const qkv_hf_setting hf_settings[] = {
    {"conv_bias", QKV_HF_REFUSE, NULL, 0},
    {"conv_dim", QKV_HF_SKIP, NULL, 0},
    {"conv_dim_out", QKV_HF_SKIP, NULL, 0},
    {"conv_use_xavier_init", QKV_HF_SKIP, NULL, 0},
    {"block_dim", QKV_HF_SKIP, NULL, 0},
    {"block_mlp_init_scale", QKV_HF_SKIP, NULL, 0},
    {"block_norm_eps", QKV_HF_SKIP, NULL, 0},
    {"block_out_init_scale", QKV_HF_SKIP, NULL, 0},
    {"block_use_swiglu", QKV_HF_SKIP, NULL, 0},
    {"block_use_xavier_init", QKV_HF_SKIP, NULL, 0},
    {"num_heads", QKV_HF_SKIP, NULL, 0},
    {"tie_embedding", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"lfm2", "Lfm2ForCausalLM",
     "{\"norm_eps\": 1e-5, \"rope_theta\": 1000000.0, \"conv_L_cache\": 3,"
     " \"block_multiple_of\": 256, \"block_ffn_dim_multiplier\": 1.0,"
     " \"block_auto_adjust_ff_dim\": true, \"tie_word_embeddings\": true}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .epsilon = "norm_eps",
    .fixed_activation = 1,
    .configure = qkv_hf_read_short_conv,
};

const qkv_family qkv_family_lfm2 = {
    .name = "lfm2",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_NORMS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .mixer = QKV_MIXER_SHORT_CONV,
    .mixer_required =
        QKV_HAS_MIXER(SHORT_IN) | QKV_HAS_MIXER(SHORT_TAPS) | QKV_HAS_MIXER(SHORT_OUT),
    .output_norm = "token_embd_norm.weight",
    .hf = &hf,
};
