/*
 * The numbers of a recipe: its "panels", each with a fingerprint of its values, some of them, and their extremes; and
 * the "digest" of all. Those of a study are its tables, then its pictures; those of a figure its cells.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "draw/draw.h"
#include "study/figure.h"
#include "study/study.h"

/* ---- a panel ---- */

/* As many digits as an F32 needs. */
json_t *qkv_recipe_number(double value) {
    return qkv_json_exact(qkv_round_digits(value, 9));
}

static json_t *describe_sample(const panel_summary *summary) {
    json_t *list = json_array();
    for (size_t i = 0; i < summary->n_sample; i++)
        qkv_json_push(list, qkv_recipe_number(summary->sample[i]));
    return list;
}

void qkv_recipe_add_summary(json_t *panel, const panel_summary *summary) {
    qkv_json_put(panel, "shape",
                 json_pack("[I, I]", (json_int_t)summary->n_rows, (json_int_t)summary->n_cols));
    qkv_json_put(panel, "digest", json_string(summary->digest));
    qkv_json_put(panel, "least", qkv_recipe_number(summary->least));
    qkv_json_put(panel, "most", qkv_recipe_number(summary->most));
    qkv_json_put(panel, "norm", qkv_recipe_number(summary->norm));
    qkv_json_put(panel, "sample", describe_sample(summary));
}

typedef struct panel_list {
    json_t *items;
    size_t n; /* as many as there will be: samples are smaller where there are many */
    qkv_fingerprint all;
} panel_list;

/* Takes over what is said of the panel, NULL where memory was short. */
static int add_panel(panel_list *to, json_t *panel, const float *values, size_t rows, size_t cols,
                     qkv_error *err) {
    panel_summary summary = {0};
    int status = panel && values ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && rows && cols)
        status =
            qkv_panel_summarize(&summary, values, rows, cols, qkv_panel_sample_size(to->n), err);
    if (status != QKV_OK) return json_decref(panel), status;
    qkv_recipe_add_summary(panel, &summary);
    qkv_fingerprint_add(&to->all, summary.digest, sizeof summary.digest);
    return qkv_json_push(to->items, panel) == 0 ? QKV_OK : qkv_fail_memory(err);
}

static int start(panel_list *list, size_t n, qkv_error *err) {
    const int status = qkv_fingerprint_start(&list->all, err);
    list->n = n;
    list->items = status == QKV_OK ? json_array() : NULL;
    return status;
}

static void finish(panel_list *list, json_t *recipe) {
    char digest[QKV_FINGERPRINT_SIZE];
    qkv_fingerprint_end(&list->all, digest);
    qkv_json_put(recipe, "panels", list->items);
    qkv_json_put(recipe, "digest", json_string(digest));
}

/* ---- of a study ---- */

/* Numbers as panels have them: single precision, one NaN. */
static float plain(double value) {
    return isnan(value) ? NAN : (float)value;
}

static json_t *describe_place(const panel_list *list) {
    return json_pack("{s:i, s:i}", "row", (int)json_array_size(list->items), "col", 0);
}

/* The fingerprint of the texts of a table; "" where it has none. */
static int digest_texts(const study_table *table, char digest[QKV_FINGERPRINT_SIZE],
                        qkv_error *err) {
    qkv_fingerprint print;
    int any = 0;
    const int status = qkv_fingerprint_start(&print, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < table->n_cells; i++) {
        const char *text = table->cells[i].text;
        if (text) qkv_fingerprint_add(&print, text, strlen(text) + 1);
        any |= text != NULL;
    }
    qkv_fingerprint_end(&print, digest);
    if (!any) digest[0] = '\0';
    return QKV_OK;
}

static int add_table(panel_list *list, const study_table *table, qkv_error *err) {
    char texts[QKV_FINGERPRINT_SIZE];
    int status = digest_texts(table, texts, err);
    if (status != QKV_OK) return status;
    float *values = qkv_calloc(table->n_cells, sizeof *values);
    for (size_t i = 0; values && i < table->n_cells; i++)
        values[i] = table->cells[i].text ? 0 : plain(table->cells[i].number);
    json_t *panel = describe_place(list);
    if (panel && texts[0]) qkv_json_put(panel, "texts", json_string(texts));
    status = add_panel(list, panel, values, qkv_study_n_rows(table), table->n_columns, err);
    free(values);
    return status;
}

static int add_map(panel_list *list, const qkv_heatmap *map, qkv_error *err) {
    int status = QKV_OK;
    for (size_t p = 0; p < map->n_panels && status == QKV_OK; p++) {
        const qkv_heatmap_panel *from = &map->panels[p];
        const size_t rows = (size_t)from->n_rows, cols = (size_t)from->n_cols;
        float *values = qkv_calloc(rows * cols, sizeof *values);
        for (size_t i = 0; values && i < rows * cols; i++) values[i] = plain(from->values[i]);
        status = add_panel(list, describe_place(list), values, rows, cols, err);
        free(values);
    }
    return status;
}

static int add_lines(panel_list *list, const qkv_lines *lines, qkv_error *err) {
    int status = QKV_OK;
    for (size_t p = 0; p < lines->n_series && status == QKV_OK; p++) {
        const qkv_series *from = &lines->series[p];
        float *values = qkv_calloc(from->n, 2 * sizeof *values);
        for (size_t i = 0; values && i < from->n; i++) {
            values[2 * i] = plain(from->x[i]);
            values[2 * i + 1] = plain(from->y[i]);
        }
        status = add_panel(list, describe_place(list), values, from->n, 2, err);
        free(values);
    }
    return status;
}

static int add_bars(panel_list *list, const qkv_bars *bars, qkv_error *err) {
    float *values = qkv_calloc(bars->n_bars, sizeof *values);
    for (size_t i = 0; values && i < bars->n_bars; i++) values[i] = plain(bars->bars[i].value);
    const int status = add_panel(list, describe_place(list), values, bars->n_bars, 1, err);
    free(values);
    return status;
}

static int add_picture(panel_list *list, const study_picture *picture, qkv_error *err) {
    switch (picture->chart) {
    case STUDY_HEATMAP:
        return add_map(list, &picture->of.map, err);
    case STUDY_LINES:
        return add_lines(list, &picture->of.lines, err);
    case STUDY_BARS:
        return add_bars(list, &picture->of.bars, err);
    }
    return QKV_OK;
}

static size_t count_panels(const qkv_study *study) {
    size_t n = study->n_tables;
    for (size_t i = 0; i < study->n_pictures; i++) {
        const study_picture *picture = &study->pictures[i];
        n += picture->chart == STUDY_HEATMAP ? picture->of.map.n_panels
             : picture->chart == STUDY_LINES ? picture->of.lines.n_series
                                             : 1;
    }
    return n;
}

int qkv_recipe_add_numbers(json_t *recipe, const qkv_study *study, qkv_error *err) {
    panel_list list = {0};
    int status = start(&list, count_panels(study), err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < study->n_tables && status == QKV_OK; i++)
        status = add_table(&list, &study->tables[i], err);
    for (size_t i = 0; i < study->n_pictures && status == QKV_OK; i++)
        status = add_picture(&list, &study->pictures[i], err);
    finish(&list, recipe);
    return status;
}

/* ---- of a figure ---- */

int qkv_recipe_add_cells(json_t *recipe, const qkv_figure *fig, qkv_error *err) {
    const size_t n = fig->rows * fig->cols;
    panel_list list = {0};
    int status = start(&list, n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const figure_cell *cell = &fig->cells[i];
        json_t *panel = json_pack("{s:i, s:i, s:i, s:o}", "row", (int)(i / fig->cols), "col",
                                  (int)(i % fig->cols), "input", (int)cell->prompt, "edits",
                                  qkv_json_text(cell->edits));
        status = add_panel(&list, panel, cell->values, cell->n_rows, cell->n_cols, err);
    }
    finish(&list, recipe);
    return status;
}
