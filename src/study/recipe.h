/*
 * Recipes that people write of a sweep: "sweep" is its specification (the prompts may be left out), "tables" say which
 * means are shown, "greedy" asks for a set of heads. The study `effects` makes them.
 */
#ifndef QKV_STUDY_RECIPE_H
#define QKV_STUDY_RECIPE_H

#include <jansson.h>

#include "base/fail.h"
#include "qkv/session.h"
#include "qkv/sweep_reader.h"
#include "study/study.h"
#include "sweep/sweep.h"

enum { RECIPE_KEY_SIZE = 64 };

/* ---- recipe.c ---- */

/* Of a text; a specification alone becomes the "sweep" of a recipe. What can be told without a model is checked. */
int qkv_recipe_read(json_t **out, const char *text, qkv_error *err);
/* Whether the sweep measures what is shown. */
int qkv_recipe_check_sweep(const json_t *recipe, const qkv_sweep *sweep, qkv_error *err);
/* 1 when the sweep measures it. */
int qkv_recipe_is_measured(const qkv_sweep *sweep, const char *metric);

/* ---- recipe_table.c ---- */

/* Fails where a table names something that there is not. */
int qkv_recipe_tables_check(const json_t *tables, qkv_error *err);
/* Adds one: `number` is its place among them. */
int qkv_recipe_add_means(qkv_study *study, const json_t *table, size_t number,
                         qkv_sweep_reader *file, qkv_error *err);

/* ---- recipe_greedy.c ---- */

int qkv_recipe_greedy_check(const json_t *greedy, qkv_error *err);
/* Fails where the sweep does not say what is done to a single head. */
int qkv_recipe_greedy_check_sweep(const json_t *greedy, const qkv_sweep *sweep, qkv_error *err);
/* Adds the set of heads that together change the metric most. The sweep says the prompts, and its one
 * target and operation what is done to a head. */
int qkv_recipe_add_heads(qkv_study *study, const json_t *greedy, qkv_session *session,
                         const qkv_sweep *sweep, qkv_sweep_reader *file, qkv_error *err);

#endif
