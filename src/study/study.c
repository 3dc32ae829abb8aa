/* The object that studies fill, and what can be asked of it. See study.h. */
#include "study/study.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "draw/draw.h"

/* ---- memory ---- */

void *qkv_study_keep(qkv_study *study, const void *bytes, size_t n) {
    char *copy = qkv_calloc(n ? n : 1, 1);
    if (copy && n && bytes) memcpy(copy, bytes, n);
    if (copy && QKV_PUSH(study->kept, study->kept_capacity, study->n_kept, (void *)copy))
        return copy;
    free(copy);
    study->failed = 1;
    return NULL;
}

const char *qkv_study_keep_text(qkv_study *study, const char *text) {
    return text ? qkv_study_keep(study, text, strlen(text) + 1) : NULL;
}

/* The text of the same column in the row before; NULL: none. */
static const char *text_above(const study_table *table, size_t cell) {
    return cell < table->n_columns ? NULL : table->cells[cell - table->n_columns].text;
}

/* From the end: texts are compared with those above them, which are still there. */
static void free_table(study_table *table) {
    for (size_t i = table->n_cells; i-- > 0;) {
        if (table->cells[i].text != text_above(table, i)) free((char *)table->cells[i].text);
    }
    for (size_t i = 0; table->columns && i < table->n_columns; i++) free(table->columns[i]);
    free(table->columns);
    free(table->cells);
    free(table->name);
    free(table->title);
}

static void free_texts(char **texts, size_t n) {
    for (size_t i = 0; i < n; i++) free(texts[i]);
    free(texts);
}

void qkv_study_free(qkv_study *study) {
    if (!study) return;
    for (size_t i = 0; i < study->n_tables; i++) free_table(&study->tables[i]);
    for (size_t i = 0; i < study->n_pictures; i++) {
        free(study->pictures[i].name);
        free(study->pictures[i].title);
    }
    for (size_t i = 0; i < study->n_kept; i++) free(study->kept[i]);
    free_texts(study->notes, study->n_notes);
    free_texts(study->warnings, study->n_warnings);
    for (int i = 0; i < 3; i++) json_decref(study->set[i]);
    free(study->given);
    qkv_study_forget_ready(study);
    qkv_edit_data_free(study->edit_data);
    free(study->tables);
    free(study->pictures);
    free(study->kept);
    free(study->title);
    free(study->recipe_text);
    json_decref(study->recipe);
    json_decref(study->attention);
    qkv_text_release(&study->model);
    qkv_own_prompts_release(&study->linked);
    qkv_figure_free(study->figure);
    free(study);
}

/* ---- words ---- */

static char *format_text(const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    const int length = qkv_vformat(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : qkv_calloc((size_t)length + 1, 1);
    if (text) qkv_vformat(text, (size_t)length + 1, format, args);
    return text;
}

/* Takes over the text. */
static int push_text(qkv_study *study, char ***texts, size_t *capacity, size_t *n, char *text) {
    if (text && QKV_PUSH(*texts, *capacity, *n, text)) return QKV_OK;
    free(text);
    study->failed = 1;
    return QKV_ERR_MEMORY;
}

int qkv_study_set_title(qkv_study *study, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *title = format_text(format, args);
    va_end(args);
    if (!title) return study->failed = 1, QKV_ERR_MEMORY;
    free(study->title);
    study->title = title;
    return QKV_OK;
}

int qkv_study_note(qkv_study *study, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = format_text(format, args);
    va_end(args);
    return push_text(study, &study->notes, &study->notes_capacity, &study->n_notes, text);
}

int qkv_study_warn(qkv_study *study, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = format_text(format, args);
    va_end(args);
    return push_text(study, &study->warnings, &study->warnings_capacity, &study->n_warnings, text);
}

/* ---- tables ---- */

size_t qkv_study_n_rows(const study_table *table) {
    return table->n_columns ? table->n_cells / table->n_columns : 0;
}

int qkv_study_add_table(qkv_study *study, const char *name, const char *title,
                        const char *const *columns, size_t n_columns, qkv_error *err) {
    study_table table = {.name = qkv_strdup(name),
                         .title = qkv_strdup(title ? title : name),
                         .columns = qkv_calloc(n_columns, sizeof *table.columns),
                         .n_columns = n_columns};
    int failed = !table.name || !table.title || !table.columns;
    for (size_t i = 0; i < n_columns && !failed; i++) {
        table.columns[i] = qkv_strdup(columns[i]);
        failed = !table.columns[i];
    }
    if (!failed && QKV_PUSH(study->tables, study->tables_capacity, study->n_tables, table))
        return QKV_OK;
    free_table(&table);
    study->failed = 1;
    return qkv_fail_memory(err);
}

int qkv_study_add_row(qkv_study *study, const study_value *values, qkv_error *err) {
    study_table *table = &study->tables[study->n_tables - 1];
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *above = text_above(table, table->n_cells);
        /* A text that repeats down a column is held once. */
        const int repeats = above && values[i].text && strcmp(above, values[i].text) == 0;
        study_value cell = {values[i].number, repeats ? above : qkv_strdup(values[i].text)};
        const int failed = values[i].text && !cell.text;
        if (!failed && QKV_PUSH(table->cells, table->capacity, table->n_cells, cell)) continue;
        if (!repeats) free((char *)cell.text);
        study->failed = 1;
        return qkv_fail_memory(err);
    }
    return QKV_OK;
}

/* ---- pictures ---- */

static study_picture *add_picture(qkv_study *study, const char *name, const char *title,
                                  study_chart chart) {
    study_picture picture = {.name = qkv_strdup(name), .title = qkv_strdup(title), .chart = chart};
    const int failed = !picture.name || (title && !picture.title);
    if (!failed && QKV_PUSH(study->pictures, study->pictures_capacity, study->n_pictures, picture))
        return &study->pictures[study->n_pictures - 1];
    free(picture.name);
    free(picture.title);
    study->failed = 1;
    return NULL;
}

int qkv_study_add_heatmap(qkv_study *study, const char *name, const char *title,
                          const qkv_heatmap *map, qkv_error *err) {
    study_picture *picture = add_picture(study, name, title, STUDY_HEATMAP);
    if (!picture) return qkv_fail_memory(err);
    return qkv_study_copy_heatmap(study, &picture->of.map, map, err);
}

int qkv_study_add_lines(qkv_study *study, const char *name, const char *title,
                        const qkv_lines *lines, qkv_error *err) {
    study_picture *picture = add_picture(study, name, title, STUDY_LINES);
    if (!picture) return qkv_fail_memory(err);
    return qkv_study_copy_lines(study, &picture->of.lines, lines, err);
}

int qkv_study_add_bars(qkv_study *study, const char *name, const char *title, const qkv_bars *bars,
                       qkv_error *err) {
    study_picture *picture = add_picture(study, name, title, STUDY_BARS);
    if (!picture) return qkv_fail_memory(err);
    return qkv_study_copy_bars(study, &picture->of.bars, bars, err);
}

int qkv_study_link(qkv_study *study, study_cells cells, size_t prompt) {
    if (study->n_pictures == 0) return QKV_ERR_ARGUMENT;
    study->pictures[study->n_pictures - 1].cells = cells;
    study->pictures[study->n_pictures - 1].prompt = prompt;
    return QKV_OK;
}

int qkv_study_link_places(qkv_study *study, const int32_t *layers, const int32_t *columns) {
    if (study->n_pictures == 0) return QKV_ERR_ARGUMENT;
    study_picture *picture = &study->pictures[study->n_pictures - 1];
    const qkv_heatmap_panel *panel = &picture->of.map.panels[0];
    picture->layers = qkv_study_keep(study, layers, (size_t)panel->n_rows * sizeof *layers);
    picture->columns = qkv_study_keep(study, columns, (size_t)panel->n_cols * sizeof *columns);
    return QKV_OK;
}

int qkv_study_link_tokens(qkv_study *study, const qkv_model *model, const int32_t *tokens,
                          size_t n_tokens, qkv_error *err) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = tokens;
    prompt.n_tokens = n_tokens;
    qkv_own_prompts_release(&study->linked);
    const int status = qkv_prompts_take(&study->linked, &prompt, 1, model, err);
    return status == QKV_OK ? qkv_prompt_make_labels(&study->linked.items[0], model, err) : status;
}

void qkv_study_link_second(qkv_study *study, const study_second *second) {
    study->second =
        (study_second){.names = {qkv_study_keep_text(study, second->names[0]),
                                 qkv_study_keep_text(study, second->names[1])},
                       .prompt = second->prompt,
                       .edits = second->edits ? qkv_study_keep_text(study, second->edits) : NULL};
}

/* ---- looking ---- */

int qkv_study_get_info(const qkv_study *study, qkv_study_info *info, qkv_error *err) {
    QKV_NEED(err, study);
    QKV_NEED(err, info);
    const qkv_figure *fig = study->figure;
    qkv_study_info own = {.kind = study->kind->name,
                          .title = study->title,
                          .n_tables = study->n_tables,
                          .n_pictures = study->n_pictures,
                          .recipe = study->recipe_text,
                          .id = study->id,
                          .n_printed = study->kind->figure      ? 0
                                       : study->kind->n_printed ? study->kind->n_printed
                                       : study->n_printed       ? study->n_printed
                                                                : 1,
                          .layer = -1,
                          .head = -1,
                          .n_failed = study->n_failed};
    if (fig) {
        own.n_maps = fig->rows * fig->cols;
        own.map_rows = fig->rows;
        own.map_columns = fig->cols;
        own.n_prompts = fig->prompts.n;
        own.layer = fig->layer;
        own.head = fig->head;
        own.low = fig->low;
        own.high = fig->high;
        own.figure_title = fig->title;
        own.edits = fig->operations.length ? fig->operations.data : "";
        own.small_print = fig->small_print;
    }
    return qkv_sized_write(info, &own, sizeof own, "qkv_study_info", err);
}

int qkv_study_get_map(const qkv_study *study, size_t index, qkv_study_map *map, qkv_error *err) {
    QKV_NEED(err, study);
    QKV_NEED(err, map);
    const qkv_figure *fig = study->figure;
    const size_t n = fig ? fig->rows * fig->cols : 0;
    if (index >= n) return qkv_fail(err, QKV_ERR_ARGUMENT, "map %zu of a study with %zu", index, n);
    const figure_cell *cell = &fig->cells[index];
    const qkv_study_map own = {
        .title = cell->title,
        .edits = cell->edits,
        .prompt = cell->prompt,
        .layer = cell->layer,
        .head = cell->head,
        .n_rows = (int64_t)cell->n_rows,
        .n_columns = (int64_t)cell->n_cols,
        .values = cell->values,
        .whole = fig->options.report ? cell->pattern : NULL,
        .unmodified = fig->options.report ? fig->plain[cell->prompt] : NULL,
    };
    return qkv_sized_write(map, &own, sizeof own, "qkv_study_map", err);
}

int qkv_study_get_prompt(const qkv_study *study, size_t index, qkv_prompt *prompt, qkv_error *err) {
    QKV_NEED(err, study);
    QKV_NEED(err, prompt);
    const size_t n = study->figure ? study->figure->prompts.n : 0;
    if (index >= n)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "prompt %zu of a figure with %zu", index, n);
    const qkv_own_prompt *from = &study->figure->prompts.items[index];
    const qkv_prompt own = {.text = from->text,
                            .length = from->length,
                            .tokens = from->tokens,
                            .n_tokens = from->n_tokens};
    return qkv_sized_write(prompt, &own, sizeof own, "qkv_prompt", err);
}

static const study_table *table_at(const qkv_study *study, size_t table) {
    return study && table < study->n_tables ? &study->tables[table] : NULL;
}

int qkv_study_get_table(const qkv_study *study, size_t table, qkv_study_table *to, qkv_error *err) {
    QKV_NEED(err, study);
    QKV_NEED(err, to);
    const study_table *from = table_at(study, table);
    if (!from)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "table %zu of a study with %zu", table,
                        study->n_tables);
    const qkv_study_table own = {.name = from->name,
                                 .title = from->title,
                                 .n_rows = qkv_study_n_rows(from),
                                 .n_columns = from->n_columns};
    return qkv_sized_write(to, &own, sizeof own, "qkv_study_table", err);
}

const char *qkv_study_column(const qkv_study *study, size_t table, size_t column) {
    const study_table *from = table_at(study, table);
    return from && column < from->n_columns ? from->columns[column] : NULL;
}

int qkv_study_get_value(const qkv_study *study, size_t table, size_t row, size_t column,
                        double *number, const char **text, qkv_error *err) {
    QKV_NEED(err, study);
    QKV_NEED(err, number);
    QKV_NEED(err, text);
    const study_table *from = table_at(study, table);
    if (!from || column >= from->n_columns || row >= qkv_study_n_rows(from))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the study has no table %zu with row %zu, column %zu", table, row, column);
    const study_value *cell = &from->cells[row * from->n_columns + column];
    *number = cell->text ? (double)NAN : cell->number;
    *text = cell->text;
    return QKV_OK;
}

const char *qkv_study_picture_name(const qkv_study *study, size_t picture) {
    return study && picture < study->n_pictures ? study->pictures[picture].name : NULL;
}

const char *qkv_study_picture_title(const qkv_study *study, size_t picture) {
    if (!study || picture >= study->n_pictures) return NULL;
    const char *own = study->pictures[picture].title;
    return own ? own : study->title ? study->title : "";
}

const char *qkv_study_get_note(const qkv_study *study, size_t index) {
    return study && index < study->n_notes ? study->notes[index] : NULL;
}

const char *qkv_study_warning(const qkv_study *study, size_t index) {
    if (!study) return NULL;
    if (study->figure) return qkv_figure_warning(study->figure, index);
    return index < study->n_warnings ? study->warnings[index] : NULL;
}
