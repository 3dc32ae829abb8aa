/*
 * Charts of a sweep's results: a heatmap over layers and heads, lines against ε, or the heads in
 * order. A plot is an object that can be drawn and asked for its numbers.
 *
 *     qkv_sweep_reader *file = NULL;
 *     qkv_plot *plot = NULL;
 *     qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
 *     options.metric = "sink";
 *     if (qkv_sweep_reader_open(&file, "results.sqlite", &err) == QKV_OK &&
 *         qkv_plot_new(&plot, file, &options, &err) == QKV_OK) {
 *         qkv_plot_write(plot, "sink.pdf", &err);
 *     }
 *     qkv_plot_free(plot);
 *     qkv_sweep_reader_close(file);
 *
 * Values are means over the prompts; of the cells of a line, first over its heads. What the file
 * leaves open must be chosen: an error lists the choices. Messages name fields of the options
 * between backquotes. A sweep that is unfinished is drawn as far as it goes.
 *
 * A plot holds all it needs and depends on nothing; it belongs to one thread at a time.
 */
#ifndef QKV_PLOT_H
#define QKV_PLOT_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/grid.h"
#include "qkv/session.h"
#include "qkv/sweep_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_plot qkv_plot;

typedef enum qkv_plot_kind {
    QKV_PLOT_AUTO, /* lines where there are several ε, else a heatmap */
    QKV_PLOT_HEATMAP,
    QKV_PLOT_LINES,
    QKV_PLOT_RANKING
} qkv_plot_kind;

typedef enum qkv_plot_by {
    QKV_PLOT_BY_AUTO, /* target */
    QKV_PLOT_BY_TARGET,
    QKV_PLOT_BY_LAYER,
    QKV_PLOT_BY_HEAD
} qkv_plot_by;

typedef enum qkv_plot_band {
    QKV_PLOT_BAND_AUTO,  /* range */
    QKV_PLOT_BAND_RANGE, /* least to largest of the prompts */
    QKV_PLOT_BAND_SD,    /* one standard deviation to both sides */
    QKV_PLOT_BAND_NONE
} qkv_plot_band;

typedef enum qkv_plot_scale {
    QKV_PLOT_SCALE_AUTO,
    QKV_PLOT_SCALE_LINEAR,
    QKV_PLOT_SCALE_LOG
} qkv_plot_scale;

typedef enum qkv_plot_order {
    QKV_PLOT_ORDER_AUTO, /* largest; of differences, magnitude */
    QKV_PLOT_ORDER_LARGEST,
    QKV_PLOT_ORDER_SMALLEST,
    QKV_PLOT_ORDER_MAGNITUDE
} qkv_plot_order;

/* Fields that are 0 or NULL: the default. One that the kind of chart has no use for is an error. */
typedef struct qkv_plot_options {
    size_t size;

    /* What is shown. NULL: the only one there is; for the lists: all. */
    qkv_plot_kind kind;
    const char *metric;
    const char *target;  /* what was edited, "q,k"; "none": the unedited cells */
    const char *op;      /* "scale" */
    const char *epsilon; /* "1e-3"; for lines a list, also "linspace:0,1,5", "logspace:1e-4,1,5" */
    const char *layers;  /* "0,2,5-7"; "-1": the last that the sweep has */
    const char *heads;
    int32_t change; /* 1: differences from the unedited values */
    qkv_plot_by by; /* lines: one for each of these, the rest averaged */
    int32_t top;    /* ranking: how many heads; 0: 20 */
    qkv_plot_order order;
    qkv_plot_band band; /* lines, ranking */

    /* How it is drawn. */
    qkv_plot_scale scale; /* of the values; linear */
    qkv_plot_scale axis;  /* of ε; log */
    double range[2];      /* of the values; both 0: as far as they reach */
    const char *title;    /* *text* is italic; NULL: the plot's own, "": none */
    double dpi;           /* of a PNG; 0: 150, with a width 300 */

    /* What its recipe says about where it comes from: the command line of a program. */
    const char *const *command;
    size_t n_command;

    /* heatmap; AUTO: viridis; coolwarm, around 0, for changes and for metrics with two signs */
    qkv_colormap colormap;

    /* For print. */
    qkv_text_form text; /* of an SVG or PDF */
    const char *font;   /* family, for what it has glyphs for; NULL: DejaVu Sans */
    double width;       /* of the page, points; 0: as wide as its content */
    int32_t hide_notes; /* 1: without the small print */

    int32_t no_recipe; /* 1: files carry none */

    /* 1: keep what an HTML page needs: all metrics of the sweep, at every ε. It changes nothing of the
     * chart and is not in its recipe. */
    int32_t page;
    /* With `page`: of the sweep's model. The page then holds the attention of its heads for the
     * first prompts, and cells open it. Used while the plot is made. NULL: none. */
    qkv_session *session;

    double font_size; /* points, 5 to 72; 0: 8, or what the width allows */
} qkv_plot_options;

#define QKV_PLOT_OPTIONS_INIT                                                                      \
    { .size = sizeof(qkv_plot_options) }

/* "auto", "heatmap", "lines", "ranking"; NULL past the end. */
QKV_API const char *qkv_plot_kind_name(qkv_plot_kind kind);

/* What can be said without a file: values out of range, or that exclude each other. */
QKV_API int qkv_plot_options_check(const qkv_plot_options *options, qkv_error *err);

/* Reads what is stored by now. QKV_ERR_ARGUMENT is a choice to be made or mended;
 * QKV_ERR_UNSUPPORTED says that the file has nothing (yet) of what was chosen. */
QKV_API int qkv_plot_new(qkv_plot **out, qkv_sweep_reader *file, const qkv_plot_options *options,
                         qkv_error *err);
QKV_API void qkv_plot_free(qkv_plot *plot);

/* .png, .svg or .pdf; .html, a page that needs nothing else and whose cells open, where `page` asked
 * for it. The recipe is embedded. */
QKV_API int qkv_plot_write(const qkv_plot *plot, const char *path, qkv_error *err);
/* The same bytes in memory; the format is "png", "svg", "pdf" or "html". *bytes is the caller's to free with
 * qkv_bytes_free. */
QKV_API int qkv_plot_render(const qkv_plot *plot, const char *format, char **bytes, size_t *n_bytes,
                            qkv_error *err);

/* ---- numbers ---- */

/* Texts belong to the plot. */
typedef struct qkv_plot_info {
    size_t size;
    qkv_plot_kind kind; /* not AUTO */
    const char *metric;
    const char *op;
    const char *title;       /* NULL: none */
    const char *small_print; /* what was averaged, and what is missing */
    const char *recipe;      /* JSON */
    size_t n_values;         /* for qkv_plot_get_value */
    size_t n_cells;          /* of the sweep: what these rest on */
    size_t n_missing;        /* of them */
    size_t n_undefined;      /* of them */
    double reference;        /* lines by target: mean of the unedited cells; NaN: none */
    const char *id;          /* of the recipe, 8 characters; also in the small print */
} qkv_plot_info;

#define QKV_PLOT_INFO_INIT                                                                         \
    { .size = sizeof(qkv_plot_info) }

QKV_API int qkv_plot_get_info(const qkv_plot *plot, qkv_plot_info *info, qkv_error *err);

enum { QKV_PLOT_AVERAGED = -2 };

/* One cell of a heatmap (by target, layer, head), point of a line (by line, ε) or bar (in order). */
typedef struct qkv_plot_value {
    size_t size;
    const char *target;  /* "q" */
    int32_t layer, head; /* -1: all together in one edit; QKV_PLOT_AVERAGED: over those shown */
    double epsilon;      /* NaN: none */
    double mean;         /* NaN: no value */
    double low, high;    /* of the band */
    size_t n;            /* prompts with a value */
} qkv_plot_value;

#define QKV_PLOT_VALUE_INIT                                                                        \
    { .size = sizeof(qkv_plot_value) }

QKV_API int qkv_plot_get_value(const qkv_plot *plot, size_t index, qkv_plot_value *value,
                               qkv_error *err);

/* What a reader of the chart should know; NULL past the end. */
QKV_API const char *qkv_plot_warning(const qkv_plot *plot, size_t index);

#ifdef __cplusplus
}
#endif

#endif
