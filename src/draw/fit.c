/* Pages of a given width: the scale of letters, the size of panels. See fit.h. */
#include "draw/fit.h"

#include <math.h>

static const double LEAST_LETTERS = 5;   /* points */
static const double SMALLEST_SIZE = 6.5; /* of the letters that all pages have, in units */
static const double MOST_SCALE = 1.25;
static const double LEAST_PANEL = 40; /* units: a title's words still fit above it */
static const double POINTS_PER_MM = 72 / 25.4;
enum { STEPS = 16 };

double qkv_fit_least_scale(void) {
    return LEAST_LETTERS / SMALLEST_SIZE;
}

double qkv_fit_scale(double width, double content) {
    return fmin(fmax(width / content, qkv_fit_least_scale()), MOST_SCALE);
}

double qkv_fit_least_letters(double scale) {
    return LEAST_LETTERS / scale;
}

int qkv_fit_fail(double width, double least, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "`width` %.4gmm is too narrow: with letters of %g points, the least that can "
                    "be read, this takes %.4gmm",
                    width / POINTS_PER_MM, LEAST_LETTERS, ceil(least / POINTS_PER_MM * 10) / 10);
}

/* What the content takes with panels of that size, in units. */
static int measure(double *content, double panel_size, const qkv_grid *grid,
                   const qkv_grid_style *style, const qkv_lettering *lettering, qkv_error *err) {
    qkv_layout layout;
    qkv_grid_style tried = *style;
    tried.panel_size = panel_size;
    tried.width = 0;
    const int status = qkv_layout_make(&layout, grid, &tried, lettering, err);
    if (status != QKV_OK) return status;
    *content = layout.content;
    qkv_layout_release(&layout);
    return QKV_OK;
}

/* The largest panels with which the content takes no more than `room`, between two sizes the lower
 * of which is known to fit. */
static int search(double *panel_size, double low, double high, double room, const qkv_grid *grid,
                  const qkv_grid_style *style, const qkv_lettering *lettering, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < STEPS && status == QKV_OK; i++) {
        const double middle = (low + high) / 2;
        double content = 0;
        status = measure(&content, middle, grid, style, lettering, err);
        if (content <= room) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *panel_size = low;
    return status;
}

/* Scale and panels for the width; *panel_size is the natural one before. */
static int choose(double *scale, double *panel_size, const qkv_grid *grid,
                  const qkv_grid_style *style, qkv_lettering *lettering, qkv_error *err) {
    const double low = fmin(LEAST_PANEL, *panel_size);
    double natural = 0, least = 0;
    int status = measure(&natural, *panel_size, grid, style, lettering, err);
    if (status != QKV_OK) return status;
    *scale = qkv_fit_scale(style->width, natural);
    lettering->least = qkv_fit_least_letters(*scale);
    status = measure(&least, low, grid, style, lettering, err);
    if (status == QKV_OK && least * *scale > style->width) {
        *scale = qkv_fit_least_scale();
        lettering->least = qkv_fit_least_letters(*scale);
        status = measure(&least, low, grid, style, lettering, err);
        if (status == QKV_OK && least * *scale > style->width)
            status = qkv_fit_fail(style->width, least * *scale, err);
    }
    if (status != QKV_OK) return status;
    const double room = style->width / *scale;
    return search(panel_size, low, fmax(*panel_size, room), room, grid, style, lettering, err);
}

int qkv_layout_fit(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style,
                   qkv_lettering *lettering, qkv_error *err) {
    qkv_grid_style chosen = *style;
    double scale = 1;
    *layout = (qkv_layout){0};
    if (style->width > 0) {
        const int status = choose(&scale, &chosen.panel_size, grid, style, lettering, err);
        if (status != QKV_OK) return status;
        chosen.width = style->width / scale;
    }
    const int status = qkv_layout_make(layout, grid, &chosen, lettering, err);
    layout->scale = scale;
    layout->panel_size = scale * chosen.panel_size;
    return status;
}
