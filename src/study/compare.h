/* The study `compare` from the inside: what was computed, for the files that make tables and pictures
 * of it. */
#ifndef QKV_STUDY_COMPARE_H
#define QKV_STUDY_COMPARE_H

#include "measure/compare.h"
#include "study/study.h"

typedef struct compare_settings {
    int distance; /* number of one of the distances */
    const char *edit;
    int32_t top;
} compare_settings;

typedef struct compare_head {
    int32_t layer, head;
    double distance;
} compare_head;

typedef struct compare_work {
    qkv_study *study;
    const study_inputs *in;
    const compare_settings *how;
    qkv_compare *compare;
    qkv_compared all, *prompts; /* over all prompts, and of each */
    qkv_text names[2];          /* of the models, as titles and tables call them */
    const char *distance;       /* in words */
    const char *axis;           /* the same with its unit */
    int32_t n_layer, n_head;
    double *heads;         /* distances, layers x heads */
    compare_head *ranking; /* all heads, the farthest first */
    size_t n_ranking, n_top;
} compare_work;

/* compare_tables.c, compare_pictures.c: put them into the study. */
int qkv_compare_tables(const compare_work *w, qkv_error *err);
int qkv_compare_pictures(const compare_work *w, qkv_error *err);

#endif
