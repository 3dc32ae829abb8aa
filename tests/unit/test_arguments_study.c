/*
 * As test_arguments.c: every public function with arguments that no caller should give.
 *
 * Here: studies, and states on their way to the vocabulary.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "qkv/qkv.h"
#include "run/unembed.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static qkv_error err;

static struct {
    engine e;
    qkv_study *study;
    qkv_prompt prompt;
} it;

static int make_all(void **state) {
    (void)state;
    engine_open(&it.e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    it.prompt = (qkv_prompt)QKV_PROMPT_INIT;
    it.prompt.text = "abc";
    OK(qkv_study_new(&it.study, "lens", &err));
    OK(qkv_study_add_prompt(it.study, &it.prompt, &err));
    OK(qkv_study_run(it.study, it.e.session, NULL, &err));
    return 0;
}

static int free_all(void **state) {
    qkv_study_free(it.study);
    engine_close(&it.e);
    return scratch_clean(state);
}

static void test_kinds(void **state) {
    (void)state;
    qkv_study_kind kind = QKV_STUDY_KIND_INIT, sizeless = {0};
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    assert_non_null(qkv_study_kind_name(0));
    assert_null(qkv_study_kind_name(1000));
    REFUSED(qkv_study_get_kind(NULL, &kind, &err));
    REFUSED(qkv_study_get_kind("lens", NULL, &err));
    REFUSED(qkv_study_get_kind("lens", &sizeless, &err));
    REFUSED(qkv_study_get_kind("nothing", &kind, &err));
    OK(qkv_study_get_kind("lens", &kind, &err));
    assert_true(kind.least_prompts == 1 && kind.most_prompts == 1 && kind.n_models == 1);
    assert_int_equal(qkv_study_get_field(NULL, 0, &field), 0);
    assert_int_equal(qkv_study_get_field("nothing", 0, &field), 0);
    assert_int_equal(qkv_study_get_field("lens", 1000, &field), 0);
    assert_int_equal(qkv_study_get_field("lens", 0, NULL), 0);
    assert_int_equal(qkv_study_get_field("lens", 0, &field), 1);
}

/* Every kind says what it is, and every field has a sentence, a word for its value and bounds that can be. */
static void test_sentences(void **state) {
    (void)state;
    const char *name;
    for (size_t k = 0; (name = qkv_study_kind_name(k)); k++) {
        qkv_study_kind kind = QKV_STUDY_KIND_INIT;
        qkv_study_field f = QKV_STUDY_FIELD_INIT;
        OK(qkv_study_get_kind(name, &kind, &err));
        if (!kind.title || !kind.description || !kind.examples || !strstr(kind.examples, name))
            fail_msg("%s has no title, description or example", name);
        for (size_t i = 0; qkv_study_get_field(name, i, &f); i++) {
            const int has_value = f.type != QKV_FIELD_FLAG && f.type != QKV_FIELD_WORD;
            if (!f.help || strlen(f.help) < 10 || f.help[strlen(f.help) - 1] == '.')
                fail_msg("%s: %s has no sentence, or a full stop", name, f.name);
            if (has_value != (f.value != NULL) || (f.type == QKV_FIELD_WORD) != (f.words != NULL))
                fail_msg("%s: %s has no word for its value, or one too many", name, f.name);
            if (f.least > f.most) fail_msg("%s: %s cannot be anything", name, f.name);
        }
    }
}

static void test_make(void **state) {
    (void)state;
    static const char *const wrong[] = {"{", "[]", "{\"x\": 1}", "{\"top\": -1}",
                                        "{\"top\": \"a\"}"};
    qkv_study *out = NULL;
    qkv_sweep *sweep = NULL;
    qkv_prompt sizeless = it.prompt, none = QKV_PROMPT_INIT;
    const char *const words[] = {"qkv", "lens"};
    REFUSED(qkv_study_new(NULL, "lens", &err));
    REFUSED(qkv_study_new(&out, NULL, &err));
    REFUSED(qkv_study_new(&out, "nothing", &err));
    assert_null(out);
    REFUSED(qkv_study_load(NULL, "{\"study\": \"lens\"}", &err));
    REFUSED(qkv_study_load(&out, NULL, &err));
    assert_int_equal(qkv_study_load(&out, "[]", &err), QKV_ERR_FORMAT);
    assert_int_equal(qkv_study_load(&out, "{\"study\": \"lens\", \"sweep\": {}}", &err),
                     QKV_ERR_FORMAT);
    assert_null(out);
    OK(qkv_study_load(&out, "{\"study\": \"lens\", \"options\": {\"top\": 2}}", &err));
    qkv_study_free(out);
    OK(qkv_study_new(&out, "lens", &err));
    REFUSED(qkv_study_set(NULL, "top", "3", &err));
    REFUSED(qkv_study_set(out, NULL, "3", &err));
    assert_int_not_equal(qkv_study_set(out, "nothing", "3", &err), QKV_OK);
    REFUSED(qkv_study_set(out, "top", "three", &err));
    REFUSED(qkv_study_set(out, "top", "1000", &err));
    REFUSED(qkv_study_set(out, "heads", "perhaps", &err));
    REFUSED(qkv_study_set(out, "colormap", "purple", &err));
    REFUSED(qkv_study_set(out, "width", "85", &err));
    OK(qkv_study_set(out, "width", "85mm", &err));
    OK(qkv_study_set(out, "width", NULL, &err));
    REFUSED(qkv_study_set_json(NULL, "{}", &err));
    REFUSED(qkv_study_set_json(out, NULL, &err));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(qkv_study_set_json(out, wrong[i], &err), QKV_OK);
    REFUSED(qkv_study_add_prompt(NULL, &it.prompt, &err));
    REFUSED(qkv_study_add_prompt(out, NULL, &err));
    REFUSED(qkv_study_add_prompt(out, &none, &err));
    sizeless.size = 0;
    REFUSED(qkv_study_add_prompt(out, &sizeless, &err));
    REFUSED(qkv_study_set_command(NULL, words, 2, &err));
    REFUSED(qkv_study_set_command(out, NULL, 2, &err));
    REFUSED(qkv_study_check(NULL, &err));
    REFUSED(qkv_study_check(out, &err)); /* without a prompt */
    REFUSED(qkv_study_run(out, it.e.session, NULL, &err));
    OK(qkv_study_add_prompt(out, &it.prompt, &err));
    OK(qkv_study_check(out, &err));
    REFUSED(qkv_study_run(NULL, it.e.session, NULL, &err));
    REFUSED(qkv_study_run(out, NULL, NULL, &err));
    REFUSED(qkv_study_run(out, it.e.session, it.e.session, &err));
    REFUSED(qkv_study_make_sweep(NULL, it.e.model, &sweep, &err));
    REFUSED(qkv_study_make_sweep(out, NULL, &sweep, &err));
    REFUSED(qkv_study_make_sweep(out, it.e.model, NULL, &err));
    REFUSED(qkv_study_make_sweep(out, it.e.model, &sweep, &err)); /* it has no cells */
    qkv_study_free(out);
    qkv_study_free(NULL);
}

/* After the run, what was computed stays as it was asked for; how it is drawn may change. */
static void test_after(void **state) {
    (void)state;
    REFUSED(qkv_study_set(it.study, "top", "3", &err));
    REFUSED(qkv_study_set_json(it.study, "{\"answer\": \"a\"}", &err));
    REFUSED(qkv_study_add_prompt(it.study, &it.prompt, &err));
    REFUSED(qkv_study_run(it.study, it.e.session, NULL, &err));
    OK(qkv_study_set(it.study, "dpi", "90", &err));
    OK(qkv_study_set(it.study, "dpi", NULL, &err));
}

static void test_look(void **state) {
    (void)state;
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    qkv_study_table table = QKV_STUDY_TABLE_INIT;
    double number;
    const char *text;
    REFUSED(qkv_study_get_info(NULL, &info, &err));
    REFUSED(qkv_study_get_info(it.study, NULL, &err));
    REFUSED(qkv_study_get_table(NULL, 0, &table, &err));
    REFUSED(qkv_study_get_table(it.study, 0, NULL, &err));
    REFUSED(qkv_study_get_table(it.study, 1000, &table, &err));
    OK(qkv_study_get_table(it.study, 0, &table, &err));
    REFUSED(qkv_study_get_value(NULL, 0, 0, 0, &number, &text, &err));
    REFUSED(qkv_study_get_value(it.study, 0, 0, 0, NULL, &text, &err));
    REFUSED(qkv_study_get_value(it.study, 0, 0, 0, &number, NULL, &err));
    REFUSED(qkv_study_get_value(it.study, 1000, 0, 0, &number, &text, &err));
    REFUSED(qkv_study_get_value(it.study, 0, table.n_rows, 0, &number, &text, &err));
    REFUSED(qkv_study_get_value(it.study, 0, 0, table.n_columns, &number, &text, &err));
    assert_null(qkv_study_column(NULL, 0, 0));
    assert_null(qkv_study_column(it.study, 1000, 0));
    assert_null(qkv_study_column(it.study, 0, 1000));
    assert_null(qkv_study_picture_name(NULL, 0));
    assert_null(qkv_study_picture_name(it.study, 1000));
    assert_null(qkv_study_picture_title(NULL, 0));
    assert_null(qkv_study_picture_title(it.study, 1000));
    assert_null(qkv_study_get_note(NULL, 0));
    assert_null(qkv_study_get_note(it.study, 1000));
    assert_null(qkv_study_warning(NULL, 0));
    assert_null(qkv_study_warning(it.study, 1000));
}

static void test_files(void **state) {
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    qkv_study *fresh = NULL;
    REFUSED(qkv_study_check_look(NULL, &err));
    REFUSED(qkv_study_write(NULL, "a.png", &err));
    REFUSED(qkv_study_write(it.study, NULL, &err));
    REFUSED(qkv_study_write(it.study, scratch_path("a.txt"), &err));
    REFUSED(qkv_study_render(NULL, "png", &bytes, &n, &err));
    REFUSED(qkv_study_render(it.study, NULL, &bytes, &n, &err));
    REFUSED(qkv_study_render(it.study, "png", NULL, &n, &err));
    REFUSED(qkv_study_render(it.study, "png", &bytes, NULL, &err));
    REFUSED(qkv_study_render(it.study, "gif", &bytes, &n, &err));
    OK(qkv_study_set(it.study, "picture", "nothing", &err));
    REFUSED(qkv_study_check_look(it.study, &err));
    REFUSED(qkv_study_render(it.study, "png", &bytes, &n, &err));
    OK(qkv_study_set_json(it.study, "{\"picture\": null, \"table\": \"nothing\"}", &err));
    REFUSED(qkv_study_render(it.study, "csv", &bytes, &n, &err));
    OK(qkv_study_set(it.study, "table", NULL, &err));
    OK(qkv_study_new(&fresh, "lens", &err));
    REFUSED(qkv_study_render(fresh, "csv", &bytes, &n, &err)); /* it has not run */
    qkv_study_free(fresh);
    assert_null(bytes);
    OK(qkv_study_check_look(it.study, &err));
    OK(qkv_study_render(it.study, "csv", &bytes, &n, &err));
    qkv_bytes_free(bytes);
}

static void test_reproduction(void **state) {
    (void)state;
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    qkv_reproduction_difference difference = QKV_REPRODUCTION_DIFFERENCE_INIT;
    qkv_reproduction *r = NULL;
    qkv_study *again = NULL;
    OK(qkv_study_get_info(it.study, &info, &err));
    OK(qkv_reproduction_read(&r, info.recipe, strlen(info.recipe), "recipe", &err));
    REFUSED(qkv_reproduction_study(NULL, &again, it.e.session, NULL, &err));
    REFUSED(qkv_reproduction_study(r, NULL, it.e.session, NULL, &err));
    REFUSED(qkv_reproduction_study(r, &again, NULL, NULL, &err));
    REFUSED(qkv_reproduction_study(r, &again, it.e.session, it.e.session, &err));
    OK(qkv_reproduction_study(r, &again, it.e.session, NULL, &err));
    OK(qkv_study_get_info(again, &info, &err));
    REFUSED(qkv_reproduction_compare(NULL, info.recipe, &difference, &err));
    REFUSED(qkv_reproduction_compare(r, NULL, &difference, &err));
    REFUSED(qkv_reproduction_compare(r, info.recipe, NULL, &err));
    OK(qkv_reproduction_compare(r, info.recipe, &difference, &err));
    assert_int_equal(difference.same_bits, 1);
    qkv_study_free(again);
    qkv_reproduction_free(r);
}

static void test_unembed(void **state) {
    (void)state;
    const qkv_model_info *info = qkv_model_get_info(it.e.model);
    float *x = calloc((size_t)(info->n_embd + info->n_vocab), sizeof *x);
    double *d = calloc((size_t)(info->n_embd + info->n_head), sizeof *d), offset;
    assert_true(x && d);
    float *logits = x + info->n_embd;
    double *parts = d + info->n_embd;
    REFUSED(qkv_unembed(NULL, x, 1, logits, &err));
    REFUSED(qkv_unembed(it.e.session, NULL, 1, logits, &err));
    REFUSED(qkv_unembed(it.e.session, x, 1, NULL, &err));
    OK(qkv_unembed(it.e.session, x, 0, logits, &err));
    REFUSED(qkv_unembed_direction(NULL, x, 0, d, &offset, &err));
    REFUSED(qkv_unembed_direction(it.e.model, NULL, 0, d, &offset, &err));
    REFUSED(qkv_unembed_direction(it.e.model, x, 0, NULL, &offset, &err));
    REFUSED(qkv_unembed_direction(it.e.model, x, 0, d, NULL, &err));
    REFUSED(qkv_unembed_direction(it.e.model, x, -1, d, &offset, &err));
    REFUSED(qkv_unembed_direction(it.e.model, x, info->n_vocab, d, &offset, &err));
    REFUSED(qkv_unembed_heads(NULL, 0, x, d, parts, &offset, &err));
    REFUSED(qkv_unembed_heads(it.e.model, 0, NULL, d, parts, &offset, &err));
    REFUSED(qkv_unembed_heads(it.e.model, 0, x, NULL, parts, &offset, &err));
    REFUSED(qkv_unembed_heads(it.e.model, 0, x, d, NULL, &offset, &err));
    REFUSED(qkv_unembed_heads(it.e.model, 0, x, d, parts, NULL, &err));
    REFUSED(qkv_unembed_heads(it.e.model, -1, x, d, parts, &offset, &err));
    REFUSED(qkv_unembed_heads(it.e.model, info->n_layer, x, d, parts, &offset, &err));
    assert_true(qkv_unembed_cap(NULL, 3.0) == 3.0);
    free(x);
    free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_make),         cmocka_unit_test(test_after),
        cmocka_unit_test(test_look),         cmocka_unit_test(test_files),
        cmocka_unit_test(test_reproduction), cmocka_unit_test(test_unembed),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
