/*
 * Every public function is called with NULL in place of each pointer, with indices that are out of
 * range and with structs that have no size: that is an error, or nothing found, and never a crash.
 *
 * Here: comparisons of two models.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/compare.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static qkv_error err;
static const int32_t tokens[] = {5, 6, 7};

static void test_new(void **state) {
    const engine *e = *state;
    qkv_compare *compare = (qkv_compare *)1;
    REFUSED(qkv_compare_new(NULL, e->model, e->model, NULL, &err));
    REFUSED(qkv_compare_new(&compare, NULL, e->model, NULL, &err));
    assert_null(compare);
    REFUSED(qkv_compare_new(&compare, e->model, NULL, NULL, &err));
    REFUSED(qkv_compare_new(&compare, e->model, e->model, &(qkv_compare_options){0}, &err));
    qkv_compare_free(NULL);
}

static void test_add(void **state) {
    const engine *e = *state;
    qkv_session *s = e->session;
    qkv_compare *compare = NULL;
    qkv_compared out = QKV_COMPARED_INIT;
    OK(qkv_compare_new(&compare, e->model, e->model, NULL, &err));
    REFUSED(qkv_compare_add(NULL, s, s, tokens, 3, NULL, &err));
    REFUSED(qkv_compare_add(compare, NULL, s, tokens, 3, NULL, &err));
    REFUSED(qkv_compare_add(compare, s, NULL, tokens, 3, NULL, &err));
    REFUSED(qkv_compare_add(compare, s, s, NULL, 3, NULL, &err));
    REFUSED(qkv_compare_add(compare, s, s, tokens, 0, NULL, &err));
    REFUSED(qkv_compare_add(compare, s, s, tokens, 3, &(qkv_compared){0}, &err));
    assert_int_equal(qkv_compare_get(compare, &out), 1);
    assert_int_equal(out.n_prompts, 0);
    OK(qkv_compare_add(compare, s, s, tokens, 3, &out, &err));
    assert_int_equal(out.n_prompts, 1);
    qkv_compare_free(compare);
}

static void test_results(void **state) {
    const engine *e = *state;
    qkv_compare *compare = NULL;
    qkv_compared out = QKV_COMPARED_INIT;
    qkv_compare_flip flip = QKV_COMPARE_FLIP_INIT;
    OK(qkv_compare_new(&compare, e->model, e->model, NULL, &err));
    OK(qkv_compare_add(compare, e->session, e->session, tokens, 3, NULL, &err));
    assert_int_equal(qkv_compare_get(NULL, &out), 0);
    assert_int_equal(qkv_compare_get(compare, NULL), 0);
    assert_int_equal(qkv_compare_get(compare, &(qkv_compared){0}), 0);
    assert_true(isnan(qkv_compare_head(NULL, 0, 0)));
    assert_int_equal(qkv_compare_head_range(NULL, 0, 0, NULL, NULL), 0);
    assert_int_equal(qkv_compare_head_range(compare, 0, e->info->n_head, NULL, NULL), 0);
    assert_int_equal(qkv_compare_head_range(compare, -1, 0, NULL, NULL), 0);
    assert_true(isnan(qkv_compare_head(compare, -1, 0)));
    assert_true(isnan(qkv_compare_head(compare, e->info->n_layer, 0)));
    assert_true(isnan(qkv_compare_head(compare, 0, -1)));
    assert_true(isnan(qkv_compare_head(compare, 0, e->info->n_head)));
    assert_int_equal(qkv_compare_layer(NULL, 0, NULL, NULL), 0);
    assert_int_equal(qkv_compare_layer(compare, -1, NULL, NULL), 0);
    assert_int_equal(qkv_compare_layer(compare, e->info->n_layer, NULL, NULL), 0);
    assert_int_equal(qkv_compare_layer(compare, 0, NULL, NULL), 1);
    assert_int_equal(qkv_compare_position(NULL, 0, NULL, NULL), 0);
    assert_int_equal(qkv_compare_position(compare, SIZE_MAX, NULL, NULL), 0);
    assert_int_equal(qkv_compare_position(compare, 2, NULL, NULL), 1);
    assert_int_equal(qkv_compare_get_flip(NULL, 0, &flip), 0);
    assert_int_equal(qkv_compare_get_flip(compare, 0, NULL), 0);
    assert_int_equal(qkv_compare_get_flip(compare, SIZE_MAX, &flip), 0);
    qkv_compare_free(compare);
}

static int open_model(void **state) {
    static engine e;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    *state = &e;
    return 0;
}

static int close_model(void **state) {
    engine_close(*state);
    return scratch_clean(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_results),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
