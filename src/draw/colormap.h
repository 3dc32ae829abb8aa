/*
 * From a value to its colour, in two steps: the scale puts a value onto 0..1, the map gives that
 * place a colour. The colour bar draws the map alone and puts its ticks where the scale says.
 *
 * A map is read at QKV_COLOR_STEPS + 1 evenly spaced places; one of them is the exact middle.
 */
#ifndef QKV_DRAW_COLORMAP_H
#define QKV_DRAW_COLORMAP_H

#include <stdint.h>

#include "qkv/grid.h"

enum { QKV_COLOR_STEPS = 1024 };
enum { QKV_MOST_BANDS = 8 };

typedef struct qkv_color_table {
    qkv_grid_style style;
    uint32_t colors[QKV_COLOR_STEPS + 1];
} qkv_color_table;

void qkv_color_table_make(qkv_color_table *table, const qkv_grid_style *style);
/* For values of that many bands: a hue each, pale at its low end; the first is grey. */
void qkv_color_table_set_bands(qkv_color_table *table, int32_t n);
/* The value of a band whose strength is `part`, 0 to 1: rounding leads to no other band. */
double qkv_band_value(int32_t band, double part);

/* Where a chart has no value, and what a mask took away: white, which no map ever is. */
#define QKV_NO_VALUE_COLOR 0xffffffu

/* What qkv_grid_color gives, from the table: for millions of values. */
uint32_t qkv_color_table_color(const qkv_color_table *table, double value);

/* A map itself, t in 0..1: 0xRRGGBB. */
uint32_t qkv_colormap_at(qkv_colormap map, double t);

/* The scale: where on the bar a value lies, 0 (low) to 1 (high), clamped. */
double qkv_scale_place(const qkv_grid_style *style, double value);

/* The factor of linear light, 0 (black) to 1 (white), that decides between white and black text. */
double qkv_color_luminance(uint32_t color);

#endif
