/*
 * Products of weights: what they come to, and that they come to it whatever else there is: how many
 * columns, how rows are shared out, which type holds the values, where columns lie.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "ggml.h"
#include "kernel/product.h"
#include "support/compare.h"

typedef struct problem {
    int64_t rows, width, columns;
    float *w, *x; /* rows × width, columns × width */
} problem;

static float *numbers(int64_t n, uint64_t seed) {
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = qkv_random_gaussian(qkv_random_mix(seed, (uint64_t)i));
    return x;
}

static problem make(int64_t rows, int64_t width, int64_t columns) {
    return (problem){rows, width, columns, numbers(rows * width, 1), numbers(columns * width, 2)};
}

static void drop(problem *p) {
    free(p->w);
    free(p->x);
}

static qkv_weights_view view_f32(const problem *p) {
    return (qkv_weights_view){.data = (const char *)p->w,
                              .row_bytes = (size_t)p->width * sizeof(float),
                              .block_bytes = sizeof(float),
                              .block = 1,
                              .rows = p->rows,
                              .width = p->width,
                              .type = GGML_TYPE_F32,
                              .convert = qkv_converter(GGML_TYPE_F32)};
}

/* The product with columns [from, from + n), `each` rows at a time. */
static float *multiply(const qkv_weights_view *w, float *x, int64_t from, int64_t n, int64_t each) {
    float *packed = malloc((size_t)qkv_packed_size(w->width, n) * sizeof *packed);
    float *scratch = malloc(qkv_product_scratch() * sizeof *scratch);
    float *result = malloc((size_t)(w->rows * n) * sizeof *result);
    assert_true(packed && scratch && result);
    const qkv_columns in = {x + from * w->width, w->width, NULL, 1, n};
    const qkv_columns out = {result, w->rows, NULL, 1, n};
    for (int64_t part = 0; part < qkv_packed_parts(n); part++)
        qkv_pack(packed, &in, w->width, part);
    for (int64_t r = 0; r < w->rows; r += each)
        qkv_product(w, r, r + each < w->rows ? r + each : w->rows, packed, &out, scratch);
    free(packed);
    free(scratch);
    return result;
}

/* Against sums in double precision, at sizes that fill no tile, panel or piece. */
static void is_the_product(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},     {5, 3, 2},       {12, 256, 8},  {13, 257, 9},
                                       {97, 600, 17}, {200, 1000, 50}, {30, 511, 600}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        problem p = make(sizes[i][0], sizes[i][1], sizes[i][2]);
        const qkv_weights_view w = view_f32(&p);
        float *got = multiply(&w, p.x, 0, p.columns, 96);
        for (int64_t t = 0; t < p.columns; t++) {
            for (int64_t n = 0; n < p.rows; n++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < p.width; k++) {
                    const double term = (double)p.w[n * p.width + k] * (double)p.x[t * p.width + k];
                    sum += term;
                    size += fabs(term);
                }
                assert_true(fabs(sum - (double)got[t * p.rows + n]) <= 1e-6 * size);
            }
        }
        free(got);
        drop(&p);
    }
}

static void depends_on_no_other_column(void **state) {
    (void)state;
    problem p = make(50, 700, 600);
    const qkv_weights_view w = view_f32(&p);
    float *all = multiply(&w, p.x, 0, p.columns, 96);
    for (int64_t n = 1; n < 70; n++) {
        const int64_t from = 7 * n % (p.columns - n);
        float *some = multiply(&w, p.x, from, n, 96);
        assert_true(same_bits(some, all + from * p.rows, (size_t)(n * p.rows)));
        free(some);
    }
    free(all);
    drop(&p);
}

static void depends_on_no_share_of_rows(void **state) {
    (void)state;
    problem p = make(211, 300, 20);
    const qkv_weights_view w = view_f32(&p);
    float *whole = multiply(&w, p.x, 0, p.columns, p.rows);
    for (int64_t each = 1; each < 40; each++) {
        float *parts = multiply(&w, p.x, 0, p.columns, each);
        assert_true(same_bits(parts, whole, (size_t)(p.rows * p.columns)));
        free(parts);
    }
    for (int threads = 1; threads < 100; threads++) {
        const int64_t each = qkv_product_rows(p.rows, threads);
        assert_true(each > 0 && each <= p.rows + 12);
    }
    free(whole);
    drop(&p);
}

/* A product with quantised weights is that with their values in F32. */
static void depends_on_no_type(void **state) {
    (void)state;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const enum ggml_type type = (enum ggml_type)i;
        if (!qkv_converter(type) || ggml_quantize_requires_imatrix(type)) continue;
        problem p = make(40, 768, 10);
        const size_t row = ggml_row_size(type, p.width);
        char *stored = malloc(row * (size_t)p.rows);
        assert_non_null(stored);
        ggml_quantize_chunk(type, p.w, stored, 0, p.rows, p.width, NULL);
        qkv_weights_view plain = view_f32(&p), w = plain;
        w.data = stored;
        w.row_bytes = row;
        w.block_bytes = ggml_type_size(type);
        w.block = ggml_blck_size(type);
        w.convert = qkv_converter(type);
        for (int64_t r = 0; r < p.rows; r++)
            w.convert(stored + (size_t)r * row, p.w + r * p.width, p.width);
        float *a = multiply(&w, p.x, 0, p.columns, 24),
              *b = multiply(&plain, p.x, 0, p.columns, 24);
        if (!same_bits(a, b, (size_t)(p.rows * p.columns)))
            fail_msg("%s: not the product of its values", ggml_type_name(type));
        free(a);
        free(b);
        free(stored);
        drop(&p);
    }
}

/* Columns that lie somewhere, as those of an expert. */
static void takes_columns_by_index(void **state) {
    (void)state;
    problem p = make(30, 100, 9);
    const qkv_weights_view w = view_f32(&p);
    static const int32_t index[] = {17, 4, 10, 0};
    float *all = multiply(&w, p.x, 0, p.columns, 96), to[18 * 30] = {0};
    float *packed = malloc((size_t)qkv_packed_size(p.width, 4) * sizeof *packed);
    float *scratch = malloc(qkv_product_scratch() * sizeof *scratch);
    assert_true(packed && scratch);
    const qkv_columns in = {p.x, p.width, index, 2, 4}, out = {to, p.rows, index, 1, 4};
    qkv_pack(packed, &in, p.width, 0);
    qkv_product(&w, 0, p.rows, packed, &out, scratch);
    for (int i = 0; i < 4; i++)
        assert_true(same_bits(to + (size_t)index[i] * 30, all + (size_t)(index[i] / 2) * 30, 30));
    free(all);
    free(packed);
    free(scratch);
    drop(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_product),
        cmocka_unit_test(depends_on_no_other_column),
        cmocka_unit_test(depends_on_no_share_of_rows),
        cmocka_unit_test(depends_on_no_type),
        cmocka_unit_test(takes_columns_by_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
