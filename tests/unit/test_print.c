/* What goes into print: real text, pages of a given width, fonts, scripts without glyphs, lines on
 * each other, metrics in words. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "draw/draw.h"
#include "measure/metric.h"
#include "qkv/qkv.h"

static const double MM = 72 / 25.4;
static qkv_error err;
static char *drawn; /* the last drawing */
static size_t drawn_length;

/* ---- a grid with tokens that are markup, and its drawings ---- */

static const char *const TOKENS[] = {"<script>", "mill", "a&b", "past", "old", "river"};

static qkv_grid *make_grid(int32_t cols, const char *title) {
    static const float values[36] = {1, 0.5f, 0.25f};
    qkv_grid *grid = NULL;
    qkv_panel panel = QKV_PANEL_INIT;
    panel.values = values;
    panel.n_rows = panel.n_cols = 6;
    panel.row_labels = panel.col_labels = TOKENS;
    panel.title = title;
    assert_int_equal(qkv_grid_new(&grid, 1, cols, &err), QKV_OK);
    for (int32_t c = 0; c < cols; c++) {
        assert_int_equal(qkv_grid_set_panel(grid, 0, c, &panel, &err), QKV_OK);
    }
    return grid;
}

/* To be freed. */
static char *draw(const qkv_grid *grid, const qkv_grid_style *style, const char *format,
                  size_t *length) {
    if (qkv_grid_render(grid, style, format, &drawn, &drawn_length, &err) != QKV_OK)
        fail_msg("%s", err.message);
    if (length) *length = drawn_length;
    return drawn;
}

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

static const char *find(const char *bytes, size_t length, const char *what) {
    const size_t n = strlen(what);
    for (size_t i = 0; i + n <= length; i++) {
        if (memcmp(bytes + i, what, n) == 0) return bytes + i + n;
    }
    return NULL;
}

/* ---- text ---- */

static void test_svg_text(void **state) {
    (void)state;
    qkv_grid *grid = make_grid(1, "Modifying *Query* here");
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    style.cell_values = 0;
    char *outlines = draw(grid, &style, "svg", NULL);
    assert_null(strstr(outlines, "<text"));
    style.text = QKV_TEXT_PATHS;
    char *same = draw(grid, &style, "svg", NULL);
    assert_string_equal(outlines, same); /* what an SVG has by default */
    style.text = QKV_TEXT_TEXT;
    char *text = draw(grid, &style, "svg", NULL);
    assert_int_equal(count(text, ">&lt;script&gt;</tspan></text>"), 2); /* row and column */
    assert_int_equal(count(text, ">a&amp;b</tspan></text>"), 2);
    assert_null(strstr(text, "<script"));
    assert_non_null(strstr(text, ">Modifying </tspan>"));
    assert_non_null(strstr(text, "font-style=\"oblique\" fill=\"#1a1a1a\">Query</tspan>"));
    assert_non_null(strstr(text, ">Attention Weight</tspan>"));
    assert_null(strstr(text, "glyph-0-0")); /* no outlines are left */
    qkv_bytes_free(outlines);
    qkv_bytes_free(same);
    qkv_bytes_free(text);
    qkv_grid_free(grid);
}

static void test_pdf_text(void **state) {
    (void)state;
    qkv_grid *grid = make_grid(1, "A *title*");
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    static const int has_fonts[] = {[QKV_TEXT_AUTO] = 1, [QKV_TEXT_PATHS] = 0, [QKV_TEXT_TEXT] = 1};
    for (int form = QKV_TEXT_AUTO; form <= QKV_TEXT_TEXT; form++) {
        size_t length;
        style.text = (qkv_text_form)form;
        char *pdf = draw(grid, &style, "pdf", &length);
        assert_int_equal(find(pdf, length, "/FontDescriptor") != NULL, has_fonts[form]);
        assert_int_equal(find(pdf, length, "/ToUnicode") != NULL, has_fonts[form]);
        qkv_bytes_free(pdf);
    }
    style.text = (qkv_text_form)7;
    assert_int_equal(qkv_grid_write(grid, &style, "x.pdf", &err), QKV_ERR_ARGUMENT);
    qkv_grid_free(grid);
}

/* ---- width ---- */

/* The width of the root element. */
static double svg_width(const char *svg) {
    const char *at = strstr(svg, " width=\"");
    assert_non_null(at);
    return strtod(at + 8, NULL);
}

static double pdf_width(const char *pdf, size_t length) {
    const char *box = find(pdf, length, "/MediaBox [ 0 0 ");
    assert_non_null(box);
    return strtod(box, NULL);
}

/* The size of the smallest letters, in points, from the elements of an SVG. */
static double smallest_letters(const char *svg) {
    double least = INFINITY;
    for (const char *at = svg; (at = strstr(at, "<text")); at++) {
        const char *end = strchr(at, '>'), *size = strstr(at, "font-size=\"");
        const char *matrix = strstr(at, "matrix(");
        double xx = 1, yx = 0;
        if (matrix && matrix < end) {
            char *rest;
            xx = strtod(matrix + 7, &rest);
            yx = strtod(rest, NULL);
        }
        assert_non_null(size);
        least = fmin(least, strtod(size + 11, NULL) * hypot(xx, yx));
    }
    return least;
}

static uint32_t big_endian(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void test_grid_width(void **state) {
    (void)state;
    static const double widths[] = {60, 85, 120, 180, 400}; /* mm */
    qkv_grid *grid = make_grid(2, "Modifying *Query* with a factor");
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    style.title = "A Title That Is Longer Than a Narrow Page Is Wide";
    style.small_print = "small print that is long enough to need more than one line on such a page";
    style.text = QKV_TEXT_TEXT;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        size_t length;
        style.width = widths[i] * MM;
        char *svg = draw(grid, &style, "svg", NULL);
        assert_true(fabs(svg_width(svg) - style.width) < 1e-4);
        assert_true(smallest_letters(svg) >= 5 - 1e-4);
        char *png = draw(grid, &style, "png", &length);
        assert_int_equal(big_endian(png + 16), (uint32_t)ceil(style.width * 150 / 72 - 1e-6));
        char *pdf = draw(grid, &style, "pdf", &length);
        assert_true(fabs(pdf_width(pdf, length) - style.width) < 1e-4);
        qkv_bytes_free(svg);
        qkv_bytes_free(png);
        qkv_bytes_free(pdf);
    }
    qkv_grid_free(grid);
}

/* What an error names as the least width is enough. */
static void test_least_width(void **state) {
    (void)state;
    qkv_grid *grid = make_grid(3, "Modifying");
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    qkv_grid_report report = QKV_GRID_REPORT_INIT;
    style.width = 10 * MM;
    assert_int_equal(qkv_grid_check(grid, &style, "x.png", &report, &err), QKV_ERR_ARGUMENT);
    const char *least = strstr(err.message, "this takes ");
    assert_non_null(least);
    style.width = strtod(least + 11, NULL) * MM;
    assert_true(style.width > 20 * MM);
    assert_int_equal(qkv_grid_check(grid, &style, "x.png", &report, &err), QKV_OK);
    style.width -= MM;
    assert_int_equal(qkv_grid_check(grid, &style, "x.png", &report, &err), QKV_ERR_ARGUMENT);
    style.width = -1;
    assert_int_equal(qkv_grid_check(grid, &style, "x.png", &report, &err), QKV_ERR_ARGUMENT);
    style.width = (double)NAN;
    assert_int_equal(qkv_grid_check(grid, &style, "x.png", &report, &err), QKV_ERR_ARGUMENT);
    qkv_grid_free(grid);
}

/* ---- charts ---- */

static const double EPS[] = {1e-3, 1e-2, 1e-1, 1}, FALLING[] = {0.9, 0.8, 0.5, 0.1},
                    NEARLY[] = {0.9001, 0.8, 0.5, 0.1}, RISING[] = {0.1, 0.2, 0.5, 0.9},
                    PARTLY[] = {0.9, 0.8, 0.6, 0.7};

static qkv_series series_of(const char *label, const double *y) {
    qkv_series series = QKV_SERIES_INIT;
    series.label = label;
    series.x = EPS;
    series.y = y;
    series.n = 4;
    return series;
}

/* To be freed. */
static char *draw_lines(const double *second, double width) {
    const qkv_series series[] = {series_of("Query", FALLING), series_of("Key", second),
                                 series_of("Value", RISING)};
    qkv_lines lines = QKV_LINES_INIT;
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    lines.series = series;
    lines.n_series = 3;
    lines.x.scale = QKV_SCALE_LOG;
    lines.y.label = "weight on the first token";
    style.text = QKV_TEXT_TEXT;
    style.width = width;
    if (qkv_lines_render(&lines, &style, "svg", &drawn, &drawn_length, &err) != QKV_OK)
        fail_msg("%s", err.message);
    return drawn;
}

static void test_coinciding_lines(void **state) {
    (void)state;
    char *apart = draw_lines(PARTLY, 0), *alike = draw_lines(NEARLY, 0);
    char *crossing = draw_lines(RISING, 0);
    /* On each other all along: one stretch of dashes each, and as much in the legend. */
    assert_int_equal(count(alike, "stroke-dasharray:4.5,4.5"), 4);
    assert_int_equal(count(alike, "coincides with"), 1);
    assert_non_null(strstr(alike, ">Key, coincides with Query</tspan>"));
    /* For a part of their way: dashes there, and the legend says nothing. */
    assert_int_equal(count(apart, "stroke-dasharray:4.5,4.5"), 2);
    assert_int_equal(count(apart, "coincides with"), 0);
    assert_non_null(strstr(crossing, ">Value, coincides with Key</tspan>"));
    qkv_bytes_free(apart);
    qkv_bytes_free(alike);
    qkv_bytes_free(crossing);
}

static void test_chart_width(void **state) {
    (void)state;
    static const double widths[] = {55, 85, 120, 180, 300}; /* mm */
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char *svg = draw_lines(NEARLY, widths[i] * MM);
        assert_true(fabs(svg_width(svg) - widths[i] * MM) < 1e-4);
        assert_true(smallest_letters(svg) >= 5 - 1e-4);
        assert_non_null(strstr(svg, ">Key, coincides with Query</tspan>"));
        qkv_bytes_free(svg);
    }
    const qkv_bar bar = {.size = sizeof bar, .label = "layer 1, head 2", .value = 3};
    qkv_bars bars = QKV_BARS_INIT;
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    bars.bars = &bar;
    bars.n_bars = 1;
    style.width = 85 * MM;
    assert_int_equal(qkv_bars_render(&bars, &style, "svg", &drawn, &drawn_length, &err), QKV_OK);
    assert_true(fabs(svg_width(drawn) - style.width) < 1e-4);
    qkv_bytes_free(drawn);
    style.width = 10 * MM;
    assert_int_equal(qkv_bars_render(&bars, &style, "svg", &drawn, &drawn_length, &err),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "too narrow"));
}

/* ---- fonts ---- */

static void test_fonts(void **state) {
    (void)state;
    uint64_t scripts = 1;
    qkv_grid *grid = make_grid(1, NULL);
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    char *bytes = NULL;
    size_t length;
    assert_int_equal(qkv_font_check("DejaVu Sans", &err), QKV_OK);
    assert_int_equal(qkv_font_check("dejavu sans", &err), QKV_OK);
    assert_int_equal(qkv_font_check("No Such Family", &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "DejaVu Sans"));
    style.font = "No Such Family";
    assert_int_equal(qkv_grid_render(grid, &style, "svg", &bytes, &length, &err), QKV_ERR_ARGUMENT);
    style.font = "DejaVu Sans Mono";
    style.text = QKV_TEXT_TEXT;
    bytes = draw(grid, &style, "svg", NULL);
    assert_non_null(strstr(bytes, "font-family=\"DejaVu Sans Mono, sans-serif\""));
    assert_null(strstr(bytes, "font-family=\"DejaVu Sans, sans-serif\""));
    qkv_bytes_free(bytes);
    qkv_grid_free(grid);
    assert_int_equal(qkv_fonts_missing("A river, \xce\xb5 = 1", NULL, &scripts, &err), QKV_OK);
    assert_true(scripts == 0);
}

/* U+E123 is private: no font can be expected to have it. */
static void test_missing_glyphs(void **state) {
    (void)state;
    uint64_t scripts = 0;
    qkv_grid *grid = make_grid(1, "private \xee\x84\xa3 letters");
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    qkv_grid_report report = QKV_GRID_REPORT_INIT;
    assert_int_equal(qkv_fonts_missing("\xee\x84\xa3", NULL, &scripts, &err), QKV_OK);
    size_t found = 64;
    for (size_t i = 0; qkv_script_name(i); i++) {
        if (scripts == UINT64_C(1) << i) found = i;
    }
    assert_true(found < 64);
    assert_string_equal(qkv_script_name(found), "private or unassigned");
    assert_string_equal(qkv_script_package(found), "");
    assert_int_equal(qkv_grid_check(grid, &style, "x.png", &report, &err), QKV_OK);
    assert_true(report.scripts == scripts);
    qkv_grid_free(grid);
}

/* ---- metrics in words ---- */

static void check_title(const char *metric, const char *wanted) {
    char *title = NULL;
    assert_int_equal(qkv_metric_title(metric, &title, &err), QKV_OK);
    assert_string_equal(title, wanted);
    qkv_bytes_free(title);
}

static void test_metric_titles(void **state) {
    (void)state;
    check_title("first_column", "weight on the first token");
    check_title("entropy", "entropy of attention (nats)");
    check_title("sink:4", "mean weight on one key, key = 4");
    check_title("sink", "mean weight on one key, key = 0");
    check_title("massive:50/500", "massive activations, size = 50, ratio = 500 (count)");
    check_title("of another version", "of another version");
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_metric_get(i)); i++) {
        assert_true(strlen(info->title) > 3 && strlen(info->title) < 60);
        assert_null(strchr(info->title, '_')); /* words, no names */
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(info->title, qkv_metric_get(k)->title);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_svg_text),
        cmocka_unit_test(test_pdf_text),
        cmocka_unit_test(test_grid_width),
        cmocka_unit_test(test_least_width),
        cmocka_unit_test(test_coinciding_lines),
        cmocka_unit_test(test_chart_width),
        cmocka_unit_test(test_fonts),
        cmocka_unit_test(test_missing_glyphs),
        cmocka_unit_test(test_metric_titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
