/*
 * The cells of one matrix.
 *
 * On a vector surface, matrices of up to MOST_VECTOR cells a side are rectangles, so that every
 * cell keeps its exact colour and edge. Each reaches a little below its right and lower
 * neighbours, which are drawn later and cover it again: viewers that blend edges then blend two
 * cells, and never let the white page shine through between them.
 *
 * Everything else is one image per panel: on pixels at exactly the pixels it covers, else with
 * whole blocks of pixels per cell, so that it stays crisp even where a viewer smooths images.
 * Where cells are smaller than a pixel, a pixel shows the mean of the values it covers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "draw/paint.h"

enum {
    MOST_VECTOR = 64,
    IMAGE_SIDE = 1024,
    SMALL_IMAGE_SIDE = 128,
    FEW_PANELS = 64,
    MOST_RECTANGLES = 50000
};
static const double OVERLAP = 1; /* points: a pixel of the coarsest screen */
static const double GAP_LINE = 0.5;
static const uint32_t GAP_COLOR = 0x9a9a9a;

/* ---- rectangles ---- */

static void paint_rectangles(const qkv_painter *painter, const qkv_panel_data *panel,
                             const qkv_box *box) {
    const double dx = box->width / panel->n_cols, dy = box->height / panel->n_rows;
    const double more_x = fmin(OVERLAP, dx / 2), more_y = fmin(OVERLAP, dy / 2);
    for (int32_t r = 0; r < panel->n_rows; r++) {
        const float *values = panel->values + (size_t)r * (size_t)panel->n_cols;
        const double y = r * dy, bottom = fmin(y + dy + more_y, box->height);
        for (int32_t c = 0, end; c < panel->n_cols; c = end) {
            const uint32_t color = qkv_colormap_color(painter->map, values[c]);
            /* Neighbours of one colour are one rectangle. */
            for (end = c + 1; end < panel->n_cols; end++) {
                if (qkv_colormap_color(painter->map, values[end]) != color) break;
            }
            const double right = fmin(end * dx + more_x, box->width);
            qkv_paint_color(painter, color);
            cairo_rectangle(painter->cr, box->x + c * dx, box->y + y, right - c * dx, bottom - y);
            cairo_fill(painter->cr);
        }
    }
}

/* ---- images ---- */

/* Pixel i of n covers the cells first..last of `cells`, the outer two in part. */
typedef struct span {
    int32_t first, last;
    double first_weight, last_weight; /* inner cells weigh 1 */
    double total;
} span;

static span span_of(int32_t i, int32_t n, int32_t cells) {
    const double scale = (double)cells / n;
    if (cells <= n) { /* at least a pixel per cell: the cell under the pixel's middle */
        int32_t cell = (int32_t)((i + 0.5) * scale);
        if (cell >= cells) cell = cells - 1;
        return (span){cell, cell, 1, 0, 1};
    }
    const double from = i * scale, to = fmin((i + 1) * scale, cells);
    const int32_t first = (int32_t)from;
    int32_t last = (int32_t)ceil(to) - 1;
    if (last >= cells) last = cells - 1;
    return (span){first, last, first + 1 - from, to - last, to - from};
}

static double span_weight(const span *s, int32_t cell) {
    return cell == s->first ? s->first_weight : cell == s->last ? s->last_weight : 1;
}

/* One line of pixels: the mean over the rows of `rows`, then over the columns of each pixel. */
static void fill_line(uint32_t *pixels, int32_t width, double *sums, const span *rows,
                      const qkv_panel_data *panel, const qkv_colormap *map) {
    for (int32_t c = 0; c < panel->n_cols; c++) sums[c] = 0;
    for (int32_t r = rows->first; r <= rows->last; r++) {
        const float *values = panel->values + (size_t)r * (size_t)panel->n_cols;
        const double weight = span_weight(rows, r);
        for (int32_t c = 0; c < panel->n_cols; c++) sums[c] += weight * values[c];
    }
    int32_t shown = -1; /* the cell of the pixel before, where it shows one alone */
    for (int32_t x = 0; x < width; x++) {
        const span cols = span_of(x, width, panel->n_cols);
        if (panel->n_cols <= width && cols.first == shown) {
            pixels[x] = pixels[x - 1];
            continue;
        }
        shown = cols.first;
        double sum = 0;
        for (int32_t c = cols.first; c <= cols.last; c++) sum += span_weight(&cols, c) * sums[c];
        pixels[x] = qkv_colormap_color(map, sum / (rows->total * cols.total));
    }
}

static int make_image(cairo_surface_t **out, int32_t width, int32_t height,
                      const qkv_panel_data *panel, const qkv_colormap *map, qkv_error *err) {
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    double *sums = qkv_calloc((size_t)panel->n_cols, sizeof *sums);
    *out = NULL;
    if (!sums || cairo_surface_status(image) != CAIRO_STATUS_SUCCESS) {
        free(sums);
        cairo_surface_destroy(image);
        return qkv_fail_memory(err);
    }
    unsigned char *data = cairo_image_surface_get_data(image);
    const int stride = cairo_image_surface_get_stride(image);
    int32_t shown = -1; /* the row of the line before, where it shows one alone */
    for (int32_t y = 0; y < height; y++) {
        const span rows = span_of(y, height, panel->n_rows);
        unsigned char *line = data + (ptrdiff_t)y * stride;
        if (panel->n_rows <= height && rows.first == shown)
            memcpy(line, line - stride, (size_t)stride);
        else
            fill_line((uint32_t *)(void *)line, width, sums, &rows, panel, map);
        shown = rows.first;
    }
    cairo_surface_mark_dirty(image);
    free(sums);
    *out = image;
    return QKV_OK;
}

static int64_t n_panels(const qkv_painter *painter) {
    return painter->grid ? (int64_t)painter->grid->rows * painter->grid->cols : 1;
}

/* Pixels along one side of an image on a vector surface: whole blocks of pixels per cell. */
static int32_t image_side(int32_t cells, int32_t most) {
    return cells >= most ? most : (most / cells + 1) * cells;
}

static int paint_image(const qkv_painter *painter, const qkv_panel_data *panel,
                       const qkv_box *place, qkv_error *err) {
    const qkv_box box = qkv_paint_snap(painter, place);
    const double s = painter->pixels;
    const int32_t most = n_panels(painter) > FEW_PANELS ? SMALL_IMAGE_SIDE : IMAGE_SIDE;
    const int32_t width = s > 0 ? (int32_t)lround(box.width * s) : image_side(panel->n_cols, most);
    const int32_t height =
        s > 0 ? (int32_t)lround(box.height * s) : image_side(panel->n_rows, most);
    cairo_surface_t *image;
    const int status = make_image(&image, width, height, panel, painter->map, err);
    if (status != QKV_OK) return status;
    cairo_t *cr = painter->cr;
    cairo_save(cr);
    cairo_translate(cr, box.x, box.y);
    cairo_scale(cr, box.width / width, box.height / height);
    cairo_set_source_surface(cr, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_NEAREST);
    cairo_rectangle(cr, 0, 0, width, height);
    cairo_fill(cr);
    cairo_restore(cr);
    cairo_surface_destroy(image);
    return QKV_OK;
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

/* Rectangles are a hundred bytes each: a page of hundreds of maps has images. */
static int are_rectangles(const qkv_painter *painter, const qkv_panel_data *panel) {
    if (painter->pixels > 0 || panel->n_rows > MOST_VECTOR || panel->n_cols > MOST_VECTOR) return 0;
    const int64_t n = n_panels(painter);
    return n <= FEW_PANELS || n * panel->n_rows * panel->n_cols <= MOST_RECTANGLES;
}

int qkv_paint_cells(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                    qkv_error *err) {
    if (are_rectangles(painter, panel)) {
        paint_rectangles(painter, panel, box);
        return QKV_OK;
    }
    return paint_image(painter, panel, box, err);
}
