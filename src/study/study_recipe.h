/*
 * Recipes: the JSON that every file of a study carries, from which it can be made again. There is one format:
 *
 *     what is to be made       format, kind, model_hash, other_hash, inputs (prompts; those that edits name have a
 *                              name), options (the kind's fields)
 *     what came out            panels with a summary of their numbers, digest; of a figure site, layer, head, range
 *     how it was drawn         look (the kind's fields); of a figure also what was chosen for it: drawn
 *     for people               versions, names of files, the command line; of a figure whether it has a report
 *
 * `id` is made of the first part alone: the same work has the same id on every machine. Charts of sweeps have
 * results_hash in place of the model and its inputs (plot_recipe.c). former_recipe.c turns those of format 1 into this one.
 *
 *     study_recipe.c    the recipe, written
 *     recipe_panels.c   its numbers
 *     former_recipe.c   recipes of earlier versions
 *     recipe_file.c, recipe_pdf.c   where it stands in a file
 *     reproduce*.c      read, made again and compared
 */
#ifndef QKV_STUDY_STUDY_RECIPE_H
#define QKV_STUDY_STUDY_RECIPE_H

#include "study/fields.h"
#include "study/panel_summary.h"
#include "study/prompt.h"

struct qkv_figure;

enum { RECIPE_FORMAT = 2, RECIPE_ID_SIZE = 9 };

/* Prompts of a set that a recipe holds at most. */
enum { FIGURE_MOST_SET = 1000 };

/* The words of a command line; null where there are none. */
json_t *qkv_recipe_command(const char *const *words, size_t n);

/* The id of a recipe, of whatever it holds by now. */
int qkv_recipe_id(const json_t *recipe, char out[RECIPE_ID_SIZE], qkv_error *err);
/* Adds the id and returns the text; the recipe may be NULL: memory was short. *text is the caller's
 * to free. */
int qkv_recipe_finish(json_t *recipe, char id[RECIPE_ID_SIZE], char **text, qkv_error *err);

/* ---- recipe_panels.c ---- */

json_t *qkv_recipe_number(double value);
/* Adds what a summary says: "shape", "digest", "least", "most", "norm", "sample". */
void qkv_recipe_add_summary(json_t *panel, const panel_summary *summary);
/* Adds "panels" and "digest". */
int qkv_recipe_add_numbers(json_t *recipe, const qkv_study *study, qkv_error *err);
int qkv_recipe_add_cells(json_t *recipe, const struct qkv_figure *fig, qkv_error *err);

/* ---- former_recipe.c ---- */

/* A recipe of an earlier format becomes one of this format, but for its id. */
int qkv_recipe_modernize(json_t *recipe, qkv_error *err);

#endif
