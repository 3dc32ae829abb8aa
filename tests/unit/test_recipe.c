/* Recipes of sweeps, which are the study `effects`: what they refuse before anything is computed, and their tables. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "qkv/measure.h"
#include "qkv/progress.h"
#include "qkv/study.h"
#include "qkv/sweep_reader.h"
#include "support/engine.h"
#include "support/scratch.h"

static const char *const PROMPTS[] = {"one two three four", "The river runs past the mill."};

static const char MEANS[] =
    "{\"title\": \"T\", \"about\": \"A\","
    " \"sweep\": {\"layers\": \"0-2\", \"ops\": \"zero\", \"metrics\": \"tv,sink\"},"
    " \"tables\": [{\"title\": \"by layer\", \"metric\": \"tv\", \"rows\": \"layer\","
    " \"columns\": \"target\"}, {\"title\": \"by head\", \"metric\": \"sink\", \"rows\": \"head\"}]}";

#define GREEDY_OF(sweep)                                                                           \
    "{\"sweep\": {" sweep "}, \"greedy\": {\"metric\": \"output_kl\", \"heads\": 2, "              \
    "\"candidates\": 3}}"
static const char GREEDY[] = GREEDY_OF("\"layers\": \"2-3\", \"targets\": \"z\", \"ops\": \"zero\","
                                       " \"metrics\": \"output_kl\"");

static qkv_model *model;

static int open_model(void **state) {
    (void)state;
    qkv_error err = {0};
    return qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", &err);
}

static int close_model(void **state) {
    qkv_model_free(model);
    return scratch_clean(state);
}

static qkv_study *load(const char *json) {
    qkv_study *study = NULL;
    qkv_error err = {0};
    expect_ok(qkv_study_load(&study, json, &err), &err, json);
    return study;
}

static void add_prompts(qkv_study *study) {
    qkv_error err = {0};
    for (size_t i = 0; i < 2; i++) {
        qkv_prompt prompt = QKV_PROMPT_INIT;
        prompt.text = PROMPTS[i];
        expect_ok(qkv_study_add_prompt(study, &prompt, &err), &err, "prompts");
    }
}

static int run_with(qkv_study *study, const qkv_progress *progress, qkv_error *err) {
    qkv_session *session = NULL;
    expect_ok(qkv_session_new(&session, model, NULL, err), err, "session");
    if (progress) expect_ok(qkv_session_set_progress(session, progress, err), err, "progress");
    const int status = qkv_study_run(study, session, NULL, err);
    qkv_session_free(session);
    return status;
}

/* With its results in a file of this name; NULL: in none that is kept. */
static qkv_study *run(const char *json, const char *name) {
    qkv_study *study = load(json);
    qkv_error err = {0};
    add_prompts(study);
    if (name) expect_ok(qkv_study_set(study, "results", scratch_path(name), &err), &err, name);
    expect_ok(run_with(study, NULL, &err), &err, json);
    return study;
}

static qkv_study_table table_of(const qkv_study *study, size_t at) {
    qkv_study_table table = QKV_STUDY_TABLE_INIT;
    qkv_error err = {0};
    expect_ok(qkv_study_get_table(study, at, &table, &err), &err, "table");
    return table;
}

static double value_of(const qkv_study *study, size_t at, size_t row, size_t column) {
    double value;
    const char *text;
    qkv_error err = {0};
    expect_ok(qkv_study_get_value(study, at, row, column, &value, &text, &err), &err, "value");
    assert_null(text);
    return value;
}

/* ---- what it is ---- */

static void a_recipe_is_a_study(void **state) {
    (void)state;
    qkv_study *study = run(MEANS, NULL);
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    qkv_error err = {0};
    expect_ok(qkv_study_get_info(study, &info, &err), &err, "info");
    assert_string_equal(info.kind, "effects");
    assert_string_equal(info.title, "T");
    assert_int_equal(info.n_printed, 2); /* and the means of all cells */
    assert_int_equal(info.n_tables, 3);
    assert_int_equal(info.n_pictures, 2); /* of each metric */
    assert_string_equal(qkv_study_picture_name(study, 1), "sink");
    qkv_study_free(study);
}

/* ---- tables ---- */

/* The mean of the rows of a layer and target, or of a head; below 0 or NULL: any. */
static double mean_of(const char *name, const char *metric, int layer, const char *target,
                      int head) {
    qkv_sweep_reader *file = NULL;
    qkv_sweep_rows *rows;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    size_t count = 0;
    double sum = 0;
    qkv_error err = {0};
    expect_ok(qkv_sweep_reader_open(&file, scratch_path(name), &err), &err, name);
    expect_ok(qkv_sweep_reader_rows(file, metric, &rows, &err), &err, metric);
    for (size_t i = 0; qkv_sweep_rows_get(rows, i, &row); i++) {
        const char *edited = qkv_sweep_reader_target(file, (size_t)row.target);
        if ((layer >= 0 && row.layer != layer) || (head >= 0 && row.head != head)) continue;
        if (target && strcmp(target, edited) != 0) continue;
        sum += row.value;
        count++;
    }
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
    assert_true(count > 0);
    return sum / (double)count;
}

static void tables_are_means_of_the_rows(void **state) {
    (void)state;
    static const char *const targets[] = {"q", "k", "v"};
    qkv_study *study = run(MEANS, "means.sqlite");
    const qkv_study_table by_layer = table_of(study, 0), by_head = table_of(study, 1);
    assert_string_equal(by_layer.title, "by layer");
    assert_int_equal(by_layer.n_rows, 3);
    assert_int_equal(by_layer.n_columns, 4);
    assert_string_equal(qkv_study_column(study, 0, 0), "layer");
    for (size_t r = 0; r < 3; r++) {
        assert_true(value_of(study, 0, r, 0) == (double)r);
        for (size_t c = 0; c < 3; c++) {
            assert_string_equal(qkv_study_column(study, 0, 1 + c), targets[c]);
            const double want = mean_of("means.sqlite", "tv", (int)r, targets[c], -1);
            assert_true(fabs(value_of(study, 0, r, 1 + c) - want) < 1e-12);
        }
    }
    assert_true(value_of(study, 0, 0, 1) > 0);  /* an edit of the query shows, */
    assert_true(value_of(study, 0, 0, 3) == 0); /* one of the value cannot */
    assert_int_equal(by_head.n_columns, 2);
    assert_string_equal(qkv_study_column(study, 1, 1), "mean");
    for (size_t r = 0; r < by_head.n_rows; r++) {
        const double want = mean_of("means.sqlite", "sink", -1, NULL, (int)r);
        assert_true(fabs(value_of(study, 1, r, 1) - want) < 1e-12);
    }
    qkv_study_free(study);
}

/* The table of all means, against the rows of the file. */
static void all_means_are_there(void **state) {
    (void)state;
    qkv_study *study = run(MEANS, "all.sqlite");
    const qkv_study_table all = table_of(study, 2);
    assert_string_equal(all.name, "means");
    const size_t heads = (size_t)qkv_model_get_info(model)->n_head;
    assert_int_equal(all.n_rows, 2 * 3 * heads * 3); /* metrics, layers, heads, targets */
    for (size_t r = 0; r < all.n_rows; r++) {
        const char *metric = NULL, *target = NULL;
        double none;
        qkv_error err = {0};
        expect_ok(qkv_study_get_value(study, 2, r, 0, &none, &metric, &err), &err, "metric");
        expect_ok(qkv_study_get_value(study, 2, r, 1, &none, &target, &err), &err, "target");
        const double want = mean_of("all.sqlite", metric, (int)value_of(study, 2, r, 4), target,
                                    (int)value_of(study, 2, r, 5));
        const double mean = value_of(study, 2, r, 6);
        assert_true(fabs(mean - want) < 1e-12);
        assert_true(value_of(study, 2, r, 7) <= mean && mean <= value_of(study, 2, r, 8));
        assert_true(value_of(study, 2, r, 9) == 2);
    }
    qkv_study_free(study);
}

/* ---- the set of heads ---- */

/* The mean over the prompts of what an edit changes. */
static double change_of(const char *edits) {
    engine e;
    double sum = 0;
    qkv_error err = {0};
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    for (size_t p = 0; p < 2; p++) {
        int32_t *tokens;
        size_t n;
        qkv_plan *plan;
        qkv_measure *measure;
        qkv_table *table;
        expect_ok(qkv_tokenize(e.model, &tokens, &n, PROMPTS[p], strlen(PROMPTS[p]),
                               QKV_TOKENIZE_ADD_SPECIAL, &err),
                  &err, "tokens");
        expect_ok(qkv_plan_new(&plan, e.model, tokens, n, &err), &err, "plan");
        expect_ok(qkv_plan_add_variant(plan, edits, NULL, &err), &err, edits);
        expect_ok(qkv_measure_new(&measure, "output_kl", NULL, &err), &err, "measure");
        expect_ok(qkv_measure_run(measure, &table, e.session, plan, &err), &err, "run");
        for (size_t i = 0; i < qkv_table_size(table); i++) {
            qkv_measurement m = QKV_MEASUREMENT_INIT;
            qkv_table_get(table, i, &m);
            if (m.variant == 1) sum += m.value;
        }
        qkv_table_free(table);
        qkv_measure_free(measure);
        qkv_plan_free(plan);
        qkv_tokens_free(tokens);
    }
    engine_close(&e);
    return sum / 2;
}

static void a_set_of_heads_is_a_table(void **state) {
    (void)state;
    qkv_study *study = run(GREEDY, "greedy.sqlite");
    const qkv_study_table table = table_of(study, 0);
    assert_string_equal(table.name, "heads");
    assert_int_equal(table.n_rows, 2);
    assert_int_equal(table.n_columns, 4);
    assert_non_null(strstr(table.title, "out of 3"));
    assert_string_equal(qkv_study_column(study, 0, 3), "output_kl");
    int place[2][2];
    for (size_t r = 0; r < 2; r++) {
        for (size_t c = 0; c < 2; c++) place[r][c] = (int)value_of(study, 0, r, 1 + c);
    }
    char edits[96];
    snprintf(edits, sizeof edits, "z@%d.h%d=zero", place[0][0], place[0][1]);
    const double alone = change_of(edits);
    assert_true(fabs(value_of(study, 0, 0, 3) - alone) <= 1e-6 * alone);
    snprintf(edits, sizeof edits, "z@%d.h%d=zero + z@%d.h%d=zero", place[0][0], place[0][1],
             place[1][0], place[1][1]);
    const double together = change_of(edits);
    assert_true(fabs(value_of(study, 0, 1, 3) - together) <= 1e-6 * together);
    /* The first is the most important one of all that the sweep has looked at. */
    for (int layer = 2; layer <= 3; layer++) {
        for (int head = 0; head < qkv_model_get_info(model)->n_head; head++) {
            assert_true(mean_of("greedy.sqlite", "output_kl", layer, NULL, head) <=
                        alone * (1 + 1e-6));
        }
    }
    qkv_study_free(study);
}

static void heads_are_chosen_on_token_ids_too(void **state) {
    (void)state;
    qkv_study *study =
        load(GREEDY_OF("\"targets\": \"z\", \"ops\": \"zero\", \"prompts\": [[1, 2, 3]],"
                       " \"metrics\": \"output_kl\""));
    qkv_error err = {0};
    expect_ok(run_with(study, NULL, &err), &err, "greedy on ids");
    assert_int_equal(table_of(study, 0).n_rows, 2);
    qkv_study_free(study);
}

/* The cells are the first of two parts. */
static int stop_at_heads(void *user, const char *what, double done, double total) {
    assert_string_equal(what, "parts");
    assert_true(total == 2);
    *(int *)user += done > 1;
    return done > 1;
}

static void looking_for_heads_can_be_stopped(void **state) {
    (void)state;
    qkv_study *study = load(GREEDY);
    qkv_error err = {0};
    int calls = 0;
    const qkv_progress progress = {sizeof progress, stop_at_heads, &calls};
    add_prompts(study);
    assert_int_equal(run_with(study, &progress, &err), QKV_ERR_CANCELLED);
    assert_int_equal(calls, 1);
    qkv_study_free(study);
}

/* ---- errors ---- */

static void refuse_text(const char *json, const char *part) {
    qkv_study *study = (qkv_study *)&json;
    qkv_error err = {0};
    assert_int_not_equal(qkv_study_load(&study, json, &err), QKV_OK);
    assert_null(study);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
}

static void texts_that_are_no_recipes(void **state) {
    (void)state;
    refuse_text("{", "JSON");
    refuse_text("[]", "JSON object");
    refuse_text("{\"sweeps\": {}}", "neither");
    refuse_text("{\"sweep\": {}, \"table\": []}", "no 'table'");
    refuse_text("{\"title\": \"x\"}", "neither");
    refuse_text("{\"sweep\": 5}", "not an object");
    refuse_text("{\"sweep\": {}, \"tables\": {}}", "not a list");
    refuse_text("{\"sweep\": {}, \"tables\": [{\"title\": \"t\", \"rows\": \"layer\"}]}",
                "no metric");
    refuse_text("{\"sweep\": {}, \"greedy\": {\"metric\": \"sink\"}}", "compares outputs");
    refuse_text("{\"sweep\": {}, \"greedy\": {\"metric\": \"output_kl\", \"heads\": 0,"
                " \"candidates\": 3}}",
                "numbers from 1");
    refuse_text("{\"sweep\": {}, \"greedy\": {\"metric\": \"output_kl\", \"heads\": 4,"
                " \"candidates\": 3}}",
                "cannot choose 4 heads out of 3");
}

/* Nothing is computed, and no file made. */
static void refuse_run(const char *json, const char *part) {
    qkv_study *study = load(json);
    qkv_error err = {0};
    const char *path = scratch_path("refused.sqlite");
    add_prompts(study);
    expect_ok(qkv_study_set(study, "results", path, &err), &err, "results");
    assert_int_not_equal(run_with(study, NULL, &err), QKV_OK);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
    assert_int_not_equal(access(path, F_OK), 0);
    qkv_study_free(study);
}

static void what_cannot_be_shown_is_said_before_the_sweep(void **state) {
    (void)state;
    refuse_run(
        "{\"sweep\": {\"ops\": \"zero\", \"metrics\": \"tv\"}, \"tables\": [{\"title\": \"t\","
        " \"metric\": \"far\", \"rows\": \"layer\"}]}",
        "shows far");
    refuse_run(GREEDY_OF("\"targets\": \"q,k\", \"ops\": \"zero\", \"metrics\": \"output_kl\""),
               "one target and one operation");
    refuse_run(GREEDY_OF("\"targets\": \"none\", \"metrics\": \"sink_rate:0.3\""),
               "greedy goes by output_kl");
    refuse_run(GREEDY_OF("\"targets\": \"z\", \"ops\": \"zero,scale:0.5\","
                         " \"metrics\": \"output_kl\""),
               "one target and one operation");
    refuse_run(GREEDY_OF("\"targets\": \"z\", \"ops\": \"scale\", \"epsilon\": \"0.5,0.1\","
                         " \"metrics\": \"output_kl\""),
               "one target and one operation");
    refuse_run(GREEDY_OF("\"targets\": \"z\", \"ops\": \"zero\", \"metrics\": \"delta_loss\""),
               "greedy goes by output_kl");
    refuse_run(GREEDY_OF("\"targets\": \"z\", \"ops\": \"zero\", \"heads\": \"all\","
                         " \"metrics\": \"output_kl\""),
               "one by one");
    refuse_run(GREEDY_OF("\"targets\": \"z\", \"ops\": \"zero\", \"layers\": \"all\","
                         " \"metrics\": \"output_kl\""),
               "one by one");
}

static void what_cannot_be_drawn_is_said_before_the_sweep(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_study *study = load(MEANS);
    assert_int_equal(run_with(study, NULL, &err), QKV_ERR_ARGUMENT); /* no prompts */
    assert_non_null(strstr(err.message, "give prompts"));
    expect_ok(qkv_study_set(study, "change", "true", &err), &err, "change");
    add_prompts(study);
    assert_int_equal(run_with(study, NULL, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "add none to `targets`"));
    qkv_study_free(study);
    study = load("{\"sweep\": {\"pairs\": []}}");
    assert_int_equal(run_with(study, NULL, &err), QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "qkv patch"));
    qkv_study_free(study);
}

/* Options take the place of what the recipe's sweep says. */
static void options_come_on_top(void **state) {
    (void)state;
    qkv_study *study = load(MEANS);
    qkv_error err = {0};
    add_prompts(study);
    expect_ok(qkv_study_set(study, "layers", "1", &err), &err, "layers");
    expect_ok(qkv_study_set(study, "length", "3", &err), &err, "length");
    expect_ok(run_with(study, NULL, &err), &err, "run");
    assert_int_equal(table_of(study, 0).n_rows, 1);
    assert_true(value_of(study, 0, 0, 0) == 1);
    qkv_study_free(study);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_is_a_study),
        cmocka_unit_test(tables_are_means_of_the_rows),
        cmocka_unit_test(all_means_are_there),
        cmocka_unit_test(a_set_of_heads_is_a_table),
        cmocka_unit_test(heads_are_chosen_on_token_ids_too),
        cmocka_unit_test(looking_for_heads_can_be_stopped),
        cmocka_unit_test(texts_that_are_no_recipes),
        cmocka_unit_test(what_cannot_be_shown_is_said_before_the_sweep),
        cmocka_unit_test(what_cannot_be_drawn_is_said_before_the_sweep),
        cmocka_unit_test(options_come_on_top),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
