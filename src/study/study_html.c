/*
 * The page of a study: heatmaps whose cells say their number and open the attention that they are about, other
 * charts as they are drawn, all tables.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/memory.h"
#include "draw/draw.h"
#include "study/living.h"
#include "study/study.h"
#include "study/study_maps.h"

enum { MOST_ROWS = 5000 }; /* of a table */

/* ---- pictures ---- */

static json_t *describe_texts(const char *const *texts, size_t n) {
    if (!texts) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, qkv_json_text(texts[i] ? texts[i] : ""));
    return list;
}

static json_t *describe_panel(const qkv_heatmap_panel *panel) {
    const size_t rows = (size_t)panel->n_rows, cols = (size_t)panel->n_cols;
    float *values = qkv_calloc(rows * cols, sizeof *values);
    if (!values) return NULL;
    for (size_t i = 0; i < rows * cols; i++) values[i] = (float)panel->values[i];
    const living_map map = {.values = values, .rows = rows, .cols = cols, .step = 1};
    json_t *json =
        json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:o}", "title",
                  qkv_json_text(panel->title ? panel->title : ""), "rows", (int)panel->n_rows,
                  "cols", (int)panel->n_cols, "values", qkv_living_map_json(&map, LIVING_F32),
                  "row_labels", describe_texts(panel->row_labels, rows), "col_labels",
                  describe_texts(panel->col_labels, cols), "texts",
                  describe_texts(panel->cell_texts, rows * cols));
    free(values);
    return json;
}

static json_t *describe_places(const int32_t *places, int32_t n) {
    if (!places) return json_null();
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++) qkv_json_push(list, json_integer(places[i]));
    return list;
}

static json_t *describe_map(const qkv_heatmap *map, const study_picture *picture) {
    static const char *const cells[] = {"none", "heads", "tokens"};
    json_t *panels = json_array();
    for (size_t i = 0; i < map->n_panels; i++)
        qkv_json_push(panels, describe_panel(&map->panels[i]));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:s, s:[o, o], s:s, s:I, s:o, s:o, s:o}",
                     "type", "heatmap", "name", picture->name, "row_axis",
                     qkv_json_text(map->row_axis ? map->row_axis : ""), "col_axis",
                     qkv_json_text(map->col_axis ? map->col_axis : ""), "label",
                     qkv_json_text(map->color.label ? map->color.label : ""), "diverging",
                     map->diverging, "scale", map->color.scale == QKV_SCALE_LOG ? "log" : "linear",
                     "range", qkv_json_exact(map->color.low), qkv_json_exact(map->color.high),
                     "cells", cells[picture->cells], "prompt", (json_int_t)picture->prompt,
                     "layers", describe_places(picture->layers, map->panels[0].n_rows), "columns",
                     describe_places(picture->columns, map->panels[0].n_cols), "panels", panels);
}

/* Lines and bars are drawn by the library: an image. */
static int describe_image(const study_picture *picture, const study_look *look, json_t **out,
                          qkv_error *err) {
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    char *bytes = NULL;
    size_t n_bytes = 0;
    qkv_text text = {0};
    style.font = look->font;
    style.text = QKV_TEXT_PATHS;
    const int status =
        picture->chart == STUDY_LINES
            ? qkv_lines_render(&picture->of.lines, &style, "svg", &bytes, &n_bytes, err)
            : qkv_bars_render(&picture->of.bars, &style, "svg", &bytes, &n_bytes, err);
    if (status == QKV_OK) {
        qkv_text_puts(&text, "data:image/svg+xml;base64,");
        qkv_base64_append(&text, bytes, n_bytes);
        *out = text.failed ? NULL
                           : json_pack("{s:s, s:s, s:s}", "type", "image", "name", picture->name,
                                       "source", text.data);
    }
    qkv_text_release(&text);
    free(bytes);
    return status == QKV_OK && !*out ? qkv_fail_memory(err) : status;
}

static int describe_picture(const qkv_study *study, size_t at, const study_look *look, json_t *list,
                            qkv_error *err) {
    const study_picture *picture = &study->pictures[at];
    json_t *json = NULL;
    int status = QKV_OK;
    if (picture->chart == STUDY_HEATMAP)
        json = describe_map(&picture->of.map, picture);
    else
        status = describe_image(picture, look, &json, err);
    if (status == QKV_OK && json)
        qkv_json_put(json, "title", qkv_json_text(qkv_study_picture_title(study, at)));
    if (status == QKV_OK && qkv_json_push(list, json_incref(json)) != 0)
        status = qkv_fail_memory(err);
    json_decref(json);
    return status;
}

/* ---- tables ---- */

static json_t *describe_table(const study_table *table) {
    json_t *columns = json_array(), *rows = json_array(), *row = NULL;
    const size_t n = qkv_study_n_rows(table), shown = n < MOST_ROWS ? n : MOST_ROWS;
    for (size_t i = 0; i < table->n_columns; i++)
        qkv_json_push(columns, qkv_json_text(table->columns[i]));
    for (size_t i = 0; i < shown * table->n_columns; i++) {
        const study_value *cell = &table->cells[i];
        if (i % table->n_columns == 0) qkv_json_push(rows, row = json_array());
        qkv_json_push(row, cell->text ? qkv_json_text(cell->text) : qkv_json_real(cell->number));
    }
    return json_pack("{s:o, s:o, s:o, s:I, s:o}", "name", qkv_json_text(table->name), "title",
                     qkv_json_text(table->title), "columns", columns, "n_rows", (json_int_t)n,
                     "rows", rows);
}

/* ---- the page ---- */

static int describe(const qkv_study *study, const study_look *look, json_t **out, qkv_error *err) {
    json_t *pictures = json_array(), *tables = json_array();
    qkv_text small_print = {0};
    size_t first = 0;
    int status = look->picture ? qkv_study_find_picture(study, look->picture, &first, err) : QKV_OK;
    if (status == QKV_OK && study->n_pictures)
        status = describe_picture(study, first, look, pictures, err);
    for (size_t i = 0; i < study->n_pictures && status == QKV_OK; i++) {
        if (i != first) status = describe_picture(study, i, look, pictures, err);
    }
    for (size_t i = 0; i < study->n_tables; i++)
        qkv_json_push(tables, describe_table(&study->tables[i]));
    qkv_study_small_print(study, &small_print);
    const char *title = look->title ? look->title : study->title;
    const qkv_colormap colors = look->colormap ? look->colormap : QKV_COLORMAP_VIRIDIS;
    *out = json_pack(
        "{s:i, s:s, s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:O, s:b, s:o}", "format", 1, "kind",
        "study", "study", study->kind->name, "title", title ? qkv_json_text(title) : json_null(),
        "small_print", qkv_json_text(look->no_notes || !small_print.data ? "" : small_print.data),
        "id", study->id, "colormap", qkv_colormap_name(colors), "pictures", pictures, "tables",
        tables, "attention", study->attention ? study->attention : json_null(), "too_large",
        study->is_too_large, "colors", qkv_living_colors(colors));
    const int failed = !*out || small_print.failed;
    qkv_text_release(&small_print);
    return status == QKV_OK && failed ? qkv_fail_memory(err) : status;
}

int qkv_study_html(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err) {
    json_t *data = NULL;
    char *recipe = NULL;
    int status = describe(study, look, &data, err);
    if (status == QKV_OK && !look->no_recipe)
        status = qkv_study_recipe_with(study, look, &recipe, err);
    const living_page page = {
        .title = study->title ? study->title : study->kind->name, .data = data, .recipe = recipe};
    if (status == QKV_OK) status = qkv_living_page(&page, out, err);
    json_decref(data);
    free(recipe);
    return status;
}
