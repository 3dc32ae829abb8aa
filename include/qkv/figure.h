/*
 * Figures: what one head attends to when its query, key or value is changed, as an object that can
 * be drawn, reported and asked for its numbers.
 *
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_figure *figure = NULL;
 *     qkv_prompt prompt = QKV_PROMPT_INIT;
 *     prompt.text = "The river runs past the old mill.";
 *     qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
 *     options.prompts = &prompt;
 *     options.n_prompts = 1;
 *     options.report = 1;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_figure_modify(&figure, session, &options, &err) == QKV_OK) {
 *         qkv_figure_write(figure, "modify.png", &err);
 *         qkv_figure_write(figure, "modify.html", &err);
 *     }
 *     qkv_figure_free(figure);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * A figure holds all it needs: it outlives its session and model, and freeing in any order is safe.
 * It belongs to one thread at a time; making one uses the session. Options are plain data, copied.
 * Fields that are 0 or NULL mean the default. Messages name fields between backquotes.
 */
#ifndef QKV_FIGURE_H
#define QKV_FIGURE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/grid.h"
#include "qkv/head_choice.h"
#include "qkv/prompt.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

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
QKV_API const char *qkv_figure_kind_name(qkv_figure_kind kind);

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
QKV_API int qkv_figure_options_check(qkv_figure_kind kind, const qkv_figure_options *options,
                                     qkv_error *err);

/* ---- making ---- */

QKV_API int qkv_figure_modify(qkv_figure **out, qkv_session *session,
                              const qkv_figure_options *options, qkv_error *err);
QKV_API int qkv_figure_mean(qkv_figure **out, qkv_session *session,
                            const qkv_figure_options *options, qkv_error *err);
/* Needs options: rows, cols or several prompts. With cols alone every prompt is a row, else a block
 * of columns. */
QKV_API int qkv_figure_grid(qkv_figure **out, qkv_session *session,
                            const qkv_figure_options *options, qkv_error *err);
/* All heads of all layers, of `layers`, or of `layer`: layers down, heads across; a single layer in
 * as many lines as make it square. Maps are pooled to what a small panel can show, each cell the
 * largest weight (with `diff` the largest change, up or down) of its block. */
QKV_API int qkv_figure_heads(qkv_figure **out, qkv_session *session,
                             const qkv_figure_options *options, qkv_error *err);
/* A row per layer, the mean over its heads or `head`; with `layer`, a row per head of it. */
QKV_API int qkv_figure_rows(qkv_figure **out, qkv_session *session,
                            const qkv_figure_options *options, qkv_error *err);
/* The map of `head`, or of each of `heads`. With `variant` under its edits; `diff` and `baseline` compare
 * that with the unmodified map. */
QKV_API int qkv_figure_pattern(qkv_figure **out, qkv_session *session,
                               const qkv_figure_options *options, qkv_error *err);
QKV_API void qkv_figure_free(qkv_figure *figure);

/* ---- looking ---- */

/* Strings belong to the figure. */
typedef struct qkv_figure_info {
    size_t size;
    qkv_figure_kind kind;
    size_t rows, cols; /* with the baseline's column */
    size_t n_prompts;
    int32_t layer, head;     /* -1: several */
    double sink;             /* of the head that was chosen; -1: layer and head were given */
    double low, high;        /* range of the colour scale */
    const char *title;       /* the figure's own; NULL: none */
    const char *edits;       /* what is done, e.g. "q@5.h0=scale:ε, k@5.h0=scale:ε, ..." */
    const char *small_print; /* the line below the figure */
    const char *recipe;      /* JSON: how to make it again; embedded in every file */
    const char *id;          /* of the recipe, 8 characters; also in the small print */
    /* As they were chosen. */
    qkv_scale scale;
    double gamma;     /* of the power scale */
    double log_floor; /* where the log scale begins */
    qkv_colormap colormap;
    qkv_masked masked;
} qkv_figure_info;

#define QKV_FIGURE_INFO_INIT                                                                       \
    { .size = sizeof(qkv_figure_info) }

QKV_API int qkv_figure_get_info(const qkv_figure *figure, qkv_figure_info *info, qkv_error *err);

/* One panel. Everything belongs to the figure. */
typedef struct qkv_figure_panel {
    size_t size;
    const char *title;
    const char *edits; /* "": unmodified */
    size_t prompt;
    int64_t n_rows, n_cols;
    const float *values;     /* n_rows x n_cols, as drawn: keys left out, differences taken */
    const float *map;        /* n_rows x n_rows, the whole map; NULL unless `report` was set */
    const float *unmodified; /* the same of the prompt without edits */
    int32_t layer, head;     /* what is shown; -1: several */
} qkv_figure_panel;

#define QKV_FIGURE_PANEL_INIT                                                                      \
    { .size = sizeof(qkv_figure_panel) }

QKV_API int qkv_figure_get_panel(const qkv_figure *figure, size_t row, size_t col,
                                 qkv_figure_panel *panel, qkv_error *err);

/* A prompt with its tokens, also where it was given as text. They belong to the figure. */
QKV_API int qkv_figure_get_prompt(const qkv_figure *figure, size_t index, qkv_prompt *prompt,
                                  qkv_error *err);

/* One line each, NULL past the end: edits that changed nothing (grid); and, once it was drawn or
 * checked, what was asked for and cells are too small for, and which scripts no font has. */
QKV_API const char *qkv_figure_warning(const qkv_figure *figure, size_t index);

/* ---- writing ---- */

/* png svg pdf: the drawing. html: a page that needs nothing else, whose maps change as you drag: edits
 * that scale q or k of the layer shown have a slider, exact at every factor; `page` or `report` must
 * have asked for it, and with `report` it holds the report. md json: the report, which `report` must
 * have asked for. safetensors, npz: the values of the panels as r0.c0, r0.c1, ...; csv: the same, a
 * row for each. NULL past the end. */
QKV_API const char *qkv_figure_format(size_t index);

/* To a file, whose suffix is one of the formats. The same figure gives the same bytes. */
QKV_API int qkv_figure_write(qkv_figure *figure, const char *path, qkv_error *err);
/* The same bytes in memory. *bytes is the caller's to free with qkv_bytes_free. */
QKV_API int qkv_figure_render(qkv_figure *figure, const char *format, char **bytes, size_t *n_bytes,
                              qkv_error *err);
/* Fails where both would fail whatever the disk is like. Writes nothing. */
QKV_API int qkv_figure_check(qkv_figure *figure, const char *path, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
