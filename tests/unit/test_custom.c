/*
 * Functions as edits: a function that scales does what `scale` does, bit for bit, at every site, with every
 * kind of selector, in whatever batch; what it is given is what a capture shows; and nothing that it has
 * changed is taken for the unedited model.
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
#include "run/run.h"
#include "study/figure.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { T = 8 };

static const int32_t tokens[T] = {1, 20, 30, 40, 50, 60, 70, 80};
static qkv_error err;

/* What a function saw when it was called last, and how it behaves. */
typedef struct witness {
    int calls, released;
    float factor;
    int32_t layer;
    int64_t shape[3], n_values, first_token;
    float values[T * T * 64];
    int status;  /* to fail with */
    float spoil; /* not 0: is written to the first value */
} witness;

static int scale(void *user, const qkv_custom_call *call, qkv_error *error) {
    witness *w = user;
    w->calls++;
    w->layer = call->layer;
    w->n_values = call->n_values;
    w->first_token = call->tokens[0];
    memcpy(w->shape, call->shape, sizeof w->shape);
    if (call->n_values <= (int64_t)(sizeof w->values / sizeof *w->values))
        memcpy(w->values, call->values, (size_t)call->n_values * sizeof *w->values);
    for (int64_t i = 0; i < call->n_values; i++) call->values[i] *= w->factor;
    if (w->spoil != 0) call->values[0] = w->spoil;
    if (w->status) snprintf(error->message, sizeof error->message, "a bad day");
    return w->status;
}

static void count_release(void *user) {
    ((witness *)user)->released++;
}

static qkv_custom_edit custom_of(witness *w) {
    qkv_custom_edit custom = QKV_CUSTOM_EDIT_INIT;
    custom.name = "f";
    custom.apply = scale;
    custom.user = w;
    return custom;
}

static qkv_plan *plan_of(const engine *e, witness *w, const char *const *variants,
                         const char *const *captures) {
    const qkv_custom_edit custom = custom_of(w);
    qkv_plan *plan = NULL;
    OK(qkv_plan_new(&plan, e->model, tokens, T, &err));
    OK(qkv_plan_add_custom(plan, &custom, &err));
    for (; variants && *variants; variants++) OK(qkv_plan_add_variant(plan, *variants, NULL, &err));
    for (; captures && *captures; captures++) OK(qkv_plan_add_capture(plan, *captures, &err));
    return plan;
}

static qkv_result *run_plan(engine *e, qkv_plan *plan) {
    qkv_result *result = NULL;
    OK(qkv_session_run(e->session, &result, plan, &err));
    qkv_plan_free(plan);
    return result;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- the same as an operation ---- */

static const char *const everywhere[] = {
    "resid_pre@1",
    "resid_pre@1[2:5]",
    "q@1",
    "q@1.h2",
    "q@0-2.h1,h3[-1]",
    "k@1",
    "k@1.g1",
    "k@1.h3",
    "k@1.h0-1[0,3:5]",
    "v@1",
    "v@1.g0[1:]",
    "v@*.h2",
    "q_rot@1.h0",
    "k_rot@1.g1",
    "k_rot@1.h2",
    "scores@1",
    "scores@1.h1[3,:]",
    "pattern@1",
    "pattern@1.h3",
    "pattern@1.h0[2:,1]",
    "z@1",
    "z@1.h1[5]",
    "attn_out@1",
    "mlp_out@0",
    "resid_post@1",
    "resid_post@2[-1]",
    "logits",
    "logits[2,4]",
    "q@1.h2{1,3:5}",
    "k@1.g1[2:]{-1}",
    "k@0-1.h3{0:4}",
    "resid_post@1[1]{0,31}",
    "logits[2]{5}",
    "q_in@1",
    "q_in@0-2.h1,h3[-1]",
    "k_in@1.g1[2:]",
    "k_in@1.h3",
    "v_in@*.h0,2{1,30}",
};

static void expect_same_items(const qkv_result *result, const char *where) {
    qkv_tensor a = QKV_TENSOR_INIT, b = QKV_TENSOR_INIT;
    size_t variant, n = 0;
    qkv_site site;
    int32_t layer;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &a); i++) {
        if (variant != 1) continue;
        assert_int_equal(qkv_result_get(result, 2, site, layer, &b), 1);
        if (!same_bits(a.data, b.data, tensor_count(&a)))
            fail_msg("%s: %s of layer %d differs", where, qkv_site_name(site), (int)layer);
        n++;
    }
    assert_true(n > 3);
    if (qkv_result_edit_changed(result, 1, 0) != qkv_result_edit_changed(result, 2, 0))
        fail_msg("%s: %llu values and %llu", where,
                 (unsigned long long)qkv_result_edit_changed(result, 1, 0),
                 (unsigned long long)qkv_result_edit_changed(result, 2, 0));
    assert_true(qkv_result_edit_changed(result, 2, 0) > 0);
    assert_int_equal(qkv_result_edit_selected(result, 1, 0),
                     qkv_result_edit_selected(result, 2, 0));
}

/* Captures of keys and values are by query heads: edits may split groups. */
static const char *const captures[] = {
    "pattern",    "scores@*", "z@*",    "k@*.h*",    "k_rot@*.h*", "v@*.h*", "q@*",
    "resid_post", "logits",   "q_in@*", "k_in@*.h*", "v_in@*.h*",  NULL};

static void compare_everywhere(const tiny_options *options, int32_t n_threads) {
    engine e;
    engine_open(&e, tiny_model(options, "custom.gguf"), n_threads);
    for (size_t i = 0; i < sizeof everywhere / sizeof *everywhere; i++) {
        char plain[64], custom[64];
        witness w = {.factor = 0.25f};
        snprintf(plain, sizeof plain, "%s=scale:0.25", everywhere[i]);
        snprintf(custom, sizeof custom, "%s=custom:f", everywhere[i]);
        /* The third variant splits groups, in the same batch. */
        qkv_result *result = run_plan(
            &e, plan_of(&e, &w, LIST(plain, custom, "k@1.h1=zero + v@1.h2=zero"), captures));
        expect_same_items(result, everywhere[i]);
        assert_string_equal(qkv_result_edit_text(result, 2, 0), custom);
        qkv_result_free(result);
    }
    engine_close(&e);
}

static void same_as_scale(void **state) {
    (void)state;
    compare_everywhere(&(tiny_options){"llama", .n_kv_head = 2}, 1);
    compare_everywhere(&(tiny_options){"llama", .n_kv_head = 2, .window = 3}, 2);
    compare_everywhere(&(tiny_options){.family = "gpt2"}, 2);
}

/* Two edits in one variant, of which one is a function, read the unedited tensor. */
static void beside_others(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    witness w = {.factor = 0.25f};
    qkv_result *result =
        run_plan(&e, plan_of(&e, &w,
                             LIST("q@1.h0=scale:0.25 + q@1.h1=mean:head + k@1.h2=scale:0.25",
                                  "q@1.h1=mean:head + q@1.h0=custom:f + k@1.h2=custom:f"),
                             captures));
    qkv_tensor a = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    qkv_tensor b = engine_tensor(result, 2, QKV_SITE_LOGITS, 0);
    assert_true(same_bits(a.data, b.data, tensor_count(&a)));
    assert_int_equal(w.calls, 2);
    qkv_result_free(result);
    engine_close(&e);
}

/* ---- what it is given ---- */

static void expect_given(engine *e, const char *edit, const char *capture, qkv_site site,
                         int64_t n_dims) {
    witness w = {.factor = 2};
    qkv_result *result = run_plan(e, plan_of(e, &w, LIST(edit), LIST(capture, "logits")));
    const qkv_tensor base = engine_tensor(result, 0, site, 1);
    assert_int_equal(w.calls, 1);
    assert_int_equal(w.layer, 1);
    assert_int_equal(w.n_values, tensor_count(&base));
    for (int64_t i = 0; i < n_dims; i++) assert_int_equal(w.shape[i], base.shape[i]);
    if (!same_bits(w.values, base.data, tensor_count(&base))) fail_msg("%s: other values", edit);
    qkv_result_free(result);
}

/* Channels stand in the order of the original model, as in captures. */
static void given_as_captured(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    expect_given(&e, "q@1=custom:f", "q@1", QKV_SITE_Q, 3);
    expect_given(&e, "k@1=custom:f", "k@1", QKV_SITE_K, 3);
    expect_given(&e, "k@1.h1,h2=custom:f", "k@1.h1,h2", QKV_SITE_K, 3);
    expect_given(&e, "k_rot@1.g1=custom:f", "k_rot@1.g1", QKV_SITE_K_ROT, 3);
    expect_given(&e, "q@1.h2{1:4,7}=custom:f", "q@1.h2{1:4,7}", QKV_SITE_Q, 3);
    expect_given(&e, "k@1.h1,h2{-3:}=custom:f", "k@1.h1,h2{-3:}", QKV_SITE_K, 3);
    expect_given(&e, "resid_post@1{30,2}=custom:f", "resid_post@1{2,30}", QKV_SITE_RESID_POST, 2);
    expect_given(&e, "scores@1=custom:f", "scores@1", QKV_SITE_SCORES, 3);
    expect_given(&e, "pattern@1.h1,h3=custom:f", "pattern@1.h1,h3", QKV_SITE_PATTERN, 3);
    expect_given(&e, "resid_post@1=custom:f", "resid_post@1", QKV_SITE_RESID_POST, 2);
    engine_close(&e);
}

/* ---- the planner ---- */

/* A function may carry what another edit changed to other heads: that edit then shows. */
static void carries(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    witness w = {.factor = 1};
    qkv_result *result = run_plan(
        &e, plan_of(&e, &w, LIST("q@1.h0=zero + scores@1=custom:f"), LIST("pattern@1.h1")));
    assert_int_equal(qkv_result_edit_ran(result, 1, 0), 1);
    assert_int_equal(w.calls, 1);
    qkv_result_free(result);
    engine_close(&e);
}

/* Nothing that captures depend on: it is not called. Later runs start from the unedited trunk. */
static void is_not_kept(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    witness w = {.factor = 3};
    qkv_result *plain = run_plan(&e, plan_of(&e, &w, NULL, LIST("logits")));
    qkv_result *result = run_plan(&e, plan_of(&e, &w, LIST("v@1=custom:f"), LIST("pattern@1")));
    assert_int_equal(w.calls, 0);
    assert_int_equal(qkv_result_edit_ran(result, 1, 0), 0);
    qkv_result_free(result);
    for (int i = 1; i <= 3; i++) {
        w.factor = (float)i; /* another function every time; the first one changes nothing */
        result = run_plan(&e, plan_of(&e, &w, LIST("resid_pre@1=custom:f", "resid_pre@1=custom:f"),
                                      LIST("logits")));
        const qkv_tensor base = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
        const qkv_tensor known = engine_tensor(plain, 0, QKV_SITE_LOGITS, 0);
        const qkv_tensor edited = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
        assert_true(same_bits(base.data, known.data, tensor_count(&base)));
        assert_int_equal(w.calls, 2 * i);
        assert_int_equal(edited.data == base.data, i == 1);
        qkv_result_free(result);
    }
    qkv_result_free(plain);
    engine_close(&e);
}

/* ---- failing ---- */

static void expect_failure(engine *e, witness *w, const char *edit, int status, const char *word) {
    qkv_result *result = NULL;
    qkv_plan *plan = plan_of(e, w, LIST(edit), LIST("logits"));
    assert_int_equal(qkv_session_run(e->session, &result, plan, &err), status);
    assert_null(result);
    if (!strstr(err.message, word)) fail_msg("'%s' is not in: %s", word, err.message);
    qkv_plan_free(plan);
}

static void failures(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 2);
    witness w = {.factor = 1, .status = QKV_ERR_IO};
    expect_failure(&e, &w, "q@*=custom:f", QKV_ERR_IO, "edit 'q@*=custom:f': a bad day");
    assert_int_equal(w.calls, 1); /* and no more after the first */
    w = (witness){.factor = 1, .status = 5};
    expect_failure(&e, &w, "q@1=custom:f", QKV_ERR_BACKEND, "a bad day");
    w = (witness){.factor = 1, .spoil = NAN};
    expect_failure(&e, &w, "resid_post@1[3:]=custom:f", QKV_ERR_NUMERIC, "NaN, first at token 3");
    w = (witness){.factor = 1, .spoil = INFINITY};
    expect_failure(&e, &w, "pattern@1=custom:f", QKV_ERR_NUMERIC, "gives Inf");
    w = (witness){.factor = 0.5f};
    qkv_result_free(run_plan(&e, plan_of(&e, &w, LIST("q@1=custom:f"), LIST("logits"))));
    engine_close(&e);
}

static void refusals(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    witness w = {0};
    qkv_plan *plan = plan_of(&e, &w, NULL, NULL);
    static const char *const bad[] = {"q@1=custom:g", "q@1=custom:f + q@1.h1=zero",
                                      "k@1.h0=zero + k_rot@1.g1=custom:f",
                                      "scores@1[0,3]=custom:f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(qkv_plan_add_variant(plan, bad[i], NULL, &err), QKV_ERR_PLAN);
    assert_int_equal(qkv_plan_add_variant(plan, "q@1=custom", NULL, &err), QKV_ERR_SYNTAX);
    OK(qkv_plan_add_variant(plan, "k@1.h0=zero + k_rot@1.h2=custom:f", NULL, &err));
    assert_string_equal(qkv_plan_custom(plan, 0), "f");
    qkv_plan_free(plan);
    /* A sweep and a figure are made again from what their files say. */
    qkv_sweep *sweep = NULL;
    assert_true(
        qkv_sweep_new(&sweep, e.model,
                      "{\"prompts\": [\"a mill\"], \"targets\": \"q\", \"ops\": [\"custom:f\"]}",
                      &err) < 0);
    qkv_figure *figure = NULL;
    const qkv_figure_side side = {.size = sizeof side, .label = "f", .edits = "q@1=custom:f"};
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    options.cols = &side;
    options.n_cols = 1;
    assert_int_equal(qkv_figure_make(&figure, e.session, QKV_FIGURE_GRID, &options, &err),
                     QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "no function named 'f'"));
    engine_close(&e);
}

/* ---- who else runs plans ---- */

static void owners(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    witness w = {.factor = 0.5f};
    qkv_custom_edit custom = custom_of(&w);
    custom.release = count_release;
    qkv_plan *plan = NULL;
    OK(qkv_plan_new(&plan, e.model, tokens, T, &err));
    OK(qkv_plan_add_custom(plan, &custom, &err));
    assert_int_equal(qkv_plan_add_custom(plan, &custom, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_plan_add_customs(plan, &custom, 1, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(w.released, 0);
    OK(qkv_plan_add_variant(plan, "z@1=custom:f", NULL, &err));
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    qkv_measurement m = QKV_MEASUREMENT_INIT;
    double kl = 0;
    OK(qkv_measure_new(&measure, "output_kl", NULL, &err));
    OK(qkv_measure_run(measure, &table, e.session, plan, &err));
    for (size_t i = 0; qkv_table_get(table, i, &m); i++) kl += m.value;
    assert_true(kl > 0);
    assert_int_equal(w.calls, 1);
    qkv_table_free(table);
    qkv_measure_free(measure);
    qkv_plan_free(plan);
    assert_int_equal(w.released, 1);
    engine_close(&e);
}

static const float *next_logits(engine *e, qkv_generator *gen, const qkv_custom_edit *custom,
                                int recompute, qkv_generator **out) {
    const char *const edits[] = {"resid_post@1[3:]=custom:f"};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = 3;
    how.variants = edits;
    how.n_variants = 1;
    how.recompute = recompute;
    how.customs = custom;
    how.n_customs = 1;
    OK(qkv_generator_new(&gen, e->model, tokens, T - 2, &how, &err));
    OK(qkv_session_feed(e->session, gen, NULL, &err));
    for (int i = 2; i > 0; i--) {
        const int32_t next[] = {tokens[T - i], tokens[T - i]};
        OK(qkv_session_feed(e->session, gen, next, &err));
    }
    *out = gen;
    return qkv_generator_logits(gen, 1);
}

static void generation(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    const size_t n_vocab = (size_t)e.info->n_vocab;
    witness w = {.factor = 0.25f};
    qkv_custom_edit custom = custom_of(&w);
    qkv_generator *gen = NULL, *whole = NULL;
    qkv_result *result =
        run_plan(&e, plan_of(&e, &w, LIST("resid_post@1[3:]=scale:0.25"), LIST("logits[-1]")));
    const qkv_tensor known = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    const float *logits = next_logits(&e, NULL, &custom, 1, &whole);
    assert_true(same_bits(logits, known.data, n_vocab));
    custom.by_token = 1;
    w.calls = 0;
    logits = next_logits(&e, NULL, &custom, 0, &gen);
    assert_true(compare_floats(logits, known.data, n_vocab).max < 1e-4);
    assert_int_equal(w.calls, 3); /* the prompt, and two tokens */
    assert_int_equal(w.first_token, T - 1);
    assert_int_equal(w.shape[0], 1);
    assert_int_equal(qkv_generator_edit_changed(gen, 1, 0), (T - 3) * e.info->n_embd);

    /* A plan of the text has the function, too, and outlives the generator. */
    qkv_plan *plan = NULL;
    OK(qkv_generator_plan(gen, &plan, 1, &err));
    qkv_generator_free(gen);
    OK(qkv_plan_add_capture(plan, "logits[-1]", &err));
    qkv_result *again = run_plan(&e, plan);
    const qkv_tensor same = engine_tensor(again, 1, QKV_SITE_LOGITS, 0);
    assert_true(same_bits(same.data, known.data, n_vocab));
    qkv_result_free(again);
    qkv_generator_free(whole);
    qkv_result_free(result);
    engine_close(&e);
}

static void generation_refusals(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    witness w = {0};
    qkv_custom_edit custom = custom_of(&w);
    qkv_generator *gen = NULL;
    const char *edits[] = {"q@1=custom:f"};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = 2;
    how.variants = edits;
    how.n_variants = 1;
    assert_int_equal(qkv_generator_new(&gen, e.model, tokens, T, &how, &err), QKV_ERR_PLAN);
    how.customs = &custom;
    how.n_customs = 1;
    assert_int_equal(qkv_generator_new(&gen, e.model, tokens, T, &how, &err), QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "by_token"));
    custom.by_token = 1;
    edits[0] = "pattern@1=custom:f";
    assert_int_equal(qkv_generator_new(&gen, e.model, tokens, T, &how, &err), QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "whole maps"));
    engine_close(&e);
}

static void next_tokens(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "custom.gguf"), 1);
    witness w = {.factor = 0.25f};
    const qkv_custom_edit custom = custom_of(&w);
    const char *const edits[] = {"z@1=scale:0.25", "z@1=custom:f"};
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    how.variants = edits;
    how.n_variants = 2;
    how.customs = &custom;
    how.n_customs = 1;
    qkv_next *next = NULL;
    qkv_next_token a = QKV_NEXT_TOKEN_INIT, b = QKV_NEXT_TOKEN_INIT;
    OK(qkv_next_new(&next, e.session, tokens, T, &how, &err));
    assert_int_equal(qkv_next_get(next, 1, 0, &a), 1);
    assert_int_equal(qkv_next_get(next, 2, 0, &b), 1);
    assert_int_equal(a.token, b.token);
    assert_true(a.logit == b.logit && qkv_next_kl(next, 1) == qkv_next_kl(next, 2));
    qkv_next_free(next);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_scale),     cmocka_unit_test(beside_others),
        cmocka_unit_test(given_as_captured), cmocka_unit_test(carries),
        cmocka_unit_test(is_not_kept),       cmocka_unit_test(failures),
        cmocka_unit_test(refusals),          cmocka_unit_test(owners),
        cmocka_unit_test(generation),        cmocka_unit_test(generation_refusals),
        cmocka_unit_test(next_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
