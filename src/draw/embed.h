/*
 * What cairo leaves out of an SVG: a figure's recipe, and names that do not depend on what else the
 * process drew before; and real text, where it is wanted.
 */
#ifndef QKV_DRAW_EMBED_H
#define QKV_DRAW_EMBED_H

#include "base/text.h"

/* Adds <metadata id="qkv-recipe">, unless recipe is NULL, and numbers surfaces and embedded images
 * from 0. `elements`, unless NULL, go on top of the drawing. */
int qkv_embed_svg(qkv_text *file, const char *recipe, const char *elements, qkv_error *err);

/* Appends text that may stand between tags. */
void qkv_xml_append(qkv_text *out, const char *text, size_t length);

#endif
