/* The pictures of a comparison. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "draw/draw.h"
#include "measure/compare.h"
#include "study/compare.h"

static int add_heads(const compare_work *w, qkv_error *err) {
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    panel.values = w->heads;
    panel.n_rows = w->n_layer;
    panel.n_cols = w->n_head;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Layer";
    map.col_axis = "Head";
    map.color.label = w->axis;
    if (w->n_ranking) map.color.high = w->ranking[0].distance; /* from 0 on */
    const int status = qkv_study_add_heatmap(w->study, "heads", NULL, &map, err);
    if (status == QKV_OK) qkv_study_link(w->study, STUDY_LAYERS_HEADS, 0);
    qkv_study_link_second(w->study,
                          &(study_second){.names = {"first", "second"}, .edits = w->how->edit});
    return status;
}

static int add_ranking(const compare_work *w, qkv_error *err) {
    enum { LABEL = 48 };
    qkv_bar *bars = qkv_calloc(w->n_top, sizeof *bars);
    char(*labels)[LABEL] = qkv_calloc(w->n_top, sizeof *labels);
    qkv_bars chart = QKV_BARS_INIT;
    int status = bars && labels ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < w->n_top && status == QKV_OK; i++) {
        const compare_head *h = &w->ranking[i];
        snprintf(labels[i], LABEL, "layer %d, head %d", (int)h->layer, (int)h->head);
        bars[i] = (qkv_bar){.size = sizeof *bars,
                            .label = labels[i],
                            .value = h->distance,
                            .lower = h->distance,
                            .upper = h->distance};
    }
    chart.bars = bars;
    chart.n_bars = w->n_top;
    chart.axis.label = w->axis;
    if (status == QKV_OK && w->n_top)
        status = qkv_study_add_bars(w->study, "ranking", "Heads That Differ Most", &chart, err);
    free(bars);
    free(labels);
    return status;
}

/* One line; y of x. */
static int add_line(const compare_work *w, const char *name, const char *title, const double *x,
                    const double *y, size_t n, const char *x_label, const char *y_label,
                    qkv_error *err) {
    qkv_series series = QKV_SERIES_INIT;
    qkv_lines lines = QKV_LINES_INIT;
    series.x = x;
    series.y = y;
    series.n = n;
    lines.series = &series;
    lines.n_series = 1;
    lines.x.label = x_label;
    lines.y.label = y_label;
    return qkv_study_add_lines(w->study, name, title, &lines, err);
}

static int add_layers(const compare_work *w, qkv_error *err) {
    const size_t n = (size_t)w->n_layer;
    double *numbers = qkv_calloc(3 * n, sizeof *numbers);
    if (!numbers) return qkv_fail_memory(err);
    double *layers = numbers, *angles = numbers + n, *errors = numbers + 2 * n;
    for (size_t l = 0; l < n; l++) {
        layers[l] = (double)l;
        (void)qkv_compare_layer(w->compare, (int32_t)l, &angles[l], &errors[l]);
    }
    int status = add_line(w, "angles", "Angle Between the Residual Streams", layers, angles, n,
                          "Layer", "angle of the residual streams (degrees)", err);
    if (status == QKV_OK)
        status = add_line(w, "errors", "Error of the Residual Stream", layers, errors, n, "Layer",
                          "error of the residual stream, of its length", err);
    free(numbers);
    return status;
}

static int add_positions(const compare_work *w, qkv_error *err) {
    size_t n = 0;
    while (qkv_compare_position(w->compare, n, NULL, NULL)) n++;
    double *numbers = qkv_calloc(2 * n, sizeof *numbers);
    if (!numbers) return qkv_fail_memory(err);
    for (size_t t = 0; t < n; t++) {
        numbers[t] = (double)t;
        (void)qkv_compare_position(w->compare, t, &numbers[n + t], NULL);
    }
    const int status = add_line(w, "positions", "Divergence of the Output by Position", numbers,
                                numbers + n, n, "Position", "KL of the output (nats)", err);
    free(numbers);
    return status;
}

int qkv_compare_pictures(const compare_work *w, qkv_error *err) {
    int status = add_heads(w, err);
    if (status == QKV_OK) status = add_ranking(w, err);
    if (status == QKV_OK) status = add_layers(w, err);
    if (status == QKV_OK && qkv_model_get_info(w->in->model)->has_logits)
        status = add_positions(w, err);
    return status;
}
