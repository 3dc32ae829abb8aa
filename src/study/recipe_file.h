/*
 * Files that carry a recipe: where it stands in each of them, read out and put in.
 *
 *     png           an iTXt chunk "qkv-recipe", not compressed
 *     svg           <metadata id="qkv-recipe">
 *     pdf           the keywords of the information dictionary, an ASCII string
 *     html          <script type="application/json" id="qkv-recipe">
 *     md            a comment at the end
 *     json          the member "recipe" of a report; or the recipe itself
 *     safetensors   the metadata "recipe"
 *
 * A file is known by how it begins. None of it is trusted: nothing is decompressed, and a
 * recipe has at most RECIPE_FILE_MOST bytes.
 */
#ifndef QKV_STUDY_RECIPE_FILE_H
#define QKV_STUDY_RECIPE_FILE_H

#include "base/fail.h"
#include "base/text.h"

enum {
    RECIPE_FILE_MOST = 4 << 20,
    RECIPE_FILE_MOST_COST = 128 << 20 /* bytes that parsing it may take */
};

/* Appends the recipe; QKV_ERR_FORMAT where there is none. *format is one of the names above; `name` is
 * the file's, for messages. */
int qkv_recipe_file_read(const char *bytes, size_t n, const char *name, qkv_text *recipe,
                         const char **format, qkv_error *err);
/* Appends the file with this recipe, an ASCII text, in place of any that it has. Not for JSON and
 * safetensors, whose metadata programs do not strip. */
int qkv_recipe_file_write(const char *bytes, size_t n, const char *name, const char *recipe,
                          qkv_text *out, qkv_error *err);

/* For writers of reports: appends it where the format has its place. */
void qkv_recipe_file_append_html(qkv_text *out, const char *recipe);
void qkv_recipe_file_append_markdown(qkv_text *out, const char *recipe);

/* ---- recipe_pdf.c ---- */

int qkv_recipe_pdf_find(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err);
int qkv_recipe_pdf_put(const char *bytes, size_t n, const char *recipe, qkv_text *out,
                       qkv_error *err);

/* ---- what they share ---- */

/* The first or last place of a text; NULL: it is not there. */
const char *qkv_find_first(const char *bytes, size_t n, const char *text);
const char *qkv_find_last(const char *bytes, size_t n, const char *text);
/* Appends, unless it is too long. */
int qkv_recipe_file_take(qkv_text *recipe, const char *bytes, size_t n, qkv_error *err);

#endif
