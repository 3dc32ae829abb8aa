/* Pages drawn as PNG, SVG or PDF into memory, and from there to their target. See page.h. */
#include "draw/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cairo-pdf.h>
#include <cairo-svg.h>

#include "base/file.h"
#include "base/text.h"
#include "draw/embed.h"
#include "draw/lettering.h"
#include "draw/png_writer.h"
#include "qkv/grid.h"
#include "qkv/version.h"

/* What cairo's rasteriser can address. */
enum { MOST_PIXELS = 32767 };
static const double LEAST_DPI = 10;

/* A page and the bytes that become of it. */
typedef struct drawing {
    const qkv_page *page;
    char *recipe; /* cleaned; NULL: none */
    qkv_text file;
} drawing;

static int draw_png(drawing *made, qkv_error *err);
static int draw_svg(drawing *made, qkv_error *err);
static int draw_pdf(drawing *made, qkv_error *err);

/* X(suffix, function) */
#define FORMAT_LIST(X)                                                                             \
    X("png", draw_png)                                                                             \
    X("svg", draw_svg)                                                                             \
    X("pdf", draw_pdf)

typedef struct format {
    const char *suffix;
    int (*draw)(drawing *made, qkv_error *err);
} format;

#define FORMAT_ENTRY(suffix, draw) {suffix, draw},
static const format FORMATS[] = {FORMAT_LIST(FORMAT_ENTRY)};
#undef FORMAT_ENTRY

static const format *find_format(const qkv_page_target *to) {
    const char *suffix = to->path ? qkv_path_suffix(to->path) : to->format;
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        if (qkv_equal_ignoring_case(suffix, FORMATS[i].suffix)) return &FORMATS[i];
    }
    return NULL;
}

const char *qkv_grid_format(size_t index) {
    return index < sizeof FORMATS / sizeof *FORMATS ? FORMATS[index].suffix : NULL;
}

/* ---- checks ---- */

int qkv_page_check_target(const qkv_page_target *to, qkv_error *err) {
    if (!to->path && (!to->format || !to->bytes || !to->n_bytes)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "drawing needs a path, or a format and a place for the bytes");
    }
    if (to->bytes) *to->bytes = NULL;
    if (to->n_bytes) *to->n_bytes = 0;
    if (find_format(to)) return QKV_OK;
    if (to->path) {
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "cannot tell from its name how to draw %s: it must end in .png, .svg or .pdf",
            to->path);
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT, "cannot draw as '%s': the format is png, svg or pdf",
                    to->format);
}

int qkv_page_is_vector(const qkv_page_target *to) {
    const format *form = find_format(to);
    return form && form->draw != draw_png;
}

int qkv_page_check_dpi(double dpi, qkv_error *err) {
    if (isfinite(dpi) && dpi >= LEAST_DPI) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "dpi must be at least %g, not %g", LEAST_DPI, dpi);
}

static int check_pixels(const qkv_page *page, qkv_error *err) {
    const double longest = fmax(page->width, page->height), pixels = page->dpi / 72;
    if (longest * pixels <= MOST_PIXELS) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "the figure is %.0f x %.0f points, %.0f x %.0f pixels at %g dpi, and a PNG can "
                    "have at most %d on a side: use a dpi of %.0f or less, or write .svg or .pdf",
                    page->width, page->height, ceil(page->width * pixels),
                    ceil(page->height * pixels), page->dpi, MOST_PIXELS,
                    floor(MOST_PIXELS * 72.0 / longest));
}

int qkv_page_check(const qkv_page *page, const qkv_page_target *to, qkv_error *err) {
    const format *form = find_format(to);
    if (!form) return qkv_page_check_target(to, err);
    return form->draw == draw_png ? check_pixels(page, err) : QKV_OK;
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
static int paint_surface(const qkv_page *page, cairo_surface_t *surface, double pixels,
                         qkv_error *err) {
    cairo_t *cr = cairo_create(surface);
    if (pixels > 0) cairo_scale(cr, pixels, pixels);
    int status = page->paint(page->content, cr, pixels, err);
    if (status == QKV_OK) status = cairo_failure(cairo_status(cr), err);
    cairo_destroy(cr);
    return status;
}

static int draw_png(drawing *made, qkv_error *err) {
    int status = check_pixels(made->page, err);
    if (status != QKV_OK) return status;
    const double pixels = made->page->dpi / 72;
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(made->page->width * pixels - 1e-6),
                                   (int)ceil(made->page->height * pixels - 1e-6));
    status = cairo_failure(cairo_surface_status(surface), err);
    if (status == QKV_OK) status = paint_surface(made->page, surface, pixels, err);
    if (status == QKV_OK)
        status = qkv_png_write(&made->file, surface, made->recipe, made->page->dpi, err);
    cairo_surface_destroy(surface);
    return status;
}

/* Draws, finishes and destroys a surface that streams into made->file. */
static int draw_vector(drawing *made, cairo_surface_t *surface, qkv_error *err) {
    int status = cairo_failure(cairo_surface_status(surface), err);
    if (status == QKV_OK) status = paint_surface(made->page, surface, 0, err);
    cairo_surface_finish(surface);
    if (status == QKV_OK) status = cairo_failure(cairo_surface_status(surface), err);
    cairo_surface_destroy(surface);
    if (status == QKV_OK && made->file.failed) status = qkv_fail_memory(err);
    return status;
}

static int draw_svg(drawing *made, qkv_error *err) {
    cairo_surface_t *surface = cairo_svg_surface_create_for_stream(
        append_bytes, &made->file, made->page->width, made->page->height);
    const int status = draw_vector(made, surface, err);
    return status == QKV_OK ? qkv_embed_svg(&made->file, made->recipe, err) : status;
}

static int draw_pdf(drawing *made, qkv_error *err) {
    char *title = qkv_title_plain(made->page->title ? made->page->title : "");
    char *small_print = qkv_text_clean(made->page->small_print ? made->page->small_print : "");
    int status = title && small_print ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) {
        cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(
            append_bytes, &made->file, made->page->width, made->page->height);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, title);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_SUBJECT, small_print);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "qkv " QKV_VERSION);
        if (made->recipe) {
            cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_KEYWORDS, made->recipe);
        }
        /* A fixed date: cairo would write the time of day, and no two files would be equal. */
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2000-01-01T00:00:00Z");
        status = draw_vector(made, surface, err);
    }
    free(title);
    free(small_print);
    return status;
}

/* ---- the target ---- */

static void hand_over(qkv_text *file, const qkv_page_target *to) {
    *to->bytes = file->data;
    *to->n_bytes = file->length;
    *file = (qkv_text){0};
}

int qkv_page_draw(const qkv_page *page, const qkv_page_target *to, qkv_error *err) {
    drawing made = {.page = page};
    const format *form = find_format(to);
    if (!form) return qkv_page_check_target(to, err);
    if (page->recipe && !(made.recipe = qkv_text_clean(page->recipe))) return qkv_fail_memory(err);
    int status = form->draw(&made, err);
    if (status == QKV_OK && to->path)
        status = qkv_output_write(to->path, made.file.data, made.file.length, err);
    if (status == QKV_OK && !to->path) hand_over(&made.file, to);
    qkv_text_release(&made.file);
    free(made.recipe);
    return status;
}
