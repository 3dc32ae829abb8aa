/*
 * Lines with bands. Bands lie below all lines, so that none hides another's; a series is told by
 * its colour and its mark, and from the ninth on also by its dashes. Where lines lie on each other
 * each is dashed in turn and the marks of the lower ones are larger, so that all can be seen; of
 * lines that do so all along, the legend says so.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "draw/draw.h"
#include "draw/sheet.h"

enum { MOST_SERIES = 48, COLORS = 8, MARKS = 4 };
static const double WIDTH = 330, HEIGHT = 205; /* of the area, points */
static const double LINE = 1.3, MARK_SIZE = 2.1, BAND_SHADE = 0.16, FAINT_SHADE = 0.08;
enum { FEW = 4 }; /* series whose bands still tell apart when they are darker */
static const double REFERENCE_LINE = 0.9;
static const double LEAST_HEIGHT = 110, TICK_ROOM = 40, TICK_HEIGHT = 29;
/* Of lines on each other: how near they are, their dashes, and how much larger marks below are. */
static const double SAME_PLACE = 0.8, TURN = 4.5, BELOW_OTHERS = 0.7, LARGEST_MARK = 2.8;
static const uint32_t REFERENCE_COLOR = 0x5a5a5a;

/* ---- checks ---- */

/* 0 on a log axis of x stands apart. */
static int is_apart(const qkv_lines *lines, double x) {
    return lines->x.scale == QKV_SCALE_LOG && x == 0;
}

static int check_value(double value, const qkv_chart_axis *axis, const char *what,
                       const qkv_series *series, size_t i, qkv_error *err) {
    const char *label = series->label ? series->label : "";
    if (!isfinite(value)) {
        return qkv_fail(err, QKV_ERR_NUMERIC, "series '%s': %s of point %zu is %g", label, what, i,
                        value);
    }
    if (axis->scale == QKV_SCALE_LOG && value <= 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "series '%s': %s = %g of point %zu has no place on a log axis: leave it "
                        "out, or use a linear axis",
                        label, what, value, i);
    }
    return QKV_OK;
}

static int check_series(const qkv_lines *lines, const qkv_series *series, qkv_error *err) {
    if (!series->x || !series->y || (series->lower == NULL) != (series->upper == NULL)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a series needs x and y, and both ends of its band or none");
    }
    int status = QKV_OK;
    for (size_t i = 0; i < series->n && status == QKV_OK; i++) {
        if (!is_apart(lines, series->x[i]))
            status = check_value(series->x[i], &lines->x, "x", series, i, err);
        if (status != QKV_OK || isnan(series->y[i])) continue;
        status = check_value(series->y[i], &lines->y, "y", series, i, err);
        if (status == QKV_OK && series->lower && !isfinite(series->upper[i] - series->lower[i])) {
            status =
                qkv_fail(err, QKV_ERR_NUMERIC, "series '%s': the band at point %zu is %g to %g",
                         series->label ? series->label : "", i, series->lower[i], series->upper[i]);
        }
    }
    return status;
}

/* A chart of our own, whose series are *list, to be freed. */
static int read_lines(qkv_lines *lines, qkv_series **list, const qkv_lines *given, qkv_error *err) {
    void *read = NULL;
    int status = qkv_sized_read(lines, sizeof *lines, given, "qkv_lines", err);
    if (status != QKV_OK) return status;
    if (!lines->series || lines->n_series < 1 || lines->n_series > MOST_SERIES) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a chart of lines holds 1 to %d series, not %zu",
                        MOST_SERIES, lines->n_series);
    }
    status = qkv_sized_read_items(&read, sizeof **list, lines->series, lines->n_series,
                                  "qkv_series", err);
    lines->series = *list = read;
    return status;
}

static int check_lines(const qkv_lines *lines, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < lines->n_series && status == QKV_OK; i++) {
        status = check_series(lines, &lines->series[i], err);
    }
    if (status == QKV_OK && lines->reference_label && !isfinite(lines->reference)) {
        return qkv_fail(err, QKV_ERR_NUMERIC, "the reference line is at %g", lines->reference);
    }
    return status;
}

/* ---- ranges ---- */

static void add_upright(qkv_extent *y, const qkv_chart_axis *axis, double value) {
    if (axis->scale == QKV_SCALE_LOG && value <= 0) return;
    qkv_extent_add(y, value);
}

static int make_rulers(qkv_sheet *sheet, const qkv_lines *lines, double width, double height,
                       qkv_error *err) {
    qkv_extent x = QKV_EXTENT_NONE, y = QKV_EXTENT_NONE;
    int has_zero = 0;
    for (size_t s = 0; s < lines->n_series; s++) {
        const qkv_series *series = &lines->series[s];
        for (size_t i = 0; i < series->n; i++) {
            if (is_apart(lines, series->x[i]))
                has_zero = 1;
            else
                qkv_extent_add(&x, series->x[i]);
            if (isnan(series->y[i])) continue;
            qkv_extent_add(&y, series->y[i]);
            if (!series->lower) continue;
            add_upright(&y, &lines->y, series->lower[i]);
            add_upright(&y, &lines->y, series->upper[i]);
        }
    }
    if (lines->reference_label) add_upright(&y, &lines->y, lines->reference);
    sheet->has_left = 1;
    int status = qkv_ruler_make(&sheet->below, &lines->x, &x, QKV_RULER_TIGHT,
                                qkv_sheet_most_ticks(width, TICK_ROOM, 8), "x", err);
    if (status != QKV_OK) return status;
    if (has_zero) qkv_ruler_break(&sheet->below);
    return qkv_ruler_make(&sheet->left, &lines->y, &y, QKV_RULER_ROOTED,
                          qkv_sheet_most_ticks(height, TICK_HEIGHT, 7), "y", err);
}

/* ---- lines on each other ---- */

/* Whether two series have the same place at a point, as far as the eye can tell. */
static int meet(const qkv_sheet *sheet, const qkv_series *a, const qkv_series *b, size_t i) {
    if (i >= a->n || i >= b->n || a->x[i] != b->x[i]) return 0;
    if (isnan(a->y[i]) || isnan(b->y[i])) return 0;
    return fabs(qkv_sheet_y(sheet, a->y[i]) - qkv_sheet_y(sheet, b->y[i])) < SAME_PLACE;
}

/* All along: gaps included. A single point is not a line. */
static int coincide(const qkv_sheet *sheet, const qkv_series *a, const qkv_series *b) {
    size_t met = 0;
    if (a->n != b->n) return 0;
    for (size_t i = 0; i < a->n; i++) {
        if (a->x[i] == b->x[i] && isnan(a->y[i]) && isnan(b->y[i])) continue;
        if (!meet(sheet, a, b, i)) return 0;
        met++;
    }
    return met > 1;
}

/* Which of the lines at one place a line is, and how many there are. */
typedef struct share {
    size_t rank, n;
} share;

/* At the points `from` to `to` of series `index`. */
static share turn_of(const qkv_sheet *sheet, const qkv_lines *lines, size_t index, size_t from,
                     size_t to) {
    share found = {0, 0};
    for (size_t s = 0; s < lines->n_series; s++) {
        int met = 1;
        for (size_t i = from; i <= to && met && s != index; i++) {
            met = meet(sheet, &lines->series[index], &lines->series[s], i);
        }
        if (!met) continue;
        found.n++;
        if (s < index) found.rank++;
    }
    return found;
}

/* The first series that this one lies on; `index` where there is none. */
static size_t first_alike(const qkv_sheet *sheet, const qkv_lines *lines, size_t index) {
    for (size_t s = 0; s < index; s++) {
        if (coincide(sheet, &lines->series[s], &lines->series[index])) return s;
    }
    return index;
}

/* The turn of a whole series among those that coincide with it, for the legend. */
static share whole_turn(const qkv_sheet *sheet, const qkv_lines *lines, size_t index) {
    share found = {0, 0};
    for (size_t s = 0; s < lines->n_series; s++) {
        if (s != index && !coincide(sheet, &lines->series[s], &lines->series[index])) continue;
        found.n++;
        if (s < index) found.rank++;
    }
    return found;
}

/* ---- painting ---- */

/* The end of the run of points that begins at `i` and has no gap; nor does a line cross the break of the axis. */
static size_t run_end(const qkv_sheet *sheet, const qkv_series *series, size_t i) {
    const qkv_lines *lines = sheet->chart;
    for (const size_t first = i; i < series->n && !isnan(series->y[i]); i++) {
        if (i > first && is_apart(lines, series->x[i - 1]) != is_apart(lines, series->x[i])) break;
    }
    return i;
}

/* Where the next run may begin: after a gap, or at once. */
static size_t after_run(const qkv_series *series, size_t end) {
    return end < series->n && !isnan(series->y[end]) ? end : end + 1;
}

static void paint_band(const qkv_sheet *sheet, const qkv_painter *painter, const qkv_series *series,
                       uint32_t color, double shade) {
    cairo_t *cr = painter->cr;
    for (size_t i = 0, end; i < series->n; i = after_run(series, end)) {
        end = run_end(sheet, series, i);
        cairo_new_sub_path(cr); /* or it would begin where the one before did */
        for (size_t k = i; k < end; k++) {
            cairo_line_to(cr, qkv_sheet_x(sheet, series->x[k]),
                          qkv_sheet_y(sheet, series->upper[k]));
        }
        for (size_t k = end; k-- > i;) {
            cairo_line_to(cr, qkv_sheet_x(sheet, series->x[k]),
                          qkv_sheet_y(sheet, series->lower[k]));
        }
        cairo_close_path(cr);
    }
    cairo_set_source_rgba(cr, (color >> 16 & 0xff) / 255.0, (color >> 8 & 0xff) / 255.0,
                          (color & 0xff) / 255.0, shade);
    cairo_fill(cr);
}

/* The band of a single point has no area: a thin stroke shows it. */
static void paint_lone_bands(const qkv_sheet *sheet, const qkv_painter *painter,
                             const qkv_series *series, uint32_t color) {
    cairo_set_line_width(painter->cr, LINE / 2);
    qkv_paint_color(painter, color);
    for (size_t i = 0, end; i < series->n; i = after_run(series, end)) {
        end = run_end(sheet, series, i);
        if (end - i != 1) continue;
        const double x = qkv_sheet_x(sheet, series->x[i]);
        cairo_move_to(painter->cr, x, qkv_sheet_y(sheet, series->lower[i]));
        cairo_line_to(painter->cr, x, qkv_sheet_y(sheet, series->upper[i]));
        cairo_stroke(painter->cr);
    }
}

static void set_line(const qkv_painter *painter, size_t index, share at) {
    static const double dashes[][2] = {{0, 0}, {5, 2}, {2, 2}, {8, 2}, {1, 2}, {4, 4}};
    const double *dash = dashes[index / COLORS % (sizeof dashes / sizeof *dashes)];
    const double shared[] = {TURN, TURN * (double)(at.n - 1)};
    cairo_set_line_width(painter->cr, LINE);
    cairo_set_line_join(painter->cr, CAIRO_LINE_JOIN_ROUND);
    if (at.n > 1) {
        cairo_set_dash(painter->cr, shared, 2, -TURN * (double)at.rank);
    } else {
        cairo_set_dash(painter->cr, dash, dash[0] > 0 ? 2 : 0, 0);
    }
    qkv_paint_color(painter, qkv_series_color(index));
}

/* A circle, square, triangle or diamond, of about the same area; larger below others. */
static void paint_mark(cairo_t *cr, double x, double y, size_t index, share at) {
    static const double corners[MARKS][2] = {{0, 0}, {4, 0.5}, {3, 0}, {4, 0}};
    const double n = corners[index % MARKS][0], turn = corners[index % MARKS][1];
    const double pi = acos(-1), larger = 1 + BELOW_OTHERS * (double)(at.n - 1 - at.rank);
    const double size = (n == 0 ? 1 : 1.28) * MARK_SIZE * fmin(larger, LARGEST_MARK);
    cairo_new_sub_path(cr);
    if (n == 0) cairo_arc(cr, x, y, size, 0, 2 * pi);
    for (int i = 0; i < n; i++) {
        const double angle = 2 * pi * (i + turn) / n - pi / 2;
        cairo_line_to(cr, x + size * cos(angle), y + size * sin(angle));
    }
    cairo_close_path(cr);
    cairo_fill(cr);
}

/* The points `from` to `to`, between which the line shares its place with the same others. */
static void paint_stretch(const qkv_sheet *sheet, const qkv_painter *painter,
                          const qkv_series *series, size_t index, size_t from, size_t to,
                          share at) {
    set_line(painter, index, at);
    for (size_t k = from; k <= to; k++) {
        cairo_line_to(painter->cr, qkv_sheet_x(sheet, series->x[k]),
                      qkv_sheet_y(sheet, series->y[k]));
    }
    cairo_stroke(painter->cr);
}

static void paint_series(const qkv_sheet *sheet, const qkv_painter *painter, size_t index) {
    const qkv_lines *lines = sheet->chart;
    const qkv_series *series = &lines->series[index];
    cairo_t *cr = painter->cr;
    for (size_t i = 0, end; i < series->n; i = after_run(series, end)) {
        end = run_end(sheet, series, i);
        for (size_t from = i, to; from + 1 < end; from = to) {
            const share at = turn_of(sheet, lines, index, from, from + 1);
            for (to = from + 1; to + 1 < end; to++) {
                const share next = turn_of(sheet, lines, index, to, to + 1);
                if (next.n != at.n || next.rank != at.rank) break;
            }
            paint_stretch(sheet, painter, series, index, from, to, at);
        }
    }
    cairo_set_dash(cr, NULL, 0, 0);
    qkv_paint_color(painter, qkv_series_color(index));
    for (size_t i = 0; i < series->n; i++) {
        if (isnan(series->y[i])) continue;
        paint_mark(cr, qkv_sheet_x(sheet, series->x[i]), qkv_sheet_y(sheet, series->y[i]), index,
                   turn_of(sheet, lines, index, i, i));
    }
}

static void paint_level(const qkv_painter *painter, double from, double to, double y) {
    static const double dash[] = {3, 2};
    cairo_set_line_width(painter->cr, REFERENCE_LINE);
    cairo_set_dash(painter->cr, dash, 2, 0);
    qkv_paint_color(painter, REFERENCE_COLOR);
    cairo_move_to(painter->cr, from, y);
    cairo_line_to(painter->cr, to, y);
    cairo_stroke(painter->cr);
    cairo_set_dash(painter->cr, NULL, 0, 0);
}

static void paint_samples(const qkv_sheet *sheet, const qkv_painter *painter) {
    for (size_t i = 0; i < sheet->n_samples; i++) {
        const qkv_sample *sample = &sheet->samples[i];
        const double end = sample->x + QKV_SAMPLE_WIDTH;
        if (sample->dashed) {
            paint_level(painter, sample->x, end, sample->y);
            continue;
        }
        set_line(painter, i, whole_turn(sheet, sheet->chart, i));
        cairo_move_to(painter->cr, sample->x, sample->y);
        cairo_line_to(painter->cr, end, sample->y);
        cairo_stroke(painter->cr);
        cairo_set_dash(painter->cr, NULL, 0, 0);
        paint_mark(painter->cr, (sample->x + end) / 2, sample->y, i, (share){0, 1});
    }
}

static void paint_lines(const qkv_sheet *sheet, const qkv_painter *painter) {
    const qkv_lines *lines = sheet->chart;
    const qkv_box *area = &sheet->area;
    cairo_save(painter->cr);
    cairo_rectangle(painter->cr, area->x, area->y, area->width, area->height);
    cairo_clip(painter->cr);
    for (size_t i = 0; i < lines->n_series; i++) {
        if (!lines->series[i].lower) continue;
        paint_band(sheet, painter, &lines->series[i], qkv_series_color(i),
                   lines->n_series > FEW ? FAINT_SHADE : BAND_SHADE);
        paint_lone_bands(sheet, painter, &lines->series[i], qkv_series_color(i));
    }
    if (lines->reference_label) {
        paint_level(painter, area->x, area->x + area->width, qkv_sheet_y(sheet, lines->reference));
    }
    for (size_t i = 0; i < lines->n_series; i++) paint_series(sheet, painter, i);
    cairo_restore(painter->cr);
    paint_samples(sheet, painter);
}

/* ---- the chart ---- */

/* No legend for one series without a name. */
static size_t count_samples(const qkv_lines *lines) {
    const int named = lines->n_series > 1 || lines->series[0].label || lines->reference_label;
    return named ? lines->n_series + (lines->reference_label != NULL) : 0;
}

static const char *label_of(const qkv_series *series) {
    return series->label ? series->label : "";
}

/* What a label says where its line lies on another; after it a NUL. */
static void append_label(qkv_text *out, const qkv_sheet *sheet, const qkv_lines *lines, size_t i) {
    const size_t first = first_alike(sheet, lines, i);
    qkv_text_puts(out, label_of(&lines->series[i]));
    if (first != i) qkv_text_printf(out, ", coincides with %s", label_of(&lines->series[first]));
    qkv_text_append(out, "", 1);
}

static int make_legend(qkv_sheet *sheet, const qkv_lines *lines, qkv_error *err) {
    const size_t n = count_samples(lines);
    qkv_text labels = {0};
    if (n == 0) return QKV_OK;
    qkv_sample *samples = qkv_calloc(n, sizeof *samples);
    for (size_t i = 0; i < lines->n_series; i++) append_label(&labels, sheet, lines, i);
    if (!samples || labels.failed) {
        qkv_text_release(&labels);
        free(samples);
        return qkv_fail_memory(err);
    }
    const char *label = labels.data;
    for (size_t i = 0; i < lines->n_series; i++, label += strlen(label) + 1) {
        samples[i].label = label;
        samples[i].wide = first_alike(sheet, lines, i) != i;
    }
    if (lines->reference_label) samples[n - 1] = (qkv_sample){lines->reference_label, 0, 0, 1, 0};
    const int status = qkv_sheet_legend(sheet, samples, n, lines->legend, err);
    for (size_t i = 0; i < n; i++) samples[i].label = NULL; /* they are on the page */
    qkv_text_release(&labels);
    return status;
}

static int lay_out(qkv_sheet *sheet, double width, qkv_error *err) {
    const qkv_lines *lines = sheet->chart;
    const double legend = qkv_sheet_legend_height(sheet, count_samples(lines), lines->legend);
    const double height = fmax(fmax(HEIGHT * width / WIDTH, LEAST_HEIGHT), legend);
    int status = make_rulers(sheet, lines, width, height, err);
    if (status == QKV_OK) status = qkv_sheet_frame(sheet, width, height, 0, err);
    return status == QKV_OK ? make_legend(sheet, lines, err) : status;
}

static int draw_lines(const qkv_lines *given, const qkv_chart_style *style,
                      const qkv_page_target *to, qkv_error *err) {
    qkv_sheet sheet;
    qkv_lines own = QKV_LINES_INIT;
    const qkv_lines *const lines = &own;
    qkv_series *list = NULL;
    int status = qkv_sheet_open(&sheet, style, to, err);
    if (status == QKV_OK) status = read_lines(&own, &list, given, err);
    if (status == QKV_OK) status = check_lines(lines, err);
    sheet.chart = lines;
    sheet.lay_out = lay_out;
    sheet.paint = paint_lines;
    if (status == QKV_OK) status = qkv_sheet_fit(&sheet, WIDTH, err);
    if (status == QKV_OK) status = qkv_sheet_draw(&sheet, to, err);
    qkv_sheet_close(&sheet);
    free(list);
    return status;
}

int qkv_lines_write(const qkv_lines *lines, const qkv_chart_style *style, const char *path,
                    qkv_error *err) {
    return draw_lines(lines, style, &(qkv_page_target){.path = path}, err);
}

int qkv_lines_render(const qkv_lines *lines, const qkv_chart_style *style, const char *format,
                     char **bytes, size_t *n_bytes, qkv_error *err) {
    return draw_lines(lines, style, &(qkv_page_target){NULL, format, bytes, n_bytes}, err);
}
