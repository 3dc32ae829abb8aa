/*
 * Files: a figure drawn into memory as PNG, SVG or PDF and then written whole. Nothing
 * half-written stays behind, and the same grid gives the same bytes: no dates, no counters.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cairo-pdf.h>
#include <cairo-svg.h>

#include "base/file.h"
#include "base/text.h"
#include "draw/axis.h"
#include "draw/embed.h"
#include "draw/paint.h"

/* What cairo's rasteriser can address. */
enum { MOST_PIXELS = 32767 };
static const double LEAST_DPI = 10, LEAST_PANEL = 20, MOST_PANEL = 5000;

typedef struct figure {
    const qkv_grid *grid;
    const qkv_grid_style *style;
    char *recipe; /* cleaned; NULL: none */
    qkv_lettering lettering;
    qkv_layout layout;
    qkv_colormap map;
    qkv_text file;
} figure;

static int draw_png(figure *fig, qkv_error *err);
static int draw_svg(figure *fig, qkv_error *err);
static int draw_pdf(figure *fig, qkv_error *err);

/* X(suffix, function) */
#define FORMAT_LIST(X)                                                                             \
    X("png", draw_png)                                                                             \
    X("svg", draw_svg)                                                                             \
    X("pdf", draw_pdf)

typedef struct format {
    const char *suffix;
    int (*draw)(figure *fig, qkv_error *err);
} format;

#define FORMAT_ENTRY(suffix, draw) {suffix, draw},
static const format FORMATS[] = {FORMAT_LIST(FORMAT_ENTRY)};
#undef FORMAT_ENTRY

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
    if (!(isfinite(style->dpi) && style->dpi >= LEAST_DPI)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "dpi must be at least %g, not %g", LEAST_DPI,
                        style->dpi);
    }
    if (!(style->panel_size >= LEAST_PANEL && style->panel_size <= MOST_PANEL)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the panel size must be %g to %g points, not %g",
                        LEAST_PANEL, MOST_PANEL, style->panel_size);
    }
    return check_range(style, err);
}

static const format *find_format(const char *path) {
    const char *suffix = qkv_path_suffix(path);
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        if (strcasecmp(suffix, FORMATS[i].suffix) == 0) return &FORMATS[i];
    }
    return NULL;
}

/* ---- surfaces ---- */

static cairo_status_t append_bytes(void *closure, const unsigned char *bytes, unsigned length) {
    qkv_text *file = closure;
    qkv_text_append(file, (const char *)bytes, length);
    return file->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

static int cairo_failure(cairo_status_t status, qkv_error *err) {
    if (status == CAIRO_STATUS_SUCCESS) return QKV_OK;
    if (status == CAIRO_STATUS_NO_MEMORY) return qkv_fail_memory(err);
    return qkv_fail(err, QKV_ERR_BACKEND, "cannot draw the figure: %s",
                    cairo_status_to_string(status));
}

/* Draws onto the surface; `pixels` a point, 0 for vectors. */
static int paint_surface(figure *fig, cairo_surface_t *surface, double pixels, qkv_error *err) {
    cairo_t *cr = cairo_create(surface);
    if (pixels > 0) cairo_scale(cr, pixels, pixels);
    const qkv_painter painter = {cr,           pixels,   fig->grid, fig->style, &fig->lettering,
                                 &fig->layout, &fig->map};
    int status = qkv_paint(&painter, err);
    if (status == QKV_OK) status = cairo_failure(cairo_status(cr), err);
    cairo_destroy(cr);
    return status;
}

static int check_pixels(const figure *fig, qkv_error *err) {
    const double longest = fmax(fig->layout.width, fig->layout.height);
    if (longest * fig->style->dpi / 72 <= MOST_PIXELS) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "the figure is %.0f x %.0f points, %.0f x %.0f pixels at %g dpi, and a PNG can "
                    "have at most %d on a side: use a dpi of %.0f or less, or write .svg or .pdf",
                    fig->layout.width, fig->layout.height,
                    ceil(fig->layout.width * fig->style->dpi / 72),
                    ceil(fig->layout.height * fig->style->dpi / 72), fig->style->dpi, MOST_PIXELS,
                    floor(MOST_PIXELS * 72.0 / longest));
}

static int draw_png(figure *fig, qkv_error *err) {
    int status = check_pixels(fig, err);
    if (status != QKV_OK) return status;
    const double pixels = fig->style->dpi / 72;
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(fig->layout.width * pixels - 1e-6),
                                   (int)ceil(fig->layout.height * pixels - 1e-6));
    status = cairo_failure(cairo_surface_status(surface), err);
    if (status == QKV_OK) status = paint_surface(fig, surface, pixels, err);
    if (status == QKV_OK) {
        status = cairo_failure(cairo_surface_write_to_png_stream(surface, append_bytes, &fig->file),
                               err);
    }
    cairo_surface_destroy(surface);
    if (status == QKV_OK) status = qkv_embed_png(&fig->file, fig->recipe, fig->style->dpi, err);
    return status;
}

/* Draws, finishes and destroys a surface that streams into fig->file. */
static int draw_vector(figure *fig, cairo_surface_t *surface, qkv_error *err) {
    int status = cairo_failure(cairo_surface_status(surface), err);
    if (status == QKV_OK) status = paint_surface(fig, surface, 0, err);
    cairo_surface_finish(surface);
    if (status == QKV_OK) status = cairo_failure(cairo_surface_status(surface), err);
    cairo_surface_destroy(surface);
    if (status == QKV_OK && fig->file.failed) status = qkv_fail_memory(err);
    return status;
}

static int draw_svg(figure *fig, qkv_error *err) {
    cairo_surface_t *surface = cairo_svg_surface_create_for_stream(
        append_bytes, &fig->file, fig->layout.width, fig->layout.height);
    const int status = draw_vector(fig, surface, err);
    return status == QKV_OK ? qkv_embed_svg(&fig->file, fig->recipe, err) : status;
}

static int draw_pdf(figure *fig, qkv_error *err) {
    char *title = qkv_title_plain(fig->style->title ? fig->style->title : "");
    char *small_print = qkv_text_clean(fig->style->small_print ? fig->style->small_print : "");
    int status = title && small_print ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) {
        cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(
            append_bytes, &fig->file, fig->layout.width, fig->layout.height);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, title);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_SUBJECT, small_print);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "qkv " QKV_VERSION);
        if (fig->recipe) {
            cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_KEYWORDS, fig->recipe);
        }
        /* A fixed date: cairo would write the time of day, and no two files would be equal. */
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2000-01-01T00:00:00Z");
        status = draw_vector(fig, surface, err);
    }
    free(title);
    free(small_print);
    return status;
}

/* ---- the figure ---- */

static int write_file(const qkv_text *file, const char *path, qkv_error *err) {
    qkv_output out;
    int status = qkv_output_open(&out, path, err);
    if (status != QKV_OK) return status;
    errno = 0;
    if (fwrite(file->data, 1, file->length, out.stream) != file->length) {
        const int code = errno ? errno : EIO;
        qkv_output_abandon(&out);
        return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path, strerror(code));
    }
    return qkv_output_finish(&out, err);
}

static int prepare(figure *fig, qkv_error *err) {
    if (fig->style->recipe) {
        fig->recipe = qkv_text_clean(fig->style->recipe);
        if (!fig->recipe) return qkv_fail_memory(err);
    }
    int status = qkv_lettering_open(&fig->lettering, err);
    if (status != QKV_OK) return status;
    status = qkv_layout_make(&fig->layout, fig->grid, fig->style, &fig->lettering, err);
    if (status == QKV_OK) qkv_colormap_make(&fig->map, fig->style);
    return status;
}

/* Checks everything and lays the figure out; close it also after a failure. */
static int open_figure(figure *fig, const format **form, const qkv_grid *grid,
                       const qkv_grid_style *style, const char *path, qkv_error *err) {
    *fig = (figure){.grid = grid, .style = style};
    if (!grid || !style || !path) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "drawing needs a grid, a style and a path");
    }
    *form = find_format(path);
    if (!*form) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "cannot tell from its name how to draw %s: it must end in .png, .svg or "
                        ".pdf",
                        path);
    }
    const int status = check_style(style, err);
    return status == QKV_OK ? prepare(fig, err) : status;
}

static void close_figure(figure *fig) {
    qkv_text_release(&fig->file);
    qkv_layout_release(&fig->layout);
    qkv_lettering_close(&fig->lettering);
    free(fig->recipe);
}

int qkv_grid_write(const qkv_grid *grid, const qkv_grid_style *style, const char *path,
                   qkv_error *err) {
    figure fig;
    const format *form;
    int status = open_figure(&fig, &form, grid, style, path, err);
    if (status == QKV_OK) status = form->draw(&fig, err);
    if (status == QKV_OK) status = write_file(&fig.file, path, err);
    close_figure(&fig);
    return status;
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
    const qkv_painter painter = {NULL,         0,        fig->grid, fig->style, &fig->lettering,
                                 &fig->layout, &fig->map};
    double *sizes = qkv_values_sizes(&painter);
    if (!sizes) return qkv_fail_memory(err);
    for (int32_t i = 0; i < fig->grid->rows * fig->grid->cols; i++) {
        const qkv_panel_data *panel = &fig->grid->panels[i];
        if (!panel->values) continue;
        report->panels++;
        if (fig->style->cell_values && sizes[i] == 0) report->without_values++;
        if (fig->style->labels) report_labels(panel, &fig->layout.panels[i], report);
    }
    free(sizes);
    return QKV_OK;
}

int qkv_grid_check(const qkv_grid *grid, const qkv_grid_style *style, const char *path,
                   qkv_grid_report *report, qkv_error *err) {
    figure fig;
    const format *form;
    *report = (qkv_grid_report){0};
    int status = open_figure(&fig, &form, grid, style, path, err);
    if (status == QKV_OK && form->draw == draw_png) status = check_pixels(&fig, err);
    if (status == QKV_OK) status = report_panels(&fig, report, err);
    close_figure(&fig);
    return status;
}
