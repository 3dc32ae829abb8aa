/* One head at a time: norm, effective rank, score and spectrum of its OV or QK circuit. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "draw/draw.h"
#include "measure/circuits.h"
#include "study/head_tables.h"
#include "study/weights_study.h"

/* What the two circuits call their numbers. */
typedef struct circuit_words {
    const char *score, *stream_score; /* columns */
    const char *score_label, *full;
    const char *title, *plain_title, *norm_title, *rank_title, *stream_title, *spectrum_title;
} circuit_words;

#define CIRCUIT_TITLES(circuit)                                                                    \
    circuit " Circuits of All Heads", "Norms of the " circuit " Circuits",                         \
        "Effective Ranks of the " circuit " Circuits",                                             \
        "Eigenvalue Scores of the " circuit " Circuits in the Stream",                             \
        "Singular Values of the " circuit " Circuits"

static const circuit_words words_of[] = {
    [QKV_CIRCUIT_OV] = {"copying", "stream_copying", "copying score", "W_U W_O W_V W_E",
                        "Copying Scores of All Heads", CIRCUIT_TITLES("OV")},
    [QKV_CIRCUIT_QK] = {"matching", "stream_matching", "matching score", "W_Eᵀ W_Qᵀ W_K W_E",
                        "Matching Scores of All Heads", CIRCUIT_TITLES("QK")},
};

typedef struct heads_view {
    const qkv_circuits *circuits;
    const circuit_words *words;
    size_t n, n_layers, n_heads;
    char **layer_labels, **head_labels; /* numbers of the chosen ones */
} heads_view;

static qkv_circuit head_at(const heads_view *v, size_t i) {
    qkv_circuit c = QKV_CIRCUIT_INIT;
    (void)qkv_circuits_get(v->circuits, i, &c);
    return c;
}

/* ---- tables ---- */

enum { HEAD_COLUMNS = 7 };

static int add_head_row(qkv_study *study, const qkv_circuit *c, qkv_error *err) {
    const study_value row[HEAD_COLUMNS] = {
        STUDY_NUMBER(c->layer),        STUDY_NUMBER(c->head), STUDY_NUMBER(c->score),
        STUDY_NUMBER(c->stream_score), STUDY_NUMBER(c->norm), STUDY_NUMBER(c->effective_rank),
        STUDY_NUMBER(c->singular[0])};
    return qkv_study_add_row(study, row, err);
}

static int begin_heads(const heads_view *v, qkv_study *study, const char *name, const char *title,
                       qkv_error *err) {
    const char *const columns[HEAD_COLUMNS] = {
        "layer", "head",           v->words->score, v->words->stream_score,
        "norm",  "effective_rank", "largest"};
    return qkv_study_add_table(study, name, title, columns, HEAD_COLUMNS, err);
}

/* By the score, or by the norm where a model has no score. */
static int add_ranking(const heads_view *v, qkv_study *study, const weights_options *options,
                       qkv_error *err) {
    const size_t most = qkv_weights_top(options, v->n);
    const int has_score = !isnan(head_at(v, 0).score);
    char title[120];
    double *values = qkv_calloc(v->n, sizeof *values);
    for (size_t i = 0; values && i < v->n; i++) {
        const qkv_circuit c = head_at(v, i);
        values[i] = has_score ? c.score : c.norm;
    }
    head_value *order = values ? qkv_head_values(v->n_layers, v->n_heads, values) : NULL;
    free(values);
    if (!order) return qkv_fail_memory(err);
    qkv_head_values_sort(order, v->n);
    snprintf(title, sizeof title, "The %zu heads of the highest %s", most,
             has_score ? v->words->score_label : "norm");
    int status = begin_heads(v, study, "top", title, err);
    for (size_t i = 0; i < most && status == QKV_OK; i++) {
        /* Layers and heads there are numbers among the chosen ones. */
        const qkv_circuit c =
            head_at(v, (size_t)order[i].layer * v->n_heads + (size_t)order[i].head);
        status = add_head_row(study, &c, err);
    }
    free(order);
    return status;
}

static int add_heads(const heads_view *v, qkv_study *study, qkv_error *err) {
    int status = begin_heads(v, study, "heads", "Every head", err);
    for (size_t i = 0; i < v->n && status == QKV_OK; i++) {
        const qkv_circuit c = head_at(v, i);
        status = add_head_row(study, &c, err);
    }
    return status;
}

static int add_singular(const heads_view *v, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"layer", "head", "number", "value"};
    int status = qkv_study_add_table(study, "singular", "Singular values", columns, 4, err);
    for (size_t i = 0; i < v->n; i++) {
        const qkv_circuit c = head_at(v, i);
        for (size_t k = 0; k < c.n_singular && status == QKV_OK; k++)
            status =
                qkv_study_add_row(study,
                                  (study_value[]){STUDY_NUMBER(c.layer), STUDY_NUMBER(c.head),
                                                  STUDY_NUMBER(k), STUDY_NUMBER(c.singular[k])},
                                  err);
    }
    return status;
}

static int add_eigen(const heads_view *v, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"layer", "head", "number", "real", "imaginary"};
    if (!head_at(v, 0).n_eigen) return QKV_OK;
    int status =
        qkv_study_add_table(study, "eigen", "Eigenvalues of the full circuit", columns, 5, err);
    for (size_t i = 0; i < v->n; i++) {
        const qkv_circuit c = head_at(v, i);
        for (size_t k = 0; k < c.n_eigen && status == QKV_OK; k++)
            status = qkv_study_add_row(study,
                                       (study_value[]){STUDY_NUMBER(c.layer), STUDY_NUMBER(c.head),
                                                       STUDY_NUMBER(k), STUDY_NUMBER(c.real[k]),
                                                       STUDY_NUMBER(c.imaginary[k])},
                                       err);
    }
    return status;
}

/* ---- pictures ---- */

typedef double number_of_head(const qkv_circuit *c);

static double score_of(const qkv_circuit *c) {
    return c->score;
}
static double stream_score_of(const qkv_circuit *c) {
    return c->stream_score;
}
static double norm_of(const qkv_circuit *c) {
    return c->norm;
}
static double rank_of(const qkv_circuit *c) {
    return c->effective_rank;
}

/* Layers down, heads across. A score has the same reach to both sides. */
static int add_map(const heads_view *v, qkv_study *study, const char *name, const char *title,
                   const char *label, number_of_head *number, int is_score, qkv_error *err) {
    double *values = qkv_calloc(v->n, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    for (size_t i = 0; i < v->n; i++) {
        const qkv_circuit c = head_at(v, i);
        values[i] = number(&c);
    }
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    panel.values = values;
    panel.n_rows = (int32_t)v->n_layers;
    panel.n_cols = (int32_t)v->n_heads;
    panel.row_labels = (const char *const *)v->layer_labels;
    panel.col_labels = (const char *const *)v->head_labels;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Layer";
    map.col_axis = "Head";
    map.color.label = label;
    map.diverging = is_score;
    if (is_score) map.color.low = -1, map.color.high = 1;
    const int status = qkv_study_add_heatmap(study, name, title, &map, err);
    free(values);
    return status;
}

static int add_maps(const heads_view *v, qkv_study *study, qkv_error *err) {
    const circuit_words *w = v->words;
    int status = QKV_OK;
    if (!isnan(head_at(v, 0).score))
        status = add_map(v, study, w->score, w->title, w->score_label, score_of, 1, err);
    if (status == QKV_OK)
        status = add_map(v, study, "norm", w->norm_title, "Frobenius norm", norm_of, 0, err);
    if (status == QKV_OK)
        status =
            add_map(v, study, "effective_rank", w->rank_title, "effective rank", rank_of, 0, err);
    if (status == QKV_OK)
        status = add_map(v, study, w->stream_score, w->stream_title, "Σλ / Σ|λ|", stream_score_of,
                         1, err);
    return status;
}

enum { MOST_LINES = 8 };

/* The mean over a layer's heads of σ / σ₁, for some layers, evenly chosen. */
static void fill_line(const heads_view *v, size_t layer, size_t length, double *y) {
    for (size_t h = 0; h < v->n_heads; h++) {
        const qkv_circuit c = head_at(v, layer * v->n_heads + h);
        for (size_t k = 0; k < length; k++)
            y[k] += c.singular[0] > 0 ? c.singular[k] / c.singular[0] / (double)v->n_heads : 0;
    }
}

static int add_spectrum(const heads_view *v, qkv_study *study, qkv_error *err) {
    const size_t lines = v->n_layers < MOST_LINES ? v->n_layers : MOST_LINES;
    const size_t length = head_at(v, 0).n_singular;
    double *numbers = qkv_calloc((lines + 1) * length, sizeof *numbers);
    qkv_series series[MOST_LINES];
    if (!numbers) return qkv_fail_memory(err);
    for (size_t k = 0; k < length; k++) numbers[k] = (double)k;
    for (size_t i = 0; i < lines; i++) {
        const size_t layer = lines > 1 ? i * (v->n_layers - 1) / (lines - 1) : 0;
        series[i] = (qkv_series)QKV_SERIES_INIT;
        series[i].label = v->layer_labels[layer];
        series[i].x = numbers;
        series[i].y = numbers + (i + 1) * length;
        series[i].n = length;
        fill_line(v, layer, length, numbers + (i + 1) * length);
    }
    qkv_lines chart = QKV_LINES_INIT;
    chart.series = series;
    chart.n_series = lines;
    chart.x.label = "Number of the singular value";
    chart.y.label = "σ / σ₁, mean over heads";
    chart.legend = "Layer";
    const int status =
        qkv_study_add_lines(study, "spectrum", v->words->spectrum_title, &chart, err);
    free(numbers);
    return status;
}

/* ---- all of it ---- */

static char *number_label(int32_t number) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)number);
    return qkv_strdup(text);
}

/* All layers have the same heads, and heads of a layer follow each other. */
static int view_open(heads_view *v, const qkv_circuits *circuits, qkv_error *err) {
    qkv_circuit c = QKV_CIRCUIT_INIT;
    v->circuits = circuits;
    while (qkv_circuits_get(circuits, v->n, &c))
        v->n_heads += head_at(v, 0).layer == c.layer, v->n++;
    assert(v->n_heads > 0); /* a choice of layers and heads that is empty was refused */
    v->n_layers = v->n / v->n_heads;
    v->layer_labels = qkv_calloc(v->n_layers, sizeof *v->layer_labels);
    v->head_labels = qkv_calloc(v->n_heads, sizeof *v->head_labels);
    if (!v->layer_labels || !v->head_labels) return qkv_fail_memory(err);
    int ok = 1;
    for (size_t i = 0; i < v->n_layers; i++)
        ok &= (v->layer_labels[i] = number_label(head_at(v, i * v->n_heads).layer)) != NULL;
    for (size_t i = 0; i < v->n_heads; i++)
        ok &= (v->head_labels[i] = number_label(head_at(v, i).head)) != NULL;
    return ok ? QKV_OK : qkv_fail_memory(err);
}

static void describe(const heads_view *v, qkv_study *study, const study_inputs *in) {
    const circuit_words *w = v->words;
    if (isnan(head_at(v, 0).score)) {
        qkv_study_set_title(study, "%s", w->plain_title);
        qkv_study_warn(study, "%s has no logits: no %s",
                       qkv_model_get_info(in->model)->architecture, w->score_label);
        return;
    }
    qkv_study_set_title(study, "%s", w->title);
    qkv_study_note(study, "%s: Σλ / Σ|λ| of the eigenvalues of %s", w->score_label, w->full);
}

int qkv_weights_show_heads(qkv_study *study, const study_inputs *in, const weights_options *options,
                           qkv_error *err) {
    const qkv_circuit_options how = qkv_weights_circuit_options(in, options);
    const qkv_circuit_kind kind = options->circuit == WEIGHTS_OV ? QKV_CIRCUIT_OV : QKV_CIRCUIT_QK;
    qkv_circuits *circuits = NULL;
    heads_view v = {.words = &words_of[kind]};
    int status = qkv_circuits_new(&circuits, in->session, kind, &how, err);
    if (status == QKV_OK) status = view_open(&v, circuits, err);
    if (status == QKV_OK) describe(&v, study, in);
    if (status == QKV_OK) status = add_ranking(&v, study, options, err);
    if (status == QKV_OK) status = add_heads(&v, study, err);
    if (status == QKV_OK) status = add_singular(&v, study, err);
    if (status == QKV_OK) status = add_eigen(&v, study, err);
    if (status == QKV_OK) status = add_maps(&v, study, err);
    if (status == QKV_OK) status = add_spectrum(&v, study, err);
    qkv_weights_free_labels(v.layer_labels, v.n_layers);
    qkv_weights_free_labels(v.head_labels, v.n_heads);
    qkv_circuits_free(circuits);
    return status;
}
