/*
 * Edits that take rows from elsewhere (the unedited run, another prompt, means over a set, vectors by token)
 * where only some rows or heads are computed: some tokens' logits, blocks of a long prompt, what an
 * earlier plan has left in the session, tokens one by one. What is shown is, bit for bit, what a plan
 * gives that shows everything; or, token by token, nearly so. Prompts have one token up to as many as
 * the model takes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/generate.h"
#include "reference/ref_other.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

/* LONG: attention goes in blocks of queries; the longest prompt of the set is longer. */
enum { LONG = 300, LONGEST = LONG + REF_SHIFT, LAYERS = 3, SIZE = 160 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const tiny_options models[] = {
    {"llama", .n_kv_head = 2, .n_layer = LAYERS, .n_ctx = LONGEST},
    {"gpt2", .n_layer = LAYERS, .n_ctx = LONGEST}};

static const int lengths[] = {1, 2, 9, LONG, LONGEST};

/* What is edited, and the shape of a vector for it. */
static const struct {
    const char *site;
    int heads, width;
} sites[] = {{"final_norm", 0, 32},   {"logits", 0, TINY_VOCAB},
             {"resid_post@2", 0, 32}, {"mlp_out@2", 0, 32},
             {"z@2", 4, 8},           {"resid_pre@1", 0, 32},
             {"k@1.h1", 4, 8},        {"q_in@1.h0", 4, 32},
             {"pattern@1.h2", 0, 0},  {"scores@2", 0, 0}};
enum { SITES = sizeof sites / sizeof *sites };

static const char *const sources[] = {"freeze", "patch:src", "mean:set", "mean:set,per=position",
                                      "set:@"};
enum { SOURCES = sizeof sources / sizeof *sources, PATCH = 1, SET = 2, VECTOR = 4 };

static void fill(int32_t *tokens, int n, int factor) {
    for (int t = 0; t < n; t++) tokens[t] = t ? 3 + (factor * t * t + 5 * t) % (TINY_VOCAB - 3) : 1;
}

static const int32_t *prompt(int n) {
    static int32_t tokens[LONGEST];
    fill(tokens, n, 7);
    return tokens;
}

static const int32_t *other(int n) {
    static int32_t tokens[LONGEST];
    fill(tokens, n, 11);
    return tokens;
}

static int is_map(int site) {
    return !sites[site].width;
}

/* Freezing alone does nothing. Returns 0 where there is no such edit. */
static int write_edit(char *out, int site, int source, const char *rows, int n) {
    char vector[32] = "";
    if (is_map(site) && source > PATCH) return 0;
    if (source >= SET && source < VECTOR && n > LONG) return 0; /* its prompts would be too long */
    if (source == VECTOR)
        ref_vector_name(&(ref_shape){n, sites[site].heads, sites[site].width}, vector,
                        sizeof vector);
    snprintf(out, SIZE, "v@0.h1=scale:2 + %s%s=%s%s", sites[site].site, rows, sources[source],
             vector);
    return 1;
}

static qkv_result *run(engine *e, int n, const char *edit, const char *const *captures) {
    return engine_execute(e, &(engine_run){prompt(n), (size_t)n, LIST(edit), captures, other(n)});
}

static void renew(engine *e, int32_t n_threads) {
    engine_renew(
        e, &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = n_threads});
}

/* Leaves every layer of the prompt in the session. */
static void prepare(engine *e, int n, const char *capture) {
    qkv_error err = {0};
    qkv_result *result = NULL;
    qkv_plan *plan = engine_plan(e, &(engine_run){prompt(n), (size_t)n, NULL, NULL, NULL});
    expect_ok(qkv_plan_prepare(plan, capture, &err), &err, "preparing");
    expect_ok(qkv_plan_add_capture(plan, "resid_pre@0", &err), &err, "capture");
    expect_ok(qkv_session_run(e->session, &result, plan, &err), &err, "run");
    qkv_result_free(result);
    qkv_plan_free(plan);
}

/* ---- some tokens after all layers ---- */

static void expect_row(const qkv_result *all, const qkv_result *some, qkv_site site, int token,
                       const char *edit) {
    for (size_t v = 0; v < 2; v++) {
        const qkv_tensor a = engine_tensor(all, v, site, 0), b = engine_tensor(some, v, site, 0);
        const size_t width = (size_t)a.shape[1];
        assert_int_equal(b.shape[0], 1);
        if (!same_bits(a.data + (size_t)token * width, b.data, width))
            fail_msg("'%s', token %d of %d, variant %zu: %s differs", edit, token, (int)a.shape[0],
                     v, qkv_site_name(site));
    }
}

static void check_cut(engine *e, int n, const char *edit) {
    const int first = n / 2, last = n - 1;
    char logits[32], norm[32];
    snprintf(logits, sizeof logits, "logits[%d]", last);
    snprintf(norm, sizeof norm, "final_norm[%d]", first);
    renew(e, 1);
    qkv_result *all = run(e, n, edit, LIST("logits", "final_norm"));
    for (int warm = 0; warm < 3; warm++) {
        if (warm != 1) renew(e, 1 + warm);
        if (warm == 2) prepare(e, n, "resid_pre@*");
        qkv_result *one = run(e, n, edit, LIST(logits));
        expect_row(all, one, QKV_SITE_LOGITS, last, edit);
        qkv_result_free(one);
        qkv_result *both = run(e, n, edit, LIST(norm, logits));
        expect_row(all, both, QKV_SITE_LOGITS, last, edit);
        expect_row(all, both, QKV_SITE_FINAL_NORM, first, edit);
        qkv_result_free(both);
    }
    qkv_result_free(all);
}

/* Of all tokens, of the last one, of the first. */
static void check_length(engine *e, int n) {
    char edit[SIZE], middle[16];
    snprintf(middle, sizeof middle, "[%d]", n / 2);
    const char *const rows[] = {"", "[-1]", "[0]", middle};
    for (int s = 0; s < SITES; s++)
        for (int i = 0; i < SOURCES; i++)
            for (int r = 0; r < 4; r++) {
                if (n > 9 && (s + 3 * i + r) % 7) continue; /* each takes its time */
                if (is_map(s) && r) continue;
                if (write_edit(edit, s, i, rows[r], n)) check_cut(e, n, edit);
            }
}

static void some_tokens(void **state) {
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        engine e;
        engine_open(&e, tiny_model(&models[m], "rows.gguf"), 1);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) check_length(&e, lengths[i]);
        engine_close(&e);
    }
}

/* What is frozen is the baseline's, whatever the other edits do before it. */
static void frozen_output_is_the_baselines(void **state) {
    (void)state;
    static const char *const edits[] = {"final_norm[-1]=freeze + v@0=scale:0.5",
                                        "logits[-1]=freeze + v@0=scale:0.5",
                                        "freeze:logits + resid_post@2=add:1"};
    engine e;
    engine_open(&e, tiny_model(&models[0], "rows.gguf"), 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < sizeof edits / sizeof *edits; k++) {
            qkv_result *result = run(&e, lengths[i], edits[k], LIST("logits[-1]"));
            const qkv_tensor a = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
            const qkv_tensor b = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
            if (!same_bits(a.data, b.data, tensor_count(&a)))
                fail_msg("'%s' at %d tokens", edits[k], lengths[i]);
            qkv_result_free(result);
        }
    engine_close(&e);
}

/* ---- some heads of a map ---- */

/* A plan that starts with the heads of a layer computes the maps that it needs; edits take others too. */
static void some_heads(void **state) {
    (void)state;
    static const char *const edits[] = {
        "q@1.h0=scale:3 + freeze:scores@1", "q@1.h1=scale:3 + freeze:pattern@1",
        "k@1.g1=scale:3 + freeze:scores@1.h3[1:]", "q@1=zero + pattern@1.h2=patch:src",
        "scores@1.h0=scale:2 + freeze:pattern@1"};
    static const char *const captures[] = {"pattern@1.h0", "pattern@1.h3", "pattern@1.h2:columns",
                                           "scores@1.h1"};
    engine e;
    engine_open(&e, tiny_model(&models[0], "rows.gguf"), 1);
    for (int l = 0; l < 3; l++)
        for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
            for (size_t k = 0; k < sizeof captures / sizeof *captures; k++) {
                const int n = lengths[l] < 3 ? 3 : lengths[l];
                renew(&e, 1);
                qkv_result *cold = run(&e, n, edits[i], LIST(captures[k]));
                renew(&e, 1);
                prepare(&e, n, "pattern@1");
                qkv_result *warm = run(&e, n, edits[i], LIST(captures[k]));
                size_t v = 0;
                qkv_tensor a = QKV_TENSOR_INIT, b = QKV_TENSOR_INIT;
                for (size_t t = 0; qkv_result_item(cold, t, &v, NULL, NULL, &a); t++) {
                    assert_true(qkv_result_item(warm, t, &v, NULL, NULL, &b));
                    if (!same_bits(a.data, b.data, tensor_count(&a)))
                        fail_msg("'%s' seen at %s, variant %zu", edits[i], captures[k], v);
                }
                qkv_result_free(cold);
                qkv_result_free(warm);
            }
    engine_close(&e);
}

/* ---- token by token ---- */

static qkv_generator *generator_of(const engine *e, int n, const char *edit, const int32_t *src,
                                   size_t max_new) {
    static const char *const names[] = {"src"};
    qkv_error err = {0};
    qkv_generator *gen = NULL;
    qkv_edit_data *data = engine_data(e, LIST(edit), prompt(n), (size_t)n);
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = max_new;
    how.variants = &edit;
    how.n_variants = 1;
    how.edit_tokens = QKV_EDIT_PROMPT;
    how.source_names = names;
    how.source_tokens = &src;
    how.n_sources = 1;
    how.data = data;
    expect_ok(qkv_generator_new(&gen, e->model, prompt(n), (size_t)n, &how, &err), &err, edit);
    qkv_edit_data_free(data);
    return gen;
}

/* Up to the end of the context, where it is near. */
static void check_text(engine *e, int n, const char *edit) {
    const size_t room = (size_t)(LONGEST - n), max_new = room < 3 ? room : 3;
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_generator *gen = generator_of(e, n, edit, other(n), max_new);
    expect_ok(qkv_session_feed(e->session, gen, NULL, &err), &err, edit);
    for (size_t i = 0; i < max_new; i++)
        expect_ok(qkv_session_feed(e->session, gen, (const int32_t[]){9, 9}, &err), &err, edit);
    expect_ok(qkv_generator_plan(gen, &plan, 1, &err), &err, "plan");
    expect_ok(qkv_plan_add_capture(plan, "logits[-1]", &err), &err, "capture");
    expect_ok(qkv_session_run(e->session, &result, plan, &err), &err, edit);
    const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    const difference d = compare_floats(qkv_generator_logits(gen, 1), t.data, tensor_count(&t));
    if (!(d.max <= 1e-4 * fmax(1, d.scale)))
        fail_msg("'%s' at %d tokens and %zu more: off by %g", edit, n, max_new, d.max);
    qkv_result_free(result);
    qkv_plan_free(plan);
    qkv_generator_free(gen);
}

static void texts(void **state) {
    (void)state;
    char edit[SIZE];
    engine e;
    engine_open(&e, tiny_model(&models[0], "rows.gguf"), 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int s = 0; s < SITES; s++)
            for (int k = 0; k < SOURCES; k++) {
                const char *rows = is_map(s) || (s + k) % 2 ? "" : "[-1]";
                if (lengths[i] > 9 && (s + k) % 3) continue;
                if (write_edit(edit, s, k, rows, lengths[i])) check_text(&e, lengths[i], edit);
            }
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_output_is_the_baselines),
        cmocka_unit_test(some_tokens),
        cmocka_unit_test(some_heads),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
