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
    const char *eps;  /* modify */
    cli_list rows;    /* grid */
    cli_list cols;    /* grid */
    cli_list sources; /* grid */
    int show;         /* grid */
    int labels;       /* -1: tokens where they fit */
    int axis_labels;
    int values;
    int baseline;
    int diff;
    int scale;
    double gamma; /* 0: not given */
    int64_t skip_keys;
    int sink_column;
    const char *range;
    const char *title; /* NULL: the figure's own */
    double dpi;        /* 0: not given */
    double panel_size;
    int64_t threads;
    int64_t memory;
    const char *data;
    cli_list reports;
    cli_list outputs;
} figure_args;

enum { FIGURE_EDIT_SHOWN, FIGURE_EDIT_ALL };
enum { FIGURE_LABELS_TOKENS, FIGURE_LABELS_INDEX, FIGURE_LABELS_NONE };
enum { FIGURE_VALUES_AUTO, FIGURE_VALUES_ALWAYS, FIGURE_VALUES_NEVER };
enum { FIGURE_SHOW_PATTERN, FIGURE_SHOW_SCORES };

#define FIGURE_DEFAULTS                                                                            \
    .layer = CLI_AUTO, .head = CLI_AUTO, .labels = -1, .axis_labels = 1, .panel_size = 170

/* clang-format off: one option to a line or two */
#define FIGURE_OPTION(name, value, kind, field, help)                                              \
    { 0, name, value, help, kind, offsetof(figure_args, field), 0, 0, 0 }
#define FIGURE_FLAG(name, field, tag, help)                                                        \
    { 0, name, NULL, help, CLI_FLAG, offsetof(figure_args, field), tag, 0, 0 }
#define FIGURE_NUMBER(name, value, kind, field, min, max, help)                                    \
    { 0, name, value, help, kind, offsetof(figure_args, field), 0, min, max }

#define FIGURE_INPUT_OPTIONS                                                                       \
    CLI_MODEL_OPTION(figure_args), CLI_PROMPT_OPTIONS(figure_args),                                \
        FIGURE_OPTION("layer", "L|auto", CLI_INDEX, layer,                                         \
                      "layer (default auto: where the first token draws most attention)"),         \
        FIGURE_OPTION("head", "H|auto", CLI_INDEX, head, "query head (default auto, likewise)")

#define FIGURE_EDIT_HEADS_OPTION                                                                   \
    FIGURE_OPTION("edit-heads", "shown|all", CLI_CHOICE, edit_heads,                               \
                  "edit the head that is shown (default), or all heads of its layer")

#define FIGURE_DRAWING_OPTIONS                                                                     \
    FIGURE_OPTION("labels", "tokens|index|none", CLI_CHOICE, labels,                               \
                  "what stands at rows and columns (default tokens, where they fit)"),             \
        FIGURE_FLAG("axis-labels", axis_labels, 1, "write Query and Key at the axes (default)"),   \
        FIGURE_FLAG("no-axis-labels", axis_labels, 0, "leave them out"),                           \
        FIGURE_OPTION("values", "auto|always|never", CLI_CHOICE, values,                           \
                      "print the numbers in the cells (default auto: where there is room)"),       \
        FIGURE_FLAG("baseline", baseline, 1, "add a first column with the unmodified pattern"),    \
        FIGURE_FLAG("diff", diff, 1, "show the difference from the unmodified pattern"),           \
        FIGURE_OPTION("scale", "linear|log|power", CLI_CHOICE, scale,                              \
                      "colour scale (default linear)"),                                            \
        FIGURE_NUMBER("gamma", "G", CLI_REAL, gamma, 0.01, 10,                                     \
                      "exponent of the power scale (default 0.5)"),                                \
        FIGURE_NUMBER("skip-keys", "K", CLI_INTEGER, skip_keys, 0, INT32_MAX,                      \
                      "leave out the first K keys; colours then end at the largest weight shown"), \
        FIGURE_FLAG("sink-column", sink_column, 1,                                                 \
                    "add a first column: what a model's learned sinks take of each query"),        \
        FIGURE_OPTION("range", "LO,HI", CLI_TEXT, range,                                           \
                      "range of the colour scale (default 0,1)"),                                  \
        FIGURE_OPTION("title", "TEXT", CLI_TEXT, title,                                            \
                      "title below the figure; *text* is italic, '' is none"),                     \
        FIGURE_NUMBER("dpi", "N", CLI_REAL, dpi, 10, 2400, "resolution of a PNG (default 150)"),   \
        FIGURE_NUMBER("panel-size", "POINTS", CLI_REAL, panel_size, 20, 5000,                      \
                      "side of a panel (default 170)"),                                            \
        CLI_THREADS_OPTION(figure_args), CLI_MEMORY_OPTION(figure_args),                           \
        FIGURE_OPTION("data", "OUT", CLI_PATH, data,                                               \
                      "file for the numbers behind the figure, .safetensors"),                     \
        FIGURE_OPTION(                                                                             \
            "report", "OUT", CLI_PATHS, reports,                                                   \
            "file that says the figure in numbers: .md, .html or .json; may be repeated"),         \
    {                                                                                              \
        'o', "output", "OUT", "file for the figure: .png, .svg or .pdf; may be repeated",          \
            CLI_PATHS, offsetof(figure_args, outputs), 0, 0, 0                                     \
    }
/* clang-format on */

/* What the two published figures change. */
typedef struct figure_part {
    const char *site, *name;
} figure_part;

enum { FIGURE_PARTS = 3 };
extern const figure_part figure_parts[FIGURE_PARTS];

/* What is done to a part, for a report. */
typedef enum figure_kind { FIGURE_OWN, FIGURE_SCALED, FIGURE_MEAN } figure_kind;

/* One panel. values is what is drawn: differences taken, keys left out. */
typedef struct figure_cell {
    size_t prompt;
    char *edits; /* "" = unmodified */
    char *title;
    size_t variant; /* in the plan of its prompt */
    float *values;  /* [T, figure_n_cols] */
    float *pattern; /* [T, T], for a report */
    figure_kind kind;
    int part;   /* of figure_parts, unless kind is FIGURE_OWN */
    double eps; /* of FIGURE_SCALED */
} figure_cell;

typedef struct figure {
    const cli_call *call;
    const figure_args *args;
    qkv_model *model;
    const qkv_model_info *info;
    qkv_session *session;
    cli_prompt *prompts;
    size_t n_prompts;
    cli_sources sources; /* to patch from */
    int warn; /* about edits that change nothing; published figures have them on purpose */
    qkv_site site;
    int32_t layer, head;
    double sink; /* of the head that was chosen, -1 when none had to be */
    double low, high;
    figure_cell *cells; /* rows x cols */
    float **plain;      /* per prompt: the unmodified pattern, [T, T], for a report */
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
/* Says what the panel shows, for a report. */
void figure_mark(figure *fig, size_t row, size_t col, figure_kind kind, int part, double eps);
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
/* Columns of the panels of a prompt. */
size_t figure_n_cols(const figure *fig, size_t prompt);

/* ---- figure_draw.c ---- */

/* LO,HI of --range; a usage error when it is none. */
int figure_check_range(const figure_args *args, double *low, double *high, qkv_error *err);
int figure_draw(figure *fig, qkv_error *err);
/* Exponent of the power scale. */
double figure_gamma(const figure_args *args);
/* Where the log scale begins. */
double figure_log_floor(const figure *fig);

/* ---- figure_notes.c ---- */

int figure_small_print(const figure *fig, qkv_text *text, qkv_error *err);
int figure_recipe(const figure *fig, char **recipe, qkv_error *err);
int figure_write_data(const figure *fig, const char *recipe, qkv_error *err);

/* ---- figure_report.c ---- */

int figure_write_reports(const figure *fig, const char *small_print, const char *recipe,
                         qkv_error *err);

#endif
