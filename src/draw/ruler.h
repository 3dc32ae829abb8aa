/*
 * An axis of numbers beside a chart: its range, where a value lies on it, its ticks.
 */
#ifndef QKV_DRAW_RULER_H
#define QKV_DRAW_RULER_H

#include <math.h>

#include "base/fail.h"
#include "draw/ticks.h"
#include "qkv/chart.h"

typedef struct qkv_ruler {
    qkv_grid_style scale; /* of which only the range and the scale are used */
    const char *label;
    qkv_tick ticks[QKV_MAX_TICKS];
    int n_ticks;
    double minor[QKV_MAX_MINOR];
    int n_minor;
    int has_zero; /* a log axis that is broken: 0 has a place of its own, at the low end */
} qkv_ruler;

/* What the data takes up. Start with QKV_EXTENT_NONE. */
typedef struct qkv_extent {
    double least, most;
} qkv_extent;

#define QKV_EXTENT_NONE ((qkv_extent){(double)INFINITY, -(double)INFINITY})

/* NaN does not count. */
void qkv_extent_add(qkv_extent *extent, double value);

/* How a range that the caller did not give is chosen.
 *   TIGHT  as far as the data, and a little room to both sides
 *   ROOTED the same, but from 0 where the data comes near it
 *   BARS   0 is always part of it */
typedef enum qkv_ruler_kind { QKV_RULER_TIGHT, QKV_RULER_ROOTED, QKV_RULER_BARS } qkv_ruler_kind;

/* `what` names the axis in errors; at most `most` ticks. */
int qkv_ruler_make(qkv_ruler *ruler, const qkv_chart_axis *axis, const qkv_extent *data,
                   qkv_ruler_kind kind, int most, const char *what, qkv_error *err);

/* Breaks a log axis: its numbers move up, and 0 with a tick of its own stands apart below them. The break itself
 * is at QKV_BREAK. */
void qkv_ruler_break(qkv_ruler *ruler);
#define QKV_BREAK 0.075

/* Where a value lies: 0 at the low end, 1 at the high one, beyond them outside. */
double qkv_ruler_at(const qkv_ruler *ruler, double value);

#endif
