/* A grid of matrices into a file or memory: style checked, page laid out and painted. */
#include <math.h>
#include <stdlib.h>

#include "base/sized.h"
#include "draw/axis.h"
#include "draw/page.h"
#include "draw/paint.h"

static const double LEAST_PANEL = 20, MOST_PANEL = 5000;

typedef struct figure {
    const qkv_grid *grid;
    qkv_grid_style style;
    qkv_lettering lettering;
    qkv_layout layout;
    qkv_colormap map;
} figure;

/* ---- checks ---- */

static int check_range(const qkv_grid_style *style, qkv_error *err) {
    if (!isfinite(style->low) || !isfinite(style->high) || style->low >= style->high) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the colour range %g to %g is empty: low must be below high", style->low,
                        style->high);
    }
    if (style->diverging && fabs(style->low + style->high) > 1e-9 * style->high) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a diverging colour range must reach as far below 0 as above, not from %g "
                        "to %g",
                        style->low, style->high);
    }
    if ((unsigned)style->scale > QKV_SCALE_POWER) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "unknown colour scale %d", (int)style->scale);
    }
    if (style->scale == QKV_SCALE_POWER && !(style->gamma >= 0.01 && style->gamma <= 100)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the exponent of the power scale must be 0.01 to 100, not %g",
                        style->gamma);
    }
    if (style->scale == QKV_SCALE_LOG &&
        !(style->log_floor > 0 && style->log_floor < style->high)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the floor of the log scale must lie between 0 and %g, not %g", style->high,
                        style->log_floor);
    }
    return QKV_OK;
}

static int check_style(const qkv_grid_style *style, qkv_error *err) {
    const int status = qkv_page_check_dpi(style->dpi, err);
    if (status != QKV_OK) return status;
    if (!(style->gap >= 0 && style->gap <= MOST_PANEL)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the gap between panels must be 0 to %g points, not %g", MOST_PANEL,
                        style->gap);
    }
    if (!(style->panel_size >= LEAST_PANEL && style->panel_size <= MOST_PANEL)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the panel size must be %g to %g points, not %g",
                        LEAST_PANEL, MOST_PANEL, style->panel_size);
    }
    return check_range(style, err);
}

/* ---- the figure ---- */

static qkv_painter painter_of(const figure *fig, cairo_t *cr, double pixels) {
    return (qkv_painter){cr,           pixels,   fig->grid, &fig->style, &fig->lettering,
                         &fig->layout, &fig->map};
}

static int paint_figure(const void *content, cairo_t *cr, double pixels, qkv_error *err) {
    const qkv_painter painter = painter_of(content, cr, pixels);
    return qkv_paint(&painter, err);
}

static qkv_page page_of(const figure *fig) {
    return (qkv_page){.width = fig->layout.width,
                      .height = fig->layout.height,
                      .dpi = fig->style.dpi,
                      .title = fig->style.title,
                      .small_print = fig->style.small_print,
                      .recipe = fig->style.recipe,
                      .paint = paint_figure,
                      .content = fig};
}

/* Checks everything and lays the figure out; close it also after a failure. */
static int open_figure(figure *fig, const qkv_grid *grid, const qkv_grid_style *given,
                       const qkv_page_target *to, qkv_error *err) {
    *fig = (figure){.grid = grid, .style = QKV_GRID_STYLE_INIT};
    const qkv_grid_style *const style = &fig->style;
    int status = qkv_page_check_target(to, err);
    if (status == QKV_OK && (!grid || !given)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "drawing needs a grid and a style");
    }
    if (status == QKV_OK)
        status = qkv_sized_read(&fig->style, sizeof fig->style, given, "qkv_grid_style", err);
    if (status == QKV_OK) status = check_style(style, err);
    if (status == QKV_OK) status = qkv_lettering_open(&fig->lettering, err);
    if (status == QKV_OK) status = qkv_layout_make(&fig->layout, grid, style, &fig->lettering, err);
    if (status == QKV_OK) qkv_colormap_make(&fig->map, style);
    return status;
}

static void close_figure(figure *fig) {
    qkv_layout_release(&fig->layout);
    qkv_lettering_close(&fig->lettering);
}

static int draw_grid(const qkv_grid *grid, const qkv_grid_style *style, const qkv_page_target *to,
                     qkv_error *err) {
    figure fig;
    int status = open_figure(&fig, grid, style, to, err);
    if (status == QKV_OK) {
        const qkv_page page = page_of(&fig);
        status = qkv_page_draw(&page, to, err);
    }
    close_figure(&fig);
    return status;
}

int qkv_grid_write(const qkv_grid *grid, const qkv_grid_style *style, const char *path,
                   qkv_error *err) {
    return draw_grid(grid, style, &(qkv_page_target){.path = path}, err);
}

int qkv_grid_render(const qkv_grid *grid, const qkv_grid_style *style, const char *format,
                    char **bytes, size_t *n_bytes, qkv_error *err) {
    return draw_grid(grid, style, &(qkv_page_target){NULL, format, bytes, n_bytes}, err);
}

/* ---- what a drawing would lack ---- */

static void report_labels(const qkv_panel_data *panel, const qkv_box *box,
                          qkv_grid_report *report) {
    const int rows = panel->row_labels ? qkv_axis_stride(box->height / panel->n_rows) : 1;
    const int cols = panel->col_labels ? qkv_axis_stride(box->width / panel->n_cols) : 1;
    if (!rows || !cols) {
        report->with_indices++;
    } else if (rows > 1 || cols > 1) {
        report->thinned++;
    }
}

static int report_panels(const figure *fig, qkv_grid_report *report, qkv_error *err) {
    const qkv_painter painter = painter_of(fig, NULL, 0);
    double *sizes = qkv_values_sizes(&painter);
    if (!sizes) return qkv_fail_memory(err);
    for (int32_t i = 0; i < fig->grid->rows * fig->grid->cols; i++) {
        const qkv_panel_data *panel = &fig->grid->panels[i];
        if (!panel->values) continue;
        report->panels++;
        if (fig->style.cell_values && sizes[i] == 0) report->without_values++;
        if (fig->style.labels) report_labels(panel, &fig->layout.panels[i], report);
    }
    free(sizes);
    return QKV_OK;
}

int qkv_grid_check(const qkv_grid *grid, const qkv_grid_style *style, const char *path,
                   qkv_grid_report *report, qkv_error *err) {
    figure fig;
    const qkv_page_target to = {.path = path};
    if (!report)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "checking a drawing needs a report to fill");
    qkv_grid_report own = QKV_GRID_REPORT_INIT;
    int status = qkv_sized_write(report, &own, sizeof own, "qkv_grid_report", err);
    if (status != QKV_OK) return status;
    status = open_figure(&fig, grid, style, &to, err);
    if (status == QKV_OK) {
        const qkv_page page = page_of(&fig);
        status = qkv_page_check(&page, &to, err);
    }
    if (status == QKV_OK) status = report_panels(&fig, &own, err);
    close_figure(&fig);
    if (status != QKV_OK) return status;
    return qkv_sized_write(report, &own, sizeof own, "qkv_grid_report", err);
}
