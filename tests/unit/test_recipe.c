/* Recipes: what they say, what they refuse before anything is computed, and their tables. */
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
#include "qkv/recipe.h"
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

static qkv_recipe *load(const char *json) {
    qkv_recipe *recipe = NULL;
    qkv_error err = {0};
    expect_ok(qkv_recipe_load(&recipe, json, strlen(json), "mine", &err), &err, json);
    return recipe;
}

static qkv_recipe *load_with_prompts(const char *json) {
    qkv_recipe *recipe = load(json);
    qkv_error err = {0};
    expect_ok(qkv_recipe_set_prompts(recipe, PROMPTS, 2, &err), &err, "prompts");
    return recipe;
}

static qkv_recipe_result *run(const char *json, const char *name) {
    qkv_recipe *recipe = load_with_prompts(json);
    qkv_recipe_result *result = NULL;
    qkv_error err = {0};
    int stopped = 7;
    expect_ok(qkv_recipe_run(recipe, &result, model, scratch_path(name), NULL, &stopped, &err),
              &err, name);
    assert_int_equal(stopped, 0);
    assert_non_null(result);
    qkv_recipe_free(recipe);
    return result;
}

static qkv_recipe_table table_of(const qkv_recipe_result *result, size_t at) {
    qkv_recipe_table table = QKV_RECIPE_TABLE_INIT;
    qkv_error err = {0};
    expect_ok(qkv_recipe_result_table(result, at, &table, &err), &err, "table");
    return table;
}

static double value_of(const qkv_recipe_result *result, size_t at, size_t row, size_t column) {
    double value;
    qkv_error err = {0};
    expect_ok(qkv_recipe_result_value(result, at, row, column, &value, &err), &err, "value");
    return value;
}

/* ---- what it is ---- */

static void a_recipe_says_what_it_does(void **state) {
    (void)state;
    qkv_recipe *recipe = load(MEANS);
    qkv_recipe_info info = QKV_RECIPE_INFO_INIT;
    assert_int_equal(qkv_recipe_get_info(recipe, &info, NULL), QKV_OK);
    assert_string_equal(info.title, "T");
    assert_string_equal(info.about, "A");
    assert_int_equal(info.n_tables, 2);
    assert_false(info.has_prompts || info.has_greedy);
    assert_int_equal(qkv_recipe_set_prompts(recipe, PROMPTS, 2, NULL), QKV_OK);
    assert_int_equal(qkv_recipe_get_info(recipe, &info, NULL), QKV_OK);
    assert_true(info.has_prompts);
    assert_non_null(strstr(info.spec, "The river runs"));
    qkv_recipe_free(recipe);
    recipe = load(GREEDY);
    assert_int_equal(qkv_recipe_get_info(recipe, &info, NULL), QKV_OK);
    assert_true(info.has_greedy && info.n_tables == 0 && !info.title);
    qkv_recipe_free(recipe);
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
    static const char *const layers[] = {"layer 0", "layer 1", "layer 2"};
    static const char *const targets[] = {"q", "k", "v"};
    qkv_recipe_result *result = run(MEANS, "means.sqlite");
    assert_int_equal(qkv_recipe_result_n_tables(result), 2);
    const qkv_recipe_table by_layer = table_of(result, 0), by_head = table_of(result, 1);
    assert_int_equal(by_layer.kind, QKV_RECIPE_MEANS);
    assert_string_equal(by_layer.title, "by layer");
    assert_string_equal(by_layer.metric, "tv");
    assert_int_equal(by_layer.n_rows, 3);
    assert_int_equal(by_layer.n_columns, 3);
    for (size_t r = 0; r < 3; r++) {
        assert_string_equal(qkv_recipe_result_row(result, 0, r), layers[r]);
        for (size_t c = 0; c < 3; c++) {
            assert_string_equal(qkv_recipe_result_column(result, 0, c), targets[c]);
            const double want = mean_of("means.sqlite", "tv", (int)r, targets[c], -1);
            assert_true(fabs(value_of(result, 0, r, c) - want) < 1e-12);
        }
    }
    assert_true(value_of(result, 0, 0, 0) > 0);  /* an edit of the query shows, */
    assert_true(value_of(result, 0, 0, 2) == 0); /* one of the value cannot */
    assert_int_equal(by_head.n_columns, 1);
    assert_string_equal(qkv_recipe_result_column(result, 1, 0), "mean");
    for (size_t r = 0; r < by_head.n_rows; r++) {
        const double want = mean_of("means.sqlite", "sink", -1, NULL, (int)r);
        assert_true(fabs(value_of(result, 1, r, 0) - want) < 1e-12);
    }
    qkv_recipe_result_free(result);
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
    qkv_recipe_result *result = run(GREEDY, "greedy.sqlite");
    assert_int_equal(qkv_recipe_result_n_tables(result), 1);
    const qkv_recipe_table table = table_of(result, 0);
    assert_int_equal(table.kind, QKV_RECIPE_HEADS);
    assert_int_equal(table.n_rows, 2);
    assert_int_equal(table.n_columns, 3);
    assert_non_null(strstr(table.title, "out of 3"));
    assert_string_equal(qkv_recipe_result_column(result, 0, 2), "output_kl");
    int place[2][2];
    for (size_t r = 0; r < 2; r++) {
        for (size_t c = 0; c < 2; c++) place[r][c] = (int)value_of(result, 0, r, c);
    }
    char edits[96];
    snprintf(edits, sizeof edits, "z@%d.h%d=zero", place[0][0], place[0][1]);
    const double alone = change_of(edits);
    assert_true(fabs(value_of(result, 0, 0, 2) - alone) <= 1e-6 * alone);
    snprintf(edits, sizeof edits, "z@%d.h%d=zero + z@%d.h%d=zero", place[0][0], place[0][1],
             place[1][0], place[1][1]);
    const double together = change_of(edits);
    assert_true(fabs(value_of(result, 0, 1, 2) - together) <= 1e-6 * together);
    /* The first is the most important one of all that the sweep has looked at. */
    for (int layer = 2; layer <= 3; layer++) {
        for (int head = 0; head < qkv_model_get_info(model)->n_head; head++) {
            assert_true(mean_of("greedy.sqlite", "output_kl", layer, NULL, head) <=
                        alone * (1 + 1e-6));
        }
    }
    qkv_recipe_result_free(result);
}

static void heads_are_chosen_on_token_ids_too(void **state) {
    (void)state;
    qkv_recipe *recipe =
        load(GREEDY_OF("\"targets\": \"z\", \"ops\": \"zero\", \"prompts\": [[1, 2, 3]],"
                       " \"metrics\": \"output_kl\""));
    qkv_recipe_result *result = NULL;
    qkv_error err = {0};
    expect_ok(qkv_recipe_run(recipe, &result, model, scratch_path("ids.sqlite"), NULL, NULL, &err),
              &err, "greedy on ids");
    assert_non_null(result);
    qkv_recipe_result_free(result);
    qkv_recipe_free(recipe);
}

static int stop_at_once(void *user, int64_t done, int64_t wanted) {
    ++*(int *)user;
    return done < wanted;
}

static void looking_for_heads_can_be_stopped(void **state) {
    (void)state;
    qkv_recipe *recipe = load_with_prompts(GREEDY);
    qkv_sweep *sweep = NULL;
    qkv_recipe_result *result = NULL;
    qkv_error err = {0};
    int stopped = 0, calls = 0;
    const char *path = scratch_path("stopped.sqlite");
    expect_ok(qkv_recipe_sweep(recipe, &sweep, model, &err), &err, "sweep");
    expect_ok(qkv_sweep_share(sweep, path, NULL, NULL, &err), &err, "share");
    qkv_recipe_options options = QKV_RECIPE_OPTIONS_INIT;
    options.progress = stop_at_once;
    options.user = &calls;
    expect_ok(qkv_recipe_evaluate(recipe, &result, model, sweep, path, &options, &stopped, &err),
              &err, "evaluate");
    assert_true(stopped && calls == 1);
    assert_null(result);
    qkv_sweep_free(sweep);
    qkv_recipe_free(recipe);
}

/* ---- errors ---- */

static void refuse_text(const char *json, const char *part) {
    qkv_recipe *recipe = (qkv_recipe *)&json;
    qkv_error err = {0};
    assert_int_equal(qkv_recipe_load(&recipe, json, strlen(json), NULL, &err), QKV_ERR_FORMAT);
    assert_null(recipe);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
}

static void texts_that_are_no_recipes(void **state) {
    (void)state;
    refuse_text("{", "recipe, line 1");
    refuse_text("[]", "JSON object");
    refuse_text("{\"sweeps\": {}}", "no 'sweeps'");
    refuse_text("{\"title\": \"x\"}", "no sweep");
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
    qkv_recipe *recipe = load(json);
    qkv_recipe_result *result = (qkv_recipe_result *)&json;
    qkv_recipe_info info = QKV_RECIPE_INFO_INIT;
    qkv_error err = {0};
    const char *path = scratch_path("refused.sqlite");
    assert_int_equal(qkv_recipe_get_info(recipe, &info, NULL), QKV_OK);
    if (!info.has_prompts) {
        expect_ok(qkv_recipe_set_prompts(recipe, PROMPTS, 2, &err), &err, "prompts");
    }
    assert_int_not_equal(qkv_recipe_run(recipe, &result, model, path, NULL, NULL, &err), QKV_OK);
    assert_null(result);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
    assert_int_not_equal(access(path, F_OK), 0);
    qkv_recipe_free(recipe);
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

static void arguments_are_checked(void **state) {
    (void)state;
    static const char *const broken[] = {"fine", "\xff"};
    qkv_recipe *recipe = (qkv_recipe *)&broken;
    qkv_recipe_info info = {0};
    qkv_recipe_result *result = NULL;
    qkv_sweep *sweep = NULL;
    double value;
    assert_int_equal(qkv_recipe_load(NULL, "{}", 2, NULL, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_load(&recipe, NULL, 0, NULL, NULL), QKV_ERR_ARGUMENT);
    assert_null(recipe);
    recipe = load(MEANS);
    assert_int_equal(qkv_recipe_get_info(recipe, &info, NULL), QKV_ERR_ARGUMENT); /* no size */
    assert_int_equal(qkv_recipe_get_info(NULL, &info, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_set_prompts(recipe, broken, 2, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_set_prompts(recipe, NULL, 1, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_sweep(recipe, &sweep, NULL, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_check(recipe, NULL, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_run(NULL, &result, model, "x", NULL, NULL, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_run(recipe, &result, model, NULL, NULL, NULL, NULL),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_evaluate(recipe, &result, model, NULL, "x", NULL, NULL, NULL),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_result_n_tables(NULL), 0);
    assert_null(qkv_recipe_result_row(NULL, 0, 0));
    assert_int_equal(qkv_recipe_result_value(NULL, 0, 0, 0, &value, NULL), QKV_ERR_ARGUMENT);
    qkv_recipe_free(recipe);
    result = run(MEANS, "arguments.sqlite");
    assert_null(qkv_recipe_result_row(result, 0, 3));
    assert_null(qkv_recipe_result_column(result, 0, 3));
    assert_null(qkv_recipe_result_row(result, 2, 0));
    assert_int_equal(qkv_recipe_result_value(result, 0, 3, 0, &value, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_result_value(result, 0, 0, 3, &value, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_recipe_result_value(result, 0, 0, 0, NULL, NULL), QKV_ERR_ARGUMENT);
    qkv_recipe_result_free(result);
    qkv_recipe_result_free(NULL);
    qkv_recipe_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_says_what_it_does),
        cmocka_unit_test(tables_are_means_of_the_rows),
        cmocka_unit_test(a_set_of_heads_is_a_table),
        cmocka_unit_test(heads_are_chosen_on_token_ids_too),
        cmocka_unit_test(looking_for_heads_can_be_stopped),
        cmocka_unit_test(texts_that_are_no_recipes),
        cmocka_unit_test(what_cannot_be_shown_is_said_before_the_sweep),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
