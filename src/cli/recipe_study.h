/*
 * Recipes that are studies:
 *
 *     {"title": "...", "about": "...", "study": "lens", "options": {"answer": " sea"},
 *      "prompts": ["The river runs to the"]}
 *
 * Prompts may be left out; then those that come with qkv are used, as many as the study takes.
 */
#ifndef QKV_CLI_RECIPE_STUDY_H
#define QKV_CLI_RECIPE_STUDY_H

#include "cli/study.h"

typedef struct cli_recipe_study {
    json_t *tree;
    const char *path; /* for messages */
    const char *model;
    const cli_list *prompts; /* in place of the recipe's, where there are any */
    int parse_special;
    const cli_chat *chat;
    const cli_list *set; /* OPTION=VALUE */
    const cli_study *how;
} cli_recipe_study;

int cli_recipe_study_run(const cli_call *call, const cli_recipe_study *recipe, qkv_error *err);

#endif
