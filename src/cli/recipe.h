/* Recipes that are studies: a kind and its options in a JSON file. */
#ifndef QKV_CLI_RECIPE_H
#define QKV_CLI_RECIPE_H

#include <jansson.h>

#include "cli/study.h"
#include "cli/sweep.h"

typedef struct recipe_args {
    cli_study study; /* of sweeps only its output, --json, threads and memory */
    const char *model;
    sweep_flags flags;
    cli_list set; /* NAME=VALUE */
    const char *phrases, *needles, *heads_from, *results;
    int parity, mean_map;
    int print;
} recipe_args;

/* 1 when the recipe is a study rather than a sweep. */
int recipe_is_study(const json_t *recipe);
int recipe_run_study(const cli_call *call, const json_t *recipe, const char *path, qkv_error *err);

#endif
