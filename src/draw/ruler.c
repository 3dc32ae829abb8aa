/* Ranges and places on an axis of numbers. See ruler.h. */
#include "draw/ruler.h"

#include <math.h>

static const double ROOM = 0.04;       /* beside the data, of its extent */
static const double NEAR_ZERO = 0.35;  /* of the largest value: a smaller least one starts at 0 */
static const double LONE_FACTOR = 3.2; /* to both sides of the only value on a log axis */
static const double FAR_OUTSIDE = -4;

void qkv_extent_add(qkv_extent *extent, double value) {
    extent->least = fmin(extent->least, value);
    extent->most = fmax(extent->most, value);
}

static void choose_log(qkv_grid_style *scale, const qkv_extent *data) {
    if (data->most <= data->least * (1 + 1e-9)) {
        scale->low = data->least / LONE_FACTOR;
        scale->high = data->most * LONE_FACTOR;
        return;
    }
    const double factor = pow(data->most / data->least, ROOM);
    scale->low = data->least / factor;
    scale->high = data->most * factor;
}

static void choose_linear(qkv_grid_style *scale, const qkv_extent *data, qkv_ruler_kind kind) {
    double low = data->least, high = data->most;
    const int from_zero =
        kind == QKV_RULER_BARS || (kind == QKV_RULER_ROOTED && low >= 0 && low <= NEAR_ZERO * high);
    if (from_zero) {
        low = fmin(low, 0);
        high = fmax(high, 0);
    }
    if (high - low <= 1e-12 * fmax(fabs(low), fabs(high))) { /* one value, or nothing but zeros */
        const double size = low == 0 ? 1 : 0.25 * fabs(low);
        low -= kind != QKV_RULER_TIGHT && low == 0 ? 0 : size;
        high += size;
    }
    const double room = ROOM * (high - low);
    scale->low = from_zero && low == 0 ? 0 : low - room;
    scale->high = from_zero && high == 0 ? 0 : high + room;
}

static int check_axis(const qkv_chart_axis *axis, const qkv_extent *data, const char *what,
                      qkv_error *err) {
    if (axis->scale != QKV_SCALE_LINEAR && axis->scale != QKV_SCALE_LOG) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the %s axis of a chart is linear or log", what);
    }
    if (!isfinite(axis->low) || !isfinite(axis->high) || axis->low > axis->high) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the range %g to %g of the %s axis is empty: low must be below high",
                        axis->low, axis->high, what);
    }
    const int given = axis->low < axis->high;
    if (!given && data->least > data->most) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no value to draw on the %s axis", what);
    }
    const double least = given ? axis->low : data->least;
    if (axis->scale == QKV_SCALE_LOG && least <= 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%g has no place on the %s axis, which is log: leave it out, or use a "
                        "linear axis",
                        least, what);
    }
    return QKV_OK;
}

int qkv_ruler_make(qkv_ruler *ruler, const qkv_chart_axis *axis, const qkv_extent *data,
                   qkv_ruler_kind kind, int most, const char *what, qkv_error *err) {
    const int status = check_axis(axis, data, what, err);
    if (status != QKV_OK) return status;
    *ruler = (qkv_ruler){.label = axis->label};
    ruler->scale.scale = axis->scale;
    if (axis->low < axis->high) {
        ruler->scale.low = axis->low;
        ruler->scale.high = axis->high;
    } else if (axis->scale == QKV_SCALE_LOG) {
        choose_log(&ruler->scale, data);
    } else {
        choose_linear(&ruler->scale, data, kind);
    }
    if (!isfinite(ruler->scale.high - ruler->scale.low)) {
        return qkv_fail(err, QKV_ERR_NUMERIC, "the values on the %s axis are too large to draw",
                        what);
    }
    ruler->scale.log_floor = ruler->scale.low;
    ruler->n_ticks = qkv_ticks_make(ruler->ticks, &ruler->scale, most);
    ruler->n_minor = qkv_ticks_minor(ruler->minor, &ruler->scale);
    return QKV_OK;
}

static const double ZERO_AT = 0.03, ABOVE_BREAK = 0.12;

static double above_break(double place) {
    return ABOVE_BREAK + (1 - ABOVE_BREAK) * place;
}

void qkv_ruler_break(qkv_ruler *ruler) {
    ruler->has_zero = 1;
    for (int i = 0; i < ruler->n_minor; i++) ruler->minor[i] = above_break(ruler->minor[i]);
    if (ruler->n_ticks == QKV_MAX_TICKS) ruler->n_ticks--;
    for (int i = ruler->n_ticks++; i > 0; i--) {
        ruler->ticks[i] = ruler->ticks[i - 1];
        ruler->ticks[i].place = above_break(ruler->ticks[i].place);
    }
    ruler->ticks[0] = (qkv_tick){ZERO_AT, "0"};
}

double qkv_ruler_at(const qkv_ruler *ruler, double value) {
    const qkv_grid_style *scale = &ruler->scale;
    if (scale->scale == QKV_SCALE_LINEAR) return (value - scale->low) / (scale->high - scale->low);
    if (value <= 0) return ruler->has_zero && value == 0 ? ZERO_AT : FAR_OUTSIDE;
    const double place = fmax(log(value / scale->low) / log(scale->high / scale->low), FAR_OUTSIDE);
    return ruler->has_zero ? above_break(place) : place;
}
