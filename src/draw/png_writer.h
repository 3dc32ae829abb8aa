/*
 * PNG files: the pixels of a page, its resolution, and a figure's recipe, so that a file found a month
 * later says how it was made.
 *
 * libpng is called directly and not through cairo, which has it try every filter on every line: that
 * takes three times as long, a third of the time from the start of `qkv figure` to its file.
 */
#ifndef QKV_DRAW_PNG_WRITER_H
#define QKV_DRAW_PNG_WRITER_H

#include <cairo.h>

#include "base/fail.h"
#include "base/text.h"

/* Appends the file to `out`. The image is CAIRO_FORMAT_RGB24; the recipe becomes an iTXt chunk
 * "qkv-recipe", none when it is NULL. */
int qkv_png_write(qkv_text *out, cairo_surface_t *image, const char *recipe, double dpi,
                  qkv_error *err);

#endif
