#include "study/head_tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "draw/draw.h"

enum { MOST_BARS = 20, LABEL_SIZE = 32 };

head_value *qkv_head_values(size_t n_layer, size_t n_head, const double *values) {
    head_value *all = qkv_calloc(n_layer * n_head, sizeof *all);
    for (size_t i = 0; all && i < n_layer * n_head; i++) {
        all[i].layer = (int32_t)(i / n_head);
        all[i].head = (int32_t)(i % n_head);
        all[i].value = all[i].lowest = all[i].highest = values[i];
    }
    return all;
}

static int by_value(const void *a, const void *b) {
    const head_value *x = a, *y = b;
    if (isnan(x->value) != isnan(y->value)) return isnan(x->value) ? 1 : -1;
    if (x->value < y->value || x->value > y->value) return x->value < y->value ? 1 : -1;
    return x->layer != y->layer ? x->layer - y->layer : x->head - y->head;
}

void qkv_head_values_sort(head_value *heads, size_t n) {
    if (n) qsort(heads, n, sizeof *heads, by_value);
}

/* ---- pictures ---- */

int qkv_head_map(qkv_study *study, const char *name, const head_panel *panels, size_t n_panels,
                 size_t n_layer, size_t n_head, const char *label, qkv_error *err) {
    const size_t n = n_layer * n_head;
    double *values = qkv_calloc(n_panels * n, sizeof *values);
    qkv_heatmap_panel *drawn = qkv_calloc(n_panels, sizeof *drawn);
    qkv_heatmap map = QKV_HEATMAP_INIT;
    int status = values && drawn ? QKV_OK : qkv_fail_memory(err);
    for (size_t p = 0; p < n_panels && status == QKV_OK; p++) {
        drawn[p] = (qkv_heatmap_panel)QKV_HEATMAP_PANEL_INIT;
        for (size_t i = 0; i < n; i++) values[p * n + i] = panels[p].heads[i].value;
        drawn[p].values = values + p * n;
        drawn[p].n_rows = (int32_t)n_layer;
        drawn[p].n_cols = (int32_t)n_head;
        drawn[p].title = panels[p].title;
    }
    map.panels = drawn;
    map.n_panels = n_panels;
    map.row_axis = "Layer";
    map.col_axis = "Head";
    map.color.label = label;
    if (status == QKV_OK) status = qkv_study_add_heatmap(study, name, NULL, &map, err);
    free(values);
    free(drawn);
    return status;
}

int qkv_head_bars(qkv_study *study, const char *name, const head_value *ranked, size_t n,
                  const char *label, qkv_error *err) {
    qkv_bar bars[MOST_BARS];
    char labels[MOST_BARS][LABEL_SIZE];
    char title[64];
    qkv_bars chart = QKV_BARS_INIT;
    snprintf(title, sizeof title, "Heads by %s", label);
    for (size_t i = 0; i < n && i < MOST_BARS && !isnan(ranked[i].value); i++) {
        snprintf(labels[i], sizeof labels[i], "layer %d, head %d", (int)ranked[i].layer,
                 (int)ranked[i].head);
        bars[i] = (qkv_bar)QKV_BAR_INIT;
        bars[i].label = labels[i];
        bars[i].value = ranked[i].value;
        bars[i].lower = ranked[i].lowest;
        bars[i].upper = ranked[i].highest;
        chart.n_bars = i + 1;
    }
    chart.bars = bars;
    chart.axis.label = label;
    return qkv_study_add_bars(study, name, title, &chart, err);
}
