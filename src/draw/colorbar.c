/*
 * The colour bar: the map from bottom to top, ticks where the scale puts round values, a label read
 * from bottom to top. A scale that is not linear stands after the label. An end is pointed where
 * some value lies beyond it, so that clipping shows.
 */
#include <math.h>

#include "base/text.h"

#include "draw/paint.h"
#include "draw/ticks.h"

#define LABEL_SIZE 9.0
static const double TICK_LENGTH = 3, TICK_SIZE = 7.5;
static const double TICK_GAP = 2.5, LABEL_GAP = 6;
static const double TICK_ROOM = 1.6; /* along the bar, in sizes of their letters */
static const double TIP_HEIGHT = 9;
enum { STOPS = 128 }; /* of the gradient: within rounding of the map */

/* Whether values lie beyond the range by more than rounding. A log scale ends at its floor. */
static void find_clipping(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style) {
    const int is_log = style->scale == QKV_SCALE_LOG && !style->diverging;
    const double slack = 1e-5 * (style->high - style->low);
    const double low = is_log ? style->log_floor * (1 - 1e-5) : style->low - slack;
    for (int32_t i = 0; i < grid->rows * grid->cols; i++) {
        const qkv_panel_data *panel = &grid->panels[i];
        if (!panel->values) continue;
        if (panel->smallest < low) layout->bar_below = 1;
        if (panel->largest > style->high + slack) layout->bar_above = 1;
    }
    layout->tip = fmin(TIP_HEIGHT, layout->bar.height / 4);
}

/* The bar without its pointed ends. */
static qkv_box body_of(const qkv_layout *layout) {
    qkv_box body = layout->bar;
    if (layout->bar_above) {
        body.y += layout->tip;
        body.height -= layout->tip;
    }
    if (layout->bar_below) body.height -= layout->tip;
    return body;
}

/* Returns the right edge of the tick labels, -1 when memory is short. */
static double place_ticks(qkv_layout *layout, const qkv_grid_style *style,
                          const qkv_lettering *lettering) {
    const qkv_box body = body_of(layout);
    const double edge = body.x + body.width + QKV_LINE_WIDTH;
    qkv_tick ticks[QKV_MAX_TICKS];
    const double size = qkv_lettering_size(lettering, TICK_SIZE);
    const int most = (int)fmin(7, 1 + body.height / (TICK_ROOM * size));
    const int n = qkv_ticks_make(ticks, style, most);
    double right = edge;
    for (int i = 0; i < n; i++) {
        const double y = body.y + (1 - ticks[i].place) * body.height;
        PangoLayout *words = qkv_words_new(lettering, ticks[i].label, QKV_WORDS_PLAIN, size, 0);
        if (!words) return -1;
        const double x = edge + TICK_LENGTH + TICK_GAP;
        right = fmax(right, x + qkv_words_width(words));
        const double top = y + QKV_CENTRE * size - qkv_words_baseline(words);
        if (!qkv_layout_caption(layout, words, x, top, 0, 0) ||
            !qkv_layout_mark(layout, edge, y - QKV_LINE_WIDTH / 2, TICK_LENGTH, QKV_LINE_WIDTH)) {
            return -1;
        }
    }
    return right;
}

/* The name of each band beside its middle. Returns as place_ticks. */
static double place_names(qkv_layout *layout, const qkv_grid *grid,
                          const qkv_lettering *lettering) {
    const qkv_box body = body_of(layout);
    const double x = body.x + body.width + QKV_LINE_WIDTH + TICK_GAP;
    const double size = qkv_lettering_size(lettering, TICK_SIZE);
    double right = x;
    for (int32_t i = 0; i < grid->n_bands; i++) {
        const double y = body.y + (1 - (i + 0.5) / grid->n_bands) * body.height;
        PangoLayout *words = qkv_words_new(lettering, grid->bands[i], QKV_WORDS_PLAIN, size, 0);
        if (!words) return -1;
        right = fmax(right, x + qkv_words_width(words));
        const double top = y + QKV_CENTRE * size - qkv_words_baseline(words);
        if (!qkv_layout_caption(layout, words, x, top, 0, 0)) return -1;
    }
    return right;
}

/* "Attention Weight (log scale)"; 0 when memory is short. */
static int label_text(qkv_text *out, const qkv_grid_style *style) {
    const char *label = style->bar_label ? style->bar_label : "";
    qkv_text_puts(out, label);
    if (style->scale == QKV_SCALE_LOG) {
        qkv_text_printf(out, *label ? " (log scale)" : "log scale");
    } else if (style->scale == QKV_SCALE_POWER) {
        qkv_text_printf(out,
                        *label ? " (power scale, exponent %.3g)" : "power scale, exponent %.3g",
                        style->gamma);
    }
    return !out->failed;
}

/* On one line where `room` allows it: beside the bar, in smaller letters, or longer than the bar. */
static PangoLayout *label_words(const qkv_layout *layout, const qkv_grid_style *style,
                                const qkv_lettering *lettering, double room) {
    static const double sizes[] = {LABEL_SIZE, 8, 7.25, QKV_SMALLEST_LETTERS};
    qkv_text text = {0};
    PangoLayout *words = NULL;
    if (!label_text(&text, style)) return NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int is_last = i + 1 == sizeof sizes / sizeof *sizes;
        const double size = qkv_lettering_size(lettering, sizes[i]);
        if (words) g_object_unref(words);
        words = qkv_words_new(lettering, text.data, QKV_WORDS_TITLE, size, is_last ? room : 0);
        if (!words || qkv_words_width(words) <= layout->bar.height) break;
    }
    qkv_text_release(&text);
    return words;
}

double qkv_colorbar_place(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style,
                          const qkv_lettering *lettering, double bottom) {
    find_clipping(layout, grid, style);
    const double right =
        grid->bands ? place_names(layout, grid, lettering) : place_ticks(layout, style, lettering);
    if (right < 0 || (!style->bar_label && style->scale == QKV_SCALE_LINEAR)) return right;
    PangoLayout *words = label_words(layout, style, lettering, bottom - QKV_MARGIN);
    if (!words) return -1;
    const double width = qkv_words_frame(words), height = qkv_words_height(words);
    const double middle = layout->bar.y + (layout->bar.height + width) / 2;
    const double y = fmin(fmax(middle, QKV_MARGIN + width), fmax(bottom, QKV_MARGIN + width));
    if (!qkv_layout_caption(layout, words, right + LABEL_GAP, y, 1, 0)) return -1;
    return right + LABEL_GAP + height;
}

/* ---- drawing ---- */

static cairo_pattern_t *gradient(const qkv_box *body, qkv_colormap map) {
    cairo_pattern_t *pattern = cairo_pattern_create_linear(0, body->y + body->height, 0, body->y);
    for (int i = 0; i <= STOPS; i++) {
        const double t = (double)i / STOPS;
        const uint32_t color = qkv_colormap_at(map, t);
        cairo_pattern_add_color_stop_rgb(pattern, t, (color >> 16 & 0xff) / 255.0,
                                         (color >> 8 & 0xff) / 255.0, (color & 0xff) / 255.0);
    }
    return pattern;
}

/* The bar's outline, `out` points outside its body. */
static void outline(cairo_t *cr, const qkv_box *body, const qkv_layout *layout, double out) {
    const double left = body->x - out, right = body->x + body->width + out;
    const double middle = body->x + body->width / 2;
    const double top = body->y - (layout->bar_above ? 0 : out);
    const double bottom = body->y + body->height + (layout->bar_below ? 0 : out);
    cairo_move_to(cr, left, bottom);
    cairo_line_to(cr, left, top);
    if (layout->bar_above) cairo_line_to(cr, middle, top - layout->tip);
    cairo_line_to(cr, right, top);
    cairo_line_to(cr, right, bottom);
    if (layout->bar_below) cairo_line_to(cr, middle, bottom + layout->tip);
    cairo_close_path(cr);
}

/* Bands end sharply, where a gradient would mix two of them. Each step is painted up to the top, and the
 * next ones over it: no seams between them. */
static void paint_bands(const qkv_painter *painter, const qkv_box *body) {
    enum { STEPS = 24 }; /* of a band */
    const int32_t n = painter->grid->n_bands * STEPS;
    for (int32_t i = 0; i < n; i++) {
        const double value = qkv_band_value(i / STEPS, (double)(i % STEPS) / (STEPS - 1));
        qkv_paint_color(painter, qkv_color_table_color(painter->colors, value));
        cairo_rectangle(painter->cr, body->x, body->y, body->width,
                        body->height * (n - i) / (double)n);
        cairo_fill(painter->cr);
    }
}

static void paint_gradient(const qkv_painter *painter, const qkv_box *body) {
    cairo_t *cr = painter->cr;
    cairo_pattern_t *colors = gradient(body, painter->style->colormap);
    /* Beyond the ends the gradient keeps its last colour: the tips show what clipped cells show. */
    cairo_pattern_set_extend(colors, CAIRO_EXTEND_PAD);
    cairo_set_source(cr, colors);
    outline(cr, body, painter->layout, 0);
    cairo_fill(cr);
    cairo_pattern_destroy(colors);
}

void qkv_paint_bar(const qkv_painter *painter) {
    cairo_t *cr = painter->cr;
    const qkv_box exact = body_of(painter->layout);
    const qkv_box body = qkv_paint_snap(painter, &exact);
    (painter->grid->bands ? paint_bands : paint_gradient)(painter, &body);
    const double line = qkv_paint_line_width(painter);
    cairo_set_line_width(cr, line);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_MITER);
    qkv_paint_color(painter, 0x1a1a1a);
    outline(cr, &body, painter->layout, line / 2);
    cairo_stroke(cr);
}
