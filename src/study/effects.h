/*
 * The study `effects` from the inside: effects.c makes a sweep of the options and runs it, effects_show.c puts means and
 * charts into the study, recipe.c reads what a recipe says of them.
 */
#ifndef QKV_STUDY_EFFECTS_H
#define QKV_STUDY_EFFECTS_H

#include <jansson.h>

#include "qkv/sweep_reader.h"
#include "study/study.h"

/* Texts are those of a sweep's specification (docs/sweeps.md). */
typedef struct effects_options {
    const char *targets, *ops, *epsilon, *layers, *heads, *metrics;
    int at; /* of EFFECTS_PLACES */
    int32_t length;
    const char *spec; /* JSON; the options above come on top of it; NULL: none */
    int32_t top;      /* of the table that is printed, and of a ranking; 0: 10 */
    /* Of charts, as qkv/plot.h has them. */
    int chart, band, order, scale, axis;
    int32_t change;
    double range[2];
} effects_options;

typedef struct effects {
    const effects_options *options;
    const study_inputs *in;
    json_t *recipe; /* {"sweep": ..., "tables": ..., "greedy": ...} */
    qkv_sweep *sweep;
    qkv_sweep_reader *file; /* of its results, which are complete */
} effects;

/* effects_show.c */
int qkv_effects_show(const effects *e, qkv_study *study, qkv_error *err);

#endif
