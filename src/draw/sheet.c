/* The page around a chart with axes. See sheet.h. */
#include "draw/sheet.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sized.h"
#include "draw/fit.h"

/* Distances and sizes in points. */
static const double TICK = 3, MINOR_TICK = 1.6, TICK_GAP = 2.5, TICK_SIZE = 7.5;
static const double NAME_SIZE = 9, NAME_GAP = 4;
static const double LEGEND_GAP = 14, LEGEND_SIZE = 8, LEGEND_PITCH = 12.5, LEGEND_LIMIT = 130,
                    WIDE_LIMIT = 240;
static const double SAMPLE_GAP = 5;
static const double HEAD_ROOM = 4; /* for half a tick label above the area */
/* On a page of given width, the area's share with a legend beside it, and the least of all. */
static const double LEAST_SHARE = 0.55, LEAST_AREA = 90;
enum { FIT_STEPS = 4 };
static const double GUIDE_WIDTH = 0.4;
static const uint32_t GUIDE_COLOR = 0xe2e2e2;

/* The ends of the colour map first; then hues that stay apart in greyscale and for most eyes. */
static const uint32_t COLORS[] = {0x3b4cc0, 0xb40426, 0xe69f00, 0x009e9a,
                                  0x7b3294, 0x4d9221, 0x8c510a, 0x5f6b76};

uint32_t qkv_series_color(size_t index) {
    return COLORS[index % (sizeof COLORS / sizeof *COLORS)];
}

double qkv_sheet_x(const qkv_sheet *sheet, double value) {
    return sheet->area.x + qkv_ruler_at(&sheet->below, value) * sheet->area.width;
}

double qkv_sheet_y(const qkv_sheet *sheet, double value) {
    return sheet->area.y + (1 - qkv_ruler_at(&sheet->left, value)) * sheet->area.height;
}

int qkv_sheet_open(qkv_sheet *sheet, const qkv_chart_style *style, const qkv_page_target *to,
                   qkv_error *err) {
    *sheet = (qkv_sheet){.style = QKV_CHART_STYLE_INIT, .scale = 1};
    if (!style) return qkv_fail(err, QKV_ERR_ARGUMENT, "drawing a chart needs a style");
    int status = qkv_sized_read(&sheet->style, sizeof sheet->style, style, "qkv_chart_style", err);
    if (status == QKV_OK) status = qkv_page_check_target(to, err);
    if (status == QKV_OK) status = qkv_page_check_dpi(sheet->style.dpi, err);
    if (status == QKV_OK) status = qkv_page_check_print(sheet->style.text, sheet->style.width, err);
    if (status == QKV_OK) status = qkv_lettering_open(&sheet->lettering, err);
    if (status != QKV_OK) return status;
    return qkv_lettering_set_font(&sheet->lettering, sheet->style.font, err);
}

/* What a chart put onto the sheet is taken off again. */
static void wipe(qkv_sheet *sheet) {
    qkv_layout_release(&sheet->layout);
    free(sheet->samples);
    sheet->samples = NULL;
    sheet->n_samples = 0;
    sheet->right = sheet->bottom = 0;
}

void qkv_sheet_close(qkv_sheet *sheet) {
    wipe(sheet);
    qkv_lettering_close(&sheet->lettering);
}

/* ---- rulers ---- */

int qkv_sheet_most_ticks(double length, double room, int most) {
    return (int)fmin(fmax(length / room, 3), most);
}

static PangoLayout *tick_words(const qkv_sheet *sheet, const char *label) {
    return qkv_words_new(&sheet->lettering, label, QKV_WORDS_PLAIN, TICK_SIZE, 0);
}

/* The widest label of the left ruler, -1 when memory is short. */
static double labels_depth(const qkv_sheet *sheet) {
    double width = 0;
    for (int i = 0; i < sheet->left.n_ticks; i++) {
        PangoLayout *words = tick_words(sheet, sheet->left.ticks[i].label);
        if (!words) return -1;
        width = fmax(width, qkv_words_width(words));
        g_object_unref(words);
    }
    return width;
}

static int place_left_ticks(qkv_sheet *sheet) {
    const qkv_box *area = &sheet->area;
    const double edge = area->x - QKV_LINE_WIDTH;
    for (int i = 0; i < sheet->left.n_ticks; i++) {
        const double y = area->y + (1 - sheet->left.ticks[i].place) * area->height;
        PangoLayout *words = tick_words(sheet, sheet->left.ticks[i].label);
        if (!words) return 0;
        const double x = edge - TICK - TICK_GAP - qkv_words_width(words);
        const double top = y + QKV_CENTRE * TICK_SIZE - qkv_words_baseline(words);
        if (!qkv_layout_caption(&sheet->layout, words, x, top, 0, 0) ||
            !qkv_layout_mark(&sheet->layout, edge - TICK, y - QKV_LINE_WIDTH / 2, TICK,
                             QKV_LINE_WIDTH)) {
            return 0;
        }
    }
    for (int i = 0; i < sheet->left.n_minor; i++) {
        const double y = area->y + (1 - sheet->left.minor[i]) * area->height;
        if (!qkv_layout_mark(&sheet->layout, edge - MINOR_TICK, y - QKV_LINE_WIDTH / 2, MINOR_TICK,
                             QKV_LINE_WIDTH)) {
            return 0;
        }
    }
    return 1;
}

static int place_ticks_below(qkv_sheet *sheet) {
    const qkv_box *area = &sheet->area;
    const double edge = area->y + area->height + QKV_LINE_WIDTH;
    sheet->bottom = edge + TICK;
    for (int i = 0; i < sheet->below.n_ticks; i++) {
        const double x = area->x + sheet->below.ticks[i].place * area->width;
        PangoLayout *words = tick_words(sheet, sheet->below.ticks[i].label);
        if (!words) return 0;
        const double width = qkv_words_width(words), y = edge + TICK + TICK_GAP / 2;
        sheet->bottom = fmax(sheet->bottom, y + qkv_words_height(words));
        sheet->right = fmax(sheet->right, x + width / 2);
        if (!qkv_layout_caption(&sheet->layout, words, x - width / 2, y, 0, 0) ||
            !qkv_layout_mark(&sheet->layout, x - QKV_LINE_WIDTH / 2, edge, QKV_LINE_WIDTH, TICK)) {
            return 0;
        }
    }
    for (int i = 0; i < sheet->below.n_minor; i++) {
        const double x = area->x + sheet->below.minor[i] * area->width;
        if (!qkv_layout_mark(&sheet->layout, x - QKV_LINE_WIDTH / 2, edge, QKV_LINE_WIDTH,
                             MINOR_TICK)) {
            return 0;
        }
    }
    return 1;
}

static PangoLayout *name_words(const qkv_sheet *sheet, const char *label, double limit) {
    return qkv_words_new(&sheet->lettering, label, QKV_WORDS_TITLE, NAME_SIZE, limit);
}

static int place_left_name(qkv_sheet *sheet) {
    if (!sheet->has_left || !sheet->left.label) return 1;
    PangoLayout *words = name_words(sheet, sheet->left.label, sheet->area.height);
    if (!words) return 0;
    const double y = sheet->area.y + (sheet->area.height + qkv_words_frame(words)) / 2;
    return qkv_layout_caption(&sheet->layout, words, QKV_MARGIN, y, 1, 0);
}

static int place_name_below(qkv_sheet *sheet) {
    if (!sheet->below.label) return 1;
    PangoLayout *words = name_words(sheet, sheet->below.label, sheet->area.width);
    if (!words) return 0;
    const double x = sheet->area.x + (sheet->area.width - qkv_words_frame(words)) / 2;
    const double y = sheet->bottom + NAME_GAP / 2;
    sheet->bottom = y + qkv_words_height(words);
    return qkv_layout_caption(&sheet->layout, words, x, y, 0, 0);
}

/* What the left ruler and its name need, -1 when memory is short. */
static double left_room(const qkv_sheet *sheet, double height) {
    if (!sheet->has_left) return 0;
    const double depth = labels_depth(sheet);
    if (depth < 0 || !sheet->left.label) return depth < 0 ? -1 : depth + TICK + TICK_GAP;
    PangoLayout *words = name_words(sheet, sheet->left.label, height);
    if (!words) return -1;
    const double name = qkv_words_height(words) + NAME_GAP;
    g_object_unref(words);
    return name + depth + TICK + TICK_GAP;
}

int qkv_sheet_frame(qkv_sheet *sheet, double width, double height, double labels, qkv_error *err) {
    const double room = left_room(sheet, height);
    if (room < 0) return qkv_fail_memory(err);
    const double left = QKV_MARGIN + room + labels;
    sheet->area = (qkv_box){left, QKV_MARGIN + HEAD_ROOM, width, height};
    sheet->right = left + width;
    const int placed = (!sheet->has_left || place_left_ticks(sheet)) && place_ticks_below(sheet) &&
                       place_left_name(sheet) && place_name_below(sheet);
    return placed ? QKV_OK : qkv_fail_memory(err);
}

/* ---- the legend ---- */

double qkv_sheet_legend_height(const qkv_sheet *sheet, size_t n, const char *title) {
    return sheet->legend_below ? 0 : LEGEND_PITCH * ((double)n + (title ? 1 : 0));
}

static PangoLayout *sample_words(const qkv_sheet *sheet, const char *label, int wide) {
    return qkv_words_new(&sheet->lettering, label, QKV_WORDS_LABEL, LEGEND_SIZE,
                         wide ? WIDE_LIMIT : LEGEND_LIMIT);
}

static int place_sample(qkv_sheet *sheet, const char *label, int wide, double x, double y) {
    PangoLayout *words = sample_words(sheet, label, wide);
    if (!words) return 0;
    sheet->right = fmax(sheet->right, x + qkv_words_right(words));
    const double top = y + QKV_CENTRE * LEGEND_SIZE - qkv_words_baseline(words);
    return qkv_layout_caption(&sheet->layout, words, x, top, 0, 0);
}

/* One sample after the other below the area, on as many lines as they need. */
static int place_below(qkv_sheet *sheet, const char *title, qkv_error *err) {
    const double room = (sheet->page > 0 ? sheet->page : sheet->right) - QKV_MARGIN;
    const double indent = QKV_SAMPLE_WIDTH + SAMPLE_GAP;
    double x = QKV_MARGIN, y = sheet->bottom + LEGEND_PITCH;
    if (title) {
        if (!place_sample(sheet, title, 0, x, y)) return qkv_fail_memory(err);
        y += LEGEND_PITCH;
    }
    for (size_t i = 0; i < sheet->n_samples; i++) {
        qkv_sample *sample = &sheet->samples[i];
        PangoLayout *words = sample_words(sheet, sample->label, sample->wide);
        if (!words) return qkv_fail_memory(err);
        const double width = indent + qkv_words_right(words);
        g_object_unref(words);
        if (x > QKV_MARGIN && x + width > room) {
            x = QKV_MARGIN;
            y += LEGEND_PITCH;
        }
        sample->x = x;
        sample->y = y;
        if (!place_sample(sheet, sample->label, sample->wide, x + indent, y))
            return qkv_fail_memory(err);
        x += width + LEGEND_GAP;
    }
    sheet->bottom = y + LEGEND_PITCH / 2;
    return QKV_OK;
}

int qkv_sheet_legend(qkv_sheet *sheet, qkv_sample *samples, size_t n, const char *title,
                     qkv_error *err) {
    sheet->samples = samples;
    sheet->n_samples = n;
    if (sheet->legend_below) return place_below(sheet, title, err);
    const double x = sheet->right + LEGEND_GAP;
    double y = sheet->area.y + LEGEND_PITCH / 2;
    if (title) {
        if (!place_sample(sheet, title, 0, x, y)) return qkv_fail_memory(err);
        y += LEGEND_PITCH;
    }
    for (size_t i = 0; i < n; i++, y += LEGEND_PITCH) {
        samples[i].x = x;
        samples[i].y = y;
        if (!place_sample(sheet, samples[i].label, samples[i].wide,
                          x + QKV_SAMPLE_WIDTH + SAMPLE_GAP, y)) {
            return qkv_fail_memory(err);
        }
    }
    return QKV_OK;
}

/* ---- the width of the page ---- */

static double content_of(const qkv_sheet *sheet) {
    return sheet->right + QKV_MARGIN;
}

static int lay_out(qkv_sheet *sheet, double width, qkv_error *err) {
    wipe(sheet);
    return sheet->lay_out(sheet, width, err);
}

/* Finds the width of the area with which the content is as wide as the page: what stands beside the
 * area hardly depends on it. *width is negative where there is no room for it. */
static int find_width(qkv_sheet *sheet, double *width, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < FIT_STEPS && status == QKV_OK && *width > 0; i++) {
        status = lay_out(sheet, *width, err);
        if (status == QKV_OK) *width += sheet->page - content_of(sheet);
    }
    return status;
}

static void set_scale(qkv_sheet *sheet, double scale) {
    sheet->scale = scale;
    sheet->page = sheet->style.width / scale;
    sheet->lettering.least = qkv_fit_least_letters(scale);
}

/* The least width that such a chart can have, as an error. */
static int fail_width(qkv_sheet *sheet, qkv_error *err) {
    const int status = lay_out(sheet, LEAST_AREA, err);
    if (status != QKV_OK) return status;
    return qkv_fit_fail(sheet->style.width, content_of(sheet) * sheet->scale,
                        sheet->style.font_size, err);
}

int qkv_sheet_fit(qkv_sheet *sheet, double natural, qkv_error *err) {
    const double given = sheet->style.font_size / QKV_FONT_UNITS;
    if (given > 0) {
        natural /= given;
        set_scale(sheet, given);
    }
    double width = natural;
    int status = lay_out(sheet, natural, err);
    if (sheet->style.width == 0 || status != QKV_OK) return status;
    if (given == 0) set_scale(sheet, qkv_fit_scale(sheet->style.width, content_of(sheet)));
    status = find_width(sheet, &width, err);
    if (status == QKV_OK && width < LEAST_SHARE * sheet->page) {
        sheet->legend_below = 1;
        width = natural;
        status = find_width(sheet, &width, err);
    }
    if (status == QKV_OK && width < LEAST_AREA) return fail_width(sheet, err);
    return status == QKV_OK ? lay_out(sheet, width, err) : status;
}

/* ---- the file ---- */

/* Faint lines under the data, at the ticks. */
static void paint_guides(const qkv_sheet *sheet, const qkv_painter *painter) {
    const qkv_box *area = &sheet->area;
    cairo_t *cr = painter->cr;
    cairo_set_line_width(cr, GUIDE_WIDTH);
    qkv_paint_color(painter, GUIDE_COLOR);
    for (int i = 0; i < sheet->below.n_ticks; i++) {
        const double x = area->x + sheet->below.ticks[i].place * area->width;
        cairo_move_to(cr, x, area->y);
        cairo_line_to(cr, x, area->y + area->height);
    }
    for (int i = 0; sheet->has_left && i < sheet->left.n_ticks; i++) {
        const double y = area->y + (1 - sheet->left.ticks[i].place) * area->height;
        cairo_move_to(cr, area->x, y);
        cairo_line_to(cr, area->x + area->width, y);
    }
    cairo_stroke(cr);
}

/* Two strokes through the lower edge, with nothing of the edge between them. */
static void paint_break(const qkv_sheet *sheet, const qkv_painter *painter) {
    static const double HALF_GAP = 1.6, LEAN = 1.5, REACH = 3.4;
    const qkv_box *area = &sheet->area;
    const double x = area->x + QKV_BREAK * area->width, y = area->y + area->height;
    cairo_t *cr = painter->cr;
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_rectangle(cr, x - HALF_GAP, y - 1.2, 2 * HALF_GAP, 2.4);
    cairo_fill(cr);
    cairo_set_source_rgb(cr, 0, 0, 0);
    cairo_set_line_width(cr, 0.8);
    for (int side = -1; side <= 1; side += 2) {
        cairo_move_to(cr, x + side * HALF_GAP - LEAN, y + REACH);
        cairo_line_to(cr, x + side * HALF_GAP + LEAN, y - REACH);
        cairo_stroke(cr);
    }
}

static int paint_sheet(const void *content, cairo_t *cr, double pixels, qkv_error *err) {
    const qkv_sheet *sheet = content;
    const qkv_painter painter = {
        .cr = cr, .pixels = pixels, .lettering = &sheet->lettering, .layout = &sheet->layout};
    const int status = qkv_paint_background(cr, err);
    if (status != QKV_OK) return status;
    paint_guides(sheet, &painter);
    sheet->paint(sheet, &painter);
    qkv_paint_frame(&painter, &sheet->area);
    if (sheet->below.has_zero) paint_break(sheet, &painter);
    qkv_paint_marks(&painter);
    qkv_paint_captions(&painter);
    return qkv_lettering_failed(&sheet->lettering) ? qkv_fail_memory(err) : QKV_OK;
}

int qkv_sheet_draw(qkv_sheet *sheet, const qkv_page_target *to, qkv_error *err) {
    const qkv_chart_style *style = &sheet->style;
    sheet->layout.width = sheet->page > 0 ? sheet->page : ceil(content_of(sheet));
    const double bottom = qkv_layout_texts(&sheet->layout, &sheet->area, sheet->bottom,
                                           style->title, style->small_print, &sheet->lettering);
    if (bottom < 0) return qkv_fail_memory(err);
    sheet->layout.height = ceil(bottom + QKV_MARGIN);
    const qkv_page page = {.width = sheet->layout.width,
                           .height = sheet->layout.height,
                           .scale = sheet->scale,
                           .text = style->text,
                           .dpi = style->dpi,
                           .title = style->title,
                           .small_print = style->small_print,
                           .recipe = style->recipe,
                           .paint = paint_sheet,
                           .content = sheet};
    return qkv_page_draw(&page, to, err);
}
