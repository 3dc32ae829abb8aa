/*
 * Fonts: which families there are, and which scripts of a text no font has glyphs for.
 *
 *     uint64_t scripts = 0;
 *     if (qkv_fonts_missing("\u0939\u093f\u0928\u094d\u0926\u0940", NULL, &scripts, &err) == QKV_OK) {
 *         for (size_t i = 0; qkv_script_name(i); i++) {
 *             if (scripts >> i & 1) printf("install %s\n", qkv_script_package(i));
 *         }
 *     }
 *
 * A drawing takes letters that its font lacks from any other font that fontconfig finds, without a
 * word. Letters that no font has become boxes with their number. Any thread may call these.
 */
#ifndef QKV_FONTS_H
#define QKV_FONTS_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fails when fontconfig has no such family, and says which it has. */
QKV_API int qkv_font_check(const char *family, qkv_error *err);

/* Sets bit i of *scripts for every script i of the text that no font has all glyphs for. font is
 * the family that is tried first; NULL: the default. */
QKV_API int qkv_fonts_missing(const char *text, const char *font, uint64_t *scripts,
                              qkv_error *err);

/* "Devanagari", "emoji"; NULL past the end. */
QKV_API const char *qkv_script_name(size_t script);
/* The package of Debian that has glyphs for it, "fonts-noto-core"; "" where none is known; NULL past
 * the end. */
QKV_API const char *qkv_script_package(size_t script);

#ifdef __cplusplus
}
#endif

#endif
