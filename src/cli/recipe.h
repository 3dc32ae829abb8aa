/*
 * Recipes: named studies as JSON files. "sweep" is a specification (the prompts may be left out),
 * "tables" say what of it is printed, "greedy" asks for a set of heads.
 */
#ifndef QKV_CLI_RECIPE_H
#define QKV_CLI_RECIPE_H

#include "cli/inputs.h"
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"

/* ---- recipe_table.c ---- */

/* Fails where a table names something that there is not; before the work. */
int recipe_tables_check(const json_t *tables, qkv_error *err);
/* Prints means of a file of results, as the tables say. */
int recipe_tables_print(const json_t *tables, const char *results, qkv_error *err);

/* ---- recipe_greedy.c ---- */

int recipe_greedy_check(const json_t *greedy, qkv_error *err);
/* Builds and prints the set of heads that together change the metric most. The specification says
 * the prompts, and its one target and operation what is done to a head. */
int recipe_greedy_print(const json_t *greedy, const json_t *spec, const char *results,
                        const char *model, int64_t memory, qkv_error *err);

#endif
