/*
 * Every metric on numbers whose value was worked out by hand; the working stands beside it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/metric_sums.h"
#include "measure/spectrum.h"
#include "support/engine.h"

#define LN2 0.69314718055994530942
#define LN3 1.09861228866810969140
#define LN5 1.60943791243410037460

/* Which metrics some test has worked. */
static int worked[QKV_METRIC_COUNT];

static void note(const char *metric) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(metric, ":"), metric);
    for (size_t i = 0; qkv_metric_get(i); i++) {
        if (strcmp(qkv_metric_get(i)->name, name) == 0) worked[i] = 1;
    }
}

static qkv_measure *measure_of(const char *metrics) {
    qkv_error err = {0};
    qkv_measure *m = NULL;
    expect_ok(qkv_measure_new(&m, metrics, NULL, &err), &err, metrics);
    for (size_t i = 0; qkv_measure_text(m, i); i++) note(qkv_measure_text(m, i));
    return m;
}

static void expect_near(const char *what, double value, double expected) {
    if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) <= 2e-7 * fmax(1, expected)))
        fail_msg("%s is %.10g, not %.10g", what, value, expected);
}

static double value_of(const char *metric, const qkv_pattern *pattern) {
    qkv_error err = {0};
    double value = -1;
    qkv_measure *m = measure_of(metric);
    expect_ok(qkv_measure_pattern(m, pattern, &value, &err), &err, metric);
    qkv_measure_free(m);
    return value;
}

static void expect_metric(const char *metric, const qkv_pattern *pattern, double expected) {
    expect_near(metric, value_of(metric, pattern), expected);
}

/* ---- one causal pattern ---- */

/* clang-format off */
static const float causal[25] = {
    1.0f,   0.0f,  0.0f,   0.0f,  0.0f,
    0.25f,  0.75f, 0.0f,   0.0f,  0.0f,
    0.5f,   0.25f, 0.25f,  0.0f,  0.0f,
    0.0f,   0.5f,  0.25f,  0.25f, 0.0f,
    0.125f, 0.25f, 0.125f, 0.0f,  0.5f,
};

static const float uniform[25] = {
    1.0f,    0.0f,    0.0f,    0.0f,  0.0f,
    0.5f,    0.5f,    0.0f,    0.0f,  0.0f,
    1.0f/3,  1.0f/3,  1.0f/3,  0.0f,  0.0f,
    0.25f,   0.25f,   0.25f,   0.25f, 0.0f,
    0.2f,    0.2f,    0.2f,    0.2f,  0.2f,
};
/* clang-format on */

static const int32_t tokens[5] = {7, 8, 7, 8, 8};

/* Entropies of the rows from 1 on:
 *   -(1/4 ln 1/4 + 3/4 ln 3/4) = 2 ln 2 - 3/4 ln 3
 *   1/2 ln 2 + 2 (1/4 ln 4)    = 3/2 ln 2, twice
 *   2 (1/8 ln 8) + 1/4 ln 4 + 1/2 ln 2 = 7/4 ln 2 */
static const double h1 = 2 * LN2 - 0.75 * LN3, h2 = 1.5 * LN2, h4 = 1.75 * LN2;

static void causal_pattern(void **state) {
    (void)state;
    const qkv_pattern p = {
        .size = sizeof(qkv_pattern), .weights = causal, .n_tokens = 5, .tokens = tokens};
    expect_metric("sink", &p, (1 + 0.25 + 0.5 + 0 + 0.125) / 5);
    expect_metric("sink:1", &p, (0.75 + 0.25 + 0.5 + 0.25) / 4);
    expect_metric("sink:9", &p, NAN);
    expect_metric("first_column", &p, (0.25 + 0.5 + 0 + 0.125) / 4);
    expect_metric("diagonal", &p, (0.75 + 0.25 + 0.25 + 0.5) / 4);
    expect_metric("previous", &p, (0.25 + 0.25 + 0.25 + 0) / 4);
    expect_metric("previous_tl", &p, (0.25 + 0.25 + 0.25 + 0) / 5);
    /* key 0; keys 0, 1; keys 1, 2; keys 2, 3 */
    expect_metric("near_diagonal", &p, (0.25 + 0.75 + 0.75 + 0.125) / 4);
    /* row 3 has key 0 only, which does not count; row 4 has key 1 */
    expect_metric("far", &p, (0 + 0.25) / 2);
    expect_metric("upper", &p, 0);
    expect_metric("symmetry", &p, 1 - sqrt(0.5));
    expect_metric("entropy", &p, (h1 + 2 * h2 + h4) / 4);
    expect_metric("entropy_norm", &p, (h1 / LN2 + h2 / LN3 + h2 / (2 * LN2) + h4 / LN5) / 4);
    expect_metric("support", &p, (4 / pow(3, 0.75) + 2 * pow(2, 1.5) + pow(2, 1.75)) / 4);
    /* 1/4; 2/2 + 1/4; 2/2 + 1/4; 4/8 + 3/4 + 2/8 */
    expect_metric("distance", &p, (0 + 0.25 + 1.25 + 1.25 + 1.5) / 5);
    /* A[2][1] follows 7 at 0; A[3][2] and A[4][2] follow 8 at 1; A[4][4] follows 8 at 3 */
    expect_metric("induction", &p, (0.25 + 0.25 + 0.125 + 0.5) / 5);
    /* A[2][0]; A[3][1]; A[4][1] and A[4][3] */
    expect_metric("duplicate", &p, (0.5 + 0.5 + 0.25 + 0) / 5);
    /* total variation from uniform: 0; 1/4; (1/6 + 2/12)/2 = 1/6; 1/4;
     * (.075 + .05 + .075 + .2 + .3)/2 = .35 */
    expect_metric("uniformity", &p, 1 - (0.25 + 1.0 / 6 + 0.25 + 0.35) / 5);
    expect_metric("awft:0.3", &p, 1); /* alpha is 0.375 */
    expect_metric("awft", &p, 0);
}

static void without_tokens(void **state) {
    (void)state;
    const qkv_pattern p = {.size = sizeof(qkv_pattern), .weights = causal, .n_tokens = 5};
    expect_metric("induction", &p, NAN);
    expect_metric("duplicate", &p, NAN);
}

/* ---- changes ---- */

static void change_from_baseline(void **state) {
    (void)state;
    const qkv_pattern p = {
        .size = sizeof(qkv_pattern), .weights = uniform, .baseline = causal, .n_tokens = 5};
    /* As for uniformity above. */
    expect_metric("tv", &p, (0.25 + 1.0 / 6 + 0.25 + 0.35) / 5);
    expect_metric("max_change", &p, 0.3);
    /* Against a uniform row KL is ln n - H: 0; ln 2 - h1; ln 3 - h2; ln 4 - h2; ln 5 - h4 */
    expect_metric("kl", &p, (LN2 - h1 + LN3 - h2 + 2 * LN2 - h2 + LN5 - h4) / 5);

    /* A row moved to another key altogether: TV 1 and JS ln 2 there, KL infinite and left out. */
    static const float before[4] = {1, 0, 1, 0}, after[4] = {1, 0, 0, 1};
    const qkv_pattern moved = {
        .size = sizeof(qkv_pattern), .weights = after, .baseline = before, .n_tokens = 2};
    expect_metric("tv", &moved, 0.5);
    expect_metric("js", &moved, LN2 / 2);
    expect_metric("kl", &moved, 0);
    expect_metric("max_change", &moved, 1);
    /* p = (1/2, 1/2), q = (1, 0), m = (3/4, 1/4):
     * JS = (1/2 ln 2/3 + 1/2 ln 2 + ln 4/3) / 2 */
    static const float half[4] = {1, 0, 0.5f, 0.5f}, one[4] = {1, 0, 1, 0};
    const qkv_pattern partly = {
        .size = sizeof(qkv_pattern), .weights = one, .baseline = half, .n_tokens = 2};
    const double js = (0.5 * log(2.0 / 3) + 0.5 * LN2 + log(4.0 / 3)) / 2;
    expect_metric("js", &partly, js / 2);
    expect_metric("kl", &partly, 0);
}

static void no_change(void **state) {
    (void)state;
    static const char *const names[] = {"tv", "js", "kl", "max_change"};
    const qkv_pattern p = {.size = sizeof(qkv_pattern), .weights = causal, .n_tokens = 5};
    for (size_t i = 0; i < 4; i++) assert_true(value_of(names[i], &p) == 0);
}

/* ---- other shapes ---- */

static void one_token(void **state) {
    (void)state;
    static const float weights[1] = {1};
    const qkv_pattern p = {.size = sizeof(qkv_pattern), .weights = weights, .n_tokens = 1};
    static const char *const undefined[] = {"first_column",  "diagonal", "previous",
                                            "near_diagonal", "far",      "entropy",
                                            "entropy_norm",  "support",  "symmetry"};
    for (size_t i = 0; i < sizeof undefined / sizeof *undefined; i++)
        expect_metric(undefined[i], &p, NAN);
    expect_metric("sink", &p, 1);
    expect_metric("uniformity", &p, 1);
    expect_metric("effective_rank", &p, 1);
}

/* A query sees two keys: U of the last row is (0, 0, 1/2, 1/2). */
static void sliding_window(void **state) {
    (void)state;
    static const float weights[9] = {1, 0, 0, 0.5f, 0.5f, 0, 0, 0.25f, 0.75f};
    const qkv_pattern p = {
        .size = sizeof(qkv_pattern), .weights = weights, .n_tokens = 3, .window = 2};
    expect_metric("uniformity", &p, 1 - 0.25 / 3);
    expect_metric("entropy_norm", &p, (1 + h1 / LN2) / 2);
}

static void bidirectional(void **state) {
    (void)state;
    float weights[16];
    for (int i = 0; i < 16; i++) weights[i] = 0.25f;
    const qkv_pattern p = {
        .size = sizeof(qkv_pattern), .weights = weights, .n_tokens = 4, .bidirectional = 1};
    expect_metric("upper", &p, 0.25 * (3 + 2 + 1) / 4);
    expect_metric("uniformity", &p, 1);
    expect_metric("entropy_norm", &p, 1);
    expect_metric("symmetry", &p, 1);
    expect_metric("distance", &p, 0.25 * (6 + 4 + 4 + 6) / 4);
    /* keys 0, 2, 3; keys 0, 1, 3; keys 1, 2 */
    expect_metric("near_diagonal", &p, (0.75 + 0.75 + 0.5) / 3);
    expect_metric("effective_rank", &p, 1);
    /* off the diagonal 1/2 and 1/4: 1 - sqrt(2/16) / (2 sqrt(1/4 + 1/16)) = 1 - sqrt(1/10) */
    static const float two[4] = {0.5f, 0.5f, 0.25f, 0.75f};
    const qkv_pattern lopsided = {
        .size = sizeof(qkv_pattern), .weights = two, .n_tokens = 2, .bidirectional = 1};
    expect_metric("symmetry", &lopsided, 1 - sqrt(0.1));
}

/* Half of the weight goes to no key: the rest counts as one more. */
static void rows_below_one(void **state) {
    (void)state;
    static const float half[1] = {0.5f}, all[1] = {1};
    const qkv_pattern p = {
        .size = sizeof(qkv_pattern), .weights = half, .baseline = all, .n_tokens = 1};
    expect_metric("uniformity", &p, 0.5);
    expect_metric("tv", &p, 0.5);
    /* p = (1, 0): KL = ln 2 */
    expect_metric("kl", &p, LN2);
    /* Little is left, and it counts: p = (1/2, 1/2), q = (1 - 1/4096, 1/4096) */
    static const float most[1] = {1 - 1 / 4096.0f};
    const qkv_pattern little = {
        .size = sizeof(qkv_pattern), .weights = most, .baseline = half, .n_tokens = 1};
    expect_metric("uniformity", &little, 1 - 1 / 4096.0);
    expect_metric("tv", &little, 0.5 - 1 / 4096.0);
    expect_metric("kl", &little, (log(0.5 / (1 - 1 / 4096.0)) + log(2048)) / 2);
    /* The rounding of a row that sums to 1 is not a rest. */
    static const float rounded[1] = {1 - 1 / 2097152.0f};
    const qkv_pattern none = {
        .size = sizeof(qkv_pattern), .weights = all, .baseline = rounded, .n_tokens = 1};
    expect_metric("kl", &none, 0);
}

static void ranks(void **state) {
    (void)state;
    /* singular values 3/4 and 1/4: e to the entropy h1 */
    static const float diagonal[4] = {0.75f, 0, 0, 0.25f};
    const qkv_pattern p = {.size = sizeof(qkv_pattern), .weights = diagonal, .n_tokens = 2};
    expect_metric("effective_rank", &p, exp(h1));
    static const float identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const qkv_pattern q = {.size = sizeof(qkv_pattern), .weights = identity, .n_tokens = 3};
    expect_metric("effective_rank", &q, 3);
}

/* ---- tensors ---- */

enum { MAX_VALUES = 32 };

/* A totals of one layer that no plan belongs to. */
typedef struct bare {
    qkv_metric_sums totals;
    uint8_t layer_set[1], head_set[2], known[MAX_VALUES], has_hidden[2];
    int32_t layer_at[1], head_at[2];
    double values[MAX_VALUES];
    double *norms[2][2], *gram[1];
    qkv_head_sums heads[4];
} bare;

static void bare_open(bare *b, const char *metrics, int heads, int variants, int64_t n_tokens) {
    memset(b, 0, sizeof *b);
    b->layer_set[0] = b->head_set[0] = b->head_set[1] = 1;
    b->head_at[1] = 1;
    b->totals = (qkv_metric_sums){.measure = measure_of(metrics),
                                  .n_tokens = n_tokens,
                                  .n_variants = (size_t)variants,
                                  .layer_set = b->layer_set,
                                  .head_set = b->head_set,
                                  .layer_at = b->layer_at,
                                  .head_at = b->head_at,
                                  .n_layers = 1,
                                  .n_heads = heads,
                                  .all_layers = 1,
                                  .all_heads = heads,
                                  .heads = b->heads,
                                  .norms = {b->norms[0], b->norms[1]},
                                  .gram = b->gram,
                                  .values = b->values,
                                  .known = b->known};
}

static double bare_value(const bare *b, size_t variant, int32_t layer, int32_t head,
                         size_t metric) {
    const size_t slot = qkv_sum_slot(&b->totals, variant, layer, head);
    const size_t at = slot * b->totals.measure->n_metrics + metric;
    assert_true(b->known[at]);
    return b->values[at];
}

static void take(bare *b, size_t variant, qkv_site site, const float *data, int64_t s0, int64_t s1,
                 int64_t s2) {
    static const int32_t heads[2] = {0, 1};
    qkv_error err = {0};
    const qkv_tensor t = {.size = sizeof(qkv_tensor),
                          .data = data,
                          .n_dims = s2 ? 3 : 2,
                          .shape = {s0, s1, s2},
                          .heads = heads,
                          .n_heads = s2 ? (int32_t)s1 : 0};
    expect_ok(qkv_metric_sums_tensor(&b->totals, variant, site, 0, &t, &err), &err, "tensor");
}

static void bare_close(bare *b) {
    qkv_measure_free(b->totals.measure);
    free(b->totals.logit_sums);
    for (int k = 0; k < 2; k++) {
        free(b->norms[k][0]);
        free(b->norms[k][1]);
    }
}

/* Norms over two tokens: (60, 80) gives 100, the other five channels 1; their mean is 17.5. */
static void massive_channels(void **state) {
    (void)state;
    static const float x[12] = {60, 1, 1, 0, 0, 1, 80, 0, 0, -1, -1, 0};
    static const struct {
        const char *metrics;
        qkv_site site;
    } cases[] = {{"massive_q,massive_q:6", QKV_SITE_Q},
                 {"massive_k,massive_k:6", QKV_SITE_K},
                 {"massive_q_rot,massive_q_rot:6", QKV_SITE_Q_ROT},
                 {"massive_k_rot,massive_k_rot:6", QKV_SITE_K_ROT}};
    for (size_t i = 0; i < 4; i++) {
        bare b;
        bare_open(&b, cases[i].metrics, 1, 1, 2);
        take(&b, 0, cases[i].site, x, 2, 1, 6);
        expect_near("factor 5: 100 > 87.5", bare_value(&b, 0, 0, 0, 0), 1);
        expect_near("factor 6: 100 < 105", bare_value(&b, 0, 0, 0, 1), 0);
        bare_close(&b);
    }
}

/* Sizes 0.1 four times, 50, 150: the median is 0.1, a thousand times that is 100. */
static void massive_activations(void **state) {
    (void)state;
    static const float x[6] = {-150, 0.1f, 0.1f, -0.1f, 0.1f, 50};
    bare b;
    bare_open(&b, "massive,massive:40/400,massive_max,massive_ratio", 1, 1, 2);
    take(&b, 0, QKV_SITE_RESID_POST, x, 2, 3, 0);
    expect_near("massive", bare_value(&b, 0, 0, -1, 0), 1);
    expect_near("massive:40/400", bare_value(&b, 0, 0, -1, 1), 2);
    expect_near("massive_max", bare_value(&b, 0, 0, -1, 2), 150);
    assert_true(fabs(bare_value(&b, 0, 0, -1, 3) - 1500) < 1e-3);
    bare_close(&b);
}

/* Mean lengths over two tokens: (5 + 0)/2 and (10 + 5)/2, their mean is 5. */
static void head_outputs(void **state) {
    (void)state;
    static const float z[8] = {3, 4, 6, 8, 0, 0, 5, 0};
    bare b;
    bare_open(&b, "ahon_ratio,ahon:0.6", 2, 1, 2);
    take(&b, 0, QKV_SITE_Z, z, 2, 2, 2);
    expect_near("head 0", bare_value(&b, 0, 0, 0, 0), 0.5);
    expect_near("head 1", bare_value(&b, 0, 0, 1, 0), 1.5);
    expect_near("head 0 is inactive", bare_value(&b, 0, 0, 0, 1), 1);
    expect_near("head 1 is not", bare_value(&b, 0, 0, 1, 1), 0);
    bare_close(&b);
}

/* Values (3, 4) and (0, 2), of lengths 5 and 2; the one row (1/4, 3/4). Projected by diag(2, 1):
 * (6, 4) and (0, 2), of lengths sqrt 52 and 2. */
static void weighted_values(void **state) {
    (void)state;
    static const float v[4] = {3, 4, 0, 2};
    double columns[2] = {0.25, 0.75}, gram[4] = {4, 0, 0, 1};
    bare b;
    bare_open(&b, "value_weighted,value_weighted_first,norm_weighted,norm_weighted_first", 1, 1, 2);
    b.heads[0].columns = columns;
    b.gram[0] = gram;
    take(&b, 0, QKV_SITE_V, v, 2, 1, 2);
    qkv_metric_sums_weigh(&b.totals, 0, 0, 0);
    const double projected = sqrt(52) / 4 + 1.5;
    expect_near("value_weighted", bare_value(&b, 0, 0, 0, 0), 1.25 + 1.5);
    expect_near("value_weighted_first", bare_value(&b, 0, 0, 0, 1), 1.25 / 2.75);
    expect_near("norm_weighted", bare_value(&b, 0, 0, 0, 2), projected);
    expect_near("norm_weighted_first", bare_value(&b, 0, 0, 0, 3), sqrt(52) / 4 / projected);
    bare_close(&b);
}

/* Two words, two positions. Position 0: (1/2, 1/2) becomes (1/4, 3/4), so
 *   KL = 1/2 ln 2 + 1/2 ln 2/3 = 1/2 ln 4/3, and word 1 becomes the likelier one;
 * position 1: unchanged. The word after position 0 is word 1: -ln 1/2 becomes -ln 3/4. As an answer it
 * has ln 3/4; an answer of two words has none before it. */
static void outputs(void **state) {
    (void)state;
    const float base[4] = {0, 0, 0, (float)LN3}, edited[4] = {0, (float)LN3, 0, (float)LN3};
    static const int32_t words[2] = {0, 1};
    bare b;
    bare_open(&b,
              "output_kl,output_kl:0,output_kl_mean,top1_changed,top1_changed:0,"
              "top1_changed_share,loss,delta_loss,answer,answer:2",
              0, 2, 2);
    b.totals.n_layers = 0;
    b.totals.tokens = words;
    take(&b, 0, QKV_SITE_LOGITS, base, 2, 2, 0);
    take(&b, 1, QKV_SITE_LOGITS, edited, 2, 2, 0);
    const double kl = 0.5 * log(4.0 / 3);
    const double expected[10] = {0,   kl,           kl / 2,       0,         1,
                                 0.5, log(4.0 / 3), log(2.0 / 3), log(0.75), NAN};
    for (size_t i = 0; i < 10; i++)
        expect_near(b.totals.measure->metrics[i].text, bare_value(&b, 1, -1, -1, i), expected[i]);
    expect_near("loss of the baseline", bare_value(&b, 0, -1, -1, 6), LN2);
    expect_near("change of the baseline", bare_value(&b, 0, -1, -1, 7), 0);
    bare_close(&b);
}

/* Two words, (1/2, 1/2) and (1/4, 3/4), with 1/4 added: 3/4 ln(3/4 / 1/2) + 3/4 ln(3/4 / 1). With
 * 1e-12 added it is the divergence to twelve digits. The position before the last does not count. */
static void ships(void **state) {
    (void)state;
    const float base[4] = {9, 0, 0, 0}, edited[4] = {0, 9, 0, (float)LN3};
    bare b;
    bare_open(&b, "ships,ships:0.25,ships:add=0.25", 0, 2, 2);
    b.totals.n_layers = 0;
    take(&b, 0, QKV_SITE_LOGITS, base, 2, 2, 0);
    take(&b, 1, QKV_SITE_LOGITS, edited, 2, 2, 0);
    const double by_quarter = 0.75 * log(1.5) + 0.75 * log(0.75);
    expect_near("ships", bare_value(&b, 1, -1, -1, 0), 0.5 * log(4.0 / 3));
    expect_near("ships:0.25", bare_value(&b, 1, -1, -1, 1), by_quarter);
    expect_near("ships:add=0.25", bare_value(&b, 1, -1, -1, 2), by_quarter);
    expect_near("of the baseline", bare_value(&b, 0, -1, -1, 0), 0);
    bare_close(&b);
}

/* `states` is prompts × variants × width. */
static qkv_measure *measure_states(const char *metrics, float *states, size_t n_prompts,
                                   size_t n_variants, size_t width) {
    uint8_t known[3] = {1, 1, 1};
    qkv_error err = {0};
    qkv_measure *m = measure_of(metrics);
    for (size_t p = 0; p < n_prompts; p++) {
        qkv_metric_sums totals = {.n_variants = n_variants,
                                  .hidden = states + p * n_variants * width,
                                  .has_hidden = known};
        expect_ok(qkv_subspace_add(m, &totals, width, &err), &err, "a prompt");
    }
    return m;
}

static void expect_angle(const qkv_measure *m, size_t variant, size_t metric, double expected) {
    qkv_error err = {0};
    double degrees;
    expect_ok(qkv_subspace_measure(m, variant, &m->metrics[metric], &degrees, &err), &err, "angle");
    if (isnan(expected) ? !isnan(degrees) : !(fabs(degrees - expected) <= 1e-4))
        fail_msg("variant %zu, %s: %.9g, not %.9g", variant, m->metrics[metric].text, degrees,
                 expected);
}

/* Hidden states 3 e1 and e2; turned by 30 degrees, and swapped. Turning all of them alike does not
 * change how they lie to each other. */
static void subspaces(void **state) {
    (void)state;
    const float c = (float)sqrt(0.75), s = 0.5f;
    float states[12] = {3, 0, 3 * c, 3 * s, 0, 3, 0, 1, -s, c, 1, 0};
    qkv_measure *m = measure_states("subspace_angle,subspace_angle:space=feature,"
                                    "subspace_angle:2/feature,subspace_angle:rank=3/space=feature,"
                                    "subspace_angle:2",
                                    states, 2, 3, 2);
    static const double expected[3][5] = {
        {0, 0, 0, NAN, NAN}, {0, 30, 0, NAN, NAN}, {0, 90, 0, NAN, NAN}};
    for (size_t v = 0; v < 3; v++) {
        for (size_t i = 0; i < 5; i++) expect_angle(m, v, i, expected[v][i]);
    }
    qkv_measure_free(m);
}

/* Four prompts, three features. The angles are numpy's: svd(M)[0][:, :r] of both matrices, arccos of
 * the singular values of their product. */
static void subspaces_of_numpy(void **state) {
    (void)state;
    float states[24] = {5, 1, 0, 5, 1, 1, 4, -2, 1,  1,  -2, 4,
                        6, 0, 2, 6, 2, 2, 3, 1,  -1, -2, 1,  -1};
    qkv_measure *m = measure_states("subspace_angle,subspace_angle:2,subspace_angle:3/prompt,"
                                    "subspace_angle:space=feature,subspace_angle:2/feature,"
                                    "subspace_angle:4",
                                    states, 4, 2, 3);
    static const double expected[6] = {33.494172420, 67.631517414, 70.072957469,
                                       15.833263346, 22.950156084, NAN};
    for (size_t i = 0; i < 6; i++) expect_angle(m, 1, i, expected[i]);
    qkv_measure_free(m);
}

/* One prompt has nothing to lie to. */
static void subspaces_of_one(void **state) {
    (void)state;
    float states[4] = {1, 0, 0, 1};
    qkv_measure *m = measure_states("subspace_angle,subspace_angle:1/feature", states, 1, 2, 2);
    expect_angle(m, 1, 0, NAN);
    expect_angle(m, 1, 1, 90);
    qkv_measure_free(m);
}

/* Two heads of which one has more than 0.3 on the first key: in test_measure.c, on a model. */
static void all_were_worked(void **state) {
    (void)state;
    for (size_t i = 0; qkv_metric_get(i); i++) {
        if (!worked[i] && strcmp(qkv_metric_get(i)->name, "sink_rate") != 0)
            fail_msg("no test has worked %s by hand", qkv_metric_get(i)->name);
    }
}

/* ---- names ---- */

static void expect_refused(const char *metrics, const char *part) {
    qkv_error err = {0};
    qkv_measure *m = NULL;
    assert_int_equal(qkv_measure_new(&m, metrics, NULL, &err), QKV_ERR_SYNTAX);
    assert_null(m);
    if (!strstr(err.message, part)) fail_msg("'%s': %s", metrics, err.message);
}

static void bad_names(void **state) {
    (void)state;
    expect_refused("", "no metric ''");
    expect_refused("sink,nothing", "no metric 'nothing'");
    expect_refused("sink,sink", "given twice");
    expect_refused("sink:", "key = 0");
    expect_refused("sink:-1", "key = 0");
    expect_refused("sink:0.5", "key = 0");
    expect_refused("entropy:1", "takes no parameters");
    expect_refused("massive:1/2/3", "size = 100, ratio = 1000");
    expect_refused("subspace_angle:0", "rank = 1");
    expect_refused("subspace_angle:space=token", "space = prompt");
    expect_refused("subspace_angle:feature", "rank = 1");
    expect_refused("subspace_angle:1/rank=2", "rank = 1");
    expect_refused("subspace_angle:place=prompt", "rank = 1");
    expect_refused("massive:ratio=5/7", "size = 100, ratio = 1000");
    expect_refused("ships:-1", "add = 1e-12");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_pattern),
        cmocka_unit_test(without_tokens),
        cmocka_unit_test(change_from_baseline),
        cmocka_unit_test(no_change),
        cmocka_unit_test(one_token),
        cmocka_unit_test(sliding_window),
        cmocka_unit_test(bidirectional),
        cmocka_unit_test(rows_below_one),
        cmocka_unit_test(ranks),
        cmocka_unit_test(massive_channels),
        cmocka_unit_test(massive_activations),
        cmocka_unit_test(head_outputs),
        cmocka_unit_test(weighted_values),
        cmocka_unit_test(outputs),
        cmocka_unit_test(ships),
        cmocka_unit_test(subspaces),
        cmocka_unit_test(subspaces_of_numpy),
        cmocka_unit_test(subspaces_of_one),
        cmocka_unit_test(all_were_worked),
        cmocka_unit_test(bad_names),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
