/* The figure's one drawing function: background, panels, bar, ticks, texts. See paint.h. */
#include "draw/paint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/words_show.h"

static const uint32_t LINE_COLOR = 0x1a1a1a;
static const uint32_t FAINT_COLOR = 0x9a9a9a; /* around cells that are thinner than the line */
static const double THIN_CELL = 1.5;          /* points */
static const double INK = 0.1; /* texts at grey 0 are this dark: softer than black on white */

qkv_box qkv_paint_snap(const qkv_painter *painter, const qkv_box *box) {
    const double s = painter->pixels;
    if (s == 0) return *box;
    const double x = round(box->x * s), y = round(box->y * s);
    const double width = fmax(round(box->width * s), 1);
    const double height = fmax(round(box->height * s), 1);
    return (qkv_box){x / s, y / s, width / s, height / s};
}

double qkv_paint_line_width(const qkv_painter *painter) {
    const double s = painter->pixels;
    return s == 0 ? QKV_LINE_WIDTH : fmax(round(QKV_LINE_WIDTH * s), 1) / s;
}

void qkv_paint_color(const qkv_painter *painter, uint32_t color) {
    cairo_set_source_rgb(painter->cr, (color >> 16 & 0xff) / 255.0, (color >> 8 & 0xff) / 255.0,
                         (color & 0xff) / 255.0);
}

static void paint_frame(const qkv_painter *painter, const qkv_box *box, uint32_t color) {
    const qkv_box inner = qkv_paint_snap(painter, box);
    const double line = qkv_paint_line_width(painter);
    cairo_set_line_width(painter->cr, line);
    cairo_set_line_join(painter->cr, CAIRO_LINE_JOIN_MITER);
    qkv_paint_color(painter, color);
    cairo_rectangle(painter->cr, inner.x - line / 2, inner.y - line / 2, inner.width + line,
                    inner.height + line);
    cairo_stroke(painter->cr);
}

void qkv_paint_frame(const qkv_painter *painter, const qkv_box *box) {
    paint_frame(painter, box, LINE_COLOR);
}

static int paint_panel(const qkv_painter *painter, int32_t index, double size, qkv_error *err) {
    const qkv_panel_data *panel = &painter->grid->panels[index];
    const qkv_box *box = &painter->layout->panels[index];
    if (!panel->values) return QKV_OK;
    const int status = qkv_paint_cells(painter, panel, box, err);
    if (status != QKV_OK) return status;
    if (painter->grid->is_chart) qkv_paint_gaps(painter, panel, box);
    if (size > 0) qkv_paint_values(painter, panel, box, size);
    if (panel->smallest == 0 && panel->largest == 0) qkv_paint_zeros(painter, box);
    paint_frame(painter, box, box->width < THIN_CELL * panel->n_cols ? FAINT_COLOR : LINE_COLOR);
    return QKV_OK;
}

static int paint_panels(const qkv_painter *painter, qkv_error *err) {
    double *sizes = qkv_values_sizes(painter);
    if (!sizes) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (int32_t i = 0; i < painter->grid->rows * painter->grid->cols && status == QKV_OK; i++) {
        status = paint_panel(painter, i, sizes[i], err);
    }
    free(sizes);
    return status;
}

void qkv_paint_marks(const qkv_painter *painter) {
    qkv_paint_color(painter, LINE_COLOR);
    for (size_t i = 0; i < painter->layout->n_marks; i++) {
        const qkv_box mark = qkv_paint_snap(painter, &painter->layout->marks[i]);
        cairo_rectangle(painter->cr, mark.x, mark.y, mark.width, mark.height);
        cairo_fill(painter->cr);
    }
}

void qkv_paint_captions(const qkv_painter *painter) {
    cairo_t *cr = painter->cr;
    for (size_t i = 0; i < painter->layout->n_captions; i++) {
        const qkv_caption *caption = &painter->layout->captions[i];
        const double grey = fmax(caption->grey, INK);
        cairo_save(cr);
        cairo_set_source_rgb(cr, grey, grey, grey);
        cairo_translate(cr, caption->x, caption->y);
        if (caption->upright) cairo_rotate(cr, -acos(0));
        cairo_move_to(cr, 0, 0);
        qkv_words_show(cr, caption->words);
        cairo_restore(cr);
    }
}

int qkv_paint_background(cairo_t *cr, qkv_error *err) {
    cairo_surface_t *page = cairo_get_target(cr);
    if (cairo_surface_get_type(page) != CAIRO_SURFACE_TYPE_IMAGE) {
        cairo_set_source_rgb(cr, 1, 1, 1);
        cairo_paint(cr);
        return QKV_OK;
    }
    cairo_surface_flush(page);
    unsigned char *data = cairo_image_surface_get_data(page);
    if (!data) return qkv_fail_memory(err);
    memset(data, 0xff,
           (size_t)cairo_image_surface_get_stride(page) *
               (size_t)cairo_image_surface_get_height(page));
    cairo_surface_mark_dirty(page);
    return QKV_OK;
}

int qkv_paint(const qkv_painter *painter, qkv_error *err) {
    int status = qkv_paint_background(painter->cr, err);
    if (status == QKV_OK) status = paint_panels(painter, err);
    if (status != QKV_OK) return status;
    qkv_paint_bar(painter);
    qkv_paint_marks(painter);
    qkv_paint_captions(painter);
    return QKV_OK;
}
