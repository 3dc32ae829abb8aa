/* Pages of a given width: the scale of letters, the size of panels. See fit.h. */
#include "draw/fit.h"

#include <math.h>

static const double LEAST_LETTERS = 5; /* points */
static const double MOST_SCALE = 1.25;
static const double LEAST_GRID = 0.42; /* of a grid's scales: lines of a quarter point */
/* Units of the least scale of letters: a title's words still fit above such a panel. */
static const double LEAST_PANEL = 40;
static const double POINTS_PER_MM = 72 / 25.4;
/* Panels have this share of the width, or all letters are small. */
static const double PANEL_SHARE = 0.64, SCALE_STEP = 0.9;
enum { STEPS = 16 };

double qkv_fit_least_scale(void) {
    return LEAST_LETTERS / QKV_SMALLEST_LETTERS;
}

double qkv_fit_scale(double width, double content) {
    return fmin(fmax(width / content, qkv_fit_least_scale()), MOST_SCALE);
}

double qkv_fit_least_letters(double scale) {
    return LEAST_LETTERS / scale;
}

int qkv_fit_fail(double width, double least, double font_size, qkv_error *err) {
    const double mm = ceil(least / POINTS_PER_MM * 10) / 10;
    if (font_size > 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`width` %.4gmm is too narrow: with `font_size` %g this takes %.4gmm",
                        width / POINTS_PER_MM, font_size, mm);
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "`width` %.4gmm is too narrow: with letters of %g points, the least that can "
                    "be read, this takes %.4gmm",
                    width / POINTS_PER_MM, LEAST_LETTERS, mm);
}

/* What the content takes with panels of that size, in units, and the panels of it where `panels` is
 * given. */
static int measure(double *content, double *panels, double panel_size, const qkv_grid *grid,
                   const qkv_grid_style *style, const qkv_lettering *lettering, qkv_error *err) {
    qkv_layout layout;
    qkv_grid_style tried = *style;
    tried.panel_size = panel_size;
    tried.width = 0;
    const int status = qkv_layout_make(&layout, grid, &tried, lettering, err);
    if (status != QKV_OK) return status;
    *content = layout.content;
    if (panels) {
        *panels = 0;
        for (int32_t c = 0; c < layout.cols; c++) {
            double widest = 0;
            for (int32_t r = 0; r < layout.rows; r++)
                widest = fmax(widest, layout.panels[r * layout.cols + c].width);
            *panels += widest;
        }
    }
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
        status = measure(&content, NULL, middle, grid, style, lettering, err);
        if (content <= room) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *panel_size = low;
    return status;
}

/* What a page of the scale asks of its letters. */
static void set_letters(qkv_lettering *lettering, const qkv_grid_style *style, double scale) {
    lettering->least = style->width > 0 || style->font_size > 0 ? qkv_fit_least_letters(scale) : 0;
    lettering->given = style->font_size / QKV_FONT_UNITS / scale;
}

/* What the content takes with the least panels, in points. *low receives their size, in units. */
static int measure_least(double *least, double *low, double natural_size, double scale,
                         const qkv_grid *grid, const qkv_grid_style *style,
                         qkv_lettering *lettering, qkv_error *err) {
    *low = fmin(LEAST_PANEL, natural_size) * fmin(qkv_fit_least_scale(), scale) / scale;
    set_letters(lettering, style, scale);
    const int status = measure(least, NULL, *low, grid, style, lettering, err);
    *least *= scale;
    return status;
}

/* The largest panels of a page of that scale, and their share of its width. *panel_size is the
 * natural one before. */
static int fill(double *share, double *panel_size, double low, double scale, const qkv_grid *grid,
                const qkv_grid_style *style, const qkv_lettering *lettering, qkv_error *err) {
    const double room = style->width / scale;
    double content = 0, panels = 0;
    int status =
        search(panel_size, low, fmax(*panel_size, room), room, grid, style, lettering, err);
    if (status == QKV_OK)
        status = measure(&content, &panels, *panel_size, grid, style, lettering, err);
    *share = panels / room;
    return status;
}

/* Makes all but the panels smaller until these have their share; a scale that gives them no more
 * than a larger one did is not taken. */
static int favour_panels(double *scale, double *panel_size, double share, double natural_size,
                         const qkv_grid *grid, const qkv_grid_style *style,
                         qkv_lettering *lettering, qkv_error *err) {
    int status = QKV_OK;
    for (double tried = *scale * SCALE_STEP;
         status == QKV_OK && share < PANEL_SHARE && tried >= LEAST_GRID; tried *= SCALE_STEP) {
        double least = 0, low = 0, size = natural_size, now = 0;
        status = measure_least(&least, &low, natural_size, tried, grid, style, lettering, err);
        if (status == QKV_OK) status = fill(&now, &size, low, tried, grid, style, lettering, err);
        if (status != QKV_OK || now < share + 1e-3) continue;
        *scale = tried;
        *panel_size = size;
        share = now;
    }
    return status;
}

/* Scale and panels for the width; *panel_size is the natural one before. */
static int choose(double *scale, double *panel_size, const qkv_grid *grid,
                  const qkv_grid_style *style, qkv_lettering *lettering, qkv_error *err) {
    const double natural_size = *panel_size;
    double natural = 0, least = 0, low = 0, share = 0;
    set_letters(lettering, style, 1);
    int status = measure(&natural, NULL, natural_size, grid, style, lettering, err);
    if (status != QKV_OK) return status;
    *scale = fmin(fmax(style->width / natural, LEAST_GRID), MOST_SCALE);
    status = measure_least(&least, &low, natural_size, *scale, grid, style, lettering, err);
    if (status == QKV_OK && least > style->width) {
        *scale = LEAST_GRID;
        status = measure_least(&least, &low, natural_size, *scale, grid, style, lettering, err);
    }
    if (status == QKV_OK && least > style->width)
        status = qkv_fit_fail(style->width, least, style->font_size, err);
    if (status == QKV_OK)
        status = fill(&share, panel_size, low, *scale, grid, style, lettering, err);
    if (status == QKV_OK)
        status = favour_panels(scale, panel_size, share, natural_size, grid, style, lettering, err);
    set_letters(lettering, style, *scale);
    return status;
}

int qkv_layout_fit(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style,
                   qkv_lettering *lettering, qkv_error *err) {
    qkv_grid_style chosen = *style;
    double scale = 1;
    *layout = (qkv_layout){0};
    set_letters(lettering, style, scale);
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
