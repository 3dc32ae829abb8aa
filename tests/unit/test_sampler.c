/* Samplers: what is cut off, that draws follow the probabilities, and that a seed fixes them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/generate.h"
#include "run/run.h"

enum { V = 6 };

/* Probabilities at temperature 1: 0.4, 0.3, 0.15, 0.1, 0.04, 0.01, in another order. */
static const double shares[V] = {0.15, 0.4, 0.01, 0.3, 0.04, 0.1};
static float logits[V];

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < V; i++) logits[i] = (float)(log(shares[i]) + 3);
    return 0;
}

/* How often each token comes in n draws. */
static void count(qkv_sampler_options how, int n, int counts[V]) {
    qkv_error err = {0};
    memset(counts, 0, V * sizeof *counts);
    for (int i = 0; i < n; i++) {
        int32_t token = -1;
        assert_int_equal(qkv_sample(&how, logits, V, (uint64_t)i, &token, &err), QKV_OK);
        assert_in_range(token, 0, V - 1);
        counts[token]++;
    }
}

static void draws_follow_probabilities(void **state) {
    (void)state;
    enum { N = 40000 };
    int counts[V];
    qkv_sampler_options how = {.size = sizeof how, .temperature = 1, .seed = 3};
    count(how, N, counts);
    for (int i = 0; i < V; i++)
        assert_true(fabs(counts[i] / (double)N - shares[i]) < 5 * sqrt(shares[i] / N));
    how.temperature = 2; /* square roots of the shares */
    double total = 0;
    for (int i = 0; i < V; i++) total += sqrt(shares[i]);
    count(how, N, counts);
    for (int i = 0; i < V; i++)
        assert_true(fabs(counts[i] / (double)N - sqrt(shares[i]) / total) < 5 * sqrt(0.25 / N));
}

static void expect_only(qkv_sampler_options how, unsigned tokens) {
    int counts[V];
    count(how, 2000, counts);
    for (int i = 0; i < V; i++) assert_int_equal(counts[i] > 0, tokens >> i & 1);
}

static void cuts(void **state) {
    (void)state;
    const qkv_sampler_options how = {.size = sizeof how, .temperature = 1, .seed = 11};
    qkv_sampler_options cut = how;
    cut.top_k = 2;
    expect_only(cut, 1 << 1 | 1 << 3);
    cut.top_k = 1;
    expect_only(cut, 1 << 1);
    cut = how;
    cut.top_p = 0.75; /* 0.4 + 0.3 are not enough */
    expect_only(cut, 1 << 1 | 1 << 3 | 1 << 0);
    cut.top_p = 0.1;
    expect_only(cut, 1 << 1);
    cut = how;
    cut.min_p = 0.2; /* of 0.4 */
    expect_only(cut, 1 << 1 | 1 << 3 | 1 << 0 | 1 << 5);
    cut.top_k = 3;
    expect_only(cut, 1 << 1 | 1 << 3 | 1 << 0);
    cut = how;
    cut.temperature = 0;
    expect_only(cut, 1 << 1);
}

/* These tokens are what every machine must draw. */
static void seeds(void **state) {
    (void)state;
    static const int expected[16] = {1, 0, 3, 1, 5, 5, 1, 1, 1, 3, 3, 1, 3, 1, 3, 1};
    qkv_sampler_options how = {.size = sizeof how, .temperature = 0.8, .top_p = 0.95, .seed = 42};
    qkv_error err = {0};
    int differs = 0;
    for (uint64_t i = 0; i < 16; i++) {
        int32_t token, other;
        how.seed = 42;
        assert_int_equal(qkv_sample(&how, logits, V, i, &token, &err), QKV_OK);
        assert_int_equal(token, expected[i]);
        how.seed = 43;
        assert_int_equal(qkv_sample(&how, logits, V, i, &other, &err), QKV_OK);
        differs += token != other;
    }
    assert_true(differs > 0);
}

static void refused(const qkv_sampler_options *how, const char *message) {
    qkv_error err = {0};
    assert_int_equal(qkv_sampler_check(how, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, message));
}

static void mistakes(void **state) {
    (void)state;
    refused(&(qkv_sampler_options){sizeof(qkv_sampler_options), .temperature = -1},
            "`temperature`");
    refused(&(qkv_sampler_options){sizeof(qkv_sampler_options), .temperature = NAN},
            "`temperature`");
    refused(&(qkv_sampler_options){sizeof(qkv_sampler_options), .temperature = INFINITY},
            "`temperature`");
    refused(&(qkv_sampler_options){sizeof(qkv_sampler_options), .top_k = -1}, "`top_k`");
    refused(&(qkv_sampler_options){sizeof(qkv_sampler_options), .top_p = 1.5}, "`top_p`");
    refused(&(qkv_sampler_options){sizeof(qkv_sampler_options), .min_p = -0.1}, "`min_p`");
}

static void log_probabilities(void **state) {
    (void)state;
    for (int i = 0; i < V; i++)
        assert_true(fabs(qkv_log_probability(logits, V, i) - log(shares[i])) < 1e-6);
    assert_int_equal(qkv_sample_greedy(logits, V), 1);
    assert_int_equal(qkv_sample_greedy((const float[]){2, 5, 5}, 3), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_follow_probabilities), cmocka_unit_test(cuts),
        cmocka_unit_test(seeds), cmocka_unit_test(mistakes), cmocka_unit_test(log_probabilities)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
