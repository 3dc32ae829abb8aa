/*
 * Drawing a laid-out figure onto a cairo surface.
 *
 * Surfaces of pixels get edges that lie on pixels: crisp cells, no blending between them. Vector
 * surfaces get exact coordinates.
 */
#ifndef QKV_DRAW_PAINT_H
#define QKV_DRAW_PAINT_H

#include <cairo.h>

#include "draw/colormap.h"
#include "draw/layout.h"

/* Images on a vector surface, along a side. */
typedef struct qkv_image_size {
    int32_t least; /* pixels: fewer cells get blocks of several */
    int32_t pool;  /* cells that a pixel of larger ones stands for */
} qkv_image_size;

typedef struct qkv_painter {
    cairo_t *cr;   /* one unit is one point */
    double pixels; /* per point; 0 on a vector surface */
    const qkv_grid *grid;
    const qkv_grid_style *style;
    const qkv_lettering *lettering;
    const qkv_layout *layout;
    const qkv_color_table *colors;
    qkv_image_size images; /* on a vector surface */
} qkv_painter;

/* The whole figure: the one function that draws, whatever the surface. */
int qkv_paint(const qkv_painter *painter, qkv_error *err);

/* A white page. Where memory is short, cairo leaves out areas of an image and does not say so: pixels
 * are therefore set here, and not by cairo. */
int qkv_paint_background(cairo_t *cr, qkv_error *err);

/* colorbar.c */
void qkv_paint_bar(const qkv_painter *painter);
/* panel.c: the cells of one matrix, without the frame. */
int qkv_paint_cells(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                    qkv_error *err);
/* A page of more panels has small ones, which are drawn more simply. */
enum { QKV_FEW_PANELS = 64 };
/* Whether the cells of a panel are rectangles on a vector surface, and not an image. Charts have no
 * grid. */
int qkv_panel_is_vector(const qkv_grid *grid, const qkv_panel_data *panel);

/* panel_image.c: the same as an image, and how many pixels that has. */
int qkv_paint_image(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                    qkv_error *err);
void qkv_panel_pixels(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                      int32_t *width, int32_t *height);
/* Whether strong lines of the image are drawn wider than their cells. */
int qkv_panel_is_widened(const qkv_painter *painter, const qkv_panel_data *panel,
                         const qkv_box *box);
/* values.c: numbers in the cells. Their size in every panel of the grid, 0 where they are not to be
 * shown; freed with free, NULL when memory is short. */
double *qkv_values_sizes(const qkv_painter *painter);
void qkv_paint_values(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                      double size);

/* values.c: says of a panel that all its values are exactly 0. */
void qkv_paint_zeros(const qkv_painter *painter, const qkv_box *box);

/* panel.c: a stroke through every cell that holds no value. */
void qkv_paint_gaps(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box);

/* ---- masked cells ---- */

static inline int qkv_paint_hides_masked(const qkv_painter *painter) {
    return painter->style->masked != QKV_MASKED_ZERO;
}

#define QKV_HATCH_PERIOD 4.0 /* points along an edge */
#define QKV_HATCH_LINE 0.5
#define QKV_HATCH_COLOR 0xb4b4b4u

/* Which of the cells under a pixel it shows. */
static inline qkv_pooling qkv_style_pooling(const qkv_grid_style *style) {
    if (style->pooling != QKV_POOLING_AUTO) return style->pooling;
    return style->diverging ? QKV_POOLING_MAGNITUDE : QKV_POOLING_LARGEST;
}

/* ---- helpers of those above, and of charts, whose painters have no grid, style and map ---- */

/* A frame around a box, outside it: nothing inside loses any of its area. */
void qkv_paint_frame(const qkv_painter *painter, const qkv_box *box);
void qkv_paint_marks(const qkv_painter *painter);
void qkv_paint_captions(const qkv_painter *painter);

/* The box with its edges moved to the nearest pixels (unchanged on a vector surface): boxes of one
 * size have as many pixels. */
qkv_box qkv_paint_snap(const qkv_painter *painter, const qkv_box *box);
void qkv_paint_color(const qkv_painter *painter, uint32_t color);
/* The thickness of a line: whole pixels. */
double qkv_paint_line_width(const qkv_painter *painter);

#endif
