/* Figures: their numbers are the session's, their bytes the file's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/measure.h"
#include "support/figure_maker.h"
#include "support/figures.h"
#include "support/scratch.h"

/* ---- numbers ---- */

/* What a panel must hold: the pattern of the head shown, from a run of its edits alone. */
static void check_panel(const qkv_figure *figure, size_t row, size_t col) {
    const shown_panel panel = figure_panel(figure, row, col);
    const char *const variants[] = {panel.edits[0] ? panel.edits : NULL, NULL};
    static const char *const captures[] = {"pattern@3.h1", NULL};
    const qkv_own_prompt prompt = figure->prompts.items[panel.prompt];
    const engine_run run = {prompt.tokens, prompt.n_tokens, variants, captures, NULL};
    qkv_result *result = engine_execute(&figure_engine, &run);
    const qkv_tensor wanted =
        engine_tensor(result, panel.edits[0] != '\0', QKV_SITE_PATTERN, FIGURE_LAYER);
    assert_int_equal(panel.n_rows, prompt.n_tokens);
    assert_int_equal(panel.n_cols, prompt.n_tokens);
    assert_memory_equal(panel.values, wanted.data, tensor_count(&wanted) * sizeof(float));
    qkv_result_free(result);
}

static void check_panels(const qkv_figure *figure, size_t rows, size_t cols) {
    const shown_info info = figure_info(figure);
    assert_int_equal(info.rows, rows);
    assert_int_equal(info.cols, cols);
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols; col++) check_panel(figure, row, col);
    }
}

static void modify_has_the_numbers_of_a_run(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = figure_options_for(&prompt);
    options.eps = "5e-1,1e-3";
    options.baseline = 1;
    qkv_figure *figure = make_figure(QKV_FIGURE_MODIFY, &options);
    check_panels(figure, 3, 3);
    assert_string_equal(figure_panel(figure, 0, 0).edits, "");
    assert_string_equal(figure_panel(figure, 0, 1).edits, "q@3.h1=scale:5e-1");
    assert_string_equal(figure_panel(figure, 2, 2).edits, "v@3.h1=scale:1e-3");
    assert_string_equal(figure_panel(figure, 1, 1).title, "Modifying *Key* with \xce\xb5 = 5e-1");
    qkv_figure_free(figure);
}

static void mean_has_a_row_for_every_prompt(void **state) {
    (void)state;
    qkv_prompt prompts[] = {figure_ids(), QKV_PROMPT_INIT};
    prompts[1].text = "A quiet street in the rain, and more";
    prompts[1].length = strlen("A quiet street in the rain");
    qkv_figure_options options = figure_options_for(prompts);
    options.n_prompts = 2;
    options.all_heads = 1;
    qkv_figure *figure = make_figure(QKV_FIGURE_MEAN, &options);
    check_panels(figure, 2, 3);
    assert_string_equal(figure_panel(figure, 1, 2).edits, "v@3=mean:head");
    assert_string_equal(figure->prompts.items[1].text, "A quiet street in the rain");
    qkv_figure_free(figure);
}

static void a_grid_joins_the_edits_of_its_sides(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_side rows[] = {figure_side("Value", "v@{layer}=zero"),
                                    figure_side("Plain", NULL)};
    const qkv_figure_side cols[] = {figure_side("Half", "q@{layer}.h{head}=scale:0.5"),
                                    figure_side(NULL, "")};
    qkv_figure_options options = figure_options_for(&prompt);
    options.rows = rows;
    options.n_rows = 2;
    options.cols = cols;
    options.n_cols = 2;
    qkv_figure *figure = make_figure(QKV_FIGURE_GRID, &options);
    check_panels(figure, 2, 2);
    assert_string_equal(figure_panel(figure, 0, 0).edits, "v@3=zero + q@3.h1=scale:0.5");
    assert_string_equal(figure_panel(figure, 0, 0).title, "Value, Half");
    assert_string_equal(figure_panel(figure, 1, 1).edits, "");
    assert_non_null(strstr(qkv_figure_warning(figure, 0), "v@3=zero (row 1, column 1) was not"));
    assert_null(qkv_figure_warning(figure, 1));
    qkv_figure_free(figure);
}

static void a_grid_patches_from_a_source(void **state) {
    (void)state;
    static const int32_t other[FIGURE_N_TOKENS] = {15, 16, 17, 18, 19};
    const qkv_prompt prompt = figure_ids();
    qkv_prompt source = figure_ids();
    source.tokens = other;
    source.name = "a";
    const qkv_figure_side col = figure_side("Patched", "resid_pre@0=patch:a");
    qkv_figure_options options = figure_options_for(&prompt);
    options.cols = &col;
    options.n_cols = 1;
    options.sources = &source;
    options.n_sources = 1;
    options.report = 1;
    qkv_figure *figure = make_figure(QKV_FIGURE_GRID, &options);
    static const char *const captures[] = {"pattern@3.h1", NULL};
    const engine_run run = {other, FIGURE_N_TOKENS, NULL, captures, NULL};
    qkv_result *result = engine_execute(&figure_engine, &run);
    const qkv_tensor wanted = engine_tensor(result, 0, QKV_SITE_PATTERN, FIGURE_LAYER);
    const shown_panel panel = figure_panel(figure, 0, 0);
    assert_memory_equal(panel.values, wanted.data, tensor_count(&wanted) * sizeof(float));
    qkv_result_free(result);
    qkv_figure_free(figure);
}

static void differences_and_keys_left_out(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = figure_options_for(&prompt);
    options.diff = 1;
    options.skip_keys = 2;
    options.report = 1;
    qkv_figure *figure = make_figure(QKV_FIGURE_MODIFY, &options);
    const shown_panel panel = figure_panel(figure, 0, 1);
    assert_int_equal(panel.n_cols, FIGURE_N_TOKENS - 2);
    for (int i = 0; i < FIGURE_N_TOKENS; i++) {
        for (int k = 2; k < FIGURE_N_TOKENS; k++) {
            const float drawn = panel.values[i * (FIGURE_N_TOKENS - 2) + k - 2];
            const int at = i * FIGURE_N_TOKENS + k;
            assert_true(drawn == panel.map[at] - panel.unmodified[at]);
        }
    }
    const shown_info info = figure_info(figure);
    assert_true(info.low == -info.high && info.high > 0);
    qkv_figure_free(figure);
}

/* ---- the head ---- */

static void the_strongest_sink_is_chosen(void **state) {
    (void)state;
    static const char *const captures[] = {"pattern@*", NULL};
    const engine_run run = {FIGURE_TOKENS, FIGURE_N_TOKENS, NULL, captures, NULL};
    qkv_result *result = engine_execute(&figure_engine, &run);
    qkv_head_choice best = {.sink = -1};
    for (int32_t layer = 0; layer < figure_engine.info->n_layer; layer++) {
        const qkv_tensor map = engine_tensor(result, 0, QKV_SITE_PATTERN, layer);
        for (int32_t h = 0; h < map.n_heads; h++) {
            const double sink = qkv_measure_first_column(
                map.data + h * FIGURE_N_TOKENS * FIGURE_N_TOKENS, FIGURE_N_TOKENS);
            if (sink > best.sink) best = (qkv_head_choice){0, layer, h, sink};
        }
    }
    qkv_result_free(result);
    qkv_error err = {0};
    qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
    expect_ok(qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS, QKV_AUTO,
                              QKV_AUTO, &choice, &err),
              &err, "choice");
    assert_int_equal(choice.layer, best.layer);
    assert_int_equal(choice.head, best.head);
    assert_true(choice.sink == best.sink);
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = figure_options_for(&prompt);
    options.layer = options.head = QKV_AUTO;
    qkv_figure *figure = make_figure(QKV_FIGURE_MODIFY, &options);
    const shown_info info = figure_info(figure);
    assert_int_equal(info.layer, best.layer);
    assert_int_equal(info.head, best.head);
    assert_true(info.sink == best.sink);
    assert_non_null(strstr(info.small_print, "strongest first-token sink"));
    qkv_figure_free(figure);
}

static void a_choice_keeps_to_what_is_given(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
    expect_ok(qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS, 2, QKV_AUTO,
                              &choice, &err),
              &err, "layer");
    assert_int_equal(choice.layer, 2);
    expect_ok(qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS, QKV_AUTO, 2,
                              &choice, &err),
              &err, "head");
    assert_int_equal(choice.head, 2);
    expect_ok(
        qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS, 2, 3, &choice, &err),
        &err, "both");
    assert_int_equal(choice.layer, 2);
    assert_int_equal(choice.head, 3);
    assert_true(choice.sink == -1);
    assert_int_equal(qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS, 99,
                                     QKV_AUTO, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "layer 99 is out of range"));
    expect_ok(qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS,
                              QKV_FROM_END(1), QKV_FROM_END(2), &choice, &err),
              &err, "from the end");
    assert_int_equal(choice.layer, figure_engine.info->n_layer - 1);
    assert_int_equal(choice.head, figure_engine.info->n_head - 2);
    assert_int_equal(qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS,
                                     QKV_FROM_END(99), 0, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "layer -99 is out of range"));
    assert_int_equal(qkv_choose_head(NULL, FIGURE_TOKENS, FIGURE_N_TOKENS, 0, 0, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_choose_head(figure_engine.session, NULL, 3, 0, QKV_AUTO, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_choose_head(figure_engine.session, FIGURE_TOKENS, SIZE_MAX / 8, 0,
                                     QKV_AUTO, &choice, &err),
                     QKV_ERR_PLAN);
    choice.size = 0;
    assert_int_equal(
        qkv_choose_head(figure_engine.session, FIGURE_TOKENS, FIGURE_N_TOKENS, 0, 0, &choice, &err),
        QKV_ERR_ARGUMENT);
}

/* ---- bytes ---- */

/* Every format has something to say, and says the same again. */
static void check_formats(qkv_figure *figure) {
    const char *format;
    for (size_t i = 0; (format = qkv_figure_format(i)); i++) {
        char *bytes = NULL, *again = NULL;
        size_t n_bytes = 0, size = 0;
        qkv_error err = {0};
        expect_ok(qkv_figure_render(figure, format, &bytes, &n_bytes, &err), &err, format);
        expect_ok(qkv_figure_render(figure, format, &again, &size, &err), &err, format);
        assert_int_equal(size, n_bytes);
        assert_true(n_bytes > 1000);
        assert_memory_equal(again, bytes, size);
        assert_int_equal(bytes[n_bytes], '\0');
        qkv_bytes_free(again);
        qkv_bytes_free(bytes);
    }
}

/* Every format, with neither session nor model alive. */
static void memory_holds_what_a_file_holds(void **state) {
    (void)state;
    engine own;
    qkv_error err = {0};
    qkv_figure *modify = NULL, *mean = NULL;
    qkv_prompt prompts[2] = {QKV_PROMPT_INIT, QKV_PROMPT_INIT};
    char first[] = "The river runs past the old mill.", second[] = "A good idea.";
    prompts[0].text = first;
    prompts[1].text = second;
    char title[] = "A *title*", eps[] = "0.5,1e-10";
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    options.prompts = prompts;
    options.n_prompts = 1;
    options.report = 1;
    options.title = title;
    options.eps = eps;
    engine_open(&own, QKV_TEST_MODELS "/default.gguf", 1);
    expect_ok(qkv_figure_make(&modify, own.session, QKV_FIGURE_MODIFY, &options, &err), &err,
              "modify");
    options.n_prompts = 2;
    options.eps = NULL;
    expect_ok(qkv_figure_make(&mean, own.session, QKV_FIGURE_MEAN, &options, &err), &err, "mean");
    engine_close(&own);
    memset(first, 0, sizeof first);
    memset(title, 0, sizeof title);
    memset(eps, 0, sizeof eps);
    memset(prompts, 0, sizeof prompts);
    check_formats(modify);
    check_formats(mean);
    qkv_figure_free(modify);
    qkv_figure_free(mean);
}

static void the_recipe_says_where_a_figure_comes_from(void **state) {
    (void)state;
    static const char *const command[] = {"prog", "--flag", "x\"y"};
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = figure_options_for(&prompt);
    options.command = command;
    options.n_command = 3;
    qkv_figure *figure = make_figure(QKV_FIGURE_MODIFY, &options);
    assert_non_null(
        strstr(figure_info(figure).recipe, "\"command\":[\"prog\",\"--flag\",\"x\\\"y\"]"));
    assert_non_null(strstr(figure_info(figure).recipe, "\"tokens\":[5,6,7,8,9]"));
    assert_non_null(strstr(figure_info(figure).edits, "q@3.h1=scale:\xce\xb5, k@3.h1"));
    char *svg = NULL;
    size_t n = 0;
    assert_int_equal(qkv_figure_render(figure, "svg", &svg, &n, NULL), QKV_OK);
    assert_non_null(strstr(svg, "\"model_hash\""));
    qkv_bytes_free(svg);
    qkv_figure_free(figure);
    options.n_command = 0;
    figure = make_figure(QKV_FIGURE_MODIFY, &options);
    assert_non_null(strstr(figure_info(figure).recipe, "\"command\":null"));
    qkv_figure_free(figure);
}

static void warnings_are_texts(void **state) {
    (void)state;
    int32_t many[90];
    for (int i = 0; i < 90; i++) many[i] = 5 + i;
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = many;
    prompt.n_tokens = 90;
    qkv_figure_options options = figure_options_for(&prompt);
    options.values = QKV_VALUES_ALWAYS;
    options.labels = QKV_LABELS_TOKENS;
    options.panel_size = 60;
    qkv_figure *figure = make_figure(QKV_FIGURE_MODIFY, &options);
    assert_null(qkv_figure_warning(figure, 0));
    char *bytes = NULL;
    size_t n = 0;
    for (int i = 0; i < 2; i++) { /* said once */
        assert_int_equal(qkv_figure_render(figure, "svg", &bytes, &n, NULL), QKV_OK);
        qkv_bytes_free(bytes);
    }
    assert_string_equal(qkv_figure_warning(figure, 0),
                        "`values` always: no numbers in 9 of 9 panels, their cells are too small; "
                        "try a larger `panel_size`");
    assert_non_null(strstr(qkv_figure_warning(figure, 1), "positions in place of tokens"));
    assert_null(qkv_figure_warning(figure, 2));
    qkv_figure_free(figure);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modify_has_the_numbers_of_a_run),
        cmocka_unit_test(mean_has_a_row_for_every_prompt),
        cmocka_unit_test(a_grid_joins_the_edits_of_its_sides),
        cmocka_unit_test(a_grid_patches_from_a_source),
        cmocka_unit_test(differences_and_keys_left_out),
        cmocka_unit_test(the_strongest_sink_is_chosen),
        cmocka_unit_test(a_choice_keeps_to_what_is_given),
        cmocka_unit_test(memory_holds_what_a_file_holds),
        cmocka_unit_test(the_recipe_says_where_a_figure_comes_from),
        cmocka_unit_test(warnings_are_texts),
    };
    return cmocka_run_group_tests(tests, figure_open, figure_close);
}
