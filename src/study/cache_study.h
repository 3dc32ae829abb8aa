/*
 * What a smaller cache of keys and values costs: the perplexity of texts under edits that compress it, in
 * all layers at once, in every layer alone and in every head alone.
 *
 * A kind of study says how an edit is written for a setting (a budget, a number of bits) and a place;
 * everything else is common. Losses are those of qkv/next.h, each the mean over all tokens that count of
 * all prompts; perplexity is exp of it. Memory does not grow with the number of prompts.
 */
#ifndef QKV_STUDY_CACHE_STUDY_H
#define QKV_STUDY_CACHE_STUDY_H

#include "base/text.h"
#include "study/study.h"

typedef struct cache_question {
    const char *name;     /* of the method: "H2O" */
    const char *title;    /* of the study */
    const char *setting;  /* the column's name: "budget" */
    const char *axis;     /* for people: "Budget (keys)" */
    const char *settings; /* whole numbers, "8,16,32" */
    int64_t least, most;  /* that a setting may be */
    int64_t length;       /* tokens of each prompt; 0: all */
    int64_t from;         /* the first token whose loss counts; at least 1 */
    int per_group;        /* heads are key/value heads */
    int only_all;         /* neither layers nor heads alone */
    int64_t alone;        /* the setting of heads alone; 0: the first */
    /* Appends the edits of one variant; `place` is "*", "3" or "3.h1". */
    void (*write)(qkv_text *out, const void *options, int64_t setting, const char *place);
    const void *options;
} cache_question;

int qkv_cache_study(qkv_study *study, const study_inputs *in, const cache_question *question,
                    qkv_error *err);

/* mean_map.c: means of scores and of patterns over the first `length` tokens of all prompts, as pictures
 * `scores` and `patterns` and as a table. `maps` is LAYERS.hHEADS as in a capture; NULL: head 0 of some
 * layers. */
int qkv_mean_maps(qkv_study *study, const study_inputs *in, const char *maps, int64_t length,
                  qkv_error *err);

#endif
