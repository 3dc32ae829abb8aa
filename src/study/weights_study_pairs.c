/* Two heads: which read what others write. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "measure/circuits.h"
#include "study/weights_study.h"

/* Heads beyond which a map of all pairs shows nothing any more. */
enum { MOST_MAP_HEADS = 160 };

static const char *const kind_names[] = {"Q", "K", "V"};
static const char *const kind_titles[] = {"Q-composition", "K-composition", "V-composition"};

typedef struct pairs_view {
    const qkv_composition *scores;
    double less; /* what is taken off all scores */
    size_t n, n_layers, n_heads;
    char **head_labels, **layer_labels;
} pairs_view;

static double score_at(const pairs_view *v, int kind, size_t later, size_t earlier) {
    return qkv_composition_score(v->scores, (qkv_composition_kind)kind, later, earlier) - v->less;
}

/* ---- tables ---- */

typedef struct pair {
    double score;
    size_t later, earlier;
} pair;

static int by_score(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->later != y->later) return x->later < y->later ? -1 : 1;
    return (x->earlier > y->earlier) - (x->earlier < y->earlier);
}

static int add_pair(const pairs_view *v, qkv_study *study, int kind, const pair *p,
                    qkv_error *err) {
    int32_t layer[2], head[2];
    (void)qkv_composition_head(v->scores, p->later, &layer[0], &head[0]);
    (void)qkv_composition_head(v->scores, p->earlier, &layer[1], &head[1]);
    const study_value row[] = {STUDY_TEXT(kind_names[kind]), STUDY_NUMBER(layer[1]),
                               STUDY_NUMBER(head[1]),        STUDY_NUMBER(layer[0]),
                               STUDY_NUMBER(head[0]),        STUDY_NUMBER(p->score)};
    return qkv_study_add_row(study, row, err);
}

static int add_ranking(const pairs_view *v, qkv_study *study, int kind,
                       const weights_options *options, qkv_error *err) {
    pair *all = qkv_calloc(v->n * v->n, sizeof *all);
    size_t count = 0;
    int status = all ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; all && i < v->n * v->n; i++) {
        const pair p = {score_at(v, kind, i / v->n, i % v->n), i / v->n, i % v->n};
        if (!isnan(p.score)) all[count++] = p;
    }
    if (all) qsort(all, count, sizeof *all, by_score);
    const size_t most = qkv_weights_top(options, count);
    for (size_t i = 0; i < most && status == QKV_OK; i++)
        status = add_pair(v, study, kind, &all[i], err);
    free(all);
    return status;
}

static int add_rankings(const pairs_view *v, qkv_study *study, const weights_options *options,
                        qkv_error *err) {
    static const char *const columns[] = {"composition", "layer",      "head",
                                          "later_layer", "later_head", "score"};
    int status = qkv_study_add_table(study, "pairs", "The pairs of heads that compose most",
                                     columns, sizeof columns / sizeof *columns, err);
    for (int kind = 0; kind < QKV_COMPOSITION_COUNT && status == QKV_OK; kind++)
        status = add_ranking(v, study, kind, options, err);
    return status;
}

/* ---- pictures ---- */

/* A picture of all pairs, of heads or of layers. Rows are the later ones: those of the first layer have
 * no row, and those of the last no column. */
typedef struct pairs_map {
    const char *name, *title, *row_axis, *col_axis;
    char **labels;
    size_t n, first; /* of all; rows begin with number `first` */
    double (*value)(const pairs_view *v, int kind, size_t later, size_t earlier);
} pairs_map;

static int add_map(const pairs_view *v, qkv_study *study, const pairs_map *how, qkv_error *err) {
    const size_t side = how->n - how->first;
    double *values = qkv_calloc(QKV_COMPOSITION_COUNT * side * side, sizeof *values);
    qkv_heatmap_panel panels[QKV_COMPOSITION_COUNT];
    if (!values) return qkv_fail_memory(err);
    for (int kind = 0; kind < QKV_COMPOSITION_COUNT; kind++) {
        double *to = values + (size_t)kind * side * side;
        for (size_t i = 0; i < side * side; i++)
            to[i] = how->value(v, kind, i / side + how->first, i % side);
        panels[kind] = (qkv_heatmap_panel)QKV_HEATMAP_PANEL_INIT;
        panels[kind].values = to;
        panels[kind].n_rows = panels[kind].n_cols = (int32_t)side;
        panels[kind].title = kind_titles[kind];
        panels[kind].row_labels = (const char *const *)how->labels + how->first;
        panels[kind].col_labels = (const char *const *)how->labels;
    }
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = panels;
    map.n_panels = QKV_COMPOSITION_COUNT;
    map.row_axis = how->row_axis;
    map.col_axis = how->col_axis;
    map.color.label = v->less > 0 ? "composition score − 1/√D" : "composition score";
    map.diverging = v->less > 0;
    const int status = qkv_study_add_heatmap(study, how->name, how->title, &map, err);
    free(values);
    return status;
}

static double most_of_layers(const pairs_view *v, int kind, size_t later, size_t earlier) {
    double most = (double)NAN;
    for (size_t i = 0; i < v->n_heads * v->n_heads; i++)
        most = fmax(most, score_at(v, kind, later * v->n_heads + i / v->n_heads,
                                   earlier * v->n_heads + i % v->n_heads));
    return most;
}

static int add_pictures(const pairs_view *v, qkv_study *study, qkv_error *err) {
    const pairs_map heads = {"heads",
                             "Composition Between Heads",
                             "Later head (layer.head)",
                             "Earlier head",
                             v->head_labels,
                             v->n,
                             v->n_heads,
                             score_at};
    const pairs_map layers = {"layers",
                              "Strongest Composition Between Two Layers",
                              "Later layer",
                              "Earlier layer",
                              v->layer_labels,
                              v->n_layers,
                              1,
                              most_of_layers};
    int status = QKV_OK;
    if (v->n <= MOST_MAP_HEADS)
        status = add_map(v, study, &heads, err);
    else
        qkv_study_note(study, "the highest score of any two heads of the layers");
    return status == QKV_OK ? add_map(v, study, &layers, err) : status;
}

/* ---- all of it ---- */

static int view_open(pairs_view *v, qkv_error *err) {
    int32_t layer, head, first;
    char text[32];
    int ok = 1;
    (void)qkv_composition_head(v->scores, 0, &first, NULL);
    for (; qkv_composition_head(v->scores, v->n, &layer, NULL); v->n++)
        v->n_heads += layer == first;
    assert(v->n_heads > 0); /* a choice of layers and heads that is empty was refused */
    v->n_layers = v->n / v->n_heads;
    v->head_labels = qkv_calloc(v->n, sizeof *v->head_labels);
    v->layer_labels = qkv_calloc(v->n_layers, sizeof *v->layer_labels);
    if (!v->head_labels || !v->layer_labels) return qkv_fail_memory(err);
    for (size_t i = 0; i < v->n; i++) {
        (void)qkv_composition_head(v->scores, i, &layer, &head);
        snprintf(text, sizeof text, "%d.%d", (int)layer, (int)head);
        ok &= (v->head_labels[i] = qkv_strdup(text)) != NULL;
        if (i % v->n_heads) continue;
        snprintf(text, sizeof text, "%d", (int)layer);
        ok &= (v->layer_labels[i / v->n_heads] = qkv_strdup(text)) != NULL;
    }
    return ok ? QKV_OK : qkv_fail_memory(err);
}

int qkv_weights_show_pairs(qkv_study *study, const study_inputs *in, const weights_options *options,
                           qkv_error *err) {
    const qkv_circuit_options how = qkv_weights_circuit_options(in, options);
    qkv_composition *scores = NULL;
    pairs_view v = {0};
    int status = qkv_composition_new(&scores, in->session, &how, err);
    v.scores = scores;
    if (status == QKV_OK) status = view_open(&v, err);
    if (status == QKV_OK) {
        v.less = options->minus_random ? qkv_composition_random(scores) : 0;
        qkv_study_set_title(study, "Composition Between Heads");
        qkv_study_note(study,
                       "Q: ‖W_QKᵀ W_OV‖, K: ‖W_QK W_OV‖, V: ‖W_OV W_OV‖, over the norms of "
                       "both; random factors have %.3g",
                       qkv_composition_random(scores));
        status = add_rankings(&v, study, options, err);
    }
    if (status == QKV_OK) status = add_pictures(&v, study, err);
    qkv_weights_free_labels(v.head_labels, v.n);
    qkv_weights_free_labels(v.layer_labels, v.n_layers);
    qkv_composition_free(scores);
    return status;
}
