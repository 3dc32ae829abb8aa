/* What a drawn SVG holds, as numbers: its filled and stroked paths. */
#ifndef QKV_TESTS_SUPPORT_SVG_H
#define QKV_TESTS_SUPPORT_SVG_H

#include <stddef.h>

#include "draw/layout.h"

enum { SVG_POINTS = 32, SVG_NO_COLOR = -1 };

typedef struct svg_path {
    double x[SVG_POINTS], y[SVG_POINTS];
    size_t n; /* points; 0: there is no such path */
    qkv_box box;
    long fill; /* 0xRRGGBB, or SVG_NO_COLOR */
} svg_path;

/* Path number `index` of those that have a property with this value: "stroke-width", "1.3". */
svg_path svg_find(const char *svg, const char *property, const char *value, size_t index);

/* The colour of the last filled path whose box holds the point. */
long svg_color_at(const char *svg, double x, double y);

/* Fails unless the two are the same to a hundredth of a point: SVGs are rounded to less. */
void check_same_place(double found, double wanted, const char *what);
void check_same_box(const qkv_box *found, const qkv_box *wanted, const char *what);

#endif
