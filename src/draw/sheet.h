/*
 * The page of a chart with axes: the area of the data, rulers beside it, a legend outside it on the
 * right (so that it never covers data), title and small print below.
 *
 * A chart fills in `lay_out`, which is asked for an area of some width and calls qkv_sheet_frame and
 * qkv_sheet_legend, and `paint`, which draws the data into the area.
 *
 *     qkv_sheet_open, qkv_sheet_fit, qkv_sheet_draw
 *
 * On a narrow page of given width the legend stands below the chart.
 */
#ifndef QKV_DRAW_SHEET_H
#define QKV_DRAW_SHEET_H

#include "draw/page.h"
#include "draw/paint.h"
#include "draw/ruler.h"

/* One line of the legend. */
typedef struct qkv_sample {
    const char *label;
    double x, y; /* left end of the sample, middle of the line */
    int dashed;  /* the reference line */
    int wide;    /* a long label, which is worth its room */
} qkv_sample;

typedef struct qkv_sheet {
    qkv_chart_style style;
    qkv_lettering lettering;
    qkv_layout layout; /* captions and marks; no panels, no bar */
    qkv_box area;
    double right;  /* where what stands beside the area ends */
    double bottom; /* where what hangs below it ends */
    qkv_ruler below, left;
    int has_left;     /* 0: the area has labels, not numbers, on its left */
    double page;      /* width of the page in units; 0: as wide as the content */
    double scale;     /* points a unit: see fit.h */
    int legend_below; /* and not beside the area */
    qkv_sample *samples;
    size_t n_samples;
    /* An area `width` wide and all around it, on an empty sheet. */
    int (*lay_out)(struct qkv_sheet *sheet, double width, qkv_error *err);
    void (*paint)(const struct qkv_sheet *sheet, const qkv_painter *painter);
    const void *chart;
} qkv_sheet;

/* Checks style and target. Close the sheet also after a failure. */
int qkv_sheet_open(qkv_sheet *sheet, const qkv_chart_style *style, const qkv_page_target *to,
                   qkv_error *err);
void qkv_sheet_close(qkv_sheet *sheet);

/* Lays the chart out: with an area `natural` wide, or as the width of the page wants it. */
int qkv_sheet_fit(qkv_sheet *sheet, double natural, qkv_error *err);

/* Puts the area, `width` x `height`, onto the page and the rulers beside it. `labels` points are
 * kept free on the left where there is no ruler. */
int qkv_sheet_frame(qkv_sheet *sheet, double width, double height, double labels, qkv_error *err);

/* `n` lines whose labels are filled in, which the sheet takes over. */
int qkv_sheet_legend(qkv_sheet *sheet, qkv_sample *samples, size_t n, const char *title,
                     qkv_error *err);
/* How high the area must be for so many lines beside it. */
double qkv_sheet_legend_height(const qkv_sheet *sheet, size_t n, const char *title);

/* Places title and small print and draws. */
int qkv_sheet_draw(qkv_sheet *sheet, const qkv_page_target *to, qkv_error *err);

/* How many ticks a side of `length` takes, one every `room` units: 3 to `most`. */
int qkv_sheet_most_ticks(double length, double room, int most);

/* ---- for painting ---- */

enum { QKV_SAMPLE_WIDTH = 18 }; /* points */

uint32_t qkv_series_color(size_t index);
double qkv_sheet_x(const qkv_sheet *sheet, double value);
double qkv_sheet_y(const qkv_sheet *sheet, double value);

#endif
