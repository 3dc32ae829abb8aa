/*
 * The memory budget decides how much is computed at a time, and nothing else: results are the same
 * to the last bit whatever it is, and whatever a session has computed before. Prompts are longer
 * than one block of queries, and variants of all kinds fork at the same place, so that budgets
 * make different batches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/synthetic.h"
#include "qkv/measure.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/values.h"

enum { MOST_TOKENS = 600, VOCABULARY = 300 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const size_t lengths[] = {300, 600};
static const size_t mebibytes[] = {1, 16, 64, 1024};
enum { LENGTHS = sizeof lengths / sizeof *lengths, BUDGETS = sizeof mebibytes / sizeof *mebibytes };

/* The last key of a block's own, and one far beyond it. */
static const char *const edits[] = {"q@0=scale:0.5",
                                    "v@0[100:]=zero",
                                    "k@0.h1=zero",
                                    "pattern@0.h1[:,0]=zero",
                                    "pattern@0[5:9,250:290]=set:0.01",
                                    "scores@0[20:200,10:150]=add:1",
                                    "q@1=scale:0.25",
                                    "scores@1.h0=mean:dim",
                                    "z@1=scale:0.5",
                                    NULL};

static const int32_t *prompt(void) {
    static int32_t tokens[MOST_TOKENS];
    for (int t = 0; t < MOST_TOKENS; t++) tokens[t] = 1 + t * 7 % (VOCABULARY - 1);
    return tokens;
}

static void open_model(engine *e, const char *shape) {
    qkv_error err = {0};
    const char *path = scratch_path("budget.gguf");
    expect_ok(qkv_synthetic_write(path, shape, "q8_0", 1, &err), &err, "writing");
    engine_open(e, path, 1);
}

static void renew(engine *e, size_t mib, int n_threads) {
    engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                           .n_threads = n_threads,
                                           .memory_budget = mib << 20});
}

static void expect_same(const qkv_result *a, const qkv_result *b) {
    size_t variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor x = QKV_TENSOR_INIT, y = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(a, i, &variant, &site, &layer, &x); i++) {
        int found = x.reduction ? qkv_result_get_reduced(b, variant, x.reduction, layer, &y)
                                : qkv_result_get(b, variant, site, layer, &y);
        assert_true(found);
        if (!same_bits(x.data, y.data, tensor_count(&x)))
            fail_msg("'%s': %s of layer %d differs", variant ? edits[variant - 1] : "baseline",
                     qkv_site_name(site), (int)layer);
    }
}

static const char *const shapes[] = {"2,4,2,64,96,300", "gpt2:2,4,4,128,96,300"};

static void runs(void **state) {
    (void)state;
    const char *const *captures = LIST("z", "resid_post", "logits", "pattern@1:columns");
    for (int s = 0; s < 2; s++) {
        engine e;
        open_model(&e, shapes[s]);
        for (int i = 0; i < LENGTHS; i++) {
            const engine_run run = {prompt(), lengths[i], edits, captures, NULL};
            renew(&e, mebibytes[BUDGETS - 1], 1);
            qkv_result *expected = engine_execute(&e, &run);
            for (int b = 0; b < BUDGETS - 1; b++) {
                renew(&e, mebibytes[b], 1);
                qkv_result *actual = engine_execute(&e, &run);
                expect_same(expected, actual);
                qkv_result_free(actual);
            }
            qkv_result_free(expected);
        }
        engine_close(&e);
    }
}

static qkv_table *measured(engine *e, size_t n_tokens, const char *const *variants,
                           const char *metrics) {
    qkv_error err = {0};
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    qkv_plan *plan = engine_plan(e, &(engine_run){prompt(), n_tokens, variants, NULL, NULL});
    expect_ok(qkv_measure_new(&measure, metrics, NULL, &err), &err, "metrics");
    expect_ok(qkv_measure_run(measure, &table, e->session, plan, &err), &err, "measuring");
    qkv_plan_free(plan);
    qkv_measure_free(measure);
    return table;
}

static void expect_same_table(const qkv_table *a, const qkv_table *b) {
    assert_int_equal(qkv_table_size(a), qkv_table_size(b));
    for (size_t i = 0; i < qkv_table_size(a); i++) {
        const qkv_measurement x = table_row(a, i), y = table_row(b, i);
        if (memcmp(&x.value, &y.value, sizeof x.value) != 0)
            fail_msg("variant %zu, layer %d, head %d: metric %zu is %.17g and %.17g", x.variant,
                     (int)x.layer, (int)x.head, x.metric, x.value, y.value);
    }
}

static void measurements(void **state) {
    (void)state;
    engine e;
    open_model(&e, shapes[0]);
    for (int i = 0; i < LENGTHS; i++) {
        renew(&e, mebibytes[BUDGETS - 1], 1);
        qkv_table *expected = measured(&e, lengths[i], edits, NULL);
        for (int b = 0; b < BUDGETS - 1; b++) {
            renew(&e, mebibytes[b], 1);
            qkv_table *actual = measured(&e, lengths[i], edits, NULL);
            expect_same_table(expected, actual);
            qkv_table_free(actual);
        }
        qkv_table_free(expected);
    }
    engine_close(&e);
}

/* Small passes and large ones on both sides of the size from which a session uses its threads:
 * from wherever LAPACK is called, it rounds in the same way. */
static void singular_values(void **state) {
    (void)state;
    engine e;
    open_model(&e, "1,4,4,128,64,300");
    const char *const *variants = LIST("q@0=scale:0.5", "k@0=scale:0.7", "q@0=scale:0.3",
                                       "k@0=scale:0.6", "q@0=scale:0.2", "k@0=scale:0.1");
    renew(&e, 1024, 2);
    qkv_table *expected = measured(&e, 400, variants, "effective_rank");
    renew(&e, 1, 2);
    qkv_table *actual = measured(&e, 400, variants, "effective_rank");
    expect_same_table(expected, actual);
    qkv_table_free(expected);
    qkv_table_free(actual);
    engine_close(&e);
}

/* A plan that needs whole maps rounds otherwise; what it leaves in the session must not show in the
 * next one, on the same tokens. */
static void after_whole_maps(void **state) {
    (void)state;
    engine e;
    open_model(&e, shapes[1]);
    const char *const *variants = LIST("q@1=scale:0.5");
    const engine_run run = {prompt(), MOST_TOKENS, variants, LIST("resid_post@1"), NULL};
    const engine_run whole = {prompt(), MOST_TOKENS, variants, LIST("pattern"), NULL};
    renew(&e, 256, 2);
    qkv_result *expected = engine_execute(&e, &run);
    renew(&e, 256, 2);
    qkv_result_free(engine_execute(&e, &whole));
    qkv_result *actual = engine_execute(&e, &run);
    expect_same(expected, actual);
    qkv_result_free(expected);
    qkv_result_free(actual);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
        cmocka_unit_test(measurements),
        cmocka_unit_test(singular_values),
        cmocka_unit_test(after_whole_maps),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
