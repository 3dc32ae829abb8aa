/*
 * What the commands about figures share: their options, and the way from these to a figure of the
 * library and its files.
 */
#ifndef QKV_CLI_CMD_FIGURE_H
#define QKV_CLI_CMD_FIGURE_H

#include "cli/continue.h"
#include "qkv/figure.h"

typedef struct figure_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    int64_t generate;    /* 0: not given */
    int64_t layer, head; /* CLI_AUTO: the strongest first-token sink */
    int edit_heads;
    const char *eps;     /* modify */
    cli_list rows;       /* grid */
    cli_list cols;       /* grid */
    cli_list sources;    /* grid */
    int show;            /* grid */
    const char *layers;  /* heads, rows */
    const char *variant; /* heads, rows */
    int64_t query;       /* rows */
    int labels;          /* CLI_AUTO: tokens where they fit */
    int axis_labels;
    int values;
    int baseline;
    int diff;
    int scale, colormap, masked; /* CLI_AUTO: not given */
    double gamma;                /* 0: not given */
    int64_t skip_keys;
    int sink_column;
    const char *range;
    const char *title; /* NULL: the figure's own */
    double dpi;        /* 0: not given */
    double panel_size;
    int64_t threads;
    int64_t memory;
    const char *data;
    int no_recipe;
    cli_list reports;
    cli_print print;
    cli_list outputs;
    const char *format; /* of -o - */
} figure_args;

#define FIGURE_FORMATS "png|svg|pdf|html"

#define FIGURE_DEFAULTS                                                                            \
    .layer = CLI_AUTO, .head = CLI_AUTO, .labels = CLI_AUTO, .axis_labels = 1, .scale = CLI_AUTO,  \
    .colormap = CLI_AUTO, .masked = CLI_AUTO, .print = CLI_PRINT_DEFAULTS, .query = -1

/* clang-format off: one option to a line or two */
#define FIGURE_OPTION(name, value, kind, field, help)                                              \
    { 0, name, value, help, kind, offsetof(figure_args, field), 0, 0, 0 }
#define FIGURE_FLAG(name, field, tag, help)                                                        \
    { 0, name, NULL, help, CLI_FLAG, offsetof(figure_args, field), tag, 0, 0 }
#define FIGURE_NUMBER(name, value, kind, field, min, max, help)                                    \
    { 0, name, value, help, kind, offsetof(figure_args, field), 0, min, max }

/* `prompts` are CLI_PROMPT_OPTIONS or CLI_PROMPTS_OPTIONS. */
#define FIGURE_INPUT_OPTIONS(prompts)                                                              \
    CLI_MODEL_OPTION(figure_args), prompts(figure_args),                                           \
        FIGURE_OPTION("layer", "L|auto", CLI_INDEX, layer,                                         \
                      "layer (default auto: where the first token draws most attention)"),         \
        FIGURE_OPTION("head", "H|auto", CLI_INDEX, head,                                           \
                      "query head (default auto, as for --layer)")

#define FIGURE_LAYERS_OPTION                                                                       \
    FIGURE_OPTION("layers", "LAYERS", CLI_TEXT, layers, "layers, e.g. 2-4 or 0,3,5 (default all)")

#define FIGURE_VARIANT_OPTION                                                                      \
    FIGURE_OPTION("variant", "EDITS", CLI_TEXT, variant,                                           \
                  "show the attention under these edits; see 'qkv help notation'")

#define FIGURE_EDIT_HEADS_OPTION                                                                   \
    FIGURE_OPTION("edit-heads", "shown|all", CLI_CHOICE, edit_heads,                               \
                  "edit the head that is shown (default), or all heads of its layer")

/* What maps that are not small have. */
#define FIGURE_LABEL_OPTIONS                                                                       \
    FIGURE_OPTION("labels", "tokens|index|none", CLI_CHOICE, labels,                               \
                  "labels of rows and columns (default tokens, where they fit)"),                  \
        FIGURE_FLAG("axis-labels", axis_labels, 1, "name the axes, e.g. Query and Key (default)"), \
        FIGURE_FLAG("no-axis-labels", axis_labels, 0, "leave them out"),                           \
        FIGURE_OPTION("values", "auto|always|never", CLI_CHOICE, values,                           \
                      "print the numbers in the cells (default auto: where there is room)")

#define FIGURE_BASELINE_OPTION                                                                     \
    FIGURE_FLAG("baseline", baseline, 1, "add a first column with the unmodified pattern")

/* Of maps of queries and keys. */
#define FIGURE_MASKED_OPTION                                                                       \
    FIGURE_OPTION("masked", "zero|white|hatch", CLI_CHOICE, masked,                                \
                  "cells that the mask took away: like weight 0, as in the papers (default "       \
                  "of modify and mean up to 40 tokens), white (default) or hatched")

#define FIGURE_SINK_OPTION                                                                         \
    FIGURE_FLAG("sink-column", sink_column, 1,                                                     \
                "add a first column: the weight of learned sinks, per query")

#define FIGURE_REPORT_OPTION                                                                       \
    FIGURE_OPTION("report", "OUT", CLI_PATHS, reports,                                             \
                  "file for a report, the figure in numbers: .md, .html or .json; may be "         \
                  "repeated")

/* What all figures have. */
#define FIGURE_DRAWING_OPTIONS                                                                     \
    FIGURE_FLAG("diff", diff, 1, "show the difference from the unmodified pattern"),               \
        FIGURE_OPTION("scale", "linear|log|power", CLI_CHOICE, scale,                              \
                      "colour scale (default linear; beyond 40 tokens log, with --diff power)"),   \
        FIGURE_NUMBER("gamma", "G", CLI_REAL, gamma, 0.01, 10,                                     \
                      "exponent of the power scale (default 0.5)"),                                \
        FIGURE_OPTION("colormap", "coolwarm|viridis|cividis|magma|grey", CLI_CHOICE, colormap,     \
                      "colours (default coolwarm, the only one for scores and differences)"),      \
        FIGURE_NUMBER("skip-keys", "K", CLI_INTEGER, skip_keys, 0, INT32_MAX,                      \
                      "leave out the first K keys; colours then end at the largest weight shown"), \
        FIGURE_OPTION(                                                                             \
            "range", "LO,HI|auto", CLI_TEXT, range,                                                \
            "range of the colour scale (default 0,1); auto: to the largest value shown"),          \
        FIGURE_OPTION("title", "TEXT", CLI_TEXT, title,                                            \
                      "title below the figure; *text* is italic, '' is none"),                     \
        FIGURE_NUMBER("dpi", "N", CLI_REAL, dpi, 10, 2400,                                         \
                      "resolution of a PNG (default 150; more where cells need it)"),              \
        FIGURE_NUMBER("panel-size", "POINTS", CLI_REAL, panel_size, 20, 5000,                      \
                      "side of a panel (default 170, or what the number of cells and panels "      \
                      "needs)"),                                                                   \
        CLI_PRINT_OPTIONS(figure_args)

#define FIGURE_OUTPUT_OPTIONS                                                                      \
    CLI_GENERATE_OPTION(figure_args), CLI_THREADS_OPTION(figure_args),                             \
        CLI_MEMORY_OPTION(figure_args),                                                            \
        FIGURE_OPTION("data", "OUT", CLI_PATH, data,                                               \
                      "file for the numbers behind the figure, .safetensors, .npz or .csv"),       \
        FIGURE_FLAG("no-recipe", no_recipe, 1, "leave out of the files how they were made"),       \
        CLI_OUTPUT_OPTIONS(figure_args,                                                            \
                           "file for the figure: .png, .svg or .pdf; .html is a page whose maps "  \
                           "follow the hand",                                                      \
                           FIGURE_FORMATS)
/* clang-format on */

/* Makes the figure and writes what the options ask for. */
int cli_figure(const cli_call *call, qkv_figure_kind kind, qkv_error *err);

#endif
