/*
 * qkv plot: the results of a sweep as a chart, in three steps.
 *
 *     plot_select      which metric, targets, operation, ε, layers and heads: plot_select.c,
 *                      from what the command line names and the file holds (plot_choose.c)
 *     plot_summarize   means and bands over the prompts: plot_summary.c
 *     plot_draw        the chart: plot_draw.c, its words: plot_notes.c
 *
 * What is ambiguous is an error that lists the choices; nothing is left out without the small
 * print saying so.
 */
#ifndef QKV_CLI_PLOT_H
#define QKV_CLI_PLOT_H

#include "cli/inputs.h"
#include "qkv/chart.h"
#include "qkv/sweep_reader.h"

enum { PLOT_AUTO = -1, PLOT_HEATMAP, PLOT_LINES, PLOT_RANKING };
enum { PLOT_BY_TARGET, PLOT_BY_LAYER, PLOT_BY_HEAD };
enum { PLOT_BAND_RANGE, PLOT_BAND_SD, PLOT_BAND_NONE };
enum { PLOT_AXIS_LOG, PLOT_AXIS_LINEAR };
enum { PLOT_ORDER_AUTO = -1, PLOT_ORDER_LARGEST, PLOT_ORDER_SMALLEST, PLOT_ORDER_MAGNITUDE };

typedef struct plot_args {
    int kind; /* PLOT_AUTO: not given */
    const char *metric, *targets, *op, *epsilon, *layers, *heads;
    int by;     /* -1: not given */
    int change; /* minus the unedited value */
    int band;   /* -1: not given */
    int scale;  /* -1: not given, QKV_SCALE_LINEAR or QKV_SCALE_LOG */
    int axis;   /* -1: not given */
    int order;
    int64_t top; /* 0: not given */
    const char *range, *title;
    double dpi; /* 0: not given */
    cli_list outputs;
} plot_args;

/* A value that is drawn, or goes into one that is; all but the prompt count within the plot. */
typedef struct plot_cell {
    int64_t prompt;
    int32_t target, layer, head, epsilon;
    double value; /* NaN: none */
} plot_cell;

/* What all prompts together say about one group of cells. */
typedef struct plot_summary {
    double mean; /* NaN: no value */
    double low, high;
    size_t prompts; /* with a value */
} plot_summary;

typedef struct plot_indices {
    int32_t *at; /* ascending */
    size_t n, capacity;
} plot_indices;

typedef struct plot {
    const cli_call *call;
    const plot_args *args;
    qkv_sweep_reader *file;
    const qkv_sweep_reader_info *info;
    qkv_sweep_row *rows;
    size_t n_rows;

    int kind, by;
    const char *metric;
    plot_indices targets; /* of the file, in its order */
    int32_t op;           /* of the file */
    double *epsilons;     /* ascending; one NaN where the operation has none */
    size_t n_epsilons, epsilons_capacity;
    plot_indices layers, heads;

    plot_cell *cells;
    size_t n_cells, cells_capacity;
    size_t n_missing, n_undefined; /* of them */
    size_t most_prompts;           /* that any drawn value rests on */
    double reference;              /* mean of the unedited cells, for lines; NaN: none */
    plot_summary *groups;
    size_t n_groups;
} plot;

/* plot_choose.c: the metric, targets, operation, ε, layers and heads, and the kind of chart. */
int plot_choose(plot *p, qkv_error *err);
/* The index of a number in a list, -1 when it is not there. */
int32_t plot_find(const plot_indices *list, int32_t value);
/* Where an ε stands in the ascending list, or would. */
size_t plot_find_epsilon(const plot *p, double value);
int plot_is_baseline(const plot *p, const qkv_sweep_row *row);

/* plot_select.c */
int plot_select(plot *p, qkv_error *err);

/* plot_summary.c: p->groups, numbered by plot_group. */
int plot_summarize(plot *p, qkv_error *err);
size_t plot_group(const plot *p, const plot_cell *cell);
/* Lines drawn: whether or not each has values. */
size_t plot_n_series(const plot *p);

/* plot_draw.c */
int plot_draw(const plot *p, qkv_error *err);

/* plot_notes.c: texts to be released by the caller, which asks them whether memory ran short. */
const char *plot_target_name(const plot *p, size_t target);
void plot_title(const plot *p, qkv_text *text);
void plot_panel_title(const plot *p, size_t target, qkv_text *text);
void plot_head_name(const plot *p, size_t layer, size_t head, qkv_text *text);
void plot_value_label(const plot *p, qkv_text *text);
void plot_small_print(const plot *p, qkv_text *text);
char *plot_recipe(const plot *p); /* NULL when memory is short */

#endif
