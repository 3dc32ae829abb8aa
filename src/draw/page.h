/*
 * A page that is laid out, on its way into a file: what all figures and charts share once they
 * know their size and can be painted. The suffix of the path says how: .png, .svg, .pdf.
 *
 * The drawing is made in memory and written whole. Nothing half-written stays behind, and the same
 * page gives the same bytes: no dates, no counters.
 */
#ifndef QKV_DRAW_PAGE_H
#define QKV_DRAW_PAGE_H

#include <cairo.h>

#include "base/fail.h"

/* Draws onto a surface on which one unit is one point; `pixels` a point, 0 on a vector surface. */
typedef int (*qkv_page_painter)(const void *content, cairo_t *cr, double pixels, qkv_error *err);

typedef struct qkv_page {
    double width, height;    /* points */
    double dpi;              /* of a PNG */
    const char *title;       /* with asterisks; for a PDF's metadata; NULL: none */
    const char *small_print; /* the same; NULL: none */
    const char *recipe;      /* embedded; NULL: none */
    qkv_page_painter paint;
    const void *content;
} qkv_page;

/* The suffix is one of those above. */
int qkv_page_check_path(const char *path, qkv_error *err);
int qkv_page_check_dpi(double dpi, qkv_error *err);
/* What qkv_page_write would refuse whatever the disk is like: more pixels than a PNG can have. */
int qkv_page_check(const qkv_page *page, const char *path, qkv_error *err);

int qkv_page_write(const qkv_page *page, const char *path, qkv_error *err);

#endif
