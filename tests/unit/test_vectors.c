/*
 * The library against another implementation's results: every prompt, every edit, every layer of
 * the families in tests/vectors, from the GGUF file and from the Hugging Face directory. A family is
 * added by its folder there and its name in VECTOR_LIST.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/run.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

static const double pattern_bound = 5e-5; /* absolute */
static const double logits_bound = 1e-4;  /* times the largest logit of the run */

typedef struct worst {
    double pattern, logits, site;
} worst;

static void keep_larger(double *largest, double value) {
    if (value > *largest) *largest = value;
}

static difference against(const qkv_tensor *actual, const file_tensor *expected) {
    assert_int_equal(actual->n_dims, expected->n_dims);
    for (int i = 0; i < actual->n_dims; i++) assert_int_equal(actual->shape[i], expected->shape[i]);
    return compare_floats(actual->data, expected->data, expected->count);
}

static void check_pattern(const qkv_result *result, size_t v, const expected_run *run, int il,
                          worst *w) {
    const qkv_tensor t = engine_tensor(result, v, QKV_SITE_PATTERN, il);
    const difference d = against(&t, &run->pattern[il]);
    keep_larger(&w->pattern, d.max);
    if (d.max > pattern_bound)
        fail_msg("'%s': pattern of layer %d is off by %g at %zu", run->edits, il, d.max, d.where);
    const qkv_tensor base = engine_tensor(result, 0, QKV_SITE_PATTERN, il);
    if (run->same_pattern[il] && !same_bits(t.data, base.data, tensor_count(&t)))
        fail_msg("'%s': pattern of layer %d must be the baseline's", run->edits, il);
}

/* An encoder has no logits: what counts is its last hidden state. */
static qkv_tensor output_of(const engine *eng, const qkv_result *result, size_t v) {
    if (eng->info->has_logits) return engine_tensor(result, v, QKV_SITE_LOGITS, 0);
    if (eng->info->has_final_norm) return engine_tensor(result, v, QKV_SITE_FINAL_NORM, 0);
    return engine_tensor(result, v, QKV_SITE_RESID_POST, eng->info->n_layer - 1);
}

static void check_logits(const engine *eng, const qkv_result *result, size_t v,
                         const expected_run *run, worst *w) {
    const qkv_tensor t = output_of(eng, result, v);
    const difference d = against(&t, &run->logits);
    keep_larger(&w->logits, d.max / d.scale);
    if (d.max > logits_bound * d.scale)
        fail_msg("'%s': logits are off by %g at %zu, largest %g", run->edits, d.max, d.where,
                 d.scale);
    const qkv_tensor base = output_of(eng, result, 0);
    if (run->same_logits && !same_bits(t.data, base.data, tensor_count(&t)))
        fail_msg("'%s': logits must be the baseline's", run->edits);
}

/* Layers without attention have the residual stream alone; others may share keys and values. */
static int may_be_absent(const expectations *e, const char *site, int il) {
    if (strcmp(site, "resid_pre") == 0) return 0;
    return !e->layers[il].has_attention || *site == 'k' || *site == 'v';
}

static void check_sites(engine *eng, const expectations *e, const expected_prompt *prompt,
                        worst *w) {
    static const char *const names[] = {"q", "k", "v", "z", "resid_pre", NULL};
    qkv_result *result = engine_execute(
        eng,
        &(engine_run){.tokens = prompt->tokens, .n_tokens = prompt->n_tokens, .captures = names});
    for (size_t s = 0; names[s]; s++)
        for (int il = 0; il < e->n_layer; il++) {
            file_tensor expected;
            if (!expected_site(e, prompt, names[s], il, &expected)) {
                assert_true(may_be_absent(e, names[s], il));
                continue;
            }
            const qkv_tensor t = engine_tensor(result, 0, qkv_site_by_name(names[s]), il);
            const difference d = against(&t, &expected);
            keep_larger(&w->site, d.max / d.scale);
            if (d.max > logits_bound * d.scale)
                fail_msg("%s of layer %d is off by %g at %zu", names[s], il, d.max, d.where);
        }
    qkv_result_free(result);
}

/* The mean over one key/value head is that head; every other edit changes something. */
static void check_edit_counts(const engine *eng, const qkv_result *result, size_t variant,
                              const char *edits) {
    const int is_alone = eng->info->n_kv_head == 1 && strstr(edits, "=mean:head");
    for (size_t i = 0; i < qkv_result_n_edits(result, variant); i++) {
        assert_true(qkv_result_edit_selected(result, variant, i) > 0);
        if (!is_alone) assert_true(qkv_result_edit_changed(result, variant, i) > 0);
    }
}

static void check_prompt(engine *eng, const expectations *e, const expected_prompt *prompt,
                         worst *w) {
    char last[32];
    snprintf(last, sizeof last, "resid_post@%d", e->n_layer - 1);
    const char *const captures[] = {"pattern",
                                    eng->info->has_logits       ? "logits"
                                    : eng->info->has_final_norm ? "final_norm"
                                                                : last,
                                    NULL};
    const char *variants[EXPECT_MAX_RUNS + 1] = {NULL};
    for (size_t r = 1; r < prompt->n_runs; r++) variants[r - 1] = prompt->runs[r].edits;
    qkv_result *result = engine_execute(eng, &(engine_run){.tokens = prompt->tokens,
                                                           .n_tokens = prompt->n_tokens,
                                                           .variants = variants,
                                                           .captures = captures});
    for (size_t r = 0; r < prompt->n_runs; r++) {
        for (int il = 0; il < e->n_layer; il++)
            if (e->layers[il].has_attention) check_pattern(result, r, &prompt->runs[r], il, w);
        check_logits(eng, result, r, &prompt->runs[r], w);
        check_edit_counts(eng, result, r, prompt->runs[r].edits);
    }
    qkv_result_free(result);
    if (prompt->sites) check_sites(eng, e, prompt, w);
}

static void check_model(const char *name, const char *file) {
    expectations e;
    engine eng;
    worst w = {0};
    int with_sites = 0;
    assert_true(expectations_open(&e, QKV_TEST_SOURCE_DIR "/vectors", name, file));
    engine_open(&eng, e.model, 1);
    for (size_t p = 0; p < e.n_prompts; p++) {
        check_prompt(&eng, &e, &e.prompts[p], &w);
        with_sites += e.prompts[p].sites != NULL;
    }
    assert_int_equal(with_sites, 1);
    print_message(
        "%-12s %-10s largest difference: pattern %.1e, logits %.1e, sites %.1e of their scale\n",
        name, file, w.pattern, w.logits, w.site);
    engine_close(&eng);
    expectations_close(&e);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void vectors_of_##name(void **state) {                                                  \
        (void)state;                                                                               \
        check_model(#name, "model.gguf");                                                          \
    }                                                                                              \
    static void directory_of_##name(void **state) {                                                \
        (void)state;                                                                               \
        check_model(#name, "hf");                                                                  \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

static void directory_in_parts(void **state) {
    (void)state;
    check_model("llama_gqa", "hf-sharded");
}

static void directory_of_bf16(void **state) {
    (void)state;
    check_model("qwen3", "hf-bf16");
}

int main(void) {
#define FAMILY_ENTRY(name, flags)                                                                  \
    cmocka_unit_test(vectors_of_##name), cmocka_unit_test(directory_of_##name),
    const struct CMUnitTest tests[] = {
        VECTOR_LIST(FAMILY_ENTRY) cmocka_unit_test(directory_in_parts),
        cmocka_unit_test(directory_of_bf16),
    };
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
