/*
 * What the planner saves must not show in the results, and must show in its accounts: every variant
 * as it comes out of a plan of hundreds, against a session that ran nothing but it, against the
 * scalar reference, and the numbers of products against what the model's shape says they are.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/ref_cases.h"
#include "reference/ref_forward.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/judge.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "support/values.h"

enum { T = 9, LAYERS = 4 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Products with weights: of one layer, of which for the heads. */
typedef struct family {
    const char *file;
    tiny_options options;
    uint64_t per_layer, for_heads;
} family;

static const family families[] = {
    {"planner-llama.gguf", {"llama", .n_kv_head = 2, .n_layer = LAYERS}, 7, 3},
    {"planner-gpt2.gguf", {"gpt2", .n_layer = LAYERS}, 4, 1},
};

static const int32_t *prompt(uint64_t seed) {
    static int32_t tokens[2][T];
    int32_t *out = tokens[seed % 2];
    dice d = {seed};
    for (int t = 0; t < T; t++) out[t] = t == 0 ? 1 : 3 + (int32_t)dice_below(&d, 256);
    return out;
}

static engine_run run_of(const char *const *variants, const char *const *captures) {
    return (engine_run){prompt(7), T, variants, captures, prompt(8)};
}

static qkv_result *run(engine *e, const char *const *variants, const char *const *captures) {
    const engine_run r = run_of(variants, captures);
    return engine_execute(e, &r);
}

static void fresh(engine *e) {
    engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = 1});
}

/* What a plan takes on a session that has computed nothing yet. */
static qkv_run_stats cost(engine *e, const char *const *variants, const char *const *captures) {
    fresh(e);
    qkv_result *result = run(e, variants, captures);
    const qkv_run_stats stats = result_stats(result);
    qkv_result_free(result);
    return stats;
}

static void for_each_family(void (*check)(engine *e, const family *f)) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        engine e;
        engine_open(&e, tiny_model(&families[i].options, families[i].file), 1);
        check(&e, &families[i]);
        engine_close(&e);
    }
}

/* ---- results ---- */

/* The same variant alone, in a session of its own. */
static void check_alone(engine *alone, const qkv_tensor *t, const observed *o, const char *edit) {
    fresh(alone);
    qkv_result *result = run(alone, LIST(edit), LIST(o->text));
    const qkv_tensor u = engine_tensor(result, 1, o->site, o->layer);
    assert_int_equal(tensor_count(&u), tensor_count(t));
    const difference d = compare_floats(t->data, u.data, tensor_count(t));
    if (d.max > 1e-5 * fmax(d.scale, 1))
        fail_msg("'%s' seen at %s: off by %g from the run of its own", edit, o->text, d.max);
    qkv_result_free(result);
}

static void check_observed(engine *e, engine *alone, const ref_cases *list,
                           ref_run *const *expected, const observed *o) {
    qkv_result *result = run(e, list->variants, LIST(o->text));
    judge_observed(result, list, expected, o);
    for (size_t i = 0; i < list->n; i++) {
        const qkv_tensor t = engine_tensor(result, i + 1, o->site, o->layer);
        if ((i + (size_t)o->site) % 5 == 0) check_alone(alone, &t, o, list->text[i]);
    }
    qkv_result_free(result);
}

static void check_family(engine *e, const family *f) {
    engine alone;
    const char *path = scratch_path(f->file);
    ref_model *ref = ref_model_load(path);
    ref_cases *list = ref_make_cases(ref, T);
    ref_run *expected[REF_MAX_CASES] = {NULL};
    ref_run *source = ref_forward(ref, prompt(8), T, NULL, 0, NULL);
    for (size_t i = 0; i < list->n; i++)
        expected[i] = ref_forward(ref, prompt(7), T, &list->edits[i], 1, source);
    engine_open(&alone, path, 1);
    for (int site = 0; site < QKV_SITE_COUNT; site++)
        for (int layer = ref_has_site(ref, (qkv_site)site) ? 1 : LAYERS;
             layer < (ref_has_layer((qkv_site)site) ? LAYERS : 2); layer++) {
            const observed o =
                judge_observe((qkv_site)site, ref_has_layer((qkv_site)site) ? layer : 0);
            check_observed(e, &alone, list, expected, &o);
        }
    engine_close(&alone);
    for (size_t i = 0; i < list->n; i++) ref_run_free(expected[i]);
    ref_run_free(source);
    ref_model_free(ref);
    free(list);
}

static void every_edit_seen_from_everywhere(void **state) {
    (void)state;
    for_each_family(check_family);
}

/* ---- accounts ---- */

static void check_values_are_free(engine *e, const family *f) {
    (void)f;
    const char *const *captures = LIST("pattern@1");
    const qkv_run_stats without = cost(e, NULL, captures);
    fresh(e);
    qkv_result *result = run(e, LIST("v@1=zero", "v@1.h2=scale:3", "v@1-3=mean:token"), captures);
    const qkv_run_stats with = result_stats(result);
    assert_int_equal(with.n_matmul, without.n_matmul);
    assert_int_equal(with.n_attention, without.n_attention);
    assert_int_equal(with.n_passes, without.n_passes);
    for (size_t v = 1; v < 4; v++) {
        assert_int_equal(qkv_result_edit_ran(result, v, 0), 0);
        assert_ptr_equal(engine_tensor(result, v, QKV_SITE_PATTERN, 1).data,
                         engine_tensor(result, 0, QKV_SITE_PATTERN, 1).data);
    }
    qkv_result_free(result);
}

static void values_seen_in_their_own_pattern(void **state) {
    (void)state;
    for_each_family(check_values_are_free);
}

/* The first edit makes the trunk keep q, k and v: where v has a projection of its own that the
 * pattern alone does not need, that is one product more. Any number of edits adds no other, and all
 * of them are one product in attention. */
static void check_one_attention(engine *e, const family *f) {
    const char *const *captures = LIST("pattern@1");
    const uint64_t values = f->for_heads == 3 ? 1 : 0;
    const qkv_run_stats none = cost(e, NULL, captures);
    const qkv_run_stats one = cost(e, LIST("q@1=scale:0.5"), captures);
    const qkv_run_stats many =
        cost(e,
             LIST("q@1=scale:0.5", "q@1.h0=zero", "q_rot@1=scale:1e-3", "k@1=scale:0.5",
                  "k@1.h1=zero", "k_rot@1=add:1", "scores@1[:,0]=zero", "pattern@1.h2=set:0.1"),
             captures);
    assert_int_equal(none.n_matmul, f->per_layer + (f->for_heads == 3 ? 2 : 1));
    assert_int_equal(none.n_attention, 3);
    assert_int_equal(one.n_matmul, none.n_matmul + values);
    assert_int_equal(one.n_attention, none.n_attention + 1);
    assert_int_equal(many.n_matmul, one.n_matmul);
    assert_int_equal(many.n_attention, one.n_attention);
    assert_int_equal(many.n_passes, 2);
}

static void queries_and_keys_cost_one_attention(void **state) {
    (void)state;
    for_each_family(check_one_attention);
}

/* Only the heads that an edit concerns are computed again. */
static void check_heads_concerned(engine *e, const family *f) {
    (void)f;
    const char *const *captures = LIST("pattern@1");
    const double none = cost(e, LIST("v@1=zero"), captures).flop;
    const double all = cost(e, LIST("q@1=zero"), captures).flop;
    const double one = cost(e, LIST("q@1.h2=zero"), captures).flop;
    const double map = 2.0 * T * T * 8; /* of one head, 8 wide */
    assert_true(fabs(all - one - 3 * map) < 1);
    assert_true(one > none);
}

static void one_head_costs_one_head(void **state) {
    (void)state;
    for_each_family(check_heads_concerned);
}

static void check_fork(engine *e, const family *f) {
    const char *const *captures = LIST("logits");
    const uint64_t P = f->per_layer, whole = LAYERS * P + 1;
    const struct {
        const char *edit;
        uint64_t extra;
    } facts[] = {
        {"q@2=scale:0.5", P - f->for_heads + P + 1},
        {"v@3.h0=zero", P - f->for_heads + 1},
        {"pattern@0=scale:0.5", P - f->for_heads + 3 * P + 1},
        {"resid_pre@2=scale:0.5", 2 * P + 1},
        {"resid_pre@0=scale:0.5", whole},
        {"q@1=zero + v@3=zero", P - f->for_heads + 2 * P + 1},
        {"logits=add:1", 1},
    };
    assert_int_equal(cost(e, NULL, captures).n_matmul, whole);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const qkv_run_stats s = cost(e, LIST(facts[i].edit), captures);
        if (s.n_matmul != whole + facts[i].extra)
            fail_msg("%s, '%s': %llu products with weights, not %llu", f->options.family,
                     facts[i].edit, (unsigned long long)s.n_matmul,
                     (unsigned long long)(whole + facts[i].extra));
        assert_int_equal(s.n_passes, 2);
    }
}

static void layers_below_the_fork(void **state) {
    (void)state;
    for_each_family(check_fork);
}

static void check_end(engine *e, const family *f) {
    const uint64_t P = f->per_layer;
    assert_int_equal(cost(e, NULL, LIST("resid_post@1")).n_matmul, 2 * P);
    assert_int_equal(cost(e, NULL, LIST("resid_pre@0")).n_matmul, 0);
    assert_int_equal(cost(e, NULL, LIST("z@2", "pattern@0")).n_matmul, 2 * P + f->for_heads);
    /* an edit after the last capture is not run at all */
    const qkv_run_stats s = cost(e, LIST("q@3=zero", "logits=zero"), LIST("resid_post@1"));
    assert_int_equal(s.n_matmul, 2 * P);
    assert_int_equal(s.n_passes, 1);
}

static void nothing_behind_the_last_capture(void **state) {
    (void)state;
    for_each_family(check_end);
}

/* ---- the trunk ---- */

static void expect_same(const qkv_result *a, const qkv_result *b) {
    size_t variant = 0, n = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor x = QKV_TENSOR_INIT;
    for (; qkv_result_item(a, n, &variant, &site, &layer, &x); n++) {
        const qkv_tensor y = engine_tensor(b, variant, site, layer);
        assert_int_equal(tensor_count(&x), tensor_count(&y));
        assert_true(same_bits(x.data, y.data, tensor_count(&x)));
    }
    assert_true(n > 0);
}

static void check_warm(engine *e, const family *f) {
    const char *const *captures = LIST("pattern@2");
    fresh(e);
    qkv_result_free(run(e, LIST("q@2=scale:0.5"), captures));
    qkv_result *warm = run(e, LIST("q@2=scale:1e-3", "k@2=scale:2"), captures);
    assert_int_equal(result_stats(warm).n_matmul, 0);
    assert_int_equal(result_stats(warm).n_attention, 2);
    /* another layer starts at the nearest one that is there */
    qkv_result *above = run(e, LIST("q@3=scale:0.5"), LIST("pattern@3"));
    assert_int_equal(result_stats(above).n_matmul, f->per_layer);
    fresh(e);
    qkv_result *cold = run(e, LIST("q@2=scale:1e-3", "k@2=scale:2"), captures);
    expect_same(warm, cold);
    fresh(e);
    qkv_result *cold_above = run(e, LIST("q@3=scale:0.5"), LIST("pattern@3"));
    expect_same(above, cold_above);
    qkv_result_free(warm);
    qkv_result_free(above);
    qkv_result_free(cold);
    qkv_result_free(cold_above);
}

static void another_strength_runs_no_layer(void **state) {
    (void)state;
    for_each_family(check_warm);
}

static void check_prompts(engine *e, const family *f) {
    (void)f;
    const char *const *variants = LIST("q@2=scale:0.5"), *const *captures = LIST("pattern@2");
    const uint64_t full = cost(e, variants, captures).n_matmul;
    const engine_run runs[] = {{prompt(7), T, variants, captures, NULL},
                               {prompt(8), T, variants, captures, NULL},
                               {prompt(8), T - 1, variants, captures, NULL},
                               {prompt(7), T, variants, captures, NULL}};
    fresh(e);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        qkv_result *used = engine_execute(e, &runs[i]);
        assert_int_equal(result_stats(used).n_matmul, full);
        qkv_session *session = e->session;
        e->session = NULL;
        fresh(e);
        qkv_result *expected = engine_execute(e, &runs[i]);
        expect_same(used, expected);
        qkv_session_free(e->session);
        e->session = session;
        qkv_result_free(used);
        qkv_result_free(expected);
    }
}

static void another_prompt_starts_anew(void **state) {
    (void)state;
    for_each_family(check_prompts);
}

/* Beyond the budget only the last plan's layers are kept. */
static void check_trunk_memory(engine *e, const family *f) {
    static const size_t budgets[] = {1, (size_t)64 << 20};
    for (int i = 0; i < 2; i++) {
        engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                               .n_threads = 1,
                                               .memory_budget = budgets[i]});
        qkv_result_free(run(e, LIST("q@1=zero"), LIST("pattern@1")));
        qkv_result_free(run(e, LIST("q@3=zero"), LIST("pattern@3")));
        qkv_result *again = run(e, LIST("q@1=zero"), LIST("pattern@1"));
        const uint64_t expected = i ? 0 : f->per_layer + f->for_heads;
        assert_int_equal(result_stats(again).n_matmul, expected);
        qkv_result_free(again);
    }
}

static void trunk_stays_within_its_budget(void **state) {
    (void)state;
    for_each_family(check_trunk_memory);
}

static void check_batches(engine *e, const family *f) {
    (void)f;
    const char *const *variants =
        LIST("q@1=scale:0.5", "k@1.h2=zero", "v@1.h0=zero", "q@1.h3=noise:0.5,seed=3",
             "pattern@1=mean:head", "resid_pre@1=scale:0.5", "resid_pre@1=patch:src", "z@2=zero");
    const char *const *captures = LIST("pattern@1-2", "logits");
    fresh(e);
    qkv_result *together = run(e, variants, captures);
    engine_renew(e, &(qkv_session_options){
                        .size = sizeof(qkv_session_options), .n_threads = 1, .memory_budget = 1});
    qkv_result *apart = run(e, variants, captures);
    /* the other prompt and the baseline; then three batches, or one pass for each */
    assert_int_equal(result_stats(together).n_passes, 2 + 3);
    assert_int_equal(result_stats(apart).n_passes, 2 + 8);
    expect_same(together, apart);
    qkv_result_free(together);
    qkv_result_free(apart);
}

static void batches_do_not_show(void **state) {
    (void)state;
    for_each_family(check_batches);
}

/* ---- logits of some tokens ---- */

/* The normed state of one token and the logits of others: each capture has its own rows. */
static void check_normed_states(engine *e, const family *f) {
    (void)f;
    const char *const *variants =
        LIST("q@1=zero", "final_norm[1]=scale:3", "final_norm=mean:token");
    fresh(e);
    qkv_result *all = run(e, variants, LIST("final_norm", "logits"));
    fresh(e);
    qkv_result *some = run(e, variants, LIST("final_norm[-1]", "final_norm[1]", "logits[0]"));
    fresh(e);
    qkv_result *state = run(e, variants, LIST("final_norm[-1]"));
    for (size_t v = 0; v < 4; v++) {
        const qkv_tensor a = engine_tensor(all, v, QKV_SITE_FINAL_NORM, 0);
        const qkv_tensor b = engine_tensor(some, v, QKV_SITE_FINAL_NORM, 0);
        const qkv_tensor c = engine_tensor(state, v, QKV_SITE_FINAL_NORM, 0);
        const int64_t D = a.shape[1];
        assert_int_equal(a.shape[0], T);
        assert_int_equal(b.shape[0], 2);
        assert_int_equal(c.shape[0], 1);
        assert_true(same_bits(b.data, a.data + D, (size_t)D));
        assert_true(same_bits(b.data + D, a.data + (T - 1) * D, (size_t)D));
        assert_true(same_bits(c.data, b.data + D, (size_t)D));
        const qkv_tensor l = engine_tensor(all, v, QKV_SITE_LOGITS, 0);
        const qkv_tensor first = engine_tensor(some, v, QKV_SITE_LOGITS, 0);
        assert_int_equal(first.shape[0], 1);
        assert_true(same_bits(first.data, l.data, TINY_VOCAB));
    }
    /* One product less than the logits need, in each pass that ends there. */
    assert_true(result_stats(state).n_matmul < result_stats(some).n_matmul);
    assert_true(result_stats(state).flop < result_stats(all).flop);
    qkv_result_free(all);
    qkv_result_free(some);
    qkv_result_free(state);
}

static void normed_states_of_some_tokens(void **state) {
    (void)state;
    for_each_family(check_normed_states);
}

static void check_last_token(engine *e, const family *f) {
    const char *const *variants = LIST("q@1=zero", "v@3=scale:0.5", "logits=mean:token");
    fresh(e);
    qkv_result *all = run(e, variants, LIST("logits"));
    fresh(e);
    qkv_result *last = run(e, variants, LIST("logits[-1]"));
    for (size_t v = 0; v < 4; v++) {
        const qkv_tensor a = engine_tensor(all, v, QKV_SITE_LOGITS, 0);
        const qkv_tensor b = engine_tensor(last, v, QKV_SITE_LOGITS, 0);
        assert_int_equal(b.n_dims, 2);
        assert_int_equal(b.shape[0], 1);
        assert_int_equal(b.shape[1], TINY_VOCAB);
        const difference d = compare_floats(b.data, a.data + (T - 1) * TINY_VOCAB, TINY_VOCAB);
        assert_true(d.max <= 1e-5 * fmax(d.scale, 1));
    }
    const qkv_run_stats more = result_stats(all), less = result_stats(last);
    assert_int_equal(less.n_matmul, more.n_matmul);
    /* The baseline and two variants leave out the logits of T - 1 tokens; an edit of the logits reads
     * them all. The two also leave these tokens out after the last attention; the baseline does not,
     * because that edit starts from what it leaves after the last layer. */
    const uint64_t feed_forward = (f->per_layer - f->for_heads - 1) * 32 * 64;
    const uint64_t left_out = 3 * TINY_VOCAB * 32 + 2 * (32 * 32 + feed_forward);
    assert_true(fabs(more.flop - less.flop - 2.0 * (T - 1) * (double)left_out) < 1);
    qkv_result_free(all);
    qkv_result_free(last);
}

static void logits_of_the_last_token(void **state) {
    (void)state;
    for_each_family(check_last_token);
}

/* ---- explanation ---- */

static void check_explanation(engine *e, const char *const *variants, const char *const *captures) {
    qkv_error err = {0};
    char *text = NULL;
    unsigned long long passes = 0, matmul = 0, attention = 0;
    double gflop = 0;
    const engine_run r = run_of(variants, captures);
    qkv_plan *plan = engine_plan(e, &r);
    expect_ok(qkv_session_explain(e->session, &text, plan, &err), &err, "explain");
    qkv_plan_free(plan);
    assert_non_null(text);
    const char *total = strstr(text, "total: ");
    assert_non_null(total);
    const int n =
        sscanf(total, "total: %llu pas%*[es], %llu product%*[^0-9]%llu in attention, %lf GFLOP",
               &passes, &matmul, &attention, &gflop);
    assert_int_equal(n, 4);
    qkv_result *result = run(e, variants, captures);
    const qkv_run_stats stats = result_stats(result);
    assert_int_equal(passes, stats.n_passes);
    assert_int_equal(matmul, stats.n_matmul);
    assert_int_equal(attention, stats.n_attention);
    assert_true(fabs(gflop - stats.flop / 1e9) <= 0.006 * stats.flop / 1e9);
    qkv_result_free(result);
    qkv_text_free(text);
}

static void check_explanations(engine *e, const family *f) {
    (void)f;
    static const size_t budgets[] = {0, 1};
    for (int i = 0; i < 2; i++) {
        engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                               .n_threads = 1,
                                               .memory_budget = budgets[i]});
        const char *const *variants = LIST("q@1=zero", "k@1.h2=zero", "v@1=zero", "q@2=patch:src");
        for (int again = 0; again < 2; again++) {
            check_explanation(e, variants, LIST("pattern@1", "pattern@2:first"));
            check_explanation(e, variants, LIST("logits[-1]"));
            check_explanation(e, NULL, LIST("z@3"));
        }
    }
}

static void explanations_agree_with_the_run(void **state) {
    (void)state;
    for_each_family(check_explanations);
}

/* Explains a plan that cannot start from anything kept. */
static void explain_cold(engine *e, const int32_t *tokens, const char *const *variants,
                         const char *const *captures) {
    qkv_error err = {0};
    char *text = NULL;
    const engine_run r = {tokens, T, variants, captures, NULL};
    qkv_plan *plan = engine_plan(e, &r);
    expect_ok(qkv_session_explain(e->session, &text, plan, &err), &err, "explain");
    assert_non_null(strstr(text, "from the tokens"));
    qkv_plan_free(plan);
    qkv_text_free(text);
}

/* Explaining leaves nothing behind and takes nothing away: the run after it costs what it would
 * have cost anyway. */
static void check_explaining_runs_nothing(engine *e, const family *f) {
    (void)f;
    const char *const *variants = LIST("q@2=zero"), *const *captures = LIST("pattern@2");
    const qkv_run_stats expected = cost(e, variants, captures);
    fresh(e);
    for (int i = 0; i < 3; i++) explain_cold(e, prompt(7), variants, captures);
    qkv_result *result = run(e, variants, captures);
    assert_int_equal(result_stats(result).n_matmul, expected.n_matmul);
    qkv_result_free(result);
    explain_cold(e, prompt(8), variants, captures);
    result = run(e, variants, captures);
    assert_int_equal(result_stats(result).n_matmul, 0);
    qkv_result_free(result);
}

static void explaining_runs_nothing(void **state) {
    (void)state;
    for_each_family(check_explaining_runs_nothing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edit_seen_from_everywhere),
        cmocka_unit_test(values_seen_in_their_own_pattern),
        cmocka_unit_test(queries_and_keys_cost_one_attention),
        cmocka_unit_test(one_head_costs_one_head),
        cmocka_unit_test(layers_below_the_fork),
        cmocka_unit_test(nothing_behind_the_last_capture),
        cmocka_unit_test(another_strength_runs_no_layer),
        cmocka_unit_test(another_prompt_starts_anew),
        cmocka_unit_test(trunk_stays_within_its_budget),
        cmocka_unit_test(batches_do_not_show),
        cmocka_unit_test(normed_states_of_some_tokens),
        cmocka_unit_test(logits_of_the_last_token),
        cmocka_unit_test(explanations_agree_with_the_run),
        cmocka_unit_test(explaining_runs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
