/*
 * What cairo leaves out of an SVG: a figure's recipe, and names that do not depend on what else the
 * process drew before.
 */
#ifndef QKV_DRAW_EMBED_H
#define QKV_DRAW_EMBED_H

#include "base/text.h"

/* Adds <metadata id="qkv-recipe">, unless recipe is NULL, and numbers surfaces and embedded images from 0. */
int qkv_embed_svg(qkv_text *file, const char *recipe, qkv_error *err);

#endif
