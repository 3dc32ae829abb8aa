/*
 * Converters of every type: the bits that ggml's own converter gives, whatever the bytes are. NaN and
 * infinity among the scales, every index of every table, rows of one block and of several, rows that lie
 * at odd addresses; memory is as large as it must be, so that a sanitizer sees a byte too many.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "kernel/convert.h"
#include "kernel/convert_types.h"
#include "support/compare.h"

enum { MANY = 1024, SCALES = 65536 };

/* Where the F16 scales and minima of a block lie; -1 for none. IQ1_M's are spread over other bits. */
static const struct {
    enum ggml_type type;
    int scale, minimum;
} halves[] = {
    {GGML_TYPE_F16, 0, -1},     {GGML_TYPE_Q1_0, 0, -1},   {GGML_TYPE_Q2_0, 0, -1},
    {GGML_TYPE_Q4_0, 0, -1},    {GGML_TYPE_Q4_1, 0, 2},    {GGML_TYPE_Q5_0, 0, -1},
    {GGML_TYPE_Q5_1, 0, 2},     {GGML_TYPE_Q8_0, 0, -1},   {GGML_TYPE_IQ4_NL, 0, -1},
    {GGML_TYPE_Q2_K, 80, 82},   {GGML_TYPE_Q3_K, 108, -1}, {GGML_TYPE_Q4_K, 0, 2},
    {GGML_TYPE_Q5_K, 0, 2},     {GGML_TYPE_Q6_K, 208, -1}, {GGML_TYPE_IQ4_XS, 0, -1},
    {GGML_TYPE_TQ1_0, 52, -1},  {GGML_TYPE_TQ2_0, 64, -1}, {GGML_TYPE_IQ1_S, 0, -1},
    {GGML_TYPE_IQ2_XXS, 0, -1}, {GGML_TYPE_IQ2_XS, 0, -1}, {GGML_TYPE_IQ2_S, 0, -1},
    {GGML_TYPE_IQ3_XXS, 0, -1}, {GGML_TYPE_IQ3_S, 0, -1},
};

static uint8_t *random_bytes(size_t size, uint64_t key) {
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)qkv_random_mix(key, i);
    return bytes;
}

static void put_half(uint8_t *at, uint32_t bits) {
    at[0] = (uint8_t)bits;
    at[1] = (uint8_t)(bits >> 8);
}

/* Which NaN a product or a sum is depends on how a compiler orders its operands. */
static int same_weight(enum ggml_type type, const float *a, const float *b) {
    return same_bits(a, b, 1) || (ggml_is_quantized(type) && isnan(*a) && isnan(*b));
}

/* The row, and the result, begin `shift` bytes and floats after an address that suits any type. */
static void check_row(enum ggml_type type, const uint8_t *row, int64_t n, size_t shift,
                      const char *what) {
    const size_t size = ggml_row_size(type, n), count = (size_t)n;
    uint8_t *from = malloc(size + shift);
    float *to = malloc((count + shift) * sizeof *to), *expected = malloc(count * sizeof *expected);
    assert_true(from && to && expected);
    memcpy(from + shift, row, size);
    ggml_get_type_traits(type)->to_float(row, expected, n);
    qkv_converter(type)(from + shift, to + shift, n);
    for (size_t i = 0; i < count; i++) {
        if (!same_weight(type, to + shift + i, expected + i))
            fail_msg("%s, %s: weight %zu of %zu is %a, not %a", ggml_type_name(type), what, i,
                     count, (double)to[shift + i], (double)expected[i]);
    }
    free(from);
    free(to);
    free(expected);
}

static int has_converter(enum ggml_type type) {
    return ggml_get_type_traits(type)->to_float != NULL;
}

static int64_t block_of(enum ggml_type type) {
    return ggml_get_type_traits(type)->blck_size;
}

static void test_who_has_one(void **state) {
    (void)state;
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const enum ggml_type type = (enum ggml_type)t;
        assert_int_equal(qkv_converter(type) != NULL, has_converter(type) || type == GGML_TYPE_F32);
    }
    assert_null(qkv_converter(GGML_TYPE_COUNT));
    assert_null(qkv_converter((enum ggml_type) - 1));
}

/* Falling back on ggml's would pass every other test. */
static void test_own_ones_are_taken(void **state) {
    (void)state;
#define TAKEN(type, name) assert_ptr_equal(qkv_converter(type), qkv_convert_##name);
    QKV_CONVERT_LIST(TAKEN)
#undef TAKEN
}

static void test_f32_is_copied(void **state) {
    const float from[] = {1.5f, -0.0f, 3e-45f, 2.0f};
    float to[] = {0, 0, 0, 7};
    (void)state;
    qkv_converter(GGML_TYPE_F32)(from, to, 3);
    assert_memory_equal(to, from, 3 * sizeof *to);
    assert_true(to[3] == 7);
}

static void test_any_bytes(void **state) {
    (void)state;
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const enum ggml_type type = (enum ggml_type)t;
        if (!has_converter(type)) continue;
        uint8_t *row = random_bytes(ggml_row_size(type, MANY * block_of(type)), 1 + (uint64_t)t);
        check_row(type, row, MANY * block_of(type), 0, "random bytes");
        free(row);
    }
}

/* In 256 blocks, each byte of a block takes each of its values. */
static void test_every_byte(void **state) {
    (void)state;
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const enum ggml_type type = (enum ggml_type)t;
        if (!has_converter(type)) continue;
        const size_t size = ggml_get_type_traits(type)->type_size;
        uint8_t *row = malloc(256 * size);
        assert_non_null(row);
        for (size_t i = 0; i < 256 * size; i++) row[i] = (uint8_t)(i / size + 37 * (i % size));
        check_row(type, row, 256 * block_of(type), 0, "every byte");
        free(row);
    }
}

/* Every F16 number there is as scale, for large blocks one of eight, with zeros and infinities among them;
 * minima are other numbers, and now and then the same. */
static void test_every_scale(void **state) {
    (void)state;
    for (size_t h = 0; h < sizeof halves / sizeof *halves; h++) {
        const enum ggml_type type = halves[h].type;
        const size_t size = ggml_get_type_traits(type)->type_size;
        const uint32_t step = block_of(type) == 256 ? 8 : 1;
        for (uint32_t first = 0; first < SCALES / step; first += MANY) {
            uint8_t *row = random_bytes(MANY * size, first);
            for (uint32_t i = 0; i < MANY; i++) {
                uint8_t *block = row + i * size;
                const uint32_t bits = (first + i) * step + i % step;
                put_half(block + halves[h].scale, bits);
                if (halves[h].minimum >= 0)
                    put_half(block + halves[h].minimum, i % 2 ? 40503 * bits : bits);
            }
            check_row(type, row, MANY * block_of(type), 0, "every scale");
            free(row);
        }
    }
}

static void test_lengths_and_addresses(void **state) {
    (void)state;
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const enum ggml_type type = (enum ggml_type)t;
        if (!has_converter(type)) continue;
        const size_t step = ggml_is_quantized(type) ? 1 : 2; /* numbers of two bytes are aligned */
        for (int64_t blocks = 1; blocks <= 41; blocks += blocks < 9 ? 1 : 8) {
            const int64_t n = blocks * block_of(type);
            uint8_t *row = random_bytes(ggml_row_size(type, n), (uint64_t)blocks);
            for (size_t shift = 0; shift <= 2 * step; shift += step)
                check_row(type, row, n, shift, "a row");
            free(row);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_has_one),
        cmocka_unit_test(test_own_ones_are_taken),
        cmocka_unit_test(test_f32_is_copied),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_every_scale),
        cmocka_unit_test(test_lengths_and_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
