/* The study `next` from the inside: next_study.c computes (qkv/next.h), next_tables.c puts it into tables. */
#ifndef QKV_STUDY_NEXT_STUDY_H
#define QKV_STUDY_NEXT_STUDY_H

#include "qkv/next.h"
#include "study/answers.h"

typedef struct next_options {
    const char *variant; /* edits, a line for each variant */
    int32_t top;         /* 0: 10, or none where something else is asked for */
    const char *of, *diff, *answer;
    int32_t at;
    int32_t all; /* 1: the losses of the prompt's tokens instead */
} next_options;

typedef struct next_study {
    qkv_study *study;
    const study_inputs *in;
    const next_options *how;
    char **variants; /* without the baseline */
    size_t n_variants;
    token_list of, diff; /* diff: pairs */
    study_answers answers;
    qkv_next **found; /* of each prompt */
} next_study;

/* next_tables.c */
int qkv_next_show(const next_study *n, qkv_error *err);

#endif
