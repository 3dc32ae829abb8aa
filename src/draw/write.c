/* A grid of matrices into a file or memory: style checked, page laid out and painted. */
#include <math.h>
#include <stdlib.h>

#include "base/sized.h"
#include "draw/axis.h"
#include "draw/draw.h"
#include "draw/fit.h"
#include "draw/lettering.h"
#include "draw/page.h"
#include "draw/resolution.h"

static const double LEAST_PANEL = 20, MOST_PANEL = 5000;

typedef struct figure {
    const qkv_grid *grid;
    qkv_grid_style style;
    qkv_text small_print; /* with what a pixel stands for */
    qkv_lettering lettering;
    qkv_layout layout;
    qkv_color_table colors;
    double pixels; /* a point; 0 on a vector surface */
    qkv_image_size images;
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

static int check_colors(const qkv_grid_style *style, qkv_error *err) {
    if (!qkv_colormap_name(style->colormap) || !qkv_masked_name(style->masked) ||
        !qkv_pooling_name(style->pooling)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "unknown colormap %d, masked look %d or pooling %d",
                        (int)style->colormap, (int)style->masked, (int)style->pooling);
    }
    if (style->diverging && style->colormap > QKV_COLORMAP_COOLWARM) {
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "the colormap %s has no middle for the 0 of a diverging scale: use coolwarm",
            qkv_colormap_name(style->colormap));
    }
    return QKV_OK;
}

static int check_style(const qkv_grid_style *style, qkv_error *err) {
    int status = qkv_page_check_dpi(style->dpi, err);
    if (status == QKV_OK) status = check_colors(style, err);
    if (status == QKV_OK) status = qkv_page_check_print(style->text, style->width, err);
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
    return (qkv_painter){.cr = cr,
                         .pixels = pixels,
                         .grid = fig->grid,
                         .style = &fig->style,
                         .lettering = &fig->lettering,
                         .layout = &fig->layout,
                         .colors = &fig->colors,
                         .images = fig->images};
}

static int paint_figure(const void *content, cairo_t *cr, double pixels, qkv_error *err) {
    const qkv_painter painter = painter_of(content, cr, pixels);
    const int status = qkv_paint(&painter, err);
    if (status != QKV_OK || !qkv_lettering_failed(painter.lettering)) return status;
    return qkv_fail_memory(err);
}

static qkv_page page_of(const figure *fig) {
    return (qkv_page){.width = fig->layout.width,
                      .height = fig->layout.height,
                      .scale = fig->layout.scale,
                      .text = fig->style.text,
                      .dpi = fig->style.dpi,
                      .title = fig->style.title,
                      .small_print = fig->style.small_print,
                      .recipe = fig->style.recipe,
                      .paint = paint_figure,
                      .content = fig};
}

static int lay_out(figure *fig, qkv_error *err) {
    qkv_layout_release(&fig->layout);
    return qkv_layout_fit(&fig->layout, fig->grid, &fig->style, &fig->lettering, err);
}

/* Sizes and resolution follow the number of cells; where they cannot, the small print says what a
 * pixel is, and the page is laid out anew. */
static int arrange(figure *fig, const qkv_page_target *to, qkv_error *err) {
    qkv_grid_style *style = &fig->style;
    style->panel_size = qkv_resolution_panel_size(fig->grid, style);
    int status = lay_out(fig, err);
    if (status != QKV_OK) return status;
    fig->images = qkv_resolution_images(fig->grid, &fig->layout);
    style->dpi = qkv_resolution_dpi(fig->grid, style, &fig->layout);
    if (!qkv_page_is_vector(to)) fig->pixels = fig->layout.scale * style->dpi / 72;
    const qkv_painter painter = painter_of(fig, NULL, fig->pixels);
    const qkv_pixel_cells cells = qkv_resolution_cells(&painter);
    if ((cells.panels == 0 && cells.widened == 0) || !style->small_print) return QKV_OK;
    qkv_text_puts(&fig->small_print, style->small_print);
    qkv_resolution_note(&fig->small_print, &cells, style);
    if (fig->small_print.failed) return qkv_fail_memory(err);
    style->small_print = fig->small_print.data;
    return lay_out(fig, err);
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
    if (status == QKV_OK) status = qkv_lettering_set_font(&fig->lettering, style->font, err);
    if (status == QKV_OK) status = arrange(fig, to, err);
    if (status == QKV_OK) qkv_color_table_make(&fig->colors, style);
    if (status == QKV_OK && grid->bands) qkv_color_table_set_bands(&fig->colors, grid->n_bands);
    return status;
}

static void close_figure(figure *fig) {
    qkv_layout_release(&fig->layout);
    qkv_lettering_close(&fig->lettering);
    qkv_text_release(&fig->small_print);
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

static void report_labels(const figure *fig, int32_t index, qkv_grid_report *report) {
    const qkv_panel_data *panel = &fig->grid->panels[index];
    const qkv_box *box = &fig->layout.panels[index];
    const double height = box->height / panel->n_rows, width = box->width / panel->n_cols;
    int rows = 1, cols = 1;
    if (panel->row_labels)
        rows = fig->layout.row_tokens ? qkv_axis_stride(&fig->lettering, height) : 0;
    if (panel->col_labels)
        cols = fig->layout.col_tokens ? qkv_axis_stride(&fig->lettering, width) : 0;
    if (!rows || !cols) {
        report->with_indices++;
    } else if (rows > 1 || cols > 1) {
        report->thinned++;
    }
}

static int report_panels(const figure *fig, qkv_grid_report *report, qkv_error *err) {
    const qkv_painter painter = painter_of(fig, NULL, fig->pixels);
    const qkv_pixel_cells cells = qkv_resolution_cells(&painter);
    double *sizes = qkv_values_sizes(&painter);
    if (!sizes) return qkv_fail_memory(err);
    report->pooled = cells.panels;
    report->cells_per_pixel = cells.rows > cells.cols ? cells.rows : cells.cols;
    report->dpi = fig->style.dpi;
    for (int32_t i = 0; i < fig->grid->rows * fig->grid->cols; i++) {
        const qkv_panel_data *panel = &fig->grid->panels[i];
        if (!panel->values) continue;
        report->panels++;
        if (fig->style.cell_values && sizes[i] == 0) report->without_values++;
        if (fig->style.labels) report_labels(fig, i, report);
    }
    free(sizes);
    for (size_t i = 0; i < fig->layout.n_captions; i++) {
        report->scripts |= qkv_words_missing(fig->layout.captions[i].words);
    }
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
