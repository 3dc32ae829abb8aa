/*
 * Pages of a given width.
 *
 * A page is laid out in its own units and drawn with a scale, in points a unit. Where the width that
 * is wanted is near the natural one, everything is drawn larger or smaller. Beyond that letters keep
 * their size, which is never below 5 points, and panels or the area of a chart take what is left. Of
 * grids, all else is made smaller first: letters down to 5 points and then margins and gaps, so that
 * panels have most of a narrow page, also where they are naturally small. Letters whose size is given
 * keep it.
 */
#ifndef QKV_DRAW_FIT_H
#define QKV_DRAW_FIT_H

#include "draw/layout.h"

/* Points a unit for a page of `width` points whose content naturally takes `content` units. */
double qkv_fit_scale(double width, double content);
/* The least of all scales: the smallest letters are 5 points high. */
double qkv_fit_least_scale(void);
/* Letters that are this large in units are 5 points high. */
double qkv_fit_least_letters(double scale);
/* An error: the content takes `least` points. font_size is what was given, or 0. */
int qkv_fit_fail(double width, double least, double font_size, qkv_error *err);

/* Letters of panels' titles and of axes' names are so large in units: what a font size is about. */
#define QKV_FONT_UNITS 8.0

/* A layout of the style's width, or the natural one where that is 0. */
int qkv_layout_fit(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style,
                   qkv_lettering *lettering, qkv_error *err);

#endif
