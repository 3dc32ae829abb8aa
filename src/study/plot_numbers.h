/*
 * What the page of a chart holds beside the chart: every metric of the sweep at every ε, for the
 * targets, layers and heads that are drawn, so that a cell can be opened, and the attention that it opens.
 */
#ifndef QKV_STUDY_PLOT_NUMBERS_H
#define QKV_STUDY_PLOT_NUMBERS_H

#include "base/json.h"
#include "study/plot.h"

/* The values of one metric. Cells are numbered by target, ε, layer and head. */
typedef struct plot_metric {
    char *name, *title;
    float *means;    /* [cells], over the prompts; NaN: none */
    float *unedited; /* [layers, heads], the same where nothing is edited */
    float *values;   /* [prompts, cells]; NULL: too many for a page */
} plot_metric;

typedef struct plot_numbers {
    plot_metric *metrics; /* the one that is drawn first */
    size_t n_metrics;
    double *epsilons; /* ascending; one NaN where the operation has none */
    size_t n_epsilons, epsilons_capacity;
    int64_t *prompts; /* ascending */
    size_t n_prompts, prompts_capacity;
    size_t n_cells;
    int left_out;      /* other metrics are, because they are too much for a page */
    json_t *attention; /* that cells open; NULL: none, as without a session */
} plot_numbers;

/* While the plot has its file. */
int qkv_plot_numbers_new(plot_numbers **out, const qkv_plot *p, qkv_error *err);
void qkv_plot_numbers_free(plot_numbers *all);

/* plot_heads.c: for these prompts; the model of the options' session must be that of the sweep. Nothing where all is
 * too much. */
int qkv_plot_take_attention(json_t **out, const qkv_plot *p, const int64_t *ids, size_t n,
                            qkv_error *err);

/* html_sweep.c: appends the page. */
int qkv_plot_html(const qkv_plot *p, qkv_text *out, qkv_error *err);

#endif
