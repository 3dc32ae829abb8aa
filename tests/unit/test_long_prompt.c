/*
 * Long prompts, whose queries attention takes in blocks: what comes out must be what comes out when
 * the whole map is computed at once, which capturing the map makes it do. The account of products
 * says which of the two it was.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/reduced.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "support/values.h"

/* Five blocks, the last of them not full. */
enum { T = 1100, HEADS = 2, LAYERS = 2 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* clang-format off */
#define SHAPE .n_layer = LAYERS, .n_head = HEADS, .n_embd = 16, .head_dim = 8, .n_ctx = 2048
static const tiny_options models[] = {
    {"llama", .n_kv_head = 1, SHAPE},
    {"llama", .window = 300, SHAPE},
    {"gpt2", SHAPE},
};
/* clang-format on */
enum { MODELS = sizeof models / sizeof *models };

static const int32_t *prompt(int which) {
    static int32_t tokens[2][T];
    dice d = {(uint64_t)which + 5};
    for (int t = 0; t < T; t++)
        tokens[which][t] = t == 0 ? 1 : 3 + (int32_t)dice_below(&d, TINY_VOCAB - 3);
    return tokens[which];
}

/* With room for all variants in one batch, even with whole maps. */
static qkv_result *run(engine *e, const char *const *variants, const char *const *captures) {
    engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                           .n_threads = 1,
                                           .memory_budget = (size_t)2 << 30});
    const engine_run r = {prompt(0), T, variants, captures, prompt(1)};
    return engine_execute(e, &r);
}

static void for_each_model(void (*check)(engine *e)) {
    for (int i = 0; i < MODELS; i++) {
        engine e;
        engine_open(&e, tiny_model(&models[i], "long.gguf"), 1);
        check(&e);
        engine_close(&e);
    }
}

static void expect_blocks(const qkv_result *blocks, const qkv_result *whole) {
    const qkv_run_stats a = result_stats(blocks), b = result_stats(whole);
    assert_int_equal(a.n_matmul, b.n_matmul);
    assert_true(a.n_attention > b.n_attention);
}

/* Everything that the first has, in the second. */
static void expect_near(const qkv_result *blocks, const qkv_result *whole,
                        const char *const *variants) {
    size_t variant = 0, n = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor x = QKV_TENSOR_INIT;
    for (; qkv_result_item(blocks, n, &variant, &site, &layer, &x); n++) {
        const qkv_tensor y = engine_tensor(whole, variant, site, layer);
        assert_int_equal(tensor_count(&x), tensor_count(&y));
        const difference d = compare_floats(x.data, y.data, tensor_count(&x));
        if (d.max > 1e-5 * fmax(d.scale, 1))
            fail_msg("'%s': %s of layer %d is off by %g at %zu of %zu",
                     variant ? variants[variant - 1] : "", qkv_site_name(site), (int)layer, d.max,
                     d.where, tensor_count(&x));
    }
    assert_true(n > 0);
    for (size_t v = 1; v < qkv_result_n_variants(blocks); v++)
        assert_int_equal(qkv_result_edit_changed(blocks, v, 0),
                         qkv_result_edit_changed(whole, v, 0));
}

static void check_edits(engine *e, const char *const *variants) {
    qkv_result *blocks = run(e, variants, LIST("z", "resid_post", "logits"));
    qkv_result *whole = run(e, variants, LIST("z", "resid_post", "logits", "pattern"));
    expect_blocks(blocks, whole);
    expect_near(blocks, whole, variants);
    qkv_result_free(blocks);
    qkv_result_free(whole);
}

static void check_heads(engine *e) {
    check_edits(e, LIST("q@0=scale:0.5", "k@1.h1=zero", "v@0[700:]=add:0.5"));
}

static void edits_of_heads(void **state) {
    (void)state;
    for_each_model(check_heads);
}

static void check_maps(engine *e) {
    check_edits(e, LIST("pattern@0.h1[:,0]=zero", "pattern@1[700:900,3:500]=set:0.001",
                        "pattern@1=mean:head", "pattern@1.h1=noise:0.01,seed=4",
                        "scores@1[1000:,10:900]=add:1", "scores@0.h1=clamp:-0.5,0.5",
                        "scores@*=mask:sink=4,recent=64", "scores@1.h1[300:,5:290]=mask"));
    check_edits(e, LIST("scores@*=keep:h2o,budget=40,recent=16",
                        "scores@1.h1=keep:snapkv,budget=64,window=16,prompt=600",
                        "k_rot@*=quant:bits=2,axis=channel,group=32,keep=128"));
    if (strncmp(e->info->position, "rope", 4) == 0)
        check_edits(e, LIST("scores@*=mask:sink=4,recent=64,positions=cache"));
    check_edits(e, LIST("scores@*=keep:h2o,budget=40,recent=16,rule=lm_eval",
                        "k_rot@*=quant:bits=2,axis=channel,group=32,keep=128,per=query",
                        "v@*.h1=quant:bits=2,axis=token,group=4,keep=100,per=query,prompt=300"));
}

static void edits_of_maps(void **state) {
    (void)state;
    for_each_model(check_maps);
}

/* Values from another prompt's maps, and means over all queries: these need whole maps. */
static void check_whole_maps(engine *e) {
    const char *const *variants = LIST("pattern@1.h1=patch:src", "scores@1=patch:src");
    const char *const *means = LIST("pattern@1.h1=mean:token", "scores@1[5:9,:]=mean:token");
    for (int i = 0; i < 2; i++) {
        const char *const *list = i ? means : variants;
        qkv_result *without = run(e, list, LIST("resid_post@1"));
        qkv_result *with = run(e, list, LIST("resid_post@1", "pattern"));
        expect_near(without, with, list);
        qkv_result_free(without);
        qkv_result_free(with);
    }
}

static void edits_that_need_whole_maps(void **state) {
    (void)state;
    for_each_model(check_whole_maps);
}

static void check_reductions(engine *e) {
    const char *const *variants =
        LIST("q@1.h1=scale:0.3", "k@0=scale:0.5", "pattern@1.h0[:,800:]=set:0.01", "v@1=zero");
    qkv_result *blocks = run(e, variants,
                             LIST("pattern@1:first", "pattern@1:columns", "pattern@1:diagonals",
                                  "pattern@1:mean=64", "pattern@1:max=100"));
    qkv_result *whole = run(e, variants, LIST("pattern@1"));
    expect_blocks(blocks, whole);
    for (size_t v = 0; v < 5; v++) {
        const qkv_tensor map = engine_tensor(whole, v, QKV_SITE_PATTERN, 1);
        expect_reduced(blocks, v, 1, &map, QKV_REDUCTION_FIRST, 0);
        expect_reduced(blocks, v, 1, &map, QKV_REDUCTION_COLUMNS, 0);
        expect_reduced(blocks, v, 1, &map, QKV_REDUCTION_DIAGONALS, 0);
        expect_reduced(blocks, v, 1, &map, QKV_REDUCTION_MEAN, 64);
        expect_reduced(blocks, v, 1, &map, QKV_REDUCTION_MAX, 100);
    }
    qkv_result_free(blocks);
    qkv_result_free(whole);
}

static void reductions_in_blocks(void **state) {
    (void)state;
    for_each_model(check_reductions);
}

/* A small budget makes the batches smaller, and nothing else: blocks and bits stay. */
static void check_small_budget(engine *e) {
    const char *const *variants = LIST("q@1=scale:0.5", "k@1.h1=zero", "v@1=add:0.5");
    const engine_run r = {prompt(0), T, variants, LIST("z@1"), NULL};
    engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                           .n_threads = 1,
                                           .memory_budget = (size_t)2 << 20});
    qkv_result *small = engine_execute(e, &r);
    qkv_result *large = run(e, variants, LIST("z@1"));
    const qkv_run_stats a = result_stats(small), b = result_stats(large);
    assert_true(a.n_passes > b.n_passes && a.n_attention > b.n_attention);
    expect_near(small, large, variants);
    for (size_t v = 0; v < 4; v++) {
        const qkv_tensor x = engine_tensor(small, v, QKV_SITE_Z, 1);
        const qkv_tensor y = engine_tensor(large, v, QKV_SITE_Z, 1);
        assert_true(same_bits(x.data, y.data, tensor_count(&x)));
    }
    qkv_result_free(small);
    qkv_result_free(large);
}

static void smaller_batches(void **state) {
    (void)state;
    for_each_model(check_small_budget);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_of_heads),
        cmocka_unit_test(edits_of_maps),
        cmocka_unit_test(edits_that_need_whole_maps),
        cmocka_unit_test(reductions_in_blocks),
        cmocka_unit_test(smaller_batches),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
