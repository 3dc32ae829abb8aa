/*
 * Freezing: what other edits of a variant would change stays as in the unedited run. The same is
 * said by patching from a prompt that is the plan's own, which is compared bit by bit; the scalar
 * reference has its say in test_families.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/generate.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

/* LONG: attention goes in blocks of queries. */
enum { SHORT = 9, LONG = 300 };

static const tiny_options models[] = {{"llama", .n_kv_head = 2, .n_layer = 4, .n_ctx = 512},
                                      {.family = "gpt2", .n_layer = 4, .n_ctx = 512}};

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const int32_t *prompt(int n) {
    static int32_t tokens[LONG];
    for (int t = 0; t < n; t++) tokens[t] = t == 0 ? 1 : 3 + (7 * t * t + 5 * t) % (TINY_VOCAB - 3);
    return tokens;
}

static qkv_result *run(engine *e, int n, const char *const *variants, const char *const *captures) {
    return engine_execute(e, &(engine_run){prompt(n), (size_t)n, variants, captures, prompt(n)});
}

static void expect_same(const qkv_result *a, size_t va, const qkv_result *b, size_t vb,
                        const char *what) {
    size_t variant = 0, n = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(a, i, &variant, &site, &layer, &t); i++) {
        if (variant != va) continue;
        const qkv_tensor u = engine_tensor(b, vb, site, layer);
        if (!same_bits(t.data, u.data, tensor_count(&t)))
            fail_msg("'%s': %s of layer %d differs", what, qkv_site_name(site), (int)layer);
        n++;
    }
    assert_true(n > 0);
}

/* ---- the same as patching from the own prompt ---- */

static const char *const places[] = {
    "mlp_out@*",        "z@2-3",           "z@3.h1[2:]", "q@2.h0,3{1:3}", "k@2.g0",
    "k@3.h1",           "v@2-3",           "k_rot@2",    "pattern@3.h2",  "scores@2",
    "attn_out@3",       "resid_post@2[4]", "mlp_act@2",  "final_norm",    "logits[3:]{7}",
    "resid_pre@3[0,2]", "q_in@2.h1",       "q_in@*",     "k_in@3.h2[2:]", "k_in@2.g1",
    "v_in@2-3{1:3}",
};

static const char *const captures[] = {"q@*",    "z@*",    "k@*.h*",    "resid_post", "final_norm",
                                       "logits", "q_in@2", "k_in@3.h*", NULL};

static void check_place(engine *e, int n, const char *place) {
    static const char *const edit = "v@1.h1=scale:3";
    char frozen[96], patched[96];
    if (place[0] == 'k' && e->info->n_head == e->info->n_kv_head && strchr(place, 'g')) return;
    snprintf(frozen, sizeof frozen, "%s + freeze:%s", edit, place);
    snprintf(patched, sizeof patched, "%s + %s=patch:src", edit, place);
    qkv_result *both = run(e, n, LIST(edit, patched, frozen), captures);
    expect_same(both, 2, both, 3, frozen);
    assert_int_equal(qkv_result_edit_changed(both, 2, 1), qkv_result_edit_changed(both, 3, 1));
    assert_true(qkv_result_edit_changed(both, 3, 1) > 0);
    assert_true(qkv_result_edit_ran(both, 3, 1));
    qkv_result *alone = run(e, n, LIST(frozen), captures); /* on what the session knows already */
    expect_same(both, 3, alone, 1, frozen);
    engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = 1});
    qkv_result *again = run(e, n, LIST(frozen), captures); /* and from the tokens */
    expect_same(both, 3, again, 1, frozen);
    qkv_result_free(both);
    qkv_result_free(alone);
    qkv_result_free(again);
}

static void as_patched_from_the_own_prompt(void **state) {
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        engine e;
        engine_open(&e, tiny_model(&models[m], "freeze.gguf"), 1);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            check_place(&e, SHORT, places[i]);
            if (i % 4 == 0) check_place(&e, LONG, places[i]);
        }
        engine_close(&e);
    }
}

/* With everything held that the rest depends on, nothing else changes. */
static void nothing_passes_a_frozen_layer(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&models[0], "freeze.gguf"), 1);
    qkv_result *result =
        run(&e, SHORT, LIST("z@0=scale:2 + freeze:resid_post@2"), LIST("resid_post", "logits"));
    const qkv_tensor a = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
    const qkv_tensor b = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    assert_true(same_bits(a.data, b.data, tensor_count(&a)));
    const qkv_tensor c = engine_tensor(result, 0, QKV_SITE_RESID_POST, 1);
    const qkv_tensor d = engine_tensor(result, 1, QKV_SITE_RESID_POST, 1);
    assert_false(same_bits(c.data, d.data, tensor_count(&c)));
    qkv_result_free(result);
    engine_close(&e);
}

/* ---- what it takes ---- */

/* Layers below the first edit are the baseline's, whatever is frozen there. */
static void starts_where_the_edit_is(void **state) {
    (void)state;
    engine e;
    qkv_error err = {0};
    char *text = NULL;
    engine_open(&e, tiny_model(&models[0], "freeze.gguf"), 1);
    qkv_plan *plan =
        engine_plan(&e, &(engine_run){prompt(SHORT), SHORT, LIST("v@2=zero + freeze:mlp_out@*"),
                                      LIST("resid_post", "logits"), NULL});
    expect_ok(qkv_session_explain(e.session, &text, plan, &err), &err, "explain");
    assert_non_null(strstr(text, "variant 1: from q, k and v of layer 2"));
    qkv_text_free(text);
    qkv_plan_free(plan);
    qkv_result *result =
        run(&e, SHORT, LIST("v@2=zero + freeze:mlp_out@*"), LIST("resid_post", "logits"));
    const qkv_tensor a = engine_tensor(result, 0, QKV_SITE_RESID_POST, 1);
    const qkv_tensor b = engine_tensor(result, 1, QKV_SITE_RESID_POST, 1);
    assert_ptr_equal(a.data, b.data);
    qkv_result_free(result);
    engine_close(&e);
}

/* ---- generated texts ---- */

static qkv_generator *generator_of(const engine *e, const char *variant, int32_t tokens,
                                   int again) {
    qkv_generator *gen = NULL;
    qkv_error err = {0};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = 4;
    how.variants = &variant;
    how.n_variants = 1;
    how.edit_tokens = tokens;
    how.recompute = again;
    const int status = qkv_generator_new(&gen, e->model, prompt(SHORT), SHORT, &how, &err);
    if (status == QKV_OK) return gen;
    assert_non_null(strstr(err.message, "new tokens"));
    return NULL;
}

static void check_text(engine *e, const char *variant, int again) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_generator *gen = generator_of(e, variant, again ? QKV_EDIT_ALL : QKV_EDIT_PROMPT, again);
    expect_ok(qkv_session_feed(e->session, gen, NULL, &err), &err, "prompt");
    for (int i = 0; i < 3; i++) {
        const int32_t next[] = {5 + i, 5 + i};
        expect_ok(qkv_session_feed(e->session, gen, next, &err), &err, "token");
    }
    expect_ok(qkv_generator_plan(gen, &plan, 1, &err), &err, "plan");
    expect_ok(qkv_plan_add_capture(plan, "logits[-1]", &err), &err, "capture");
    expect_ok(qkv_session_run(e->session, &result, plan, &err), &err, "run");
    const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    const difference d = compare_floats(qkv_generator_logits(gen, 1), t.data, tensor_count(&t));
    if (d.max > 1e-4 * (1 + d.scale)) fail_msg("'%s': off by %g", variant, d.max);
    assert_true(qkv_generator_edit_changed(gen, 1, 1) > 0);
    qkv_result_free(result);
    qkv_plan_free(plan);
    qkv_generator_free(gen);
}

static void texts_go_on(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&models[0], "freeze.gguf"), 1);
    check_text(&e, "z@0.h1=zero + freeze:mlp_out@*", 0);
    check_text(&e, "z@0.h1=zero + freeze:k@2.h1", 0);
    check_text(&e, "z@0.h1=zero + freeze:pattern@1", 0);
    check_text(&e, "z@0.h1=zero + freeze:mlp_out@*", 1);
    assert_null(generator_of(&e, "z@0.h1=zero + freeze:mlp_out@*", QKV_EDIT_ALL, 0));
    assert_null(generator_of(&e, "z@0.h1=zero + freeze:mlp_out@*[10]", QKV_EDIT_ALL, 0));
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_patched_from_the_own_prompt),
        cmocka_unit_test(nothing_passes_a_frozen_layer),
        cmocka_unit_test(starts_where_the_edit_is),
        cmocka_unit_test(texts_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
