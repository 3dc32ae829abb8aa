/*
 * The results of a sweep as a chart, step by step.
 *
 *     qkv_plot_select      which metric, targets, operation, ε, layers and heads: plot_select.c,
 *                      from what the options name and the file holds (plot_choose.c)
 *     qkv_plot_summarize   means and bands over the prompts: plot_summary.c
 *     qkv_plot_make_recipe how to make it again: plot_recipe.c
 *     qkv_plot_notes       its words: plot_notes.c
 *     qkv_plot_numbers_new what a page holds beside the chart, where it is asked for: plot_numbers.c
 *
 * plot.c does them one after the other; plot_page.c draws what came out. What is ambiguous is an
 * error that lists the choices; nothing is left out without the small print saying so.
 */
#ifndef QKV_STUDY_PLOT_H
#define QKV_STUDY_PLOT_H

#include "base/fail.h"
#include "base/text.h"
#include "qkv/plot.h"
#include "study/study.h"
#include "study/study_recipe.h"

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

struct plot_numbers;

struct qkv_plot {
    qkv_plot_options options;
    /* While it is made. */
    qkv_sweep_reader *file;
    const qkv_sweep_reader_info *info;
    qkv_sweep_row *rows;
    size_t n_rows;

    qkv_plot_kind kind;
    qkv_plot_by by;
    char *metric;
    char *metric_title;   /* in words */
    char *font;           /* of the options; NULL: the default */
    plot_indices targets; /* of the file, in its order */
    char **target_names;
    int32_t op; /* of the file */
    char *op_name;
    double *epsilons; /* ascending; one NaN where the operation has none */
    size_t n_epsilons, epsilons_capacity;
    plot_indices layers, heads;

    plot_cell *cells;
    size_t n_cells, cells_capacity;
    size_t n_missing, n_undefined; /* of them */
    size_t most_prompts;           /* that any drawn value rests on */
    double reference;              /* mean of the unedited cells, for lines; NaN: none */
    plot_summary *groups;
    size_t n_groups;
    int is_signed; /* around 0 */
    size_t *shown; /* the groups in the order of qkv_plot_get_value */
    size_t n_shown;

    char *title; /* NULL: none */
    char *small_print, *recipe;
    char **warnings;
    size_t n_warnings, warnings_capacity;
    char id[RECIPE_ID_SIZE];      /* of the recipe */
    struct plot_numbers *numbers; /* for a page; NULL unless asked for */
};

/* plot_choose.c: the metric, targets, operation, ε, layers and heads, and the kind of chart. */
int qkv_plot_choose(qkv_plot *p, qkv_error *err);
/* The index of a number in a list, -1 when it is not there. */
int32_t qkv_plot_find(const plot_indices *list, int32_t value);
/* Where an ε stands in the ascending list, or would. */
size_t qkv_plot_find_epsilon(const qkv_plot *p, double value);
int qkv_plot_is_baseline(const qkv_plot *p, const qkv_sweep_row *row);

/* plot_select.c */
int qkv_plot_select(qkv_plot *p, qkv_error *err);

/* plot_summary.c: p->groups, numbered by qkv_plot_group, and the order in which they are shown. */
int qkv_plot_summarize(qkv_plot *p, qkv_error *err);
size_t qkv_plot_group(const qkv_plot *p, const plot_cell *cell);
/* Lines drawn: whether or not each has values. */
size_t qkv_plot_n_series(const qkv_plot *p);

/* plot_page.c: the colours of a heatmap, not AUTO. */
qkv_colormap qkv_plot_colormap(const qkv_plot *p);
/* The chart as a picture of a study. */
int qkv_plot_add(const qkv_plot *p, qkv_study *study, const char *name, qkv_error *err);

/* plot_recipe.c: the options, as recipes hold them; the recipe. */
extern const field_table qkv_plot_table;
int qkv_plot_make_recipe(qkv_plot *p, qkv_error *err);

/* plot_notes.c: texts to be released by the caller, which asks them whether memory ran short. */
const char *qkv_plot_target_name(const qkv_plot *p, size_t target);
void qkv_plot_panel_title(const qkv_plot *p, size_t target, qkv_text *text);
void qkv_plot_head_name(const qkv_plot *p, size_t layer, size_t head, qkv_text *text);
void qkv_plot_value_label(const qkv_plot *p, qkv_text *text);
/* Title, small print and warning; needs the id of the recipe. */
int qkv_plot_notes(qkv_plot *p, qkv_error *err);

#endif
