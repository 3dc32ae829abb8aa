/* The page of a study: heatmaps whose cells open, other charts as they are drawn, all tables. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/memory.h"
#include "draw/draw.h"
#include "study/html_page.h"
#include "study/study.h"

enum { MOST_ROWS = 5000 }; /* of a table */

/* ---- pictures ---- */

static json_t *describe_panel(const qkv_heatmap_panel *panel) {
    const size_t rows = (size_t)panel->n_rows, cols = (size_t)panel->n_cols;
    float *values = qkv_calloc(rows * cols, sizeof *values);
    if (!values) return NULL;
    for (size_t i = 0; i < rows * cols; i++) values[i] = (float)panel->values[i];
    const html_map map = {.values = values, .rows = rows, .cols = cols, .step = 1};
    json_t *json =
        json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:o}", "title",
                  qkv_json_text(panel->title ? panel->title : ""), "rows", (int)panel->n_rows,
                  "cols", (int)panel->n_cols, "values", qkv_html_map_json(&map, HTML_F32),
                  "row_labels", qkv_html_texts(panel->row_labels, rows), "col_labels",
                  qkv_html_texts(panel->col_labels, cols), "texts",
                  qkv_html_texts(panel->cell_texts, rows * cols));
    free(values);
    return json;
}

static json_t *describe_map(const qkv_heatmap *map, const study_picture *picture) {
    static const char *const cells[] = {"none", "heads", "tokens"};
    json_t *panels = json_array();
    for (size_t i = 0; i < map->n_panels; i++)
        qkv_json_push(panels, describe_panel(&map->panels[i]));
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:b, s:s, s:[o, o], s:s, s:I, s:o, s:o, s:o}", "type", "heatmap",
        "name", picture->name, "row_axis", qkv_json_text(map->row_axis ? map->row_axis : ""),
        "col_axis", qkv_json_text(map->col_axis ? map->col_axis : ""), "label",
        qkv_json_text(map->color.label ? map->color.label : ""), "diverging", map->diverging,
        "scale", map->color.scale == QKV_SCALE_LOG ? "log" : "linear", "range",
        qkv_json_exact(map->color.low), qkv_json_exact(map->color.high), "cells",
        cells[picture->cells], "prompt", (json_int_t)picture->prompt, "layers",
        qkv_html_integers(picture->layers, (size_t)map->panels[0].n_rows), "columns",
        qkv_html_integers(picture->columns, (size_t)map->panels[0].n_cols), "panels", panels);
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
    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:o}", "type", "table", "name",
                     qkv_json_text(table->name), "title", qkv_json_text(table->title), "columns",
                     columns, "n_rows", (json_int_t)n, "rows", rows);
}

/* ---- the page ---- */

static int describe_parts(const qkv_study *study, const study_look *look, json_t **out,
                          qkv_error *err) {
    json_t *parts = *out = json_array();
    size_t first = 0;
    int status = look->picture ? qkv_study_find_picture(study, look->picture, &first, err) : QKV_OK;
    if (status == QKV_OK && study->n_pictures)
        status = describe_picture(study, first, look, parts, err);
    for (size_t i = 0; i < study->n_pictures && status == QKV_OK; i++) {
        if (i != first) status = describe_picture(study, i, look, parts, err);
    }
    for (size_t i = 0; i < study->n_tables && status == QKV_OK; i++)
        qkv_json_push(parts, describe_table(&study->tables[i]));
    return status;
}

static void put_about(const qkv_study *study, qkv_text *about) {
    const size_t n = json_array_size(json_object_get(study->attention, "prompts"));
    if (study->attention)
        qkv_text_printf(about,
                        "The attention of every head for %zu prompt%s is in this file, in F32.", n,
                        n == 1 ? "" : "s");
    else if (study->is_too_large)
        qkv_text_puts(about, "The attention of the cells is too large for a page; qkv figure heads "
                             "draws it.");
}

int qkv_study_html(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err) {
    const char *title = look->title ? look->title : study->title;
    qkv_text small_print = {0}, about = {0};
    char *recipe = NULL;
    json_t *parts = NULL;
    int status = look->no_recipe ? QKV_OK : qkv_study_recipe_with(study, look, &recipe, err);
    if (status == QKV_OK) status = describe_parts(study, look, &parts, err);
    if (!look->no_notes) qkv_study_small_print(study, &small_print);
    put_about(study, &about);
    if (status == QKV_OK && (small_print.failed || about.failed)) status = qkv_fail_memory(err);
    const html_page page = {
        .title = title,
        .name = study->title ? study->title : study->kind->name,
        .small_print = small_print.data,
        .about = about.data,
        .id = study->id,
        .recipe = recipe,
        .colormap = look->colormap ? look->colormap : QKV_COLORMAP_VIRIDIS,
        .parts = parts,
        .attention = study->attention,
    };
    if (status == QKV_OK) status = qkv_html_page_write(&page, out, err);
    qkv_text_release(&small_print);
    qkv_text_release(&about);
    json_decref(parts);
    free(recipe);
    return status;
}
