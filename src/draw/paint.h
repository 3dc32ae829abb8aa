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

typedef struct qkv_painter {
    cairo_t *cr;   /* one unit is one point */
    double pixels; /* per point; 0 on a vector surface */
    const qkv_grid *grid;
    const qkv_grid_style *style;
    const qkv_lettering *lettering;
    const qkv_layout *layout;
    const qkv_colormap *map;
} qkv_painter;

/* The whole figure: the one function that draws, whatever the surface. */
int qkv_paint(const qkv_painter *painter, qkv_error *err);

/* colorbar.c */
void qkv_paint_bar(const qkv_painter *painter);
/* panel.c: the cells of one matrix, without the frame. */
int qkv_paint_cells(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                    qkv_error *err);
/* values.c: numbers in the cells. Their size in every panel of the grid, 0 where they are not to be
 * shown; freed with free, NULL when memory is short. */
double *qkv_values_sizes(const qkv_painter *painter);
void qkv_paint_values(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                      double size);

/* panel.c: a stroke through every cell that holds no value. */
void qkv_paint_gaps(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box);

/* ---- helpers of those above, and of charts, whose painters have no grid, style and map ---- */

/* A frame around a box, outside it: nothing inside loses any of its area. */
void qkv_paint_frame(const qkv_painter *painter, const qkv_box *box);
void qkv_paint_marks(const qkv_painter *painter);
void qkv_paint_captions(const qkv_painter *painter);

/* The box with its edges moved to the nearest pixels (unchanged on a vector surface). */
qkv_box qkv_paint_snap(const qkv_painter *painter, const qkv_box *box);
void qkv_paint_color(const qkv_painter *painter, uint32_t color);
/* The thickness of a line: whole pixels. */
double qkv_paint_line_width(const qkv_painter *painter);

#endif
