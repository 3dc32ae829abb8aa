/* Recipes that people write: a study and its options in a JSON file, or a sweep and its tables. */
#ifndef QKV_CLI_RECIPE_H
#define QKV_CLI_RECIPE_H

#include <jansson.h>

#include "cli/study.h"
#include "cli/sweep.h"

typedef struct recipe_args {
    cli_study study;
    const char *model;
    sweep_flags flags;
    cli_list set; /* NAME=VALUE */
    const char *phrases, *needles, *heads_from, *results;
    int parity, mean_map;
    int print;
} recipe_args;

/* The study that recipes of sweeps are. */
#define RECIPE_SWEEP "effects"

int recipe_run(const cli_call *call, const json_t *recipe, const char *path, qkv_error *err);

#endif
