/*
 * Products with few columns: what they come to, in which order they are summed, and that neither other
 * columns, nor the share of rows, nor the type that holds the values shows in them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "kernel/product.h"
#include "support/compare.h"

enum { ROWS = 23, MOST_WIDTH = 1100, MOST_COLUMNS = 21 };

static float weights[ROWS * MOST_WIDTH], values[MOST_COLUMNS * MOST_WIDTH];

static int fill(void **state) {
    (void)state;
    for (uint64_t i = 0; i < sizeof weights / sizeof *weights; i++)
        weights[i] = qkv_random_gaussian(qkv_random_mix(1, i));
    for (uint64_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = qkv_random_gaussian(qkv_random_mix(2, i));
    return 0;
}

static qkv_weights_view view(const void *data, enum ggml_type type, int64_t width) {
    return (qkv_weights_view){.data = data,
                              .row_bytes = ggml_row_size(type, width),
                              .block_bytes = ggml_type_size(type),
                              .block = ggml_blck_size(type),
                              .rows = ROWS,
                              .width = width,
                              .type = type,
                              .convert = qkv_converter(type)};
}

/* The product with columns [from, from + n), `each` rows at a time. */
static void multiply(const qkv_weights_view *w, int64_t from, int64_t n, int64_t each, float *to) {
    float *scratch = malloc(qkv_product_scratch() * sizeof *scratch);
    assert_non_null(scratch);
    const qkv_columns x = {values + from * w->width, w->width, NULL, 1, n};
    const qkv_columns out = {to, ROWS, NULL, 1, n};
    for (int64_t r = 0; r < ROWS; r += each)
        qkv_dot_product(w, r, r + each < ROWS ? r + each : ROWS, &x, &out, scratch);
    free(scratch);
}

/* One more term, as the processor adds it. */
static float add_term(float sum, float w, float x) {
#ifdef __FMA__
    return fmaf(w, x, sum);
#else
    return sum + w * x;
#endif
}

/* The order that product.h states. */
static float summed(const float *w, const float *x, int64_t width) {
    float sums[QKV_DOT_SUMS] = {0};
    for (int64_t k = 0; k < width; k++)
        sums[k % QKV_DOT_SUMS] = add_term(sums[k % QKV_DOT_SUMS], w[k], x[k]);
    for (int half = QKV_DOT_SUMS / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) sums[i] += sums[i + half];
    }
    return sums[0];
}

static void sums_in_the_stated_order(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 3, 32, 33, 255, 256, 257, 700, MOST_WIDTH};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const qkv_weights_view w = view(weights, GGML_TYPE_F32, widths[i]);
        float got[5 * ROWS];
        multiply(&w, 0, 5, ROWS, got);
        for (int64_t n = 0; n < 5 * ROWS; n++) {
            const float expected =
                summed(weights + n % ROWS * widths[i], values + n / ROWS * widths[i], widths[i]);
            if (!same_bits(&expected, got + n, 1))
                fail_msg("width %d, row %d, column %d: %g in place of %g", (int)widths[i],
                         (int)(n % ROWS), (int)(n / ROWS), (double)got[n], (double)expected);
        }
    }
}

static void depends_on_no_other_column(void **state) {
    (void)state;
    const qkv_weights_view w = view(weights, GGML_TYPE_F32, 300);
    float all[MOST_COLUMNS * ROWS], some[MOST_COLUMNS * ROWS];
    multiply(&w, 0, MOST_COLUMNS, ROWS, all);
    for (int64_t n = 1; n <= MOST_COLUMNS; n++) {
        const int64_t from = MOST_COLUMNS - n;
        multiply(&w, from, n, ROWS, some);
        assert_true(same_bits(some, all + from * ROWS, (size_t)(n * ROWS)));
    }
}

static void depends_on_no_share_of_rows(void **state) {
    (void)state;
    const qkv_weights_view w = view(weights, GGML_TYPE_F32, 300);
    float whole[3 * ROWS], parts[3 * ROWS];
    multiply(&w, 0, 3, ROWS, whole);
    for (int64_t each = 1; each < ROWS; each++) {
        multiply(&w, 0, 3, each, parts);
        assert_true(same_bits(parts, whole, 3 * ROWS));
    }
}

/* A product with weights of any type is that with their values in F32. */
static void depends_on_no_type(void **state) {
    (void)state;
    enum { WIDTH = 768 };
    static float plain_values[ROWS * WIDTH];
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const enum ggml_type type = (enum ggml_type)i;
        if (!qkv_converter(type) || ggml_quantize_requires_imatrix(type)) continue;
        char *stored = malloc(ggml_row_size(type, WIDTH) * ROWS);
        assert_non_null(stored);
        ggml_quantize_chunk(type, weights, stored, 0, ROWS, WIDTH, NULL);
        const qkv_weights_view w = view(stored, type, WIDTH);
        const qkv_weights_view plain = view(plain_values, GGML_TYPE_F32, WIDTH);
        for (int64_t r = 0; r < ROWS; r++)
            w.convert(stored + (size_t)r * w.row_bytes, plain_values + r * WIDTH, WIDTH);
        float a[5 * ROWS], b[5 * ROWS];
        multiply(&w, 0, 5, 12, a);
        multiply(&plain, 0, 5, 12, b);
        if (!same_bits(a, b, 5 * ROWS))
            fail_msg("%s: not the product of its values", ggml_type_name(type));
        free(stored);
    }
}

/* A width that is not a whole number of rounds, in types that are read as they lie. */
static void reads_odd_widths(void **state) {
    (void)state;
    enum { WIDTH = 77 };
    static const enum ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_BF16};
    for (size_t i = 0; i < 2; i++) {
        uint16_t stored[ROWS * WIDTH];
        static float plain_values[ROWS * WIDTH];
        ggml_quantize_chunk(types[i], weights, stored, 0, ROWS, WIDTH, NULL);
        qkv_converter(types[i])(stored, plain_values, ROWS * WIDTH);
        const qkv_weights_view w = view(stored, types[i], WIDTH);
        float got[2 * ROWS];
        multiply(&w, 0, 2, ROWS, got);
        for (int64_t n = 0; n < 2 * ROWS; n++) {
            const float expected =
                summed(plain_values + n % ROWS * WIDTH, values + n / ROWS * WIDTH, WIDTH);
            assert_true(same_bits(&expected, got + n, 1));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_in_the_stated_order),
        cmocka_unit_test(depends_on_no_other_column),
        cmocka_unit_test(depends_on_no_share_of_rows),
        cmocka_unit_test(depends_on_no_type),
        cmocka_unit_test(reads_odd_widths),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
