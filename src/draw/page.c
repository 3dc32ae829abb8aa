/* Pages drawn as PNG, SVG or PDF into memory, and from there to their target. See page.h. */
#include "draw/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cairo-pdf.h>
#include <cairo-svg.h>

#include "base/file.h"
#include "base/text.h"
#include "draw/draw.h"
#include "draw/lettering.h"
#include "draw/words_show.h"
#include "qkv/grid.h"
#include "qkv/version.h"

/* What cairo's rasteriser can address. */
enum { MOST_PIXELS = 32767 };
static const double LEAST_DPI = 10;
static const double MOST_WIDTH = 14400; /* points: what readers of PDF take */

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

int qkv_page_check_print(qkv_text_form text, double width, qkv_error *err) {
    if ((unsigned)text > QKV_TEXT_TEXT) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "unknown form of text %d", (int)text);
    }
    if (width != 0 && !(width > 0 && width <= MOST_WIDTH)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the width of a page must be above 0 and up to %g points, not %g",
                        MOST_WIDTH, width);
    }
    return QKV_OK;
}

int qkv_page_check_dpi(double dpi, qkv_error *err) {
    if (isfinite(dpi) && dpi >= LEAST_DPI) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "dpi must be at least %g, not %g", LEAST_DPI, dpi);
}

static double scale_of(const qkv_page *page) {
    return page->scale > 0 ? page->scale : 1;
}

static int check_pixels(const qkv_page *page, qkv_error *err) {
    const double scale = scale_of(page), pixels = page->dpi / 72;
    const double width = scale * page->width, height = scale * page->height;
    const double longest = fmax(width, height);
    if (longest * pixels <= MOST_PIXELS) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "the figure is %.0f x %.0f points, %.0f x %.0f pixels at %g dpi, and a PNG can "
                    "have at most %d on a side: use a dpi of %.0f or less, or write .svg or .pdf",
                    width, height, ceil(width * pixels), ceil(height * pixels), page->dpi,
                    MOST_PIXELS, floor(MOST_PIXELS * 72.0 / longest));
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
                         const qkv_words_way *way, qkv_error *err) {
    cairo_t *cr = cairo_create(surface);
    const double unit = scale_of(page) * (pixels > 0 ? pixels : 1);
    if (unit != 1) cairo_scale(cr, unit, unit);
    pixels *= scale_of(page);
    qkv_words_set_way(cr, way);
    int status = page->paint(page->content, cr, pixels, err);
    if (status == QKV_OK) status = cairo_failure(cairo_status(cr), err);
    cairo_destroy(cr);
    return status;
}

static int draw_png(drawing *made, qkv_error *err) {
    int status = check_pixels(made->page, err);
    if (status != QKV_OK) return status;
    const double pixels = made->page->dpi / 72, unit = scale_of(made->page) * pixels;
    const qkv_words_way way = {0};
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(made->page->width * unit - 1e-6),
                                   (int)ceil(made->page->height * unit - 1e-6));
    status = cairo_failure(cairo_surface_status(surface), err);
    if (status == QKV_OK) status = paint_surface(made->page, surface, pixels, &way, err);
    if (status == QKV_OK)
        status = qkv_png_write(&made->file, surface, made->recipe, made->page->dpi, err);
    cairo_surface_destroy(surface);
    return status;
}

/* Draws, finishes and destroys a surface that streams into made->file. */
static int draw_vector(drawing *made, cairo_surface_t *surface, const qkv_words_way *way,
                       qkv_error *err) {
    int status = cairo_failure(cairo_surface_status(surface), err);
    if (status == QKV_OK) status = paint_surface(made->page, surface, 0, way, err);
    cairo_surface_finish(surface);
    if (status == QKV_OK) status = cairo_failure(cairo_surface_status(surface), err);
    cairo_surface_destroy(surface);
    if (status == QKV_OK && made->file.failed) status = qkv_fail_memory(err);
    return status;
}

static int draw_svg(drawing *made, qkv_error *err) {
    qkv_text elements = {0};
    qkv_words_way way = {0};
    if (made->page->text == QKV_TEXT_TEXT) {
        qkv_text_puts(&elements, "");
        way.elements = &elements;
    }
    const double scale = scale_of(made->page);
    cairo_surface_t *surface = cairo_svg_surface_create_for_stream(
        append_bytes, &made->file, scale * made->page->width, scale * made->page->height);
    int status = draw_vector(made, surface, &way, err);
    if (status == QKV_OK && elements.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_embed_svg(&made->file, made->recipe, elements.data, err);
    qkv_text_release(&elements);
    return status;
}

static int has_key(const qkv_text *file, const char *key) {
    const size_t n = strlen(key);
    for (size_t i = 0; i + n < file->length; i++) {
        if (file->data[i] == '/' && memcmp(file->data + i + 1, key, n) == 0) return 1;
    }
    return 0;
}

/* cairo leaves out a text that it has no memory for, and does not say so. */
static int has_texts(const drawing *made, const char *title, const char *small_print) {
    return has_key(&made->file, "CreationDate") && has_key(&made->file, "Creator") &&
           (!title[0] || has_key(&made->file, "Title")) &&
           (!small_print[0] || has_key(&made->file, "Subject")) &&
           (!made->recipe || has_key(&made->file, "Keywords"));
}

static int draw_pdf(drawing *made, qkv_error *err) {
    char *title = qkv_title_plain(made->page->title ? made->page->title : "");
    char *small_print = qkv_text_clean(made->page->small_print ? made->page->small_print : "");
    int status = title && small_print ? QKV_OK : qkv_fail_memory(err);
    const double scale = scale_of(made->page);
    const qkv_words_way way = {.paths = made->page->text == QKV_TEXT_PATHS};
    if (status == QKV_OK) {
        cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(
            append_bytes, &made->file, scale * made->page->width, scale * made->page->height);
        /* Later versions have compressed objects, and newer versions of cairo put texts there. */
        cairo_pdf_surface_restrict_to_version(surface, CAIRO_PDF_VERSION_1_4);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, title);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_SUBJECT, small_print);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "qkv " QKV_VERSION);
        if (made->recipe) {
            cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_KEYWORDS, made->recipe);
        }
        /* A fixed date: cairo would write the time of day, and no two files would be equal. */
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2000-01-01T00:00:00Z");
        status = draw_vector(made, surface, &way, err);
        if (status == QKV_OK && !has_texts(made, title, small_print)) status = qkv_fail_memory(err);
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
