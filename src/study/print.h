/*
 * What figures and charts of sweeps have in common on their way into print: the form of text, the
 * font and its size, the width of the page, the small print; how these are checked, and what is
 * said about letters that no font has.
 */
#ifndef QKV_STUDY_PRINT_H
#define QKV_STUDY_PRINT_H

#include "base/fail.h"
#include "qkv/grid.h"

typedef struct study_print {
    qkv_text_form text;
    const char *font; /* NULL: the default */
    double width;     /* points; 0: as wide as the content */
    int32_t hide_notes;
    double font_size; /* points; 0: the default */
} study_print;

/* The resolution of a PNG: what was given, else 150 dots an inch, and 300 on a page whose width was
 * given, as it goes into print. */
double qkv_print_dpi(double given, double width);
int qkv_print_check(const study_print *print, qkv_error *err);
/* The warning about a script of qkv/fonts.h, freed with free; NULL when memory is short. */
char *qkv_print_missing(size_t script);

#endif
