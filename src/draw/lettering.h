/*
 * Text through pango: every script, measured in points, the same on every surface.
 *
 * Metrics are unhinted and glyph positions not rounded, so that a text takes the same room whether
 * it ends in a PNG, an SVG or a PDF: what the layout measured is what is drawn. No markup is used:
 * a user's text never needs escaping. Texts are cut, with an ellipsis, after 2000 characters,
 * labels after 200: setting one takes a bounded time whatever a file or a user says.
 */
#ifndef QKV_DRAW_LETTERING_H
#define QKV_DRAW_LETTERING_H

#include <pango/pangocairo.h>

#include "base/fail.h"
#include "draw/draw.h"

/* Letters go onto a page through qkv_words_show (draw/words_show.h), or they would be outlines in an
 * SVG that is to have text. */
#pragma GCC poison pango_cairo_show_layout

typedef struct qkv_lettering {
    PangoFontMap *fonts;
    PangoContext *context;
    char *families; /* in the order in which they are tried; NULL: the default ones */
    double least;   /* the smallest letters that can be read on the page, in its units; 0: any */
    double given;   /* units of a natural one, where the size of letters was given; 0: 1 */
} qkv_lettering;

/* The size that letters of a natural size are drawn in, in units. Where a page is drawn small, its
 * smallest letters stay readable, and larger ones are larger still, though by less. */
double qkv_lettering_size(const qkv_lettering *lettering, double natural);
#define QKV_SMALLEST_LETTERS 6.5 /* natural size of those that all pages have */

int qkv_lettering_open(qkv_lettering *lettering, qkv_error *err);
/* The family that is tried first, which must exist; NULL: the default. */
int qkv_lettering_set_font(qkv_lettering *lettering, const char *family, qkv_error *err);
void qkv_lettering_close(qkv_lettering *lettering);
/* Was memory too short for any words, so that qkv_words_new gave NULL? To be asked when all is painted. */
int qkv_lettering_failed(const qkv_lettering *lettering);

/* How the text is read.
 *   PLAIN    as it is, \n breaks the line
 *   TITLE    the same, and *text* is set in italics, \* is an asterisk; a formula, such as
 *            "x = 5e-1", stays on one line
 *   LABEL    one line; leading and trailing spaces become middle dots, control characters escapes
 */
typedef enum qkv_words_kind { QKV_WORDS_PLAIN, QKV_WORDS_TITLE, QKV_WORDS_LABEL } qkv_words_kind;

/* A layout of the text in `size` points, to be given back with g_object_unref; NULL when memory is
 * short. Text wider than `limit` points (0: no limit) is wrapped and centred; a label is
 * ellipsised instead. */
PangoLayout *qkv_words_new(const qkv_lettering *lettering, const char *text, qkv_words_kind kind,
                           double size, double limit);
/* Wraps words of a layout without a limit. */
void qkv_words_wrap(PangoLayout *layout, double limit);

/* Sizes of a layout in points. The right edge counts from the layout's origin: text that is
 * ellipsised or set from right to left need not begin there. */
double qkv_words_width(PangoLayout *layout);
double qkv_words_right(PangoLayout *layout);
double qkv_words_height(PangoLayout *layout);
/* The width a layout was made for: its limit when it is wrapped, else its own. */
double qkv_words_frame(PangoLayout *layout);
double qkv_words_baseline(PangoLayout *layout);

/* The text of a title without its asterisks, for a file's metadata: freed with free. */
char *qkv_title_plain(const char *title);

/* UTF-8 that any reader takes: malformed bytes and control characters (but \n and \t) become
 * U+FFFD. Freed with free; NULL when memory is short. */
char *qkv_text_clean(const char *text);

/*
 * Families of fonts, and glyphs that none of them has: what qkv/fonts.h says about texts, for
 * layouts.
 */

/* Bit i: some glyph of script i is missing. */
uint64_t qkv_words_missing(PangoLayout *words);

/* Fails when there is no such family. */
int qkv_lettering_find_font(const qkv_lettering *lettering, const char *family, qkv_error *err);

#endif
