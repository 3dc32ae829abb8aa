/*
 * Reproductions from the inside (study_recipe.h says what recipes hold):
 *
 *     reproduce.c           the object, what can be asked of it
 *     reproduce_read.c      recipe to checked fields and prompts
 *     reproduce_compare.c   numbers of two recipes
 */
#ifndef QKV_STUDY_REPRODUCE_H
#define QKV_STUDY_REPRODUCE_H

#include "base/json.h"
#include "qkv/reproduce.h"
#include "study/study.h"

struct qkv_reproduction {
    json_t *tree; /* in the format of this version; texts of the options are its */
    char *text;   /* as it was */
    const char *format;
    const study_kind *study;          /* NULL: a chart of a sweep */
    const char *hashes[2], *names[2]; /* of the model and the results; "" */
    const char *other_hash, *other_name;
    qkv_plot_options plot;
    qkv_prompt *prompts; /* with tokens; the text where there is one */
    size_t n_prompts;
    const char **command; /* for people; goes into what is made again as it is */
    size_t n_command;
};

/* Fills all but the first three from r->tree. */
int qkv_reproduction_take(qkv_reproduction *r, qkv_error *err);

#endif
