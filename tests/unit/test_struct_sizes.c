/*
 * Programs that were compiled against an older or a newer header: structs that are shorter or
 * longer than the library's. What is missing has its default, what is unknown must be 0, and nothing
 * is read or written beyond the caller's struct.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "draw/draw.h"
#include "qkv/qkv.h"
#include "run/run.h"
#include "store/store_formats.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "sweep/sweep.h"

static const int32_t TOKENS[] = {5, 9, 40, 77};
enum { N = 4, MORE = 16, ROOM = 1024, GUARD = 0x5a };

static engine e;
static qkv_error err;
#define OK(call) expect_ok(call, &err, #call)

/* A struct of another version in memory of its own, which a sanitizer guards: `size` bytes of it. */
static void *other_version(const void *from, size_t known, size_t size) {
    char *to = calloc(1, size);
    assert_non_null(to);
    memcpy(to, from, known < size ? known : size);
    memcpy(to, &size, sizeof size);
    return to;
}

/* Sets a field after those that the library knows. */
static void set_unknown(void *longer, size_t known) {
    ((char *)longer)[known + MORE - 1] = 1;
}

/* ---- structs that are read ---- */

/* Takes a caller's struct; 0 when the arguments are right. */
typedef int (*struct_reader)(const void *given);

static int read_session(const void *given) {
    qkv_session *session = NULL;
    const int status = qkv_session_new(&session, e.model, given, &err);
    qkv_session_free(session);
    return status;
}

static int read_measure(const void *given) {
    qkv_measure *measure = NULL;
    const int status = qkv_measure_new(&measure, "sink", given, &err);
    qkv_measure_free(measure);
    return status;
}

static int read_pattern(const void *given) {
    qkv_measure *measure = NULL;
    double value = 0;
    OK(qkv_measure_new(&measure, "sink", NULL, &err));
    const int status = qkv_measure_pattern(measure, given, &value, &err);
    qkv_measure_free(measure);
    return status;
}

static int read_convert(const void *given) {
    return qkv_model_convert(qkv_model_get_info(e.model)->path, scratch_path("c.gguf"), given,
                             &err);
}

/* Offline: what is asked for is understood, and refused. */
static int read_pull(const void *given) {
    setenv("HF_HUB_OFFLINE", "1", 1);
    const int status = qkv_pull("org/name", given, &err);
    unsetenv("HF_HUB_OFFLINE");
    return status == QKV_ERR_IO ? QKV_OK : status;
}

static int read_observer(const void *given) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    OK(qkv_plan_new(&plan, e.model, TOKENS, N, &err));
    OK(qkv_plan_observe(plan, "pattern@0", &err));
    const int status = qkv_session_observe(e.session, &result, plan, given, &err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

static const float ONE = 1;

static qkv_grid *new_grid(void) {
    qkv_grid *grid = NULL;
    OK(qkv_grid_new(&grid, 1, 1, &err));
    return grid;
}

static int read_panel(const void *given) {
    qkv_grid *grid = new_grid();
    const int status = qkv_grid_set_panel(grid, 0, 0, given, &err);
    qkv_grid_free(grid);
    return status;
}

static int read_grid_style(const void *given) {
    char *bytes = NULL;
    size_t n = 0;
    qkv_grid *grid = new_grid();
    const qkv_panel panel = {.size = sizeof panel, .values = &ONE, .n_rows = 1, .n_cols = 1};
    OK(qkv_grid_set_panel(grid, 0, 0, &panel, &err));
    const int status = qkv_grid_render(grid, given, "svg", &bytes, &n, &err);
    qkv_bytes_free(bytes);
    qkv_grid_free(grid);
    return status;
}

/* One reader for each kind of chart. */
#define READ_CHART(kind)                                                                           \
    static int read_##kind(const void *given) {                                                    \
        const qkv_chart_style style = QKV_CHART_STYLE_INIT;                                        \
        char *bytes = NULL;                                                                        \
        size_t n = 0;                                                                              \
        const int status = qkv_##kind##_render(given, &style, "svg", &bytes, &n, &err);            \
        qkv_bytes_free(bytes);                                                                     \
        return status;                                                                             \
    }
READ_CHART(heatmap)
READ_CHART(lines)
READ_CHART(bars)

static const double VALUES[] = {1, 2};

static int read_heatmap_panel(const void *given) {
    const qkv_heatmap map = {.size = sizeof map, .panels = given, .n_panels = 1};
    return read_heatmap(&map);
}

static int read_series(const void *given) {
    const qkv_lines lines = {.size = sizeof lines, .series = given, .n_series = 1};
    return read_lines(&lines);
}

static int read_bar(const void *given) {
    const qkv_bars bars = {.size = sizeof bars, .bars = given, .n_bars = 1};
    return read_bars(&bars);
}

static int read_chart_style(const void *given) {
    const qkv_bar bar = {.size = sizeof bar, .label = "a", .value = 1};
    const qkv_bars bars = {.size = sizeof bars, .bars = &bar, .n_bars = 1};
    char *bytes = NULL;
    size_t n = 0;
    const int status = qkv_bars_render(&bars, given, "svg", &bytes, &n, &err);
    qkv_bytes_free(bytes);
    return status;
}

static int read_store_tensor(const void *given) {
    char *bytes = NULL;
    size_t n = 0;
    const int status = qkv_store_render_tensors(given, 1, NULL, 0, &bytes, &n, &err);
    qkv_bytes_free(bytes);
    return status;
}

static int read_sweep(const void *given) {
    static const char spec[] = "{\"prompts\": [\"abc\"], \"layers\": \"0\", \"targets\": \"q\","
                               " \"ops\": \"zero\", \"metrics\": \"sink\"}";
    qkv_sweep *sweep = NULL;
    qkv_sweep_writer *writer = NULL;
    OK(qkv_sweep_new(&sweep, e.model, spec, &err));
    OK(qkv_sweep_writer_open(&writer, sweep, scratch_path("s.sqlite"), NULL, &err));
    const int status = qkv_sweep_run(sweep, e.session, writer, given, NULL, &err);
    OK(qkv_sweep_writer_close(writer, &err));
    qkv_sweep_free(sweep);
    return status;
}

static void look(void *user, const qkv_rows *rows) {
    (void)user;
    assert_int_equal(rows->size, sizeof *rows);
}

/* The same, a longer one, and a longer one that asks for what is not known. */
static void check_read(struct_reader read, const void *own, size_t known) {
    OK(read(own));
    void *longer = other_version(own, known, known + MORE);
    OK(read(longer));
    set_unknown(longer, known);
    assert_int_equal(read(longer), QKV_ERR_UNSUPPORTED);
    free(longer);
}

static void test_read(void **state) {
    (void)state;
    const qkv_session_options session = {.size = sizeof session, .n_threads = 1};
    const qkv_measure_options measure = QKV_MEASURE_OPTIONS_INIT;
    const qkv_pattern pattern = {.size = sizeof pattern, .weights = &ONE, .n_tokens = 1};
    const qkv_convert_options convert = QKV_CONVERT_OPTIONS_INIT;
    const qkv_pull_options pull = QKV_PULL_OPTIONS_INIT;
    const qkv_observer observer = {.size = sizeof observer, .rows = look};
    const qkv_sweep_options sweep = QKV_SWEEP_OPTIONS_INIT;
    const qkv_store_tensor tensor = {
        .size = sizeof tensor, .name = "a", .data = &ONE, .n_dims = 1, .shape = {1}};
    check_read(read_session, &session, sizeof session);
    check_read(read_measure, &measure, sizeof measure);
    check_read(read_pattern, &pattern, sizeof pattern);
    check_read(read_convert, &convert, sizeof convert);
    check_read(read_pull, &pull, sizeof pull);
    check_read(read_observer, &observer, sizeof observer);
    check_read(read_sweep, &sweep, sizeof sweep);
    check_read(read_store_tensor, &tensor, sizeof tensor);
}

static void test_read_drawn(void **state) {
    (void)state;
    const qkv_panel panel = {.size = sizeof panel, .values = &ONE, .n_rows = 1, .n_cols = 1};
    const qkv_grid_style style = QKV_GRID_STYLE_INIT;
    const qkv_chart_style chart = QKV_CHART_STYLE_INIT;
    const qkv_heatmap_panel cells = {
        .size = sizeof cells, .values = VALUES, .n_rows = 1, .n_cols = 2};
    const qkv_heatmap map = {.size = sizeof map, .panels = &cells, .n_panels = 1};
    const qkv_series series = {.size = sizeof series, .x = VALUES, .y = VALUES, .n = 2};
    const qkv_lines lines = {.size = sizeof lines, .series = &series, .n_series = 1};
    const qkv_bar bar = {.size = sizeof bar, .label = "a", .value = 1};
    const qkv_bars bars = {.size = sizeof bars, .bars = &bar, .n_bars = 1};
    check_read(read_panel, &panel, sizeof panel);
    check_read(read_grid_style, &style, sizeof style);
    check_read(read_chart_style, &chart, sizeof chart);
    check_read(read_heatmap_panel, &cells, sizeof cells);
    check_read(read_heatmap, &map, sizeof map);
    check_read(read_series, &series, sizeof series);
    check_read(read_lines, &lines, sizeof lines);
    check_read(read_bar, &bar, sizeof bar);
    check_read(read_bars, &bars, sizeof bars);
}

/* What an older struct does not have is as its initialiser says, not 0. */
static void test_read_shorter(void **state) {
    (void)state;
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    style.dpi = style.panel_size = 0; /* both refused where they are read */
    assert_int_equal(read_grid_style(&style), QKV_ERR_ARGUMENT);
    void *shorter = other_version(&style, sizeof style, offsetof(qkv_grid_style, dpi));
    OK(read_grid_style(shorter));
    free(shorter);
    qkv_session_options session = {.size = sizeof session, .n_threads = 1};
    shorter = other_version(&session, sizeof session, offsetof(qkv_session_options, memory_budget));
    OK(read_session(shorter));
    free(shorter);
}

/* ---- structs that are filled ---- */

static int fill_tensor(const void *from, void *to) {
    return qkv_result_get(from, 0, QKV_SITE_PATTERN, 0, to);
}

static int fill_item(const void *from, void *to) {
    return qkv_result_item(from, 0, NULL, NULL, NULL, to);
}

static int fill_stats(const void *from, void *to) {
    return qkv_result_get_stats(from, to);
}

static int fill_measurement(const void *from, void *to) {
    return qkv_table_get(from, 0, to);
}

static int fill_cell(const void *from, void *to) {
    return qkv_sweep_get_cell(from, 0, to);
}

static int fill_row(const void *from, void *to) {
    return qkv_sweep_rows_get(from, 0, to);
}

static int fill_summary(const void *from, void *to) {
    return qkv_sweep_export(from, scratch_path("s.csv"), to, &err) == QKV_OK;
}

static int fill_report(const void *from, void *to) {
    const qkv_grid_style style = QKV_GRID_STYLE_INIT;
    return qkv_grid_check(from, &style, "x.svg", to, &err) == QKV_OK;
}

/* The known part is the same in all versions; what a newer caller has beyond it is 0. */
static void check_filled(int (*fill)(const void *, void *), const void *from, size_t known) {
    char own[ROOM] = {0};
    memcpy(own, &known, sizeof known);
    assert_true(fill(from, own));
    char *longer = malloc(known + MORE), *shorter = malloc(2 * sizeof(size_t));
    assert_true(longer && shorter);
    memset(longer, GUARD, known + MORE);
    memcpy(longer, &(size_t){known + MORE}, sizeof(size_t));
    assert_true(fill(from, longer));
    assert_memory_equal(own + sizeof(size_t), longer + sizeof(size_t), known - sizeof(size_t));
    for (size_t i = 0; i < MORE; i++) assert_int_equal(longer[known + i], 0);
    memcpy(shorter, &(size_t){2 * sizeof(size_t)}, sizeof(size_t));
    assert_true(fill(from, shorter));
    assert_memory_equal(own + sizeof(size_t), shorter + sizeof(size_t), sizeof(size_t));
    free(longer);
    free(shorter);
}

static void test_filled_run(void **state) {
    (void)state;
    static const char *const captures[] = {"pattern", NULL};
    const engine_run run = {.tokens = TOKENS, .n_tokens = N, .captures = captures};
    qkv_result *result = engine_execute(&e, &run);
    qkv_measure *measure = NULL;
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    check_filled(fill_tensor, result, sizeof(qkv_tensor));
    check_filled(fill_item, result, sizeof(qkv_tensor));
    check_filled(fill_stats, result, sizeof(qkv_run_stats));
    OK(qkv_measure_new(&measure, "sink", NULL, &err));
    OK(qkv_plan_new(&plan, e.model, TOKENS, N, &err));
    OK(qkv_measure_run(measure, &table, e.session, plan, &err));
    check_filled(fill_measurement, table, sizeof(qkv_measurement));
    qkv_table_free(table);
    qkv_plan_free(plan);
    qkv_measure_free(measure);
    qkv_result_free(result);
    qkv_grid *grid = new_grid();
    check_filled(fill_report, grid, sizeof(qkv_grid_report));
    qkv_grid_free(grid);
}

static void test_filled_sweep(void **state) {
    (void)state;
    static const char spec[] = "{\"prompts\": [\"abc\"], \"layers\": \"0\", \"targets\": \"q\","
                               " \"ops\": \"zero\", \"metrics\": \"sink\"}";
    const char *path = scratch_path("filled.sqlite");
    qkv_sweep *sweep = NULL;
    qkv_sweep_writer *writer = NULL;
    qkv_sweep_reader *reader = NULL;
    qkv_sweep_rows *rows = NULL;
    OK(qkv_sweep_new(&sweep, e.model, spec, &err));
    check_filled(fill_cell, sweep, sizeof(qkv_cell));
    OK(qkv_sweep_writer_open(&writer, sweep, path, NULL, &err));
    OK(qkv_sweep_run(sweep, e.session, writer, NULL, NULL, &err));
    OK(qkv_sweep_writer_close(writer, &err));
    OK(qkv_sweep_reader_open(&reader, path, &err));
    OK(qkv_sweep_reader_rows(reader, "sink", &rows, &err));
    check_filled(fill_row, rows, sizeof(qkv_sweep_row));
    check_filled(fill_summary, path, sizeof(qkv_sweep_summary));
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(reader);
    qkv_sweep_free(sweep);
}

static int open_engine(void **state) {
    (void)state;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    return 0;
}

static int close_engine(void **state) {
    engine_close(&e);
    return scratch_clean(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read), cmocka_unit_test(test_read_drawn),
        cmocka_unit_test(test_read_shorter), cmocka_unit_test(test_filled_run),
        cmocka_unit_test(test_filled_sweep)};
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
