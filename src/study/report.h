/*
 * The report of a figure: what one would say about it by eye, in numbers.
 *
 * report.c gathers, report_facts.c judges, and one file per format writes.
 */
#ifndef QKV_STUDY_REPORT_H
#define QKV_STUDY_REPORT_H

#include "study/figure.h"

/* X(metric, heading) */
#define REPORT_COLUMN_LIST(X)                                                                      \
    X(first_column, "first column")                                                                \
    X(diagonal, "diagonal")                                                                        \
    X(near_diagonal, "near diagonal")                                                              \
    X(far, "far")                                                                                  \
    X(entropy, "entropy")                                                                          \
    X(entropy_norm, "entropy, of ln n")                                                            \
    X(uniformity, "uniformity")                                                                    \
    X(symmetry, "symmetry")                                                                        \
    X(upper, "upper triangle")                                                                     \
    X(tv, "change (TV)")                                                                           \
    X(js, "change (JS)")                                                                           \
    X(max_change, "largest change")

#define REPORT_COLUMN_ENUM(metric, heading) REPORT_##metric,
enum { REPORT_COLUMN_LIST(REPORT_COLUMN_ENUM) REPORT_COLUMNS };
#undef REPORT_COLUMN_ENUM

/* Names and headings of the columns. */
extern const char *const qkv_report_metrics[REPORT_COLUMNS];
extern const char *const qkv_report_headings[REPORT_COLUMNS];

/* Classes of panels, tried in this order. */
#define REPORT_UNIFORM 0.95   /* uniformity from here on */
#define REPORT_SINK 0.5       /* first column from here on */
#define REPORT_DIAGONAL 0.5   /* diagonal from here on */
#define REPORT_SATURATED 1e-2 /* largest difference between the panels of the two smallest eps */
#define REPORT_NEAR 1e-2      /* panels this close are listed as nearly identical */
extern const char qkv_report_thresholds[];

typedef struct report_panel {
    const figure_cell *cell;
    size_t row, col;
    double values[REPORT_COLUMNS];
    double output_kl; /* what the edits do to the next token */
    const char *kind; /* "sink", "diagonal", "uniform", "mixed" */
    size_t same_as;   /* the first panel with the same bits; itself when there is none */
} report_panel;

enum { REPORT_FAILS = 0, REPORT_HOLDS = 1, REPORT_NOT_APPLICABLE = 2 };

/* One statement about the figure, as a number. */
typedef struct report_fact {
    const char *name;
    char *text; /* with the number and what it was held against */
    double number;
    int verdict;
} report_fact;

/* Keys from `first` on, before `end`. */
typedef struct report_keys {
    size_t first, end;
} report_keys;

typedef struct report {
    const qkv_figure *fig;
    report_panel *panels;
    size_t n_panels;
    report_panel *plain; /* the unmodified pattern of every prompt */
    report_fact *facts;
    size_t n_facts, capacity;
    report_keys **visible; /* per prompt: what each of its queries sees */
} report;

extern const char *const qkv_report_verdicts[3];

/* The keys that a query of a panel sees. */
report_keys qkv_report_visible(const report *r, const report_panel *panel, size_t query);

/* Largest difference of a cell between two panels; infinite when their prompts differ. */
double qkv_report_difference(const report *r, size_t a, size_t b);

/* Two panels that are identical, or nearly. Of a group of identical ones, the first stands for all.
 */
typedef struct report_pair {
    size_t a, b;
    int same; /* bit for bit */
    double difference;
} report_pair;

/* The next pair; *at starts as 0. Returns 0 when there are no more. */
int qkv_report_next_pair(const report *r, size_t *at, report_pair *pair);

/* report_facts.c */
int qkv_report_judge(report *r, qkv_error *err);

/* A number of a table: "–" where there is none. */
void qkv_report_put_number(qkv_text *text, double value);
/* The formats: appended to text. */
void qkv_report_markdown(const report *r, qkv_text *text);
int qkv_report_json(const report *r, qkv_text *text, qkv_error *err);
json_t *qkv_report_facts_json(const report *r);
/* html_report.c: appends its parts of the figure's page to the list, which is spoiled when memory is short. */
void qkv_report_parts(const report *r, json_t *parts);

#endif
