/*
 * llama: Llama 1 to 3, Mistral, Mixtral, SmolLM and all that GGUF files under this name.
 *
 * RMS norm before each block, RoPE on adjacent channels (the converter reorders the rows of W_q and
 * W_k for it), grouped key/value heads, gated SiLU feed-forward, no biases by default. Llama 3's
 * frequency scaling comes as the tensor rope_freqs.weight. Mixtral has experts in place of the
 * feed-forward. Mistral's window is in all layers; llama.cpp has no key for it and its files do not
 * say it. Without output.weight the token embedding is the output projection.
 */
#include <string.h>

#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"LlamaForCausalLM", "LLaMAForCausalLM",
                                               "MistralForCausalLM", "MixtralForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"block_sparse_moe.gate.weight", "ffn_gate_inp.weight", NULL},
    {"block_sparse_moe.experts.#.w1.weight", "ffn_gate_exps.weight", &qkv_maker_stack},
    {"block_sparse_moe.experts.#.w2.weight", "ffn_down_exps.weight", &qkv_maker_stack},
    {"block_sparse_moe.experts.#.w3.weight", "ffn_up_exps.weight", &qkv_maker_stack},
    {NULL, NULL, NULL},
};

/* Llama has no window, whatever its config says; the others have it in all layers. */
static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    return strncmp(config->architecture, "Mi", 2) == 0 ? qkv_hf_window_read(config, err) : QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"llama", "LlamaForCausalLM", "{\"rms_norm_eps\": 1e-6}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 32, \"max_position_embeddings\": 2048,"
     " \"tie_word_embeddings\": false}"},
    {"mistral", "MistralForCausalLM", "{\"rms_norm_eps\": 1e-6, \"sliding_window\": 4096}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
     " \"max_position_embeddings\": 131072, \"tie_word_embeddings\": false}"},
    {"mixtral", "MixtralForCausalLM", "{\"rms_norm_eps\": 1e-5, \"rope_theta\": 1000000.0}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .expert_architecture = "MixtralForCausalLM",
    .layer_names = hf_layer_names,
    .configure = hf_configure,
};

const qkv_family qkv_family_llama = {
    .name = "llama",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .qk_permuted = 1,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS) | QKV_HAS(GATE_BIAS) |
                      QKV_HAS(UP_BIAS) | QKV_HAS(DOWN_BIAS) | QKV_HAS_EXPERTS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS),
    .keys = QKV_READS(EXPERTS) | QKV_READS(ATTN_SCALE),
    .hf = &hf,
};
