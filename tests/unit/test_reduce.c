/*
 * Reductions of attention maps: one map worked by hand, and the library's own captures against
 * those of the whole map.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/reduce.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/reduced.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- by hand ---- */

enum { N = 4 };

/* clang-format off */
static const float map[N * N] = {
    1.0f,  0.0f,  0.0f,  0.0f,
    0.25f, 0.75f, 0.0f,  0.0f,
    0.5f,  0.25f, 0.25f, 0.0f,
    0.0f,  0.5f,  0.25f, 0.25f,
};

static const struct {
    qkv_reduction kind;
    int side, n;
    float expected[9];
} worked[] = {
    {QKV_REDUCTION_FIRST, 0, 4, {1.0f, 0.25f, 0.5f, 0.0f}},
    {QKV_REDUCTION_COLUMNS, 0, 4, {1.75f, 1.5f, 0.5f, 0.25f}},
    /* (1 + .75 + .25 + .25) / 4, (.25 + .25 + .25) / 3, (.5 + .5) / 2, 0 / 1 */
    {QKV_REDUCTION_DIAGONALS, 0, 4, {0.5625f, 0.25f, 0.5f, 0.0f}},
    {QKV_REDUCTION_MEAN, 2, 4, {0.5f, 0.0f, 0.3125f, 0.1875f}},
    {QKV_REDUCTION_MAX, 2, 4, {1.0f, 0.0f, 0.5f, 0.25f}},
    {QKV_REDUCTION_MEAN, 1, 1, {0.25f}},
    /* four positions in three cells: 0 and 1, 2, 3 */
    {QKV_REDUCTION_MEAN, 3, 9, {0.5f, 0.0f, 0.0f, 0.375f, 0.25f, 0.0f, 0.25f, 0.25f, 0.25f}},
    {QKV_REDUCTION_MAX, 3, 9, {1.0f, 0.0f, 0.0f, 0.5f, 0.25f, 0.0f, 0.5f, 0.25f, 0.25f}},
};
/* clang-format on */
enum { WORKED = sizeof worked / sizeof *worked };

static void expect_worked(size_t i, const double *out) {
    for (int c = 0; c < worked[i].n; c++)
        if (fabs(out[c] - (double)worked[i].expected[c]) > 1e-6)
            fail_msg("%s, side %d, cell %d: %g, not %g", qkv_reduction_name(worked[i].kind),
                     worked[i].side, c, out[c], (double)worked[i].expected[c]);
}

static void worked_by_hand(void **state) {
    (void)state;
    for (size_t i = 0; i < WORKED; i++) {
        double out[N * N] = {0};
        assert_int_equal(qkv_reduction_size(worked[i].kind, worked[i].side, N), worked[i].n);
        qkv_reduce_rows(worked[i].kind, worked[i].side, N, map, 0, N, N, out);
        qkv_reduce_finish(worked[i].kind, worked[i].side, N, out);
        expect_worked(i, out);
    }
}

/* Row by row, and without the keys that a row cannot see. */
static void rows_as_they_come(void **state) {
    (void)state;
    for (size_t i = 0; i < WORKED; i++) {
        double out[N * N] = {0};
        for (int r = 0; r < N; r++)
            qkv_reduce_rows(worked[i].kind, worked[i].side, N, map + N * r, r, 1, r + 1, out);
        qkv_reduce_finish(worked[i].kind, worked[i].side, N, out);
        expect_worked(i, out);
    }
}

/* The cells that the other tests compute again from the whole map are those worked by hand. */
static void computed_again(void **state) {
    (void)state;
    for (size_t i = 0; i < WORKED; i++) {
        const int two = qkv_reduction_dims(worked[i].kind) == 2, side = two ? worked[i].side : N;
        double out[N * N] = {0};
        for (int c = 0; c < worked[i].n; c++)
            out[c] = (float)reduced_cell(map, N, worked[i].kind, side, c / side, c % side);
        expect_worked(i, out);
    }
}

/* ---- captures ---- */

enum { T = 21 };

static const char *const edits[] = {
    "q@1.h2=scale:0.3",  "k@1.h1=zero",         "k@0=scale:0.5",    "v@1=zero",
    "pattern@1=set:0.1", "scores@1[:,3]=add:2", "resid_pre@1=zero", NULL};
enum { VARIANTS = sizeof edits / sizeof *edits }; /* with the baseline */

static qkv_result *run(engine *e, const char *const *captures) {
    int32_t tokens[T];
    dice d = {3};
    for (int t = 0; t < T; t++) tokens[t] = t == 0 ? 1 : 3 + (int32_t)dice_below(&d, 256);
    return engine_execute(
        e, &(engine_run){.tokens = tokens, .n_tokens = T, .variants = edits, .captures = captures});
}

static void check_reductions(engine *e, const char *heads, int side) {
    char captures[5][48];
    const char *list[6] = {NULL};
    snprintf(captures[0], sizeof captures[0], "pattern@1%s:first", heads);
    snprintf(captures[1], sizeof captures[1], "pattern@1%s:columns", heads);
    snprintf(captures[2], sizeof captures[2], "pattern@1%s:diagonals", heads);
    snprintf(captures[3], sizeof captures[3], "pattern@1%s:mean=%d", heads, side);
    snprintf(captures[4], sizeof captures[4], "pattern@1%s:max=%d", heads, side);
    for (int i = 0; i < 5; i++) list[i] = captures[i];
    qkv_result *reduced = run(e, list);
    qkv_result *whole = run(e, LIST("pattern@1"));
    for (size_t v = 0; v < VARIANTS; v++) {
        const qkv_tensor all = engine_tensor(whole, v, QKV_SITE_PATTERN, 1);
        for (int r = QKV_REDUCTION_FIRST; r <= QKV_REDUCTION_MAX; r++)
            expect_reduced(reduced, v, 1, &all, (qkv_reduction)r, side);
    }
    qkv_result_free(reduced);
    qkv_result_free(whole);
}

static void captures_against_the_whole_map(void **state) {
    (void)state;
    static const tiny_options models[] = {
        {"llama", .n_kv_head = 2}, {"llama", .window = 5}, {.family = "gpt2"}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        engine e;
        engine_open(&e, tiny_model(&models[i], "reduce.gguf"), 2);
        check_reductions(&e, "", 4);
        check_reductions(&e, "", 20);
        check_reductions(&e, ".h1,3", 7);
        check_reductions(&e, ".h2", 100);
        engine_close(&e);
    }
}

/* A learned sink takes what the keys do not get; a model without one has nothing to show. */
static void share_of_the_sink(void **state) {
    (void)state;
    engine e;
    engine_open(&e, QKV_TEST_SOURCE_DIR "/vectors/gpt_oss/model.gguf", 2);
    static const int32_t tokens[] = {1, 20, 30, 40, 50, 20, 30};
    qkv_result *result =
        engine_execute(&e, &(engine_run){tokens, 7, LIST("q@1.h2=zero"),
                                         LIST("pattern@1", "pattern@1:sink"), NULL});
    qkv_tensor share = QKV_TENSOR_INIT;
    for (size_t v = 0; v < 2; v++) {
        const qkv_tensor all = engine_tensor(result, v, QKV_SITE_PATTERN, 1);
        expect_reduced(result, v, 1, &all, QKV_REDUCTION_SINK, 0);
    }
    assert_true(qkv_result_get_reduced(result, 0, QKV_REDUCTION_SINK, 1, &share));
    for (size_t i = 0; i < tensor_count(&share); i++)
        assert_true(share.data[i] > 0 && share.data[i] < 1);
    qkv_result_free(result);
    engine_close(&e);
}

/* Reduced and whole, side by side in one plan; the shared ones are the baseline's own. */
static void beside_the_whole_map(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "reduce.gguf"), 1);
    qkv_result *result = run(&e, LIST("pattern@*:first", "pattern@1", "pattern@1.h0:max=5"));
    qkv_tensor base = QKV_TENSOR_INIT, t = QKV_TENSOR_INIT;
    for (size_t v = 0; v < VARIANTS; v++) {
        const qkv_tensor all = engine_tensor(result, v, QKV_SITE_PATTERN, 1);
        expect_reduced(result, v, 1, &all, QKV_REDUCTION_FIRST, 0);
        expect_reduced(result, v, 1, &all, QKV_REDUCTION_MAX, 5);
    }
    assert_true(qkv_result_get_reduced(result, 0, QKV_REDUCTION_FIRST, 1, &base));
    assert_true(qkv_result_get_reduced(result, 4, QKV_REDUCTION_FIRST, 1, &t));
    assert_ptr_equal(t.data, base.data);
    assert_true(qkv_result_get_reduced(result, 1, QKV_REDUCTION_FIRST, 1, &t));
    assert_ptr_not_equal(t.data, base.data);
    assert_false(qkv_result_get_reduced(result, 0, QKV_REDUCTION_MAX, 0, &t));
    assert_false(qkv_result_get_reduced(result, 0, QKV_REDUCTION_COLUMNS, 1, &t));
    qkv_result_free(result);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_by_hand),       cmocka_unit_test(rows_as_they_come),
        cmocka_unit_test(computed_again),       cmocka_unit_test(captures_against_the_whole_map),
        cmocka_unit_test(beside_the_whole_map), cmocka_unit_test(share_of_the_sink),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
