/*
 * Settings of Hugging Face directories: which are refused, and with which words, and what the others
 * do; headers that lie, files that are missing. Each case changes one thing in a directory that opens.
 */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "qkv/model.h"
#include "qkv/weights.h"
#include "support/engine.h"
#include "support/hf_directory.h"
#include "support/scratch.h"

/* The family's config with one setting replaced by a JSON text. */
static void write_config(const char *family, const char *setting, const char *value) {
    json_t *config = hf_directory_config(family);
    if (setting) {
        json_t *json = json_loads(value, JSON_DECODE_ANY, NULL);
        assert_non_null(json);
        json_object_set_new(config, setting, json);
    }
    hf_directory_write_config(config);
    json_decref(config);
}

/* `words` NULL: it must open. */
static void expect_open(const char *what, const char *words) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    const int status = qkv_model_open(&model, hf_directory_path(), &err);
    if (!words) {
        expect_ok(status, &err, what);
    } else if (status == QKV_OK) {
        fail_msg("%s: should be refused", what);
    } else if (!strstr(err.message, words)) {
        fail_msg("%s: '%s' does not say '%s'", what, err.message, words);
    }
    qkv_model_free(model);
}

static void settings(void **state) {
    (void)state;
    static const struct {
        const char *family, *setting, *value, *words;
    } cases[] = {
        {"llama", NULL, NULL, NULL},
        {"llama", "architectures", "[\"MambaForCausalLM\"]", "'MambaForCausalLM' is not supported"},
        {"llama", "architectures", "[]", NULL}, /* its model_type does */
        {"llama", "architectures", "[7]", "does not name"},
        {"llama", "architectures", "7", "does not name"},
        {"llama", "hidden_act", "\"quick_gelu\"", "hidden_act is 'quick_gelu'"},
        {"llama", "hidden_act", "7", "hidden_act is"},
        {"llama", "quantization_config", "{\"quant_method\": \"gptq\"}", "quantised"},
        {"llama", "some_new_trick", "true", NULL},
        {"llama", "some_new_trick", "false", NULL},
        {"llama", "some_new_trick", "null", NULL},
        {"llama", "sliding_window", "4", NULL}, /* which Llama does not have */
        {"llama", "num_hidden_layers", "\"three\"", "num_hidden_layers should be a whole number"},
        {"llama", "num_hidden_layers", "0", "no num_hidden_layers"},
        {"llama", "num_hidden_layers", "-1", "outside"},
        {"llama", "num_hidden_layers", "2.5", "num_hidden_layers should be a whole number"},
        {"llama", "num_hidden_layers", "1e30", "far outside"},
        {"llama", "num_hidden_layers", "3.0", NULL},
        {"llama", "max_position_embeddings", "1e30", NULL},
        {"llama", "max_position_embeddings", "-1", "max_position_embeddings is below 0"},
        {"llama", "num_hidden_layers", "100000", "implausible"},
        {"llama", "num_hidden_layers", "2", "model.layers.2."},
        {"llama", "num_hidden_layers", "4", "blk.3.attn_norm.weight is missing"},
        {"llama", "num_attention_heads", "1000000000", "implausible"},
        {"llama", "num_key_value_heads", "3", "implausible"},
        {"llama", "head_dim", "7", "in pairs"},
        {"llama", "hidden_size", "64", "has shape"},
        {"llama", "rms_norm_eps", "null", "no rms_norm_eps"},
        {"llama", "rms_norm_eps", "\"small\"", "rms_norm_eps should be a number"},
        {"llama", "partial_rotary_factor", "0.5", "0.5 of the channels"},
        {"llama", "rope_scaling", "{\"rope_type\": \"dynamic\", \"factor\": 2.0}", NULL},
        {"llama", "rope_scaling", "{\"rope_type\": \"dynamic\"}", "no factor"},
        {"llama", "rope_scaling", "{\"rope_type\": \"mrope\"}", "'mrope'"},
        {"llama", "rope_scaling", "{\"rope_type\": \"linear\"}", "no factor"},
        {"llama", "rope_scaling", "{\"type\": \"linear\", \"factor\": 2.0}", NULL},
        {"llama", "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 2.0, \"twist\": 1}",
         NULL},
        {"llama", "rope_scaling", "[1]", "should be an object"},
        {"llama", "rope_scaling", "{\"rope_type\": \"longrope\"}",
         "no original_max_position_embeddings"},
        {"llama", "rope_scaling", "{\"rope_type\": 3}", "of type '?'"},
        {"llama", "rope_theta", "\"a\"", "rope_theta should be a number"},
        {"llama", "tie_word_embeddings", "1", "true or false"},
        {"llama_gqa", "tie_word_embeddings", "false", "lm_head.weight is missing"},
        {"gpt2", "scale_attn_by_inverse_layer_idx", "true", "scale_attn_by_inverse_layer_idx"},
        {"gpt2", "activation_function", "\"mish\"", "activation_function is 'mish'"},
        {"gpt2", "hidden_act", "\"mish\"", NULL},      /* which GPT-2 does not read */
        {"qwen3", "use_sliding_window", "true", NULL}, /* of no width */
        {"qwen3", "layer_types", "[\"full_attention\"]", "a list of 3 names"},
        {"qwen3", "layer_types", "[\"linear_attention\", 1, 2]", "'linear_attention'"},
        {"qwen2_moe", "use_sliding_window", "true", "use_sliding_window is supported only as 0"},
        {"qwen2_moe", "mlp_only_layers", "[1]", "mlp_only_layers"},
        {"qwen2_moe", "decoder_sparse_step", "2", "decoder_sparse_step is supported only as 1"},
        {"qwen3_moe", "mlp_only_layers", "[0]", "the setting mlp_only_layers of Qwen3Moe"},
        {"qwen3_moe", "num_experts_per_tok", "9", "expert_used_count"},
        {"opt", "word_embed_proj_dim", "32",
         "word_embed_proj_dim is supported only as hidden_size"},
        {"opt", "_remove_final_layer_norm", "true", "_remove_final_layer_norm"},
        {"opt", "enable_bias", "false", ".bias is not part of architecture opt"},
        {"opt", "layer_norm_elementwise_affine", "false", "of a norm without weights"},
        {"opt", "max_position_embeddings", "62", "has shape"},
        {"gptj", "rotary_dim", "7", "an even number"},
        {"gptj", "rotary_dim", "14", "rotary_dim is 14, outside 2 to 12"},
        {"gptj", "rotary_dim", "null", "rotary_dim should say"},
        {"gptj", "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 2.0}",
         NULL}, /* not read */
        {"gpt_neo", "attention_layers", "[\"global\", \"sparse\", \"local\", \"local\"]",
         "'sparse'"},
        {"gpt_neo", "attention_layers", "[\"global\"]", "lists other than the 4 layers"},
        {"gpt_neo", "attention_layers", "null", NULL}, /* attention_types says the same */
        {"gpt_neo", "window_size", "0", "window_size is 0, outside"},
        {"persimmon", "qk_layernorm", "false", "attn_q_norm.weight is not part of architecture"},
        {"bloom", "apply_residual_connection_post_layernorm", "true", "supported only as 0"},
        {"mpt", "no_bias", "false", "no_bias is supported only as 1"},
        {"mpt", "attn_config", "7", "attn_config should be an object"},
        {"mpt", "attn_config", "{\"alibi\": false}", "alibi is supported only as 1"},
        {"mpt", "attn_config", "{\"alibi_bias_max\": 0}", "max_alibi_bias is missing or 0"},
        {"mpt", "attn_config", "{\"attn_type\": \"multiquery_attention\"}",
         "attn_type is supported only as 'multihead_attention'"},
        {"mpt", "attn_config", "{\"clip_qkv\": 2.5, \"some_new_trick\": 1}", NULL},
        {"glm4_moe", "n_group", "4", "cannot be chosen from"},
        {"glm4_moe", "n_group", "2", NULL},
        {"glm4_moe", "n_shared_experts", "2", "has shape"},
        {"glm4_moe", "first_k_dense_replace", "2", "blk.1.ffn_gate.weight is missing"},
        {"glm4_moe", "num_hidden_layers", "2", NULL}, /* the rest predict further tokens */
        {"gemma4", "num_kv_shared_layers", "6", "outside"},
        {"gemma4", "num_kv_shared_layers", "5", "no layer before it whose keys"},
        {"gemma4", "num_kv_shared_layers", "2", NULL}, /* their own keys are left out */
        {"gemma4", "global_head_dim", "32", "has shape"},
        {"gemma4", "num_global_key_value_heads", "2", "has shape"},
        {"gemma4", "num_global_key_value_heads", "3", "cannot share"},
        {"gemma4", "use_bidirectional_attention", "\"all\"", "supported only as 'vision'"},
        {"gemma4", "use_bidirectional_attention", "\"vision\"", NULL},
        {"gemma4", "hidden_size_per_layer_input", "8", "per_layer_token_embd.weight is missing"},
        {"gemma4_e", "use_double_wide_mlp", "false", "has shape"},
        {"gemma4_e", "per_layer_config", "{\"0\": {\"head_dim\": 4}}",
         "the setting per_layer_config"},
        {"llama4", "attention_chunk_size", "null", "no attention_chunk_size"},
        {"llama4", "moe_layers", "[0, 2]", "moe_layers says otherwise"},
        {"llama4", "use_qk_norm", "false", NULL},
        {"llama4", "attn_temperature_tuning", "false", NULL},
        {"llama4", "intermediate_size_mlp", "40", "has shape"},
        {"llama4", "layer_types", "[\"full_attention\"]", "layer_types says otherwise"},
        {"apertus", "qk_norm", "false", "qk_norm is supported only as 1"},
        {"apertus", "hidden_act", "\"silu\"", "hidden_activation is 'silu'"},
        {"exaone4", "layer_types",
         "[\"full_attention\", \"full_attention\", \"full_attention\","
         " \"full_attention\"]",
         "without any layer"},
        {"exaone4", "sliding_window_pattern", "\"LGLG\"", "sliding_window_pattern"},
        {"exaone4", "sliding_window", "null", "sliding_window none"},
        {"hunyuan_v1_dense", "rope_scaling",
         "{\"type\": \"dynamic\", \"factor\": 1.0, \"alpha\": 10.0}", NULL},
        {"phimoe", "num_experts_per_tok", "1", "num_experts_per_tok is supported only as 2"},
        {"phimoe", "sliding_window", "6", NULL},
        {"minimax_m2", "scoring_func", "\"softmax\"",
         "scoring_func is supported only as 'sigmoid'"},
        {"minimax_m2", "sliding_window", "4", "the setting sliding_window of MiniMaxM2"},
        {"minimax_m2", "attn_type_list", "[1, 0, 1]", "attn_type_list"},
        {"cohere2", "layer_types",
         "[\"full_attention\", \"sliding_attention\", \"full_attention\", \"full_attention\"]",
         "not those that"},
        {"smollm3", "no_rope_layers", "[1, 0, 1, 0]", "every 4th layer"},
        {"smollm3", "use_sliding_window", "true", "use_sliding_window"},
        {"mistral", "layer_types", "[\"linear_attention\"]",
         NULL}, /* which Mistral does not read */
        {"falcon", "alibi", "true", "alibi is supported only as 0"},
        {"bert", "position_embedding_type", "\"relative_key\"", "only as 'absolute'"},
        {"gemma", "use_bidirectional_attention", "true", "use_bidirectional_attention"},
        {"roberta", "is_decoder", "true", "is_decoder is supported only as 0"},
        {"roberta", "add_cross_attention", "true", "add_cross_attention is supported only as 0"},
        {"xlm_roberta", "position_embedding_type", "\"relative_key_query\"", "only as 'absolute'"},
        {"roberta", "pad_token_id", "null", "no pad_token_id"},
        {"roberta", "pad_token_id", "66", "pad_token_id is 66, outside 0 to 64"},
        {"distilbert", "activation", "\"mish\"", "activation is 'mish'"},
        {"modernbert", "rope_scaling", "{\"type\": \"linear\", \"factor\": 2}", "rope_scaling"},
        {"modernbert", "local_attention", "0", "local_attention is 0"},
        {"modernbert", "global_attn_every_n_layers", "0", "global_attn_every_n_layers is 0"},
        {"modernbert", "layer_types", "[\"full_attention\"]", "a list of 4 names"},
        {"nomic_bert", "moe_every_n_layers", "2", "moe_every_n_layers"},
        {"nomic_bert", "prenorm", "true", "prenorm is supported only as 0"},
        {"nomic_bert", "causal", "true", "causal is supported only as 0"},
        {"nomic_bert", "activation_function", "\"gelu\"",
         "activation_function is supported only as"},
        {"nomic_bert", "rotary_emb_fraction", "0.5", "rotary_emb_fraction is supported only as 1"},
        {"nomic_bert", "rotary_emb_interleaved", "true", "rotary_emb_interleaved"},
        {"nomic_bert", "rotary_emb_scale_base", "512", "rotary_emb_scale_base"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_directory_link_weights(cases[i].family);
        write_config(cases[i].family, cases[i].setting, cases[i].value);
        char what[128];
        snprintf(what, sizeof what, "%s, %s = %s", cases[i].family,
                 cases[i].setting ? cases[i].setting : "nothing",
                 cases[i].value ? cases[i].value : "");
        expect_open(what, cases[i].words);
    }
}

/* Settings of published models that change nothing, or are refused with any other value. */
static void published(void **state) {
    (void)state;
    static const struct {
        const char *family, *setting, *value, *words;
    } cases[] = {
        {"gpt2", "predict_special_tokens", "true", NULL}, /* gpt2-medium */
        {"gpt2", "output_past", "true", NULL},            /* gpt2-xl */
        {"llama", "max_sequence_length", "2048", NULL},   /* the first Llama */
        {"llama", "num_beams", "1", NULL},                /* whole dumps of old versions */
        {"llama", "return_dict", "true", NULL},
        {"qwen2", "seq_length", "32768", NULL},
        {"phi3", "full_attn_mod", "1", NULL}, /* Phi 4 mini */
        {"phi3", "full_attn_mod", "2", "full_attn_mod is supported only as 1"},
        {"phi3", "interpolate_factor", "1", NULL},
        {"falcon", "ff_factor", "4", NULL}, /* Falcon 2 */
        {"stablelm", "rotary_scaling_factor", "1.0", NULL},
        {"stablelm", "rotary_scaling_factor", "2.0", "rotary_scaling_factor is supported only"},
        {"bert", "directionality", "\"bidi\"", NULL}, /* bert-base-chinese */
        {"bert", "directionality", "\"left\"", "only as 'bidi'"},
        {"bert", "pooler_num_fc_layers", "3", NULL},
        {"bert", "pooler_type", "\"first_token_transform\"", NULL},
        {"bert", "architectures", "[\"BertForSequenceClassification\"]", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_directory_link_weights(cases[i].family);
        write_config(cases[i].family, cases[i].setting, cases[i].value);
        expect_open(cases[i].setting, cases[i].words);
    }
}

/* ---- what is said ---- */

static void notices(void **state) {
    (void)state;
    static const struct {
        const char *family, *setting, *value, *notice;
    } cases[] = {
        {"llama", NULL, NULL, NULL},
        {"llama", "some_new_trick", "null", NULL},
        {"llama", "some_new_trick", "false",
         "config.json: settings that LlamaForCausalLM does not have were ignored: some_new_trick"},
        {"llama", "rope_scaling", "{\"type\": \"linear\", \"factor\": 2, \"twist\": 1}",
         "config.json: settings that LlamaForCausalLM does not have were ignored: "
         "rope_scaling.twist"},
        {"llama", "tie_word_embeddings", "true",
         "the output is not tied to the embedding as config.json says: lm_head.weight holds other "
         "numbers, and is used"},
        {"bert", "conversational", "\"yes\"",
         "config.json: settings that BertModel does not have were ignored: conversational"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_error err;
        qkv_model *model = NULL;
        hf_directory_link_weights(cases[i].family);
        write_config(cases[i].family, cases[i].setting, cases[i].value);
        expect_ok(qkv_model_open(&model, hf_directory_path(), &err), &err, cases[i].family);
        const char *notice = qkv_model_notice(model, 0);
        assert_string_equal(notice ? notice : "", cases[i].notice ? cases[i].notice : "");
        assert_string_equal(qkv_model_get_info(model)->notices, notice ? notice : "");
        assert_null(qkv_model_notice(model, 1));
        qkv_model_free(model);
    }
}

/* Where a tensor's bytes lie in a safetensors file that is in memory. */
static char *find_bytes(char *file, const char *name, size_t *size) {
    uint64_t length;
    memcpy(&length, file, sizeof length);
    json_t *header = json_loadb(file + 8, (size_t)length, 0, NULL);
    json_int_t from = 0, to = 0;
    assert_int_equal(json_unpack(header, "{s: {s: [I, I]}}", name, "data_offsets", &from, &to), 0);
    json_decref(header);
    *size = (size_t)(to - from);
    return file + 8 + length + from;
}

/* An output that is stored although it is tied is not another output where its numbers are the same. */
static void stored_twice(void **state) {
    (void)state;
    qkv_error err;
    qkv_model *model = NULL;
    size_t length, n, n_output;
    char *file = NULL;
    assert_int_equal(
        qkv_read_file(&file, &length, VECTORS "llama/hf/model.safetensors", (size_t)1 << 24, NULL),
        0);
    const char *embedding = find_bytes(file, "model.embed_tokens.weight", &n);
    char *output = find_bytes(file, "lm_head.weight", &n_output);
    assert_int_equal(n, n_output);
    for (int differs = 0; differs < 2; differs++) {
        memcpy(output, embedding, n);
        output[n - 1] ^= (char)differs;
        unlink(scratch_path("model.safetensors"));
        scratch_write("model.safetensors", file, length);
        write_config("llama", "tie_word_embeddings", "true");
        expect_ok(qkv_model_open(&model, hf_directory_path(), &err), &err, "stored twice");
        assert_int_equal(qkv_model_get_info(model)->tied_output, !differs);
        assert_int_equal(qkv_model_notice(model, 0) != NULL, differs);
        qkv_model_free(model);
    }
    free(file);
}

/* Where the output's matrix is that of the embedding and not stored, its bias still is the output's own. */
static void hide_output(char out[256], const char *name) {
    const int is_output = strcmp(name, "lm_head.weight") == 0;
    snprintf(out, 256, "%s", is_output ? "rotary_emb.inv_freq" : name); /* which is left out */
}

static void tied_with_a_bias(void **state) {
    (void)state;
    static const char *const nothing[] = {NULL};
    static const char *const families[] = {"gptj", "codegen"};
    for (int i = 0; i < 2; i++) {
        qkv_error err;
        qkv_model *model = NULL;
        qkv_weight bias = QKV_WEIGHT_INIT;
        hf_directory_wrap_weights(families[i], hide_output, nothing);
        write_config(families[i], "tie_word_embeddings", "true");
        expect_ok(qkv_model_open(&model, hf_directory_path(), &err), &err, "tied with a bias");
        assert_true(qkv_model_get_info(model)->tied_output);
        expect_ok(qkv_weight_find(model, "output_bias", -1, &bias, &err), &err, "its bias");
        assert_int_equal(bias.n_rows, qkv_model_get_info(model)->n_vocab);
        qkv_model_free(model);
    }
}

/* ---- settings that GGUF files of the family do not have ---- */

static qkv_model *open_with(const char *family, const char *setting, const char *value) {
    qkv_error err;
    qkv_model *model = NULL;
    hf_directory_link_weights(family);
    write_config(family, setting, value);
    expect_ok(qkv_model_open(&model, hf_directory_path(), &err), &err, setting);
    return model;
}

/* Which layers have a window is taken from the config, also where it is not the family's rule. */
static void windows(void **state) {
    (void)state;
    static const struct {
        const char *family, *setting, *value;
        int32_t n_windowed;
    } cases[] = {
        {"gemma2", NULL, NULL, 2},
        {"gemma2", "layer_types",
         "[\"full_attention\", \"full_attention\", \"full_attention\", \"sliding_attention\"]", 1},
        {"gemma2", "sliding_window", "null", 0},
        {"gemma3", NULL, NULL, 5},
        {"mistral", NULL, NULL, 3},
        {"mistral", "sliding_window", "null", 0},
        {"mistral", "architectures", "[\"LlamaForCausalLM\"]", 3}, /* its model_type is mistral */
        {"qwen3", "sliding_window", "4", 0},                       /* use_sliding_window is false */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_model *model = open_with(cases[i].family, cases[i].setting, cases[i].value);
        assert_int_equal(qkv_model_get_info(model)->n_windowed, cases[i].n_windowed);
        qkv_model_free(model);
    }
}

static void positions(void **state) {
    (void)state;
    static const struct {
        const char *family, *setting, *value, *position;
    } cases[] = {
        {"llama", "rope_scaling", "{\"type\": \"linear\", \"factor\": 2}", "rope (linear x2)"},
        {"llama", "rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 4.0}", "rope (yarn x4)"},
        {"llama", "rope_scaling",
         "{\"rope_type\": \"yarn\", \"factor\": 4.0, \"attention_factor\": 1.5, \"beta_fast\": 8}",
         "rope (yarn x4)"},
        {"llama", "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 5000}", "rope"},
        {"phi3", "rope_parameters",
         "{\"rope_type\": \"longrope\", \"long_factor\": [1, 2, 3, 4, 5, 6], \"short_factor\": "
         "[1, 1, 1, 1, 1, 1]}",
         "rope (longrope)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_model *model = open_with(cases[i].family, cases[i].setting, cases[i].value);
        assert_string_equal(qkv_model_get_info(model)->position, cases[i].position);
        qkv_model_free(model);
    }
}

static void configs(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "is empty"}, {"{", "line 1"}, {"[]", "not a JSON object"}, {"{}", "architectures"}};
    hf_directory_link_weights("llama");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_write("config.json", cases[i][0], strlen(cases[i][0]));
        expect_open(cases[i][0], cases[i][1]);
    }
    unlink(scratch_path("config.json"));
    expect_open("no config", "without config.json");
}

/* ---- headers of safetensors ---- */

static void write_weights(const char *name, const char *json, size_t claimed, size_t data) {
    unsigned char bytes[1024] = {0};
    const size_t length = strlen(json);
    assert_true(8 + length + data <= sizeof bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(claimed >> (8 * i));
    memcpy(bytes + 8, json, length);
    unlink(scratch_path(name));
    scratch_write(name, bytes, 8 + length + data);
}

#define TENSOR(dtype, shape, offsets)                                                              \
    "{\"a\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": " offsets "}}"

static void headers(void **state) {
    (void)state;
    static const struct {
        const char *json;
        size_t data;
        const char *words;
    } cases[] = {
        {"[]", 0, "not a JSON object"},
        {"{\"a\": 1}", 0, "no type"},
        {TENSOR("F33", "[1]", "[0, 4]"), 4, "no type"},
        {TENSOR("F32", "[1]", "[0, 8]"), 4, "beyond the end"},
        {TENSOR("F32", "[2]", "[0, 4]"), 4, "has 4 bytes"},
        {TENSOR("F32", "[1]", "[4, 0]"), 4, "two rising numbers"},
        {TENSOR("F32", "[1]", "[0]"), 4, "two rising numbers"},
        {TENSOR("F32", "[1]", "[0.0, 4.0]"), 4, "two rising numbers"},
        {TENSOR("F32", "[-1]", "[0, 4]"), 4, "implausible"},
        {TENSOR("F32", "7", "[0, 4]"), 4, "list of at most"},
        {TENSOR("F32", "[1,1,1,1,1,1,1,1,1]", "[0, 4]"), 4, "list of at most"},
        {TENSOR("F32", "[4294967296, 4294967296]", "[0, 4]"), 4, "implausible"},
        {TENSOR("F32", "[4611686018427387904]", "[0, 0]"), 4, "has 0 bytes"},
        {TENSOR("F32", "[1]", "[0, 4]"), 4, "tensor a is not part of"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}, \"b\": {\"dtype\": "
         "\"F32\", \"shape\": [1], \"data_offsets\": [2, 6]}}",
         8, "lie over each other"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [0, 0]}, \"a\": {\"dtype\": "
         "\"F32\", \"shape\": [0], \"data_offsets\": [0, 0]}}",
         0, "tensor a is twice in one file"},
        {"{\"a\": {\"dtype\": \"F32\", \"dtype\": \"F16\"}}", 0, "malformed"},
        {"{\"a\": {\"dtype\": \"F32\"]}", 0, "malformed"},
        {"{\"a\" {}}", 0, "malformed"},
        {"{\"a\": {}", 0, "not a JSON object"},
    };
    write_config("llama", "tie_word_embeddings", "true");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_weights("model.safetensors", cases[i].json, strlen(cases[i].json), cases[i].data);
        expect_open(cases[i].json, cases[i].words);
    }
    write_weights("model.safetensors", "{}", 3, 0);
    expect_open("a header longer than its file", "cut off");
    write_weights("model.safetensors", "{}", (size_t)-1, 0);
    expect_open("a header of all there is", "cut off");
    unlink(scratch_path("model.safetensors"));
    scratch_write("model.safetensors", "abc", 3);
    expect_open("three bytes", "not a safetensors file");
}

/* ---- which files ---- */

static void write_text(const char *name, const char *text) {
    scratch_write(name, text, strlen(text));
}

static void files(void **state) {
    (void)state;
    static const char *const index = "model.safetensors.index.json";
    write_config("llama", "tie_word_embeddings", "true");
    unlink(scratch_path("model.safetensors"));
    expect_open("no weights", "no *.safetensors");
    write_text("pytorch_model.bin", "x");
    expect_open("a pickle", "pickles");
    unlink(scratch_path("pytorch_model.bin"));
    write_weights("one.safetensors", "{}", 2, 0);
    expect_open("one file of another name", "token_embd.weight is missing");
    write_weights("two.safetensors", "{}", 2, 0);
    expect_open("two files", "no model.safetensors.index.json");
    write_text(index, "{\"weight_map\": {\"a\": \"../one.safetensors\"}}");
    expect_open("out of the directory", "'../one.safetensors', which is not a file");
    write_text(index, "{\"weight_map\": {\"a\": \"/etc/passwd\"}}");
    expect_open("elsewhere", "which is not a file");
    write_text(index, "{\"weight_map\": {\"a\": 3}}");
    expect_open("a number for a file", "which is not a file");
    write_text(index, "{\"weights\": {}}");
    expect_open("no map", "no weight_map");
    write_text(index, "{\"weight_map\": {\"a\": \"one.safetensors\"}, 7}");
    expect_open("an index that breaks off", "malformed JSON");
    write_text(index, "{\"weight_map\": {\"a\": \"one.safetensors\", 7}}");
    expect_open("a map that breaks off", "weight_map is malformed");
    write_text(index, "{\"weight_map\": {\"a\": \"one\\u0000.safetensors\"}}");
    expect_open("a name with a zero", "which is not a file");
    write_text(index, "{\"weight_map\": {\"a\": \"three.safetensors\"}}");
    expect_open("a missing part", "three.safetensors is missing");
    write_weights("one.safetensors", TENSOR("F32", "[1]", "[0, 4]"),
                  strlen(TENSOR("F32", "[1]", "[0, 4]")), 4);
    write_weights("two.safetensors", TENSOR("F32", "[1]", "[0, 4]"),
                  strlen(TENSOR("F32", "[1]", "[0, 4]")), 4);
    write_text(index, "{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"}}");
    expect_open("a tensor twice", "in two files");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings), cmocka_unit_test(published),
        cmocka_unit_test(notices),  cmocka_unit_test(stored_twice),
        cmocka_unit_test(windows),  cmocka_unit_test(positions),
        cmocka_unit_test(configs),  cmocka_unit_test(tied_with_a_bias),
        cmocka_unit_test(headers),  cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
