/*
 * Figures as kinds of study. What a figure can be asked is said once, in the tables of this file: recipes, the
 * command line and requests read them, and help is made from them.
 */
#include "study/figure.h"
#include "study/study.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"

/* ---- fields ---- */

/* Bytes of texts that files bring along. */
enum {
    MOST_TITLE = 4000,
    MOST_EPS = 20000,
    MOST_FONT = 200,
    MOST_LAYERS = 4000,
    MOST_EDITS = 20000
};

#define DRAWN "png|svg|pdf"
#define SHOWN DRAWN "|html"
/* Files of numbers carry the recipe, by which they can be drawn. */
#define DRAWN_LATER DRAWN "|safetensors|npz"
#define LEAST_INDEX (QKV_AUTO - INT16_MAX) /* from the end */

/* clang-format off: an option to a line or two */
#define OPTION(name, member, kind, value, least, most, help, outputs)                              \
    {                                                                                              \
        name, FIELD_##kind, offsetof(qkv_figure_options, member), NULL, least, most, value, help,  \
            outputs, NULL                                                                          \
    }
#define CHOICE(name, member, words, help, outputs)                                                 \
    {                                                                                              \
        name, FIELD_WORD, offsetof(qkv_figure_options, member), words, 0, 0, NULL, help, outputs,  \
            NULL                                                                                   \
    }
#define FLAGGED(name, member, help, outputs, former)                                               \
    {                                                                                              \
        name, FIELD_FLAG, offsetof(qkv_figure_options, member), NULL, 0, 0, NULL, help, outputs,   \
            former                                                                                 \
    }
#define ASKED(member, kind, value, most, help)                                                     \
    {                                                                                              \
#member, FIELD_##kind, offsetof(figure_asked, member), NULL, 0, most, value, help, NULL,   \
            NULL                                                                                   \
    }

/* What is computed. */
#define LAYER(help) OPTION("layer", layer, INDEX, "L|auto", LEAST_INDEX, INT32_MAX, help, NULL)
#define LAYER_CHOSEN LAYER("layer (default auto: where the first token draws most attention)")
#define HEAD(help) OPTION("head", head, INDEX, "H|auto", LEAST_INDEX, INT32_MAX, help, NULL)
#define HEAD_CHOSEN HEAD("query head (default auto, as for `layer`)")
#define HEADS                                                                                      \
    OPTION("heads", heads, TEXT, "HEADS", 0, MOST_LAYERS, "several heads of the layer", NULL)
#define LAYERS                                                                                     \
    OPTION("layers", layers, TEXT, "LAYERS", 0, MOST_LAYERS,                                       \
           "layers, e.g. 2-4 or 0,3,5 (default all)", NULL)
#define VARIANT                                                                                    \
    OPTION("variant", variant, TEXT, "EDITS", 0, MOST_EDITS,                                       \
           "show the attention under these edits; see 'qkv help notation'", NULL)
#define QUERY                                                                                      \
    OPTION("query", query, POSITION, "N", INT32_MIN, INT32_MAX,                                    \
           "position of the query; from the end when negative (default -1: the last)", NULL)
#define EPS                                                                                        \
    OPTION(                                                                                        \
        "eps", eps, TEXT, "LIST", 0, MOST_EPS,                                                     \
        "factors, one column each, e.g. 0.5,1e-3 or logspace:1e-4,1,5, also linspace: (default "   \
        "5e-1,1e-3,1e-10)",                                                                        \
        NULL)
#define SHOW CHOICE("show", show, "pattern|scores", "what is drawn (default pattern)", NULL)
#define EDIT_HEADS                                                                                 \
    CHOICE("edit_heads", all_heads, "shown|all",                                                   \
           "edit the head that is shown (default), or all heads of its layer", NULL)
#define ALL_HEADS FLAGGED("all_heads", all_heads, "edit all heads of the layer", NULL, NULL)
#define BASELINE                                                                                   \
    FLAGGED("baseline", baseline, "add a first column with the unmodified pattern", NULL, NULL)
#define DIFF FLAGGED("diff", diff, "show the difference from the unmodified pattern", NULL, NULL)
#define SKIP_KEYS                                                                                  \
    OPTION("skip_keys", skip_keys, COUNT, "K", 0, INT32_MAX,                                       \
           "leave out the first K keys; colours then end at the largest weight shown", NULL)
#define SINK_COLUMN                                                                                \
    FLAGGED("sink_column", sink_column,                                                            \
            "add a first column: the weight of learned sinks, per query", NULL, NULL)
#define REPORT FLAGGED("report", report, "measure what a report says", NULL, NULL)

/* How it is drawn. */
#define LABELS                                                                                     \
    CHOICE("labels", labels, "auto|tokens|index|none",                                             \
           "labels of rows and columns (default tokens, where they fit)", DRAWN_LATER)
#define VALUES                                                                                     \
    CHOICE("values", values, "auto|always|never",                                                  \
           "print the numbers in the cells (default auto: where there is room)", DRAWN_LATER)
#define NO_AXIS_LABELS(name)                                                                       \
    FLAGGED(name, hide_axes, "leave out the names of the axes, e.g. Query and Key", DRAWN_LATER,   \
            "hide_axes")
#define SCALE CHOICE("scale", scale, "linear|log|power", "colour scale", NULL)
#define ANY_SCALE                                                                                  \
    {                                                                                              \
        "scale", FIELD_WORD, offsetof(figure_asked, scale), "auto|linear|log|power", 0, 0, NULL,   \
            "colour scale (default linear; beyond 40 tokens log, with `diff` power)", NULL, NULL   \
    }
#define ALWAYS_LINEAR                                                                              \
    FLAGGED("always_linear", always_linear, "a linear scale whatever the prompt", NULL, NULL)
#define GAMMA                                                                                      \
    OPTION("gamma", gamma, REAL, "G", 0.01, 10, "exponent of the power scale (default 0.5)", NULL)
#define RANGE OPTION("range", range, RANGE, "LO,HI", 0, 0, "range of the colour scale", NULL)
#define AUTO_RANGE                                                                                 \
    FLAGGED("auto_range", auto_range, "colours end at the largest value shown", NULL, NULL)
#define ANY_RANGE                                                                                  \
    ASKED(range, TEXT, "LO,HI|auto", 100,                                                          \
          "range of the colour scale (default 0,1); auto: to the largest value shown")
#define COLORMAP                                                                                   \
    CHOICE("colormap", colormap, "auto|coolwarm|viridis|cividis|magma|grey",                       \
           "colours (default coolwarm, the only one for scores and differences)", NULL)
#define MASKED                                                                                     \
    CHOICE(                                                                                        \
        "masked", masked, "auto|zero|white|hatch",                                                 \
        "cells that the mask took away: like weight 0, as in the papers (default of modify and "   \
        "mean up to 40 tokens), white (default) or hatched",                                       \
        NULL)
#define TITLE                                                                                      \
    OPTION("title", title, TEXT, "TEXT", 0, MOST_TITLE,                                            \
           "title below the figure; *text* is italic, '' is none", NULL)
#define BAR_LABEL                                                                                  \
    OPTION("bar_label", bar_label, TEXT, "TEXT", 0, MOST_TITLE,                                    \
           "label of the colour bar; *text* is italic, '' is none", DRAWN_LATER)
#define DPI                                                                                        \
    OPTION("dpi", dpi, REAL, "N", 10, 2400,                                                        \
           "resolution of a PNG (default 150, with `width` 300; up to 300 where cells need it)",   \
           "png")
#define PANEL_SIZE(outputs)                                                                        \
    OPTION("panel_size", panel_size, REAL, "POINTS", 20, 5000,                                     \
           "side of a panel (default 170, or what the number of cells and panels needs)", outputs)
#define LETTERS                                                                                    \
    CHOICE("text", text, "auto|paths|text",                                                        \
           "letters as outlines, which look the same everywhere, or as text, which can be "        \
           "searched and edited (default: text in a PDF, which brings its fonts along; paths in "  \
           "an SVG)",                                                                              \
           "svg|pdf")
#define FONT                                                                                       \
    OPTION("font", font, TEXT, "FAMILY", 0, MOST_FONT,                                             \
           "family of the letters (default DejaVu Sans)", DRAWN)
#define WIDTH                                                                                      \
    OPTION("width", width, LENGTH, "LENGTH", 1, 14400,                                             \
           "width of the page, e.g. 85mm, 8.5cm, 3.3in or 240pt; letters keep 5 points at least",  \
           DRAWN)
#define FONT_SIZE                                                                                  \
    OPTION("font_size", font_size, REAL, "POINTS", 5, 72,                                          \
           "size of the names of axes; other letters in proportion, none below 5 points (default " \
           "8, or what `width` allows)",                                                           \
           DRAWN)
#define NO_NOTES(name) FLAGGED(name, hide_notes, "leave out the small print", SHOWN, "hide_notes")
#define NO_RECIPE                                                                                  \
    FLAGGED("no_recipe", no_recipe, "leave out of the files how they were made", NULL, NULL)

/* Everything in qkv_figure_options but its lists and the command, by the names that recipes of earlier versions have.
 * What excludes each other, and what a kind has, is checked when the figure is made. */
static const field recorded[] = {
    LAYER_CHOSEN,
    HEAD_CHOSEN,
    ALL_HEADS,
    EPS,
    SHOW,
    BASELINE,
    DIFF,
    SKIP_KEYS,
    SINK_COLUMN,
    REPORT,
    LABELS,
    VALUES,
    NO_AXIS_LABELS("hide_axes"),
    SCALE,
    GAMMA,
    RANGE,
    TITLE,
    DPI,
    PANEL_SIZE(DRAWN_LATER),
    ALWAYS_LINEAR,
    AUTO_RANGE,
    COLORMAP,
    MASKED,
    LETTERS,
    FONT,
    WIDTH,
    NO_NOTES("hide_notes"),
    LAYERS,
    VARIANT,
    QUERY,
    FONT_SIZE,
    BAR_LABEL,
    HEADS,
};
const field_table qkv_figure_table = FIELD_TABLE(recorded, QKV_FIELD_WORK);

/* What each kind is asked. */
#define CHANGES BASELINE, DIFF, SKIP_KEYS
static const field modify_fields[] = {LAYER_CHOSEN, HEAD_CHOSEN, EPS,
                                      EDIT_HEADS,   CHANGES,     SINK_COLUMN};
static const field mean_fields[] = {LAYER_CHOSEN, HEAD_CHOSEN, EDIT_HEADS, CHANGES, SINK_COLUMN};
static const field grid_fields[] = {
    LAYER_CHOSEN,
    HEAD_CHOSEN,
    ASKED(row, LIST, "LABEL=EDITS", 1 << 20,
          "a row: its label ('\\=' in it is '='), and the edits of all its panels"),
    ASKED(col, LIST, "LABEL=EDITS", 1 << 20,
          "a column: its label, and the edits of all its panels"),
    SHOW,
    CHANGES,
    SINK_COLUMN,
};
static const field heads_fields[] = {LAYER("one layer (default auto: all)"), LAYERS, VARIANT, DIFF,
                                     SKIP_KEYS};
static const field rows_fields[] = {
    QUERY,   LAYER("a row per head of this layer (default auto: a row per layer)"),
    LAYERS,  HEAD("query head (default auto: the mean over heads; with `layer` all)"),
    VARIANT, CHANGES,
};
static const field pattern_fields[] = {
    ASKED(pair, TEXT, "TEXT", MOST_EDITS,
          "second text of a pair, for BERT: [CLS] TEXT [SEP] PAIR [SEP], with segments"),
    LAYER_CHOSEN,
    ASKED(head, TEXT, "HEADS|auto", MOST_LAYERS,
          "a head, or several of the layer, e.g. 1,3 or 0-3 (default auto, as for `layer`)"),
    VARIANT,
    CHANGES,
    SINK_COLUMN,
};

#define COLOURS ANY_SCALE, GAMMA, COLORMAP, ANY_RANGE, TITLE, BAR_LABEL, DPI
#define PRINT LETTERS, FONT, WIDTH, FONT_SIZE, NO_NOTES("no_notes"), NO_RECIPE
static const field map_look[] = {LABELS,  VALUES, NO_AXIS_LABELS("no_axis_labels"),
                                 COLOURS, MASKED, PANEL_SIZE(DRAWN_LATER),
                                 PRINT};
static const field heads_look[] = {COLOURS, MASKED, PANEL_SIZE(SHOWN "|safetensors|npz"), PRINT};
static const field rows_look[] = {
    LABELS, VALUES, NO_AXIS_LABELS("no_axis_labels"), COLOURS, PANEL_SIZE(DRAWN_LATER), PRINT};
/* clang-format on */
_Static_assert(sizeof(int) == sizeof(int32_t), "a choice of two is read into a flag");

/* ---- all of it ---- */

/* What the lists of the options point to. */
typedef struct figure_lists {
    figure_asked asked;
    char *row, *col;
    qkv_figure_side *rows, *cols;
    qkv_prompt *prompts, *sources, *set;
} figure_lists;

static void release(figure_lists *lists) {
    free(lists->row);
    free(lists->col);
    free(lists->rows);
    free(lists->cols);
    free(lists->prompts);
    free(lists->sources);
    free(lists->set);
}

/* Prompts without a name are shown; with one they are sources, or of the set. */
static int take_prompts(figure_lists *lists, const qkv_study *study, qkv_error *err) {
    qkv_figure_options *o = &lists->asked.options;
    lists->prompts = qkv_calloc(study->n_given, sizeof *lists->prompts);
    lists->sources = qkv_calloc(study->n_given, sizeof *lists->sources);
    lists->set = qkv_calloc(study->n_given, sizeof *lists->set);
    if (!lists->prompts || !lists->sources || !lists->set) return qkv_fail_memory(err);
    for (size_t i = 0; i < study->n_given; i++) {
        const qkv_prompt *given = &study->given[i];
        const int is_set = given->name && strcmp(given->name, QKV_SET_PROMPT) == 0;
        if (given->name && !is_set) {
            lists->sources[o->n_sources++] = *given;
        } else if (is_set) {
            lists->set[o->n_set_prompts] = *given;
            lists->set[o->n_set_prompts++].name = NULL;
        } else {
            lists->prompts[o->n_prompts] = *given;
            lists->prompts[o->n_prompts++].pair = lists->asked.pair;
        }
    }
    o->prompts = lists->prompts;
    o->sources = lists->sources;
    o->set_prompts = lists->set;
    if (lists->asked.pair && o->n_prompts != 1)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`pair` is the second text of one prompt");
    return QKV_OK;
}

static int take_all_sides(figure_lists *lists, qkv_error *err) {
    figure_asked *asked = &lists->asked;
    qkv_figure_options *o = &asked->options;
    lists->row = qkv_strdup(asked->row);
    lists->col = qkv_strdup(asked->col);
    if ((asked->row && !lists->row) || (asked->col && !lists->col)) return qkv_fail_memory(err);
    int status = qkv_figure_take_sides(lists->row, "row", &lists->rows, &o->n_rows, err);
    if (status == QKV_OK)
        status = qkv_figure_take_sides(lists->col, "col", &lists->cols, &o->n_cols, err);
    o->rows = lists->rows;
    o->cols = lists->cols;
    return status;
}

static int is_set(const qkv_study *study, const char *input) {
    return json_is_true(json_object_get(study->set[QKV_FIELD_INPUT], input));
}

/* The options of the figure; what they point to is released also after a failure. */
static int take(figure_lists *lists, const qkv_study *study, const void *given, qkv_error *err) {
    figure_asked *asked = &lists->asked;
    qkv_figure_options *o = &asked->options;
    const field *head = qkv_field_find(&study->kind->fields, "head");
    *lists = (figure_lists){.asked = *(const figure_asked *)given};
    o->size = sizeof *o;
    /* Of kinds that do not have these fields they are 0. */
    if (!head || head->kind != FIELD_INDEX) o->head = QKV_AUTO;
    if (!qkv_field_find(&study->kind->fields, "query")) o->query = -1;
    int status = qkv_fields_read(&study->kind->look, study->set[QKV_FIELD_LOOK], asked, err);
    if (status != QKV_OK) return status;
    o->report = is_set(study, "report");
    o->page = is_set(study, "page");
    o->command = (const char *const *)study->command;
    o->n_command = study->n_command;
    status = qkv_figure_take_asked(asked, err);
    if (status == QKV_OK) status = take_all_sides(lists, err);
    return status == QKV_OK ? take_prompts(lists, study, err) : status;
}

static qkv_figure_kind kind_of(const qkv_study *study) {
    return (qkv_figure_kind)(study->kind->figure - 1);
}

static int check_figure(qkv_study *study, const void *given, qkv_error *err) {
    figure_lists lists = {0};
    int status = take(&lists, study, given, err);
    const qkv_figure_options *o = &lists.asked.options;
    if (status == QKV_OK && kind_of(study) == QKV_FIGURE_GRID && o->n_rows + o->n_cols == 0 &&
        o->n_prompts < 2)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "nothing to draw: give `row` or `col`, LABEL=EDITS, or a second prompt; "
                          "the figure pattern draws a plain map");
    if (status == QKV_OK) status = qkv_figure_options_check(kind_of(study), o, err);
    release(&lists);
    return status;
}

/* ---- what came out ---- */

static int add_panel(qkv_study *study, const figure_cell *cell, size_t row, size_t col,
                     qkv_error *err) {
    const size_t n = cell->n_rows * cell->n_cols;
    double lowest = n ? (double)cell->values[0] : 0, highest = lowest, sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = (double)cell->values[i];
        if (value < lowest) lowest = value;
        if (value > highest) highest = value;
        sum += value;
    }
    return qkv_study_add_row(
        study,
        (study_value[]){STUDY_NUMBER(row), STUDY_NUMBER(col), STUDY_TEXT(cell->title),
                        STUDY_TEXT(cell->edits), STUDY_NUMBER(cell->prompt),
                        STUDY_NUMBER(cell->layer), STUDY_NUMBER(cell->head), STUDY_NUMBER(lowest),
                        STUDY_NUMBER(highest), STUDY_NUMBER(n ? sum / (double)n : 0)},
        err);
}

static int add_panels(qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"row",   "column", "title",  "edits",   "prompt",
                                          "layer", "head",   "lowest", "highest", "mean"};
    const qkv_figure *fig = study->figure;
    int status = qkv_study_add_table(study, "panels", "Every panel, from 0 on", columns,
                                     sizeof columns / sizeof *columns, err);
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++)
        status = add_panel(study, &fig->cells[i], i / fig->cols, i % fig->cols, err);
    return status;
}

/* The recipe of a study of a figure is that of the figure. */
static int take_recipe(qkv_study *study, qkv_error *err) {
    const qkv_figure *fig = study->figure;
    study->recipe_text = qkv_strdup(fig->recipe);
    study->recipe = qkv_json_parse(fig->recipe, strlen(fig->recipe), JSON_ALLOW_NUL, NULL);
    memcpy(study->id, fig->id, sizeof study->id);
    return study->recipe && study->recipe_text ? QKV_OK : qkv_fail_memory(err);
}

static int make_figure(qkv_study *study, const study_inputs *in, const void *given,
                       qkv_error *err) {
    figure_lists lists = {0};
    int status = take(&lists, study, given, err);
    if (status == QKV_OK)
        status =
            qkv_figure_make(&study->figure, in->session, kind_of(study), &lists.asked.options, err);
    release(&lists);
    if (status == QKV_OK) status = take_recipe(study, err);
    if (status == QKV_OK) status = add_panels(study, err);
    if (status != QKV_OK) return status;
    const qkv_figure *fig = study->figure;
    qkv_study_set_title(study, "%s", fig->title ? fig->title : study->kind->title);
    if (fig->sink >= 0)
        qkv_study_note(study,
                       "layer %d, head %d: the strongest first-token sink (mean weight %.3f on the "
                       "first token)",
                       (int)fig->layer, (int)fig->head, fig->sink);
    return QKV_OK;
}

/* ---- the kinds ---- */

#define FIGURE_KIND(KIND, word, own_look)                                                          \
    .name = #word, .command = "figure " #word, .figure = QKV_FIGURE_##KIND + 1,                    \
    .fields = FIELD_TABLE(word##_fields, QKV_FIELD_WORK),                                          \
    .look = FIELD_TABLE(own_look, QKV_FIELD_LOOK), .options_size = sizeof(figure_asked),           \
    .least_prompts = 1, .check = check_figure, .make = make_figure

enum { MOST_PROMPTS = 100000 };

const study_kind qkv_study_modify = {
    FIGURE_KIND(MODIFY, modify, map_look),
    .most_prompts = 1,
    .default_prompts = 1,
    .title = "draw a head's attention with query, key or value scaled",
    .description =
        "Draws the attention weights of one head: rows Query, Key and Value, columns the factors "
        "that they are multiplied with, before RoPE, at all tokens.\n",
    .examples = "qkv figure modify -p 'The river runs to the sea.' -o modify.png\n",
};

const study_kind qkv_study_mean = {
    FIGURE_KIND(MEAN, mean, map_look),
    .most_prompts = MOST_PROMPTS,
    .default_prompts = 3,
    .title = "draw a head's attention with the mean over heads in its place",
    .description =
        "Draws the attention weights of one head when its query, key or value is replaced by the "
        "mean over all heads of the layer: columns Query, Key and Value, one row for every "
        "prompt.\n",
    .examples = "qkv figure mean -p 'The river runs to the sea.' -p 'A good idea.' -o mean.png\n",
};

const study_kind qkv_study_grid = {
    FIGURE_KIND(GRID, grid, map_look),
    .most_prompts = MOST_PROMPTS,
    .default_prompts = 1,
    .title = "draw a head's attention under edits of your own",
    .description =
        "Draws one panel for every row and column, with the edits of both. EDITS may be empty. "
        "In EDITS {layer} and {head} stand for the layer and head that are shown. How edits are "
        "written: 'qkv help notation'.\n"
        "\n"
        "Several prompts stand side by side, each with all rows and columns; with `col` alone, "
        "each is a row. Without `row` and `col`, prompts are compared as they are.\n",
    .examples = "qkv figure grid -p 'The old mill.' -p 'The new mill by the river.' -o both.png\n"
                "qkv figure grid --row 'First token=q@{layer}.h{head}[0]=zero' --row 'All=' \\\n"
                "    --col 'Plain=' --col 'Half keys=k@{layer}.h{head}=scale:0.5' -o grid.svg\n",
};

const study_kind qkv_study_heads = {
    FIGURE_KIND(HEADS, heads, heads_look),
    .most_prompts = 1,
    .default_prompts = 1,
    .title = "draw the attention of all heads as small maps",
    .description =
        "Draws a small map of every head: layers down, heads across; or all heads of one layer. "
        "Maps of long prompts are pooled: each cell is the largest weight of its block, or with "
        "`diff` the largest change. The size of the maps is chosen by their number.\n",
    .examples = "qkv figure heads -p 'The river runs to the sea.' -o heads.png\n"
                "qkv figure heads --layers 2-4 --variant 'v@1=zero' --diff -o change.png\n",
};

const study_kind qkv_study_rows = {
    FIGURE_KIND(ROWS, rows, rows_look),
    .most_prompts = MOST_PROMPTS,
    .default_prompts = 1,
    .title = "draw where one query looks, layer by layer",
    .description =
        "Draws the attention weights of one query: a row per layer, the mean over its heads or one "
        "head, and a column per key. With `layer`, a row per head of that layer. Several prompts "
        "are drawn one below the other.\n",
    .examples =
        "qkv figure rows -p 'The river runs to the sea.' -o rows.png\n"
        "qkv figure rows --query 3 --layer 2 --variant 'k@1=zero' --baseline -o heads.png\n",
};

const study_kind qkv_study_pattern = {
    FIGURE_KIND(PATTERN, pattern, map_look),
    .most_prompts = MOST_PROMPTS,
    .default_prompts = 1,
    .title = "draw the attention map of a head",
    .description =
        "Draws the attention weights of one head, a row per query and a column per key. Several "
        "heads stand beside each other, several prompts one below the other. With `variant` the "
        "weights are those under the edits, with `diff` their change. How edits are written: 'qkv "
        "help notation'.\n",
    .examples =
        "qkv figure pattern --layer 2 --head 3 -p 'The river runs to the sea.' -o map.png\n"
        "qkv figure pattern --layer 4 --head 0-3 --variant 'k@2=zero' --diff -o change.png\n",
};
