/*
 * A page that is laid out, on its way into a file or into memory: what all figures and charts share
 * once they know their size and can be painted. A format says how: png, svg, pdf.
 *
 * There is one way: the drawing is made in memory, and handed over or written whole. Nothing
 * half-written is left, and the same page gives the same bytes: no dates, no counters.
 */
#ifndef QKV_DRAW_PAGE_H
#define QKV_DRAW_PAGE_H

#include <cairo.h>
#include <stddef.h>

#include "base/fail.h"
#include "base/text.h"
#include "qkv/grid.h"

/* Draws onto a surface; `pixels` a unit, 0 on a vector surface. */
typedef int (*qkv_page_painter)(const void *content, cairo_t *cr, double pixels, qkv_error *err);

typedef struct qkv_page {
    double width, height; /* of what is painted, in its own units */
    double scale;         /* points a unit; 0: 1 */
    qkv_text_form text;
    double dpi;              /* of a PNG */
    const char *title;       /* with asterisks; for a PDF's metadata; NULL: none */
    const char *small_print; /* the same; NULL: none */
    const char *recipe;      /* embedded; NULL: none */
    qkv_page_painter paint;
    const void *content;
} qkv_page;

/* Where a drawing goes. */
typedef struct qkv_page_target {
    const char *path;   /* a file whose suffix names the format; NULL: memory */
    const char *format; /* in memory */
    char **bytes;       /* receives the drawing, NUL-terminated, the caller's to free */
    size_t *n_bytes;
} qkv_page_target;

/* The target is complete and its format one of those above; what it receives is emptied. */
int qkv_page_check_target(const qkv_page_target *to, qkv_error *err);
/* Whether the target's format, which was checked, has no pixels of its own. */
int qkv_page_is_vector(const qkv_page_target *to);
int qkv_page_check_dpi(double dpi, qkv_error *err);
int qkv_page_check_print(qkv_text_form text, double width, qkv_error *err);
/* What qkv_page_draw would refuse whatever the disk is like: more pixels than a PNG can have. */
int qkv_page_check(const qkv_page *page, const qkv_page_target *to, qkv_error *err);

int qkv_page_draw(const qkv_page *page, const qkv_page_target *to, qkv_error *err);

/*
 * PNG files: the pixels of a page, its resolution, and a figure's recipe, so that a file found a month
 * later says how it was made.
 *
 * libpng is called directly and not through cairo, which has it try every filter on every line: that
 * takes three times as long, a third of the time from the start of `qkv figure` to its file.
 */

/* Appends the file to `out`. The image is CAIRO_FORMAT_RGB24; the recipe becomes an iTXt chunk
 * "qkv-recipe", none when it is NULL. */
int qkv_png_write(qkv_text *out, cairo_surface_t *image, const char *recipe, double dpi,
                  qkv_error *err);

/*
 * What cairo leaves out of an SVG: a figure's recipe, and names that do not depend on what else the
 * process drew before; and real text, where it is wanted.
 */

/* Adds <metadata id="qkv-recipe">, unless recipe is NULL, and numbers surfaces and embedded images
 * from 0. `elements`, unless NULL, go on top of the drawing. */
int qkv_embed_svg(qkv_text *file, const char *recipe, const char *elements, qkv_error *err);

/* Appends text that may stand between tags. */
void qkv_xml_append(qkv_text *out, const char *text, size_t length);

#endif
