/* Charts: ranges, places and ticks of axes, room on the page, gaps, errors, where things are drawn. */
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

#include <cairo.h>

#include "base/memory.h"
#include "draw/colormap.h"
#include "draw/draw.h"
#include "draw/sheet.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "support/svg.h"

/* ---- axes ---- */

static qkv_ruler ruler_of(qkv_scale scale, double least, double most, qkv_ruler_kind kind) {
    qkv_ruler ruler;
    const qkv_chart_axis axis = {.scale = scale};
    const qkv_extent data = {least, most};
    qkv_error err = {0};
    if (qkv_ruler_make(&ruler, &axis, &data, kind, 8, "x", &err) != QKV_OK) {
        fail_msg("%s", err.message);
    }
    return ruler;
}

static void test_log_places(void **state) {
    (void)state;
    const qkv_ruler ruler = ruler_of(QKV_SCALE_LOG, 1e-6, 1, QKV_RULER_TIGHT);
    const double first = qkv_ruler_at(&ruler, 1e-6), last = qkv_ruler_at(&ruler, 1);
    assert_true(first > 0.03 && first < 0.05 && fabs(first + last - 1) < 1e-9);
    for (int e = -6; e < 0; e++) { /* decades are equally far apart */
        const double step = qkv_ruler_at(&ruler, pow(10, e + 1)) - qkv_ruler_at(&ruler, pow(10, e));
        assert_true(fabs(step - (last - first) / 6) < 1e-9);
    }
    assert_true(qkv_ruler_at(&ruler, 0) < 0);  /* outside, not infinite */
    assert_true(qkv_ruler_at(&ruler, -1) < 0); /* a band may reach there */
}

static void test_log_ticks(void **state) {
    (void)state;
    static const char *const labels[] = {"10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"};
    const qkv_ruler ruler = ruler_of(QKV_SCALE_LOG, 1e-6, 1, QKV_RULER_TIGHT);
    assert_int_equal(ruler.n_ticks, 7);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(ruler.ticks[i].label, labels[i]);
        assert_true(fabs(ruler.ticks[i].place - qkv_ruler_at(&ruler, pow(10, i - 6))) < 1e-9);
    }
    assert_true(ruler.n_minor >= 6 * 9);
    const qkv_ruler wide = ruler_of(QKV_SCALE_LOG, 1e-30, 1, QKV_RULER_TIGHT);
    assert_true(wide.n_ticks >= 4 && wide.n_ticks <= 9);
    assert_true(wide.n_minor >= 31 && wide.n_minor <= 34); /* the powers alone */
    const qkv_ruler narrow = ruler_of(QKV_SCALE_LOG, 2e-5, 4e-4, QKV_RULER_TIGHT);
    assert_string_equal(narrow.ticks[0].label, "2·10⁻⁵");
    assert_string_equal(narrow.ticks[2].label, "10⁻⁴");
    const qkv_ruler thousands = ruler_of(QKV_SCALE_LOG, 130, 2100, QKV_RULER_TIGHT);
    assert_string_equal(thousands.ticks[thousands.n_ticks - 1].label, "2000");
    const qkv_ruler between = ruler_of(QKV_SCALE_LOG, 0.21, 0.48, QKV_RULER_TIGHT); /* no 1, 2, 5 */
    assert_true(between.n_ticks >= 2);
    const qkv_ruler lone = ruler_of(QKV_SCALE_LOG, 0.01, 0.01, QKV_RULER_TIGHT);
    assert_true(fabs(qkv_ruler_at(&lone, 0.01) - 0.5) < 1e-9);
    assert_true(lone.n_ticks >= 1);
}

/* A broken axis: 0 below all others, with a tick of its own, and the break between it and them. */
static void test_broken_axis(void **state) {
    (void)state;
    qkv_ruler ruler = ruler_of(QKV_SCALE_LOG, 1e-6, 1, QKV_RULER_TIGHT);
    const int n = ruler.n_ticks;
    assert_true(qkv_ruler_at(&ruler, 0) < -1);
    qkv_ruler_break(&ruler);
    assert_int_equal(ruler.n_ticks, n + 1);
    assert_string_equal(ruler.ticks[0].label, "0");
    assert_true(ruler.ticks[0].place > 0 && ruler.ticks[0].place < QKV_BREAK);
    assert_true(fabs(ruler.ticks[0].place - qkv_ruler_at(&ruler, 0)) < 1e-9);
    assert_true(qkv_ruler_at(&ruler, 1e-6) > QKV_BREAK && qkv_ruler_at(&ruler, 1) <= 1);
    for (int i = 1; i <= n; i++)
        assert_true(fabs(ruler.ticks[i].place - qkv_ruler_at(&ruler, pow(10, i - n))) < 1e-9);
    for (int i = 0; i < ruler.n_minor; i++) assert_true(ruler.minor[i] > QKV_BREAK);
}

static void test_linear_ranges(void **state) {
    (void)state;
    qkv_ruler ruler = ruler_of(QKV_SCALE_LINEAR, 0.1, 0.9, QKV_RULER_ROOTED);
    assert_true(ruler.scale.low == 0); /* near enough to 0 to begin there */
    ruler = ruler_of(QKV_SCALE_LINEAR, 0.7, 0.9, QKV_RULER_ROOTED);
    assert_true(ruler.scale.low > 0.6 && ruler.scale.high < 1);
    ruler = ruler_of(QKV_SCALE_LINEAR, 0.7, 0.9, QKV_RULER_BARS);
    assert_true(ruler.scale.low == 0);
    ruler = ruler_of(QKV_SCALE_LINEAR, -0.9, -0.7, QKV_RULER_BARS);
    assert_true(ruler.scale.high == 0 && ruler.scale.low < -0.9);
    for (int kind = QKV_RULER_TIGHT; kind <= QKV_RULER_BARS; kind++) {
        ruler = ruler_of(QKV_SCALE_LINEAR, 0, 0, (qkv_ruler_kind)kind);
        assert_true(ruler.scale.low < ruler.scale.high && ruler.n_ticks >= 2);
    }
    /* A narrow range far from 0: ticks keep the digits that tell them apart. */
    ruler = ruler_of(QKV_SCALE_LINEAR, 0.999991, 0.999999, QKV_RULER_TIGHT);
    for (int i = 1; i < ruler.n_ticks; i++) {
        assert_string_not_equal(ruler.ticks[i].label, ruler.ticks[i - 1].label);
    }
}

/* However short the bar, two numbers say what its colours mean. */
static void test_two_ticks(void **state) {
    (void)state;
    static const double ranges[][2] = {{0.003, 0.12}, {0.21, 0.24}, {-3, 1e6}, {0.99999, 1}};
    for (size_t i = 0; i < 4; i++) {
        const qkv_grid_style style = {
            .size = sizeof(qkv_grid_style), .low = ranges[i][0], .high = ranges[i][1]};
        qkv_tick ticks[QKV_MAX_TICKS];
        const int n = qkv_ticks_make(ticks, &style, 2);
        assert_true(n >= 2 && n <= 6);
        assert_string_not_equal(ticks[0].label, ticks[1].label);
    }
}

/* ---- room on the page ---- */

static int overlap(const qkv_box *a, const qkv_box *b) {
    return a->x < b->x + b->width && b->x < a->x + a->width && a->y < b->y + b->height &&
           b->y < a->y + a->height;
}

static void paint_nothing(const qkv_sheet *sheet, const qkv_painter *painter) {
    (void)sheet;
    (void)painter;
}

static void check_page(const qkv_sheet *sheet) {
    const qkv_layout *layout = &sheet->layout;
    const qkv_box page = {0, 0, layout->width, layout->height};
    for (size_t i = 0; i < layout->n_captions; i++) {
        const qkv_box ink = qkv_caption_ink(&layout->captions[i]);
        assert_true(ink.x >= 0 && ink.y >= 0 && ink.x + ink.width <= page.width &&
                    ink.y + ink.height <= page.height);
        assert_false(overlap(&ink, &sheet->area));
        for (size_t k = 0; k < i; k++) {
            const qkv_box other = qkv_caption_ink(&layout->captions[k]);
            assert_false(overlap(&ink, &other));
        }
    }
}

static void test_page(void **state) {
    (void)state;
    static const double ranges[][2] = {{1e-13, 1}, {1e-3, 1e-3}, {0.1, 1}, {1e-6, 1e9}};
    static const double values[][2] = {{0, 1}, {-1234567, 1e7}, {0.99999, 1}, {2e-9, 3e-9}};
    for (size_t r = 0; r < 4; r++) {
        for (size_t n = 0; n <= 24; n += 12) {
            const qkv_chart_style style = {
                .size = sizeof(qkv_chart_style),
                .title =
                    "A Title That Is Long Enough to Be Wrapped on a Page That Is Not So Very Wide, "
                    "Twice If Need Be, for It Has Much to Say",
                .small_print = "small print",
                .dpi = 150};
            qkv_sheet sheet;
            qkv_error err;
            const qkv_page_target to = {.path = scratch_path("page.svg")};
            assert_int_equal(qkv_sheet_open(&sheet, &style, &to, &err), QKV_OK);
            sheet.below = ruler_of(QKV_SCALE_LOG, ranges[r][0], ranges[r][1], QKV_RULER_TIGHT);
            sheet.left = ruler_of(QKV_SCALE_LINEAR, values[r][0], values[r][1], QKV_RULER_ROOTED);
            sheet.below.label = "ε";
            sheet.left.label = "a measure with a long name that goes on until it needs two lines, "
                               "then a little further still";
            sheet.has_left = 1;
            sheet.paint = paint_nothing;
            const double height = fmax(205, qkv_sheet_legend_height(&sheet, n, "legend"));
            assert_int_equal(qkv_sheet_frame(&sheet, 330, height, 0, &err), QKV_OK);
            qkv_sample *samples = qkv_calloc(n, sizeof *samples);
            for (size_t i = 0; i < n; i++) samples[i].label = "layer 12, head 31, and far more";
            assert_int_equal(qkv_sheet_legend(&sheet, samples, n, "legend", &err), QKV_OK);
            assert_int_equal(qkv_sheet_draw(&sheet, &to, &err), QKV_OK);
            check_page(&sheet);
            qkv_sheet_close(&sheet);
        }
    }
}

/* ---- charts ---- */

static const qkv_chart_style PLAIN = {.size = sizeof(qkv_chart_style),
                                      .title = "A *Chart*",
                                      .small_print = "what it shows, in small print",
                                      .recipe = "the recipe",
                                      .dpi = 150};

static void write_chart(int status, const char *path, const qkv_error *err) {
    if (status != QKV_OK) fail_msg("%s: %s", path, err->message);
}

static const double EPS[] = {1e-4, 1e-3, 1e-2, 1e-1, 1};
static const double MEAN[] = {0.1, 0.12, 0.4, 0.8, 0.9}, LOW[] = {0.05, 0.1, 0.3, 0.7, 0.85},
                    HIGH[] = {0.15, 0.2, 0.5, 0.85, 0.95};
static const double GAPPY[] = {0.9, (double)NAN, 0.7, 0.6, 0.5};

static qkv_lines some_lines(qkv_series series[2]) {
    series[0] = (qkv_series){sizeof(qkv_series), "Query", EPS, MEAN, LOW, HIGH, 5};
    series[1] = (qkv_series){sizeof(qkv_series), "Value", EPS, GAPPY, NULL, NULL, 5};
    return (qkv_lines){.size = sizeof(qkv_lines),
                       .series = series,
                       .n_series = 2,
                       .x = {.label = "ε", .scale = QKV_SCALE_LOG},
                       .y = {.label = "sink"},
                       .reference_label = "unedited",
                       .reference = 0.92};
}

static qkv_bars some_bars(void) {
    static const qkv_bar bars[] = {{sizeof(qkv_bar), "layer 3, head 5", 0.9, 0.7, 1.0, 0},
                                   {sizeof(qkv_bar), "layer 0, head 1", 0.5, 0.5, 0.5, 1},
                                   {sizeof(qkv_bar), "layer 2, head 0", -0.25, -0.5, 0.1, 0}};
    static const char *const groups[] = {"Query", "Key"};
    return (qkv_bars){sizeof(qkv_bars), bars, 3, {.label = "change of sink"}, groups, 2};
}

static const double CELLS[] = {0.1, 0.5, (double)NAN, 0.9, 0, 1};

static qkv_heatmap some_heatmap(qkv_heatmap_panel *panel) {
    static const char *const rows[] = {"0", "7"}, *const cols[] = {"all", "0", "1"};
    *panel = (qkv_heatmap_panel){sizeof *panel, CELLS, 2, 3, "*Query*", rows, cols, NULL, NULL};
    return (qkv_heatmap){.size = sizeof(qkv_heatmap),
                         .panels = panel,
                         .n_panels = 1,
                         .row_axis = "Layer",
                         .col_axis = "Head",
                         .color = {.label = "sink"}};
}

/* Where a value is on the axis that two known places make. */
typedef struct axis_map {
    double value, place, unit;
} axis_map;

static axis_map map_of(double value, double place, double other_value, double other_place) {
    return (axis_map){value, place, (other_place - place) / (other_value - value)};
}

static double place_of(const axis_map *map, double value) {
    return map->place + (value - map->value) * map->unit;
}

static char *drawn_lines(void) {
    qkv_error err;
    qkv_series series[2];
    const qkv_lines lines = some_lines(series);
    const char *path = scratch_path("lines.svg");
    size_t size;
    write_chart(qkv_lines_write(&lines, &PLAIN, path, &err), path, &err);
    return slurp(path, &size);
}

/* Lines, bands, markers and the reference are where their numbers say. */
static void test_lines_places(void **state) {
    (void)state;
    char *svg = drawn_lines();
    const svg_path query = svg_find(svg, "stroke-width", "1.3", 0);
    const svg_path value = svg_find(svg, "stroke-width", "1.3", 1);
    const svg_path band = svg_find(svg, "fill-opacity", "0.16", 0);
    const svg_path reference = svg_find(svg, "stroke-dasharray", "3,2", 0);
    assert_int_equal(query.n, 5);
    assert_int_equal(value.n, 3); /* the first value stands alone before a gap */
    assert_true(band.n >= 10);
    assert_int_equal(reference.n, 2);
    const axis_map x = map_of(0, query.x[0], 4, query.x[4]); /* decades */
    const axis_map y = map_of(MEAN[0], query.y[0], MEAN[4], query.y[4]);
    assert_true(x.unit > 50 && y.unit < -100);
    for (size_t i = 0; i < 5; i++) {
        check_same_place(query.x[i], place_of(&x, (double)i), "the line's x");
        check_same_place(query.y[i], place_of(&y, MEAN[i]), "the line's y");
        check_same_place(band.y[i], place_of(&y, HIGH[i]), "the band's upper edge");
        check_same_place(band.y[9 - i], place_of(&y, LOW[i]), "the band's lower edge");
        check_same_place(band.x[9 - i], query.x[i], "the band's x");
        if (i >= 2) check_same_place(value.x[i - 2], query.x[i], "the second line's x");
        if (i >= 2) check_same_place(value.y[i - 2], place_of(&y, GAPPY[i]), "the second line's y");
    }
    check_same_place(reference.y[0], place_of(&y, 0.92), "the reference");
    check_same_place(reference.y[1], place_of(&y, 0.92), "the reference");
    assert_true(reference.x[0] < query.x[0] && reference.x[1] > query.x[4]);
    const long alone = svg_color_at(svg, query.x[0], place_of(&y, GAPPY[0]));
    assert_int_equal(alone, svg_color_at(svg, value.x[2], value.y[2]));
    assert_int_not_equal(alone, svg_color_at(svg, query.x[1], query.y[1]));
    free(svg);
}

/* Bars begin at zero and are as long as their values; whiskers reach from least to most. */
static void test_bars_places(void **state) {
    (void)state;
    qkv_error err;
    const qkv_bars bars = some_bars();
    const char *path = scratch_path("bars.svg");
    size_t size;
    write_chart(qkv_bars_write(&bars, &PLAIN, path, &err), path, &err);
    char *svg = slurp(path, &size);
    svg_path bar[3], whisker[2];
    for (size_t i = 0; i < 3; i++) bar[i] = svg_find(svg, "fill-rule", "nonzero", i);
    for (size_t i = 0; i < 2; i++) whisker[i] = svg_find(svg, "stroke-width", "0.8", i);
    const double zero = svg_find(svg, "stroke-width", "0.6", 0).x[0];
    const axis_map x = map_of(0, zero, 0.9, zero + bar[0].box.width);
    assert_true(x.unit > 50);
    for (size_t i = 0; i < 3; i++) {
        const double value = bars.bars[i].value;
        check_same_place(bar[i].box.x, place_of(&x, fmin(value, 0)), "a bar's left end");
        check_same_place(bar[i].box.width, fabs(value * x.unit), "a bar's length");
        check_same_place(bar[i].box.height, bar[0].box.height, "a bar's height");
        check_same_place(bar[i].box.y - bar[0].box.y, (double)i * (bar[1].box.y - bar[0].box.y),
                         "a bar's row");
    }
    assert_int_equal(bar[0].fill, bar[2].fill); /* of one group */
    assert_int_not_equal(bar[0].fill, bar[1].fill);
    for (size_t i = 0; i < 2; i++) {
        const qkv_bar *of = &bars.bars[2 * i]; /* the second has one value, and none */
        check_same_place(whisker[i].x[0], place_of(&x, of->lower), "a whisker's left end");
        check_same_place(whisker[i].x[1], place_of(&x, of->upper), "a whisker's right end");
        const qkv_box *box = &bar[2 * i].box;
        check_same_place(whisker[i].y[0], box->y + box->height / 2, "a whisker's row");
    }
    assert_int_equal(svg_find(svg, "stroke-width", "0.8", 2).n, 0);
    free(svg);
}

/* Cells are squares in rows and columns, in the colours of their values; what has no value is white. */
static void test_heatmap_places(void **state) {
    (void)state;
    qkv_error err;
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    const qkv_heatmap map = some_heatmap(&panel);
    const char *path = scratch_path("heatmap.svg");
    size_t size;
    write_chart(qkv_heatmap_write(&map, &PLAIN, path, &err), path, &err);
    char *svg = slurp(path, &size);
    const qkv_box first = svg_find(svg, "fill-rule", "nonzero", 0).box;
    const double side = svg_find(svg, "fill-rule", "nonzero", 1).box.x - first.x;
    assert_true(side > 10);
    for (size_t i = 0; i < 6; i++) {
        const svg_path cell = svg_find(svg, "fill-rule", "nonzero", i);
        const long wanted =
            isnan(CELLS[i]) ? 0xffffff : (long)qkv_colormap_at(QKV_COLORMAP_VIRIDIS, CELLS[i]);
        check_same_place(cell.box.x, first.x + side * (double)(i % 3), "a cell's column");
        check_same_place(cell.box.y, first.y + side * (double)(i / 3), "a cell's row");
        assert_int_equal(cell.fill, wanted);
    }
    const svg_path bar = svg_find(svg, "fill", "url(#linear0)", 0);
    check_same_place(bar.box.y, first.y, "the top of the colour bar");
    check_same_place(bar.box.height, 2 * side, "the height of the colour bar");
    free(svg);
}

/* What was written is what comes out in memory. */
static void check_memory(const char *path, int status, char *bytes, size_t n_bytes) {
    size_t size;
    char *file = slurp(path, &size);
    assert_int_equal(status, QKV_OK);
    assert_int_equal(n_bytes, size);
    assert_memory_equal(bytes, file, size);
    free(file);
    qkv_bytes_free(bytes);
}

static void test_every_format(void **state) {
    (void)state;
    char *bytes;
    size_t n;
    static const char *const formats[] = {"png", "svg", "pdf"};
    static const char *const names[] = {"every.png", "every.svg", "every.pdf"};
    qkv_error err;
    qkv_series series[2];
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    const qkv_lines lines = some_lines(series);
    const qkv_bars bars = some_bars();
    const qkv_heatmap map = some_heatmap(&panel);
    for (int i = 0; i < 3; i++) {
        const char *path = scratch_path(names[i]);
        write_chart(qkv_lines_write(&lines, &PLAIN, path, &err), path, &err);
        int status = qkv_lines_render(&lines, &PLAIN, formats[i], &bytes, &n, &err);
        check_memory(path, status, bytes, n);
        write_chart(qkv_bars_write(&bars, &PLAIN, path, &err), path, &err);
        status = qkv_bars_render(&bars, &PLAIN, formats[i], &bytes, &n, &err);
        check_memory(path, status, bytes, n);
        write_chart(qkv_heatmap_write(&map, &PLAIN, path, &err), path, &err);
        status = qkv_heatmap_render(&map, &PLAIN, formats[i], &bytes, &n, &err);
        check_memory(path, status, bytes, n);
    }
}

/* How many pixels of a PNG have a colour. */
static int count_pixels(const char *path, uint32_t color) {
    cairo_surface_t *image = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(image), CAIRO_STATUS_SUCCESS);
    const unsigned char *data = cairo_image_surface_get_data(image);
    const int stride = cairo_image_surface_get_stride(image);
    int n = 0;
    for (int y = 0; y < cairo_image_surface_get_height(image); y++) {
        for (int x = 0; x < cairo_image_surface_get_width(image); x++) {
            uint32_t pixel;
            memcpy(&pixel, data + (ptrdiff_t)y * stride + 4 * (ptrdiff_t)x, 4);
            n += (pixel & 0xffffff) == color;
        }
    }
    cairo_surface_destroy(image);
    return n;
}

/* A cell without a value is white; with the value 0 it has the colour of the scale's low end. */
static void test_no_value(void **state) {
    (void)state;
    const double with[] = {0, 1, 0, 1}, without[] = {(double)NAN, 1, 0, 1};
    const char *const none[] = {"", ""};
    int blue[2], white[2];
    for (int i = 0; i < 2; i++) {
        const qkv_heatmap_panel panel = {
            sizeof panel, i ? without : with, 2, 2, NULL, none, none, NULL, NULL};
        const qkv_heatmap map = {.size = sizeof(qkv_heatmap),
                                 .panels = &panel,
                                 .n_panels = 1,
                                 .colormap = QKV_COLORMAP_COOLWARM};
        const qkv_chart_style style = {.size = sizeof(qkv_chart_style), .dpi = 72};
        qkv_error err;
        const char *path = scratch_path("gap.png");
        write_chart(qkv_heatmap_write(&map, &style, path, &err), path, &err);
        blue[i] = count_pixels(path, 0x3b4cc0);
        white[i] = count_pixels(path, 0xffffff);
    }
    const int cell = 65 * 65;
    assert_true(abs(blue[0] - blue[1] - cell) < cell / 10);
    assert_true(white[1] - white[0] > cell / 2 && white[1] - white[0] < cell);
}

/* Pixels that the band of a series shades. */
static int count_shade(const double *x, const double *y, size_t n, qkv_scale scale) {
    double lower[8], upper[8];
    const char *path = scratch_path("band.png");
    qkv_error err;
    int shaded = 0;
    for (size_t i = 0; i < n; i++) {
        lower[i] = y[i] - 0.1;
        upper[i] = y[i] + 0.1;
    }
    const qkv_series series = {sizeof series, NULL, x, y, lower, upper, n};
    qkv_lines lines = QKV_LINES_INIT;
    lines.series = &series;
    lines.n_series = 1;
    lines.x.scale = scale;
    lines.y.low = 0;
    lines.y.high = 1;
    write_chart(qkv_lines_write(&lines, &PLAIN, path, &err), path, &err);
    for (uint32_t i = 0; i < 8; i++) /* 16 % of the first colour, however it is rounded */
        shaded += count_pixels(path, 0xdfe2f4 + (i & 1) + ((i >> 1 & 1) << 8) + ((i >> 2) << 16));
    return shaded;
}

/* The band of a series with a gap is as large as those of its parts; also where the axis is broken
 * between 0 and the rest of a log scale. */
static void test_band_has_gaps(void **state) {
    (void)state;
    const double none = (double)NAN;
    const double x[] = {0, 1, 2, 3, 4, 5, 6}, y[] = {0.8, 0.8, 0.8, none, 0.2, 0.2, 0.2},
                 left[] = {0.8, 0.8, 0.8, none, none, none, none},
                 right[] = {none, none, none, none, 0.2, 0.2, 0.2};
    const int parts =
        count_shade(x, left, 7, QKV_SCALE_LINEAR) + count_shade(x, right, 7, QKV_SCALE_LINEAR);
    assert_true(parts > 1000);
    assert_true(abs(count_shade(x, y, 7, QKV_SCALE_LINEAR) - parts) < parts / 50);
    const double ratios[] = {0, 1e-3, 1e-2, 0.1}, at_zero[] = {0.8, 0.3, 0.3, 0.3},
                 without[] = {none, 0.3, 0.3, 0.3};
    const int band = count_shade(ratios, without, 4, QKV_SCALE_LOG);
    assert_true(band > 1000);
    assert_true(abs(count_shade(ratios, at_zero, 4, QKV_SCALE_LOG) - band) < band / 50);
}

/* ---- errors ---- */

static void expect(int status, int wanted, const qkv_error *err, const char *part) {
    assert_int_equal(status, wanted);
    if (!strstr(err->message, part)) fail_msg("\"%s\" lacks \"%s\"", err->message, part);
}

static void test_lines_errors(void **state) {
    (void)state;
    static const double zero[] = {0, 1e-3, 1e-2, 1e-1, 1}, below[] = {-1, 1e-3, 1e-2, 1e-1, 1};
    static const double holes[] = {1, 1, NAN, NAN, INFINITY};
    const char *path = scratch_path("bad.svg");
    qkv_error err = {0};
#define REFUSED(wanted, part, ...)                                                                 \
    do {                                                                                           \
        qkv_series series[2];                                                                      \
        qkv_lines lines = some_lines(series);                                                      \
        qkv_chart_style style = PLAIN;                                                             \
        __VA_ARGS__;                                                                               \
        expect(qkv_lines_write(&lines, &style, path, &err), wanted, &err, part);                   \
    } while (0)
    REFUSED(QKV_ERR_ARGUMENT, "x = -1 of point 0 has no place on a log axis", series[0].x = below);
    REFUSED(QKV_ERR_ARGUMENT, "y = 0", series[1].y = zero; lines.y.scale = QKV_SCALE_LOG);
    REFUSED(QKV_ERR_NUMERIC, "y of point 4 is inf", series[1].y = holes);
    REFUSED(QKV_ERR_NUMERIC, "x of point 2 is nan", series[1].x = holes);
    REFUSED(QKV_ERR_NUMERIC, "band at point 2", series[0].upper = holes);
    REFUSED(QKV_ERR_ARGUMENT, "both ends", series[0].upper = NULL);
    REFUSED(QKV_ERR_ARGUMENT, "1 to 48 series", lines.n_series = 0);
    REFUSED(QKV_ERR_ARGUMENT, "1 to 48 series", lines.n_series = 49);
    REFUSED(QKV_ERR_ARGUMENT, "linear or log", lines.y.scale = QKV_SCALE_POWER);
    REFUSED(QKV_ERR_ARGUMENT, "low must be below high", lines.y.low = 2; lines.y.high = 1);
    REFUSED(QKV_ERR_ARGUMENT, "no place on the x axis", lines.x.low = -1);
    REFUSED(QKV_ERR_NUMERIC, "reference", lines.reference = (double)NAN);
    REFUSED(QKV_ERR_ARGUMENT, "no value", series[0].n = 0; series[1].n = 0);
    REFUSED(QKV_ERR_ARGUMENT, "dpi", style.dpi = 0);
#undef REFUSED
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_other_errors(void **state) {
    (void)state;
    const char *path = scratch_path("bad.svg");
    static const double nothing[] = {NAN, NAN}, below[] = {-1, 1}, zeros[] = {0, 0};
    qkv_error err = {0};
    qkv_heatmap_panel panel = {sizeof panel, nothing, 1, 2, NULL, NULL, NULL, NULL, NULL};
    qkv_heatmap map = {.size = sizeof(qkv_heatmap), .panels = &panel, .n_panels = 1};
    expect(qkv_heatmap_write(&map, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "no value");
    map.color.scale = QKV_SCALE_LOG;
    panel.values = below;
    expect(qkv_heatmap_write(&map, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "below 0");
    panel.values = zeros;
    expect(qkv_heatmap_write(&map, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "above 0");
    panel.n_rows = 0;
    expect(qkv_heatmap_write(&map, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "empty");
    expect(qkv_heatmap_write(&map, &PLAIN, NULL, &err), QKV_ERR_ARGUMENT, &err, "path");
    qkv_bars bars = some_bars();
    bars.axis.scale = QKV_SCALE_LOG;
    expect(qkv_bars_write(&bars, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "bars start at 0");
    bars = some_bars();
    bars.n_groups = 1;
    expect(qkv_bars_write(&bars, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "no group 1");
    static const char *const unnamed[] = {"Query", NULL};
    bars.groups = unnamed;
    bars.n_groups = 2;
    expect(qkv_bars_write(&bars, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "group 1 of the");
    bars.n_bars = 0;
    expect(qkv_bars_write(&bars, &PLAIN, path, &err), QKV_ERR_ARGUMENT, &err, "1 to 2000");
    expect(qkv_bars_write(&bars, &PLAIN, "out.gif", &err), QKV_ERR_ARGUMENT, &err, ".png");
    const qkv_bar infinite = {sizeof infinite, "", (double)INFINITY, 0, 0, 0};
    bars = (qkv_bars){.size = sizeof(qkv_bars), .bars = &infinite, .n_bars = 1};
    expect(qkv_bars_write(&bars, &PLAIN, path, &err), QKV_ERR_NUMERIC, &err, "bar 0");
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Sizes at both ends: one of everything, and more than can be labelled. */
static void test_extreme_sizes(void **state) {
    (void)state;
    qkv_error err;
    enum { SIDE = 150, BARS = 2000 };
    double *values = qkv_calloc(SIDE * SIDE + 1, sizeof *values);
    qkv_bar *many = qkv_calloc(BARS, sizeof *many);
    for (int i = 0; i <= SIDE * SIDE; i++) values[i] = i % 7 ? i : (double)NAN;
    for (int i = 0; i < BARS; i++)
        many[i] = (qkv_bar){sizeof(qkv_bar), "layer 1, head 1", -i, -i - 1, 1 - i, 0};
    const int32_t sides[] = {1, 64, SIDE};
    for (int i = 0; i < 3; i++) {
        const qkv_heatmap_panel panel = {
            sizeof panel, values + 1, sides[i], sides[i] - i % 2, "A", NULL, NULL, NULL, NULL};
        const qkv_heatmap map = {.size = sizeof(qkv_heatmap),
                                 .panels = &panel,
                                 .n_panels = 1,
                                 .color = {.label = "value"}};
        const char *path = scratch_path("size.png");
        write_chart(qkv_heatmap_write(&map, &PLAIN, path, &err), path, &err);
        const size_t counts[] = {1, 60, BARS};
        const qkv_bars bars = {.size = sizeof(qkv_bars),
                               .bars = many,
                               .n_bars = counts[i],
                               .axis = {.label = "value"}};
        write_chart(qkv_bars_write(&bars, &PLAIN, path, &err), path, &err);
        const qkv_series series = {sizeof series, NULL, values + 1, values + 1,
                                   NULL,          NULL, i ? 6 : 1};
        const qkv_lines lines = {.size = sizeof(qkv_lines), .series = &series, .n_series = 1};
        write_chart(qkv_lines_write(&lines, &PLAIN, path, &err), path, &err);
    }
    free(values);
    free(many);
}

/* Texts stand in the cells in place of numbers; what is too long is cut; words of an axis are all there. */
static void test_cell_texts(void **state) {
    (void)state;
    enum { N = 40 };
    static char names[N][16];
    const char *cols[N], *texts[2 * N];
    double values[2 * N];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "word%dlong", i);
        cols[i] = names[i];
    }
    for (int i = 0; i < 2 * N; i++) {
        texts[i] = i == 0 ? "seen" : i == 1 ? "muchtoolongforacellofanywidth" : "";
        values[i] = i / (2.0 * N);
    }
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    panel.values = values;
    panel.n_rows = 2;
    panel.n_cols = N;
    panel.col_labels = cols;
    panel.cell_texts = texts;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = &panel;
    map.n_panels = 1;
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    style.text = QKV_TEXT_TEXT;
    char *bytes = NULL;
    size_t n = 0;
    qkv_error err = {0};
    assert_int_equal(qkv_heatmap_render(&map, &style, "svg", &bytes, &n, &err), QKV_OK);
    char *svg = calloc(n + 1, 1);
    assert_non_null(svg);
    memcpy(svg, bytes, n);
    assert_non_null(strstr(svg, ">seen<"));
    assert_non_null(strstr(svg, ">muchto"));
    assert_null(strstr(svg, "ofanywidth"));
    assert_null(strstr(svg, ">.50<")); /* no numbers */
    for (int i = 0; i < N; i++) assert_non_null(strstr(svg, names[i]));
    free(svg);
    qkv_bytes_free(bytes);
}

/* Whether anything on the page has this colour. */
static int has_color(const char *svg, int r, int g, int b) {
    for (const char *at = svg; (at = strstr(at, "rgb(")); at++) {
        double x, y, z;
        if (sscanf(at, "rgb(%lf%%, %lf%%, %lf%%)", &x, &y, &z) == 3 && fabs(x * 2.55 - r) < 1 &&
            fabs(y * 2.55 - g) < 1 && fabs(z * 2.55 - b) < 1)
            return 1;
    }
    return 0;
}

/* A hue for each category, and a bar of their names: no number of it means a category. */
static void test_categories(void **state) {
    (void)state;
    const double values[] = {1, 1, 0.2, 0};
    const int32_t which[] = {0, 1, 1, -1};
    const char *const names[] = {"resting", "copying"};
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    panel.values = values;
    panel.n_rows = panel.n_cols = 2;
    panel.cell_categories = which;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = &panel;
    map.n_panels = 1;
    map.color.high = 1;
    map.categories = names;
    map.n_categories = 2;
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    style.text = QKV_TEXT_TEXT;
    char *bytes = NULL;
    size_t n = 0;
    qkv_error err = {0};
    assert_int_equal(qkv_heatmap_render(&map, &style, "svg", &bytes, &n, &err), QKV_OK);
    char *svg = calloc(n + 1, 1);
    assert_non_null(svg);
    memcpy(svg, bytes, n);
    assert_true(has_color(svg, 0x56, 0xb4, 0xe9));  /* resting, 1 */
    assert_true(has_color(svg, 0x8c, 0x51, 0x0a));  /* copying, 1; 0.2 is paler */
    assert_true(has_color(svg, 0xe6, 0xe6, 0xe6));  /* none */
    assert_false(has_color(svg, 0xe6, 0x9f, 0x00)); /* there is no third */
    for (int i = 0; i < 2; i++) assert_non_null(strstr(svg, names[i]));
    assert_non_null(strstr(svg, ">none<"));
    assert_null(strstr(svg, ">0.5<"));
    free(svg);
    qkv_bytes_free(bytes);
    /* A colour map that is asked for shows the values alone. */
    bytes = NULL;
    map.colormap = QKV_COLORMAP_VIRIDIS;
    assert_int_equal(qkv_heatmap_render(&map, &style, "svg", &bytes, &n, &err), QKV_OK);
    qkv_bytes_free(bytes);
    map.colormap = QKV_COLORMAP_AUTO;
    const int32_t wrong[] = {0, 1, 2, -1};
    panel.cell_categories = wrong;
    assert_int_equal(qkv_heatmap_render(&map, &style, "svg", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    panel.cell_categories = NULL;
    assert_int_equal(qkv_heatmap_render(&map, &style, "svg", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    panel.cell_categories = which;
    map.n_categories = 8;
    assert_int_equal(qkv_heatmap_render(&map, &style, "svg", &bytes, &n, &err), QKV_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_places),     cmocka_unit_test(test_log_ticks),
        cmocka_unit_test(test_broken_axis),    cmocka_unit_test(test_linear_ranges),
        cmocka_unit_test(test_two_ticks),      cmocka_unit_test(test_page),
        cmocka_unit_test(test_lines_places),   cmocka_unit_test(test_bars_places),
        cmocka_unit_test(test_heatmap_places), cmocka_unit_test(test_every_format),
        cmocka_unit_test(test_no_value),       cmocka_unit_test(test_band_has_gaps),
        cmocka_unit_test(test_lines_errors),   cmocka_unit_test(test_other_errors),
        cmocka_unit_test(test_extreme_sizes),  cmocka_unit_test(test_cell_texts),
        cmocka_unit_test(test_categories),
    };
    return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
