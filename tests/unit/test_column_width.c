/*
 * Figures of a journal's column: panels keep most of 85 mm, titles are broken alike and never inside
 * a formula, all panels have one kind of label, the colour bar has its ticks and a label on one line.
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

#include <cmocka.h>

#include "draw/fit.h"
#include "support/figures.h"
#include "support/scratch.h"

#define MM (72 / 25.4)

static qkv_lettering lettering;

static qkv_layout fit_style(const qkv_grid *grid, const qkv_grid_style *style) {
    qkv_layout layout;
    qkv_error err = {0};
    qkv_lettering_close(&lettering);
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    if (qkv_layout_fit(&layout, grid, style, &lettering, &err) != QKV_OK)
        fail_msg("%s", err.message);
    return layout;
}

static qkv_layout fit(const qkv_grid *grid, double width, double font_size) {
    qkv_grid_style style = plain_style();
    style.width = width;
    style.font_size = font_size;
    return fit_style(grid, &style);
}

static const char *text_of(const qkv_caption *caption) {
    return pango_layout_get_text(caption->words);
}

/* The caption that has the text in it, `nth` of them; NULL: there is none. */
static const qkv_caption *find(const qkv_layout *layout, const char *text, int nth) {
    for (size_t i = 0; i < layout->n_captions; i++) {
        if (strstr(text_of(&layout->captions[i]), text) && nth-- == 0) return &layout->captions[i];
    }
    return NULL;
}

static double points(const qkv_layout *layout, const qkv_caption *caption) {
    const PangoFontDescription *font = pango_layout_get_font_description(caption->words);
    return layout->scale * pango_font_description_get_size(font) / PANGO_SCALE;
}

/* ---- panels and titles ---- */

static void check_share(qkv_layout *layout, double least) {
    const double share = layout->panels[0].width * layout->cols / layout->width;
    if (share <= least) fail_msg("panels have %.1f %% of the width", 100 * share);
    for (size_t i = 0; i < layout->n_captions; i++) {
        assert_true(points(layout, &layout->captions[i]) >= 5 - 1e-9);
    }
    qkv_layout_release(layout);
}

static void test_share_of_panels(void **state) {
    (void)state;
    for (int32_t side = 1; side <= 3; side++) {
        qkv_grid *grid = token_grid(side, side, 15, 0, 1);
        qkv_layout layout = fit(grid, 85 * MM, 0);
        check_share(&layout, 0.62);
        qkv_grid_free(grid);
    }
}

/* Charts of layers and heads, whose panels are naturally small beside their texts: one with a label of
 * the bar that would be longer than the natural bar, one with names beside it. */
static void test_share_of_charts(void **state) {
    (void)state;
    static const char *const bands[] = {"none", "First token (sink)", "Self", "Previous token",
                                        "Duplicate token"};
    const float values[24] = {1};
    for (int named = 0; named < 2; named++) {
        qkv_grid *grid = make_grid(1, 1);
        qkv_grid_style style = plain_style();
        set_panel(grid, 0, 0,
                  &(qkv_panel){.size = sizeof(qkv_panel),
                               .values = values,
                               .n_rows = 6,
                               .n_cols = 4,
                               .title = "Heads of all layers"});
        grid->is_chart = 1;
        if (named) grid->bands = bands;
        grid->n_bands = named ? 5 : 0;
        style.panel_size = 130;
        style.width = 85 * MM;
        style.row_axis = "Layer";
        style.col_axis = "Head";
        style.bar_label = "change of attention, total variation";
        qkv_layout layout = fit_style(grid, &style);
        const qkv_caption *label = find(&layout, "change of", 0);
        assert_int_equal(pango_layout_get_line_count(label->words), 1);
        check_share(&layout, named ? 0.6 : 0.62);
        qkv_grid_free(grid);
    }
}

/* The bytes of the line that a text stands in. */
static size_t line_start(const char *text, const char *what) {
    const char *at = strstr(text, what);
    assert_non_null(at);
    while (at > text && at[-1] != '\n') at--;
    return (size_t)(at - text);
}

static void test_titles_break_alike(void **state) {
    (void)state;
    static const double widths[] = {60, 70, 85, 100, 120, 170};
    qkv_grid *grid = token_grid(3, 3, 15, 0, 1);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        qkv_layout layout = fit(grid, widths[w] * MM, 0);
        const char *first = text_of(find(&layout, "Modifying", 0));
        const int lines = pango_layout_get_line_count(find(&layout, "Modifying", 0)->words);
        for (int i = 0; i < 9; i++) {
            const qkv_caption *title = find(&layout, "Modifying", i);
            const char *text = text_of(title);
            assert_int_equal(pango_layout_get_line_count(title->words), lines);
            assert_int_equal(line_start(text, "ε"), line_start(text, "1e-"));
            /* The same words begin the lines. */
            assert_int_equal(line_start(text, "with") == 0, line_start(first, "with") == 0);
            assert_int_equal(line_start(text, "with") == line_start(text, "ε"),
                             line_start(first, "with") == line_start(first, "ε"));
        }
        qkv_layout_release(&layout);
    }
    qkv_grid_free(grid);
}

/* A formula of many digits stays whole, and clear of all other words; titles are broken alike. */
static void test_digits_stay_together(void **state) {
    (void)state;
    static const char *const ratios[] = {"0.5", "1e-3", "1e-10", "0.123456789"};
    static const char *const what[] = {"Query", "Key", "Value"};
    static const double widths[] = {75, 80, 85, 90, 100, 120, 170};
    const float values[81] = {1};
    char titles[12][80];
    qkv_grid *grid = make_grid(3, 4);
    for (int i = 0; i < 12; i++) {
        snprintf(titles[i], sizeof titles[i], "Modifying *%s* with \u03b5 = %s", what[i / 4],
                 ratios[i % 4]);
        set_panel(grid, i / 4, i % 4,
                  &(qkv_panel){.size = sizeof(qkv_panel),
                               .values = values,
                               .n_rows = 9,
                               .n_cols = 9,
                               .causal = 1,
                               .title = titles[i]});
    }
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        qkv_layout layout = fit(grid, widths[w] * MM, 0);
        const int lines = pango_layout_get_line_count(find(&layout, "Modifying", 0)->words);
        for (int i = 0; i < 12; i++) { /* column by column */
            const qkv_caption *title = find(&layout, "Modifying", i);
            const qkv_box ink = qkv_caption_ink(title);
            assert_int_equal(pango_layout_get_line_count(title->words), lines);
            assert_int_equal(pango_layout_get_width(title->words),
                             -1); /* not wrapped any further */
            assert_int_equal(line_start(text_of(title), "\u03b5"),
                             line_start(text_of(title), "= "));
            assert_int_equal(line_start(text_of(title), "\u03b5"),
                             line_start(text_of(title), ratios[i / 3]));
            assert_true(ink.x > 0 && ink.x + ink.width < layout.bar.x);
            if (i / 3 == 3) continue;
            const qkv_box next = qkv_caption_ink(find(&layout, "Modifying", i + 3));
            assert_true((next.x - ink.x - ink.width) * layout.scale > 1);
        }
        qkv_layout_release(&layout);
    }
    qkv_grid_free(grid);
}

/* A formula that no line can hold is broken rather than drawn over its neighbours. */
static void test_long_formula(void **state) {
    (void)state;
    float value = 1;
    qkv_grid *grid = make_grid(1, 4);
    for (int32_t c = 0; c < 4; c++) {
        set_panel(
            grid, 0, c,
            &(qkv_panel){.size = sizeof(qkv_panel),
                         .values = &value,
                         .n_rows = 1,
                         .n_cols = 1,
                         .title = "ε = 0.00000000000000000000000000000000000000000000000001"});
    }
    qkv_layout layout = fit(grid, 85 * MM, 0);
    for (size_t i = 0; i < layout.n_captions; i++) {
        const qkv_box ink = qkv_caption_ink(&layout.captions[i]);
        if (!strstr(text_of(&layout.captions[i]), "0000")) continue;
        assert_true(ink.width <= layout.panels[0].width + 15);
    }
    qkv_layout_release(&layout);
    qkv_grid_free(grid);
}

/* ---- labels ---- */

/* Panels of 10, 26 and 42 tokens: the last have no room for tokens. */
static void test_one_kind_of_label(void **state) {
    (void)state;
    for (int32_t grow = 0; grow <= 16; grow += 16) {
        qkv_grid *grid = token_grid(3, 3, 10, grow, 1);
        qkv_layout layout = fit(grid, 85 * MM, 0);
        int tokens = 0, positions = 0;
        for (size_t i = 0; i < layout.n_captions; i++) {
            const char *text = text_of(&layout.captions[i]);
            tokens += strstr(text, "bos") || strstr(text, "river");
            /* Ticks of the bar have a decimal point. */
            positions += strspn(text, "0123456789") == strlen(text);
        }
        assert_int_equal(tokens > 0, grow == 0);
        assert_int_equal(positions > 0, grow != 0);
        qkv_layout_release(&layout);
        qkv_grid_free(grid);
    }
}

/* ---- the colour bar ---- */

static void test_bar_of_one_row(void **state) {
    (void)state;
    static const char *const ticks[] = {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"};
    qkv_grid *grid = token_grid(1, 3, 15, 0, 1);
    qkv_layout layout = fit(grid, 85 * MM, 0);
    const qkv_caption *label = find(&layout, "Attention Weight", 0);
    if (strstr(text_of(label), "after")) label = find(&layout, "Attention Weight", 1);
    assert_int_equal(pango_layout_get_line_count(label->words), 1);
    const qkv_box ink = qkv_caption_ink(label);
    assert_true(ink.y > 0 && ink.y + ink.height < layout.height);
    double below = INFINITY;
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        const qkv_caption *tick = find(&layout, ticks[i], 0);
        assert_non_null(tick);
        const qkv_box number = qkv_caption_ink(tick);
        assert_true(number.y + number.height < below);
        assert_true(number.x + number.width < ink.x);
        below = number.y;
    }
    qkv_layout_release(&layout);
    qkv_grid_free(grid);
}

/* ---- letters of a given size ---- */

static void test_font_size(void **state) {
    (void)state;
    static const double widths[] = {0, 85 * MM, 170 * MM};
    qkv_grid *grid = token_grid(1, 2, 8, 0, 1);
    for (size_t w = 0; w < 3; w++) {
        for (double size = 6; size <= 9; size += 3) {
            qkv_layout layout = fit(grid, widths[w], size);
            assert_true(fabs(points(&layout, find(&layout, "Query", 1)) - size) < 1e-3 ||
                        fabs(points(&layout, find(&layout, "Key", 0)) - size) < 1e-3);
            if (widths[w] == 0) assert_true(fabs(layout.panel_size - 170) < 1e-9);
            if (widths[w] > 0) assert_true(fabs(layout.scale * layout.width - widths[w]) < 1e-6);
            qkv_layout_release(&layout);
        }
    }
    qkv_grid_free(grid);
}

static int close_lettering(void **state) {
    qkv_lettering_close(&lettering);
    return remove_scratch(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share_of_panels),      cmocka_unit_test(test_share_of_charts),
        cmocka_unit_test(test_titles_break_alike),   cmocka_unit_test(test_long_formula),
        cmocka_unit_test(test_digits_stay_together), cmocka_unit_test(test_one_kind_of_label),
        cmocka_unit_test(test_bar_of_one_row),       cmocka_unit_test(test_font_size),
    };
    return cmocka_run_group_tests(tests, NULL, close_lettering);
}
