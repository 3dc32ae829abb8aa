/*
 * Recipes of figures and charts: the JSON that every file carries, from which it can be made again.
 *
 *     what is to be made       format, kind, model_hash, inputs, sources, set, rows, cols, options; of a
 *                              chart results_hash in place of the model and its inputs
 *     what came out            layer, head, range, panels with a summary of their numbers, digest
 *     for people               versions, names of files, the command line
 *
 * `id` is made of the first part alone: the same work has the same id on every machine. Everything
 * about the first part stands in one table for each struct of options (study/fields.h).
 */
#ifndef QKV_STUDY_FIGURE_RECIPE_H
#define QKV_STUDY_FIGURE_RECIPE_H

#include "study/fields.h"
#include "study/panel_summary.h"
#include "study/prompt.h"

enum { RECIPE_FORMAT = 1, RECIPE_ID_SIZE = 9 };

/* Prompts of a set that a recipe holds at most. */
enum { FIGURE_MOST_SET = 1000 };

/* The options of figures (figure_kinds.c): a new one is a line there. */
extern const field_table qkv_figure_table;

/* Adds what a summary says: "shape", "digest", "least", "most", "norm", "sample". */
void qkv_recipe_add_summary(json_t *panel, const panel_summary *summary);

/* Prompts: tokens, and the text where there is one. */
json_t *qkv_recipe_prompts(const qkv_own_prompts *prompts);

/* The words of a command line; null where there are none. */
json_t *qkv_recipe_command(const char *const *words, size_t n);

/* The id of a recipe, of whatever it holds by now. */
int qkv_recipe_id(const json_t *recipe, char out[RECIPE_ID_SIZE], qkv_error *err);
/* Adds the id and returns the text; the recipe may be NULL: memory was short. *text is the caller's
 * to free. */
int qkv_recipe_finish(json_t *recipe, char id[RECIPE_ID_SIZE], char **text, qkv_error *err);

#endif
