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

#include "run/graph/reduce.h"
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
        double out[N * N];
        assert_int_equal(qkv_reduction_size(worked[i].kind, worked[i].side, N), worked[i].n);
        qkv_reduce_start(worked[i].kind, worked[i].side, N, out);
        qkv_reduce_rows(worked[i].kind, worked[i].side, N, map, 0, N, N, out);
        qkv_reduce_finish(worked[i].kind, worked[i].side, N, out);
        expect_worked(i, out);
    }
}

/* Row by row, and without the keys that a row cannot see. */
static void rows_as_they_come(void **state) {
    (void)state;
    for (size_t i = 0; i < WORKED; i++) {
        double out[N * N];
        qkv_reduce_start(worked[i].kind, worked[i].side, N, out);
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

/* ---- any numbers ---- */

enum { SIGNS = 4, MOST = 13 };

/* Weights of one sign or both, or all 0; above the diagonal 0, as a mask leaves it. */
static void fill_map(float *weights, int n, int sign, dice *d) {
    for (int i = 0; i < n * n; i++) {
        const float size = (float)(1 + dice_below(d, 999)) / 1000;
        const int negative = sign == 1 || (sign == 2 && dice_below(d, 2));
        weights[i] = i % n > i / n || sign == 3 ? 0 : negative ? -size : size;
    }
}

/* Rows in blocks, without the keys that none of a block's queries sees. */
static void reduce(const float *weights, int n, qkv_reduction kind, int side, int rows,
                   double *out) {
    float block[MOST * MOST];
    qkv_reduce_start(kind, side, n, out);
    for (int first = 0; first < n; first += rows) {
        const int end = first + rows < n ? first + rows : n;
        for (int r = first; r < end; r++)
            memcpy(block + (ptrdiff_t)(r - first) * end, weights + (ptrdiff_t)r * n,
                   (size_t)end * sizeof *block);
        qkv_reduce_rows(kind, side, n, block, first, end - first, end, out);
    }
    qkv_reduce_finish(kind, side, n, out);
}

static int64_t side_of(qkv_reduction kind, int side, int n) {
    return qkv_reduction_dims(kind) == 2 ? qkv_reduction_side(side, n) : n;
}

static void weights_of_any_sign(void **state) {
    (void)state;
    dice d = {11};
    for (int turn = 0; turn < 2000; turn++) {
        float weights[MOST * MOST];
        double out[MOST * MOST];
        const int n = 1 + (int)dice_below(&d, MOST), sign = turn % SIGNS;
        const int rows = 1 + (int)dice_below(&d, (uint64_t)n);
        const qkv_reduction kind = (qkv_reduction)(1 + dice_below(&d, QKV_REDUCTION_COUNT - 1));
        const int side = (int)side_of(kind, 1 + (int)dice_below(&d, MOST + 3), n);
        fill_map(weights, n, sign, &d);
        reduce(weights, n, kind, side, rows, out);
        for (int64_t c = 0; c < qkv_reduction_size(kind, side, n); c++) {
            const int at = (int)c;
            const double expected = reduced_cell(weights, n, kind, side, at / side, at % side);
            if (!(fabs(out[c] - expected) <= 1e-9))
                fail_msg("%s of %d x %d to %d, blocks of %d, sign %d, cell %d: %g, not %g",
                         qkv_reduction_name(kind), n, n, side, rows, sign, at, out[c], expected);
        }
    }
}

/* One weight that is not a number shows in the cells that it belongs to, and in no other. */
static void not_a_number_shows(void **state) {
    (void)state;
    dice d = {5};
    for (int turn = 0; turn < 2000; turn++) {
        float weights[MOST * MOST];
        double plain[MOST * MOST], out[MOST * MOST];
        const int n = 1 + (int)dice_below(&d, MOST), rows = 1 + (int)dice_below(&d, (uint64_t)n);
        const qkv_reduction kind = (qkv_reduction)(1 + dice_below(&d, QKV_REDUCTION_COUNT - 1));
        const int side = (int)side_of(kind, 1 + (int)dice_below(&d, MOST), n);
        fill_map(weights, n, turn % SIGNS, &d);
        reduce(weights, n, kind, side, rows, plain);
        const int i = (int)dice_below(&d, (uint64_t)n), j = (int)dice_below(&d, (uint64_t)i + 1);
        const int at = kind == QKV_REDUCTION_FIRST       ? (j == 0 ? i : -1)
                       : kind == QKV_REDUCTION_SINK      ? i
                       : kind == QKV_REDUCTION_COLUMNS   ? j
                       : kind == QKV_REDUCTION_DIAGONALS ? i - j
                                                         : i * side / n * side + j * side / n;
        weights[i * n + j] = NAN;
        reduce(weights, n, kind, side, rows, out);
        for (int c = 0; c < (int)qkv_reduction_size(kind, side, n); c++) {
            if (c == at ? !isnan(out[c]) : out[c] < plain[c] || out[c] > plain[c] || isnan(out[c]))
                fail_msg("%s of %d x %d to %d, NaN at %d,%d: cell %d is %g",
                         qkv_reduction_name(kind), n, n, side, i, j, c, out[c]);
        }
    }
}

/* ---- captures ---- */

enum { T = 21 };

static const char *const edits[] = {"q@1.h2=scale:0.3",   "k@1.h1=zero",
                                    "k@0=scale:0.5",      "v@1=zero",
                                    "pattern@1=set:0.1",  "scores@1[:,3]=add:2",
                                    "resid_pre@1=zero",   "pattern@1=scale:-1",
                                    "pattern@1=add:-0.5", NULL};
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
        cmocka_unit_test(weights_of_any_sign),  cmocka_unit_test(not_a_number_shows),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
