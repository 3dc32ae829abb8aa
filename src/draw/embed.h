/*
 * What cairo leaves out of its files: a figure's recipe, so that a file found a month later says
 * how it was made, the resolution of a PNG, and names in an SVG that do not depend on what else the
 * process drew before.
 */
#ifndef QKV_DRAW_EMBED_H
#define QKV_DRAW_EMBED_H

#include "base/text.h"

/* PNG: adds pHYs (dots per inch) and, when recipe is not NULL, an iTXt chunk "qkv-recipe". */
int qkv_embed_png(qkv_text *file, const char *recipe, double dpi, qkv_error *err);

/* SVG: adds <metadata id="qkv-recipe"> and numbers surfaces and embedded images from 0. */
int qkv_embed_svg(qkv_text *file, const char *recipe, qkv_error *err);

/* The CRC-32 of PNG chunks. */
uint32_t qkv_png_crc(const char *bytes, size_t length);

#endif
