/* Figures of several prompts, heads and layers: every number is that of a run with captures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/figure_maker.h"
#include "support/scratch.h"

#define EDITS "q@2.h1=scale:0.5 + v@1=zero"
static const char *const edits[] = {EDITS, NULL};
static const char *const captures[] = {"pattern@*", NULL};

static qkv_result *run_prompt(const qkv_prompt *prompt, const char *const *captured) {
    const engine_run run = {prompt->tokens, prompt->n_tokens, edits, captured, NULL};
    return engine_execute(&figure_engine, &run);
}

static qkv_figure_options all_places(const qkv_prompt *prompts, size_t n) {
    qkv_figure_options options = figure_options_for(prompts);
    options.n_prompts = n;
    options.layer = options.head = QKV_AUTO;
    return options;
}

static void expect_number(float found, float wanted) {
    if (fabsf(found - wanted) > 1e-7f) fail_msg("%g in place of %g", (double)found, (double)wanted);
}

/* ---- heads ---- */

/* Every panel against the whole maps; differences where the figure has them. */
static void check_heads(const qkv_figure *figure, const qkv_prompt *prompt, size_t variant,
                        int diff) {
    qkv_result *result = run_prompt(prompt, captures);
    const shown_info info = figure_info(figure);
    const size_t n = prompt->n_tokens * prompt->n_tokens;
    for (size_t i = 0; i < info.rows * info.cols; i++) {
        const shown_panel panel = figure_panel(figure, i / info.cols, i % info.cols);
        const qkv_tensor map = engine_tensor(result, variant, QKV_SITE_PATTERN, panel.layer);
        const qkv_tensor plain = engine_tensor(result, 0, QKV_SITE_PATTERN, panel.layer);
        assert_int_equal(panel.n_rows * panel.n_cols, n);
        for (size_t k = 0; k < n; k++) {
            const size_t at = (size_t)panel.head * n + k;
            expect_number(panel.values[k], map.data[at] - (diff ? plain.data[at] : 0));
        }
    }
    qkv_result_free(result);
}

static void heads_show_every_head(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = all_places(&prompt, 1);
    qkv_figure *figure = make_figure(QKV_FIGURE_HEADS, &options);
    const shown_info info = figure_info(figure);
    assert_int_equal(info.rows, figure_engine.info->n_layer);
    assert_int_equal(info.cols, figure_engine.info->n_head);
    assert_int_equal(info.layer, -1);
    const shown_panel panel = figure_panel(figure, 4, 3);
    assert_int_equal(panel.layer, 4);
    assert_int_equal(panel.head, 3);
    assert_string_equal(panel.title, "Layer 4, Head 3");
    check_heads(figure, &prompt, 0, 0);
    qkv_figure_free(figure);
}

static void heads_show_edits_and_changes(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = all_places(&prompt, 1);
    options.variant = EDITS;
    qkv_figure *figure = make_figure(QKV_FIGURE_HEADS, &options);
    check_heads(figure, &prompt, 1, 0);
    qkv_figure_free(figure);
    options.diff = 1;
    options.layers = "1-3";
    figure = make_figure(QKV_FIGURE_HEADS, &options);
    assert_int_equal(figure_info(figure).rows, 3);
    assert_int_equal(figure_panel(figure, 2, 0).layer, 3);
    assert_true(figure_info(figure).high > 0);
    check_heads(figure, &prompt, 1, 1);
    qkv_figure_free(figure);
}

static void heads_of_a_layer_fill_a_square(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = all_places(&prompt, 1);
    options.layer = 3;
    qkv_figure *figure = make_figure(QKV_FIGURE_HEADS, &options);
    assert_int_equal(figure_info(figure).rows, 2);
    assert_int_equal(figure_info(figure).cols, 2);
    assert_int_equal(figure_info(figure).layer, 3);
    assert_int_equal(figure_panel(figure, 1, 0).head, 2);
    check_heads(figure, &prompt, 0, 0);
    qkv_figure_free(figure);
}

/* Panels as large as is asked for have as many cells, two to a point: the largest of each block. */
static void heads_are_pooled_to_their_size(void **state) {
    (void)state;
    enum { N = 100, SIDE = 40, POINTS = 20 };
    int32_t tokens[N];
    for (int32_t i = 0; i < N; i++) tokens[i] = 5 + i;
    qkv_prompt prompt = figure_ids();
    prompt.tokens = tokens;
    prompt.n_tokens = N;
    qkv_figure_options options = all_places(&prompt, 1);
    options.layer = 2;
    options.panel_size = POINTS;
    qkv_figure *figure = make_figure(QKV_FIGURE_HEADS, &options);
    const shown_panel panel = figure_panel(figure, 0, 1);
    qkv_result *result = run_prompt(&prompt, captures);
    const float *map = engine_tensor(result, 0, QKV_SITE_PATTERN, 2).data + (size_t)N * N;
    float most[SIDE * SIDE] = {0};
    for (size_t i = 0; i < N * N; i++) {
        float *cell = &most[(i / N * SIDE / N) * SIDE + i % N * SIDE / N];
        *cell = fmaxf(*cell, map[i]);
    }
    assert_int_equal(panel.n_rows, SIDE);
    assert_int_equal(panel.n_cols, SIDE);
    for (size_t i = 0; i < SIDE * SIDE; i++) expect_number(panel.values[i], most[i]);
    assert_non_null(strstr(figure_info(figure).small_print, "masked cells are white"));
    assert_non_null(strstr(figure_info(figure).small_print, "maps of 40"));
    qkv_result_free(result);
    qkv_figure_free(figure);
    options.skip_keys = 30; /* rows and columns are pooled in different ways then */
    figure = make_figure(QKV_FIGURE_HEADS, &options);
    assert_null(strstr(figure_info(figure).small_print, "masked"));
    qkv_figure_free(figure);
}

/* ---- pattern ---- */

static void pattern_shows_one_head(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = all_places(&prompt, 1);
    options.layer = 3;
    options.head = 2;
    for (int change = 0; change < 3; change++) {
        options.variant = change ? EDITS : NULL;
        options.diff = change == 2;
        qkv_figure *figure = make_figure(QKV_FIGURE_PATTERN, &options);
        const shown_info info = figure_info(figure);
        assert_int_equal(info.rows * info.cols, 1);
        assert_int_equal(figure_panel(figure, 0, 0).head, 2);
        check_heads(figure, &prompt, change > 0, change == 2);
        qkv_figure_free(figure);
    }
}

/* Heads beside each other; with a baseline one below the other, the unmodified map first. */
static void pattern_shows_several_heads(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = all_places(&prompt, 1);
    options.layer = 3;
    options.heads = "0,2-3";
    options.variant = EDITS;
    options.diff = 1;
    qkv_figure *figure = make_figure(QKV_FIGURE_PATTERN, &options);
    shown_info info = figure_info(figure);
    assert_int_equal(info.rows, 1);
    assert_int_equal(info.cols, 3);
    assert_int_equal(figure_panel(figure, 0, 1).head, 2);
    assert_string_equal(figure_panel(figure, 0, 2).title, "Layer 3, Head 3");
    assert_non_null(strstr(info.small_print, "layer 3, heads 0,2-3"));
    assert_non_null(strstr(info.recipe, "\"head\":\""));
    check_heads(figure, &prompt, 1, 1);
    qkv_figure_free(figure);
    options.diff = 0;
    options.baseline = 1;
    figure = make_figure(QKV_FIGURE_PATTERN, &options);
    info = figure_info(figure);
    assert_int_equal(info.rows, 3);
    assert_int_equal(info.cols, 2);
    assert_int_equal(figure_panel(figure, 1, 0).head, 2);
    assert_string_equal(figure_panel(figure, 1, 0).edits, "");
    assert_string_equal(figure_panel(figure, 1, 1).edits, EDITS);
    qkv_figure_free(figure);
}

/* ---- rows ---- */

static void rows_are_means_over_heads(void **state) {
    (void)state;
    const int32_t other[] = {9, 8, 7, 6, 5, 4, 3};
    qkv_prompt prompts[] = {figure_ids(), figure_ids()};
    prompts[1].tokens = other;
    prompts[1].n_tokens = 7;
    qkv_figure_options options = all_places(prompts, 2);
    options.variant = EDITS;
    options.baseline = 1;
    options.query = -2;
    qkv_figure *figure = make_figure(QKV_FIGURE_ROWS, &options);
    assert_int_equal(figure_info(figure).rows, 2);
    assert_int_equal(figure_info(figure).cols, 2);
    for (size_t i = 0; i < 4; i++) {
        const shown_panel panel = figure_panel(figure, i / 2, i % 2);
        const size_t n = prompts[i / 2].n_tokens;
        qkv_result *result = run_prompt(&prompts[i / 2], captures);
        assert_int_equal(panel.n_rows, figure_engine.info->n_layer);
        assert_int_equal(panel.n_cols, n);
        for (size_t at = 0; at < (size_t)panel.n_rows * n; at++) {
            const qkv_tensor map =
                engine_tensor(result, i % 2, QKV_SITE_PATTERN, (int32_t)(at / n));
            double sum = 0;
            for (size_t h = 0; h < (size_t)map.n_heads; h++) {
                sum += (double)map.data[(h * n + n - 2) * n + at % n];
            }
            expect_number(panel.values[at], (float)(sum / (double)map.n_heads));
        }
        qkv_result_free(result);
    }
    qkv_figure_free(figure);
}

static void rows_of_a_layer_are_its_heads(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = all_places(&prompt, 1);
    options.layer = 2;
    options.skip_keys = 1;
    options.variant = EDITS;
    options.diff = 1;
    qkv_figure *figure = make_figure(QKV_FIGURE_ROWS, &options);
    const shown_panel panel = figure_panel(figure, 0, 0);
    qkv_result *result = run_prompt(&prompt, captures);
    const qkv_tensor map = engine_tensor(result, 1, QKV_SITE_PATTERN, 2);
    const qkv_tensor plain = engine_tensor(result, 0, QKV_SITE_PATTERN, 2);
    const size_t n = FIGURE_N_TOKENS;
    assert_int_equal(panel.n_rows, figure_engine.info->n_head);
    assert_int_equal(panel.n_cols, n - 1);
    for (size_t h = 0; h < (size_t)panel.n_rows; h++) {
        for (size_t k = 1; k < n; k++) {
            const size_t at = (h * n + n - 1) * n + k;
            expect_number(panel.values[h * (n - 1) + k - 1], map.data[at] - plain.data[at]);
        }
    }
    qkv_result_free(result);
    qkv_figure_free(figure);
    options.head = 1;
    figure = make_figure(QKV_FIGURE_ROWS, &options);
    assert_int_equal(figure_panel(figure, 0, 0).n_rows, 1);
    assert_non_null(strstr(figure_info(figure).recipe, "\"variant\":\"" EDITS "\""));
    qkv_figure_free(figure);
    options.layer = QKV_AUTO;
    options.layers = "1-3";
    options.query = 0;
    options.diff = 0;
    options.skip_keys = 0;
    figure = make_figure(QKV_FIGURE_ROWS, &options);
    assert_int_equal(figure_panel(figure, 0, 0).n_rows, 3);
    assert_non_null(strstr(figure_info(figure).recipe, "\"layers\":\"1-3\""));
    assert_non_null(strstr(figure_info(figure).recipe, "\"query\":0"));
    qkv_figure_free(figure);
}

/* ---- several prompts ---- */

static void check_grid_panel(const qkv_figure *figure, size_t row, size_t col,
                             const qkv_prompt *prompt, size_t variant, const char *title) {
    const shown_panel panel = figure_panel(figure, row, col);
    qkv_result *result = run_prompt(prompt, captures);
    const qkv_tensor map = engine_tensor(result, variant, QKV_SITE_PATTERN, FIGURE_LAYER);
    const size_t n = prompt->n_tokens * prompt->n_tokens;
    assert_string_equal(panel.title, title);
    assert_int_equal(panel.n_rows * panel.n_cols, n);
    for (size_t i = 0; i < n; i++) expect_number(panel.values[i], map.data[FIGURE_HEAD * n + i]);
    qkv_result_free(result);
}

static void a_grid_has_prompts_side_by_side(void **state) {
    (void)state;
    const int32_t other[] = {9, 8, 7, 6, 5, 4, 3};
    qkv_prompt prompts[] = {figure_ids(), figure_ids()};
    prompts[1].tokens = other;
    prompts[1].n_tokens = 7;
    const qkv_figure_side side = figure_side("Edited", EDITS);
    qkv_figure_options options = figure_options_for(prompts);
    options.n_prompts = 2;
    qkv_figure *figure = make_figure(QKV_FIGURE_GRID, &options);
    assert_int_equal(figure_info(figure).rows, 1);
    check_grid_panel(figure, 0, 0, &prompts[0], 0, "Input 1");
    check_grid_panel(figure, 0, 1, &prompts[1], 0, "Input 2");
    qkv_figure_free(figure);
    options.rows = &side;
    options.n_rows = 1;
    options.baseline = 1;
    figure = make_figure(QKV_FIGURE_GRID, &options);
    assert_int_equal(figure_info(figure).cols, 4);
    check_grid_panel(figure, 0, 1, &prompts[0], 1, "Edited (Input 1)");
    check_grid_panel(figure, 0, 2, &prompts[1], 0, "Unmodified (Input 2)");
    check_grid_panel(figure, 0, 3, &prompts[1], 1, "Edited (Input 2)");
    qkv_figure_free(figure);
    options.n_rows = 0;
    options.cols = &side;
    options.n_cols = 1;
    figure = make_figure(QKV_FIGURE_GRID, &options);
    assert_int_equal(figure_info(figure).rows, 2);
    assert_int_equal(figure_info(figure).cols, 2);
    check_grid_panel(figure, 1, 1, &prompts[1], 1, "Edited (Input 2)");
    qkv_figure_free(figure);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pattern_shows_one_head),
        cmocka_unit_test(pattern_shows_several_heads),
        cmocka_unit_test(heads_show_every_head),
        cmocka_unit_test(heads_show_edits_and_changes),
        cmocka_unit_test(heads_of_a_layer_fill_a_square),
        cmocka_unit_test(heads_are_pooled_to_their_size),
        cmocka_unit_test(rows_are_means_over_heads),
        cmocka_unit_test(rows_of_a_layer_are_its_heads),
        cmocka_unit_test(a_grid_has_prompts_side_by_side),
    };
    return cmocka_run_group_tests(tests, figure_open, figure_close);
}
