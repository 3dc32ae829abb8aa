/*
 * Ranked bars: one line each, the label on its left, the number on its right, a whisker for its
 * interval. Bars grow thinner with their number, and labels are thinned out as on a grid's axis.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "draw/draw.h"
#include "draw/sheet.h"

enum { MOST_BARS = 2000 };
static const double WIDTH = 260; /* of the area, points */
static const double PITCH = 12.5, LEAST_PITCH = 0.5, HEIGHT = 640;
static const double LEAST_HEIGHT = 24;
static const double THICKNESS = 0.7; /* of a bar, of its pitch */
static const double LABEL_LIMIT = 150, TICK_ROOM = 36;
static const double NUMBER_SIZE = 7, NUMBER_GAP = 6, NUMBER_PITCH = 7.5;
static const double WHISKER = 0.8;
static const uint32_t WHISKER_COLOR = 0x1a1a1a;

/* A chart of our own, whose bars are *list, to be freed. */
static int read_bars(qkv_bars *bars, qkv_bar **list, const qkv_bars *given, qkv_error *err) {
    void *read = NULL;
    int status = qkv_sized_read(bars, sizeof *bars, given, "qkv_bars", err);
    if (status != QKV_OK) return status;
    if (!bars->bars || bars->n_bars < 1 || bars->n_bars > MOST_BARS) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a chart of bars holds 1 to %d of them, not %zu",
                        MOST_BARS, bars->n_bars);
    }
    status = qkv_sized_read_items(&read, sizeof **list, bars->bars, bars->n_bars, "qkv_bar", err);
    bars->bars = *list = read;
    return status;
}

static int check_bars(const qkv_bars *bars, qkv_error *err) {
    if (bars->axis.scale != QKV_SCALE_LINEAR) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "bars start at 0, which has no place on a log axis: use a linear one");
    }
    for (size_t i = 0; bars->groups && i < bars->n_groups; i++) {
        if (!bars->groups[i]) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "group %zu of the bars has no name", i);
        }
    }
    for (size_t i = 0; i < bars->n_bars; i++) {
        const qkv_bar *bar = &bars->bars[i];
        if (!isfinite(bar->value) || !isfinite(bar->lower) || !isfinite(bar->upper)) {
            return qkv_fail(err, QKV_ERR_NUMERIC, "bar %zu ('%s') is %g, from %g to %g", i,
                            bar->label ? bar->label : "", bar->value, bar->lower, bar->upper);
        }
        if (bar->group < 0 || (bars->n_groups && (size_t)bar->group >= bars->n_groups)) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "bar %zu: there is no group %d", i, bar->group);
        }
    }
    return QKV_OK;
}

static int make_ruler(qkv_sheet *sheet, const qkv_bars *bars, double width, qkv_error *err) {
    qkv_extent extent = QKV_EXTENT_NONE;
    for (size_t i = 0; i < bars->n_bars; i++) {
        qkv_extent_add(&extent, bars->bars[i].value);
        if (bars->bars[i].lower == bars->bars[i].upper) continue;
        qkv_extent_add(&extent, bars->bars[i].lower);
        qkv_extent_add(&extent, bars->bars[i].upper);
    }
    return qkv_ruler_make(&sheet->below, &bars->axis, &extent, QKV_RULER_BARS,
                          qkv_sheet_most_ticks(width, TICK_ROOM, 7), "value", err);
}

/* ---- labels and numbers ---- */

static int make_labels(qkv_axis *axis, const qkv_sheet *sheet, const qkv_bars *bars, double pitch,
                       qkv_error *err) {
    char **labels = qkv_calloc(bars->n_bars, sizeof *labels);
    if (!labels) return qkv_fail_memory(err);
    static char none[] = "";
    for (size_t i = 0; i < bars->n_bars; i++) {
        labels[i] = bars->bars[i].label ? (char *)bars->bars[i].label : none;
    }
    const qkv_axis_input input = {labels,
                                  (int32_t)bars->n_bars,
                                  0,
                                  pitch,
                                  LABEL_LIMIT,
                                  0,
                                  qkv_axis_stride(&sheet->lettering, pitch) == 0,
                                  0};
    const int status = qkv_axis_make(axis, &sheet->lettering, &input, err);
    free(labels);
    return status;
}

/* Three digits of the largest, and the others with as many decimals. */
static void bar_text(char text[QKV_NUMBER_SIZE], double value, double largest) {
    if (largest < 1e-3 || largest >= 1e5) {
        qkv_number_text(text, value, 3);
        return;
    }
    const int decimals = (int)fmax(2 - floor(log10(largest)), 0);
    const int is_zero = fabs(value) < 0.5 * pow(10, -decimals);
    qkv_format(text, QKV_NUMBER_SIZE, "%s%.*f", value < 0 && !is_zero ? "\xe2\x88\x92" : "",
               decimals, fabs(value));
}

/* A column of numbers right of the area, flush right. */
static int place_numbers(qkv_sheet *sheet, const qkv_bars *bars, double pitch) {
    if (pitch < NUMBER_PITCH) return 1;
    const double left = sheet->area.x + sheet->area.width + NUMBER_GAP;
    const size_t first = sheet->layout.n_captions;
    double right = sheet->right, largest = 0;
    for (size_t i = 0; i < bars->n_bars; i++) largest = fmax(largest, fabs(bars->bars[i].value));
    for (size_t i = 0; i < bars->n_bars; i++) {
        char text[QKV_NUMBER_SIZE];
        bar_text(text, bars->bars[i].value, largest);
        PangoLayout *words =
            qkv_words_new(&sheet->lettering, text, QKV_WORDS_PLAIN, NUMBER_SIZE, 0);
        if (!words) return 0;
        right = fmax(right, left + qkv_words_width(words));
        const double middle = sheet->area.y + ((double)i + 0.5) * pitch;
        const double y = middle + QKV_CENTRE * NUMBER_SIZE - qkv_words_baseline(words);
        if (!qkv_layout_caption(&sheet->layout, words, left, y, 0, 0)) return 0;
    }
    for (size_t i = first; i < sheet->layout.n_captions; i++) {
        qkv_caption *caption = &sheet->layout.captions[i];
        caption->x = right - qkv_words_width(caption->words);
    }
    sheet->right = right;
    return 1;
}

static int make_legend(qkv_sheet *sheet, const qkv_bars *bars, qkv_error *err) {
    if (!bars->groups || bars->n_groups < 2) return QKV_OK;
    qkv_sample *samples = qkv_calloc(bars->n_groups, sizeof *samples);
    if (!samples) return qkv_fail_memory(err);
    for (size_t i = 0; i < bars->n_groups; i++) samples[i].label = bars->groups[i];
    return qkv_sheet_legend(sheet, samples, bars->n_groups, NULL, err);
}

/* ---- painting ---- */

static void paint_whisker(const qkv_sheet *sheet, const qkv_painter *painter, const qkv_bar *bar,
                          double y, double cap) {
    const double from = qkv_sheet_x(sheet, bar->lower), to = qkv_sheet_x(sheet, bar->upper);
    cairo_t *cr = painter->cr;
    cairo_set_line_width(cr, fmin(WHISKER, cap));
    qkv_paint_color(painter, WHISKER_COLOR);
    cairo_move_to(cr, from, y);
    cairo_line_to(cr, to, y);
    cairo_move_to(cr, from, y - cap / 2);
    cairo_line_to(cr, from, y + cap / 2);
    cairo_move_to(cr, to, y - cap / 2);
    cairo_line_to(cr, to, y + cap / 2);
    cairo_stroke(cr);
}

static void paint_block(const qkv_painter *painter, const qkv_box *box, size_t group) {
    const qkv_box snapped = qkv_paint_snap(painter, box);
    qkv_paint_color(painter, qkv_series_color(group));
    cairo_rectangle(painter->cr, snapped.x, snapped.y, snapped.width, snapped.height);
    cairo_fill(painter->cr);
}

static void paint_zero(const qkv_sheet *sheet, const qkv_painter *painter) {
    const double x = qkv_sheet_x(sheet, 0);
    qkv_paint_color(painter, WHISKER_COLOR);
    cairo_set_line_width(painter->cr, QKV_LINE_WIDTH);
    cairo_move_to(painter->cr, x, sheet->area.y);
    cairo_line_to(painter->cr, x, sheet->area.y + sheet->area.height);
    cairo_stroke(painter->cr);
}

static void paint_bars(const qkv_sheet *sheet, const qkv_painter *painter) {
    const qkv_bars *bars = sheet->chart;
    const qkv_box *area = &sheet->area;
    const double pitch = area->height / (double)bars->n_bars, height = THICKNESS * pitch;
    cairo_save(painter->cr);
    cairo_rectangle(painter->cr, area->x, area->y, area->width, area->height);
    cairo_clip(painter->cr);
    for (size_t i = 0; i < bars->n_bars; i++) {
        const qkv_bar *bar = &bars->bars[i];
        const double zero = qkv_sheet_x(sheet, 0), end = qkv_sheet_x(sheet, bar->value);
        const double y = area->y + ((double)i + 0.5) * pitch;
        const qkv_box box = {fmin(zero, end), y - height / 2, fabs(end - zero), height};
        if (box.width > 0) paint_block(painter, &box, (size_t)bar->group);
        if (bar->lower != bar->upper) paint_whisker(sheet, painter, bar, y, height / 2);
    }
    paint_zero(sheet, painter);
    cairo_restore(painter->cr);
    for (size_t i = 0; i < sheet->n_samples; i++) {
        const qkv_box box = {sheet->samples[i].x, sheet->samples[i].y - 3, QKV_SAMPLE_WIDTH, 6};
        paint_block(painter, &box, i);
    }
}

/* ---- the chart ---- */

static int lay_out(qkv_sheet *sheet, double width, qkv_error *err) {
    const qkv_bars *bars = sheet->chart;
    const double n = (double)bars->n_bars;
    const double legend = qkv_sheet_legend_height(sheet, bars->groups ? bars->n_groups : 0, NULL);
    const double wanted = n * fmax(fmin(PITCH, HEIGHT / n), LEAST_PITCH);
    const double height = fmax(wanted, fmax(legend, LEAST_HEIGHT));
    qkv_axis axis = {0};
    int status = make_ruler(sheet, bars, width, err);
    if (status == QKV_OK) status = make_labels(&axis, sheet, bars, height / n, err);
    if (status == QKV_OK) {
        status = qkv_sheet_frame(sheet, width, height, qkv_axis_reach(&axis), err);
    }
    if (status == QKV_OK && !(qkv_layout_row_axis(&sheet->layout, &axis, &sheet->area) &&
                              place_numbers(sheet, bars, height / n))) {
        status = qkv_fail_memory(err);
    }
    qkv_axis_release(&axis);
    return status == QKV_OK ? make_legend(sheet, bars, err) : status;
}

static int draw_bars(const qkv_bars *given, const qkv_chart_style *style, const qkv_page_target *to,
                     qkv_error *err) {
    qkv_sheet sheet;
    qkv_bars own = QKV_BARS_INIT;
    const qkv_bars *const bars = &own;
    qkv_bar *list = NULL;
    int status = qkv_sheet_open(&sheet, style, to, err);
    if (status == QKV_OK) status = read_bars(&own, &list, given, err);
    if (status == QKV_OK) status = check_bars(bars, err);
    sheet.chart = bars;
    sheet.paint = paint_bars;
    sheet.lay_out = lay_out;
    if (status == QKV_OK) status = qkv_sheet_fit(&sheet, WIDTH, err);
    if (status == QKV_OK) status = qkv_sheet_draw(&sheet, to, err);
    qkv_sheet_close(&sheet);
    free(list);
    return status;
}

int qkv_bars_write(const qkv_bars *bars, const qkv_chart_style *style, const char *path,
                   qkv_error *err) {
    return draw_bars(bars, style, &(qkv_page_target){.path = path}, err);
}

int qkv_bars_render(const qkv_bars *bars, const qkv_chart_style *style, const char *format,
                    char **bytes, size_t *n_bytes, qkv_error *err) {
    return draw_bars(bars, style, &(qkv_page_target){NULL, format, bytes, n_bytes}, err);
}
