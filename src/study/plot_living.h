/*
 * What the page of a chart holds beside the chart: every metric of the sweep at every ε, for the
 * targets, layers and heads that are drawn, so that a cell can be opened.
 */
#ifndef QKV_STUDY_PLOT_LIVING_H
#define QKV_STUDY_PLOT_LIVING_H

#include "study/plot.h"

/* The values of one metric. Cells are numbered by target, ε, layer and head. */
typedef struct plot_metric {
    char *name, *title;
    float *means;    /* [cells], over the prompts; NaN: none */
    float *unedited; /* [layers, heads], the same where nothing is edited */
    float *values;   /* [prompts, cells]; NULL: too many for a page */
} plot_metric;

typedef struct plot_living {
    plot_metric *metrics; /* the one that is drawn first */
    size_t n_metrics;
    double *epsilons; /* ascending; one NaN where the operation has none */
    size_t n_epsilons, epsilons_capacity;
    int64_t *prompts; /* ascending */
    size_t n_prompts, prompts_capacity;
    size_t n_cells;
    int left_out;             /* other metrics are, because they are too much for a page */
    struct plot_heads *heads; /* the attention of the cells; NULL: there is no session */
} plot_living;

/* While the plot has its file. */
int qkv_plot_living_new(plot_living **out, const qkv_plot *p, qkv_error *err);
void qkv_plot_living_free(plot_living *all, const qkv_plot *p);

/* plot_html.c: appends the page. */
int qkv_plot_html(const qkv_plot *p, qkv_text *out, qkv_error *err);

#endif
