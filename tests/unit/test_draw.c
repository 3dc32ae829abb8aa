/* Figures: colours, the cells of a PNG, layout, ticks, texts. test_pixels.c has long prompts. */
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

#include "draw/draw.h"
#include "draw/paint.h"
#include "draw/ticks.h"
#include "support/figures.h"
#include "support/scratch.h"

/* ---- colours ---- */

static void test_colors(void **state) {
    (void)state;
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    assert_int_equal(qkv_grid_color(&style, 0), 0x3b4cc0);
    assert_int_equal(qkv_grid_color(&style, 1), 0xb40426);
    assert_int_equal(qkv_grid_color(&style, 0.5), 0xdddddd);
    assert_int_equal(qkv_grid_color(&style, -3), 0x3b4cc0);
    assert_int_equal(qkv_grid_color(&style, 7), 0xb40426);
    assert_int_equal(qkv_grid_color(NULL, 0.5), 0xdddddd);
    style.scale = QKV_SCALE_LOG;
    assert_int_equal(qkv_grid_color(&style, 0), 0x3b4cc0);
    assert_int_equal(qkv_grid_color(&style, 1e-4), 0x3b4cc0);
    assert_int_equal(qkv_grid_color(&style, 1e-2), 0xdddddd);
    assert_int_equal(qkv_grid_color(&style, 1), 0xb40426);
    style.scale = QKV_SCALE_POWER;
    assert_int_equal(qkv_grid_color(&style, 0.25), 0xdddddd);
    for (int scale = QKV_SCALE_LINEAR; scale <= QKV_SCALE_POWER; scale++) {
        style.scale = (qkv_scale)scale;
        style.diverging = 1;
        style.low = -2, style.high = 2;
        assert_int_equal(qkv_grid_color(&style, 0), 0xdddddd);
        assert_int_equal(qkv_grid_color(&style, -2), 0x3b4cc0);
        assert_int_equal(qkv_grid_color(&style, 2), 0xb40426);
    }
}

/* Red only ever rises towards the grey, blue only ever falls from it: no bumps in the map. */
static void test_colors_are_monotone(void **state) {
    (void)state;
    uint32_t before = qkv_grid_color(NULL, 0);
    for (int i = 1; i <= 1000; i++) {
        const uint32_t color = qkv_grid_color(NULL, i / 1000.0);
        if (i <= 500) assert_true((color >> 16) >= (before >> 16));
        if (i > 520) assert_true((color & 0xff) <= (before & 0xff));
        before = color;
    }
}

static qkv_box panel_box(const qkv_grid *grid, const qkv_grid_style *style, int32_t index) {
    qkv_lettering lettering;
    qkv_layout layout;
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    assert_int_equal(qkv_layout_make(&layout, grid, style, &lettering, NULL), QKV_OK);
    const qkv_box box = layout.panels[index];
    qkv_layout_release(&layout);
    qkv_lettering_close(&lettering);
    return box;
}

static uint32_t pixel(cairo_surface_t *image, double x, double y) {
    const unsigned char *data = cairo_image_surface_get_data(image);
    const unsigned char *line = data + (ptrdiff_t)y * cairo_image_surface_get_stride(image);
    uint32_t value;
    memcpy(&value, line + 4 * (ptrdiff_t)x, 4);
    return value & 0xffffff;
}

static cairo_surface_t *read_png(const char *path) {
    cairo_surface_t *image = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(image), CAIRO_STATUS_SUCCESS);
    return image;
}

/* Every cell near its four corners and in its middle: no blending anywhere. */
static void check_cells(cairo_surface_t *image, const qkv_box *box, const qkv_grid_style *style,
                        const float *values, int32_t n) {
    static const double places[][2] = {
        {0.5, 0.5}, {0.15, 0.15}, {0.85, 0.15}, {0.15, 0.85}, {0.85, 0.85}};
    const double scale = style->dpi / 72, pitch = box->width / n;
    for (int32_t i = 0; i < n * n; i++) {
        const uint32_t wanted = qkv_grid_color(style, values[i]);
        for (size_t k = 0; k < 5; k++) {
            const double x = box->x + (i % n + places[k][0]) * pitch;
            const double y = box->y + (i / n + places[k][1]) * pitch;
            assert_int_equal(pixel(image, x * scale, y * scale), wanted);
        }
    }
}

static void test_png_cells(void **state) {
    (void)state;
    qkv_grid *grid = token_grid(3, 3, 9, 1, 1);
    const double resolutions[] = {150, 97, 300};
    for (int i = 0; i < 3; i++) {
        qkv_grid_style style = plain_style();
        style.dpi = resolutions[i];
        style.cell_values = 0;
        style.scale = (qkv_scale)i;
        write_ok(grid, &style, scratch_path("cells.png"));
        cairo_surface_t *image = read_png(scratch_path("cells.png"));
        for (int32_t p = 0; p < 9; p++) {
            const qkv_box box = panel_box(grid, &style, p);
            float *values = causal(9 + p / 3, 2 - p % 3);
            assert_true(fabs(box.width - 170) < 1e-9);
            assert_true(fabs(box.height - 170) < 1e-9);
            check_cells(image, &box, &style, values, 9 + p / 3);
            free(values);
        }
        cairo_surface_destroy(image);
    }
    qkv_grid_free(grid);
}

/* ---- layout ---- */

static int boxes_meet(const qkv_box *a, const qkv_box *b) {
    const double slack = 0.05;
    return a->x + slack < b->x + b->width && b->x + slack < a->x + a->width &&
           a->y + slack < b->y + b->height && b->y + slack < a->y + a->height;
}

/* Nothing cut off, no text on another text, on a panel or on the bar. */
static void check_layout(const qkv_grid *grid, const qkv_grid_style *style) {
    qkv_lettering lettering;
    qkv_layout layout;
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    assert_int_equal(qkv_layout_make(&layout, grid, style, &lettering, NULL), QKV_OK);
    for (size_t i = 0; i < layout.n_captions; i++) {
        const qkv_box ink = qkv_caption_ink(&layout.captions[i]);
        const char *text = pango_layout_get_text(layout.captions[i].words);
        if (ink.width == 0) continue;
        if (ink.x < 2 || ink.y < 2 || ink.x + ink.width > layout.width - 2 ||
            ink.y + ink.height > layout.height - 2) {
            fail_msg("\"%s\" leaves the page", text);
        }
        for (size_t j = 0; j < i; j++) {
            const qkv_box other = qkv_caption_ink(&layout.captions[j]);
            if (!boxes_meet(&ink, &other)) continue;
            fail_msg("\"%s\" meets \"%s\"", text, pango_layout_get_text(layout.captions[j].words));
        }
        for (int32_t p = 0; p < layout.rows * layout.cols; p++) {
            if (boxes_meet(&ink, &layout.panels[p])) fail_msg("\"%s\" meets a panel", text);
        }
        if (boxes_meet(&ink, &layout.bar)) fail_msg("\"%s\" meets the bar", text);
    }
    qkv_layout_release(&layout);
    qkv_lettering_close(&lettering);
}

static void test_layout(void **state) {
    (void)state;
    static const int32_t sizes[] = {1, 2, 7, 13, 24, 25, 40, 64, 65, 128, 700};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int labels = 0; labels < 2; labels++) {
            qkv_grid *grid = token_grid(2, 2, sizes[i], (int32_t)i % 2, labels);
            qkv_grid_style style = plain_style();
            check_layout(grid, &style);
            style.panel_size = 60;
            check_layout(grid, &style);
            style.panel_size = 400;
            style.scale = QKV_SCALE_LOG;
            check_layout(grid, &style);
            qkv_grid_free(grid);
        }
    }
}

/* A matrix with leading columns left out keeps square cells and counts from where it starts. */
static void test_layout_of_strips(void **state) {
    (void)state;
    float values[30] = {0};
    qkv_grid *grid = make_grid(2, 3);
    set_panel(grid, 0, 0,
              &(qkv_panel){.size = sizeof(qkv_panel),
                           .values = values,
                           .n_rows = 6,
                           .n_cols = 5,
                           .first_col = 1,
                           .title = "Without the first key"});
    set_panel(grid, 0, 1,
              &(qkv_panel){.size = sizeof(qkv_panel), .values = values, .n_rows = 30, .n_cols = 1});
    set_panel(grid, 1, 1,
              &(qkv_panel){.size = sizeof(qkv_panel), .values = values, .n_rows = 1, .n_cols = 30});
    qkv_grid_style style = plain_style();
    check_layout(grid, &style);
    const qkv_box box = panel_box(grid, &style, 0);
    assert_true(fabs(box.width / 5 - box.height / 6) < 1e-9);
    assert_true(panel_box(grid, &style, 2).width == 0);
    write_ok(grid, &style, scratch_path("strips.pdf"));
    qkv_grid_free(grid);
}

static void test_scripts_and_long_texts(void **state) {
    (void)state;
    const char *labels[] = {"<b>&amp;</b>",
                            "日本語の長い札です、とても長い",
                            "مرحبا بالعالم الجميل",
                            "👩‍👩‍👧‍👦",
                            "e\u0301\u0302\u0323",
                            "\xff\xfe bad",
                            "\n\t",
                            "   ",
                            "",
                            "antidisestablishmentarianism-and-more",
                            "नमस्ते",
                            "\u202eright to left"};
    qkv_grid *grid = make_grid(2, 2);
    float *values = causal(12, 1);
    for (int i = 0; i < 4; i++) {
        set_panel(grid, i / 2, i % 2,
                  &(qkv_panel){.size = sizeof(qkv_panel),
                               .values = values,
                               .n_rows = 12,
                               .n_cols = 12,
                               .title = i ? "A very long *title* that <i>no</i> panel is wide "
                                            "enough for & that must be wrapped, with a_word_"
                                            "that_is_much_longer_than_any_line_could_ever_be_here"
                                          : "un*balanced",
                               .row_labels = labels,
                               .col_labels = labels});
    }
    qkv_grid_style style = plain_style();
    style.small_print = "many words that go on and on until the line is full and another begins, "
                        "<tag> & \"quotes\" \xc3\x28, many words that go on and on until the line "
                        "is full and another begins, and then a third line should be needed too";
    style.bar_label = "A label that is longer than the bar is high, hence must be broken into more "
                      "than one line, however tall the figure happens to be at its usual size";
    check_layout(grid, &style);
    write_ok(grid, &style, scratch_path("scripts.png"));
    write_ok(grid, &style, scratch_path("scripts.svg"));
    write_ok(grid, &style, scratch_path("scripts.pdf"));
    qkv_grid_free(grid);
    free(values);
}

static void test_titles(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"Modifying *Query* with", "Modifying Query with"},
                                           {"a \\* b *c*", "a * b c"},
                                           {"2 * 3", "2 * 3"},
                                           {"*a* * b", "a * b"},
                                           {"back\\slash", "back\\slash"},
                                           {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = qkv_title_plain(cases[i][0]);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static void check_ticks(const qkv_grid_style *style, const char *wanted) {
    qkv_tick ticks[QKV_MAX_TICKS];
    char found[512] = "";
    const int n = qkv_ticks_make(ticks, style, 6);
    for (int i = 0; i < n; i++) {
        if (i) assert_true(ticks[i].place > ticks[i - 1].place);
        strcat(strcat(found, i ? " " : ""), ticks[i].label);
    }
    assert_string_equal(found, wanted);
}

static void test_ticks(void **state) {
    (void)state;
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    check_ticks(&style, "0.0 0.2 0.4 0.6 0.8 1.0");
    style.high = 0.03;
    check_ticks(&style, "0.00 0.01 0.02 0.03");
    style.high = 1;
    style.scale = QKV_SCALE_LOG;
    check_ticks(&style, "10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 10⁰");
    style.log_floor = 0.2;
    check_ticks(&style, "0.2 0.5 1");
    style.scale = QKV_SCALE_POWER;
    check_ticks(&style, "0 0.04 0.2 0.4 0.6 1");
    style.scale = QKV_SCALE_LINEAR;
    style.low = -1;
    style.diverging = 1;
    check_ticks(&style, "−1.0 −0.5 0.0 0.5 1.0");
    style.scale = QKV_SCALE_LOG;
    style.log_floor = 1e-2;
    check_ticks(&style, "−10⁰ −10⁻¹ 0 10⁻¹ 10⁰");
}

/* Where all would be the same two decimals, a third or powers of ten tell them apart. */
static void test_cell_texts_of_small_ranges(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, ""}, {0.0194, ".019"}, {-0.0031, "\u2212.003"}, {1.2e-4, "1e-4"}, {9e-5, "0"}},
      smaller[] = {{0, ""}, {0.002, "2e-3"}, {-0.00031, "\u22123e-4"}, {9e-6, "0"}};
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    style.diverging = 1;
    style.low = -0.02;
    style.high = 0.02;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[QKV_NUMBER_SIZE];
        qkv_cell_text(text, &style, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
    style.low = -0.002;
    style.high = 0.002;
    for (size_t i = 0; i < sizeof smaller / sizeof *smaller; i++) {
        char text[QKV_NUMBER_SIZE];
        qkv_cell_text(text, &style, smaller[i].value);
        assert_string_equal(text, smaller[i].text);
    }
}

static void test_cell_texts(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text, *on_log;
    } cases[] = {
        {0, "", ""},
        {0.83, ".83", ".83"},
        {1, "1.0", "1.0"},
        {0.001, "0", "1e-3"},
        {0.0096, ".01", ".01"},
        {0.0062, ".01", "6e-3"},
        {0.00098, "0", "1e-3"},
        {-2.4e-4, "0", "−2e-4"},
        {1e-4, "0", "1e-4"},
        {9e-5, "0", "0"},
        {-0.123, "−.12", "−.12"},
        {0.996, "1.0", "1.0"},
        {0.994, ".99", ".99"},
        {12.4, "12", "12"},
        {-3.14, "−3.1", "−3.1"},
        {4e6, "4e+06", "4e+06"},
    };
    qkv_grid_style linear = QKV_GRID_STYLE_INIT, log = QKV_GRID_STYLE_INIT;
    log.scale = QKV_SCALE_LOG;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[QKV_NUMBER_SIZE];
        qkv_cell_text(text, &linear, cases[i].value);
        assert_string_equal(text, cases[i].text);
        qkv_cell_text(text, &log, cases[i].value);
        assert_string_equal(text, cases[i].on_log);
    }
}

/* Panels of 8, 40 and 400 tokens beside each other. */
static qkv_grid *mixed_grid(void) {
    static const int32_t sizes[] = {8, 40, 400};
    static const char *const words[400];
    qkv_grid *grid = make_grid(1, 3);
    for (int i = 0; i < 3; i++) {
        float *values = causal(sizes[i], 1);
        set_panel(grid, 0, i,
                  &(qkv_panel){.size = sizeof(qkv_panel),
                               .values = values,
                               .n_rows = sizes[i],
                               .n_cols = sizes[i],
                               .row_labels = words,
                               .col_labels = words});
        free(values);
    }
    return grid;
}

static qkv_grid_report check_ok(const qkv_grid *grid, const qkv_grid_style *style) {
    qkv_grid_report report = QKV_GRID_REPORT_INIT;
    assert_int_equal(qkv_grid_check(grid, style, "x.svg", &report, NULL), QKV_OK);
    return report;
}

/* Numbers are decided for each panel, labels for all at once: tokens, or positions. What is left out
 * is told. */
static void test_report(void **state) {
    (void)state;
    qkv_grid *grid = mixed_grid();
    qkv_grid_style style = plain_style();
    qkv_grid_report report = check_ok(grid, &style);
    assert_int_equal(report.panels, 3);
    assert_int_equal(report.without_values, 2);
    assert_int_equal(report.thinned, 0);
    assert_int_equal(report.with_indices, 3);
    style.cell_values = 1;
    assert_int_equal(check_ok(grid, &style).without_values, 1);
    style.cell_values = 0;
    assert_int_equal(check_ok(grid, &style).without_values, 0);
    style.labels = 0;
    assert_int_equal(check_ok(grid, &style).with_indices, 0);
    style.panel_size = 5000;
    style.dpi = 1200;
    assert_int_equal(qkv_grid_check(grid, &style, "x.svg", &report, NULL), QKV_OK);
    assert_int_equal(qkv_grid_check(grid, &style, "x.png", &report, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_grid_check(grid, &style, "x.gif", &report, NULL), QKV_ERR_ARGUMENT);
    qkv_grid_free(grid);
}

/* A file may call itself anything: what pango is given is bounded, since its time grows with the
 * square of a word's length. */
static void test_texts_are_bounded(void **state) {
    (void)state;
    enum { HUGE_SIZE = 1 << 14 };
    static const struct {
        qkv_words_kind kind;
        glong most;
    } kinds[] = {{QKV_WORDS_PLAIN, 2001}, {QKV_WORDS_TITLE, 2001}, {QKV_WORDS_LABEL, 201}};
    static const char *const fillings[] = {"x", "word ", "*", "\xe6\xb2\xb3"};
    qkv_lettering lettering;
    char *text = malloc(HUGE_SIZE + 1);
    assert_non_null(text);
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (size_t k = 0; k < sizeof fillings / sizeof *fillings; k++) {
            const size_t size = strlen(fillings[k]), end = HUGE_SIZE / size * size;
            for (size_t at = 0; at < end; at += size) memcpy(text + at, fillings[k], size);
            text[end] = '\0';
            PangoLayout *words = qkv_words_new(&lettering, text, kinds[i].kind, 8, 200);
            assert_non_null(words);
            const char *shown = pango_layout_get_text(words);
            assert_true(g_utf8_strlen(shown, -1) <= kinds[i].most);
            assert_true(g_str_has_suffix(shown, "\xe2\x80\xa6"));
            g_object_unref(words);
        }
    }
    char *plain = qkv_title_plain(text);
    assert_true(strlen(plain) <= 4 * 2001);
    free(plain);
    free(text);
    qkv_lettering_close(&lettering);
}

static double values_size(const qkv_grid *grid, const qkv_grid_style *style, int32_t index) {
    qkv_lettering lettering;
    qkv_layout layout;
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    assert_int_equal(qkv_layout_make(&layout, grid, style, &lettering, NULL), QKV_OK);
    const qkv_painter painter = {
        .grid = grid, .style = style, .lettering = &lettering, .layout = &layout};
    double *sizes = qkv_values_sizes(&painter);
    assert_non_null(sizes);
    const double size = sizes[index];
    free(sizes);
    qkv_layout_release(&layout);
    qkv_lettering_close(&lettering);
    return size;
}

/* A roomy panel keeps its numbers beside one without; panels with cells of one size share
 * theirs. */
static void test_values_sizes(void **state) {
    (void)state;
    qkv_grid *grid = mixed_grid();
    qkv_grid_style style = plain_style();
    assert_true(values_size(grid, &style, 0) > 4);
    assert_true(values_size(grid, &style, 1) == 0);
    style.cell_values = 1;
    assert_true(values_size(grid, &style, 0) > 4);
    assert_true(values_size(grid, &style, 1) > 1);
    assert_true(values_size(grid, &style, 1) < 4);
    qkv_grid_free(grid);

    enum { N = 9 };
    float narrow[N * N], wide[N * N];
    for (int i = 0; i < N * N; i++) narrow[i] = 0.5f, wide[i] = -0.5f;
    grid = make_grid(1, 2);
    set_panel(grid, 0, 0,
              &(qkv_panel){.size = sizeof(qkv_panel), .values = narrow, .n_rows = N, .n_cols = N});
    set_panel(grid, 0, 1,
              &(qkv_panel){.size = sizeof(qkv_panel), .values = wide, .n_rows = N, .n_cols = N});
    style = plain_style();
    style.panel_size = 110;
    assert_true(values_size(grid, &style, 0) > 0);
    assert_true(values_size(grid, &style, 0) == values_size(grid, &style, 1));
    qkv_grid_free(grid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colors),
        cmocka_unit_test(test_colors_are_monotone),
        cmocka_unit_test(test_png_cells),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_layout_of_strips),
        cmocka_unit_test(test_scripts_and_long_texts),
        cmocka_unit_test(test_titles),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_cell_texts),
        cmocka_unit_test(test_cell_texts_of_small_ranges),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_values_sizes),
        cmocka_unit_test(test_texts_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
