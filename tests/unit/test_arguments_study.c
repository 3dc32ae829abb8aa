/*
 * As test_arguments.c: every public function with arguments that nobody should give.
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
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static qkv_error err;

static struct {
    engine e;
    qkv_study *study;
    qkv_prompt prompt;
    qkv_study_inputs inputs;
} it;

static int make_all(void **state) {
    (void)state;
    engine_open(&it.e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    it.prompt = (qkv_prompt)QKV_PROMPT_INIT;
    it.prompt.text = "abc";
    it.inputs = (qkv_study_inputs)QKV_STUDY_INPUTS_INIT;
    it.inputs.session = it.e.session;
    it.inputs.prompts = &it.prompt;
    it.inputs.n_prompts = 1;
    OK(qkv_study_make(&it.study, "lens", &it.inputs, NULL, &err));
    return 0;
}

static int free_all(void **state) {
    qkv_study_free(it.study);
    engine_close(&it.e);
    return scratch_clean(state);
}

static void test_make(void **state) {
    (void)state;
    qkv_study *out = NULL;
    qkv_study_inputs other = it.inputs, none = it.inputs, sizeless = it.inputs;
    REFUSED(qkv_study_make(NULL, "lens", &it.inputs, NULL, &err));
    REFUSED(qkv_study_make(&out, NULL, &it.inputs, NULL, &err));
    REFUSED(qkv_study_make(&out, "lens", NULL, NULL, &err));
    REFUSED(qkv_study_make(&out, "nothing", &it.inputs, NULL, &err));
    assert_int_not_equal(qkv_study_make(&out, "lens", &it.inputs, "{", &err), QKV_OK);
    assert_int_not_equal(qkv_study_make(&out, "lens", &it.inputs, "[]", &err), QKV_OK);
    assert_int_not_equal(qkv_study_make(&out, "lens", &it.inputs, "{\"x\": 1}", &err), QKV_OK);
    assert_int_not_equal(qkv_study_make(&out, "lens", &it.inputs, "{\"top\": -1}", &err), QKV_OK);
    assert_int_not_equal(qkv_study_make(&out, "lens", &it.inputs, "{\"top\": \"a\"}", &err),
                         QKV_OK);
    other.other = it.e.session;
    REFUSED(qkv_study_make(&out, "lens", &other, NULL, &err));
    none.n_prompts = 0;
    REFUSED(qkv_study_make(&out, "lens", &none, NULL, &err));
    none = it.inputs;
    none.prompts = NULL;
    REFUSED(qkv_study_make(&out, "lens", &none, NULL, &err));
    none = it.inputs;
    none.session = NULL;
    REFUSED(qkv_study_make(&out, "lens", &none, NULL, &err));
    sizeless.size = 0;
    REFUSED(qkv_study_make(&out, "lens", &sizeless, NULL, &err));
    assert_null(out);
    qkv_study_free(NULL);
    assert_non_null(qkv_study_kind_name(0));
    assert_non_null(qkv_study_kind_title(0));
    assert_null(qkv_study_kind_name(1000));
    assert_null(qkv_study_kind_title(1000));
    size_t least = 9, most = 9;
    assert_int_equal(qkv_study_kind_prompts(NULL, &least, &most), 0);
    assert_int_equal(qkv_study_kind_prompts("nothing", &least, &most), 0);
    assert_int_equal(qkv_study_kind_prompts("lens", NULL, &most), 0);
    assert_int_equal(qkv_study_kind_prompts("lens", &least, NULL), 0);
    assert_int_equal(qkv_study_kind_prompts("lens", &least, &most), 1);
    assert_true(least == 1 && most == 1);
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
    qkv_study_look look = QKV_STUDY_LOOK_INIT;
    REFUSED(qkv_study_check_look(NULL, &look, &err));
    REFUSED(qkv_study_write(NULL, "a.png", NULL, &err));
    REFUSED(qkv_study_write(it.study, NULL, NULL, &err));
    REFUSED(qkv_study_write(it.study, scratch_path("a.txt"), NULL, &err));
    REFUSED(qkv_study_render(NULL, "png", NULL, &bytes, &n, &err));
    REFUSED(qkv_study_render(it.study, NULL, NULL, &bytes, &n, &err));
    REFUSED(qkv_study_render(it.study, "png", NULL, NULL, &n, &err));
    REFUSED(qkv_study_render(it.study, "png", NULL, &bytes, NULL, &err));
    REFUSED(qkv_study_render(it.study, "gif", NULL, &bytes, &n, &err));
    look.picture = "nothing";
    REFUSED(qkv_study_check_look(it.study, &look, &err));
    REFUSED(qkv_study_render(it.study, "png", &look, &bytes, &n, &err));
    look = (qkv_study_look)QKV_STUDY_LOOK_INIT;
    look.table = "nothing";
    REFUSED(qkv_study_render(it.study, "csv", &look, &bytes, &n, &err));
    look = (qkv_study_look)QKV_STUDY_LOOK_INIT;
    look.colormap = (qkv_colormap)99;
    REFUSED(qkv_study_check_look(it.study, &look, &err));
    look = (qkv_study_look)QKV_STUDY_LOOK_INIT;
    look.dpi = NAN;
    REFUSED(qkv_study_check_look(it.study, &look, &err));
    look.size = 0;
    REFUSED(qkv_study_check_look(it.study, &look, &err));
    assert_null(bytes);
    OK(qkv_study_check_look(it.study, NULL, &err));
    OK(qkv_study_render(it.study, "csv", NULL, &bytes, &n, &err));
    qkv_bytes_free(bytes);
}

static void test_reproduction(void **state) {
    (void)state;
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    qkv_study_look look = QKV_STUDY_LOOK_INIT;
    qkv_reproduction_difference difference = QKV_REPRODUCTION_DIFFERENCE_INIT;
    qkv_reproduction *r = NULL;
    qkv_study *again = NULL;
    qkv_figure *figure = NULL;
    OK(qkv_study_get_info(it.study, &info, &err));
    OK(qkv_reproduction_read(&r, info.recipe, strlen(info.recipe), "recipe", &err));
    REFUSED(qkv_reproduction_study(NULL, &again, it.e.session, NULL, &err));
    REFUSED(qkv_reproduction_study(r, NULL, it.e.session, NULL, &err));
    REFUSED(qkv_reproduction_study(r, &again, NULL, NULL, &err));
    REFUSED(qkv_reproduction_study(r, &again, it.e.session, it.e.session, &err));
    REFUSED(qkv_reproduction_figure(r, &figure, it.e.session, &err));
    REFUSED(qkv_reproduction_look(NULL, &look, &err));
    REFUSED(qkv_reproduction_look(r, NULL, &err));
    OK(qkv_reproduction_look(r, &look, &err));
    OK(qkv_reproduction_study(r, &again, it.e.session, NULL, &err));
    REFUSED(qkv_reproduction_compare_study(NULL, again, &difference, &err));
    REFUSED(qkv_reproduction_compare_study(r, NULL, &difference, &err));
    REFUSED(qkv_reproduction_compare_study(r, again, NULL, &err));
    OK(qkv_reproduction_compare_study(r, again, &difference, &err));
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
        cmocka_unit_test(test_make),    cmocka_unit_test(test_look),
        cmocka_unit_test(test_files),   cmocka_unit_test(test_reproduction),
        cmocka_unit_test(test_unembed),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
