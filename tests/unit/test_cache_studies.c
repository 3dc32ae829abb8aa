/*
 * Studies of small caches against the scalar reference: every loss of every table computed anew with the
 * reference's own edits, and the mean maps from its scores and weights.
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
#include "reference/ref_forward.h"
#include "support/judge.h"
#include "support/scratch.h"
#include "support/study_maker.h"
#include "support/tiny_model.h"

enum { T = JUDGE_TOKENS };

static judge j;

static int open_model(void **state) {
    (void)state;
    judge_open(&j, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "caches.gguf"), 1);
    return 0;
}

static int close_model(void **state) {
    judge_close(&j);
    return scratch_clean(state);
}

static qkv_study *make(const char *kind, const char *options) {
    qkv_prompt prompts[2] = {QKV_PROMPT_INIT, QKV_PROMPT_INIT};
    const study_case of = {.kind = kind,
                           .options = options,
                           .prompts = prompts,
                           .n_prompts = 2,
                           .session = j.eng.session};
    qkv_study *study = NULL;
    qkv_error err = {0};
    for (int i = 0; i < 2; i++) {
        prompts[i].tokens = i ? j.other : j.tokens;
        prompts[i].n_tokens = T;
    }
    expect_ok(study_make(&study, &of, &err), &err, kind);
    return study;
}

static void expect_refused(const char *kind, const char *options, const char *word) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    const study_case of = {.kind = kind,
                           .options = options,
                           .prompts = &prompt,
                           .n_prompts = 1,
                           .session = j.eng.session};
    qkv_study *study = NULL;
    qkv_error err = {0};
    prompt.tokens = j.tokens;
    prompt.n_tokens = T;
    assert_int_not_equal(study_make(&study, &of, &err), QKV_OK);
    assert_null(study);
    if (!strstr(err.message, word)) fail_msg("%s %s: %s", kind, options, err.message);
}

/* ---- the reference's losses ---- */

static double loss_of(const int32_t *tokens, int n, const ref_edit *edits, size_t n_edits, int from,
                      int *counted) {
    ref_run *run = ref_forward(j.ref, tokens, n, edits, n_edits, NULL);
    double sum = 0;
    for (int t = from; t < n; t++) {
        const double *logits = run->site[QKV_SITE_LOGITS][0] + (size_t)(t - 1) * (size_t)j.ref->V;
        double total = 0;
        for (int v = 0; v < j.ref->V; v++) total += exp(logits[v]);
        sum += log(total) - logits[tokens[t]];
        (*counted)++;
    }
    ref_run_free(run);
    return sum;
}

/* The mean over the two prompts. */
static double reference_loss(int n, const ref_edit *edits, size_t n_edits, int from) {
    int counted = 0;
    double sum = loss_of(j.tokens, n, edits, n_edits, from, &counted);
    sum += loss_of(j.other, n, edits, n_edits, from, &counted);
    return sum / counted;
}

static double cell(const qkv_study *study, const char *table, size_t row, const char *column) {
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    qkv_error err = {0};
    double number = NAN;
    const char *text = NULL, *name;
    expect_ok(qkv_study_get_info(study, &info, &err), &err, "info");
    for (size_t t = 0; t < info.n_tables; t++) {
        qkv_study_table of = QKV_STUDY_TABLE_INIT;
        expect_ok(qkv_study_get_table(study, t, &of, &err), &err, table);
        if (strcmp(of.name, table) != 0) continue;
        for (size_t c = 0; (name = qkv_study_column(study, t, c)); c++) {
            if (strcmp(name, column) != 0) continue;
            expect_ok(qkv_study_get_value(study, t, row, c, &number, &text, &err), &err, column);
            return text ? strtod(text, NULL) : number;
        }
    }
    fail_msg("there is no %s.%s", table, column);
    return NAN;
}

static void expect_loss(const qkv_study *study, const char *table, size_t row, double loss,
                        double baseline) {
    const double got = cell(study, table, row, "loss");
    if (!(fabs(got - loss) < 1e-4)) fail_msg("%s, row %zu: %g, not %g", table, row, got, loss);
    assert_true(fabs(cell(study, table, row, "perplexity") - exp(got)) < 1e-9 * exp(got));
    assert_true(fabs(cell(study, table, row, "loss_change") - (loss - baseline)) < 2e-4);
}

/* How a kind's edits look to the reference. */
typedef struct expectation {
    const char *kind, *options;
    size_t n_edits;
    ref_edit edits[2];
    int settings[3]; /* ended by -1 */
    int length, from;
    char head_kind;
    int n_heads;
} expectation;

static double expected_loss(const expectation *e, int setting, int layer, int head) {
    ref_edit edits[2];
    for (size_t i = 0; i < e->n_edits; i++) {
        edits[i] = e->edits[i];
        edits[i].a = setting;
        if (layer >= 0) edits[i].layers = (uint64_t)1 << layer;
        if (head >= 0) edits[i].head_kind = e->head_kind;
        if (head >= 0) edits[i].heads = (uint64_t)1 << head;
    }
    return reference_loss(e->length, edits, e->n_edits, e->from);
}

static void check_kind(const expectation *e) {
    qkv_study *study = make(e->kind, e->options);
    const double plain = reference_loss(e->length, NULL, 0, e->from);
    size_t n = 0;
    while (n < 3 && e->settings[n] >= 0) n++;
    expect_loss(study, "settings", 0, plain, plain);
    /* A setting may be 0: the model as it is has another name than any of nothing. */
    double number;
    const char *text = NULL;
    qkv_error problem = {0};
    expect_ok(qkv_study_get_value(study, 0, 0, 0, &number, &text, &problem), &problem, "row 0");
    assert_string_equal(text, "unedited");
    for (size_t s = 0; s < n; s++)
        expect_loss(study, "settings", s + 1, expected_loss(e, e->settings[s], -1, -1), plain);
    for (int l = 0; l < j.ref->n_layer; l++) {
        for (size_t s = 0; s < n; s++)
            expect_loss(study, "layers", (size_t)l * n + s, expected_loss(e, e->settings[s], l, -1),
                        plain);
        for (int h = 0; h < e->n_heads; h++)
            expect_loss(study, "heads", (size_t)(l * e->n_heads + h),
                        expected_loss(e, e->settings[0], l, h), plain);
    }
    qkv_study_free(study);
}

static void streaming(void **state) {
    (void)state;
    check_kind(&(expectation){.kind = "streaming-llm",
                              .options = "{\"sinks\": \"0,1,3\", \"recent\": 2, \"positions\": "
                                         "\"text\"}",
                              .n_edits = 1,
                              .edits = {{QKV_SITE_SCORES, .op = REF_MASK_RULE, .b = 2}},
                              .settings = {0, 1, 3},
                              .length = T,
                              .from = 1,
                              .head_kind = 'h',
                              .n_heads = 4});
}

/* The default, for a model with RoPE: keys are numbered within the cache. */
static void streaming_in_the_cache(void **state) {
    (void)state;
    check_kind(&(expectation){.kind = "streaming-llm",
                              .options = "{\"sinks\": \"0,1,3\", \"recent\": 2}",
                              .n_edits = 1,
                              .edits = {{QKV_SITE_SCORES, .op = REF_MASK_CACHE, .b = 2}},
                              .settings = {0, 1, 3},
                              .length = T,
                              .from = 1,
                              .head_kind = 'h',
                              .n_heads = 4});
}

static void h2o_of_the_evaluation(void **state) {
    (void)state;
    check_kind(
        &(expectation){.kind = "h2o",
                       .options = "{\"budgets\": \"3,5\", \"recent\": 2, \"rule\": \"lm_eval\"}",
                       .n_edits = 1,
                       .edits = {{QKV_SITE_SCORES, .op = REF_H2O_EVAL, .b = 2}},
                       .settings = {3, 5, -1},
                       .length = T,
                       .from = 1,
                       .head_kind = 'h',
                       .n_heads = 4});
}

/* The default: every query sees what the cache has quantised by then. */
static void kivi_by_query(void **state) {
    (void)state;
    check_kind(
        &(expectation){.kind = "kivi",
                       .options = "{\"bits\": \"1,2,4\", \"group\": 4, \"keep\": 4, \"prompt\": 5}",
                       .n_edits = 2,
                       .edits = {{QKV_SITE_K_ROT, .op = REF_LATE_CHANNEL, .b = 4},
                                 {QKV_SITE_V, .op = REF_LATE_TOKEN, .b = 4}},
                       .settings = {1, 2, 4},
                       .length = T,
                       .from = 6,
                       .head_kind = 'g',
                       .n_heads = 2});
}

static void h2o(void **state) {
    (void)state;
    check_kind(&(expectation){.kind = "h2o",
                              .options = "{\"budgets\": \"3,5\", \"recent\": 2, \"length\": 8}",
                              .n_edits = 1,
                              .edits = {{QKV_SITE_SCORES, .op = REF_H2O, .b = 2}},
                              .settings = {3, 5, -1},
                              .length = 8,
                              .from = 1,
                              .head_kind = 'h',
                              .n_heads = 4});
}

/* The losses of what queries after the prompt of six tokens predict. */
static void snapkv(void **state) {
    (void)state;
    check_kind(&(expectation){
        .kind = "snapkv",
        .options = "{\"budgets\": \"3,4\", \"window\": 2, \"kernel\": 3, \"prompt\": 6}",
        .n_edits = 1,
        .edits = {{QKV_SITE_SCORES, .op = REF_SNAPKV, .b = 2}},
        .settings = {3, 4, -1},
        .length = T,
        .from = 7,
        .head_kind = 'h',
        .n_heads = 4});
}

static void kivi(void **state) {
    (void)state;
    check_kind(&(expectation){.kind = "kivi",
                              .options =
                                  "{\"bits\": \"1,2,4\", \"group\": 4, \"keep\": 2, \"per\": "
                                  "\"text\"}",
                              .n_edits = 2,
                              .edits = {{QKV_SITE_K_ROT, .op = REF_QUANT_CHANNEL, .b = 4},
                                        {QKV_SITE_V, .op = REF_QUANT_TOKEN, .b = 4}},
                              .settings = {1, 2, 4},
                              .length = T,
                              .from = 1,
                              .head_kind = 'g',
                              .n_heads = 2});
}

static void mean_maps(void **state) {
    (void)state;
    qkv_study *study =
        make("streaming-llm",
             "{\"sinks\": \"1\", \"recent\": 2, \"only_all\": true, \"maps\": \"0,2.h1,3\", "
             "\"map_length\": 7}");
    enum { N = 7 };
    ref_run *runs[] = {ref_forward(j.ref, j.tokens, N, NULL, 0, NULL),
                       ref_forward(j.ref, j.other, N, NULL, 0, NULL)};
    size_t row = 0;
    for (int l = 0; l <= 2; l += 2) {
        for (int h = 1; h <= 3; h += 2) {
            for (int q = 0; q < N; q++) {
                for (int k = 0; k <= q; k++, row++) {
                    const int at = (h * N + q) * N + k;
                    const double score = (runs[0]->site[QKV_SITE_SCORES][l][at] +
                                          runs[1]->site[QKV_SITE_SCORES][l][at]) /
                                         2;
                    const double weight = (runs[0]->site[QKV_SITE_PATTERN][l][at] +
                                           runs[1]->site[QKV_SITE_PATTERN][l][at]) /
                                          2;
                    assert_int_equal((int)cell(study, "maps", row, "layer"), l);
                    assert_int_equal((int)cell(study, "maps", row, "head"), h);
                    assert_int_equal((int)cell(study, "maps", row, "query"), q);
                    assert_int_equal((int)cell(study, "maps", row, "key"), k);
                    assert_true(fabs(cell(study, "maps", row, "score") - score) < 1e-4);
                    assert_true(fabs(cell(study, "maps", row, "weight") - weight) < 1e-5);
                }
            }
        }
    }
    ref_run_free(runs[0]);
    ref_run_free(runs[1]);
    qkv_study_free(study);
}

static void mistakes(void **state) {
    (void)state;
    expect_refused("h2o", "{\"budgets\": \"\"}", "budget");
    expect_refused("h2o", "{\"budgets\": \"3,x\"}", "whole number");
    expect_refused("h2o", "{\"budgets\": \"3.5\"}", "whole number");
    expect_refused("h2o", "{\"budgets\": \"3\", \"recent\": 4}", "more than budget");
    expect_refused("h2o", "{\"budgets\": \"3,4\", \"alone\": 5}", "not one of the settings");
    expect_refused("h2o", "{\"budget\": 3}", "budget");
    expect_refused("snapkv", "{\"budgets\": \"3\", \"window\": 2}", "9 tokens");
    expect_refused("kivi", "{\"bits\": \"16\"}", "1 to 8");
    expect_refused("kivi", "{\"group\": 3, \"keep\": 3}", "do not divide");
    expect_refused("kivi", "{\"group\": 4, \"keep\": 6}", "a multiple of group=4");
    expect_refused("kivi", "{\"per\": \"text\", \"prompt\": 3}", "`per` query");
    expect_refused("streaming-llm", "{\"mean_map\": true}", "`map_length`");
    expect_refused("streaming-llm", "{\"maps\": \"9.h0\", \"map_length\": 4}", "layer 9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streaming),
        cmocka_unit_test(h2o),
        cmocka_unit_test(snapkv),
        cmocka_unit_test(kivi),
        cmocka_unit_test(mean_maps),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(streaming_in_the_cache),
        cmocka_unit_test(h2o_of_the_evaluation),
        cmocka_unit_test(kivi_by_query),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
