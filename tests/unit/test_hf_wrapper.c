/*
 * The language part of models for images and text: a model that stands inside a larger one gives, bit
 * for bit, what it gives alone, and the same GGUF file; what is left out is said. And activations other
 * than the family's own, against the scalar reference.
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
#include "qkv/convert.h"
#include "reference/ref_forward.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/hf_directory.h"
#include "support/scratch.h"

static const int32_t tokens[] = {1, 20, 3, 44, 5, 66, 7, 88, 9, 10, 11, 12};
#define N_TOKENS (sizeof tokens / sizeof *tokens)

static const char *const others[] = {"vision_tower.vision_model.embeddings.patch.weight",
                                     "vision_tower.vision_model.post_layernorm.weight",
                                     "multi_modal_projector.mm_soft_emb_norm.weight", NULL};
static const char *const newer_others[] = {"model.vision_tower.vision_model.patch.weight",
                                           "model.image_newline", NULL};
static const char *const visual[] = {"model.visual.patch_embed.proj.weight",
                                     "model.visual.merger.norm.weight", NULL};
static const char *const old_visual[] = {"visual.patch_embed.proj.weight", NULL};
static const char *const connected[] = {"model.vision_model.patch.weight",
                                        "model.connector.modality_projection.proj.weight", NULL};
static const char *const nothing[] = {NULL};

/* Version 4 of transformers: all of it below language_model. */
static void rename_older(char out[256], const char *name) {
    snprintf(out, 256, "language_model.%s", name);
}

/* Version 5: "model.x" is model.language_model.x, the output as ever. */
static void rename_newer(char out[256], const char *name) {
    const int inside = strncmp(name, "model.", 6) == 0;
    snprintf(out, 256, "%s%s", inside ? "model.language_model." : "", inside ? name + 6 : name);
}

static void rename_astray(char out[256], const char *name) {
    const int is_norm = strcmp(name, "model.norm.weight") == 0;
    snprintf(out, 256, "%s%s", is_norm ? "somewhere." : "language_model.", name);
}

/* Qwen 2 VL before version 4.52: as the language part alone, and the images' part beside it. */
static void rename_nothing(char out[256], const char *name) {
    snprintf(out, 256, "%s", name);
}

static void rename_text_model(char out[256], const char *name) {
    const int inside = strncmp(name, "model.", 6) == 0;
    snprintf(out, 256, "%s%s", inside ? "model.text_model." : "", inside ? name + 6 : name);
}

/* The config of a larger model; what its text_config leaves out is the default of its class. */
static json_t *wrap_config(const char *family, const char *wrapper, const char *const *left_out) {
    json_t *text = hf_directory_config(family);
    for (; *left_out; left_out++) assert_int_equal(json_object_del(text, *left_out), 0);
    return json_pack("{s:[s], s:s, s:{s:i, s:s}, s:i, s:o}", "architectures", wrapper, "model_type",
                     "larger", "vision_config", "hidden_size", 1152, "model_type", "siglip",
                     "image_token_index", 7, "text_config", text);
}

/* The same as it was saved once: all settings side by side. */
static json_t *flat_config(const char *family, const char *wrapper) {
    json_t *config = hf_directory_config(family);
    json_object_set_new(config, "architectures", json_pack("[s]", wrapper));
    json_object_set_new(config, "model_type", json_string("larger"));
    json_object_set_new(config, "vision_config", json_pack("{s:i}", "hidden_size", 1152));
    json_object_set_new(config, "vision_start_token_id", json_integer(3));
    return config;
}

/* Positions of text are equal in all three sections. */
static void add_sections(json_t *config, const char *type) {
    json_t *text = json_object_get(config, "text_config");
    if (!text) text = config;
    json_t *rope = json_object_get(text, "rope_parameters");
    if (!rope) json_object_set_new(text, "rope_scaling", rope = json_object());
    json_object_set_new(rope, "rope_type", json_string(type));
    json_object_set_new(rope, "mrope_section", json_pack("[i,i,i]", 2, 2, 2));
}

static qkv_result *run_directory(engine *e) {
    static const char *const captures[] = {"pattern", "logits", NULL};
    static const char *const variants[] = {"q@1.h0=scale:0.5", NULL};
    engine_open(e, hf_directory_path(), 1);
    return engine_execute(
        e, &(engine_run){
               .tokens = tokens, .n_tokens = N_TOKENS, .variants = variants, .captures = captures});
}

static void expect_same_run(const qkv_result *a, const qkv_result *b) {
    size_t variant, n = 0;
    qkv_site site;
    int32_t layer;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (; qkv_result_item(a, n, &variant, &site, &layer, &t); n++) {
        const qkv_tensor u = engine_tensor(b, variant, site, layer);
        assert_int_equal(tensor_count(&t), tensor_count(&u));
        if (!same_bits(t.data, u.data, tensor_count(&t)))
            fail_msg("%s of layer %d differs", qkv_site_name(site), (int)layer);
    }
    assert_true(n > 4);
}

static void convert_directory(const char *name) {
    qkv_error err;
    expect_ok(qkv_model_convert(hf_directory_path(), scratch_path(name), NULL, &err), &err, name);
}

static void expect_same_file(const char *a, const char *b) {
    char *first = NULL, *second = NULL;
    size_t n = 0, m = 0;
    assert_int_equal(qkv_read_file(&first, &n, scratch_path(a), (size_t)1 << 26, NULL), 0);
    assert_int_equal(qkv_read_file(&second, &m, scratch_path(b), (size_t)1 << 26, NULL), 0);
    assert_int_equal(n, m);
    assert_memory_equal(first, second, n);
    free(first);
    free(second);
}

static const struct {
    const char *family, *wrapper;
    const char *left_out[8];
    void (*rename)(char out[256], const char *name);
    const char *const *others;
    const char *notice;
    int is_flat;
    const char *sections; /* the type of RoPE that has them; NULL: there are none */
} wrapped[] = {
    {"gemma3",
     "Gemma3ForConditionalGeneration",
     {"architectures", "rms_norm_eps", "hidden_activation", "tie_word_embeddings"},
     rename_older,
     others,
     .notice =
         "only the language part of Gemma3ForConditionalGeneration is used; tensors left out: 2 of "
         "vision_tower, 1 of multi_modal_projector"},
    {"gemma3",
     "Gemma3ForConditionalGeneration",
     {"model_type"},
     rename_newer,
     newer_others,
     .notice =
         "only the language part of Gemma3ForConditionalGeneration is used; tensors left out: 1 of "
         "vision_tower, 1 of image_newline"},
    {"gemma4_e",
     "Gemma4ForConditionalGeneration",
     {"model_type", "rms_norm_eps", "rope_parameters", "tie_word_embeddings"},
     rename_newer,
     others,
     .is_flat = 0},
    {"mistral",
     "Mistral3ForConditionalGeneration",
     {"architectures"},
     rename_older,
     nothing,
     .notice = "only the language part of Mistral3ForConditionalGeneration is used"},
    {"llama", "LlavaForConditionalGeneration", {NULL}, rename_newer, others, .is_flat = 0},
    {"qwen2", "LlavaOnevisionForConditionalGeneration", {NULL}, rename_older, others, .is_flat = 0},
    {"qwen2", "InternVLForConditionalGeneration", {NULL}, rename_older, others, .is_flat = 0},
    {"llama",
     "SmolVLMForConditionalGeneration",
     {NULL},
     rename_text_model,
     connected,
     .is_flat = 0},
    {"qwen2",
     "Qwen2VLForConditionalGeneration",
     {"model_type"},
     rename_newer,
     visual,
     .notice =
         "only the language part of Qwen2VLForConditionalGeneration is used; tensors left out: 2 of "
         "visual",
     .sections = "mrope"},
    {"qwen2",
     "Qwen2_5_VLForConditionalGeneration",
     {NULL},
     rename_nothing,
     old_visual,
     .is_flat = 1,
     .sections = "mrope"},
    {"qwen3",
     "Qwen3VLForConditionalGeneration",
     {"model_type"},
     rename_newer,
     visual,
     .sections = "default"},
};

static void wrappers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrapped / sizeof *wrapped; i++) {
        engine alone, inside;
        json_t *config = hf_directory_config(wrapped[i].family);
        hf_directory_write_config(config);
        hf_directory_link_weights(wrapped[i].family);
        convert_directory("alone.gguf");
        qkv_result *expected = run_directory(&alone);
        assert_null(qkv_model_notice(alone.model, 0));
        assert_string_equal(alone.info->notices, "");
        json_decref(config);
        config = wrapped[i].is_flat
                     ? flat_config(wrapped[i].family, wrapped[i].wrapper)
                     : wrap_config(wrapped[i].family, wrapped[i].wrapper, wrapped[i].left_out);
        if (wrapped[i].sections) add_sections(config, wrapped[i].sections);
        hf_directory_write_config(config);
        hf_directory_wrap_weights(wrapped[i].family, wrapped[i].rename, wrapped[i].others);
        convert_directory("inside.gguf");
        qkv_result *actual = run_directory(&inside);
        expect_same_run(expected, actual);
        expect_same_file("alone.gguf", "inside.gguf");
        if (wrapped[i].notice)
            assert_string_equal(qkv_model_notice(inside.model, 0), wrapped[i].notice);
        assert_non_null(qkv_model_notice(inside.model, 0));
        assert_null(qkv_model_notice(inside.model, 1));
        qkv_result_free(expected);
        qkv_result_free(actual);
        engine_close(&alone);
        engine_close(&inside);
        json_decref(config);
    }
}

/* Settings without effect, inside and outside, are said in one line more. */
static void wrapper_settings(void **state) {
    (void)state;
    qkv_error err;
    qkv_model *model = NULL;
    json_t *config = wrap_config("gemma3", "Gemma3ForConditionalGeneration", nothing);
    json_object_set_new(config, "conversational", json_true());
    json_object_set_new(json_object_get(config, "text_config"), "a_note", json_string("x"));
    hf_directory_write_config(config);
    hf_directory_wrap_weights("gemma3", rename_older, others);
    expect_ok(qkv_model_open(&model, hf_directory_path(), &err), &err, "a wrapper with notes");
    assert_string_equal(qkv_model_notice(model, 1),
                        "config.json: settings that Gemma3ForConditionalGeneration does not have "
                        "were ignored: a_note, conversational");
    assert_non_null(strstr(qkv_model_get_info(model)->notices, "; config.json: settings"));
    assert_null(qkv_model_notice(model, 2));
    qkv_model_free(model);
    json_decref(config);
}

static void expect_refused(const json_t *config, const char *words) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    hf_directory_write_config(config);
    assert_true(qkv_model_open(&model, hf_directory_path(), &err) < 0);
    if (!strstr(err.message, words)) fail_msg("'%s' does not say '%s'", err.message, words);
}

/* What is not the language part's, and not known to be another's, is not left out in silence. */
static void refused_wrappers(void **state) {
    (void)state;
    static const char *const strange[] = {"spoken_tower.weight", NULL};
    static const char *const more[] = {"language_model.model.layers.0.self_attn.twist", NULL};
    json_t *config = wrap_config("gemma3", "Gemma3ForConditionalGeneration", nothing);
    hf_directory_wrap_weights("gemma3", rename_older, strange);
    expect_refused(config, "tensor spoken_tower.weight is not part of");
    hf_directory_wrap_weights("gemma3", rename_older, more);
    expect_refused(config, "layers.0.self_attn.twist is not part of");
    hf_directory_wrap_weights("gemma3", rename_astray, nothing);
    expect_refused(config, "somewhere.model.norm.weight is not part of");
    json_object_set_new(config, "text_config", json_null());
    expect_refused(config, "without an object text_config");
    json_object_set_new(config, "text_config", json_pack("{s:s}", "model_type", "bloom"));
    expect_refused(config, "language part of type 'bloom' is not supported");
    json_decref(config);
}

/* ---- activations ---- */

static const struct {
    const char *family, *setting, *name;
} activations[] = {
    {"gpt_neox", "hidden_act", "gelu_fast"}, /* GPT-NeoX 20B */
    {"gpt_neox", "hidden_act", "gelu_python"}, {"gpt_neox_seq", "hidden_act", "silu"},
    {"gpt2", "activation_function", "gelu"},   {"phi", "hidden_act", "gelu_fast"},
    {"llama", "hidden_act", "gelu_new"},       {"falcon", "activation", "gelu_pytorch_tanh"},
};

/* Through the file that it is converted to, which the reference reads with its own code. */
static void other_activations(void **state) {
    (void)state;
    static const char *const captures[] = {"logits", NULL};
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        json_t *config = hf_directory_config(activations[i].family);
        json_object_set_new(config, activations[i].setting, json_string(activations[i].name));
        hf_directory_write_config(config);
        hf_directory_link_weights(activations[i].family);
        convert_directory("converted.gguf");
        ref_model *m = ref_model_load(scratch_path("converted.gguf"));
        ref_run *r = ref_forward(m, tokens, (int)N_TOKENS, NULL, 0, NULL);
        for (int from_file = 0; from_file < 2; from_file++) {
            engine e;
            engine_open(&e, from_file ? scratch_path("converted.gguf") : hf_directory_path(), 1);
            qkv_result *result = engine_execute(
                &e, &(engine_run){.tokens = tokens, .n_tokens = N_TOKENS, .captures = captures});
            const qkv_tensor t = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
            const difference d =
                compare_to_doubles(t.data, r->site[QKV_SITE_LOGITS][0], tensor_count(&t));
            if (d.max > 2e-5 * d.scale)
                fail_msg("%s with %s: %g", activations[i].family, activations[i].name, d.max);
            qkv_result_free(result);
            engine_close(&e);
        }
        ref_run_free(r);
        ref_model_free(m);
        json_decref(config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrappers),
        cmocka_unit_test(wrapper_settings),
        cmocka_unit_test(refused_wrappers),
        cmocka_unit_test(other_activations),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
