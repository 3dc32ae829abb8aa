/*
 * No edit may silently do nothing, or something else than it says: cells that the mask hides, heads
 * and tokens that no capture shows, numbers that become 0 or too large on the way.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { T = 8 };

/* Three layers, four heads in two groups. */
static const tiny_options grouped = {"llama", .n_kv_head = 2};
static const tiny_options windowed = {"llama", .window = 3};
static const tiny_options layer_norms = {.family = "gpt2"};

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const int32_t tokens[T] = {1, 20, 30, 40, 50, 60, 70, 80};

static qkv_result *run(engine *e, const char *edit, const char *capture) {
    return engine_execute(e, &(engine_run){tokens, T, LIST(edit), LIST(capture), NULL});
}

/* ---- masked cells ---- */

static void expect_refused(const engine *e, const char *edit, const char *word) {
    qkv_error err = {0};
    qkv_plan *plan = engine_plan(e, &(engine_run){tokens, T, NULL, NULL, NULL});
    if (qkv_plan_add_variant(plan, edit, NULL, &err) != QKV_ERR_PLAN)
        fail_msg("'%s' is accepted", edit);
    if (!strstr(err.message, word)) fail_msg("'%s': '%s' is not in: %s", edit, word, err.message);
    qkv_plan_free(plan);
}

static void expect_changed(engine *e, const char *edit, const char *capture, uint64_t changed) {
    qkv_result *result = run(e, edit, capture);
    if (!qkv_result_edit_ran(result, 1, 0)) fail_msg("'%s' did not run", edit);
    const uint64_t n = qkv_result_edit_changed(result, 1, 0);
    if (n != changed) fail_msg("'%s' changed %llu", edit, (unsigned long long)n);
    qkv_result_free(result);
}

static void masked_cells(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    expect_refused(&e, "scores@1.h0[0:1,5:6]=add:5", "no effect");
    expect_refused(&e, "scores@*[:3,3:]=set:1", "no effect");
    expect_refused(&e, "pattern@1.h0[0,5]=scale:5", "no effect");
    expect_refused(&e, "pattern@1.h0[0,5]=zero", "no effect");
    expect_refused(&e, "pattern@1.h0[0,5]=clamp:-1,1", "no effect");
    expect_changed(&e, "scores@1.h0[0:2,0:6]=add:5", "pattern@1", 3);
    expect_changed(&e, "scores@1.h0=add:5", "pattern@1", T * (T + 1) / 2);
    /* A weight where the mask has left none has an effect. */
    expect_changed(&e, "pattern@1.h0[0,5]=set:0.5", "pattern@1", 1);
    expect_changed(&e, "pattern@1.h0[0,5]=add:0.5", "pattern@1", 1);
    engine_close(&e);
}

static void cells_behind_a_window(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&windowed, "effect.gguf"), 1);
    expect_refused(&e, "scores@1.h0[5:,:3]=add:5", "no effect");
    expect_changed(&e, "scores@1.h0[4:,:3]=add:5", "pattern@1", 1);
    expect_changed(&e, "scores@1.h0=add:5", "pattern@1", 1 + 2 + 3 * (T - 2));
    engine_close(&e);
}

/* Captured scores of masked cells are those of the baseline: nothing depends on them. */
static void masked_scores_stay(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    qkv_result *result = run(&e, "scores@1=add:5", "scores@1");
    const qkv_tensor a = engine_tensor(result, 0, QKV_SITE_SCORES, 1);
    const qkv_tensor b = engine_tensor(result, 1, QKV_SITE_SCORES, 1);
    for (size_t i = 0; i < tensor_count(&a); i++) {
        const int visible = i % T <= i / T % T;
        assert_true((a.data[i] != b.data[i]) == visible);
    }
    qkv_result_free(result);
    engine_close(&e);
}

/* ---- masks ---- */

/* A row with nothing left is named, whichever of several masks took the last key. */
static void rows_without_keys(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    expect_refused(&e, "scores@1.h1[:,0]=mask", "row 0 in layer 1, head 1:");
    expect_refused(&e, "scores@2.h1,3[2:,:5]=mask", "row 2 in layer 2, head 1:");
    expect_refused(&e, "scores@*=mask", "row 0 in layer 0, head 0:");
    expect_refused(&e, "scores@*=mask:recent=0", "row 0 in layer 0, head 0:");
    expect_refused(&e, "scores@1.h2[5,:3]=mask + scores@1.h2[5,3:]=mask:sink=2",
                   "row 5 in layer 1, head 2:");
    expect_refused(&e, "scores@1.h2[5,:3]=mask + scores@1.h2[5,3:]=mask:sink=2", "scores@1.h2[5,");
    expect_changed(&e, "scores@1.h1[1:,0]=mask", "pattern@1", T - 1);
    expect_changed(&e, "scores@1.h0=mask:sink=1,recent=2", "pattern@1", 5 * 6 / 2);
    expect_changed(&e, "scores@1.h0=mask:band=2", "pattern@1", 6 * 7 / 2);
    expect_changed(&e, "scores@1=mask:recent=8", "pattern@1", 0); /* leaves everything */
    engine_close(&e);
    engine_open(&e, tiny_model(&windowed, "effect.gguf"), 1);
    expect_refused(&e, "scores@1=mask:sink=4", "row 6 in layer 1, head 0:"); /* sees 4 to 6 */
    expect_changed(&e, "scores@1.h0=mask:sink=1,recent=2", "pattern@1", 5);
    engine_close(&e);
}

/* The weights of what is left are those of the baseline, made to sum to 1; captured scores that are
 * masked are -inf, and all others as they were. */
static void masks_leave_the_rest(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    qkv_result *result =
        engine_execute(&e, &(engine_run){tokens, T, LIST("scores@1=mask:sink=1,recent=2"),
                                         LIST("scores@1", "pattern@1"), NULL});
    const qkv_tensor s = engine_tensor(result, 0, QKV_SITE_SCORES, 1);
    const qkv_tensor masked = engine_tensor(result, 1, QKV_SITE_SCORES, 1);
    const qkv_tensor before = engine_tensor(result, 0, QKV_SITE_PATTERN, 1);
    const qkv_tensor after = engine_tensor(result, 1, QKV_SITE_PATTERN, 1);
    for (size_t r = 0; r < tensor_count(&s) / T; r++) {
        const size_t i = r % T;
        double left = 0;
        for (size_t j = 0; j <= i; j++) left += j == 0 || i - j < 2 ? before.data[r * T + j] : 0.0f;
        for (size_t j = 0; j < T; j++) {
            const int kept = j == 0 || i - j < 2;
            const int hidden = j <= i && !kept;
            const float weight = after.data[r * T + j];
            assert_true(hidden ? masked.data[r * T + j] == -INFINITY
                               : masked.data[r * T + j] == s.data[r * T + j]);
            const double wanted = j <= i && kept ? before.data[r * T + j] / left : 0;
            assert_true(fabs(weight - wanted) < 1e-6);
        }
    }
    qkv_result_free(result);
    engine_close(&e);
}

/* A learned sink takes all that masks leave of a row, which then has weights of 0. */
static void learned_sinks_take_all(void **state) {
    (void)state;
    engine e;
    engine_open(&e, QKV_TEST_SOURCE_DIR "/vectors/gpt_oss/model.gguf", 1);
    qkv_result *result =
        engine_execute(&e, &(engine_run){tokens, T, LIST("scores@0.h1[2]=mask"),
                                         LIST("pattern@0", "pattern@0.h1:sink", "logits"), NULL});
    const qkv_tensor p = engine_tensor(result, 1, QKV_SITE_PATTERN, 0);
    qkv_tensor sink = QKV_TENSOR_INIT;
    assert_true(qkv_result_get_reduced(result, 1, QKV_REDUCTION_SINK, 0, &sink));
    for (size_t j = 0; j < T; j++) assert_true(p.data[(T + 2) * T + j] == 0);
    assert_true(sink.data[2] == 1 && sink.data[3] < 1);
    qkv_result_free(result);
    engine_close(&e);
}

/* ---- what captures can show ---- */

static const struct {
    const char *edit, *capture;
    int shows;
} reach[] = {
    {"q@1.h1=zero", "pattern@1.h0", 0},
    {"q@1.h1=zero", "pattern@1.h0:first", 0},
    {"q@1.h1=zero", "pattern@1.h1", 1},
    {"q@1.h1=zero", "pattern@2.h0", 1},
    {"q@0-1.h1=zero", "pattern@1.h0", 1},
    {"q@1.h1=zero", "z@1.h0", 0},
    {"q@1.h1=zero", "attn_out@1", 1},
    {"q@1.h1=zero", "k@1.g0", 0},
    {"k@1.g0=zero", "pattern@1.h2", 0},
    {"k@1.g0=zero", "pattern@1.h1", 1},
    {"k@1.h0=zero", "pattern@1.h1", 0},
    {"k@1.g0=zero", "k_rot@1.g1", 0},
    {"v@1.g1=zero", "z@1.h1", 0},
    {"v@1.g1=zero", "z@1.h2", 1},
    {"scores@1.h2=zero", "pattern@1.h3", 0},
    {"pattern@1.h2=zero", "z@1.h3", 0},
    {"resid_pre@1=zero", "pattern@1.h3", 1},
    {"resid_post@2=zero", "pattern@1", 0},
    {"logits=zero", "pattern@1", 0},
    {"logits[5]=add:1", "logits[4]", 0},
    {"logits[5]=add:1", "logits[5]", 1},
    {"resid_post@2[5]=add:1", "logits[6]", 0},
    {"resid_post@1[5]=add:1", "logits[6]", 1},
    {"resid_post@0[5]=add:1", "logits[4]", 0},
    {"k@2[5]=add:1", "logits[4]", 0},
    {"k@2[5]=add:1", "logits[6]", 1},
    {"q@2[5]=add:1", "logits[6]", 0},
    {"scores@2[5]=scale:2", "logits[6]", 0},
    {"resid_post@1{3}=add:1", "resid_post@1{4:}", 0},
    {"resid_post@1{3}=add:1", "resid_post@1{0:4}", 1},
    {"resid_post@1{3}=add:1", "resid_post@2{4:}", 1},
    {"q@1.h1{0}=add:1", "q@1.h1{1:}", 0},
    {"q@1.h1{0}=scale:5", "pattern@1.h1", 1},
    {"v@1.g0{0}=add:1", "z@1.h1{1:}", 0},
    {"v@1.g0{0}=add:1", "z@1.h1{0}", 1},
    {"logits{3}=add:1", "logits{4}", 0},
    {"final_norm[5]=add:1", "logits[4]", 0},
    {"final_norm[5]=add:1", "logits[5]", 1},
    {"final_norm[5]=add:1", "final_norm[5]", 1},
    {"final_norm=add:1", "pattern@1", 0},
    {"final_norm=add:1", "resid_post@2", 0},
    {"logits=add:1", "final_norm", 0},
    {"resid_post@2[5]=add:1", "final_norm[6]", 0},
    {"resid_post@1[5]=scale:3", "final_norm[6]", 1},
    {"logits{3}=add:1", "logits[7]{3}", 1},
};

static void edits_that_do_not_show(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    for (size_t i = 0; i < sizeof reach / sizeof *reach; i++) {
        qkv_result *result = run(&e, reach[i].edit, reach[i].capture);
        if (qkv_result_edit_ran(result, 1, 0) != reach[i].shows)
            fail_msg("'%s' seen at %s: %d expected", reach[i].edit, reach[i].capture,
                     reach[i].shows);
        size_t variant = 0;
        qkv_site site = QKV_SITE_Q;
        int32_t layer = 0;
        qkv_tensor a = QKV_TENSOR_INIT, b = QKV_TENSOR_INIT;
        assert_true(qkv_result_item(result, 0, &variant, &site, &layer, &a));
        assert_true(qkv_result_item(result, 1, &variant, &site, &layer, &b));
        if (same_bits(a.data, b.data, tensor_count(&a)) == reach[i].shows)
            fail_msg("'%s' seen at %s: the captures say otherwise", reach[i].edit,
                     reach[i].capture);
        qkv_result_free(result);
    }
    engine_close(&e);
}

/* Keys that a layer's window hides from the tokens whose logits are wanted. */
static void tokens_beyond_a_window(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&windowed, "effect.gguf"), 1);
    static const struct {
        const char *edit;
        int shows;
    } cases[] = {{"k@2[4]=add:1", 0}, {"k@2[5]=add:1", 1}, {"k@1[2]=add:1", 0},
                 {"k@1[3]=add:1", 1}, {"k@0[0]=add:1", 0}, {"k@0[1]=add:1", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_result *result = run(&e, cases[i].edit, "logits[7]");
        if (qkv_result_edit_ran(result, 1, 0) != cases[i].shows) fail_msg("%s", cases[i].edit);
        qkv_result_free(result);
    }
    engine_close(&e);
}

/* An edit may show only because a later one of the same variant carries it to another token or head.
 * Then it must be run: the tensor is that part of the whole one. */
static void edits_carried_by_others(void **state) {
    (void)state;
    static const char *const edits[] = {
        "z@2[3]=scale:5 + logits=mean:token", "mlp_out@1[6]=scale:5 + z@2=mean:token",
        "resid_post@2[3]=scale:5 + logits=mean:token", "v@1[6]=scale:5 + pattern@2[0,6]=set:1",
        "resid_pre@0[6]=scale:5 + pattern@1[0,6]=set:1"};
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        qkv_result *all = run(&e, edits[i], "logits"), *first = run(&e, edits[i], "logits[0]");
        const qkv_tensor a = engine_tensor(all, 1, QKV_SITE_LOGITS, 0);
        const qkv_tensor b = engine_tensor(first, 1, QKV_SITE_LOGITS, 0);
        if (!same_bits(a.data, b.data, tensor_count(&b)) || !qkv_result_edit_ran(first, 1, 0))
            fail_msg("'%s' seen at the first token", edits[i]);
        qkv_result_free(all);
        qkv_result_free(first);
    }
    qkv_result *head = run(&e, "q@1.h0=zero + pattern@1=mean:head", "pattern@1.h2");
    assert_true(qkv_result_edit_ran(head, 1, 0));
    qkv_result_free(head);
    qkv_result *before = run(&e, "z@2[3]=scale:5 + pattern@1[0,1]=set:1", "logits[0]");
    assert_false(qkv_result_edit_ran(before, 1, 0));
    qkv_result_free(before);
    engine_close(&e);
}

/* ---- numbers ---- */

static void numbers_too_small(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    static const char *const edits[] = {
        "q@1=scale:1e-50", "q@1=scale:-1e-46", "q@1=set:1e-400",       "q@1=add:0.00001e-50",
        "q@1=noise:1e-50", "q@1=scale:1e-40",  "q@1=clamp:-1e-50,0.5", "q@1=clamp:0,1e-50"};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        expect_refused(&e, edits[i], "too small");
    static const char *const fine[] = {"q@1=scale:0", "q@1=scale:0.0e-50", "q@1=scale:-0",
                                       "q@1=scale:1e-37"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        qkv_result_free(run(&e, fine[i], "pattern@1"));
    engine_close(&e);
}

static void expect_numeric(engine *e, const char *edit, const char *capture, const char *word) {
    qkv_error err = {0};
    qkv_result *result = NULL;
    /* Beside a harmless one: the message names the right variant. */
    qkv_plan *plan =
        engine_plan(e, &(engine_run){tokens, T, LIST("v@1=scale:0.5", edit), LIST(capture), NULL});
    const int status = qkv_session_run(e->session, &result, plan, &err);
    if (status != QKV_ERR_NUMERIC) fail_msg("'%s' seen at %s: status %d", edit, capture, status);
    if (!strstr(err.message, "variant 2") || !strstr(err.message, edit) ||
        !strstr(err.message, word))
        fail_msg("'%s': '%s' is not in: %s", edit, word, err.message);
    assert_null(result);
    qkv_plan_free(plan);
}

/* A norm whose squares overflow gives 0, and everything after it is finite. */
static void overflow_in_norms(void **state) {
    (void)state;
    static const tiny_options *const models[] = {&grouped, &layer_norms};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        engine e;
        engine_open(&e, tiny_model(models[i], "effect.gguf"), 2);
        expect_numeric(&e, "v@1=set:1e30", "pattern@2", "layer 1");
        expect_numeric(&e, "v@1=set:1e30", "pattern@2:first", "layer 1");
        expect_numeric(&e, "resid_pre@1[3]=scale:1e25", "pattern@1", "token 3");
        expect_numeric(&e, "resid_post@1=add:1e25", "pattern@2", "layer 2");
        expect_numeric(&e, "resid_post@2=noise:1e25", "logits", "output_norm");
        qkv_result_free(run(&e, "resid_pre@1=scale:1e12", "logits")); /* large, but no trouble */
        engine_close(&e);
    }
}

/* After the last attention: of the tokens whose logits are wanted, whatever else is in the batch.
 * Here token 3 overflows, the last token is merely edited. */
static void overflow_behind_attention(void **state) {
    (void)state;
    static const char *const edit = "z@2[3]=set:1e25 + q@2[7]=scale:2";
    static const char *const others[] = {"mlp_out@2[7]=scale:2", "resid_post@2[7]=zero",
                                         "z@2[7]=zero + logits[7]=scale:2"};
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 2);
    qkv_result *alone = run(&e, edit, "logits[7]");
    const qkv_tensor a = engine_tensor(alone, 1, QKV_SITE_LOGITS, 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        qkv_result *both = engine_execute(
            &e, &(engine_run){tokens, T, LIST(edit, others[i]), LIST("logits[7]"), NULL});
        const qkv_tensor b = engine_tensor(both, 1, QKV_SITE_LOGITS, 0);
        assert_true(same_bits(a.data, b.data, tensor_count(&a)));
        qkv_result_free(both);
    }
    qkv_result_free(alone);
    expect_numeric(&e, edit, "logits", "token 3");
    expect_numeric(&e, edit, "logits[1,3]", "token 3");
    expect_numeric(&e, "z@2[3]=set:1e25 + mlp_out@2=mean:token", "logits[7]", "token 3");
    expect_numeric(&e, "z@2[3]=set:1e25 + logits=mean:token", "logits[7]", "token 3");
    expect_numeric(&e, "resid_post@2[5]=set:1e25", "logits[1,5]", "output_norm");
    expect_numeric(&e, "v@2[2]=set:1e25", "logits[1,4,5]", "token 4");
    engine_close(&e);
}

static void overflow_in_edits(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    expect_numeric(&e, "resid_pre@1[2]=scale:3e38 + k@1=scale:3e38", "pattern@1", "layer 1");
    expect_numeric(&e, "v@1[2]=noise:3e38,seed=1", "z@1", "the edit of v in layer 1");
    expect_numeric(&e, "v@1[2]=noise:3e38,seed=1", "z@1", "token 2");
    engine_close(&e);
}

/* The largest of a row that is not a number is not 0. */
static void pooling_keeps_nan(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "effect.gguf"), 1);
    expect_numeric(&e, "q@1=set:1e20 + k@1=set:1e20", "pattern@1:max=4", "NaN");
    expect_numeric(&e, "q@1=set:1e20 + k@1=set:1e20", "pattern@1:mean=4", "NaN");
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_cells),
        cmocka_unit_test(cells_behind_a_window),
        cmocka_unit_test(masked_scores_stay),
        cmocka_unit_test(rows_without_keys),
        cmocka_unit_test(masks_leave_the_rest),
        cmocka_unit_test(learned_sinks_take_all),
        cmocka_unit_test(edits_that_do_not_show),
        cmocka_unit_test(tokens_beyond_a_window),
        cmocka_unit_test(edits_carried_by_others),
        cmocka_unit_test(numbers_too_small),
        cmocka_unit_test(overflow_in_norms),
        cmocka_unit_test(overflow_behind_attention),
        cmocka_unit_test(overflow_in_edits),
        cmocka_unit_test(pooling_keeps_nan),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
