/*
 * smollm3: SmolLM 3.
 *
 * As llama; every fourth layer does not turn its queries and keys. The file does not say which.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"SmolLM3ForCausalLM", NULL};

/* no_rope_layers has a 1 where there is RoPE. */
static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    const int64_t period = config->family->rope_skip_period;
    int64_t interval = period;
    int found = qkv_hf_take_int(config, "no_rope_layer_interval", 0, 4096, &interval, err);
    if (found < 0) return found;
    json_t *list = qkv_hf_take(config, "no_rope_layers");
    int usual = list || interval == period;
    for (size_t il = 0; list && il < (size_t)config->n_layer; il++) {
        const json_int_t turns = json_integer_value(json_array_get(list, il));
        usual &= (turns != 0) == ((int64_t)(il + 1) % period != 0);
    }
    json_decref(list);
    return usual ? QKV_OK
                 : qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "%s: only models in which every 4th layer has no RoPE are supported",
                            config->path);
}

/* With windows it would have them in the layers without RoPE. */
static const qkv_hf_setting hf_settings[] = {
    {"use_sliding_window", QKV_HF_REFUSE, NULL, 0},
    {"sliding_window", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"smollm3", "SmolLM3ForCausalLM", "{\"rms_norm_eps\": 1e-6, \"rope_theta\": 2000000.0}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_TYPES,
    .configure = hf_configure,
};

const qkv_family qkv_family_smollm3 = {
    .name = "smollm3",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .qk_permuted = 1,
    .rope_skip_period = 4,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
