/*
 * The memory of a run grows with the length of the prompt and not with its square, however many
 * layers have their patterns reduced or observed. Counted are the bytes that graphs are given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "run/run.h"
#include "run/session.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { SHORT = 384 };

/* clang-format off */
#define SHAPE .n_layer = 4, .n_head = 4, .n_ctx = 4 * SHORT
static const tiny_options models[] = {
    {"llama", .n_kv_head = 2, SHAPE},
    {"llama", .window = 300, SHAPE},
    {"gpt2", SHAPE},
};
static const char *const layers[] = {"0", "0-1", "0-3"};
static const char *const edits[] = {NULL, "q@0.h1=scale:0.5", "scores@0.h1=scale:0.5", "v@0=zero"};
static const char *const reductions[] = {"first", "columns", "diagonals", "mean=64", "max=64"};
/* clang-format on */
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void look(void *user, const qkv_rows *rows) {
    (void)user;
    (void)rows;
}

/* Bytes of a run that looks at the patterns named: by a reduction, or by an observer (NULL). */
static double bytes(engine *e, size_t n_tokens, const char *named, const char *edit,
                    const char *reduction) {
    static int32_t tokens[4 * SHORT];
    for (size_t t = 0; t < n_tokens; t++) tokens[t] = 3 + (int32_t)(t * 7 % (TINY_VOCAB - 3));
    engine_renew(e, &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = 1});
    const char *const variants[] = {edit, NULL};
    qkv_plan *plan = engine_plan(e, &(engine_run){tokens, n_tokens, variants, NULL, NULL});
    char what[64];
    snprintf(what, sizeof what, reduction ? "pattern@%s:%s" : "pattern@%s", named, reduction);
    const qkv_observer observer = {.size = sizeof(qkv_observer), .rows = look, .compare = 1};
    qkv_error err;
    qkv_result *result = NULL;
    expect_ok(reduction ? qkv_plan_add_capture(plan, what, &err)
                        : qkv_plan_observe(plan, what, &err),
              &err, what);
    expect_ok(qkv_session_observe(e->session, &result, plan, reduction ? NULL : &observer, &err),
              &err, what);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return (double)qkv_session_buffer_size(e->session);
}

/* The allocator may leave gaps of a block or so: what is asked is that the number of blocks does not
 * count. Where it did, four times the tokens took fifteen times the memory. */
static void check(engine *e, const char *edit, const char *reduction) {
    const char *const how = reduction ? reduction : "observed", *what = edit ? edit : "no edit";
    double size[COUNT(layers)][2];
    for (size_t i = 0; i < COUNT(layers); i++) {
        size[i][0] = bytes(e, SHORT, layers[i], edit, reduction);
        size[i][1] = bytes(e, 4 * SHORT, layers[i], edit, reduction);
        assert_true(size[i][0] > 0);
        if (size[i][1] > 6 * size[i][0])
            fail_msg("%s, %s, layers %s: %.0f bytes at %d tokens, %.0f at four times as many", what,
                     how, layers[i], size[i][0], SHORT, size[i][1]);
    }
    /* What goes through a layer besides its maps is a small part here. An edit that is looked at in
     * its own layer alone takes less: only its heads are computed. */
    const double fewer = size[edit != NULL][1], all = size[COUNT(layers) - 1][1];
    if (all > 1.4 * fewer)
        fail_msg("%s, %s: %.0f bytes for four layers, %.0f for fewer", what, how, all, fewer);
}

static void with_model(const tiny_options *options, const char *const *hows, size_t n) {
    engine e;
    engine_open(&e, tiny_model(options, "growth.gguf"), 1);
    for (size_t i = 0; i < n; i++) check(&e, edits[i % COUNT(edits)], hows ? hows[i] : NULL);
    engine_close(&e);
}

static void reduced(void **state) {
    (void)state;
    with_model(&models[0], reductions, COUNT(reductions));
}

static void observed(void **state) {
    (void)state;
    with_model(&models[0], NULL, COUNT(edits));
    for (size_t m = 1; m < COUNT(models); m++) with_model(&models[m], NULL, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduced),
        cmocka_unit_test(observed),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
