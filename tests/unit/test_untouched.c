/*
 * Variants that leave the beginning of the prompt as it is are computed from their first edited token
 * on: bit for bit what whole passes give, in families that differ in their attention, and with less
 * arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { T = 13 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const tiny_options models[] = {
    {"llama", .n_kv_head = 2, .n_layer = 4},
    {"llama", .n_kv_head = 1, .window = 4, .rope = TINY_ROPE_YARN},
    {"llama", .n_layer = 4, .type = GGML_TYPE_F16, .qkv_bias = 1},
    {"phi3", .n_kv_head = 2, .rope = TINY_ROPE_LONG, .rope_context = 8},
    {"gpt2", .n_layer = 4},
    {"llama", .n_kv_head = 1, .seed = 9},
};
enum { N_MODELS = sizeof models / sizeof *models };

static const char *const variants[] = {
    "resid_pre@1[5]=patch:src",  "resid_pre@1[12]=scale:0.5",
    "resid_pre@1[7:9]=add:0.25", "resid_pre@1[0]=patch:src",
    "z@1[6]=patch:src",          "k@1[4]=patch:src + v@2[9]=zero",
    "v@1[3]=noise:0.5,seed=3",   "mlp_out@1[8]=patch:src",
    "attn_out@2[10]=patch:src",  "q@0[11]=clamp:-0.1,0.1",
    "q_rot@1.h1[9]=zero",        "k_rot@1.g0[9]=scale:2",
    "k@1.h1[9]=scale:2",         "z@1.h0[2]=mean:token + resid_pre@1[9]=zero",
    "pattern@1.h0[9,8]=zero",    NULL};
enum { N_VARIANTS = sizeof variants / sizeof *variants - 1 };

static void fill_prompts(int32_t *own, int32_t *source) {
    for (int t = 0; t < T; t++) {
        own[t] = 3 + t * 7 % (TINY_VOCAB - 3);
        source[t] = 3 + t * 11 % (TINY_VOCAB - 3);
    }
}

/* The last token's logits, all layers being prepared for others. */
static qkv_result *run_last(engine *e, const engine_run *run) {
    qkv_plan *plan = engine_plan(e, run);
    qkv_result *result = NULL;
    qkv_error err = {0};
    expect_ok(qkv_plan_prepare(plan, "resid_pre", &err), &err, "preparing");
    expect_ok(qkv_session_run(e->session, &result, plan, &err), &err, "running");
    qkv_plan_free(plan);
    return result;
}

static double flop_of(const qkv_result *result) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    assert_true(qkv_result_get_stats(result, &stats));
    return stats.flop;
}

static void expect_same(const qkv_result *whole, size_t v, const qkv_result *cut, size_t w,
                        const char *family) {
    const qkv_tensor a = engine_tensor(whole, v, QKV_SITE_LOGITS, -1);
    const qkv_tensor b = engine_tensor(cut, w, QKV_SITE_LOGITS, -1);
    assert_int_equal(b.shape[0], 1);
    if (memcmp(a.data + (size_t)(T - 1) * TINY_VOCAB, b.data, TINY_VOCAB * sizeof *b.data) != 0)
        fail_msg("%s, %s: other bits", family, v ? variants[v - 1] : "the baseline");
    for (size_t i = 0; v && i < qkv_result_n_edits(whole, v); i++) {
        if (qkv_result_edit_ran(cut, w, i)) /* a window may hide it from the last token */
            assert_int_equal(qkv_result_edit_changed(whole, v, i),
                             qkv_result_edit_changed(cut, w, i));
    }
}

/* Together, where the earliest token decides for a batch, and each alone. */
static void check_model(const tiny_options *options) {
    engine e;
    int32_t own[T], source[T];
    fill_prompts(own, source);
    engine_open(&e, tiny_model(options, "untouched.gguf"), 1);
    const engine_run whole = {own, T, variants, LIST("logits"), source};
    const engine_run last = {own, T, variants, LIST("logits[-1]"), source};
    qkv_result *all = engine_execute(&e, &whole);
    engine_renew(&e, NULL);
    qkv_result *cut = run_last(&e, &last);
    for (size_t v = 0; v <= N_VARIANTS; v++) expect_same(all, v, cut, v, options->family);
    qkv_result_free(cut);
    for (size_t v = 1; v <= N_VARIANTS; v++) {
        const engine_run one = {own, T, LIST(variants[v - 1]), LIST("logits[-1]"), source};
        cut = run_last(&e, &one);
        expect_same(all, v, cut, 1, options->family);
        qkv_result_free(cut);
    }
    qkv_result_free(all);
    engine_close(&e);
}

static void results_are_those_of_whole_passes(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) check_model(&models[i]);
}

/* Late edits cost less than early ones, and need layers that are prepared for. */
static void later_edits_take_less(void **state) {
    (void)state;
    engine e;
    int32_t own[T], source[T];
    fill_prompts(own, source);
    engine_open(&e, tiny_model(&models[0], "untouched.gguf"), 1);
    double flop[3];
    static const char *const edits[] = {"resid_pre@1[0]=zero", "resid_pre@1[6]=zero",
                                        "resid_pre@1[12]=zero"};
    for (int i = 0; i < 3; i++) {
        const engine_run run = {own, T, LIST(edits[i]), LIST("logits[-1]"), source};
        engine_renew(&e, NULL);
        qkv_result *result = run_last(&e, &run);
        flop[i] = flop_of(result);
        qkv_result_free(result);
    }
    assert_true(flop[1] < 0.85 * flop[0]);
    assert_true(flop[2] < 0.85 * flop[1]);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_whole_passes),
        cmocka_unit_test(later_edits_take_less),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
