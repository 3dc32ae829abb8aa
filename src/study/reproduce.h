/*
 * Reproductions from the inside:
 *
 *     carrier*.c            file to recipe
 *     reproduce.c           the object, what can be asked of it
 *     reproduce_read.c      recipe to checked options
 *     reproduce_compare.c   numbers of two recipes
 */
#ifndef QKV_STUDY_REPRODUCE_H
#define QKV_STUDY_REPRODUCE_H

#include "base/json.h"
#include "qkv/reproduce.h"
#include "study/study.h"

struct qkv_reproduction {
    json_t *tree; /* texts of the options are its */
    char *text;
    const char *format;
    int is_plot;
    int kind;                         /* of figures or of plots */
    const char *hashes[2], *names[2]; /* of the model and the results; "" */
    qkv_figure_options figure;        /* without lists */
    qkv_plot_options plot;
    const study_kind *study; /* NULL: it is none */
    const char *other_hash, *other_name;
    qkv_prompt *prompts, *sources, *set; /* with tokens; the text where there is one */
    size_t n_prompts, n_sources, n_set;
    qkv_figure_side *rows, *cols;
    size_t n_rows, n_cols;
    const char **command; /* for people; goes into what is made again as it is */
    size_t n_command;
};

/* Fills all but the first three from r->tree. */
int qkv_reproduction_take(qkv_reproduction *r, qkv_error *err);

#endif
