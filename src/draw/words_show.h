/*
 * How letters get onto a surface: as cairo's glyphs, as outlines, or as elements of an SVG.
 *
 * Cairo's own glyphs are embedded fonts in a PDF, outlines in an SVG and pixels in a PNG. Its SVG
 * surface cannot write text, so that real text is collected here while the page is painted, and put
 * on top of the finished drawing. All letters of a page go through qkv_words_show; which way they
 * go is kept with the cairo_t, so that painters need not know.
 */
#ifndef QKV_DRAW_WORDS_SHOW_H
#define QKV_DRAW_WORDS_SHOW_H

#include <pango/pangocairo.h>

#include "base/text.h"

typedef struct qkv_words_way {
    int paths;          /* 1: outlines, filled */
    qkv_text *elements; /* not NULL: <text> elements are appended, and nothing is painted */
} qkv_words_way;

/* `way` must live as long as the cairo_t is painted with. */
void qkv_words_set_way(cairo_t *cr, const qkv_words_way *way);

/* At the current point, in the current colour. */
void qkv_words_show(cairo_t *cr, PangoLayout *words);

#endif
