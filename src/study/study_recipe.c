/*
 * The recipe of a study: figure_recipe.h says what recipes hold. Of a study, "kind" is "study" and
 * "study" the name of its kind; "panels" are its tables, then the numbers of its pictures; "look" is how
 * one of them was drawn.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "qkv/version.h"
#include "study/study.h"

/* ---- numbers ---- */

/* Numbers as panels have them: single precision, one NaN. */
static float plain(double value) {
    return isnan(value) ? NAN : (float)value;
}

static int add_panel(json_t *list, float *values, size_t rows, size_t cols, const char *texts,
                     size_t n_panels, qkv_fingerprint *all, qkv_error *err) {
    panel_summary summary = {0};
    int status = QKV_OK;
    if (!values) return qkv_fail_memory(err);
    if (rows && cols)
        status =
            qkv_panel_summarize(&summary, values, rows, cols, qkv_panel_sample_size(n_panels), err);
    if (status != QKV_OK) return status;
    json_t *panel = json_pack("{s:i, s:i}", "row", (int)json_array_size(list), "col", 0);
    if (panel && texts[0]) qkv_json_put(panel, "texts", json_string(texts));
    if (panel) qkv_recipe_add_summary(panel, &summary);
    qkv_fingerprint_add(all, summary.digest, sizeof summary.digest);
    return qkv_json_push(list, panel) == 0 ? QKV_OK : qkv_fail_memory(err);
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

static int add_table(json_t *list, const study_table *table, size_t n_panels, qkv_fingerprint *all,
                     qkv_error *err) {
    char texts[QKV_FINGERPRINT_SIZE];
    float *values = qkv_calloc(table->n_cells, sizeof *values);
    for (size_t i = 0; values && i < table->n_cells; i++)
        values[i] = table->cells[i].text ? 0 : plain(table->cells[i].number);
    int status = digest_texts(table, texts, err);
    if (status == QKV_OK)
        status = add_panel(list, values, qkv_study_n_rows(table), table->n_columns, texts, n_panels,
                           all, err);
    free(values);
    return status;
}

static int add_map(json_t *list, const qkv_heatmap *map, size_t n_panels, qkv_fingerprint *all,
                   qkv_error *err) {
    int status = QKV_OK;
    for (size_t p = 0; p < map->n_panels && status == QKV_OK; p++) {
        const qkv_heatmap_panel *from = &map->panels[p];
        const size_t rows = (size_t)from->n_rows, cols = (size_t)from->n_cols;
        float *values = qkv_calloc(rows * cols, sizeof *values);
        for (size_t i = 0; values && i < rows * cols; i++) values[i] = plain(from->values[i]);
        status = add_panel(list, values, rows, cols, "", n_panels, all, err);
        free(values);
    }
    return status;
}

static int add_lines(json_t *list, const qkv_lines *lines, size_t n_panels, qkv_fingerprint *all,
                     qkv_error *err) {
    int status = QKV_OK;
    for (size_t p = 0; p < lines->n_series && status == QKV_OK; p++) {
        const qkv_series *from = &lines->series[p];
        float *values = qkv_calloc(from->n, 2 * sizeof *values);
        for (size_t i = 0; values && i < from->n; i++) {
            values[2 * i] = plain(from->x[i]);
            values[2 * i + 1] = plain(from->y[i]);
        }
        status = add_panel(list, values, from->n, 2, "", n_panels, all, err);
        free(values);
    }
    return status;
}

static int add_bars(json_t *list, const qkv_bars *bars, size_t n_panels, qkv_fingerprint *all,
                    qkv_error *err) {
    float *values = qkv_calloc(bars->n_bars, sizeof *values);
    for (size_t i = 0; values && i < bars->n_bars; i++) values[i] = plain(bars->bars[i].value);
    const int status = add_panel(list, values, bars->n_bars, 1, "", n_panels, all, err);
    free(values);
    return status;
}

static int add_picture(json_t *list, const study_picture *picture, size_t n, qkv_fingerprint *all,
                       qkv_error *err) {
    switch (picture->chart) {
    case STUDY_HEATMAP:
        return add_map(list, &picture->of.map, n, all, err);
    case STUDY_LINES:
        return add_lines(list, &picture->of.lines, n, all, err);
    case STUDY_BARS:
        return add_bars(list, &picture->of.bars, n, all, err);
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

static int add_panels(const qkv_study *study, json_t *recipe, qkv_error *err) {
    const size_t n = count_panels(study);
    char digest[QKV_FINGERPRINT_SIZE];
    qkv_fingerprint all;
    json_t *list = json_array();
    int status = qkv_fingerprint_start(&all, err);
    if (status != QKV_OK) return json_decref(list), status;
    for (size_t i = 0; i < study->n_tables && status == QKV_OK; i++)
        status = add_table(list, &study->tables[i], n, &all, err);
    for (size_t i = 0; i < study->n_pictures && status == QKV_OK; i++)
        status = add_picture(list, &study->pictures[i], n, &all, err);
    qkv_fingerprint_end(&all, digest);
    qkv_json_put(recipe, "panels", list);
    qkv_json_put(recipe, "digest", json_string(digest));
    return status;
}

/* ---- the recipe ---- */

static int add_model(json_t *recipe, const qkv_model *model, const char *name,
                     const char *hash_name, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(model, hash, err);
    if (status != QKV_OK) return status;
    const char *path = qkv_path_model(qkv_model_get_info(model)->path);
    qkv_json_put(recipe, name, qkv_json_text(path));
    qkv_json_put(recipe, hash_name, json_string(hash));
    return QKV_OK;
}

int qkv_study_make_recipe(qkv_study *study, const study_inputs *in, const void *options,
                          qkv_error *err) {
    const study_kind *kind = study->kind;
    const qkv_model_info *info = qkv_model_get_info(in->model);
    json_t *recipe = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:s, s:o}", "format", RECIPE_FORMAT, "kind", "study", "study",
        kind->name, "qkv_version", qkv_version(), "ggml_version", qkv_session_ggml(in->session),
        "backend", qkv_session_backend(in->session), "command",
        qkv_recipe_command((const char *const *)study->command, study->n_command));
    if (!recipe) return qkv_fail_memory(err);
    study->recipe = recipe;
    qkv_text_append_model(&study->model, info->label, info->path, info->weights_type);
    int status = add_model(recipe, in->model, "model", "model_hash", err);
    if (status == QKV_OK && in->other)
        status = add_model(recipe, in->other_model, "other_model", "other_hash", err);
    if (info->notices[0]) qkv_json_put(recipe, "model_notices", qkv_json_text(info->notices));
    json_t *work = qkv_fields_write(&kind->fields, options);
    json_t *inputs = qkv_recipe_prompts(&in->prompts);
    json_t *named = qkv_recipe_prompts(&in->edits.named);
    const int no_named = !inputs || !named || json_array_extend(inputs, named) != 0;
    json_decref(named);
    const int no_work = qkv_json_put(recipe, "options", work), /* both are taken over */
        no_inputs = qkv_json_put(recipe, "inputs", inputs);
    if (no_work || no_inputs || no_named) return qkv_fail_memory(err);
    if (status == QKV_OK) status = add_panels(study, recipe, err);
    return status == QKV_OK ? qkv_recipe_finish(recipe, study->id, &study->recipe_text, err)
                            : status;
}

int qkv_study_recipe_with(const qkv_study *study, const study_look *look, char **text,
                          qkv_error *err) {
    qkv_text out = {0};
    if (study->figure) { /* its recipe has the look in it */
        *text = qkv_strdup(study->recipe_text);
        return *text ? QKV_OK : qkv_fail_memory(err);
    }
    json_t *with = qkv_json_copy(study->recipe);
    json_t *fields = qkv_fields_write(&qkv_study_look_table, look);
    if (!with || !fields || qkv_json_put(with, "look", fields) != 0) {
        json_decref(with);
        return qkv_fail_memory(err);
    }
    qkv_json_append_value(&out, with);
    json_decref(with);
    if (!out.failed) return *text = out.data, QKV_OK;
    qkv_text_release(&out);
    return qkv_fail_memory(err);
}
