/*
 * Retrieval heads: the recall by hand, scores against patterns that are captured whole, files to resume from,
 * and what is refused. bindings/python/tests/test_retrieval.py computes all of it once more.
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

#include "qkv/study.h"
#include "study/retrieval.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/study_maker.h"

static const char FILLER[] =
    "The river runs past the old mill. In spring the water is high. Farmers wait for the ground to "
    "dry, and children look for frogs in the ditches.";
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

static int make(qkv_study **study, const char *filler, const char *results, const char *options,
                qkv_error *err) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.text = filler;
    const study_case of = {.kind = "retrieval-heads",
                           .options = options,
                           .prompts = &prompt,
                           .n_prompts = 1,
                           .session = e.session,
                           .results = results};
    return study_make(study, &of, err);
}

static qkv_study *study_of(const char *results, const char *options) {
    qkv_study *study = NULL;
    qkv_error err = {0};
    expect_ok(make(&study, FILLER, results, options, &err), &err, options);
    return study;
}

static size_t table_of(const qkv_study *study, const char *name, size_t *n_rows) {
    qkv_study_table table = QKV_STUDY_TABLE_INIT;
    size_t i = 0;
    while (qkv_study_get_table(study, i, &table, NULL) == QKV_OK && strcmp(table.name, name) != 0)
        i++;
    assert_non_null(table.name);
    assert_string_equal(table.name, name);
    *n_rows = table.n_rows;
    return i;
}

static double cell(const qkv_study *study, size_t table, size_t row, size_t column) {
    double number = NAN;
    const char *text = NULL;
    qkv_error err = {0};
    expect_ok(qkv_study_get_value(study, table, row, column, &number, &text, &err), &err, "cell");
    return number;
}

/* ---- words ---- */

static void recalls(void **state) {
    (void)state;
    static const struct {
        const char *wanted, *text;
        double recall;
    } cases[] = {{"behind the clock", "It hangs BEHIND the old clock.", 1},
                 {"behind the clock", "behind, behind, behind", 1.0 / 3},
                 {"the cat and the dog", "the dog", 2.0 / 5}, /* one "the" of two */
                 {"the cat and the dog", "The the the", 2.0 / 5},
                 {"a-b 3.5", "5 B", 2.0 / 4},
                 {"caf\xc3\xa9 au lait", "caf\xc3\xa9", 1.0 / 3},
                 {"one", "ones", 0},
                 {"one", "", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double found = qkv_retrieval_recall(cases[i].wanted, cases[i].text);
        if (fabs(found - cases[i].recall) > 1e-12)
            fail_msg("'%s' of '%s': %g", cases[i].text, cases[i].wanted, found);
    }
    assert_true(isnan(qkv_retrieval_recall(" ,.", "one")));
}

/* ---- scores ---- */

typedef struct one_test {
    int32_t tokens[256];
    size_t n_prompt, n; /* with the answer */
    size_t start, end;
} one_test;

static one_test test_of(const qkv_study *study, size_t number) {
    one_test test = {0};
    size_t n_rows;
    const size_t tokens = table_of(study, "tokens", &n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        if ((size_t)cell(study, tokens, i, 0) != number) continue;
        assert_true(test.n < 256);
        test.tokens[test.n++] = (int32_t)cell(study, tokens, i, 2);
        test.n_prompt += cell(study, tokens, i, 3) == 0;
    }
    const size_t tests = table_of(study, "tests", &n_rows);
    test.start = (size_t)cell(study, tests, number, 5);
    test.end = (size_t)cell(study, tests, number, 6);
    return test;
}

/* From the whole map. `steps`: every step counts, not every position once. */
static double score_of(const qkv_tensor *pattern, const one_test *test, size_t head, int steps) {
    const size_t t = (size_t)pattern->shape[1];
    uint8_t seen[256] = {0};
    double n = 0;
    for (size_t i = test->n_prompt; i < test->n; i++) {
        const float *row = pattern->data + (head * t + i - 1) * t;
        size_t best = 0;
        for (size_t k = 1; k < i; k++) best = row[k] > row[best] ? k : best;
        if (best < test->start || best >= test->end || test->tokens[best] != test->tokens[i])
            continue;
        n += steps || !seen[best];
        seen[best] = 1;
    }
    return n / (double)(test->end - test->start);
}

static void add_scores(double *sums, const one_test *test, int steps) {
    const char *const captures[] = {"pattern", NULL};
    const engine_run run = {test->tokens, test->n - 1, NULL, captures, NULL};
    qkv_result *result = engine_execute(&e, &run);
    for (int32_t l = 0; l < e.info->n_layer; l++) {
        const qkv_tensor pattern = engine_tensor(result, 0, QKV_SITE_PATTERN, l);
        for (int32_t h = 0; h < e.info->n_head; h++)
            sums[l * e.info->n_head + h] += score_of(&pattern, test, (size_t)h, steps);
    }
    qkv_result_free(result);
}

static void expect_scores(const char *options, int steps, double least) {
    enum { N_TESTS = 2 };
    qkv_study *study = study_of(NULL, options);
    double sums[64] = {0}, most = 0;
    size_t n_rows;
    for (size_t i = 0; i < N_TESTS; i++) {
        const one_test test = test_of(study, i);
        add_scores(sums, &test, steps);
    }
    const size_t heads = table_of(study, "heads", &n_rows);
    assert_int_equal(n_rows, e.info->n_layer * e.info->n_head);
    for (size_t i = 0; i < n_rows; i++) {
        const double value = cell(study, heads, i, 2);
        if (fabs(value - sums[i] / N_TESTS) > 1e-9)
            fail_msg("%s, head %zu: %g, not %g", options, i, value, sums[i] / N_TESTS);
        most = fmax(most, value);
    }
    assert_true(most >= least);
    qkv_study_free(study);
}

static void scores_are_the_formula(void **state) {
    (void)state;
    expect_scores("{\"lengths\": \"78\", \"depths\": \"0,1\", \"decode\": \"forced\"}", 0, 0.5);
    /* A repeated question makes even a small model copy: it continues with the needle. */
    expect_scores("{\"depths\": \"0,1\", \"all\": true, \"tokens\": 24, \"template\": "
                  "\"{context}\\n{question} The key to the old boathouse hangs behind the\"}",
                  0, 0);
    expect_scores("{\"depths\": \"0,1\", \"all\": true, \"parity\": true, \"tokens\": 24, "
                  "\"needle\": \"One two three one two three.\", \"question\": \"One two\", "
                  "\"template\": \"{context} {question} three one two\"}",
                  1, 0.1);
}

/* ---- files ---- */

static size_t passes(void) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    qkv_session_get_stats(e.session, &stats);
    return (size_t)stats.n_passes;
}

static void expect_same(const qkv_study *a, const qkv_study *b, const char *name) {
    size_t n = 0, n_other = 0;
    const size_t table = table_of(a, name, &n);
    assert_int_equal(table_of(b, name, &n_other), table);
    assert_int_equal(n, n_other);
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < 5 && qkv_study_column(a, table, c); c++)
            assert_true(cell(a, table, i, c) == cell(b, table, i, c));
    }
}

static void a_file_has_the_same_answers(void **state) {
    (void)state;
    static const char one[] = "{\"depths\": \"0.5\", \"all\": true, \"tokens\": 8}";
    static const char more[] = "{\"depths\": \"0,0.5\", \"all\": true, \"tokens\": 8}";
    const char *path = scratch_path("answers.sqlite");
    qkv_study_free(study_of(path, one));
    qkv_study *plain = study_of(NULL, more);
    size_t before = passes();
    qkv_study *kept = study_of(path, more);
    assert_true(passes() > before);
    before = passes();
    qkv_study *again = study_of(path, more);
    assert_int_equal(passes(), before);
    for (size_t i = 0; i < 2; i++) {
        const qkv_study *other = i ? again : kept;
        expect_same(plain, other, "heads");
        expect_same(plain, other, "copies");
        expect_same(plain, other, "tokens");
        expect_same(plain, other, "tests");
    }
    qkv_study_free(plain);
    qkv_study_free(kept);
    qkv_study_free(again);
}

/* ---- refusals ---- */

static void refuse(const char *filler, const char *results, const char *options, const char *part) {
    qkv_study *study = NULL;
    qkv_error err = {0};
    assert_int_not_equal(make(&study, filler, results, options, &err), QKV_OK);
    assert_null(study);
    if (!strstr(err.message, part)) fail_msg("%s: '%s' lacks '%s'", options, err.message, part);
}

static void what_is_refused(void **state) {
    (void)state;
    refuse(FILLER, NULL, "{\"lengths\": \"30\"}", "of 30 tokens is too short: needle and question");
    refuse(FILLER, NULL, "{\"lengths\": \"120\"}", "more than the model's context of 128");
    refuse(FILLER, NULL, "{\"lengths\": \"128\", \"decode\": \"forced\"}",
           "model's context of 128");
    refuse(FILLER, NULL, "{\"lengths\": \"70,70\"}", "lengths: 70 is given twice");
    refuse(FILLER, NULL, "{\"lengths\": \"-3\"}", "lengths: '-3' is not a whole number");
    refuse(FILLER, NULL, "{\"lengths\": \"70.5\"}", "lengths: '70.5' is not a whole number");
    refuse(FILLER, NULL, "{\"lengths\": \"\"}", "lengths");
    refuse(FILLER, NULL, "{\"depths\": \"1.5\"}", "depths: '1.5' is not a depth from 0 to 1");
    refuse(FILLER, NULL, "{\"depths\": \"x\"}", "depths: 'x' is not a depth");
    refuse(" \n ", NULL, "{}", "the filler is empty");
    refuse(FILLER, NULL, "{\"needle\": \"One two.\"}", "its question");
    refuse(FILLER, NULL, "{\"needle\": \"One two.\", \"question\": \"?\", \"answer\": \"three\"}",
           "not part of the needle");
    refuse(FILLER, NULL, "{\"needle\": \"...\", \"question\": \"?\"}", "no words");
    refuse(FILLER, NULL, "{\"needles\": \"{}\", \"answer\": \"x\"}", "in place of");
    refuse(FILLER, NULL, "{\"needles\": \"x\"}", "needle 1 is not a JSON object");
    refuse(FILLER, NULL, "{\"needles\": \"{\\\"neddle\\\": \\\"x\\\"}\"}", "not 'neddle'");
    refuse(FILLER, NULL, "{\"needles\": \" \\n\"}", "no needles");
    refuse(FILLER, NULL, "{\"template\": \"{context}\"}", "{question}");
    refuse(FILLER, NULL, "{\"template\": \"{context}{context}{question}\"}", "once");
    refuse(FILLER, NULL, "{\"decode\": \"forced\", \"parity\": true}", "parity");
    refuse(FILLER, NULL, "{\"decode\": \"forced\", \"all\": true}", "leave out `all`");
    refuse(FILLER, NULL, "{\"decode\": \"forced\", \"tokens\": 5}", "leave out `tokens`");
    refuse(FILLER, NULL, "{\"date\": \"2026-01-01\"}", "chat=true");
    refuse(FILLER, NULL, "{\"chat\": true}", "template");
}

static void other_files_are_refused(void **state) {
    (void)state;
    const char *path = scratch_path("other.sqlite");
    qkv_study_free(study_of(path, "{\"depths\": \"1\", \"tokens\": 8}"));
    refuse(FILLER, path, "{\"depths\": \"1\", \"tokens\": 9}", "another way of decoding");
    refuse(FILLER, scratch_write("text.sqlite", "no database, but some text", 26),
           "{\"depths\": \"1\", \"tokens\": 8}", "text.sqlite");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recalls),
        cmocka_unit_test(scores_are_the_formula),
        cmocka_unit_test(a_file_has_the_same_answers),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests_name("retrieval", tests, open_model, close_model);
}
