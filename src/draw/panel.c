/*
 * The cells of one matrix.
 *
 * On a vector surface, matrices of up to MOST_VECTOR cells a side are rectangles, so that every
 * cell keeps its exact colour and edge. Each reaches a little below its right and lower
 * neighbours, which are drawn later and cover it again: viewers that blend edges then blend two
 * cells, and never let the white page shine through between them. Where a page has many panels,
 * only as many cells as keep the file small are drawn so.
 *
 * Everything else is one image per panel (panel_image.c).
 */
#include <math.h>

#include "draw/paint.h"

enum { MOST_VECTOR = 64, MOST_RECTANGLES = 50000 };
static const double OVERLAP = 1; /* points: a pixel of the coarsest screen */
static const double GAP_LINE = 0.5;
static const uint32_t GAP_COLOR = 0x9a9a9a;

/* ---- rectangles ---- */

static int is_hidden(const qkv_painter *painter, const qkv_panel_data *panel, int32_t r,
                     int32_t c) {
    if (!qkv_paint_hides_masked(painter)) return 0;
    return panel->values[(size_t)r * (size_t)panel->n_cols + (size_t)c] == 0 &&
           qkv_cell_is_masked(panel, r, c);
}

static uint32_t cell_color(const qkv_painter *painter, const qkv_panel_data *panel, int32_t r,
                           int32_t c) {
    if (is_hidden(painter, panel, r, c)) return QKV_NO_VALUE_COLOR;
    return qkv_color_table_color(painter->colors,
                                 panel->values[(size_t)r * (size_t)panel->n_cols + (size_t)c]);
}

static void paint_rectangles(const qkv_painter *painter, const qkv_panel_data *panel,
                             const qkv_box *box) {
    const double dx = box->width / panel->n_cols, dy = box->height / panel->n_rows;
    const double more_x = fmin(OVERLAP, dx / 2), more_y = fmin(OVERLAP, dy / 2);
    for (int32_t r = 0; r < panel->n_rows; r++) {
        const double y = r * dy, bottom = fmin(y + dy + more_y, box->height);
        for (int32_t c = 0, end; c < panel->n_cols; c = end) {
            const uint32_t color = cell_color(painter, panel, r, c);
            /* Neighbours of one colour are one rectangle. */
            for (end = c + 1; end < panel->n_cols; end++) {
                if (cell_color(painter, panel, r, end) != color) break;
            }
            const double right = fmin(end * dx + more_x, box->width);
            qkv_paint_color(painter, color);
            cairo_rectangle(painter->cr, box->x + c * dx, box->y + y, right - c * dx, bottom - y);
            cairo_fill(painter->cr);
        }
    }
}

/* Lines through what a mask took away. */
static void hatch_rectangles(const qkv_painter *painter, const qkv_panel_data *panel,
                             const qkv_box *box) {
    const double dx = box->width / panel->n_cols, dy = box->height / panel->n_rows;
    cairo_t *cr = painter->cr;
    cairo_save(cr);
    for (int32_t r = 0; r < panel->n_rows; r++) {
        for (int32_t c = 0, end; c < panel->n_cols; c = end) {
            const int hidden = is_hidden(painter, panel, r, c);
            for (end = c + 1; end < panel->n_cols; end++) {
                if (is_hidden(painter, panel, r, end) != hidden) break;
            }
            if (!hidden) continue;
            cairo_rectangle(cr, box->x + c * dx, box->y + r * dy, (end - c) * dx, dy);
        }
    }
    cairo_clip(cr);
    const int n_lines = (int)ceil((box->width + box->height) / QKV_HATCH_PERIOD);
    for (int i = 0; i < n_lines; i++) {
        const double at = i * QKV_HATCH_PERIOD;
        cairo_move_to(cr, box->x + at, box->y);
        cairo_line_to(cr, box->x + at - box->height, box->y + box->height);
    }
    cairo_set_line_width(cr, QKV_HATCH_LINE);
    qkv_paint_color(painter, QKV_HATCH_COLOR);
    cairo_stroke(cr);
    cairo_restore(cr);
}

/* ---- all of them ---- */

/* Rectangles are a hundred bytes each: a page of hundreds of maps has images. */
int qkv_panel_is_vector(const qkv_grid *grid, const qkv_panel_data *panel) {
    const int64_t n_panels = grid ? (int64_t)grid->rows * grid->cols : 1;
    if (panel->n_rows > MOST_VECTOR || panel->n_cols > MOST_VECTOR) return 0;
    return n_panels <= QKV_FEW_PANELS ||
           n_panels * panel->n_rows * panel->n_cols <= MOST_RECTANGLES;
}

void qkv_paint_gaps(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box) {
    const double dx = box->width / panel->n_cols, dy = box->height / panel->n_rows;
    cairo_t *cr = painter->cr;
    cairo_set_line_width(cr, fmin(GAP_LINE, fmin(dx, dy) / 8));
    qkv_paint_color(painter, GAP_COLOR);
    for (int32_t r = 0; r < panel->n_rows; r++) {
        for (int32_t c = 0; c < panel->n_cols; c++) {
            if (!isnan(panel->values[(size_t)r * (size_t)panel->n_cols + (size_t)c])) continue;
            cairo_move_to(cr, box->x + c * dx, box->y + (r + 1) * dy);
            cairo_line_to(cr, box->x + (c + 1) * dx, box->y + r * dy);
            cairo_stroke(cr);
        }
    }
}

int qkv_paint_cells(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                    qkv_error *err) {
    if (painter->pixels > 0 || !qkv_panel_is_vector(painter->grid, panel)) {
        return qkv_paint_image(painter, panel, box, err);
    }
    paint_rectangles(painter, panel, box);
    if (painter->style->masked == QKV_MASKED_HATCH) hatch_rectangles(painter, panel, box);
    return QKV_OK;
}
