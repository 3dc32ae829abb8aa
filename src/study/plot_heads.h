/*
 * The attention that cells of a chart are about: the scores of every head, unedited, for the first
 * prompts of the sweep. The page makes maps of them at any factor (attention.js).
 */
#ifndef QKV_STUDY_PLOT_HEADS_H
#define QKV_STUDY_PLOT_HEADS_H

#include "study/plot.h"
#include "study/prompt.h"

typedef struct plot_heads {
    qkv_own_prompts prompts; /* the first ones */
    int64_t *ids;            /* their numbers in the sweep */
    float **scores;   /* [prompts, layers, heads] maps of [T, T], scaled, not capped; NULL where
                              a layer or head is none */
    double *sinks;    /* [layers, heads]; NaN: none */
    int32_t *windows; /* per layer */
    int32_t causal;
    double softcap;
} plot_heads;

/* The session's model must be that of the sweep. */
int qkv_plot_heads_new(plot_heads **out, const qkv_plot *p, qkv_session *session,
                       const int64_t *prompts, size_t n_prompts, qkv_error *err);
void qkv_plot_heads_free(plot_heads *all, const qkv_plot *p);

#endif
