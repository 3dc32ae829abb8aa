/*
 * The page: where everything of a figure stands, in points (unless it is scaled: see fit.h), worked out once and drawn as it is on
 * any surface.
 *
 *      title      title
 *     +------+   +------+   +-+ 1.0
 *     |      |   |      |   | |        the colour bar is as high as all rows of panels together
 *     +------+   +------+   | |
 *      title      title     | |
 *   Q +------+   +------+   | |
 *     |      |   |      |   | |
 *     +------+   +------+   +-+ 0.0
 *      tokens     tokens
 *        Key        Key
 *            Title
 *     small print ...
 *
 * Every text is a pango layout that was measured to find its place, so none is cut off and none
 * meets another.
 */
#ifndef QKV_DRAW_LAYOUT_H
#define QKV_DRAW_LAYOUT_H

#include "draw/axis.h"
#include "draw/grid_data.h"
#include "draw/lettering.h"

typedef struct qkv_box {
    double x, y, width, height;
} qkv_box;

/* A text and where its origin (top left, before turning) goes. */
typedef struct qkv_caption {
    PangoLayout *words;
    double x, y;
    int upright; /* turned to read from bottom to top */
    double grey; /* 0 black, 1 white */
} qkv_caption;

typedef struct qkv_layout {
    double width, height;
    double content;    /* what the panels and all beside them take of the width, with margins */
    double scale;      /* points a unit: see fit.h */
    double panel_size; /* side of a panel, points */
    int32_t rows, cols;
    int row_tokens, col_tokens; /* labels are tokens where there are any; 0: positions */
    qkv_box *panels;            /* rows x cols matrices; width 0 where there is none */
    qkv_box bar;                /* with its pointed ends */
    int bar_below, bar_above;   /* pointed end: some value lies beyond the range */
    double tip;                 /* height of a pointed end */
    qkv_caption *captions;
    size_t n_captions, captions_capacity;
    qkv_box *marks; /* ticks */
    size_t n_marks, marks_capacity;
} qkv_layout;

/* In units; a style's width is the page's, in units, and what is narrower stands in its middle. */
int qkv_layout_make(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style,
                    const qkv_lettering *lettering, qkv_error *err);
void qkv_layout_release(qkv_layout *layout);

/* The ink of a caption on the page. */
qkv_box qkv_caption_ink(const qkv_caption *caption);

/* Takes over `words`, also on failure; 0 when memory is short or words is NULL. */
int qkv_layout_caption(qkv_layout *layout, PangoLayout *words, double x, double y, int upright,
                       double grey);
int qkv_layout_mark(qkv_layout *layout, double x, double y, double width, double height);

/* Labels left of a panel, and how far they reach from it. */
int qkv_layout_row_axis(qkv_layout *layout, const qkv_axis *axis, const qkv_box *panel);
double qkv_axis_reach(const qkv_axis *axis);

/* colorbar.c: the bar's ticks and label, at layout->bar; a label that is longer than the bar may
 * reach down to `bottom`. Returns the right edge of it all, or -1 when memory is short. */
double qkv_colorbar_place(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style,
                          const qkv_lettering *lettering, double bottom);

/* Title and small print, from y downwards, under the middle of `area`; NULL: none. Returns where
 * the page's content ends, -1 when memory is short. */
double qkv_layout_texts(qkv_layout *layout, const qkv_box *area, double y, const char *title,
                        const char *small_print, const qkv_lettering *lettering);

#define QKV_LINE_WIDTH 0.6 /* of frames and ticks, points */
#define QKV_MARGIN 12.0    /* around the page */
#define QKV_CENTRE 0.36    /* half the height of a capital, in letter sizes */

#endif
