/*
 * Every public function is called with NULL in place of each pointer and with indices that are out
 * of range: that is an error, or nothing found, and never a crash. Afterwards everything still
 * works. tests/headers/interface.sh fails when a function of the public headers is called neither
 * here nor in test_arguments.c.
 *
 * Here: drawing, stored tensors, sweeps.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include <stdlib.h>
#include <unistd.h>

#include "draw/draw.h"
#include "qkv/qkv.h"
#include "store/store_formats.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "sweep/sweep.h"

static const int32_t TOKENS[] = {5, 9, 40, 77};
enum { N = 4 };

static qkv_error err;

#define SPEC                                                                                       \
    "{\"prompts\": [\"abc\"], \"targets\": \"q\", \"ops\": \"zero\", \"metrics\": \"sink\"}"

static struct {
    engine e;
    qkv_plan *plan;
    qkv_result *result;
    qkv_grid *grid;
    qkv_sweep *sweep;
    qkv_sweep_writer *writer;
    qkv_sweep_reader *reader;
    qkv_sweep_rows *rows;
    char results[512]; /* path */
} it;

static void make_results(void) {
    snprintf(it.results, sizeof it.results, "%s", scratch_path("results.sqlite"));
    OK(qkv_sweep_new(&it.sweep, it.e.model, SPEC, &err));
    OK(qkv_sweep_writer_open(&it.writer, it.sweep, it.results, NULL, &err));
    OK(qkv_sweep_run(it.sweep, it.e.session, it.writer, NULL, NULL, &err));
    OK(qkv_sweep_writer_close(it.writer, &err));
    OK(qkv_sweep_reader_open(&it.reader, it.results, &err));
    OK(qkv_sweep_reader_rows(it.reader, "sink", &it.rows, &err));
    OK(qkv_sweep_writer_open(&it.writer, it.sweep, scratch_path("open.sqlite"), NULL, &err));
}

static int make_all(void **state) {
    (void)state;
    static const char *const captures[] = {"pattern", NULL};
    engine_open(&it.e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    const engine_run run = {.tokens = TOKENS, .n_tokens = N, .captures = captures};
    it.plan = engine_plan(&it.e, &run);
    it.result = engine_execute(&it.e, &run);
    const float value = 1;
    const qkv_panel panel = {.size = sizeof panel, .values = &value, .n_rows = 1, .n_cols = 1};
    OK(qkv_grid_new(&it.grid, 1, 1, &err));
    OK(qkv_grid_set_panel(it.grid, 0, 0, &panel, &err));
    make_results();
    return 0;
}

static int free_all(void **state) {
    qkv_sweep_rows_free(it.rows);
    qkv_sweep_reader_close(it.reader);
    qkv_sweep_writer_close(it.writer, NULL);
    qkv_sweep_free(it.sweep);
    qkv_grid_free(it.grid);
    qkv_result_free(it.result);
    qkv_plan_free(it.plan);
    engine_close(&it.e);
    return scratch_clean(state);
}

/* ---- drawing ---- */

static void test_grid(void **state) {
    (void)state;
    qkv_grid *grid = NULL;
    qkv_panel panel = QKV_PANEL_INIT;
    qkv_grid_report report = QKV_GRID_REPORT_INIT;
    const qkv_grid_style style = QKV_GRID_STYLE_INIT;
    char *bytes = NULL;
    size_t n = 0;
    uint64_t scripts = 0;
    REFUSED(qkv_grid_new(NULL, 1, 1, &err));
    REFUSED(qkv_grid_new(&grid, 0, 1, &err));
    REFUSED(qkv_grid_set_panel(NULL, 0, 0, &panel, &err));
    REFUSED(qkv_grid_set_panel(it.grid, 0, 0, NULL, &err));
    REFUSED(qkv_grid_set_panel(it.grid, 0, 0, &panel, &err));
    REFUSED(qkv_grid_set_panel(it.grid, 1, 0, &panel, &err));
    REFUSED(qkv_grid_set_panel(it.grid, 0, -1, &panel, &err));
    REFUSED(qkv_grid_write(NULL, &style, "x.svg", &err));
    REFUSED(qkv_grid_write(it.grid, &style, NULL, &err));
    REFUSED(qkv_grid_write(it.grid, NULL, "x.svg", &err));
    REFUSED(qkv_grid_write(it.grid, &(qkv_grid_style){0}, "x.svg", &err));
    REFUSED(qkv_grid_render(NULL, &style, "svg", &bytes, &n, &err));
    REFUSED(qkv_grid_render(it.grid, &style, NULL, &bytes, &n, &err));
    REFUSED(qkv_grid_render(it.grid, &style, "svg", NULL, &n, &err));
    REFUSED(qkv_grid_render(it.grid, &style, "svg", &bytes, NULL, &err));
    REFUSED(qkv_grid_check(NULL, &style, "x.svg", &report, &err));
    REFUSED(qkv_grid_check(it.grid, &style, NULL, &report, &err));
    REFUSED(qkv_grid_check(it.grid, &style, "x.svg", NULL, &err));
    REFUSED(qkv_font_check(NULL, &err));
    REFUSED(qkv_fonts_missing(NULL, NULL, &scripts, &err));
    REFUSED(qkv_fonts_missing("x", NULL, NULL, &err));
    REFUSED(qkv_fonts_missing("x", "no such family", &scripts, &err));
    assert_null(bytes);
    assert_true(qkv_grid_color(NULL, 0) == qkv_grid_color(&(qkv_grid_style){0}, 0));
    OK(qkv_grid_render(it.grid, &style, "svg", &bytes, &n, &err));
    qkv_bytes_free(bytes);
}

static void test_charts(void **state) {
    (void)state;
    const qkv_chart_style style = QKV_CHART_STYLE_INIT;
    char *bytes = NULL;
    size_t n = 0;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    qkv_lines lines = QKV_LINES_INIT;
    qkv_bars bars = QKV_BARS_INIT;
    REFUSED(qkv_heatmap_write(&map, NULL, "x.svg", &err));
    REFUSED(qkv_lines_write(&lines, NULL, "x.svg", &err));
    REFUSED(qkv_bars_write(&bars, NULL, "x.svg", &err));
    REFUSED(qkv_heatmap_write(NULL, &style, "x.svg", &err));
    REFUSED(qkv_heatmap_write(&map, &style, "x.svg", &err));
    REFUSED(qkv_heatmap_write(&map, &style, NULL, &err));
    REFUSED(qkv_heatmap_render(NULL, &style, "svg", &bytes, &n, &err));
    REFUSED(qkv_heatmap_render(&map, &style, NULL, &bytes, &n, &err));
    REFUSED(qkv_heatmap_render(&map, &style, "svg", NULL, &n, &err));
    REFUSED(qkv_heatmap_render(&map, &style, "svg", &bytes, NULL, &err));
    map.n_panels = 1;
    map.panels = &(qkv_heatmap_panel){.size = sizeof(qkv_heatmap_panel), .n_rows = 1, .n_cols = 1};
    REFUSED(qkv_heatmap_write(&map, &style, "x.svg", &err));
    REFUSED(qkv_lines_write(NULL, &style, "x.svg", &err));
    REFUSED(qkv_lines_write(&lines, &style, "x.svg", &err));
    REFUSED(qkv_lines_write(&lines, &style, NULL, &err));
    REFUSED(qkv_lines_render(NULL, &style, "svg", &bytes, &n, &err));
    REFUSED(qkv_lines_render(&lines, &style, NULL, &bytes, &n, &err));
    REFUSED(qkv_lines_render(&lines, &style, "svg", NULL, &n, &err));
    REFUSED(qkv_lines_render(&lines, &style, "svg", &bytes, NULL, &err));
    lines.n_series = 1;
    lines.series = &(qkv_series){.size = sizeof(qkv_series), .n = 3};
    REFUSED(qkv_lines_write(&lines, &style, "x.svg", &err));
    REFUSED(qkv_bars_write(NULL, &style, "x.svg", &err));
    REFUSED(qkv_bars_write(&bars, &style, "x.svg", &err));
    REFUSED(qkv_bars_write(&bars, &style, NULL, &err));
    REFUSED(qkv_bars_render(NULL, &style, "svg", &bytes, &n, &err));
    REFUSED(qkv_bars_render(&bars, &style, NULL, &bytes, &n, &err));
    REFUSED(qkv_bars_render(&bars, &style, "svg", NULL, &n, &err));
    REFUSED(qkv_bars_render(&bars, &style, "svg", &bytes, NULL, &err));
    bars.n_bars = 1;
    bars.bars = &(qkv_bar){0};
    REFUSED(qkv_bars_write(&bars, &style, "x.svg", &err));
}

/* ---- the head of a figure, stored tensors ---- */

static void test_head_choice(void **state) {
    (void)state;
    qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
    qkv_session *s = it.e.session;
    REFUSED(qkv_choose_head(NULL, TOKENS, N, 0, 0, &choice, &err));
    REFUSED(qkv_choose_head(s, NULL, N, 0, 0, &choice, &err));
    REFUSED(qkv_choose_head(s, TOKENS, N, 0, 0, NULL, &err));
    REFUSED(qkv_choose_head(s, TOKENS, N, 99, 0, &choice, &err));
    REFUSED(qkv_choose_head(s, TOKENS, N, 0, QKV_FROM_END(99), &choice, &err));
}

static void test_store(void **state) {
    (void)state;
    char name[QKV_STORE_NAME_SIZE] = "x", *bytes = NULL;
    size_t n = 0;
    const char *const pair[] = {"key", NULL};
    const float one = 1;
    qkv_store_tensor tensor = {.size = sizeof tensor, .data = &one, .n_dims = 1, .shape = {1}};
    REFUSED(qkv_store_write(NULL, it.plan, it.e.model, "x.json", &err));
    REFUSED(qkv_store_write(it.result, NULL, it.e.model, "x.json", &err));
    REFUSED(qkv_store_write(it.result, it.plan, NULL, "x.json", &err));
    REFUSED(qkv_store_write(it.result, it.plan, it.e.model, NULL, &err));
    REFUSED(qkv_store_check(NULL, "x.json", &err));
    REFUSED(qkv_store_check(it.result, NULL, &err));
    assert_false(qkv_store_name(NULL, 0, QKV_SITE_Q, 0, QKV_REDUCTION_NONE));
    assert_false(qkv_store_name(name, 0, QKV_SITE_COUNT, 0, QKV_REDUCTION_NONE));
    assert_string_equal(name, "");
    REFUSED(qkv_store_write_tensors(NULL, 1, NULL, 0, "x.safetensors", &err));
    REFUSED(qkv_store_write_tensors(&tensor, 1, NULL, 0, "x.safetensors", &err)); /* no name */
    tensor.name = "a";
    REFUSED(qkv_store_write_tensors(&tensor, 1, NULL, 1, "x.safetensors", &err));
    REFUSED(qkv_store_write_tensors(&tensor, 1, pair, 1, "x.safetensors", &err));
    REFUSED(qkv_store_write_tensors(&tensor, 1, NULL, 0, NULL, &err));
    REFUSED(qkv_store_render_tensors(NULL, 1, NULL, 0, &bytes, &n, &err));
    REFUSED(qkv_store_render_tensors(&tensor, 1, NULL, 0, NULL, &n, &err));
    REFUSED(qkv_store_render_tensors(&tensor, 1, NULL, 0, &bytes, NULL, &err));
    REFUSED(qkv_store_render_tensors_as(NULL, 1, NULL, 0, "npz", &bytes, &n, &err));
    REFUSED(qkv_store_render_tensors_as(&tensor, 1, NULL, 0, NULL, &bytes, &n, &err));
    REFUSED(qkv_store_render_tensors_as(&tensor, 1, NULL, 0, "zip", &bytes, &n, &err));
    REFUSED(qkv_store_render_tensors_as(&tensor, 1, NULL, 0, "npz", NULL, &n, &err));
    const qkv_store_tensor namesakes[] = {tensor, tensor};
    REFUSED(qkv_store_render_tensors(namesakes, 2, NULL, 0, &bytes, &n, &err));
    tensor.data = NULL;
    REFUSED(qkv_store_render_tensors(&tensor, 1, NULL, 0, &bytes, &n, &err));
}

static void test_store_reader(void **state) {
    (void)state;
    static const char text[] = "{\"tensors\": {\"a\": {\"shape\": [1], \"data\": [1]}}}";
    char path[] = "/tmp/qkv_arguments_XXXXXX";
    FILE *made = fdopen(mkstemp(path), "wb");
    assert_non_null(made);
    fputs(text, made);
    fclose(made);
    double value = 0;
    qkv_error problem = {0};
    qkv_store_reader *file = NULL;
    qkv_store_item item = QKV_STORE_ITEM_INIT, unsized = {0};
    REFUSED(qkv_store_reader_open(NULL, path, &err));
    REFUSED(qkv_store_reader_open(&file, NULL, &err));
    assert_null(qkv_store_reader_format(NULL));
    assert_null(qkv_store_reader_metadata(NULL));
    assert_int_equal(qkv_store_reader_item(NULL, 0, &item), 0);
    REFUSED(qkv_store_reader_values(NULL, 0, 0, 1, &value, &err));
    assert_int_equal(qkv_store_reader_open(&file, path, &problem), QKV_OK);
    assert_int_equal(qkv_store_reader_item(file, 1, &item), 0);
    assert_int_equal(qkv_store_reader_item(file, 0, &unsized), 0);
    assert_int_equal(qkv_store_reader_item(file, 0, NULL), 1);
    REFUSED(qkv_store_reader_values(file, 1, 0, 1, &value, &err));
    assert_null(qkv_store_reader_data(NULL, 0));
    assert_null(qkv_store_reader_data(file, 1));
    REFUSED(qkv_store_reader_values(file, 0, -1, 1, &value, &err));
    REFUSED(qkv_store_reader_values(file, 0, 0, 2, &value, &err));
    REFUSED(qkv_store_reader_values(file, 0, 0, INT64_MAX, &value, &err));
    REFUSED(qkv_store_reader_values(file, 0, 0, 1, NULL, &err));
    qkv_store_reader_close(file);
    qkv_store_reader_close(NULL);
    remove(path);
}

/* ---- sweeps ---- */

static void test_sweep(void **state) {
    (void)state;
    qkv_sweep *sweep = NULL;
    qkv_cell cell = QKV_CELL_INIT;
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    qkv_session *s = it.e.session;
    double values[64];
    int64_t n = 7;
    REFUSED(qkv_sweep_new(NULL, it.e.model, SPEC, &err));
    REFUSED(qkv_sweep_new(&sweep, NULL, SPEC, &err));
    REFUSED(qkv_sweep_new(&sweep, it.e.model, NULL, &err));
    assert_null(qkv_sweep_spec(NULL));
    assert_null(qkv_sweep_hash(NULL));
    assert_int_equal(qkv_sweep_n_prompts(NULL), 0);
    assert_int_equal(qkv_sweep_patches(NULL), 0);
    assert_int_equal(qkv_sweep_n_metrics(NULL), 0);
    assert_null(qkv_sweep_metric(NULL, 0));
    assert_null(qkv_sweep_metric(it.sweep, 9));
    assert_null(qkv_sweep_warning(NULL, 0));
    assert_null(qkv_sweep_warning(it.sweep, 0));
    assert_int_equal(qkv_sweep_n_cells(NULL), 0);
    assert_false(qkv_sweep_get_cell(NULL, 0, &cell));
    assert_false(qkv_sweep_get_cell(it.sweep, 0, NULL));
    assert_false(qkv_sweep_get_cell(it.sweep, -1, &cell));
    assert_false(qkv_sweep_get_cell(it.sweep, qkv_sweep_n_cells(it.sweep), &cell));
    REFUSED(qkv_sweep_estimate(NULL, s, &stats, &err));
    REFUSED(qkv_sweep_estimate(it.sweep, NULL, &stats, &err));
    REFUSED(qkv_sweep_estimate(it.sweep, s, NULL, &err));
    assert_int_equal(qkv_sweep_n_blocks(NULL), 0);
    assert_int_equal(qkv_sweep_block(NULL, 0, &n), -1);
    assert_int_equal(n, 0);
    assert_int_equal(qkv_sweep_block(it.sweep, -1, NULL), -1);
    assert_int_equal(qkv_sweep_block(it.sweep, qkv_sweep_n_blocks(it.sweep), NULL), -1);
    assert_int_equal(qkv_sweep_unit(NULL, 1), 0);
    assert_int_equal(qkv_sweep_in_shard(NULL, 0, 1, 1), 0);
    assert_int_equal(qkv_sweep_in_shard(it.sweep, -1, 0, 0), 0);
    assert_int_equal(qkv_sweep_in_shard(it.sweep, 0, 1, -1), 0);
    assert_int_equal(qkv_sweep_shard_cells(NULL, 1, 1), 0);
    REFUSED(qkv_sweep_compute(NULL, s, 0, values, &err));
    REFUSED(qkv_sweep_compute(it.sweep, NULL, 0, values, &err));
    REFUSED(qkv_sweep_compute(it.sweep, s, 0, NULL, &err));
    REFUSED(qkv_sweep_compute(it.sweep, s, -1, values, &err));
    REFUSED(qkv_sweep_compute(it.sweep, s, 999, values, &err));
}

static void test_sweep_results(void **state) {
    (void)state;
    qkv_sweep_writer *writer = NULL;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    const char *const nothing[] = {NULL}, *const one[] = {it.results};
    const double values[64] = {0};
    int64_t n;
    REFUSED(qkv_sweep_writer_open(NULL, it.sweep, "x.sqlite", NULL, &err));
    REFUSED(qkv_sweep_writer_open(&writer, NULL, "x.sqlite", NULL, &err));
    REFUSED(qkv_sweep_writer_open(&writer, it.sweep, NULL, NULL, &err));
    REFUSED(qkv_sweep_writer_n_done(NULL, &n, &err));
    REFUSED(qkv_sweep_writer_n_done(it.writer, NULL, &err));
    REFUSED(qkv_sweep_writer_n_missing(NULL, 0, &n, &err));
    REFUSED(qkv_sweep_writer_n_missing(it.writer, 0, NULL, &err));
    REFUSED(qkv_sweep_writer_n_missing(it.writer, 999, &n, &err));
    REFUSED(qkv_sweep_writer_put(NULL, 0, values, &err));
    REFUSED(qkv_sweep_writer_put(it.writer, 0, NULL, &err));
    REFUSED(qkv_sweep_writer_put(it.writer, -1, values, &err));
    REFUSED(qkv_sweep_run(NULL, it.e.session, it.writer, NULL, NULL, &err));
    REFUSED(qkv_sweep_run(it.sweep, NULL, it.writer, NULL, NULL, &err));
    REFUSED(qkv_sweep_run(it.sweep, it.e.session, NULL, NULL, NULL, &err));
    REFUSED(qkv_sweep_run(it.sweep, it.e.session, it.writer, &(qkv_sweep_options){0}, NULL, &err));
    REFUSED(qkv_sweep_export(NULL, scratch_path("x.csv"), &summary, &err));
    REFUSED(qkv_sweep_export(it.results, NULL, &summary, &err));
    REFUSED(qkv_sweep_export(it.results, scratch_path("x.csv"), &(qkv_sweep_summary){0}, &err));
    REFUSED(qkv_sweep_merge(NULL, one, 1, 0, &summary, &err));
    REFUSED(qkv_sweep_merge(scratch_path("m.sqlite"), NULL, 1, 0, &summary, &err));
    REFUSED(qkv_sweep_merge(scratch_path("m.sqlite"), nothing, 1, 0, &summary, &err));
    REFUSED(qkv_sweep_merge(scratch_path("m.sqlite"), one, 1, 0, &(qkv_sweep_summary){0}, &err));
    OK(qkv_sweep_run(it.sweep, it.e.session, it.writer, NULL, NULL, &err));
    OK(qkv_sweep_export(it.results, scratch_path("x.csv"), &summary, &err));
}

static void test_sweep_reader(void **state) {
    (void)state;
    qkv_sweep_reader *reader = NULL;
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    REFUSED(qkv_sweep_reader_open(NULL, it.results, &err));
    REFUSED(qkv_sweep_reader_open(&reader, NULL, &err));
    assert_null(qkv_sweep_reader_get_info(NULL));
    assert_null(qkv_sweep_reader_metric(NULL, 0));
    assert_null(qkv_sweep_reader_metric(it.reader, 9));
    assert_null(qkv_sweep_reader_target(NULL, 0));
    assert_null(qkv_sweep_reader_target(it.reader, 9));
    assert_null(qkv_sweep_reader_op(NULL, 0));
    assert_null(qkv_sweep_reader_op(it.reader, 9));
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    REFUSED(qkv_sweep_reader_prompt(NULL, 0, &tokens, &n_tokens, &err));
    REFUSED(qkv_sweep_reader_prompt(it.reader, 0, NULL, &n_tokens, &err));
    REFUSED(qkv_sweep_reader_prompt(it.reader, 0, &tokens, NULL, &err));
    assert_int_equal(qkv_sweep_reader_prompt(it.reader, 99, &tokens, &n_tokens, &err),
                     QKV_ERR_FORMAT);
    assert_null(tokens);
    REFUSED(qkv_sweep_reader_rows(NULL, "sink", &rows, &err));
    REFUSED(qkv_sweep_reader_rows(it.reader, NULL, &rows, &err));
    REFUSED(qkv_sweep_reader_rows(it.reader, "sink", NULL, &err));
    assert_int_equal(qkv_sweep_rows_count(NULL), 0);
    assert_false(qkv_sweep_rows_get(NULL, 0, &row));
    assert_false(qkv_sweep_rows_get(it.rows, 0, NULL));
    assert_false(qkv_sweep_rows_get(it.rows, qkv_sweep_rows_count(it.rows), &row));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid),          cmocka_unit_test(test_charts),
        cmocka_unit_test(test_head_choice),   cmocka_unit_test(test_store),
        cmocka_unit_test(test_store_reader),  cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_sweep_results), cmocka_unit_test(test_sweep_reader)};
    return cmocka_run_group_tests(tests, make_all, free_all);
}
