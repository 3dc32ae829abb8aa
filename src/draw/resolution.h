/*
 * How many pixels a grid gets, so that each of its cells has one where a printed page can show that.
 *
 * Panels of many cells grow first, up to the size of a page; then the resolution of a PNG grows, up to
 * what is printed. Images on vector surfaces have no resolution but the same bound. What is still too
 * small is pooled by panel_image.c, and the small print says so.
 */
#ifndef QKV_DRAW_RESOLUTION_H
#define QKV_DRAW_RESOLUTION_H

#include "base/text.h"
#include "draw/paint.h"

/* 100 megapixels: 400 MB while a PNG is drawn, and what ordinary viewers open. */
#define QKV_MOST_PAGE 1e8

/* The side of a panel in points, before anything is laid out. */
double qkv_resolution_panel_size(const qkv_grid *grid, const qkv_grid_style *style);

/* The resolution of a PNG of the page that was laid out. */
double qkv_resolution_dpi(const qkv_grid *grid, const qkv_grid_style *style,
                          const qkv_layout *layout);

/* The images on a vector surface. */
qkv_image_size qkv_resolution_images(const qkv_grid *grid, const qkv_layout *layout);

/* What a pixel stands for in the panel where that is most. */
typedef struct qkv_pixel_cells {
    int32_t rows, cols; /* 1 x 1: every cell has its own */
    int uneven;         /* some pixels stand for fewer */
    int32_t panels;     /* in so many panels pixels stand for several cells */
    int32_t widened;    /* in so many, strong columns or diagonals are wider than their cells */
} qkv_pixel_cells;

qkv_pixel_cells qkv_resolution_cells(const qkv_painter *painter);

/* "a pixel shows the largest of 4 × 4 cells", after what `text` holds, and what is said of strong lines;
 * nothing where every cell has its own pixel, and no more than that. */
void qkv_resolution_note(qkv_text *text, const qkv_pixel_cells *cells, const qkv_grid_style *style);

#endif
