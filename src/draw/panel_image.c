/*
 * A panel as an image: on pixels at exactly the pixels it covers, else with whole blocks of pixels
 * per cell, so that it stays crisp even where a viewer smooths images.
 *
 * Where there are fewer pixels than cells, every cell belongs to one pixel, and the pixel shows the
 * strongest of its cells: a single weight of 1 stays a weight of 1. A pixel all of whose cells a
 * mask took away is masked. Columns and diagonals that hold much of the weight are wide enough to be
 * seen, three pixels, over neighbours that are weaker (strong_lines.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "draw/paint.h"

/* What all lines of an image share. */
typedef struct canvas {
    const qkv_painter *painter;
    const qkv_panel_data *panel;
    int32_t width, height; /* pixels */
    int by_magnitude;      /* which of several cells is the strongest */
    int hides;             /* masked cells are not drawn as values */
    int32_t period, line;  /* of hatching, pixels; 0: none */
    float *strongest;      /* of each column, in the rows of a line; NaN: nothing to show */
    float *shown;          /* of each pixel of a line; NaN: nothing to show */
    int widens;            /* strong lines */
} canvas;

/* Cells first..last belong to pixel i of n. */
typedef struct span {
    int32_t first, last;
} span;

static span span_of(int32_t i, int32_t n, int32_t cells) {
    if (cells <= n) { /* at least a pixel per cell: the cell under the pixel's middle */
        const int32_t cell = (int32_t)((i + 0.5) * cells / n);
        return (span){cell, cell};
    }
    const int64_t first = (int64_t)i * cells / n, end = ((int64_t)i + 1) * cells / n;
    return (span){(int32_t)first, (int32_t)end - 1};
}

static int is_stronger(const canvas *to, float value, float than) {
    if (isnan(than)) return 1;
    return to->by_magnitude ? fabsf(value) > fabsf(than) : value > than;
}

/* The strongest of each column over the rows of one line. */
static void gather(const canvas *to, const span *rows) {
    const qkv_panel_data *panel = to->panel;
    for (int32_t c = 0; c < panel->n_cols; c++) to->strongest[c] = NAN;
    for (int32_t r = rows->first; r <= rows->last; r++) {
        const float *values = panel->values + (size_t)r * (size_t)panel->n_cols;
        for (int32_t c = 0; c < panel->n_cols; c++) {
            if (to->hides && values[c] == 0 && qkv_cell_is_masked(panel, r, c)) continue;
            if (is_stronger(to, values[c], to->strongest[c])) to->strongest[c] = values[c];
        }
    }
}

static float strongest_of(const canvas *to, const span *cols) {
    float value = to->strongest[cols->first];
    for (int32_t c = cols->first + 1; c <= cols->last; c++) {
        const float next = to->strongest[c];
        if (!isnan(next) && is_stronger(to, next, value)) value = next;
    }
    return value;
}

static uint32_t empty_color(const canvas *to, int32_t x, int32_t y) {
    return to->period && (x + y) % to->period < to->line ? QKV_HATCH_COLOR : QKV_NO_VALUE_COLOR;
}

/* ---- strong lines ---- */

static int is_masked(const canvas *to, int32_t x, const span *rows) {
    const span cols = span_of(x, to->width, to->panel->n_cols);
    if (isnan(to->shown[x])) return 1;
    return qkv_panel_has_mask(to->panel) && qkv_cell_is_masked(to->panel, rows->last, cols.first) &&
           qkv_cell_is_masked(to->panel, rows->first, cols.last);
}

/* Shows a value of column c in three pixels around its middle, but not over what is stronger or
 * masked. */
static void spread(const canvas *to, int32_t c, float value, const span *rows) {
    const int32_t n = QKV_STRONG_PIXELS;
    const int32_t middle = (int32_t)((c + 0.5) * to->width / to->panel->n_cols);
    for (int32_t step = 0, done = 0; step < n && done < n; step++) {
        for (int side = 1; side >= (step ? -1 : 1) && done < n; side -= 2) {
            const int32_t x = middle + side * step;
            if (x < 0 || x >= to->width || is_masked(to, x, rows)) continue;
            if (is_stronger(to, value, to->shown[x])) to->shown[x] = value;
            done++;
        }
    }
}

/* The strongest cell of a diagonal in the rows of a line: *value, whose column is returned; -1: none. */
static int32_t strongest_on(const canvas *to, int32_t diagonal, const span *rows, float *value) {
    const qkv_panel_data *panel = to->panel;
    int32_t found = -1;
    *value = NAN;
    for (int32_t r = rows->first; r <= rows->last; r++) {
        const int32_t c = r - diagonal;
        if (c < 0 || c >= panel->n_cols || isnan(to->strongest[c])) continue;
        const float here = panel->values[(size_t)r * (size_t)panel->n_cols + (size_t)c];
        if (isnan(here) || !is_stronger(to, here, *value)) continue;
        *value = here;
        found = c;
    }
    return found;
}

static void widen(const canvas *to, const span *rows) {
    const qkv_strong_lines *strong = &to->panel->strong;
    for (int i = 0; i < strong->n_cols; i++) {
        const int32_t c = strong->cols[i];
        if (!isnan(to->strongest[c])) spread(to, c, to->strongest[c], rows);
    }
    for (int i = 0; i < strong->n_diagonals; i++) {
        float value;
        const int32_t c = strongest_on(to, strong->diagonals[i], rows, &value);
        if (c >= 0) spread(to, c, value, rows);
    }
}

/* ---- lines of pixels ---- */

static void fill_line(const canvas *to, uint32_t *pixels, int32_t y, const span *rows) {
    const qkv_color_table *colors = to->painter->colors;
    gather(to, rows);
    for (int32_t x = 0; x < to->width; x++) {
        const span cols = span_of(x, to->width, to->panel->n_cols);
        to->shown[x] = strongest_of(to, &cols);
    }
    if (to->widens) widen(to, rows);
    float shown = 0; /* neighbours are often equal: masked, or one cell */
    uint32_t color = qkv_color_table_color(colors, shown);
    for (int32_t x = 0; x < to->width; x++) {
        const float value = to->shown[x];
        if (isnan(value)) {
            pixels[x] = empty_color(to, x, y);
            continue;
        }
        if (value > shown || value < shown) color = qkv_color_table_color(colors, value);
        shown = value;
        pixels[x] = color;
    }
}

static void fill_image(const canvas *to, cairo_surface_t *image) {
    unsigned char *data = cairo_image_surface_get_data(image);
    const int stride = cairo_image_surface_get_stride(image);
    span before = {-1, -1};
    for (int32_t y = 0; y < to->height; y++) {
        const span rows = span_of(y, to->height, to->panel->n_rows);
        unsigned char *line = data + (ptrdiff_t)y * stride;
        if (rows.first == before.first && !to->period) {
            memcpy(line, line - stride, (size_t)stride);
        } else {
            fill_line(to, (uint32_t *)(void *)line, y, &rows);
        }
        before = rows;
    }
    cairo_surface_mark_dirty(image);
}

/* Pixels along one side on a vector surface: whole blocks of pixels per cell, or blocks of cells
 * per pixel. */
static int32_t image_side(int32_t cells, const qkv_image_size *size) {
    if (cells < size->least) return (size->least / cells + 1) * cells;
    return (cells + size->pool - 1) / size->pool;
}

void qkv_panel_pixels(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                      int32_t *width, int32_t *height) {
    const double s = painter->pixels;
    const qkv_box snapped = qkv_paint_snap(painter, box);
    *width =
        s > 0 ? (int32_t)lround(snapped.width * s) : image_side(panel->n_cols, &painter->images);
    *height =
        s > 0 ? (int32_t)lround(snapped.height * s) : image_side(panel->n_rows, &painter->images);
}

int qkv_panel_is_widened(const qkv_painter *painter, const qkv_panel_data *panel,
                         const qkv_box *box) {
    int32_t width, height;
    if (!panel->strong.n_cols && !panel->strong.n_diagonals) return 0;
    qkv_panel_pixels(painter, panel, box, &width, &height);
    return width < QKV_STRONG_PIXELS * (int64_t)panel->n_cols;
}

static int make_image(cairo_surface_t **out, canvas *to, const qkv_box *box, qkv_error *err) {
    const qkv_grid_style *style = to->painter->style;
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, to->width, to->height);
    to->strongest = qkv_calloc((size_t)to->panel->n_cols, sizeof *to->strongest);
    to->shown = qkv_calloc((size_t)to->width, sizeof *to->shown);
    *out = NULL;
    if (!to->strongest || !to->shown || cairo_surface_status(image) != CAIRO_STATUS_SUCCESS) {
        free(to->strongest);
        free(to->shown);
        cairo_surface_destroy(image);
        return qkv_fail_memory(err);
    }
    to->by_magnitude = qkv_style_pooling(style) == QKV_POOLING_MAGNITUDE;
    to->hides = qkv_paint_hides_masked(to->painter) && qkv_panel_has_mask(to->panel);
    if (to->hides && style->masked == QKV_MASKED_HATCH) {
        const double density = to->width / box->width; /* pixels a point */
        to->line = (int32_t)fmax(lround(QKV_HATCH_LINE * density), 1);
        to->period = (int32_t)fmax(lround(QKV_HATCH_PERIOD * density), 2 * to->line);
    }
    to->widens = qkv_panel_is_widened(to->painter, to->panel, box);
    fill_image(to, image);
    free(to->strongest);
    free(to->shown);
    *out = image;
    return QKV_OK;
}

/* Onto a page of pixels, pixel by pixel: see qkv_paint_background. */
static int copy_pixels(cairo_surface_t *page, cairo_surface_t *image, const canvas *to, int32_t x,
                       int32_t y, qkv_error *err) {
    cairo_surface_flush(page);
    unsigned char *data = cairo_image_surface_get_data(page);
    if (!data) return qkv_fail_memory(err);
    const int stride = cairo_image_surface_get_stride(page);
    const int from_stride = cairo_image_surface_get_stride(image);
    const unsigned char *from = cairo_image_surface_get_data(image);
    const int32_t width = (int32_t)fmin(to->width, cairo_image_surface_get_width(page) - x);
    const int32_t height = (int32_t)fmin(to->height, cairo_image_surface_get_height(page) - y);
    for (int32_t i = 0; i < height && width > 0; i++) {
        memcpy(data + (ptrdiff_t)(y + i) * stride + 4 * (ptrdiff_t)x,
               from + (ptrdiff_t)i * from_stride, 4 * (size_t)width);
    }
    cairo_surface_mark_dirty(page);
    return QKV_OK;
}

static void draw_image(cairo_t *cr, cairo_surface_t *image, const canvas *to, const qkv_box *box) {
    cairo_save(cr);
    cairo_translate(cr, box->x, box->y);
    cairo_scale(cr, box->width / to->width, box->height / to->height);
    cairo_set_source_surface(cr, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_NEAREST);
    cairo_rectangle(cr, 0, 0, to->width, to->height);
    cairo_fill(cr);
    cairo_restore(cr);
}

int qkv_paint_image(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *place,
                    qkv_error *err) {
    const qkv_box box = qkv_paint_snap(painter, place);
    canvas to = {.painter = painter, .panel = panel};
    qkv_panel_pixels(painter, panel, place, &to.width, &to.height);
    cairo_surface_t *image;
    int status = make_image(&image, &to, &box, err);
    if (status != QKV_OK) return status;
    if (painter->pixels > 0) {
        status = copy_pixels(cairo_get_target(painter->cr), image, &to,
                             (int32_t)lround(box.x * painter->pixels),
                             (int32_t)lround(box.y * painter->pixels), err);
    } else {
        draw_image(painter->cr, image, &to, &box);
    }
    cairo_surface_destroy(image);
    return status;
}
