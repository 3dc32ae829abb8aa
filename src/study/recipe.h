/*
 * Recipes: named studies as JSON. "sweep" is a specification (the prompts may be left out), "tables"
 * say what of its results is shown, "greedy" asks for a set of heads.
 */
#ifndef QKV_STUDY_RECIPE_H
#define QKV_STUDY_RECIPE_H

#include <jansson.h>

#include "base/fail.h"
#include "qkv/recipe.h"
#include "qkv/sweep_reader.h"

enum { RECIPE_KEY_SIZE = 64 };

/* Labels of rows or columns. */
typedef struct recipe_keys {
    char (*texts)[RECIPE_KEY_SIZE];
    size_t n, capacity;
} recipe_keys;

/* The index of a label, which is added when it is new; 0 when memory is short. */
int qkv_recipe_find_key(recipe_keys *keys, const char *text, size_t *index);

typedef struct recipe_table {
    qkv_recipe_kind kind;
    char *title, *metric;
    recipe_keys rows, columns;
    double *values; /* rows x columns; NaN: none */
} recipe_table;

struct qkv_recipe_result {
    recipe_table *tables;
    size_t n;
};

/* ---- recipe_table.c ---- */

/* Fails where a table names something that there is not. */
int qkv_recipe_tables_check(const json_t *tables, qkv_error *err);
/* Fails where a table shows what the sweep does not measure. */
int qkv_recipe_tables_check_sweep(const json_t *tables, const qkv_sweep *sweep, qkv_error *err);
/* Fills one table. */
int qkv_recipe_table_fill(recipe_table *out, const json_t *table, qkv_sweep_reader *file,
                          qkv_error *err);

/* ---- recipe_greedy.c ---- */

int qkv_recipe_greedy_check(const json_t *greedy, qkv_error *err);
/* Fails where the sweep does not say what is done to a single head, or does not measure it. */
int qkv_recipe_greedy_check_sweep(const json_t *greedy, const qkv_sweep *sweep, qkv_error *err);
/* The set of heads that together change the metric most. The sweep says the prompts, and its one
 * target and operation what is done to a head. */
int qkv_recipe_greedy_fill(recipe_table *out, const json_t *greedy, const qkv_model *model,
                           const qkv_sweep *sweep, qkv_sweep_reader *file,
                           const qkv_recipe_options *options, int *stopped, qkv_error *err);

/* 1 when the sweep measures it. */
int qkv_recipe_is_measured(const qkv_sweep *sweep, const char *metric);

#endif
