/*
 * Figures: a command says what stands in which cell, everything else is common.
 *
 *     figure fig;
 *     status = figure_open(&fig, call, prompts, n, &err);      model, prompts, layer and head
 *     figure_reserve(&fig, rows, cols, &err);
 *     figure_set(&fig, row, col, prompt, edits, title, &err);  for every cell
 *     figure_finish(&fig, &err);                               runs, draws, writes
 *     figure_close(&fig);
 *
 * figure_run.c computes, figure_draw.c draws, figure_notes.c writes what stands in the small print,
 * the recipe and the metadata.
 */
#ifndef QKV_CLI_FIGURE_H
#define QKV_CLI_FIGURE_H

#include "cli/inputs.h"
#include "qkv/grid.h"
#include "qkv/plan.h"
#include "qkv/session.h"

typedef struct figure_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    int64_t layer, head; /* CLI_AUTO: the strongest first-token sink */
    int edit_heads;
    const char *eps; /* modify */
    cli_list rows;   /* grid */
    cli_list cols;   /* grid */
    int show;        /* grid */
    int labels;
    int axis_labels;
    int values;
    int baseline;
    int diff;
    int scale;
    double gamma;
    int64_t skip_keys;
    const char *range;
    const char *title; /* NULL: the figure's own */
    double dpi;
    double panel_size;
    int64_t threads;
    const char *data;
    cli_list outputs;
} figure_args;

enum { FIGURE_EDIT_SHOWN, FIGURE_EDIT_ALL };
enum { FIGURE_LABELS_TOKENS, FIGURE_LABELS_INDEX, FIGURE_LABELS_NONE };
enum { FIGURE_SHOW_PATTERN, FIGURE_SHOW_SCORES };

#define FIGURE_DEFAULTS                                                                            \
    .layer = CLI_AUTO, .head = CLI_AUTO, .axis_labels = 1, .gamma = 0.5, .dpi = 150,               \
    .panel_size = 170

#define FIGURE_FIELD(field) offsetof(figure_args, field)

#define FIGURE_INPUT_OPTIONS                                                                       \
    CLI_MODEL_OPTION(figure_args), CLI_PROMPT_OPTIONS(figure_args),                                \
        {0,         "layer",                                                                       \
         "L|auto",  "layer (default auto: where the first token draws most attention)",            \
         CLI_INDEX, FIGURE_FIELD(layer),                                                           \
         0,         0,                                                                             \
         0},                                                                                       \
    {                                                                                              \
        0, "head", "H|auto", "query head (default auto, likewise)", CLI_INDEX, FIGURE_FIELD(head), \
            0, 0, 0                                                                                \
    }

#define FIGURE_EDIT_HEADS_OPTION                                                                   \
    {                                                                                              \
        0, "edit-heads", "shown|all",                                                              \
            "edit the head that is shown (default), or all heads of its layer", CLI_CHOICE,        \
            FIGURE_FIELD(edit_heads), 0, 0, 0                                                      \
    }

#define FIGURE_DRAWING_OPTIONS                                                                       \
    {0,                                                                                              \
     "labels",                                                                                       \
     "tokens|index|none",                                                                            \
     "what stands at rows and columns (default tokens)",                                             \
     CLI_CHOICE,                                                                                     \
     FIGURE_FIELD(labels),                                                                           \
     0,                                                                                              \
     0,                                                                                              \
     0},                                                                                             \
        {0,        "axis-labels",                                                                    \
         NULL,     "write Query and Key at the axes (default)",                                      \
         CLI_FLAG, FIGURE_FIELD(axis_labels),                                                        \
         1,        0,                                                                                \
         0},                                                                                         \
        {0, "no-axis-labels", NULL, "leave them out", CLI_FLAG, FIGURE_FIELD(axis_labels), 0, 0, 0}, \
        {0,                                                                                          \
         "values",                                                                                   \
         "auto|always|never",                                                                        \
         "print the numbers in the cells (default auto: where there is room)",                       \
         CLI_CHOICE,                                                                                 \
         FIGURE_FIELD(values),                                                                       \
         0,                                                                                          \
         0,                                                                                          \
         0},                                                                                         \
        {0,        "baseline",                                                                       \
         NULL,     "add a first column with the unmodified pattern",                                 \
         CLI_FLAG, FIGURE_FIELD(baseline),                                                           \
         1,        0,                                                                                \
         0},                                                                                         \
        {0,        "diff",                                                                           \
         NULL,     "show the difference from the unmodified pattern",                                \
         CLI_FLAG, FIGURE_FIELD(diff),                                                               \
         1,        0,                                                                                \
         0},                                                                                         \
        {0,                                                                                          \
         "scale",                                                                                    \
         "linear|log|power",                                                                         \
         "colour scale (default linear)",                                                            \
         CLI_CHOICE,                                                                                 \
         FIGURE_FIELD(scale),                                                                        \
         0,                                                                                          \
         0,                                                                                          \
         0},                                                                                         \
        {0,        "gamma",                                                                          \
         "G",      "exponent of the power scale (default 0.5)",                                      \
         CLI_REAL, FIGURE_FIELD(gamma),                                                              \
         0,        0.01,                                                                             \
         10},                                                                                        \
        {0,           "skip-keys",                                                                   \
         "K",         "leave out the first K keys; the range then ends at the largest weight shown", \
         CLI_INTEGER, FIGURE_FIELD(skip_keys),                                                       \
         0,           0,                                                                             \
         INT32_MAX},                                                                                 \
        {0,        "range",                                                                          \
         "LO,HI",  "range of the colour scale (default 0,1)",                                        \
         CLI_TEXT, FIGURE_FIELD(range),                                                              \
         0,        0,                                                                                \
         0},                                                                                         \
        {0,        "title",                                                                          \
         "TEXT",   "title below the figure; *text* is italic, '' is none",                           \
         CLI_TEXT, FIGURE_FIELD(title),                                                              \
         0,        0,                                                                                \
         0},                                                                                         \
        {0, "dpi", "N", "resolution of a PNG (default 150)", CLI_REAL, FIGURE_FIELD(dpi),            \
         0, 10,    2400},                                                                            \
        {0,        "panel-size",                                                                     \
         "POINTS", "side of a panel (default 170)",                                                  \
         CLI_REAL, FIGURE_FIELD(panel_size),                                                         \
         0,        20,                                                                               \
         5000},                                                                                      \
        CLI_THREADS_OPTION(figure_args),                                                             \
        {0,        "data",                                                                           \
         "OUT",    "file for the numbers behind the figure, .safetensors",                           \
         CLI_TEXT, FIGURE_FIELD(data),                                                               \
         0,        0,                                                                                \
         0},                                                                                         \
    {                                                                                                \
        'o', "output", "OUT", "file for the figure: .png, .svg or .pdf; may be repeated",            \
            CLI_LIST, FIGURE_FIELD(outputs), 0, 0, 0                                                 \
    }

/* One panel. values is what is drawn: differences taken, keys left out. */
typedef struct figure_cell {
    size_t prompt;
    char *edits; /* "" = unmodified */
    char *title;
    size_t variant; /* in the plan of its prompt */
    float *values;  /* [T, T - skip_keys] */
} figure_cell;

typedef struct figure {
    const cli_call *call;
    const figure_args *args;
    qkv_model *model;
    const qkv_model_info *info;
    qkv_session *session;
    cli_prompt *prompts;
    size_t n_prompts;
    qkv_site site;
    int32_t layer, head;
    double sink; /* of the head that was chosen, -1 when none had to be */
    double low, high;
    figure_cell *cells; /* rows x cols */
    size_t rows, cols;
    const char *title;   /* below the grid, unless --title */
    qkv_text operations; /* for the small print */
} figure;

extern const char *const figure_prompts[3];

int figure_open(figure *fig, const cli_call *call, const char *const *prompts, size_t n_prompts,
                qkv_error *err);
int figure_reserve(figure *fig, size_t rows, size_t cols, qkv_error *err);
/* Titles and edits are copied. Columns count from the first one behind the baseline's. */
int figure_set(figure *fig, size_t row, size_t col, size_t prompt, const char *edits,
               const char *title, qkv_error *err);
/* Fills the baseline's column of a row where --baseline asks for it. */
int figure_set_baseline(figure *fig, size_t row, size_t prompt, const char *title, qkv_error *err);
int figure_finish(figure *fig, qkv_error *err);
void figure_close(figure *fig);

/* SITE@LAYER[.hHEAD]=OPERATION as --edit-heads says; freed with free, NULL when memory is short. */
char *figure_edit(const figure *fig, const char *site, const char *operation);
char *figure_printf(const char *format, ...) QKV_PRINTF(1, 2);

/* ---- figure_run.c ---- */

int figure_choose_head(figure *fig, qkv_error *err);
int figure_compute(figure *fig, qkv_error *err);

/* ---- figure_draw.c ---- */

/* LO,HI of --range; a usage error when it is none. */
int figure_check_range(const figure_args *args, double *low, double *high, qkv_error *err);
int figure_draw(figure *fig, qkv_error *err);
/* Where the log scale begins. */
double figure_log_floor(const figure *fig);

/* ---- figure_notes.c ---- */

int figure_small_print(const figure *fig, qkv_text *text, qkv_error *err);
int figure_recipe(const figure *fig, char **recipe, qkv_error *err);
int figure_write_data(const figure *fig, const char *recipe, qkv_error *err);

#endif
