/*
 * The colours of values: the scales, and the maps.
 *
 * coolwarm is the diverging map blue - light grey - red, by Kenneth Moreland's rule ("Diverging Color Maps for
 * Scientific Visualization", 2009): both ends are taken to Msh, polar coordinates of CIELAB (M
 * magnitude, s saturation, h hue), and led along straight lines to an unsaturated point between
 * them. The hue of the grey point is turned a little away from the end's, which keeps the steps
 * perceptually even.
 *
 * viridis, cividis and magma (van der Walt and Smith; Nuñez, Anderton and Renslow) are a smooth curve
 * through ten of their colours each. grey goes in even steps of lightness, from a grey that is not
 * the page's white.
 */
#include "draw/colormap.h"

#include <math.h>

#include "base/sized.h"
#include "draw/draw.h"

typedef struct vec3 {
    double a, b, c;
} vec3;

static const uint32_t LOW_END = 0x3b4cc0, HIGH_END = 0xb40426;
static const vec3 WHITE = {0.950456, 1.0, 1.089058}; /* D65, XYZ */
static const double GREY_MAGNITUDE = 88, PI = 3.14159265358979323846;

static double linear_light(double channel) {
    return channel <= 0.04045 ? channel / 12.92 : pow((channel + 0.055) / 1.055, 2.4);
}

static double display_value(double light) {
    return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

static double lab_curve(double x) {
    return x > 0.008856 ? cbrt(x) : 7.787 * x + 16.0 / 116.0;
}

static double lab_curve_inverse(double y) {
    return y > 0.206893 ? y * y * y : (y - 16.0 / 116.0) / 7.787;
}

static vec3 light_of(uint32_t color) {
    return (vec3){linear_light((color >> 16 & 0xff) / 255.0),
                  linear_light((color >> 8 & 0xff) / 255.0), linear_light((color & 0xff) / 255.0)};
}

static vec3 msh_from_color(uint32_t color) {
    const vec3 rgb = light_of(color);
    const double x = 0.4124564 * rgb.a + 0.3575761 * rgb.b + 0.1804375 * rgb.c;
    const double y = 0.2126729 * rgb.a + 0.7151522 * rgb.b + 0.0721750 * rgb.c;
    const double z = 0.0193339 * rgb.a + 0.1191920 * rgb.b + 0.9503041 * rgb.c;
    const double fx = lab_curve(x / WHITE.a), fy = lab_curve(y / WHITE.b),
                 fz = lab_curve(z / WHITE.c);
    const double l = 116 * fy - 16, a = 500 * (fx - fy), b = 200 * (fy - fz);
    const double m = sqrt(l * l + a * a + b * b);
    return (vec3){m, acos(l / m), atan2(b, a)};
}

static uint32_t channel_of(double light) {
    const double value = display_value(fmax(light, 0));
    return (uint32_t)lround(255 * fmin(value, 1));
}

static uint32_t color_from_msh(vec3 msh) {
    const double l = msh.a * cos(msh.b);
    const double a = msh.a * sin(msh.b) * cos(msh.c), b = msh.a * sin(msh.b) * sin(msh.c);
    const double fy = (l + 16) / 116, fx = fy + a / 500, fz = fy - b / 200;
    const double x = WHITE.a * lab_curve_inverse(fx), y = WHITE.b * lab_curve_inverse(fy),
                 z = WHITE.c * lab_curve_inverse(fz);
    return channel_of(3.2404542 * x - 1.5371385 * y - 0.4985314 * z) << 16 |
           channel_of(-0.9692660 * x + 1.8760108 * y + 0.0415560 * z) << 8 |
           channel_of(0.0556434 * x - 0.2040259 * y + 1.0572252 * z);
}

/* The hue that the unsaturated point takes on the way from a saturated end. */
static double grey_hue(vec3 end, double magnitude) {
    if (end.a >= magnitude) return end.c;
    const double spin = end.b * sqrt(magnitude * magnitude - end.a * end.a) / (end.a * sin(end.b));
    /* Away from purple, whichever side of it the end lies. */
    return end.c > -PI / 3 ? end.c + spin : end.c - spin;
}

static double mix(double from, double to, double t) {
    return from + (to - from) * t;
}

static uint32_t coolwarm_at(double t) {
    const uint32_t end_color = t < 0.5 ? LOW_END : HIGH_END;
    const vec3 low = msh_from_color(LOW_END), high = msh_from_color(HIGH_END);
    const vec3 end = t < 0.5 ? low : high;
    const double magnitude = fmax(fmax(low.a, high.a), GREY_MAGNITUDE);
    const double away = fmin(fabs(2 * t - 1), 1); /* 0 at the grey point, 1 at the end */
    if (away == 1) return end_color;
    return color_from_msh((vec3){mix(magnitude, end.a, away), mix(0, end.b, away),
                                 mix(grey_hue(end, magnitude), end.c, away)});
}

/* ---- sequential maps ---- */

enum { KNOTS = 10 };
static const uint32_t VIRIDIS[KNOTS] = {0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e,
                                        0x1f9e89, 0x35b779, 0x6dcd59, 0xb4de2c, 0xfde725};
static const uint32_t CIVIDIS[KNOTS] = {0x00204d, 0x00336f, 0x39486b, 0x575c6d, 0x707173,
                                        0x8a8779, 0xa69d75, 0xc4b56c, 0xe4cf5b, 0xffea46};
static const uint32_t MAGMA[KNOTS] = {0x000004, 0x180f3e, 0x451077, 0x721f81, 0x9f2f7f,
                                      0xcd4071, 0xf1605d, 0xfd9567, 0xfec98d, 0xfcfdbf};
static const double LIGHTEST = 91, DARKEST = 6; /* of grey: L of CIELAB */

/* One channel of a knot; beyond the ends, what keeps the last slope. */
static double knot(const uint32_t *knots, int i, int shift) {
    if (i < 0) return 2 * knot(knots, 0, shift) - knot(knots, 1, shift);
    if (i >= KNOTS) return 2 * knot(knots, KNOTS - 1, shift) - knot(knots, KNOTS - 2, shift);
    return knots[i] >> shift & 0xff;
}

/* Catmull and Rom's curve between the knots i and i + 1. */
static uint32_t curve_channel(const uint32_t *knots, int i, double u, int shift) {
    const double a = knot(knots, i - 1, shift), b = knot(knots, i, shift),
                 c = knot(knots, i + 1, shift), d = knot(knots, i + 2, shift);
    const double value =
        b + 0.5 * u * (c - a + u * (2 * a - 5 * b + 4 * c - d + u * (3 * (b - c) + d - a)));
    return (uint32_t)lround(fmin(fmax(value, 0), 255));
}

static uint32_t curve_at(const uint32_t *knots, double t) {
    const double place = t * (KNOTS - 1);
    const int i = (int)fmin(place, KNOTS - 2);
    return curve_channel(knots, i, place - i, 16) << 16 |
           curve_channel(knots, i, place - i, 8) << 8 | curve_channel(knots, i, place - i, 0);
}

static uint32_t grey_at(double t) {
    return color_from_msh((vec3){mix(LIGHTEST, DARKEST, t), 0, 0});
}

static double clamp01(double t) {
    return t > 0 ? fmin(t, 1) : 0; /* NaN becomes 0 */
}

uint32_t qkv_colormap_at(qkv_colormap map, double t) {
    t = clamp01(t);
    switch (map) {
    case QKV_COLORMAP_VIRIDIS:
        return curve_at(VIRIDIS, t);
    case QKV_COLORMAP_CIVIDIS:
        return curve_at(CIVIDIS, t);
    case QKV_COLORMAP_MAGMA:
        return curve_at(MAGMA, t);
    case QKV_COLORMAP_GREY:
        return grey_at(t);
    case QKV_COLORMAP_AUTO:
    case QKV_COLORMAP_COOLWARM:
        break;
    }
    return coolwarm_at(t);
}

/* ---- scales ---- */

/* value's place between low and high under the style's scale, not yet clamped above. */
static double place_between(const qkv_grid_style *style, double value, double low, double high) {
    if (style->scale == QKV_SCALE_LOG) {
        if (value <= style->log_floor) return 0;
        return log10(value / style->log_floor) / log10(high / style->log_floor);
    }
    const double linear = (value - low) / (high - low);
    if (style->scale == QKV_SCALE_POWER) return linear > 0 ? pow(linear, style->gamma) : 0;
    return linear;
}

double qkv_scale_place(const qkv_grid_style *style, double value) {
    if (!style->diverging) {
        return clamp01(place_between(style, value, style->low, style->high));
    }
    const double half = clamp01(place_between(style, fabs(value), 0, style->high)) / 2;
    return value < 0 ? 0.5 - half : 0.5 + half;
}

static long step_of(const qkv_grid_style *style, double value) {
    return lround(qkv_scale_place(style, value) * QKV_COLOR_STEPS);
}

void qkv_color_table_make(qkv_color_table *table, const qkv_grid_style *style) {
    table->style = *style;
    for (int i = 0; i <= QKV_COLOR_STEPS; i++) {
        table->colors[i] = qkv_colormap_at(style->colormap, (double)i / QKV_COLOR_STEPS);
    }
}

uint32_t qkv_color_table_color(const qkv_color_table *table, double value) {
    return isnan(value) ? QKV_NO_VALUE_COLOR : table->colors[step_of(&table->style, value)];
}

uint32_t qkv_grid_color(const qkv_grid_style *style, double value) {
    qkv_grid_style own = QKV_GRID_STYLE_INIT;
    qkv_sized_read(&own, sizeof own, style, "qkv_grid_style", NULL);
    return qkv_colormap_at(own.colormap, (double)step_of(&own, value) / QKV_COLOR_STEPS);
}

/* ---- bands ---- */

enum { MOST_HUES = QKV_MOST_BANDS - 1 };
/* Apart for most eyes (Okabe and Ito); what most cells are comes first, and is the calmest. */
static const uint32_t NO_BAND = 0xe6e6e6, HUES[MOST_HUES] = {0x56b4e9, 0x8c510a, 0x009e73, 0xcc79a7,
                                                             0xe69f00, 0xd55e00, 0x0072b2};
static const double BAND_EDGE = 0.02, PALEST = 0.25;

double qkv_band_value(int32_t band, double part) {
    return band + BAND_EDGE + (1 - 2 * BAND_EDGE) * clamp01(part);
}

static uint32_t band_color(int32_t band, double part) {
    if (band == 0) return NO_BAND;
    const double t = mix(PALEST, 1, clamp01((part - BAND_EDGE) / (1 - 2 * BAND_EDGE)));
    const vec3 hue = light_of(HUES[(band - 1) % MOST_HUES]);
    return channel_of(mix(1, hue.a, t)) << 16 | channel_of(mix(1, hue.b, t)) << 8 |
           channel_of(mix(1, hue.c, t));
}

void qkv_color_table_set_bands(qkv_color_table *table, int32_t n) {
    for (int i = 0; i <= QKV_COLOR_STEPS; i++) {
        const double place = (double)i / QKV_COLOR_STEPS * n;
        const int32_t band = place < n ? (int32_t)place : n - 1;
        table->colors[i] = band_color(band, place - band);
    }
}

double qkv_color_luminance(uint32_t color) {
    const vec3 rgb = light_of(color);
    return 0.2126 * rgb.a + 0.7152 * rgb.b + 0.0722 * rgb.c;
}
