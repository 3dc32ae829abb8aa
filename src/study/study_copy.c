/* Charts as a study keeps them: plain data, copied with all that it points to. */
#include "base/memory.h"
#include "base/sized.h"
#include "draw/draw.h"
#include "study/study.h"

#include <stdlib.h>
#include <string.h>

/* A copy that the study keeps of n structs of a caller's array, as large as ours are. */
static void *keep_items(qkv_study *study, size_t size, const void *items, size_t n,
                        const char *name, qkv_error *err) {
    void *read = NULL;
    if (qkv_sized_read_items(&read, size, items, n, name, err) != QKV_OK) return NULL;
    void *kept = qkv_study_keep(study, read, n * size);
    for (size_t i = 0; kept && i < n; i++) memcpy((char *)kept + i * size, &size, sizeof size);
    free(read);
    if (!kept) (void)qkv_fail_memory(err);
    return kept;
}

static const double *keep_numbers(qkv_study *study, const double *values, size_t n) {
    return values ? qkv_study_keep(study, values, n * sizeof *values) : NULL;
}

static const char *const *keep_texts(qkv_study *study, const char *const *texts, size_t n) {
    if (!texts) return NULL;
    const char **kept = qkv_study_keep(study, NULL, n * sizeof *kept);
    for (size_t i = 0; kept && i < n; i++) kept[i] = qkv_study_keep_text(study, texts[i]);
    return kept;
}

static const int32_t *keep_indices(qkv_study *study, const int32_t *from, size_t n) {
    return from ? qkv_study_keep(study, from, n * sizeof *from) : NULL;
}

static int ended(const qkv_study *study, qkv_error *err) {
    return study->failed ? qkv_fail_memory(err) : QKV_OK;
}

int qkv_study_copy_heatmap(qkv_study *study, qkv_heatmap *to, const qkv_heatmap *from,
                           qkv_error *err) {
    *to = (qkv_heatmap)QKV_HEATMAP_INIT;
    int status = qkv_sized_read(to, sizeof *to, from, "qkv_heatmap", err);
    if (status != QKV_OK) return status;
    qkv_heatmap_panel *panels =
        keep_items(study, sizeof *panels, to->panels, to->n_panels, "qkv_heatmap_panel", err);
    if (!panels) return err ? err->status : QKV_ERR_MEMORY;
    for (size_t i = 0; i < to->n_panels; i++) {
        qkv_heatmap_panel *panel = &panels[i];
        const size_t rows = (size_t)panel->n_rows, cols = (size_t)panel->n_cols;
        panel->values = keep_numbers(study, panel->values, rows * cols);
        panel->title = qkv_study_keep_text(study, panel->title);
        panel->row_labels = keep_texts(study, panel->row_labels, rows);
        panel->col_labels = keep_texts(study, panel->col_labels, cols);
        panel->cell_texts = keep_texts(study, panel->cell_texts, rows * cols);
        panel->cell_categories = keep_indices(study, panel->cell_categories, rows * cols);
    }
    to->panels = panels;
    to->row_axis = qkv_study_keep_text(study, to->row_axis);
    to->col_axis = qkv_study_keep_text(study, to->col_axis);
    to->color.label = qkv_study_keep_text(study, to->color.label);
    to->categories = keep_texts(study, to->categories, to->n_categories);
    return ended(study, err);
}

int qkv_study_copy_lines(qkv_study *study, qkv_lines *to, const qkv_lines *from, qkv_error *err) {
    *to = (qkv_lines)QKV_LINES_INIT;
    int status = qkv_sized_read(to, sizeof *to, from, "qkv_lines", err);
    if (status != QKV_OK) return status;
    qkv_series *all = keep_items(study, sizeof *all, to->series, to->n_series, "qkv_series", err);
    if (!all) return err ? err->status : QKV_ERR_MEMORY;
    for (size_t i = 0; i < to->n_series; i++) {
        qkv_series *s = &all[i];
        s->label = qkv_study_keep_text(study, s->label);
        s->x = keep_numbers(study, s->x, s->n);
        s->y = keep_numbers(study, s->y, s->n);
        s->lower = keep_numbers(study, s->lower, s->n);
        s->upper = keep_numbers(study, s->upper, s->n);
    }
    to->series = all;
    to->x.label = qkv_study_keep_text(study, to->x.label);
    to->y.label = qkv_study_keep_text(study, to->y.label);
    to->legend = qkv_study_keep_text(study, to->legend);
    to->reference_label = qkv_study_keep_text(study, to->reference_label);
    return ended(study, err);
}

int qkv_study_copy_bars(qkv_study *study, qkv_bars *to, const qkv_bars *from, qkv_error *err) {
    *to = (qkv_bars)QKV_BARS_INIT;
    int status = qkv_sized_read(to, sizeof *to, from, "qkv_bars", err);
    if (status != QKV_OK) return status;
    qkv_bar *all = keep_items(study, sizeof *all, to->bars, to->n_bars, "qkv_bar", err);
    if (!all) return err ? err->status : QKV_ERR_MEMORY;
    for (size_t i = 0; i < to->n_bars; i++) all[i].label = qkv_study_keep_text(study, all[i].label);
    to->bars = all;
    to->groups = keep_texts(study, to->groups, to->n_groups);
    to->axis.label = qkv_study_keep_text(study, to->axis.label);
    return ended(study, err);
}
