/*
 * Figures from the inside: one way from plain options to a file.
 *
 *     figure_kinds.c    fields      what can be asked
 *     figure_asked.c    options     of fields, and back for recipes
 *     figure_options.c  checks      what can be said without a model
 *     figure.c          inputs      prompts to tokens, layer and head
 *     figure_modify.c, figure_mean.c, figure_grid.c, figure_heads.c, figure_rows.c,
 *     figure_pattern.c
 *                       cells       what stands in which panel: prompt, edits, title
 *     figure_run.c      plan, run   one matrix per panel
 *     figure_watch.c    the same    where panels are put together of many heads or layers
 *     study_recipe.c    recipe      how to make it again, and what came out
 *     figure_notes.c    notes       small print
 *     figure_scores.c   scores      what an HTML page needs, where it is asked for
 *     report.c          report      where it is asked for
 *     figure_page.c     grid        labels, colours, style; draw/ makes the page
 *     figure_write.c    bytes       every format, to a file or to memory
 *
 * Up to the report everything happens when a figure is made; afterwards neither the session nor the
 * model is needed.
 */
#ifndef QKV_STUDY_FIGURE_H
#define QKV_STUDY_FIGURE_H

#include "base/fail.h"
#include "base/json.h"
#include "base/text.h"
#include "qkv/bytes.h"
#include "qkv/edit_data.h"
#include "qkv/grid.h"
#include "qkv/head_choice.h"
#include "qkv/session.h"
#include "study/figure_scores.h"
#include "study/prompt.h"
#include "study/study_recipe.h"

/* ---- options ---- */

typedef struct qkv_figure qkv_figure;

typedef enum qkv_figure_kind {
    QKV_FIGURE_MODIFY,  /* rows Query, Key, Value; columns the factors they are multiplied with */
    QKV_FIGURE_MEAN,    /* a row per prompt; columns Query, Key, Value replaced by their mean */
    QKV_FIGURE_GRID,    /* rows and columns of the caller's own edits, for every prompt */
    QKV_FIGURE_HEADS,   /* a small map of every head of some layers */
    QKV_FIGURE_ROWS,    /* the weights of one query in every layer, or in every head of a layer */
    QKV_FIGURE_PATTERN, /* the map of one head, or of several heads of a layer */
    QKV_FIGURE_KINDS
} qkv_figure_kind;

typedef enum qkv_figure_show {
    QKV_SHOW_PATTERN, /* attention weights */
    QKV_SHOW_SCORES   /* before mask and softmax */
} qkv_figure_show;

typedef enum qkv_figure_labels {
    QKV_LABELS_AUTO,   /* tokens, where they fit */
    QKV_LABELS_TOKENS, /* the same, with a warning where they do not */
    QKV_LABELS_INDEX,  /* positions */
    QKV_LABELS_NONE
} qkv_figure_labels;

typedef enum qkv_figure_values {
    QKV_VALUES_AUTO,   /* numbers in the cells, where there is room */
    QKV_VALUES_ALWAYS, /* the same, with a warning where there is none */
    QKV_VALUES_NEVER
} qkv_figure_values;

/* "modify", "mean", "grid", "heads", "rows", "pattern"; NULL past the end. */
const char *qkv_figure_kind_name(qkv_figure_kind kind);

/* A row or column of QKV_FIGURE_GRID. A panel has the edits of both its sides. */
typedef struct qkv_figure_side {
    size_t size;
    const char *label;
    const char *edits; /* as in qkv/plan.h; {layer} and {head} are those shown; NULL or "": none */
} qkv_figure_side;

#define QKV_FIGURE_SIDE_INIT                                                                       \
    { .size = sizeof(qkv_figure_side) }

typedef struct qkv_figure_options {
    size_t size;

    /* What is computed. */
    /* modify, heads: one; mean, rows, pattern: one per row; grid: one per block of panels */
    const qkv_prompt *prompts;
    size_t n_prompts; /* 0: neutral texts of the library's own */
    /* QKV_AUTO: qkv_choose_head on the first prompt; heads, rows: all. QKV_FROM_END(1): the
     * last. */
    int32_t layer, head;
    int32_t all_heads; /* modify, mean: 1 edits all heads of the layer, 0 the one shown */
    const char *eps;   /* modify: factors, as they are to be written; "5e-1,1e-3,1e-10"; also
                                      "linspace:FROM,TO,NUMBER" and "logspace:FROM,TO,NUMBER" */
    /* grid; either may be left out, with several prompts both */
    const qkv_figure_side *rows, *cols;
    size_t n_rows, n_cols;
    const qkv_prompt *sources; /* grid: prompts with names, for patch:NAME */
    size_t n_sources;
    qkv_figure_show show; /* grid */
    int32_t baseline;     /* 1: a first column with the unmodified pattern */
    int32_t diff;         /* 1: differences from the unmodified pattern */
    int64_t skip_keys;    /* leave out so many first keys */
    int32_t sink_column;  /* 1: a first column, what a model's learned sinks take */
    int32_t report;       /* 1: measure what reports say; keeps whole maps */

    /* How it is drawn. */
    qkv_figure_labels labels;
    qkv_figure_values values;
    int32_t hide_axes; /* 1: without Query and Key at the axes */
    qkv_scale scale;   /* LINEAR becomes another beyond 40 tokens, see `always_linear` */
    double gamma;      /* exponent of the power scale; 0: 0.5 */
    double range[2];   /* of the colour scale; both 0: 0 to 1; of scores and differences, which must
                          reach as far below 0 as above, what the values need */
    const char *title; /* below; *text* is italic; NULL: the figure's own, "": none */
    double dpi;        /* of a PNG; 0: 150, with a width 300; up to 300 where cells need it */
    double panel_size; /* side of a panel in points; 0: 170, more where there are many cells */

    /* What its recipe says about where it comes from: the command line of a program. */
    const char *const *command;
    size_t n_command;

    /* More of how it is drawn. */
    /* 1: a linear scale whatever the prompt. 0: weights of more than 40 tokens are drawn on a log
     * scale, their differences on a power scale with an exponent of 1/3, unless `scale` says
     * otherwise: a linear one would show little but the sink. */
    int32_t always_linear;
    int32_t auto_range;    /* 1: colours of weights end at the largest that is shown, not at 1 */
    qkv_colormap colormap; /* AUTO: coolwarm */
    qkv_masked masked;     /* AUTO: white; zero for modify and mean up to 40 tokens */

    /* For print. */
    qkv_text_form text; /* of an SVG or PDF */
    const char *font;   /* family, for what it has glyphs for; NULL: DejaVu Sans */
    double width;       /* of the page, points; 0: as wide as its content */
    int32_t hide_notes; /* 1: without the small print */

    int32_t no_recipe; /* 1: files carry none */

    /* More of what is computed: heads, rows. */
    const char *layers;  /* e.g. "2-4,7"; NULL: all, or `layer` */
    const char *variant; /* also pattern: edits, as in qkv/plan.h; NULL: none */
    int32_t query;       /* rows: position of the query; from the end when negative, -1: the last */

    /* 1: keep what an HTML page needs, whole maps and the scores of the head; `report` does so, too.
     * It changes nothing of the figure and is not in its recipe. */
    int32_t page;

    /* grid: the set of prompts that mean:set and patch:resample are about. Recipes hold it. */
    const qkv_prompt *set_prompts;
    size_t n_set_prompts; /* at most 1000 */

    /* More for print. */
    /* Of the names of axes, points, 5 to 72; other letters in proportion; 0: 8, or what the width
     * allows. */
    double font_size;
    const char *bar_label; /* *text* is italic; NULL: the figure's own, "": none */

    const char *heads; /* pattern: several heads of `layer`, e.g. "1,3" or "0-3"; NULL: `head` */
} qkv_figure_options;

#define QKV_FIGURE_OPTIONS_INIT                                                                    \
    { .size = sizeof(qkv_figure_options), .layer = QKV_AUTO, .head = QKV_AUTO, .query = -1 }

/* What can be said without a model: fields that exclude each other, that the kind does not have,
 * or that are out of range. options may be NULL, here and below: the defaults. */
int qkv_figure_options_check(qkv_figure_kind kind, const qkv_figure_options *options,
                             qkv_error *err);

void qkv_figure_free(qkv_figure *figure);

/* One line each, NULL past the end: edits that changed nothing (grid); and, once it was drawn or
 * checked, what was asked for and cells are too small for, and which scripts no font has. */
const char *qkv_figure_warning(const qkv_figure *figure, size_t index);

/* ---- writing ---- */

/* png svg pdf: the drawing. html: a page that needs nothing else, whose maps change as you drag: edits
 * that scale q or k of the layer shown have a slider, exact at every factor; `page` or `report` must
 * have asked for it, and with `report` it holds the report. md json: the report, which `report` must
 * have asked for. safetensors, npz: the values of the panels as r0.c0, r0.c1, ...; csv: the same, a
 * row for each. NULL past the end. */
const char *qkv_figure_format(size_t index);

/* The bytes of a file; the same figure gives the same ones. *bytes is the caller's to free with qkv_bytes_free. */
int qkv_figure_render(qkv_figure *figure, const char *format, char **bytes, size_t *n_bytes,
                      qkv_error *err);

/* ---- inside ---- */

/* What the two published figures change. */
typedef struct figure_part {
    const char *site, *name;
} figure_part;

enum { FIGURE_PARTS = 3 };
extern const figure_part qkv_figure_parts[FIGURE_PARTS];

/* What is done to a part. */
typedef enum figure_change { FIGURE_OWN, FIGURE_SCALED, FIGURE_MEANED } figure_change;

/* One panel. values is what is drawn: differences taken, keys left out. */
typedef struct figure_cell {
    size_t prompt;
    char *edits; /* "" = unmodified */
    char *title;
    char *above, *side;  /* heads: what is drawn in place of the title; NULL: nothing */
    int32_t layer, head; /* what is shown; -1: several */
    figure_change change;
    int part;       /* of qkv_figure_parts, unless change is FIGURE_OWN */
    double eps;     /* of FIGURE_SCALED */
    size_t variant; /* in the plan of its prompt */
    size_t n_rows, n_cols;
    float *values;          /* [n_rows, n_cols] */
    int32_t causal, window; /* of the layer's mask, where rows are queries and columns keys */
    float *pattern;         /* the whole map, for a report or a page: [T, T]; of heads and rows as
                               many cells as are watched, and `before` the unmodified one */
    float *before;
    size_t map_rows, map_cols, map_step; /* of these; tokens of a cell */
    edit_factors factors;                /* for a page */
    double
        output_kl; /* what the edits do to the next token, for a report; NaN where there is none */
} figure_cell;

typedef struct figure_warnings {
    char **items;
    size_t n, capacity;
} figure_warnings;

/* The layers and heads whose rows are watched. */
typedef struct figure_places {
    int32_t *layers;
    size_t n_layers;
    int32_t *heads;
    size_t n_heads;
    int32_t all_layers, all_heads; /* of the model */
} figure_places;

struct report;

struct qkv_figure {
    qkv_figure_kind kind;
    qkv_figure_options options;     /* lists are gone once the figure is made; title is own_title */
    char *own_title;                /* copy of the options'; NULL: none was given */
    char *own_font, *own_bar_label; /* the same */
    qkv_own_prompts prompts;
    qkv_own_prompts sources; /* to patch from */
    qkv_own_prompts set;     /* to take means of, and to draw from */
    qkv_edit_data *data;     /* the set for edits; NULL: none */
    qkv_site site;
    int32_t layer, head;
    double sink;
    double low, high;
    qkv_scale scale;
    double gamma; /* of the power scale */
    qkv_colormap colormap;
    qkv_masked masked;
    int is_signed;            /* 0 is in the middle of the colours */
    int has_sink, has_logits; /* of the model */
    figure_cell *cells;       /* rows x cols */
    size_t rows, cols;
    size_t block_cols;   /* columns of a block, without the baseline's */
    figure_places shown; /* heads, rows */
    char **row_names;    /* rows: at the left of the panels */
    size_t n_row_names;
    float **plain;         /* per prompt: the unmodified map, [T, T], for a report or a page */
    figure_scores *scores; /* for a page; NULL unless asked for */
    const char *title;     /* below the grid, unless the options have one */
    qkv_text operations;   /* for the small print */
    char *small_print;
    char *recipe;
    char id[RECIPE_ID_SIZE]; /* of the recipe */
    figure_warnings warnings;
    struct report *report; /* NULL unless asked for */
    qkv_grid *grid;        /* made when it is first drawn */
    int warned;            /* what the drawing lacks was said */
    int warned_page;       /* what the page lacks was said */
};

/* ---- figure_options.c ---- */

/* Reads and checks. */
int qkv_figure_read_options(qkv_figure_options *to, qkv_figure_kind kind,
                            const qkv_figure_options *given, qkv_error *err);

/* ---- figure_asked.c: fields that stand for several options ---- */

/* What a study of a figure is asked: the options of the figure, and fields that stand for several of them. */
typedef struct figure_asked {
    qkv_figure_options options; /* the first: its fields have the same places here and there */
    int scale;                  /* auto|linear|log|power: `scale` and `always_linear` */
    const char *range;          /* LO,HI or auto: `range` and `auto_range` */
    const char *head;           /* of a pattern: `head` or `heads` */
    const char *row, *col;      /* of a grid: LABEL=EDITS, one to a line */
    const char *pair;           /* of a pattern: the second text of its prompt */
} figure_asked;

/* Sets the options that scale, range and head stand for. */
int qkv_figure_take_asked(figure_asked *asked, qkv_error *err);
/* The rows or columns that a text has, LABEL=EDITS, one to a line. It is cut up, and belongs to them; *sides is the
 * caller's to free, also after a failure. `name` is for messages. */
int qkv_figure_take_sides(char *text, const char *name, qkv_figure_side **sides, size_t *n,
                          qkv_error *err);

/* Options as the fields of the kind of study, for a recipe. */
int qkv_figure_write_fields(qkv_figure_kind kind, const qkv_figure_options *o, json_t **work,
                            json_t **look, qkv_error *err);

/* ---- figure_kinds.c ---- */

/* By the names that recipes of earlier versions have. */
extern const field_table qkv_figure_table;

/* ---- figure.c ---- */

/* Of any kind. */
int qkv_figure_make(qkv_figure **out, qkv_session *session, qkv_figure_kind kind,
                    const qkv_figure_options *options, qkv_error *err);

/* ---- the cells: figure.c ---- */

/* Blocks of columns stand side by side, each with a baseline's column of its own where that is asked
 * for. */
int qkv_figure_reserve(qkv_figure *fig, size_t rows, size_t blocks, size_t cols, qkv_error *err);
/* A cell whose prompt, change, part and eps are filled in; takes over its texts, also on failure.
 * A text that is NULL means that memory was short. Columns count through all blocks, without the
 * baseline's. It shows the layer and head of the figure. */
int qkv_figure_set(qkv_figure *fig, size_t row, size_t col, figure_cell cell, qkv_error *err);
/* Fills the baseline's column of a block's row where there is one; takes over the title. */
int qkv_figure_set_baseline(qkv_figure *fig, size_t row, size_t block, size_t prompt, char *title,
                            qkv_error *err);

/* The one place where an edit becomes text: SITE@LAYER[.hHEAD]=OPERATION, as all_heads says. Freed
 * with free, NULL when memory is short. */
char *qkv_figure_edit(const qkv_figure *fig, const char *site, const char *operation);
char *qkv_figure_printf(const char *format, ...) QKV_PRINTF(1, 2);
/* Takes over the text. */
int qkv_figure_warn(qkv_figure *fig, char *text, qkv_error *err);

int qkv_figure_modify_cells(qkv_figure *fig, qkv_error *err);
int qkv_figure_mean_cells(qkv_figure *fig, qkv_error *err);
int qkv_figure_grid_cells(qkv_figure *fig, qkv_error *err);
int qkv_figure_heads_cells(qkv_figure *fig, qkv_error *err);
int qkv_figure_rows_cells(qkv_figure *fig, qkv_error *err);
int qkv_figure_pattern_cells(qkv_figure *fig, qkv_error *err);

/* Joins a label and the number of a prompt, where there are several: "LABEL (Input 2)". Frees the
 * label. */
char *qkv_figure_name_input(const qkv_figure *fig, char *label, size_t prompt);

/* ---- figure_run.c ---- */

int qkv_figure_compute(qkv_figure *fig, qkv_session *session, qkv_error *err);
/* Columns of the panels of a prompt. */
size_t qkv_figure_n_cols(const qkv_figure *fig, size_t prompt);

/* An edit that changed nothing is told once, with the panel where it stands first. */
int qkv_figure_warn_unchanged(qkv_figure *fig, const qkv_result *result, size_t prompt,
                              qkv_error *err);

/* ---- head_choice.c ---- */

/* Gives those that are counted from the end their numbers (QKV_FROM_END). Fails where the model has no such
 * layer or head; QKV_AUTO is any. */
int qkv_resolve_head(const qkv_model *model, int32_t *layer, int32_t *head, qkv_error *err);

/* ---- figure_watch.c ---- */

/* The layers and heads that the options name; tokens must be there. */
int qkv_figure_select(qkv_figure *fig, const qkv_model *model, qkv_error *err);
/* One run of a prompt, whose rows go into the panels as they come. */
int qkv_figure_watch(qkv_figure *fig, qkv_session *session, size_t prompt, qkv_error *err);
/* figure_heads.c: cells on a side of a map's axis of n positions: those of pattern are not pooled. */
size_t qkv_figure_heads_side(const qkv_figure *fig, size_t n);
double qkv_figure_heads_size(const qkv_figure *fig);
/* How many heads of a layer stand beside each other. */
size_t qkv_figure_heads_across(size_t n_heads);
/* figure_pattern.c */
double qkv_figure_pattern_size(const qkv_figure *fig);
/* figure_rows.c: position of the query in a prompt. */
size_t qkv_figure_query(const qkv_figure *fig, size_t prompt);
double qkv_figure_rows_size(const qkv_figure *fig);
/* Names the query in the titles; labels must be there. */
int qkv_figure_rows_titles(qkv_figure *fig, qkv_error *err);
/* Is this a figure of many heads or layers? */
int qkv_figure_is_watched(const qkv_figure *fig);

/* ---- study_recipe.c, figure_notes.c ---- */

int qkv_figure_make_recipe(qkv_figure *fig, const qkv_session *session, qkv_error *err);
/* Recipe and small print. */
int qkv_figure_make_notes(qkv_figure *fig, const qkv_session *session, qkv_error *err);

/* ---- figure_page.c ---- */

/* Scale, colours and the look of masked cells. */
void qkv_figure_choose_look(qkv_figure *fig, const qkv_model *model);
void qkv_figure_choose_range(qkv_figure *fig);
/* Where the log scale begins. */
double qkv_figure_log_floor(const qkv_figure *fig);
/* Texts of the tokens, where they are drawn. */
int qkv_figure_make_labels(qkv_figure *fig, const qkv_model *model, qkv_error *err);
/* What is drawn and how; the grid is the figure's. */
int qkv_figure_page(qkv_figure *fig, const qkv_grid **grid, qkv_grid_style *style, qkv_error *err);

/* html_figure.c: appends the page. */
int qkv_figure_html(const qkv_figure *fig, qkv_text *out, qkv_error *err);
/* All maps and scores that it shows: its first part. */
int qkv_html_figure_part(const qkv_figure *fig, json_t **out, qkv_error *err);

/* ---- report.c ---- */

int qkv_report_new(struct report **out, const qkv_figure *fig, const qkv_model *model,
                   qkv_error *err);
void qkv_report_free(struct report *r);
/* format: md, json. Appended to text. */
int qkv_report_format(const struct report *r, const char *format, qkv_text *text, qkv_error *err);

/* "Query", "Key", "Value" for "q", "k", "v"; NULL for other sites. */
const char *qkv_figure_part_name(const char *site);

#endif
