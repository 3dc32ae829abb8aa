/*
 * What single heads read: q_in, k_in and v_in. That only the heads which an edit names are changed and
 * computed, to the last bit, whatever the batch, the threads, the type of the weights and the length of
 * the prompt; and what is refused. The scalar reference has its say in test_conformance.c and
 * test_families.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

/* LONG: attention goes in blocks of queries. */
enum { SHORT = 9, LONG = 300 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const int32_t *prompt(int n, int which) {
    static int32_t tokens[2][LONG];
    for (int t = 0; t < n; t++)
        tokens[which][t] = t == 0 ? 1 : 3 + (7 * t * t + 5 * t * (which + 1)) % 130;
    return tokens[which];
}

static qkv_result *run(engine *e, int n, const char *const *variants, const char *const *captures) {
    return engine_execute(e,
                          &(engine_run){prompt(n, 0), (size_t)n, variants, captures, prompt(n, 1)});
}

static void renew(engine *e, int32_t n_threads, size_t budget) {
    engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                           .n_threads = n_threads,
                                           .memory_budget = budget});
}

static char *explain(engine *e, const char *variant, const char *capture) {
    qkv_error err = {0};
    char *text = NULL;
    qkv_plan *plan = engine_plan(
        e, &(engine_run){prompt(SHORT, 0), SHORT, LIST(variant), LIST(capture), prompt(SHORT, 1)});
    expect_ok(qkv_session_explain(e->session, &text, plan, &err), &err, "explain");
    qkv_plan_free(plan);
    return text;
}

/* ---- which heads ---- */

/* Rows of head h of a tensor [T][heads][width]. */
static int same_head(const qkv_tensor *a, const qkv_tensor *b, int h) {
    const size_t heads = (size_t)a->shape[1], width = (size_t)a->shape[2];
    for (size_t t = 0; t < (size_t)a->shape[0]; t++) {
        const size_t at = (t * heads + (size_t)h) * width;
        if (!same_bits(a->data + at, b->data + at, width)) return 0;
    }
    return 1;
}

static void expect_heads(const qkv_result *r, qkv_site site, unsigned changed, const char *edit) {
    const qkv_tensor base = engine_tensor(r, 0, site, 1), t = engine_tensor(r, 1, site, 1);
    for (int h = 0; h < (int)base.shape[1]; h++) {
        if (same_head(&base, &t, h) == (int)(changed >> h & 1))
            fail_msg("'%s': head %d of %s is %s", edit, h, qkv_site_name(site),
                     changed >> h & 1 ? "the same" : "another");
    }
}

typedef struct touched {
    const char *edit;
    unsigned q, k, v; /* heads that change */
} touched;

static void check_touched(engine *e, int n, const touched *c) {
    qkv_result *r = run(e, n, LIST(c->edit),
                        LIST("q_in@1", "k_in@1.h*", "v_in@1.h*", "q@1", "k@1.h*", "v@1.h*",
                             "resid_pre@1", "resid_post@2"));
    expect_heads(r, QKV_SITE_Q_IN, c->q, c->edit);
    expect_heads(r, QKV_SITE_Q, c->q, c->edit);
    expect_heads(r, QKV_SITE_K_IN, c->k, c->edit);
    expect_heads(r, QKV_SITE_K, c->k, c->edit);
    expect_heads(r, QKV_SITE_V_IN, c->v, c->edit);
    expect_heads(r, QKV_SITE_V, c->v, c->edit);
    const qkv_tensor before = engine_tensor(r, 0, QKV_SITE_RESID_PRE, 1);
    assert_ptr_equal(engine_tensor(r, 1, QKV_SITE_RESID_PRE, 1).data, before.data);
    const qkv_tensor last = engine_tensor(r, 0, QKV_SITE_RESID_POST, 2);
    assert_false(same_bits(engine_tensor(r, 1, QKV_SITE_RESID_POST, 2).data, last.data,
                           tensor_count(&last)));
    qkv_result_free(r);
}

static void only_named_heads(void **state) {
    (void)state;
    static const touched cases[] = {
        {"q_in@1.h2=patch:src", 4, 0, 0},
        {"q_in@1.h0,3[2:]=zero", 9, 0, 0},
        {"q_in@1=noise:0.1", 15, 0, 0},
        {"k_in@1.h1=patch:src", 0, 2, 0},
        {"k_in@1.g1{3}=add:2", 0, 12, 0},
        {"v_in@1.h3=scale:2", 0, 0, 8},
        {"v_in@1.g0[1]=zero + v_in@1.h1[2]=zero + q_in@1.h1=zero", 2, 0, 3},
    };
    static const int lengths[] = {SHORT, LONG};
    engine e;
    engine_open(&e,
                tiny_model(&(tiny_options){"llama", .n_kv_head = 2, .n_ctx = 512, .qkv_bias = 1},
                           "inputs.gguf"),
                1);
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++)
        check_touched(&e, lengths[i % 2], &cases[i / 2]);
    engine_close(&e);
}

/* ---- what is computed ---- */

static void costs_one_head(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "inputs.gguf"), 1);
    /* width 32, heads 8 wide: 8 rows of F32 */
    static const char *const expected[][2] = {
        {"q_in@1.h2=zero",
         "variant 1: from q, k and v of layer 1, heads 2 to 2, 1 edited copy of what heads "
         "read; keeps pattern@1; 1 product with weights, 1 in attention, "},
        {"q_in@1.h2=zero", " 0.00102 MB of weights\n"},
        {"q_in@1=zero",
         "variant 1: from q, k and v of layer 1, 1 edited copy of what heads read; "},
        {"q_in@1=noise:1",
         "variant 1: from q, k and v of layer 1, 4 edited copies of what heads read; "},
        {"k_in@1.h3=zero + q_in@1.h2=zero",
         "layer 1, heads 2 to 3, 2 edited copies of what heads read; "},
        {"v_in@1.h0=zero", "variant 1: shared with the baseline\n"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *text = explain(&e, expected[i][0], "pattern@1");
        if (!strstr(text, expected[i][1])) fail_msg("'%s': %s", expected[i][0], text);
        qkv_text_free(text);
    }
    engine_close(&e);
}

/* An edit of one head changes nothing in another. */
static void seen_elsewhere(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "inputs.gguf"), 1);
    qkv_result *r = run(&e, SHORT,
                        LIST("q_in@1.h2=zero", "k_in@1.h2=zero", "q_in@1.h0=zero", "k_in@1.g0=zero",
                             "q_in@2.h0=zero", "v_in@0.h0=zero"),
                        LIST("pattern@1.h0", "q_in@1.h1{3}"));
    static const int ran[] = {0, 0, 1, 1, 0, 1};
    for (size_t v = 1; v <= 6; v++) assert_int_equal(qkv_result_edit_ran(r, v, 0), ran[v - 1]);
    const qkv_tensor t = engine_tensor(r, 0, QKV_SITE_Q_IN, 1);
    assert_int_equal(t.shape[0], SHORT);
    assert_int_equal(t.shape[1], 1);
    assert_int_equal(t.shape[2], 1);
    qkv_result_free(r);
    engine_close(&e);
}

/* ---- the same bits ---- */

static const char *const variants[] = {
    "q_in@1.h2=patch:src",
    "q_in@0,2.h0,3[2:6]=scale:0.5",
    "k_in@1.h1=noise:0.2 + q_in@1=add:0.3",
    "v_in@1.g1=mean:token + resid_pre@1[3]=zero",
    "k_in@*.g0=scale:2 + freeze:q_in@1-2.h1",
    "v_in@2.h2[-1]{0:5}=set:1",
    NULL,
};
enum { VARIANTS = sizeof variants / sizeof *variants - 1 };

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
            fail_msg("%s: %s of layer %d differs", what, qkv_site_name(site), (int)layer);
        n++;
    }
    assert_true(n > 3);
}

static void check_bits(const tiny_options *options, int n) {
    static const char *const captures[] = {"q_in@1", "k_in@1.h*",  "v_in@1.h*", "q@*", "k_rot@*.h*",
                                           "z@*",    "resid_post", "logits",    NULL};
    engine e;
    engine_open(&e, tiny_model(options, "inputs.gguf"), 1);
    qkv_result *all = run(&e, n, variants, captures);
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        for (size_t v = 0; v < VARIANTS; v++) {
            renew(&e, threads, 1 << 16);
            qkv_result *alone = run(&e, n, LIST(variants[v]), captures);
            expect_same(alone, 0, all, 0, "baseline");
            expect_same(alone, 1, all, v + 1, variants[v]);
            qkv_result_free(alone);
        }
    }
    qkv_result_free(all);
    engine_close(&e);
}

static void batches_and_threads(void **state) {
    (void)state;
    check_bits(&(tiny_options){"llama", .n_kv_head = 2, .n_ctx = 512}, SHORT);
    check_bits(&(tiny_options){"llama", .n_kv_head = 2, .n_ctx = 512, .qkv_bias = 1}, LONG);
    check_bits(&(tiny_options){.family = "gpt2", .n_ctx = 512}, SHORT);
    check_bits(&(tiny_options){"llama", .n_kv_head = 2, .n_embd = 256, .n_ff = 256, .head_dim = 64,
                               .type = GGML_TYPE_Q4_K},
               SHORT);
    check_bits(&(tiny_options){"llama", .n_kv_head = 2, .n_embd = 64, .head_dim = 16, .n_ff = 64,
                               .type = GGML_TYPE_Q8_0},
               SHORT);
    check_bits(&(tiny_options){"phi3", .n_kv_head = 2, .type = GGML_TYPE_F16}, SHORT);
}

/* Tokens that are not selected keep their bits: their rows are multiplied again, as they were. */
static void rows_stay(void **state) {
    (void)state;
    static const tiny_options models[] = {
        {"llama", .n_kv_head = 2, .qkv_bias = 1},
        {.family = "gpt2"},
        {"llama", .n_embd = 256, .n_ff = 256, .head_dim = 64, .type = GGML_TYPE_Q5_K}};
    for (size_t m = 0; m < 3; m++) {
        engine e;
        engine_open(&e, tiny_model(&models[m], "inputs.gguf"), 1);
        qkv_result *r = run(&e, SHORT, LIST("q_in@1.h2[4]=add:1"), LIST("q@1.h2"));
        const qkv_tensor a = engine_tensor(r, 0, QKV_SITE_Q, 1),
                         b = engine_tensor(r, 1, QKV_SITE_Q, 1);
        const size_t d = (size_t)a.shape[2];
        for (size_t t = 0; t < SHORT; t++)
            assert_int_equal(same_bits(a.data + t * d, b.data + t * d, d), t != 4);
        qkv_result_free(r);
        engine_close(&e);
    }
}

/* One pass that patches what all heads read is one that patches the residual stream, but for what goes
 * around attention. */
static void all_three_are_the_stream(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "inputs.gguf"), 1);
    qkv_result *r =
        run(&e, SHORT,
            LIST("q_in@1=patch:src + k_in@1=patch:src + v_in@1=patch:src", "resid_pre@1=patch:src"),
            LIST("attn_out@1", "pattern@1", "q_in@1"));
    const qkv_site same[] = {QKV_SITE_ATTN_OUT, QKV_SITE_PATTERN, QKV_SITE_Q_IN};
    for (int i = 0; i < 3; i++) {
        const qkv_tensor a = engine_tensor(r, 1, same[i], 1), b = engine_tensor(r, 2, same[i], 1);
        assert_true(same_bits(a.data, b.data, tensor_count(&a)));
    }
    qkv_result_free(r);
    engine_close(&e);
}

/* ---- path patching ---- */

/* The other prompt's stream as a vector: by token, or as a capture of one head has it. */
static void add_stream(engine *e, qkv_plan *plan, const char *name, int by_head) {
    qkv_error err = {0};
    const engine_run other = {prompt(SHORT, 1), SHORT, NULL, LIST("resid_pre@1", "k_in@1.h2"),
                              NULL};
    qkv_result *r = engine_execute(e, &other);
    const qkv_tensor t = engine_tensor(r, 0, by_head ? QKV_SITE_K_IN : QKV_SITE_RESID_PRE, 1);
    qkv_edit_data *data = NULL;
    expect_ok(qkv_edit_data_new(&data, &err), &err, "data");
    expect_ok(qkv_edit_data_add_vector(data, name, t.data, t.shape, t.n_dims, &err), &err, name);
    expect_ok(qkv_plan_set_edit_data(plan, data, &err), &err, name);
    qkv_edit_data_free(data);
    qkv_result_free(r);
}

/* A stream that was captured, set for one head, is the patch. */
static void captured_streams(void **state) {
    (void)state;
    static const char *const edits[] = {"q_in@1.h2=set:@stream", "k_in@1.h1=set:@stream",
                                        "v_in@1.g1=set:@stream"};
    static const char *const patches[] = {"q_in@1.h2=patch:src", "k_in@1.h1=patch:src",
                                          "v_in@1.g1=patch:src"};
    engine e;
    qkv_error err = {0};
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "inputs.gguf"), 1);
    static const char *const captures[] = {"z@*",        "pattern@1", "q_in@1",
                                           "resid_post", "logits",    NULL};
    for (int by_head = 0; by_head < 2; by_head++) {
        qkv_plan *plan = NULL;
        qkv_result *set = NULL;
        expect_ok(qkv_plan_new(&plan, e.model, prompt(SHORT, 0), SHORT, &err), &err, "plan");
        add_stream(&e, plan, "stream", by_head);
        for (int i = 0; i < 3; i++)
            expect_ok(qkv_plan_add_variant(plan, edits[i], NULL, &err), &err, edits[i]);
        for (int i = 0; captures[i]; i++)
            expect_ok(qkv_plan_add_capture(plan, captures[i], &err), &err, captures[i]);
        expect_ok(qkv_session_run(e.session, &set, plan, &err), &err, "run");
        qkv_result *patched = run(&e, SHORT, LIST(patches[0], patches[1], patches[2]), captures);
        for (size_t v = 1; v <= 3; v++) expect_same(set, v, patched, v, edits[v - 1]);
        qkv_result_free(set);
        qkv_result_free(patched);
        qkv_plan_free(plan);
    }
    engine_close(&e);
}

/* ---- what is refused ---- */

static void expect_refused(engine *e, const char *edit, const char *capture, const char *message) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    expect_ok(qkv_plan_new(&plan, e->model, prompt(SHORT, 0), SHORT, &err), &err, "plan");
    int status = qkv_plan_add_variant(plan, edit, NULL, &err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, &err);
    if (status == QKV_OK) status = qkv_session_run(e->session, &result, plan, &err);
    if (status == QKV_OK) fail_msg("'%s' is accepted", edit);
    if (!strstr(err.message, message)) fail_msg("'%s': %s", edit, err.message);
    qkv_plan_free(plan);
}

static void refusals(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "inputs.gguf"), 1);
    expect_refused(&e, "q_in@1=mean:head", "logits", "every head reads the same resid_pre");
    expect_refused(&e, "k_in@1=mean:others", "logits", "every head reads the same resid_pre");
    expect_refused(&e, "q_in@1.g0=zero", "logits", "q_in has query heads only");
    expect_refused(&e, "q_in@1{32}=zero", "logits", "q_in has channels 0 to 31");
    expect_refused(&e, "freeze:q_in@1", "logits", "no other edit of the variant");
    expect_refused(&e, "q_in@1=zero + q_in@1.h2[3]=zero", "logits", "overlap");
    expect_refused(&e, "k_in@1.h2=zero", "k@1", "capture k@1 by query heads");
    expect_refused(&e, "k_in@1.h2=zero", "k_in@1", "capture k_in@1 by query heads");
    expect_refused(&e, "gate@1=zero", "logits", "this model has no attention gates");
    expect_refused(&e, "q_in@1.h1[3]=set:3e38 + q_in@1.h2=zero", "logits",
                   "variant 1 (q_in@1.h1[3]=set:3e38 + q_in@1.h2=zero): the input of the norm "
                   "blk.1.attn_norm.weight in layer 1 is too large to be squared in single "
                   "precision, first at token 3");
    expect_refused(&e, "q_in@1.h1[5]=scale:1e38 + q_in@1.h1[4]=scale:1e38", "logits",
                   "the edit of q_in in layer 1 gives values that single precision cannot hold");
    engine_close(&e);
}

/* The norm of all keys together has no key heads of single query heads. */
static void norms_of_all_heads(void **state) {
    (void)state;
    engine e;
    engine_open(&e, QKV_TEST_SOURCE_DIR "/vectors/olmo2/model.gguf", 1);
    if (e.info->n_head != e.info->n_kv_head)
        expect_refused(&e, "k_in@1.h1=zero", "logits", "normalises the keys of all heads together");
    char *text = explain(&e, "q_in@1.h1=scale:0.5", "pattern@1.h0");
    if (!strstr(text, "variant 1: from the input of layer 1, 1 edited copy")) fail_msg("%s", text);
    qkv_text_free(text);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_named_heads),   cmocka_unit_test(costs_one_head),
        cmocka_unit_test(seen_elsewhere),     cmocka_unit_test(batches_and_threads),
        cmocka_unit_test(rows_stay),          cmocka_unit_test(all_three_are_the_stream),
        cmocka_unit_test(captured_streams),   cmocka_unit_test(refusals),
        cmocka_unit_test(norms_of_all_heads),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
