/*
 * Weights as numbers: with them, what the model computes can be computed again by hand; every family has q,
 * k and v, and a file's own order of channels does not show.
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

enum { T = 6 };

static const int32_t tokens[T] = {1, 20, 30, 40, 50, 60};
static qkv_error err;

/* All values of a weight; the caller's to free. */
static float *values_of(const engine *e, const char *name, int32_t layer, qkv_weight *weight) {
    *weight = (qkv_weight)QKV_WEIGHT_INIT;
    OK(qkv_weight_find(e->model, name, layer, weight, &err));
    float *values = calloc((size_t)(weight->n_rows * weight->width), sizeof *values);
    assert_non_null(values);
    OK(qkv_weight_read(e->model, name, layer, 0, weight->n_rows, values, &err));
    return values;
}

static int has(const engine *e, const char *name, int32_t layer) {
    return qkv_weight_find(e->model, name, layer, NULL, NULL) == QKV_OK;
}

/* y = x after the norm of layer 0: RMS or layer norm, by whether there is a bias. */
static void norm_by_hand(const engine *e, const float *x, double *y) {
    const int64_t D = e->info->n_embd;
    qkv_weight w;
    float *scale = values_of(e, "attn_norm", 0, &w), *bias = NULL;
    double mean = 0, square = 0;
    if (has(e, "attn_norm_bias", 0)) bias = values_of(e, "attn_norm_bias", 0, &w);
    for (int64_t i = 0; bias && i < D; i++) mean += (double)x[i] / (double)D;
    for (int64_t i = 0; i < D; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    for (int64_t i = 0; i < D; i++)
        y[i] = ((double)x[i] - mean) / sqrt(square / (double)D + 1e-5) * (double)scale[i] +
               (bias ? (double)bias[i] : 0);
    free(scale);
    free(bias);
}

static void expect_projection(engine *e, const char *name, qkv_site site) {
    char bias_name[16];
    qkv_weight w, b;
    qkv_result *result = engine_execute(
        e, &(engine_run){tokens, T, NULL,
                         (const char *const[]){"resid_pre@0", "q@0", "k@0", "v@0", NULL}, NULL});
    const qkv_tensor x = engine_tensor(result, 0, QKV_SITE_RESID_PRE, 0);
    const qkv_tensor known = engine_tensor(result, 0, site, 0);
    const int64_t D = e->info->n_embd, n = known.shape[1] * known.shape[2];
    snprintf(bias_name, sizeof bias_name, "%s_bias", name);
    float *matrix = values_of(e, name, 0, &w), *bias = NULL;
    if (has(e, bias_name, 0)) bias = values_of(e, bias_name, 0, &b);
    assert_int_equal(w.n_dims, 2);
    assert_int_equal(w.shape[0], n);
    assert_int_equal(w.shape[1], D);
    double normed[256], largest = 0;
    assert_true(D <= 256);
    for (int64_t t = 0; t < T; t++) {
        norm_by_hand(e, x.data + t * D, normed);
        for (int64_t o = 0; o < n; o++) {
            double sum = bias ? (double)bias[o] : 0;
            for (int64_t i = 0; i < D; i++) sum += (double)matrix[o * D + i] * normed[i];
            largest = fmax(largest, fabs(sum - (double)known.data[t * n + o]));
        }
    }
    if (!(largest < 1e-4)) fail_msg("%s differs by %g", name, largest);
    free(matrix);
    free(bias);
    qkv_result_free(result);
}

static void expect_heads(const tiny_options *options) {
    engine e;
    engine_open(&e, tiny_model(options, "weights.gguf"), 1);
    expect_projection(&e, "q", QKV_SITE_Q);
    expect_projection(&e, "k", QKV_SITE_K);
    expect_projection(&e, "v", QKV_SITE_V);
    engine_close(&e);
}

/* Split, reordered for RoPE, with and without biases, quantised; and in one matrix. */
static void heads(void **state) {
    (void)state;
    expect_heads(&(tiny_options){"llama", .n_kv_head = 2});
    expect_heads(&(tiny_options){"llama", .n_kv_head = 2, .qkv_bias = 1});
    expect_heads(&(tiny_options){"llama", .n_kv_head = 2, .type = GGML_TYPE_Q8_0});
    expect_heads(&(tiny_options){"phi3", .n_kv_head = 2});
    expect_heads(&(tiny_options){.family = "gpt2"});
}

/* The list has all parts once, and each can be found and read, row by row as at once. */
static void expect_list(const tiny_options *options) {
    engine e;
    qkv_weight w = QKV_WEIGHT_INIT, found = QKV_WEIGHT_INIT;
    uint64_t n_values = 0;
    engine_open(&e, tiny_model(options, "weights.gguf"), 1);
    for (size_t i = 0; qkv_weight_get(e.model, i, &w); i++) {
        float *all = values_of(&e, w.name, w.layer, &found), row[512];
        assert_string_equal(found.name, w.name);
        assert_int_equal(found.layer, w.layer);
        int64_t n = 1;
        for (int d = 0; d < w.n_dims; d++) n *= w.shape[d];
        assert_int_equal(n, w.n_rows * w.width);
        assert_true(w.width <= 512);
        const int64_t last = w.n_rows - 1;
        OK(qkv_weight_read(e.model, w.name, w.layer, last, 1, row, &err));
        assert_memory_equal(row, all + last * w.width, (size_t)w.width * sizeof *row);
        if (w.layer >= 0 || strcmp(w.name, "output") != 0 || !e.info->tied_output)
            n_values += (uint64_t)n;
        free(all);
    }
    assert_int_equal(n_values, e.info->n_params);
    engine_close(&e);
}

static void lists(void **state) {
    (void)state;
    expect_list(&(tiny_options){"llama", .n_kv_head = 2, .untied = 1});
    expect_list(&(tiny_options){"llama", .n_kv_head = 2, .rope = TINY_ROPE_LLAMA3});
    expect_list(&(tiny_options){"phi3", .n_kv_head = 2});
    expect_list(&(tiny_options){.family = "gpt2"});
}

/* The two halves of a matrix that holds gate and up. */
static void gates(void **state) {
    (void)state;
    engine e;
    qkv_weight gate, up;
    engine_open(&e, tiny_model(&(tiny_options){"phi3", .n_kv_head = 2}, "weights.gguf"), 1);
    float *a = values_of(&e, "gate", 1, &gate), *b = values_of(&e, "up", 1, &up);
    assert_int_equal(gate.shape[0], e.info->n_ff);
    assert_int_equal(up.shape[0], e.info->n_ff);
    assert_string_equal(gate.tensor, up.tensor);
    assert_memory_not_equal(a, b, (size_t)(gate.n_rows * gate.width) * sizeof *a);
    free(a);
    free(b);
    engine_close(&e);
}

static void mistakes(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "weights.gguf"), 1);
    REFUSED(qkv_weight_find(e.model, "dwon", 1, NULL, &err));
    assert_non_null(strstr(err.message, "did you mean 'down'"));
    REFUSED(qkv_weight_find(e.model, "qkv", 1, NULL, &err));
    REFUSED(qkv_weight_find(e.model, "q", -1, NULL, &err));
    assert_non_null(strstr(err.message, "token_embd"));
    REFUSED(qkv_weight_find(e.model, "q", 3, NULL, &err));
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads), cmocka_unit_test(lists),
                                       cmocka_unit_test(gates), cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
