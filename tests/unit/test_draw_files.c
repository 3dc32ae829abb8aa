/*
 * Figures as files: the same bytes every time, recipes, errors, where an SVG has its cells.
 */
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
#include <glib.h>
#include <png.h>

#include "base/file.h"
#include "base/text.h"
#include "draw/draw.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "support/svg.h"

/* ---- files ---- */

static void test_memory(void **state) {
    (void)state;
    static const char *const formats[] = {"png", "svg", "pdf"};
    qkv_grid *grid = token_grid(2, 2, 9, 0, 1);
    qkv_grid_style style = plain_style();
    style.recipe = "a recipe";
    for (int i = 0; i < 3; i++) {
        char name[64], *bytes = NULL;
        size_t size, n_bytes = 0;
        snprintf(name, sizeof name, "memory.%s", formats[i]);
        write_ok(grid, &style, scratch_path(name));
        char *file = slurp(scratch_path(name), &size);
        assert_int_equal(qkv_grid_render(grid, &style, formats[i], &bytes, &n_bytes, NULL), QKV_OK);
        assert_int_equal(n_bytes, size);
        assert_memory_equal(bytes, file, size);
        free(file);
        qkv_bytes_free(bytes);
    }
    char *bytes = (char *)grid;
    size_t n_bytes = 7;
    qkv_error err;
    assert_int_equal(qkv_grid_render(grid, &style, "bmp", &bytes, &n_bytes, &err),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(err.message, "cannot draw as 'bmp': the format is png, svg or pdf");
    assert_null(bytes);
    assert_int_equal(n_bytes, 0);
    assert_int_equal(qkv_grid_render(grid, &style, NULL, &bytes, &n_bytes, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_grid_render(grid, &style, "png", NULL, &n_bytes, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_grid_render(NULL, &style, "png", &bytes, &n_bytes, &err),
                     QKV_ERR_ARGUMENT);
    qkv_grid_free(grid);
}

static void test_same_bytes(void **state) {
    (void)state;
    static const char *const suffixes[] = {"png", "svg", "pdf"};
    for (int32_t n = 9; n < 100; n += 70) {
        qkv_grid *grid = token_grid(2, 2, n, 0, 1);
        qkv_grid_style style = plain_style();
        style.recipe = "qkv figure modify -o out";
        for (int i = 0; i < 3; i++) {
            char *data[2];
            size_t size[2];
            for (int turn = 0; turn < 2; turn++) {
                char name[64];
                snprintf(name, sizeof name, "same%d.%s", turn, suffixes[i]);
                write_ok(grid, &style, scratch_path(name));
                data[turn] = slurp(scratch_path(name), &size[turn]);
            }
            assert_int_equal(size[0], size[1]);
            assert_memory_equal(data[0], data[1], size[0]);
            free(data[0]);
            free(data[1]);
        }
        qkv_grid_free(grid);
    }
}

static const char RECIPE[] = "qkv figure modify -p 'ε < 1 & \"more\" > less'\n\tsecond line";

typedef struct memory_file {
    const char *data;
    size_t left;
} memory_file;

static void read_bytes(png_structp png, png_bytep bytes, size_t length) {
    memory_file *file = png_get_io_ptr(png);
    if (length > file->left) png_error(png, "the file ends too early");
    memcpy(bytes, file->data, length);
    file->data += length;
    file->left -= length;
}

/* libpng's own reader, which checks every CRC and ends the test's process where one is wrong. */
static void check_png(const char *data, size_t size) {
    memory_file file = {data, size};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_textp texts = NULL;
    int n_texts = 0;
    png_set_read_fn(png, &file, read_bytes);
    png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    assert_int_equal(file.left, 0);
    assert_int_equal(png_get_x_pixels_per_meter(png, info), 5906); /* 150 dpi */
    assert_int_equal(png_get_y_pixels_per_meter(png, info), 5906);
    assert_int_equal(png_get_text(png, info, &texts, &n_texts), 1);
    assert_int_equal(n_texts, 1);
    assert_int_equal(texts[0].compression, PNG_ITXT_COMPRESSION_NONE);
    assert_string_equal(texts[0].key, "qkv-recipe");
    assert_string_equal(texts[0].text, RECIPE);
    png_destroy_read_struct(&png, &info, NULL);
}

/* glib's parser checks that the SVG is well-formed and hands over the text of <metadata>. */
static void on_text(GMarkupParseContext *context, const char *text, gsize length, gpointer data,
                    GError **error) {
    (void)error;
    if (strcmp(g_markup_parse_context_get_element(context), "metadata") != 0) return;
    qkv_text_append(data, text, length);
}

static void check_svg_metadata(const char *data, size_t size) {
    const GMarkupParser parser = {.text = on_text};
    qkv_text found = {0};
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &found, NULL);
    assert_true(g_markup_parse_context_parse(context, data, (gssize)size, NULL));
    assert_true(g_markup_parse_context_end_parse(context, NULL));
    assert_string_equal(found.data, RECIPE);
    g_markup_parse_context_free(context);
    qkv_text_release(&found);
}

static void test_recipe(void **state) {
    (void)state;
    qkv_grid *grid = token_grid(1, 1, 4, 0, 1);
    qkv_grid_style style = plain_style();
    style.recipe = RECIPE;
    size_t size;
    write_ok(grid, &style, scratch_path("recipe.png"));
    char *data = slurp(scratch_path("recipe.png"), &size);
    check_png(data, size);
    free(data);
    write_ok(grid, &style, scratch_path("recipe.SVG"));
    data = slurp(scratch_path("recipe.SVG"), &size);
    check_svg_metadata(data, size);
    free(data);
    qkv_grid_free(grid);
}

static void expect_error(const qkv_grid *grid, const qkv_grid_style *style, const char *path,
                         int status, const char *part) {
    qkv_error err = {0};
    assert_int_equal(qkv_grid_write(grid, style, path, &err), status);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static void test_write_errors(void **state) {
    (void)state;
    qkv_grid *grid = token_grid(1, 1, 4, 0, 1);
    qkv_grid_style style = plain_style();
    expect_error(grid, &style, "out.gif", QKV_ERR_ARGUMENT, ".png, .svg or .pdf");
    expect_error(grid, &style, "png", QKV_ERR_ARGUMENT, ".png, .svg or .pdf");
    expect_error(grid, &style, scratch_path("none/out.png"), QKV_ERR_IO, "cannot write");
    assert_int_equal(symlink("/dev/full", scratch_path("full.png")), 0);
    expect_error(grid, &style, scratch_path("full.png"), QKV_ERR_IO, "No space left");
    expect_error(NULL, &style, "out.png", QKV_ERR_ARGUMENT, "grid");
    expect_error(grid, NULL, "out.png", QKV_ERR_ARGUMENT, "style");
    expect_error(grid, &style, NULL, QKV_ERR_ARGUMENT, "path");
    style.dpi = 20000;
    expect_error(grid, &style, scratch_path("big.png"), QKV_ERR_ARGUMENT, "use a dpi of");
    qkv_grid_free(grid);
}

static void test_style_errors(void **state) {
    (void)state;
    qkv_grid *grid = token_grid(1, 1, 4, 0, 1);
    const qkv_grid_style good = plain_style();
#define REFUSED(part, ...)                                                                         \
    do {                                                                                           \
        qkv_grid_style style = good;                                                               \
        __VA_ARGS__;                                                                               \
        expect_error(grid, &style, scratch_path("bad.svg"), QKV_ERR_ARGUMENT, part);               \
    } while (0)
    REFUSED("dpi", style.dpi = 0);
    REFUSED("dpi", style.dpi = -1);
    REFUSED("dpi", style.dpi = (double)NAN);
    REFUSED("dpi", style.dpi = (double)INFINITY);
    REFUSED("panel size", style.panel_size = 0);
    REFUSED("panel size", style.panel_size = (double)NAN);
    REFUSED("panel size", style.panel_size = 1e9);
    REFUSED("range", style.low = 1);
    REFUSED("range", style.high = (double)NAN);
    REFUSED("diverging", style.diverging = 1);
    REFUSED("scale", style.scale = (qkv_scale)7);
    REFUSED("power scale", style.scale = QKV_SCALE_POWER; style.gamma = 0);
    REFUSED("log scale", style.scale = QKV_SCALE_LOG; style.log_floor = 0);
    REFUSED("log scale", style.scale = QKV_SCALE_LOG; style.log_floor = 2);
#undef REFUSED
    assert_int_not_equal(access(scratch_path("bad.svg"), F_OK), 0);
    qkv_grid_free(grid);
}

static void test_grid_errors(void **state) {
    (void)state;
    qkv_error err;
    qkv_grid *grid;
    assert_int_equal(qkv_grid_new(&grid, 0, 1, &err), QKV_ERR_ARGUMENT);
    assert_null(grid);
    assert_int_equal(qkv_grid_new(NULL, 1, 1, &err), QKV_ERR_ARGUMENT);
    grid = make_grid(2, 2);
    float values[6] = {0, 0, 0, 0, 0, 0};
    qkv_panel panel = {.size = sizeof(qkv_panel), .values = values, .n_rows = 2, .n_cols = 3};
    assert_int_equal(qkv_grid_set_panel(grid, 2, 0, &panel, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_grid_set_panel(grid, 0, -1, &panel, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_grid_set_panel(grid, 0, 0, NULL, &err), QKV_ERR_ARGUMENT);
    values[5] = NAN;
    assert_int_equal(qkv_grid_set_panel(grid, 1, 0, &panel, &err), QKV_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "panel (1, 0)"));
    assert_non_null(strstr(err.message, "row 1, column 2"));
    values[5] = INFINITY;
    assert_int_equal(qkv_grid_set_panel(grid, 1, 0, &panel, &err), QKV_ERR_NUMERIC);
    values[5] = 0;
    panel.n_cols = 0;
    assert_int_equal(qkv_grid_set_panel(grid, 0, 0, &panel, &err), QKV_ERR_ARGUMENT);
    panel.n_cols = 3;
    panel.values = NULL;
    assert_int_equal(qkv_grid_set_panel(grid, 0, 0, &panel, &err), QKV_ERR_ARGUMENT);
    qkv_grid_style style = plain_style();
    write_ok(grid, &style,
             scratch_path("empty.png")); /* a grid of no panels is a page without them */
    qkv_grid_free(grid);
    qkv_grid_free(NULL);
}

/* ---- SVGs ---- */

static void make_layout(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style) {
    qkv_lettering lettering;
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    assert_int_equal(qkv_layout_make(layout, grid, style, &lettering, NULL), QKV_OK);
    qkv_lettering_close(&lettering);
}

static char *draw_svg(const qkv_grid *grid, const qkv_grid_style *style) {
    size_t size;
    write_ok(grid, style, scratch_path("places.svg"));
    return slurp(scratch_path("places.svg"), &size);
}

/* Every cell of small maps has the colour of its value, in its place. */
static void test_svg_cells(void **state) {
    (void)state;
    qkv_grid *grid = token_grid(2, 2, 6, 1, 1);
    const qkv_grid_style style = plain_style();
    qkv_layout layout;
    make_layout(&layout, grid, &style);
    char *svg = draw_svg(grid, &style);
    for (int32_t p = 0; p < 4; p++) {
        const qkv_box *box = &layout.panels[p];
        const int32_t n = 6 + p / 2;
        const double pitch = box->width / n;
        float *values = causal(n, 2 - p % 2);
        for (int32_t i = 0; i < n * n; i++) {
            const long found =
                svg_color_at(svg, box->x + (i % n + 0.5) * pitch, box->y + (i / n + 0.5) * pitch);
            assert_int_equal(found, (long)qkv_grid_color(&style, values[i]));
        }
        free(values);
    }
    const svg_path bar = svg_find(svg, "fill", "url(#linear0)", 0);
    check_same_box(&bar.box, &layout.bar, "the colour bar");
    free(svg);
    qkv_layout_release(&layout);
    qkv_grid_free(grid);
}

/* Large maps are pictures that fill their panels; the bar is pointed where values lie beyond it. */
static void test_svg_pictures(void **state) {
    (void)state;
    qkv_grid *grid = token_grid(1, 2, 80, 0, 1);
    qkv_grid_style style = plain_style();
    style.low = -0.05, style.high = 0.05;
    style.fixed_panel_size = 1;
    style.diverging = 1;
    qkv_layout layout;
    make_layout(&layout, grid, &style);
    char *svg = draw_svg(grid, &style);
    for (int32_t p = 0; p < 2; p++) {
        char fill[32];
        snprintf(fill, sizeof fill, "url(#pattern%d)", (int)p);
        const svg_path picture = svg_find(svg, "fill", fill, 0);
        check_same_box(&picture.box, &layout.panels[p], "a picture");
    }
    const svg_path bar = svg_find(svg, "fill", "url(#linear0)", 0);
    check_same_box(&bar.box, &layout.bar, "the colour bar");
    assert_true(layout.bar_above && !layout.bar_below);
    check_same_place(bar.y[2], layout.bar.y, "the tip of the bar");
    check_same_place(bar.x[2], layout.bar.x + layout.bar.width / 2, "the tip of the bar");
    free(svg);
    qkv_layout_release(&layout);
    qkv_grid_free(grid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_recipe),       cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_style_errors), cmocka_unit_test(test_grid_errors),
        cmocka_unit_test(test_svg_cells),    cmocka_unit_test(test_svg_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
