/*
 * From a value to its colour, in two steps: the scale puts a value onto 0..1, the map gives that
 * place a colour. The colour bar draws the map alone and puts its ticks where the scale says.
 *
 * The map is read at QKV_COLOR_STEPS + 1 evenly spaced places; one of them is the exact middle.
 */
#ifndef QKV_DRAW_COLORMAP_H
#define QKV_DRAW_COLORMAP_H

#include <stdint.h>

#include "qkv/grid.h"

enum { QKV_COLOR_STEPS = 1024 };

typedef struct qkv_colormap {
    qkv_grid_style style;
    uint32_t colors[QKV_COLOR_STEPS + 1];
} qkv_colormap;

void qkv_colormap_make(qkv_colormap *map, const qkv_grid_style *style);

/* Where a chart has no value: white, which the map never is. */
#define QKV_NO_VALUE_COLOR 0xffffffu

/* What qkv_grid_color gives, from the table: for millions of values. */
uint32_t qkv_colormap_color(const qkv_colormap *map, double value);

/* The map itself, t in 0..1: 0xRRGGBB. */
uint32_t qkv_colormap_at(double t);

/* The scale: where on the bar a value lies, 0 (low) to 1 (high), clamped. */
double qkv_scale_place(const qkv_grid_style *style, double value);

/* The factor of linear light, 0 (black) to 1 (white), that decides between white and black text. */
double qkv_color_luminance(uint32_t color);

#endif
