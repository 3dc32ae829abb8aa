/*
 * A plan that prepares for others leaves them what they start with, within the memory budget, and
 * neither the preparation nor what it kept shows in their results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "run/run.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "support/values.h"

/* Products with weights of a layer, and of these for its heads. Beyond 256 tokens attention goes in
 * blocks, unless whole maps are captured. */
enum { LAYERS = 4, P = 7, HEADS = 3, SHORT = 9, LONG = 300 };

/* Floats per token that are kept of a layer: its input, and 4 + 2 × 2 heads of 8. */
enum { KEPT = 32 + 64 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static engine e;

static int open_model(void **state) {
    (void)state;
    const tiny_options options = {"llama", .n_kv_head = 2, .n_layer = LAYERS, .n_ctx = LONG};
    engine_open(&e, tiny_model(&options, "prepare.gguf"), 1);
    return 0;
}

static int close_model(void **state) {
    engine_close(&e);
    return scratch_clean(state);
}

static void renew(size_t memory_budget) {
    engine_renew(&e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                            .n_threads = 1,
                                            .memory_budget = memory_budget});
}

static const int32_t *prompt(void) {
    static int32_t tokens[LONG];
    for (int t = 0; t < LONG; t++) tokens[t] = 3 + t * 7 % (TINY_VOCAB - 3);
    return tokens;
}

static qkv_result *run(size_t n_tokens, const char *variant, const char *capture) {
    const char *const variants[] = {variant, NULL};
    return engine_execute(&e, &(engine_run){prompt(), n_tokens, variants, LIST(capture), NULL});
}

/* Weights on the first token, and what is prepared on the way. Returns the products it took. */
static uint64_t prepare(size_t n_tokens, const char *const *captures) {
    qkv_error err = {0};
    qkv_result *result = NULL;
    qkv_plan *plan =
        engine_plan(&e, &(engine_run){prompt(), n_tokens, NULL, LIST("pattern:first"), NULL});
    for (; *captures; captures++)
        expect_ok(qkv_plan_prepare(plan, *captures, &err), &err, *captures);
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "preparing");
    const uint64_t n = result_stats(result).n_matmul;
    assert_false(qkv_result_item(result, LAYERS, NULL, NULL, NULL, NULL)); /* what is captured */
    qkv_result_free(result);
    qkv_plan_free(plan);
    return n;
}

/* What one more edit takes. */
static uint64_t cost(size_t n_tokens, const char *variant, const char *capture) {
    qkv_result *result = run(n_tokens, variant, capture);
    const uint64_t n = result_stats(result).n_matmul;
    qkv_result_free(result);
    return n;
}

/* The same bits as in a session that has computed nothing else. */
static void expect_fresh(size_t n_tokens, const char *variant, const char *capture, qkv_site site,
                         int32_t layer) {
    qkv_result *used = run(n_tokens, variant, capture);
    renew(0);
    qkv_result *expected = run(n_tokens, variant, capture);
    for (size_t v = 0; v < 2; v++) {
        const qkv_tensor a = engine_tensor(used, v, site, layer);
        const qkv_tensor b = engine_tensor(expected, v, site, layer);
        assert_int_equal(tensor_count(&a), tensor_count(&b));
        assert_true(same_bits(a.data, b.data, tensor_count(&a)));
    }
    qkv_result_free(used);
    qkv_result_free(expected);
}

static void layer_text(char text[32], const char *format, int layer) {
    snprintf(text, 32, format, layer);
}

/* One pass, to the heads of the last layer, and after it no product with weights. */
static void every_layer_is_there(void **state) {
    (void)state;
    static const size_t lengths[] = {SHORT, LONG};
    for (int i = 0; i < 2; i++) {
        renew(0);
        assert_int_equal(prepare(lengths[i], LIST("pattern")), (LAYERS - 1) * P + HEADS);
        for (int layer = 0; layer < LAYERS; layer++) {
            char edit[32], map[32];
            layer_text(edit, "q@%d.h1=scale:0.5", layer);
            layer_text(map, "pattern@%d", layer);
            assert_int_equal(cost(lengths[i], edit, map), 0);
        }
    }
}

/* Prepared layer by layer, and with the output's input. */
static void only_what_is_named_is_kept(void **state) {
    (void)state;
    renew(0);
    assert_int_equal(prepare(SHORT, LIST("pattern@1", "logits")), LAYERS * P);
    assert_int_equal(cost(SHORT, "q@1=zero", "pattern@1"), 0);
    assert_int_equal(cost(SHORT, "logits=add:1", "logits"), 2);
    renew(0);
    assert_int_equal(prepare(SHORT, LIST("pattern@1")), (LAYERS - 1) * P + 2); /* not v@3 */
    assert_int_equal(cost(SHORT, "q@2=zero", "pattern@2"), P);
}

/* What does not fit is computed again from the nearest layer below. */
static void a_budget_thins_out_the_layers(void **state) {
    (void)state;
    const size_t layer = (size_t)SHORT * KEPT * sizeof(float);
    const struct {
        size_t budget;
        uint64_t expected[LAYERS]; /* products of an edit at layer 0, 1, 2, 3 */
    } facts[] = {
        {4 * layer, {0, 0, 0, 0}},
        {2 * layer, {HEADS, 0, P, 0}},
        {layer, {HEADS, P + HEADS, 2 * P + HEADS, 0}},
        {layer - 1, {HEADS, P + HEADS, 2 * P + HEADS, 3 * P + HEADS}},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        for (int at = 0; at < LAYERS; at++) {
            char edit[32], map[32];
            layer_text(edit, "q@%d=zero", at);
            layer_text(map, "pattern@%d", at);
            renew(facts[i].budget);
            prepare(SHORT, LIST("pattern"));
            const uint64_t n = cost(SHORT, edit, map);
            if (n != facts[i].expected[at])
                fail_msg("%zu bytes, layer %d: %llu products with weights, not %llu",
                         facts[i].budget, at, (unsigned long long)n,
                         (unsigned long long)facts[i].expected[at]);
        }
    }
}

/* Attention was cut as the later plan cuts it, or its trunk is not used: the bits are those of a
 * session of the plan's own. */
static void bits_do_not_depend_on_it(void **state) {
    (void)state;
    static const char *const prepared[] = {"pattern", "pattern:first", "z", "scores@2.h1"};
    for (size_t i = 0; i < sizeof prepared / sizeof *prepared; i++) {
        renew(0);
        prepare(LONG, LIST(prepared[i]));
        expect_fresh(LONG, "q@2.h1=scale:0.5", "pattern@2", QKV_SITE_PATTERN, 2);
        renew(0);
        prepare(LONG, LIST(prepared[i]));
        expect_fresh(LONG, "q@2.h1=scale:0.5", "resid_post@3", QKV_SITE_RESID_POST, 3);
    }
    /* Which of the two it was. */
    const uint64_t variant = P - HEADS + P; /* from layer 2 to the end of layer 3 */
    renew(0);
    prepare(LONG, LIST("z"));
    assert_int_equal(cost(LONG, "q@2=zero", "resid_post@3"), P - HEADS + variant);
    renew(0);
    prepare(LONG, LIST("pattern"));
    assert_int_equal(cost(LONG, "q@2=zero", "resid_post@3"), LAYERS * P + variant);
}

static void sessions_add_up_their_runs(void **state) {
    (void)state;
    renew(0);
    assert_int_equal(session_stats(e.session).n_passes, 0);
    qkv_result *a = run(SHORT, "q@2=zero", "pattern@2"), *b = run(SHORT, "q@3=zero", "logits");
    const qkv_run_stats x = result_stats(a), y = result_stats(b), sum = session_stats(e.session);
    assert_int_equal(sum.n_passes, x.n_passes + y.n_passes);
    assert_int_equal(sum.n_matmul, x.n_matmul + y.n_matmul);
    assert_int_equal(sum.n_attention, x.n_attention + y.n_attention);
    assert_true(sum.flop == x.flop + y.flop && sum.weight_bytes == x.weight_bytes + y.weight_bytes);
    qkv_error err = {0};
    qkv_run_stats estimate = QKV_RUN_STATS_INIT;
    qkv_plan *plan = engine_plan(&e, &(engine_run){prompt(), SHORT, NULL, LIST("logits"), NULL});
    expect_ok(qkv_session_estimate(e.session, &estimate, plan, &err), &err, "estimate");
    assert_int_equal(session_stats(e.session).n_passes, sum.n_passes); /* computes nothing */
    qkv_plan_free(plan);
    qkv_result_free(a);
    qkv_result_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_is_there),
        cmocka_unit_test(only_what_is_named_is_kept),
        cmocka_unit_test(a_budget_thins_out_the_layers),
        cmocka_unit_test(bits_do_not_depend_on_it),
        cmocka_unit_test(sessions_add_up_their_runs),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
