/*
 * Recipes: named studies, each a sweep and the tables that are made of its results.
 *
 *     qkv_model *model = NULL;
 *     const char *json = "{\"sweep\": {\"ops\": \"zero\", \"metrics\": \"tv\"},"
 *                        " \"tables\": [{\"title\": \"Change\", \"metric\": \"tv\","
 *                        " \"rows\": \"layer\", \"columns\": \"target\"}]}";
 *     const char *prompt = "The river runs past the old mill.";
 *     qkv_recipe *recipe = NULL;
 *     qkv_recipe_result *result = NULL;
 *     double value = 0;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_recipe_load(&recipe, json, strlen(json), "mine", &err) == QKV_OK &&
 *         qkv_recipe_set_prompts(recipe, &prompt, 1, &err) == QKV_OK &&
 *         qkv_recipe_run(recipe, &result, model, "recipe.sqlite", NULL, NULL, &err) == QKV_OK) {
 *         qkv_recipe_result_value(result, 0, 0, 0, &value, &err);
 *         printf("%g\n", value);
 *     }
 *     qkv_recipe_result_free(result);
 *     qkv_recipe_free(recipe);
 *     qkv_model_free(model);
 *
 * A recipe is a JSON object; docs/sweeps.md describes its keys. All of it is checked before
 * anything is computed. A recipe and a result belong to one thread at a time; a result depends on
 * nothing.
 */
#ifndef QKV_RECIPE_H
#define QKV_RECIPE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/sweep.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what to do ---- */

typedef struct qkv_recipe qkv_recipe;

/* `name` is what messages call it, e.g. its file; NULL: "recipe". */
QKV_API int qkv_recipe_load(qkv_recipe **out, const char *json, size_t length, const char *name,
                            qkv_error *err);
QKV_API void qkv_recipe_free(qkv_recipe *recipe);

/* Texts belong to the recipe. */
typedef struct qkv_recipe_info {
    size_t size;
    const char *title; /* NULL: none; so below */
    const char *about;
    const char *spec;    /* of its sweep, as it is by now */
    int32_t has_prompts; /* 1: its sweep names some */
    int32_t has_greedy;  /* 1: it asks for a set of heads */
    size_t n_tables;     /* of means */
} qkv_recipe_info;

#define QKV_RECIPE_INFO_INIT                                                                       \
    { .size = sizeof(qkv_recipe_info) }

QKV_API int qkv_recipe_get_info(const qkv_recipe *recipe, qkv_recipe_info *info, qkv_error *err);

/* In place of those of its sweep. */
QKV_API int qkv_recipe_set_prompts(qkv_recipe *recipe, const char *const *texts, size_t n,
                                   qkv_error *err);

/* Its sweep, checked against a model, and checked to have all that the recipe shows. A "model" that
 * the specification names is for programs that open one, and counts for nothing here. */
QKV_API int qkv_recipe_sweep(const qkv_recipe *recipe, qkv_sweep **out, const qkv_model *model,
                             qkv_error *err);
/* The same check of a sweep that was made of a changed specification. */
QKV_API int qkv_recipe_check(const qkv_recipe *recipe, const qkv_sweep *sweep, qkv_error *err);

/* ---- doing it ---- */

typedef struct qkv_recipe_result qkv_recipe_result;

typedef struct qkv_recipe_options {
    size_t size;
    size_t memory_budget; /* as in qkv_session_options; 0: the default */
    /* Called while a set of heads is looked for; anything but 0 stops it. May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
    const qkv_progress *session_progress; /* as in qkv_sweep_share_options */
} qkv_recipe_options;

#define QKV_RECIPE_OPTIONS_INIT                                                                    \
    { .size = sizeof(qkv_recipe_options) }

/* What the recipe shows of a file of results that the sweep has filled. options may be NULL.
 * *stopped (may be NULL) is 1 when progress ended it; *out is NULL then. */
QKV_API int qkv_recipe_evaluate(const qkv_recipe *recipe, qkv_recipe_result **out,
                                const qkv_model *model, const qkv_sweep *sweep, const char *results,
                                const qkv_recipe_options *options, int *stopped, qkv_error *err);

/* All of it: the sweep, run into that file with qkv_sweep_share, then what is made of it. The
 * options are qkv_sweep_share's and may be NULL; progress tells of the sweep first, then of the set
 * of heads. Not for transports, whose processes run the sweep together and evaluate it once. */
QKV_API int qkv_recipe_run(const qkv_recipe *recipe, qkv_recipe_result **out,
                           const qkv_model *model, const char *results,
                           const qkv_sweep_share_options *options, int *stopped, qkv_error *err);
QKV_API void qkv_recipe_result_free(qkv_recipe_result *result);

/* ---- tables ---- */

typedef enum qkv_recipe_kind {
    QKV_RECIPE_MEANS, /* the mean of a metric over all cells that share a row and a column */
    QKV_RECIPE_HEADS  /* a set of heads, one to a row: layer, head, the metric with those before */
} qkv_recipe_kind;

typedef struct qkv_recipe_table {
    size_t size;
    qkv_recipe_kind kind;
    const char *title;
    const char *metric;
    size_t n_rows, n_columns;
} qkv_recipe_table;

#define QKV_RECIPE_TABLE_INIT                                                                      \
    { .size = sizeof(qkv_recipe_table) }

QKV_API size_t qkv_recipe_result_n_tables(const qkv_recipe_result *result);
QKV_API int qkv_recipe_result_table(const qkv_recipe_result *result, size_t table,
                                    qkv_recipe_table *out, qkv_error *err);
/* What stands before a row and above a column; NULL past the end. */
QKV_API const char *qkv_recipe_result_row(const qkv_recipe_result *result, size_t table,
                                          size_t row);
QKV_API const char *qkv_recipe_result_column(const qkv_recipe_result *result, size_t table,
                                             size_t column);
/* NaN: no cell has a value there. */
QKV_API int qkv_recipe_result_value(const qkv_recipe_result *result, size_t table, size_t row,
                                    size_t column, double *value, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
