/* Patching from the inside: patch.c gets the values of all cells, patch_show.c puts them into tables and
 * pictures. */
#ifndef QKV_STUDY_PATCH_H
#define QKV_STUDY_PATCH_H

#include "qkv/sweep.h"
#include "study/study.h"

/* Texts are those of the sweep's specification (docs/sweeps.md). */
typedef struct patch_options {
    const char *pairs; /* a table of prompts and answers, which become the study's; NULL: none */
    const char *site, *by, *align, *positions, *layers, *heads;
    const char *metric;   /* a line each */
    const char *receiver; /* a line each: senders are patched along paths to these; NULL: none */
    int direction;        /* of DIRECTIONS */
    int32_t freeze_mlps;  /* 1: these paths do not lead through feed-forward blocks */
    const char *answers;  /* JSON: [[answer, wrong], ...], one for each pair; either may be null */
    int32_t top;          /* cells of the table that is printed; 0: 10 */
} patch_options;

typedef struct patch_cells {
    qkv_sweep *sweep;
    size_t n_pairs, n_metrics;
    size_t n; /* cells of a pair; the first two are its prompts, clean and corrupt, as they are */
    double *means;        /* over the pairs: n × n_metrics */
    const double *values; /* of each pair: n_pairs × n × n_metrics */
} patch_cells;

/* (value - corrupt) / (clean - corrupt), of means over the pairs. */
double qkv_patch_recovery(const patch_cells *cells, size_t cell, size_t metric);

/* The lowest and the highest of single pairs; NaN where none has one. */
void qkv_patch_range(const patch_cells *cells, size_t cell, size_t metric, double *lowest,
                     double *highest);

/* patch_pairs.c: pairs of a table become the study's prompts and answers. */
int qkv_patch_pairs_take(qkv_study *study, const char *text, qkv_error *err);

/* patch_show.c */
int qkv_patch_show(const patch_cells *cells, qkv_study *study, const study_inputs *in,
                   const patch_options *options, qkv_error *err);

#endif
