/*
 * Families of fonts, and glyphs that none of them has: what qkv/fonts.h says about texts, for
 * layouts.
 */
#ifndef QKV_DRAW_FONTS_H
#define QKV_DRAW_FONTS_H

#include "draw/lettering.h"
#include "qkv/fonts.h"

/* Bit i: some glyph of script i is missing. */
uint64_t qkv_words_missing(PangoLayout *words);

/* Fails when there is no such family. */
int qkv_lettering_find_font(const qkv_lettering *lettering, const char *family, qkv_error *err);

#endif
