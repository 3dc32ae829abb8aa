/*
 * What is drawn are the values: pixels read back from PNG files, at every length of prompt. A
 * column of weight 1 is drawn as 1, masked cells are not zeros, colours of signed values have their
 * middle at 0.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/draw.h"
#include "draw/resolution.h"
#include "qkv/chart.h"
#include "support/figures.h"
#include "support/scratch.h"

/* A PNG that was written, and where its panels are. */
typedef struct picture {
    cairo_surface_t *image;
    qkv_grid_report report;
    qkv_layout layout;
} picture;

static picture draw(const qkv_grid *grid, const qkv_grid_style *style) {
    picture made = {.report = QKV_GRID_REPORT_INIT};
    qkv_grid_style grown = *style;
    qkv_lettering lettering;
    const char *path = scratch_path("pixels.png");
    grown.panel_size = qkv_resolution_panel_size(grid, style);
    assert_int_equal(qkv_grid_check(grid, style, path, &made.report, NULL), QKV_OK);
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    assert_int_equal(qkv_layout_make(&made.layout, grid, &grown, &lettering, NULL), QKV_OK);
    qkv_lettering_close(&lettering);
    write_ok(grid, style, path);
    made.image = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(made.image), CAIRO_STATUS_SUCCESS);
    return made;
}

static void release(picture *made) {
    cairo_surface_destroy(made->image);
    qkv_layout_release(&made->layout);
}

static uint32_t pixel(cairo_surface_t *image, long x, long y) {
    const unsigned char *data = cairo_image_surface_get_data(image);
    const unsigned char *line = data + y * cairo_image_surface_get_stride(image);
    uint32_t value;
    memcpy(&value, line + 4 * x, 4);
    return value & 0xffffff;
}

/* The pixel of a cell of a panel, found as a reader would: by its share of the panel's side. */
static uint32_t cell_pixel(const picture *made, const qkv_grid *grid, int32_t panel, int32_t row,
                           int32_t col) {
    const qkv_panel_data *data = &grid->panels[panel];
    const qkv_painter painter = {.pixels = made->report.dpi / 72};
    const qkv_box box = qkv_paint_snap(&painter, &made->layout.panels[panel]);
    const double x = box.x + (col + 0.5) * box.width / data->n_cols;
    const double y = box.y + (row + 0.5) * box.height / data->n_rows;
    return pixel(made->image, (long)(x * painter.pixels), (long)(y * painter.pixels));
}

static float *zeros(int32_t n) {
    float *values = calloc((size_t)n * (size_t)n, sizeof *values);
    assert_non_null(values);
    return values;
}

/* Weight 1 in the first column and, from there on, in the one in the middle; else 0. */
static float *two_columns(int32_t n) {
    float *values = zeros(n);
    for (int32_t r = 0; r < n; r++) {
        values[(size_t)r * (size_t)n] = 1;
        if (r >= n / 2) values[(size_t)r * (size_t)n + (size_t)n / 2] = 1;
    }
    return values;
}

static qkv_grid *causal_grid(int32_t side, float *values, int32_t n) {
    qkv_grid *grid = make_grid(side, side);
    for (int32_t i = 0; i < side * side; i++) {
        set_panel(grid, i / side, i % side,
                  &(qkv_panel){.size = sizeof(qkv_panel),
                               .values = values,
                               .n_rows = n,
                               .n_cols = n,
                               .causal = 1,
                               .borrowed = 1});
    }
    return grid;
}

static void check_columns(const qkv_grid *grid, const qkv_grid_style *style, int32_t n,
                          int32_t cells_per_pixel) {
    const uint32_t one = qkv_grid_color(style, 1), zero = qkv_grid_color(style, 0);
    picture made = draw(grid, style);
    assert_int_equal(made.report.cells_per_pixel, cells_per_pixel);
    for (int32_t p = 0; p < grid->rows * grid->cols; p++) {
        for (int32_t r = 0; r < n; r++) {
            assert_int_equal(cell_pixel(&made, grid, p, r, 0), one);
            if (r >= n / 2) assert_int_equal(cell_pixel(&made, grid, p, r, n / 2), one);
        }
        assert_int_equal(cell_pixel(&made, grid, p, n - 1, n / 4), zero);
        const int is_wide =
            made.layout.panels[p].width * made.report.dpi / 72 >= QKV_STRONG_PIXELS * n;
        if (cells_per_pixel == 1 && is_wide) {
            assert_int_equal(cell_pixel(&made, grid, p, n - 1, 1), zero);
            assert_int_equal(cell_pixel(&made, grid, p, n - 1, n / 2 - 1), zero);
            assert_int_equal(cell_pixel(&made, grid, p, n - 1, n / 2 + 1), zero);
        }
        assert_int_equal(cell_pixel(&made, grid, p, 0, n - 1), 0xffffff);
    }
    release(&made);
}

static void test_columns(void **state) {
    (void)state;
    static const int32_t sizes[] = {12, 60, 71, 160, 177, 354, 355, 600, 1001, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float *values = two_columns(sizes[i]);
        qkv_grid *grid = causal_grid(1, values, sizes[i]);
        qkv_grid_style style = plain_style();
        style.cell_values = 0;
        style.scale = (qkv_scale)(i % 3);
        check_columns(grid, &style, sizes[i], sizes[i] > 2083 ? 2 : 1);
        qkv_grid_free(grid);
        free(values);
    }
}

/* Nine panels of 4096 x 4096 are more than a printed page can show. */
static void test_columns_of_nine_panels(void **state) {
    (void)state;
    float *values = two_columns(4096);
    qkv_grid *grid = causal_grid(3, values, 4096);
    qkv_grid_style style = plain_style();
    check_columns(grid, &style, 4096, 5);
    qkv_grid_free(grid);
    free(values);
}

/* Sizes that are fixed are kept, and a weight of 1 too. */
static void test_columns_of_fixed_size(void **state) {
    (void)state;
    static const int32_t sizes[] = {355, 600, 1420};
    static const int32_t shares[] = {2, 2, 5};
    for (size_t i = 0; i < 3; i++) {
        float *values = two_columns(sizes[i]);
        qkv_grid *grid = causal_grid(1, values, sizes[i]);
        qkv_grid_style style = plain_style();
        style.fixed_dpi = style.fixed_panel_size = 1;
        check_columns(grid, &style, sizes[i], shares[i]);
        qkv_grid_free(grid);
        free(values);
    }
}

static void test_signed_pooling(void **state) {
    (void)state;
    enum { N = 1000 };
    float *values = zeros(N);
    for (size_t i = 0; i < (size_t)N * N; i++) values[i] = i % 8 == 3 ? -0.5f : 0.1f;
    qkv_grid *grid = causal_grid(1, values, N);
    qkv_grid_style style = plain_style();
    style.low = -1;
    style.diverging = 1;
    style.panel_size = 60; /* 125 pixels at 150 dpi: eight cells each */
    style.fixed_dpi = style.fixed_panel_size = 1;
    picture made = draw(grid, &style);
    assert_int_equal(made.report.cells_per_pixel, 8);
    for (int32_t r = 4; r < N; r += 8) {
        assert_int_equal(cell_pixel(&made, grid, 0, r, N - r), qkv_grid_color(&style, -0.5));
    }
    release(&made);
    style.pooling = QKV_POOLING_LARGEST;
    made = draw(grid, &style);
    assert_int_equal(cell_pixel(&made, grid, 0, 4, 4), qkv_grid_color(&style, 0.1f));
    release(&made);
    qkv_grid_free(grid);
    free(values);
}

static void test_note(void **state) {
    (void)state;
    static const struct {
        qkv_pixel_cells cells;
        int diverging;
        const char *text;
    } cases[] = {
        {{1, 1, 0, 0, 0}, 0, "layer 1"},
        {{4, 4, 0, 1, 0}, 0, "layer 1 \u00b7 a pixel shows the largest of 4 \u00d7 4 cells"},
        {{3, 2, 1, 1, 0}, 0, "layer 1 \u00b7 a pixel shows the largest of up to 3 \u00d7 2 cells"},
        {{2, 2, 0, 1, 0},
         1,
         "layer 1 \u00b7 a pixel shows the value of largest magnitude of 2 \u00d7 2 cells"},
        {{1, 1, 0, 0, 2},
         0,
         "layer 1 \u00b7 keys and distances that hold a tenth of the weight or more are drawn at "
         "least 3 pixels wide"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_grid_style style = plain_style();
        qkv_text text = {0};
        style.diverging = cases[i].diverging;
        qkv_text_puts(&text, "layer 1");
        qkv_resolution_note(&text, &cases[i].cells, &style);
        assert_string_equal(text.data, cases[i].text);
        qkv_text_release(&text);
    }
}

/* ---- cells alone ---- */

/* The cells of a causal n x n map, `side` pixels wide from (`x`, `y`) on, on a white page on which
 * cairo draws nothing, as where its memory is short. */
static cairo_surface_t *paint_cells(const float *values, int32_t n, int page, int x, int y,
                                    int side, const qkv_grid_style *style) {
    qkv_grid *grid = causal_grid(1, (float *)values, n);
    qkv_color_table colors;
    qkv_color_table_make(&colors, style);
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, page, page);
    cairo_t *cr = cairo_create(image);
    cairo_rectangle(cr, 0, 0, 0, 0);
    cairo_clip(cr);
    assert_int_equal(qkv_paint_background(cr, NULL), QKV_OK);
    for (int i = 0; i < page * page; i++)
        assert_int_equal(pixel(image, i % page, i / page), 0xffffff);
    qkv_layout layout = {.scale = 1};
    const qkv_painter painter = {
        .cr = cr, .pixels = 2, .grid = grid, .style = style, .layout = &layout, .colors = &colors};
    const qkv_box box = {x / 2.0, y / 2.0, side / 2.0, side / 2.0};
    assert_int_equal(qkv_paint_cells(&painter, grid->panels, &box, NULL), QKV_OK);
    cairo_destroy(cr);
    qkv_grid_free(grid);
    return image;
}

static void test_pixels_without_cairo(void **state) {
    (void)state;
    enum { N = 12 };
    float *values = two_columns(N);
    const qkv_grid_style style = plain_style();
    cairo_surface_t *image = paint_cells(values, N, 400, 40, 60, 240, &style);
    assert_int_equal(pixel(image, 39, 61), 0xffffff);
    assert_int_equal(pixel(image, 40, 60), qkv_grid_color(&style, 1));
    assert_int_equal(pixel(image, 41, 299), qkv_grid_color(&style, 1));
    assert_int_equal(pixel(image, 279, 299), qkv_grid_color(&style, 0));
    assert_int_equal(pixel(image, 280, 299), 0xffffff);
    assert_int_equal(pixel(image, 41, 300), 0xffffff);
    cairo_surface_destroy(image);
    free(values);
}

/* All weight is at one distance. In every row it has three pixels, and no more: around the middle of
 * its cell, or beside the mask; where cells have three pixels, those of the cell. */
static void test_three_pixels(void **state) {
    (void)state;
    static const struct {
        int32_t n, side;
    } cases[] = {{124, 200}, {124, 260}, {500, 200}, {500, 760}, {124, 372}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int32_t distance = 0; distance < 40; distance = 3 * distance + 1) {
            const int32_t n = cases[i].n, side = cases[i].side;
            const qkv_grid_style style = plain_style();
            float *values = zeros(n);
            for (int32_t r = distance; r < n; r++)
                values[(size_t)r * (size_t)n + (size_t)(r - distance)] = 1;
            cairo_surface_t *image = paint_cells(values, n, side, 0, 0, side, &style);
            for (int32_t y = side / 2; y < side; y++) {
                const double cell = (double)n / side, middle = ((y + 0.5) * cell - distance) / cell;
                int count = 0, first = -1;
                for (int32_t x = 0; x < side; x++) {
                    if (pixel(image, x, y) != qkv_grid_color(&style, 1)) continue;
                    if (!count++) first = x;
                }
                if (count < 3 || count > (cell > 1 ? 4 : 3))
                    fail_msg("%d tokens, %d pixels, distance %d, line %d: %d", n, side, distance, y,
                             count);
                /* Half a cell to either side is still the cell. */
                const double off = first + count / 2.0 - middle;
                assert_true(fabs(off) <= 0.5 / cell + (distance * side < 3 * n ? 2 : 1.5));
            }
            cairo_surface_destroy(image);
            free(values);
        }
    }
}

/* ---- long prompts ---- */

/* Three quarters of the weight on the first key, a fifth at one distance, and a few on one other key. */
static float *sink_and_stripe(int32_t n, int32_t distance) {
    float *values = zeros(n);
    for (int32_t r = 0; r < n; r++) {
        float *row = values + (size_t)r * (size_t)n;
        row[0] = 0.75f;
        if (r >= distance) row[r - distance] += 0.2f;
        if (r >= n / 8) row[n / 8] += 0.05f;
    }
    return values;
}

/* Neighbouring pixels of a row that have the colour of the one in a cell's middle. */
static long run_length(const picture *made, const qkv_grid *grid, int32_t row, int32_t col) {
    const qkv_panel_data *data = &grid->panels[0];
    const double s = made->report.dpi / 72;
    const qkv_painter painter = {.pixels = s};
    const qkv_box box = qkv_paint_snap(&painter, &made->layout.panels[0]);
    const long y = (long)((box.y + (row + 0.5) * box.height / data->n_rows) * s);
    const long x = (long)((box.x + (col + 0.5) * box.width / data->n_cols) * s);
    const uint32_t color = pixel(made->image, x, y);
    long left = x, right = x;
    while (pixel(made->image, left - 1, y) == color) left--;
    while (pixel(made->image, right + 1, y) == color) right++;
    return right - left + 1;
}

static void test_long_prompts(void **state) {
    (void)state;
    static const int32_t sizes[] = {500, 2000, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int32_t n = sizes[i], distance = n / 3, row = 4 * n / 5;
        float *values = sink_and_stripe(n, distance);
        qkv_grid *grid = causal_grid(1, values, n);
        qkv_grid_style style = plain_style();
        picture made = draw(grid, &style);
        assert_int_equal(made.report.cells_per_pixel, n > 2083 ? 2 : 1);
        assert_true(cairo_image_surface_get_width(made.image) <= 2600);
        assert_true(made.layout.width <= 640 && made.layout.panels[0].width <= 500);
        assert_int_equal(cell_pixel(&made, grid, 0, row, 0), qkv_grid_color(&style, 0.75f));
        assert_int_equal(cell_pixel(&made, grid, 0, row, row - distance),
                         qkv_grid_color(&style, 0.2f));
        const double s = made.report.dpi / 72;
        const long wide = (long)fmax(ceil(made.layout.panels[0].width * s / n), 3);
        assert_int_equal(run_length(&made, grid, row, 0), wide);
        assert_in_range(run_length(&made, grid, row, row - distance), 3, wide + 1);
        assert_true(run_length(&made, grid, row, n / 8) <= 2); /* little of the weight */
        release(&made);
        qkv_grid_free(grid);
        free(values);
    }
}

/* The diagonal holds all weight: it is wide, and not over what the mask took away. */
static void test_diagonal_keeps_mask(void **state) {
    (void)state;
    enum { N = 1000 };
    float *values = zeros(N);
    for (size_t i = 0; i < N; i++) values[i * N + i] = 1;
    qkv_grid *grid = causal_grid(1, values, N);
    for (int masked = QKV_MASKED_ZERO; masked <= QKV_MASKED_WHITE; masked++) {
        qkv_grid_style style = plain_style();
        style.masked = (qkv_masked)masked;
        picture made = draw(grid, &style);
        const uint32_t one = qkv_grid_color(&style, 1);
        assert_true(run_length(&made, grid, N / 2, N / 2) >= 3);
        assert_int_equal(cell_pixel(&made, grid, 0, N / 2, N / 2 - 1), one);
        assert_int_not_equal(cell_pixel(&made, grid, 0, N / 2, N / 2 + 1), one);
        release(&made);
    }
    qkv_grid_free(grid);
    free(values);
}

/* ---- masks ---- */

static void check_masked(const qkv_panel *panel, qkv_masked look, const char *wanted) {
    qkv_grid *grid = make_grid(1, 1);
    set_panel(grid, 0, 0, panel);
    qkv_grid_style style = plain_style();
    style.cell_values = 0;
    style.masked = look;
    picture made = draw(grid, &style);
    for (int32_t i = 0; i < panel->n_rows * panel->n_cols; i++) {
        const uint32_t found = cell_pixel(&made, grid, 0, i / panel->n_cols, i % panel->n_cols);
        const uint32_t zero = qkv_grid_color(&style, 0);
        if (wanted[i] == '.') assert_int_equal(found, zero);
        if (wanted[i] == '1') assert_int_equal(found, qkv_grid_color(&style, 1));
        if (wanted[i] == 'm' && look == QKV_MASKED_WHITE) assert_int_equal(found, 0xffffff);
        if (wanted[i] == 'm') assert_int_not_equal(found, zero);
    }
    release(&made);
    qkv_grid_free(grid);
}

/* The cell in the corner holds a weight that an edit put there; it is drawn. */
static void test_masked_cells(void **state) {
    (void)state;
    const float values[16] = {1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    qkv_panel panel = {.size = sizeof panel, .values = values, .n_rows = 4, .n_cols = 4};
    check_masked(&panel, QKV_MASKED_WHITE, "1..11...1...1...");
    panel.causal = 1;
    check_masked(&panel, QKV_MASKED_ZERO, "1..11...1...1...");
    check_masked(&panel, QKV_MASKED_WHITE, "1mm11.mm1..m1...");
    check_masked(&panel, QKV_MASKED_HATCH, "1mm11.mm1..m1...");
    panel.window = 2;
    check_masked(&panel, QKV_MASKED_AUTO, "1mm11.mm1..m1m..");
    panel.causal = 0;
    check_masked(&panel, QKV_MASKED_WHITE, "1.m11..m1...1m..");
    panel.window = 0;
    panel.causal = 1;
    panel.first_col = 1;
    check_masked(&panel, QKV_MASKED_WHITE, "1mm11mmm1.mm1..m");
    panel.extra_cols = 2; /* columns 2 and 3 are the keys 1 and 2 */
    check_masked(&panel, QKV_MASKED_WHITE, "1.m11..m1...1...");
}

/* Hatching has both of its colours, and nothing of a weight's, in small and in pooled panels. */
static void test_hatching(void **state) {
    (void)state;
    for (int32_t n = 12; n < 1000; n += 600) {
        float *values = two_columns(n);
        qkv_grid *grid = causal_grid(1, values, n);
        qkv_grid_style style = plain_style();
        style.cell_values = 0;
        style.masked = QKV_MASKED_HATCH;
        picture made = draw(grid, &style);
        const qkv_box *box = &made.layout.panels[0];
        const double s = made.report.dpi / 72;
        int white = 0, lines = 0;
        for (int i = 0; i < 900; i++) {
            const double x = box->x + box->width * 0.8 + i % 30, y = box->y + 2 + i / 30.0;
            const uint32_t found = pixel(made.image, (long)(x * s), (long)(y * s));
            white += found == 0xffffff;
            lines += found == QKV_HATCH_COLOR;
        }
        assert_int_equal(white + lines, 900);
        assert_true(white > 200 && lines > 50);
        release(&made);
        write_ok(grid, &style, scratch_path("hatch.svg"));
        qkv_grid_free(grid);
        free(values);
    }
}

/* ---- colours ---- */

static void test_colormaps(void **state) {
    (void)state;
    static const uint32_t ends[][2] = {{0x3b4cc0, 0xb40426}, {0x3b4cc0, 0xb40426},
                                       {0x440154, 0xfde725}, {0x00204d, 0xffea46},
                                       {0x000004, 0xfcfdbf}, {0xe5e5e5, 0x131313}};
    for (int map = QKV_COLORMAP_AUTO; map <= QKV_COLORMAP_GREY; map++) {
        qkv_grid_style style = QKV_GRID_STYLE_INIT;
        style.colormap = (qkv_colormap)map;
        assert_int_equal(qkv_grid_color(&style, 0), ends[map][0]);
        assert_int_equal(qkv_grid_color(&style, 1), ends[map][1]);
        double before = qkv_color_luminance(ends[map][0]);
        for (int i = 1; i <= 512; i++) {
            const uint32_t color = qkv_grid_color(&style, i / 512.0);
            const double now = qkv_color_luminance(color);
            assert_int_not_equal(color, 0xffffff);
            if (map == QKV_COLORMAP_GREY) assert_true(now <= before);
            if (map > QKV_COLORMAP_COOLWARM && map < QKV_COLORMAP_GREY)
                assert_true(now >= before - 0.003);
            before = now;
        }
    }
    /* A third and a half of the way, as published: the curve passes within rounding. */
    assert_int_equal(qkv_colormap_at(QKV_COLORMAP_VIRIDIS, 1 / 3.0), 0x31688e);
    assert_int_equal(qkv_colormap_at(QKV_COLORMAP_MAGMA, 2 / 3.0), 0xf1605d);
    const uint32_t middle = qkv_colormap_at(QKV_COLORMAP_VIRIDIS, 0.5); /* 0x21918c */
    assert_in_range(middle >> 16, 0x1f, 0x24);
    assert_in_range(middle >> 8 & 0xff, 0x8f, 0x93);
    assert_in_range(middle & 0xff, 0x8a, 0x8e);
}

static void test_diverging_needs_a_middle(void **state) {
    (void)state;
    float value = 0;
    qkv_error err;
    qkv_grid *grid = causal_grid(1, &value, 1);
    qkv_grid_style style = plain_style();
    style.low = -1;
    style.diverging = 1;
    style.colormap = QKV_COLORMAP_MAGMA;
    const int status = qkv_grid_write(grid, &style, scratch_path("x.png"), &err);
    assert_int_equal(status, QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "magma"));
    style.diverging = 0;
    style.masked = (qkv_masked)9;
    assert_int_equal(qkv_grid_write(grid, &style, scratch_path("x.png"), &err), QKV_ERR_ARGUMENT);
    qkv_grid_free(grid);
}

static int has_color(const char *path, uint32_t color) {
    cairo_surface_t *image = cairo_image_surface_create_from_png(path);
    int found = 0;
    assert_int_equal(cairo_surface_status(image), CAIRO_STATUS_SUCCESS);
    for (int y = 0; y < cairo_image_surface_get_height(image); y++) {
        for (int x = 0; x < cairo_image_surface_get_width(image); x++) {
            found += pixel(image, x, y) == color;
        }
    }
    cairo_surface_destroy(image);
    return found > 2000; /* a cell, and not a step of the colour bar */
}

/* Values on both sides of 0: grey at 0, the same reach to both sides; else viridis. */
static void test_heatmaps(void **state) {
    (void)state;
    const double signs[] = {-1, 0, 3, 3}, one_sign[] = {1, 2, 3, 5};
    const char *path = scratch_path("map.png");
    const qkv_chart_style page = QKV_CHART_STYLE_INIT;
    qkv_heatmap_panel panel = {.size = sizeof panel, .values = signs, .n_rows = 2, .n_cols = 2};
    const qkv_heatmap map = {.size = sizeof map, .panels = &panel, .n_panels = 1};
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    style.low = -3;
    style.high = 3;
    style.diverging = 1;
    assert_int_equal(qkv_heatmap_write(&map, &page, path, NULL), QKV_OK);
    for (int i = 0; i < 4; i++) assert_true(has_color(path, qkv_grid_color(&style, signs[i])));
    assert_int_equal(qkv_grid_color(&style, 0), 0xdddddd);
    panel.values = one_sign;
    assert_int_equal(qkv_heatmap_write(&map, &page, path, NULL), QKV_OK);
    assert_true(has_color(path, 0x440154));
    assert_true(has_color(path, 0xfde725));
}

/* A panel of zeros says so: its middle is not all of one colour. */
static void test_zeros_are_told(void **state) {
    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        float *values = zeros(9);
        if (!zero) values[40] = 1e-30f;
        qkv_grid *grid = causal_grid(1, values, 9);
        qkv_grid_style style = plain_style();
        style.masked = QKV_MASKED_ZERO;
        style.cell_values = 0;
        picture made = draw(grid, &style);
        const qkv_box *box = &made.layout.panels[0];
        int other = 0;
        for (int i = 0; i < 100; i++) {
            const double x = box->x + box->width * (0.25 + 0.005 * i);
            const double y = box->y + box->height / 2;
            const double s = made.report.dpi / 72;
            other += pixel(made.image, (long)(x * s), (long)(y * s)) != qkv_grid_color(&style, 0);
        }
        assert_int_equal(other > 50, zero);
        release(&made);
        qkv_grid_free(grid);
        free(values);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_columns_of_nine_panels),
        cmocka_unit_test(test_columns_of_fixed_size),
        cmocka_unit_test(test_signed_pooling),
        cmocka_unit_test(test_note),
        cmocka_unit_test(test_pixels_without_cairo),
        cmocka_unit_test(test_three_pixels),
        cmocka_unit_test(test_long_prompts),
        cmocka_unit_test(test_diagonal_keeps_mask),
        cmocka_unit_test(test_masked_cells),
        cmocka_unit_test(test_hatching),
        cmocka_unit_test(test_colormaps),
        cmocka_unit_test(test_diverging_needs_a_middle),
        cmocka_unit_test(test_heatmaps),
        cmocka_unit_test(test_zeros_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
