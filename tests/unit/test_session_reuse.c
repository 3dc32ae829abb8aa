/*
 * What a session computes must not depend on what it computed before. The plans come in an
 * order in which graphs of equal size but different shape follow one another: an allocator that
 * took one for the other would hand out memory that is still in use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/synthetic.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { LENGTH = 48 };

static const char *const capture_sets[][3] = {
    {"pattern@1", NULL}, {"logits", NULL}, {"z@1", "resid_post@2", NULL}};
enum { CAPTURE_SETS = sizeof capture_sets / sizeof capture_sets[0] };

/* One variant each, so that a fresh session runs just the baseline and it. */
static const char *const edits[] = {
    "q@1=scale:0.5",   "k@1=scale:0.5",         "v@1=scale:0.5",       "q@0.h1=zero",
    "q_rot@1=add:0.1", "k_rot@1=add:0.1",       "z@2=scale:2",         "pattern@1.h0[:,0]=set:0",
    "k@1.h2=zero",     "scores@2=clamp:-1,1",   "mlp_out@0=scale:0.9", "attn_out@1=scale:0.9",
    "v@2.h3=zero",     "resid_pre@1=scale:1.1", "logits=add:1",        "q@2=mean:head",
};
enum { EDITS = sizeof edits / sizeof edits[0] };

static qkv_result *run(engine *e, const char *edit, const char *const *captures) {
    int32_t tokens[LENGTH];
    for (int i = 0; i < LENGTH; i++) tokens[i] = (i * 37 + 5) % TINY_VOCAB;
    const char *const variants[] = {edit, NULL};
    const engine_run run = {tokens, LENGTH, variants, captures, NULL};
    return engine_execute(e, &run);
}

static void expect_same(const qkv_result *a, const qkv_result *b) {
    size_t variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor x = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(a, i, &variant, &site, &layer, &x); i++) {
        const qkv_tensor y = engine_tensor(b, variant, site, layer);
        assert_true(same_bits(x.data, y.data, tensor_count(&x)));
    }
}

static void check_family(const char *family, const char *name) {
    const tiny_options options = {family,      .n_embd = 64,   .head_dim = 32,
                                  .n_head = 4, .n_kv_head = 2, .n_ff = 96};
    const tiny_options plain = {family, .n_embd = 128, .head_dim = 32, .n_head = 4, .n_ff = 96};
    const int grouped = family[0] == 'l';
    const char *path = tiny_model(grouped ? &options : &plain, name);
    engine used;
    engine_open(&used, path, 2);
    for (int i = 0; i < EDITS; i++) {
        const char *const *captures = capture_sets[i % CAPTURE_SETS];
        for (int j = 0; j < EDITS; j++) {
            engine fresh;
            engine_open(&fresh, path, 2);
            qkv_result *expected = run(&fresh, edits[j], captures);
            qkv_result_free(run(&used, edits[i], captures));
            qkv_result *actual = run(&used, edits[j], captures);
            expect_same(expected, actual);
            qkv_result_free(actual);
            qkv_result_free(expected);
            engine_close(&fresh);
        }
    }
    engine_close(&used);
}

static void llama_sessions(void **state) {
    (void)state;
    check_family("llama", "reuse-llama.gguf");
}

static void gpt2_sessions(void **state) {
    (void)state;
    check_family("gpt2", "reuse-gpt2.gguf");
}

/* Several threads, products large enough for them to share, and passes on both sides of the size
 * from which the session uses them: a variant must not show what else was in its batch. */
static void company_with_threads(void **state) {
    (void)state;
    enum { T = 40, COMPANY = 16 };
    static char texts[COMPANY][32];
    const char *variants[COMPANY + 1] = {NULL};
    int32_t tokens[T];
    for (int t = 0; t < T; t++) tokens[t] = 1 + t * 7 % 290;
    for (int i = 0; i < COMPANY; i++) {
        snprintf(texts[i], sizeof texts[i], "q@0=scale:%g", 0.9 / (1 + i));
        variants[i] = texts[i];
    }
    qkv_error err = {0};
    const char *path = scratch_path("company.gguf");
    expect_ok(qkv_synthetic_write(path, "1,4,2,256,512,300", "f32", 1, &err), &err, "writing");
    engine e;
    engine_open(&e, path, 2);
    const char *const alone[] = {texts[0], NULL}, *const captures[] = {"resid_post", "logits",
                                                                       NULL};
    qkv_result *a = engine_execute(&e, &(engine_run){tokens, T, alone, captures, NULL});
    engine_renew(&e, &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = 2});
    qkv_result *b = engine_execute(&e, &(engine_run){tokens, T, variants, captures, NULL});
    expect_same(a, b);
    qkv_result_free(a);
    qkv_result_free(b);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(company_with_threads),
        cmocka_unit_test(llama_sessions),
        cmocka_unit_test(gpt2_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
