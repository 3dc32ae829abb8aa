/*
 * Ships against its formula: logits are captured for each edit by itself, the softmax and the sum written
 * out in long double. Phrases and intervals by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/generate.h"
#include "qkv/study.h"
#include "study/phrases.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/study_maker.h"

enum { N_PROMPTS = 2, N_TOKENS = 6 };

static const int32_t TOKENS[N_PROMPTS][N_TOKENS] = {{1, 20, 30, 40, 50, 60},
                                                    {1, 99, 3, 17, 250, 8}};
static engine e;

static int open_model(void **state) {
    (void)state;
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    return 0;
}

static int close_model(void **state) {
    engine_close(&e);
    return scratch_clean(state);
}

static int make(qkv_study **study, const char *kind, size_t n_prompts, const char *results,
                const char *options, qkv_error *err) {
    qkv_prompt prompts[N_PROMPTS];
    for (size_t i = 0; i < N_PROMPTS; i++) {
        prompts[i] = (qkv_prompt)QKV_PROMPT_INIT;
        prompts[i].tokens = TOKENS[i];
        prompts[i].n_tokens = N_TOKENS;
    }
    const study_case of = {.kind = kind,
                           .options = options,
                           .prompts = prompts,
                           .n_prompts = n_prompts,
                           .session = e.session,
                           .results = results};
    return study_make(study, &of, err);
}

static qkv_study *study_of(const char *kind, const char *results, const char *options) {
    qkv_study *study = NULL;
    qkv_error err = {0};
    expect_ok(make(&study, kind, N_PROMPTS, results, options, &err), &err, options);
    return study;
}

static double cell(const qkv_study *study, size_t table, size_t row, size_t column) {
    double number = NAN;
    const char *text = NULL;
    qkv_error err = {0};
    expect_ok(qkv_study_get_value(study, table, row, column, &number, &text, &err), &err, "cell");
    return number;
}

/* ---- the formula ---- */

static long double *distribution(size_t prompt, const char *edit) {
    const char *const variants[] = {edit, NULL}, *const captures[] = {"logits", NULL};
    const engine_run run = {TOKENS[prompt], N_TOKENS, edit ? variants : NULL, captures, NULL};
    const size_t n = (size_t)e.info->n_vocab;
    qkv_result *result = engine_execute(&e, &run);
    const qkv_tensor logits = engine_tensor(result, edit != NULL, QKV_SITE_LOGITS, -1);
    const float *last = logits.data + (N_TOKENS - 1) * n;
    long double *p = calloc(n, sizeof *p), sum = 0;
    for (size_t i = 0; i < n; i++) sum += p[i] = expl((long double)last[i]);
    for (size_t i = 0; i < n; i++) p[i] /= sum;
    qkv_result_free(result);
    return p;
}

static double ships_of(size_t prompt, const char *edit) {
    long double *p = distribution(prompt, NULL), *q = distribution(prompt, edit), sum = 0;
    for (size_t i = 0; i < (size_t)e.info->n_vocab; i++) {
        const long double a = p[i] + 1e-12L, b = q[i] + 1e-12L;
        sum += a * logl(a / b);
    }
    free(p);
    free(q);
    return (double)sum;
}

/* `edit` has two numbers, layer and head. Returns the sum of all scores. */
static double expect_scores(const qkv_study *study, const char *edit) {
    const size_t n_heads = (size_t)(e.info->n_layer * e.info->n_head);
    double sum = 0;
    for (size_t i = 0; i < N_PROMPTS * n_heads; i += 5) {
        char text[64];
        const double value = cell(study, 2, i, 3);
        const int layer = (int)cell(study, 2, i, 1), head = (int)cell(study, 2, i, 2);
        assert_int_equal(layer * e.info->n_head + head, i % n_heads);
        assert_int_equal((int)cell(study, 2, i, 0), i / n_heads + 1);
        snprintf(text, sizeof text, edit, layer, head);
        const double expected = ships_of(i / n_heads, text);
        if (!(fabs(value - expected) <= 1e-7 + 1e-5 * expected))
            fail_msg("%s: %.9g, not %.9g", text, value, expected);
        sum += value;
    }
    return sum;
}

static void scores_are_the_formula(void **state) {
    (void)state;
    static const struct {
        const char *options, *edit;
    } cases[] = {{"{}", "q@%d.h%d=scale:1e-5"},
                 {"{\"parity\": true}", "q@%d.h%d=scale:1e-5"},
                 {"{\"target\": \"k\", \"epsilon\": 0.001}", "k@%d.h%d=scale:0.001"},
                 {"{\"target\": \"v\", \"op\": \"zero\"}", "v@%d.h%d=zero"},
                 {"{\"target\": \"v\", \"op\": \"mean\"}", "v@%d.h%d=mean:others"},
                 {"{\"target\": \"v\", \"op\": \"mean\", \"parity\": true}", "z@%d.h%d=mean:head"}};
    double sums[6];
    for (size_t i = 0; i < 6; i++) {
        qkv_study *study = study_of("ships", NULL, cases[i].options);
        sums[i] = expect_scores(study, cases[i].edit);
        qkv_study_free(study);
    }
    assert_true(fabs(sums[4] - sums[5]) > 1e-3 * sums[4]); /* v and z are not the same */
}

/* ---- rankings ---- */

/* Ranks are by means over prompts; the first of a prompt are its largest. */
static void rankings_follow_the_scores(void **state) {
    (void)state;
    const size_t n = (size_t)(e.info->n_layer * e.info->n_head);
    qkv_study *study = study_of("ships", NULL, "{\"top\": 3}");
    double counted = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t at = (size_t)(cell(study, 0, i, 1) * e.info->n_head + cell(study, 0, i, 2));
        const double a = cell(study, 2, at, 3), b = cell(study, 2, n + at, 3);
        assert_true(fabs(cell(study, 0, i, 3) - (a + b) / 2) < 1e-12);
        assert_true(cell(study, 0, i, 4) == fmin(a, b) && cell(study, 0, i, 5) == fmax(a, b));
        assert_true(i == 0 || cell(study, 0, i, 3) <= cell(study, 0, i - 1, 3));
        counted += cell(study, 0, i, 6);
    }
    assert_true(counted == 3 * N_PROMPTS);
    for (size_t p = 0; p < N_PROMPTS; p++) {
        size_t larger = 0;
        for (size_t h = 0; h < n; h++)
            larger += cell(study, 2, p * n + h, 3) > cell(study, 1, 3 * p + 2, 4);
        assert_int_equal(larger, 2);
    }
    qkv_study_free(study);
}

static void a_file_has_the_same_scores(void **state) {
    (void)state;
    const char *path = scratch_path("ships.sqlite");
    qkv_study *plain = study_of("ships", NULL, "{}"), *kept = study_of("ships", path, "{}");
    qkv_run_stats before = QKV_RUN_STATS_INIT, after = QKV_RUN_STATS_INIT;
    qkv_session_get_stats(e.session, &before);
    qkv_study *again = study_of("ships", path, "{}");
    qkv_session_get_stats(e.session, &after);
    assert_int_equal(before.n_passes, after.n_passes);
    const size_t n = (size_t)(e.info->n_layer * e.info->n_head) * N_PROMPTS;
    for (size_t i = 0; i < n; i++) {
        assert_true(cell(plain, 2, i, 3) == cell(kept, 2, i, 3));
        assert_true(cell(plain, 2, i, 3) == cell(again, 2, i, 3));
    }
    qkv_study_free(plain);
    qkv_study_free(kept);
    qkv_study_free(again);
}

/* ---- phrases ---- */

static void phrases_are_found(void **state) {
    (void)state;
    const phrase_match contain = {PHRASE_CONTAIN, 0}, begin = {PHRASE_BEGIN, 0};
    const phrase_match any_case = {PHRASE_CONTAIN, 1};
    assert_true(qkv_phrase_is_in("Sure", "Yes. Sure!", &contain));
    assert_false(qkv_phrase_is_in("sure", "Yes. Sure!", &contain));
    assert_true(qkv_phrase_is_in("sure", "Yes. Sure!", &any_case));
    assert_false(qkv_phrase_is_in("Sure", "Yes. Sure!", &begin));
    assert_true(qkv_phrase_is_in("Sure", "\n Sure!", &begin));
    assert_false(qkv_phrase_is_in("Sure", "Sur", &begin));
    assert_false(qkv_phrase_is_in("Sure", "Sur", &contain));
    assert_int_equal(qkv_phrase_text_length("I\xe2\x80\x99m"), 3);
    phrase_list list;
    qkv_error err = {0};
    expect_ok(qkv_phrases_read(&list, "I'm sorry\r\n\nSure \n", &err), &err, "phrases");
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0], "I'm sorry");
    assert_string_equal(list.items[1], "Sure ");
    qkv_phrases_release(&list);
}

/* From the formula with z = 1.959964: 0 of 10 gives z²/(n+z²) = 0.27753; 5 of 10 is symmetric. */
static void intervals(void **state) {
    (void)state;
    static const struct {
        size_t k, n;
        double low, high;
    } cases[] = {{0, 10, 0, 0.2775328},
                 {10, 10, 0.7224672, 1},
                 {5, 10, 0.2365931, 0.7634069},
                 {1, 4, 0.0455873, 0.6993582}};
    for (size_t i = 0; i < 4; i++) {
        double low, high;
        qkv_wilson_interval(cases[i].k, cases[i].n, &low, &high);
        if (fabs(low - cases[i].low) > 1e-6 || fabs(high - cases[i].high) > 1e-6)
            fail_msg("%zu of %zu: %.7f to %.7f", cases[i].k, cases[i].n, low, high);
    }
}

/* Texts of the study are those of the edits; counts are those of the texts. */
static void rates_count_texts(void **state) {
    (void)state;
    qkv_study *study = study_of("phrase-rates", NULL,
                                "{\"heads\": \"3.h0, 1.h1\", \"phrases\": \"e\\nqqq\","
                                " \"tokens\": 6, \"one_by_one\": true}");
    qkv_error err = {0};
    for (size_t v = 0; v < 3; v++) {
        size_t matched = 0;
        for (size_t p = 0; p < N_PROMPTS; p++) {
            double number;
            const char *text = NULL;
            expect_ok(qkv_study_get_value(study, 2, p * 3 + v, 3, &number, &text, &err), &err,
                      "text");
            matched += strchr(text, 'e') != NULL;
        }
        assert_true(cell(study, 0, v, 0) == (double)v);
        assert_true(cell(study, 0, v, 1) == (double)matched);
        assert_true(cell(study, 1, v, 2) == (double)matched && cell(study, 1, 3 + v, 2) == 0);
    }
    qkv_study_free(study);
}

/* The unedited text is qkv_session_continue's. */
static void texts_are_greedy(void **state) {
    (void)state;
    qkv_error err = {0};
    int32_t *tokens = NULL;
    size_t n = 0, length = 0, skip = 0;
    char *whole = NULL, *prompt = NULL;
    double number;
    const char *text = NULL;
    qkv_study *study =
        study_of("phrase-rates", NULL, "{\"heads\": \"3.h0\", \"phrases\": \"x\", \"tokens\": 9}");
    expect_ok(qkv_session_continue(e.session, TOKENS[0], N_TOKENS, 9, &tokens, &n, &err), &err,
              "continue");
    expect_ok(qkv_detokenize(e.model, &whole, &length, tokens, n, 0, &err), &err, "text");
    expect_ok(qkv_detokenize(e.model, &prompt, &skip, tokens, N_TOKENS, 0, &err), &err, "prompt");
    expect_ok(qkv_study_get_value(study, 2, 0, 3, &number, &text, &err), &err, "cell");
    assert_string_equal(text, whole + skip);
    qkv_text_free(whole);
    qkv_text_free(prompt);
    qkv_tokens_free(tokens);
    qkv_study_free(study);
}

/* ---- refusals ---- */

static void refuse(const char *kind, size_t n_prompts, const char *results, const char *options,
                   const char *part) {
    qkv_study *study = NULL;
    qkv_error err = {0};
    assert_int_not_equal(make(&study, kind, n_prompts, results, options, &err), QKV_OK);
    assert_null(study);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
}

static void what_is_refused(void **state) {
    (void)state;
    refuse("ships", 2, NULL, "{\"target\": \"z\"}", "q|k|v");
    refuse("ships", 2, NULL, "{\"op\": \"zero\", \"epsilon\": 0.5}", "belongs to op scale");
    refuse("ships", 2, NULL, "{\"target\": \"k\", \"parity\": true}", "4 and 2");
    refuse("sahara", 1, NULL, "{}", "at least 2 prompts");
    refuse("sahara", 2, NULL, "{\"rank\": 2}", "no value with 2 prompts");
    refuse("sahara", 2, NULL, "{\"steps\": 999}", "999 heads cannot be chosen out of 24");
    refuse("phrase-rates", 2, NULL, "{\"phrases\": \"x\"}", "which heads");
    refuse("phrase-rates", 2, NULL, "{\"heads\": \"3.h0\"}", "no phrases");
    refuse("phrase-rates", 2, NULL, "{\"heads\": \"3.h0\", \"phrases\": \"\\n\\r\\n\"}",
           "no phrases");
    refuse("phrase-rates", 2, NULL, "{\"heads\": \"3.h0\", \"phrases\": \"x\\nx\"}", "twice");
    refuse("phrase-rates", 2, NULL, "{\"heads\": \"3.h9\", \"phrases\": \"x\"}",
           "no head '3.h9'; heads are written 3.h0, with layers 0 to 5 and heads 0 to 3");
    refuse("phrase-rates", 2, NULL, "{\"heads\": \"3.0\", \"phrases\": \"x\"}", "no head '3.0'");
    refuse("phrase-rates", 2, NULL, "{\"heads\": \"3.h0 3.h0\", \"phrases\": \"x\"}", "twice");
    refuse("phrase-rates", 2, scratch_path("x.sqlite"), "{\"heads\": \"3.h0\"}",
           "no option \"results\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_the_formula),
        cmocka_unit_test(rankings_follow_the_scores),
        cmocka_unit_test(a_file_has_the_same_scores),
        cmocka_unit_test(phrases_are_found),
        cmocka_unit_test(intervals),
        cmocka_unit_test(rates_count_texts),
        cmocka_unit_test(texts_are_greedy),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests_name("ships", tests, open_model, close_model);
}
