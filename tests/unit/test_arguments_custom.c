/* Functions as edits, weights and hook names called with NULL and with what is out of range: see test_arguments.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "qkv/qkv.h"
#include "run/run.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static const int32_t TOKENS[] = {5, 9, 40, 77};
static qkv_error err;

static int nothing(void *user, const qkv_custom_call *call, qkv_error *error) {
    (void)user;
    (void)call;
    (void)error;
    return QKV_OK;
}

static void customs(void **state) {
    (void)state;
    engine e;
    qkv_plan *plan = NULL;
    qkv_custom_edit custom = QKV_CUSTOM_EDIT_INIT;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    OK(qkv_plan_new(&plan, e.model, TOKENS, 4, &err));
    custom.name = "f";
    custom.apply = nothing;
    REFUSED(qkv_plan_add_custom(NULL, &custom, &err));
    REFUSED(qkv_plan_add_custom(plan, NULL, &err));
    REFUSED(qkv_plan_add_custom(plan, &(qkv_custom_edit){0}, &err));
    static const char *const bad[] = {NULL, "", "a b", "a+b", "a=b", "a:b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        custom.name = bad[i];
        REFUSED(qkv_plan_add_custom(plan, &custom, &err));
    }
    custom.name = "f";
    custom.apply = NULL;
    REFUSED(qkv_plan_add_custom(plan, &custom, &err));
    REFUSED(qkv_plan_add_customs(NULL, &custom, 1, &err));
    REFUSED(qkv_plan_add_customs(plan, NULL, 1, &err));
    REFUSED(qkv_plan_add_customs(plan, &custom, 1, &err));
    OK(qkv_plan_add_customs(plan, NULL, 0, &err));
    assert_null(qkv_plan_custom(NULL, 0));
    assert_null(qkv_plan_custom(plan, 0));
    qkv_plan_free(plan);
    engine_close(&e);
}

static void edit_data(void **state) {
    (void)state;
    engine e;
    qkv_plan *plan = NULL;
    size_t n_tokens = 0;
    qkv_edit_data *data = NULL, *other = NULL;
    const float values[] = {1, 2, 3, 4};
    const int64_t shape[] = {4, 1, 1}, empty[] = {0}, huge[] = {INT64_MAX, INT64_MAX};
    qkv_vector_info info = QKV_VECTOR_INFO_INIT;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    OK(qkv_plan_new(&plan, e.model, TOKENS, 4, &err));
    REFUSED(qkv_edit_data_new(NULL, &err));
    OK(qkv_edit_data_new(&data, &err));
    OK(qkv_edit_data_new(&other, &err));
    REFUSED(qkv_edit_data_add_vector(NULL, "v", values, shape, 1, &err));
    REFUSED(qkv_edit_data_add_vector(data, NULL, values, shape, 1, &err));
    REFUSED(qkv_edit_data_add_vector(data, "v", NULL, shape, 1, &err));
    REFUSED(qkv_edit_data_add_vector(data, "v", values, NULL, 1, &err));
    REFUSED(qkv_edit_data_add_vector(data, "v", values, shape, 0, &err));
    REFUSED(qkv_edit_data_add_vector(data, "v", values, shape, 4, &err));
    REFUSED(qkv_edit_data_add_vector(data, "v", values, empty, 1, &err));
    REFUSED(qkv_edit_data_add_vector(data, "v", values, huge, 2, &err));
    static const char *const bad[] = {"", "a b", "a+b", "a,b", "a:b", "a/b", "a\nb"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(qkv_edit_data_add_vector(data, bad[i], values, shape, 1, &err));
    OK(qkv_edit_data_add_vector(data, "v", values, shape, 1, &err));
    REFUSED(qkv_edit_data_add_vector(data, "v", values, shape, 1, &err));
    static const int32_t tokens[] = {1, 5, 6};
    const int32_t *const prompts[] = {tokens, tokens, NULL};
    const size_t lengths[] = {3, 2, 2}, nothing[] = {3, 0};
    REFUSED(qkv_edit_data_set_prompts(NULL, prompts, lengths, 2, &err));
    REFUSED(qkv_edit_data_set_prompts(data, NULL, lengths, 2, &err));
    REFUSED(qkv_edit_data_set_prompts(data, prompts, NULL, 2, &err));
    REFUSED(qkv_edit_data_set_prompts(data, prompts, lengths, 0, &err));
    REFUSED(qkv_edit_data_set_prompts(data, prompts, lengths, 3, &err));
    REFUSED(qkv_edit_data_set_prompts(data, prompts, nothing, 2, &err));
    assert_null(qkv_edit_data_prompt(data, 0, &n_tokens));
    assert_null(qkv_edit_data_prompts_hash(data));
    OK(qkv_edit_data_set_prompts(data, prompts, lengths, 2, &err));
    REFUSED(qkv_edit_data_set_prompts(data, prompts, lengths, 2, &err));
    assert_int_equal(qkv_edit_data_prompt(data, 1, NULL)[1], 5);
    assert_non_null(qkv_edit_data_prompt(data, 1, &n_tokens));
    assert_int_equal(n_tokens, 2);
    assert_null(qkv_edit_data_prompt(data, 2, &n_tokens));
    assert_int_equal(n_tokens, 0);
    assert_null(qkv_edit_data_prompt(NULL, 0, NULL));
    assert_int_equal(strlen(qkv_edit_data_prompts_hash(data)), 32);
    assert_null(qkv_edit_data_prompts_hash(NULL));
    REFUSED(qkv_edit_data_read_vectors(NULL, "q@0=zero", &err));
    REFUSED(qkv_edit_data_read_vectors(data, NULL, &err));
    assert_int_equal(qkv_edit_data_vector(NULL, 0, &info), 0);
    assert_int_equal(qkv_edit_data_vector(data, 0, NULL), 0);
    assert_int_equal(qkv_edit_data_vector(data, 1, &info), 0);
    assert_int_equal(qkv_edit_data_vector(data, 0, &(qkv_vector_info){0}), 0);
    REFUSED(qkv_plan_set_edit_data(NULL, data, &err));
    OK(qkv_plan_set_edit_data(plan, NULL, &err));
    OK(qkv_plan_set_edit_data(plan, data, &err));
    OK(qkv_plan_set_edit_data(plan, data, &err));
    REFUSED(qkv_plan_set_edit_data(plan, other, &err));
    assert_null(qkv_result_edit_note(NULL, 0, 0));
    qkv_edit_data_free(NULL);
    qkv_edit_data_free(data);
    qkv_edit_data_free(other);
    qkv_plan_free(plan);
    engine_close(&e);
}

static void weights(void **state) {
    (void)state;
    engine e;
    float value;
    qkv_weight w = QKV_WEIGHT_INIT, unsized = {0};
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    assert_int_equal(qkv_weight_get(NULL, 0, &w), 0);
    assert_int_equal(qkv_weight_get(e.model, 0, NULL), 0);
    assert_int_equal(qkv_weight_get(e.model, 0, &unsized), 0);
    assert_int_equal(qkv_weight_get(e.model, 100000, &w), 0);
    REFUSED(qkv_weight_find(NULL, "q", 0, &w, &err));
    REFUSED(qkv_weight_find(e.model, NULL, 0, &w, &err));
    REFUSED(qkv_weight_find(e.model, "q", 0, &unsized, &err));
    REFUSED(qkv_weight_find(e.model, "q", -2, &w, &err));
    REFUSED(qkv_weight_read(NULL, "q", 0, 0, 1, &value, &err));
    REFUSED(qkv_weight_read(e.model, NULL, 0, 0, 1, &value, &err));
    REFUSED(qkv_weight_read(e.model, "q", 0, 0, 1, NULL, &err));
    REFUSED(qkv_weight_read(e.model, "q", 0, -1, 1, &value, &err));
    REFUSED(qkv_weight_read(e.model, "q", 0, 0, -1, &value, &err));
    REFUSED(qkv_weight_read(e.model, "q", 0, 32, 1, &value, &err));
    REFUSED(qkv_weight_read(e.model, "q", 0, 1, INT64_MAX, &value, &err));
    OK(qkv_weight_read(e.model, "q", 0, 32, 0, NULL, &err));
    engine_close(&e);
}

static void hooks(void **state) {
    (void)state;
    char out[QKV_HOOK_SIZE] = "x";
    qkv_site site = QKV_SITE_COUNT;
    REFUSED(qkv_hook_translate(NULL, "blocks.3.attn.hook_q", &err));
    REFUSED(qkv_hook_translate(out, NULL, &err));
    assert_string_equal(out, "");
    static const char *const bad[] = {"",
                                      "q@3",
                                      "blocks",
                                      "blocks.3",
                                      "blocks.3.",
                                      "blocks..attn.hook_q",
                                      "blocks.-.attn.hook_q",
                                      "blocks.--1.attn.hook_q",
                                      "blocks.-*.attn.hook_q",
                                      "blocks.-1234567890.attn.hook_q",
                                      "blocks.1234567890.attn.hook_q",
                                      "blocks.3.attn.hook_result",
                                      "hook_embed",
                                      "attn.hook_q",
                                      "ln_final.hook_scale",
                                      "ln_final.hook_normalized[-1]",
                                      "blocks.3.ln_final.hook_normalized",
                                      "blocks.3.hook_resid_mid"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(qkv_hook_translate(out, bad[i], &err));
    REFUSED(qkv_hook_translate(out, "blocks.3.attn.hook_patern", &err));
    assert_non_null(strstr(err.message, "attn.hook_pattern"));
    OK(qkv_hook_translate(out, "blocks.3.attn.hook_q", &err));
    assert_string_equal(out, "q@3");
    OK(qkv_hook_translate(out, "blocks.*.hook_mlp_out", &err));
    assert_string_equal(out, "mlp_out@*");
    OK(qkv_hook_translate(out, "blocks.-1.hook_resid_post", &err));
    assert_string_equal(out, "resid_post@-1");
    OK(qkv_hook_translate(out, "ln_final.hook_normalized", &err));
    assert_string_equal(out, "final_norm");
    size_t n = 0;
    unsigned sites = 0; /* all but the logits, and gates, which have no hook: each once */
    for (; qkv_hook_name(n, &site); n++) {
        assert_true(site != QKV_SITE_LOGITS && site != QKV_SITE_GATE && (sites >> site & 1) == 0);
        sites |= 1u << site;
    }
    assert_int_equal(n, QKV_SITE_COUNT - 2);
    assert_null(qkv_hook_name(n, NULL));
    assert_string_equal(qkv_hook_name(0, NULL), "hook_resid_pre");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(customs), cmocka_unit_test(edit_data),
                                       cmocka_unit_test(weights), cmocka_unit_test(hooks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
