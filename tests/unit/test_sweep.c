/* Sweeps: what a specification says, how its cells are numbered and cut, and what they are worth. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/measure.h"
#include "support/values.h"
#include "sweep/sweep.h"

static qkv_model *model;

static int open_model(void **state) {
    (void)state;
    qkv_error err;
    return qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", &err);
}

static int close_model(void **state) {
    (void)state;
    qkv_model_free(model);
    return 0;
}

static qkv_sweep *make(const char *spec) {
    qkv_sweep *sweep;
    qkv_error err = {0};
    if (qkv_sweep_new(&sweep, model, spec, &err) != QKV_OK) fail_msg("%s", err.message);
    return sweep;
}

static void refuse(const char *spec, const char *named) {
    qkv_sweep *sweep;
    qkv_error err = {0};
    assert_int_not_equal(qkv_sweep_new(&sweep, model, spec, &err), QKV_OK);
    assert_null(sweep);
    if (!strstr(err.message, named)) fail_msg("'%s' does not name %s", err.message, named);
}

/* ---- specifications ---- */

static void texts_and_lists_mean_the_same(void **state) {
    (void)state;
    qkv_sweep *a = make("{\"prompts\": \"one two three\", \"layers\": \"0-2,4\", \"heads\": \"*\","
                        " \"targets\": \"q,v\", \"ops\": \"scale,clamp:-1,1,mean:head\","
                        " \"epsilon\": \"0.5,1e-3\", \"metrics\": \"sink,tv\"}");
    qkv_sweep *b = make("{\"metrics\": [\"sink\", \"tv\"], \"at\": \"layer\","
                        " \"prompts\": [\"one two three\"], \"layers\": [4, 2, 1, 0],"
                        " \"targets\": [\"q\", \"v\"], \"epsilon\": [0.5, 0.001],"
                        " \"ops\": [\"scale\", \"clamp:-1,1\", \"mean:head\"]}");
    assert_string_equal(qkv_sweep_spec(a), qkv_sweep_spec(b));
    assert_string_equal(qkv_sweep_hash(a), qkv_sweep_hash(b));
    assert_int_equal(qkv_sweep_n_cells(a), 4 * 4 * 2 * 4);
    qkv_sweep_free(a);
    qkv_sweep_free(b);
}

static void order_is_prompt_layer_head_target_setting(void **state) {
    (void)state;
    qkv_sweep *sweep =
        make("{\"prompts\": [\"one two\", \"three four five\"], \"layers\": \"1,3\","
             " \"heads\": \"0,2\", \"targets\": \"none,k,q\", \"ops\": \"scale,zero\","
             " \"epsilon\": \"logspace:1e-2,1,3\", \"metrics\": \"sink\"}");
    static const struct {
        int64_t id;
        size_t prompt;
        int layer, head;
        const char *edit;
    } wanted[] = {{0, 0, 1, 0, ""},
                  {1, 0, 1, 0, "k@1.h0=scale:0.01"},
                  {2, 0, 1, 0, "k@1.h0=scale:0.1"},
                  {4, 0, 1, 0, "k@1.h0=zero"},
                  {5, 0, 1, 0, "q@1.h0=scale:0.01"},
                  {9, 0, 1, 2, ""},
                  {18, 0, 3, 0, ""},
                  {35, 0, 3, 2, "q@3.h2=zero"},
                  {36, 1, 1, 0, ""},
                  {71, 1, 3, 2, "q@3.h2=zero"}};
    assert_int_equal(qkv_sweep_n_cells(sweep), 72);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const qkv_cell cell = sweep_cell(sweep, wanted[i].id);
        assert_int_equal(cell.prompt, wanted[i].prompt);
        assert_int_equal(cell.layer, wanted[i].layer);
        assert_int_equal(cell.head, wanted[i].head);
        assert_string_equal(cell.edit, wanted[i].edit);
        assert_string_equal(cell.target, wanted[i].edit[0] == 'k'   ? "k"
                                         : wanted[i].edit[0] == 'q' ? "q"
                                                                    : "none");
    }
    assert_true(isnan(sweep_cell(sweep, 4).epsilon));
    assert_true(sweep_cell(sweep, 3).epsilon == 1.0);
    qkv_sweep_free(sweep);
}

static void at_the_output_the_baseline_comes_once(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{\"prompts\": [\"one two\", \"three\"], \"targets\": \"none,z\","
                            " \"ops\": \"zero\", \"metrics\": \"loss\"}");
    assert_int_equal(qkv_sweep_n_cells(sweep), 2 * (1 + 6 * 4));
    const qkv_cell cell = sweep_cell(sweep, 25);
    assert_int_equal(cell.prompt, 1);
    assert_int_equal(cell.layer, -1);
    assert_int_equal(cell.head, -1);
    assert_string_equal(cell.target, "none");
    qkv_sweep_free(sweep);
}

static void mistakes_are_named(void **state) {
    (void)state;
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"layer\": 3}", "'layer'");
    refuse("{\"epsilon\": 1}", "prompts");
    refuse("{\"prompts\": [], \"epsilon\": 1}", "prompts");
    refuse("{\"prompts\": [\"\"], \"epsilon\": 1}", "empty");
    refuse("{\"prompts\": [[99999999]], \"epsilon\": 1}", "prompt 0");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"layers\": \"6\"}", "layer 6");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"heads\": [7]}", "head 7");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"layers\": \"0.h1\"}", "0.h1");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"targets\": \"mlp_out\"}", "mlp_out");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"targets\": \"q,q\"}", "twice");
    refuse("{\"prompts\": [\"a\"], \"ops\": \"bend\"}", "bend");
    refuse("{\"prompts\": [\"a\"], \"ops\": \"scale\"}", "epsilon");
    refuse("{\"prompts\": [\"a\"], \"ops\": \"zero\", \"epsilon\": 1}", "epsilon");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": \"1,1\"}", "twice");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": \"logspace:1,0,3\"}", "logspace");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"metrics\": \"sinc\"}", "sinc");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"metrics\": \"sink,loss\"}", "loss");
    refuse("{\"prompts\": [\"a\"], \"epsilon\": 1, \"at\": \"output\", \"metrics\": \"sink\"}",
           "sink");
    refuse("{\"prompts\": [\"a\"], \"targets\": \"none\", \"epsilon\": 1}", "epsilon");
    refuse("{\"prompts\": [\"a b\"], \"length\": 50, \"epsilon\": 1}", "50");
    refuse("[1]", "object");
    refuse("{", "line 1");
}

/* ---- blocks ---- */

static void check_blocks(const char *spec) {
    qkv_sweep *sweep = make(spec);
    int64_t next = 0, n;
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep); b++) {
        assert_int_equal(qkv_sweep_block(sweep, b, &n), next);
        assert_true(n > 0);
        assert_int_equal(sweep_cell(sweep, next).prompt, sweep_cell(sweep, next + n - 1).prompt);
        next += n;
        int owners = 0;
        for (int64_t i = 1; i <= 3; i++) owners += qkv_sweep_in_shard(sweep, b, i, 3);
        assert_int_equal(owners, 1);
    }
    assert_int_equal(next, qkv_sweep_n_cells(sweep));
    qkv_sweep_free(sweep);
}

static void blocks_cover_every_cell_once(void **state) {
    (void)state;
    check_blocks("{\"prompts\": [\"a\", \"b\"], \"epsilon\": \"0.5,0.1\"}");
    check_blocks("{\"prompts\": [\"a\", \"b\", \"c\", \"d\"], \"epsilon\": \"logspace:1e-9,1,40\","
                 " \"metrics\": \"output_kl\", \"targets\": \"none,q\"}");
    check_blocks("{\"prompts\": [\"a\", \"b\"], \"targets\": \"none\", \"metrics\": \"sink\"}");
    check_blocks("{\"prompts\": [\"a\", \"b\"], \"targets\": \"none\", \"metrics\": \"loss\"}");
}

/* ---- values ---- */

#define PROMPT "The river runs past the old mill and turns south."

/* What a cell's own edit gives in a plan of its own. */
static double alone(qkv_session *session, const qkv_cell *cell, const char *metric, int at_output) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    int32_t *tokens = NULL;
    size_t n = 0;
    char layer[16], head[16];
    snprintf(layer, sizeof layer, "%d", (int)cell->layer);
    snprintf(head, sizeof head, "%d", (int)cell->head);
    qkv_measure_options where = {sizeof where, at_output ? NULL : layer, at_output ? NULL : head};
    assert_int_equal(
        qkv_tokenize(model, &tokens, &n, PROMPT, strlen(PROMPT), QKV_TOKENIZE_ADD_SPECIAL, &err),
        QKV_OK);
    assert_int_equal(qkv_plan_new(&plan, model, tokens, n, &err), QKV_OK);
    assert_int_equal(qkv_plan_add_variant(plan, cell->edit, NULL, &err), QKV_OK);
    assert_int_equal(qkv_measure_new(&measure, metric, &where, &err), QKV_OK);
    assert_int_equal(qkv_measure_run(measure, &table, session, plan, &err), QKV_OK);
    double value = table_row(table, qkv_table_size(table) - 1).value;
    qkv_table_free(table);
    qkv_measure_free(measure);
    qkv_plan_free(plan);
    qkv_tokens_free(tokens);
    return value;
}

static void check_values(const char *spec, const char *metric, int at_output) {
    qkv_sweep *sweep = make(spec);
    qkv_error err = {0};
    const qkv_session_options one = {.size = sizeof(qkv_session_options), .n_threads = 1};
    qkv_session *session, *other;
    assert_int_equal(qkv_session_new(&session, model, &one, &err), QKV_OK);
    assert_int_equal(qkv_session_new(&other, model, &one, &err), QKV_OK);
    double *values = calloc((size_t)qkv_sweep_n_cells(sweep), sizeof *values);
    assert_non_null(values);
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep); b++) {
        int64_t n, first = qkv_sweep_block(sweep, b, &n);
        assert_int_equal(qkv_sweep_compute(sweep, session, b, values + first, &err), QKV_OK);
    }
    int64_t changed = 0;
    for (int64_t i = 0; i < qkv_sweep_n_cells(sweep); i++) {
        const qkv_cell cell = sweep_cell(sweep, i);
        double value = alone(other, &cell, metric, at_output);
        if (memcmp(&value, &values[i], sizeof value) != 0)
            fail_msg("%s: %.17g, alone %.17g", cell.edit, values[i], value);
        changed += value != 0;
    }
    assert_true(changed > qkv_sweep_n_cells(sweep) / 4);
    free(values);
    qkv_session_free(session);
    qkv_session_free(other);
    qkv_sweep_free(sweep);
}

/* The model's keys and values are shared by two heads each. */
static void heads_edited_together_are_worth_what_each_is_alone(void **state) {
    (void)state;
    check_values("{\"prompts\": [\"" PROMPT "\"], \"layers\": \"0,3,5\", \"epsilon\": [0.5, 1e-3],"
                 " \"ops\": \"scale,mean:head,noise\", \"metrics\": \"tv\"}",
                 "tv", 0);
    check_values("{\"prompts\": [\"" PROMPT "\"], \"layers\": \"1,4\", \"targets\": \"v,k\","
                 " \"ops\": \"scale:0.25\", \"metrics\": \"value_weighted\"}",
                 "value_weighted", 0);
}

static void cells_in_a_batch_are_worth_what_each_is_alone(void **state) {
    (void)state;
    check_values("{\"prompts\": [\"" PROMPT "\"], \"layers\": \"1,5\", \"targets\": \"q,z\","
                 " \"ops\": \"zero,scale:0.5\", \"metrics\": \"output_kl\"}",
                 "output_kl", 1);
    check_values("{\"prompts\": [\"" PROMPT
                 "\"], \"layers\": \"1,5\", \"targets\": \"q_in,k_in,v_in\","
                 " \"ops\": \"zero,noise:0.5\", \"metrics\": \"output_kl\"}",
                 "output_kl", 1);
    check_values("{\"prompts\": [\"" PROMPT "\"], \"layers\": \"1,5\", \"targets\": \"q_in,k_in\","
                 " \"ops\": \"zero,noise:0.5\", \"metrics\": \"tv\"}",
                 "tv", 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_and_lists_mean_the_same),
        cmocka_unit_test(order_is_prompt_layer_head_target_setting),
        cmocka_unit_test(at_the_output_the_baseline_comes_once),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(blocks_cover_every_cell_once),
        cmocka_unit_test(heads_edited_together_are_worth_what_each_is_alone),
        cmocka_unit_test(cells_in_a_batch_are_worth_what_each_is_alone),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
