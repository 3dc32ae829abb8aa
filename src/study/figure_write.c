/*
 * A figure as bytes: one list of formats, each made in memory. A file is those bytes, written
 * whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_tokens.h"
#include "base/memory.h"
#include "draw/draw.h"
#include "qkv/store.h"
#include "store/store_formats.h"
#include "study/figure.h"
#include "study/html_page.h"
#include "study/print.h"
#include "study/recipe_file.h"

/* What a format is called, and where its bytes go. */
typedef struct target {
    const char *format;
    char **bytes;
    size_t *n_bytes;
} target;

/* ---- drawings ---- */

static int warn_panels(qkv_figure *fig, int32_t n, const qkv_grid_report *report, const char *what,
                       qkv_error *err) {
    if (n == 0) return QKV_OK;
    return qkv_figure_warn(
        fig,
        qkv_figure_printf("%s %d of %d panels, their cells are too small; try a larger `%s`", what,
                          (int)n, (int)report->panels,
                          fig->options.width > 0 ? "width" : "panel_size"),
        err);
}

/* What was asked for by name and cannot be drawn; said once. */
static int warn_undrawn(qkv_figure *fig, const qkv_grid_report *report, qkv_error *err) {
    int status = QKV_OK;
    if (fig->warned) return status;
    fig->warned = 1;
    for (size_t i = 0; status == QKV_OK && qkv_script_name(i); i++) {
        if (report->scripts >> i & 1) status = qkv_figure_warn(fig, qkv_print_missing(i), err);
    }
    if (status != QKV_OK) return status;
    if (fig->options.values == QKV_VALUES_ALWAYS) {
        status =
            warn_panels(fig, report->without_values, report, "`values` always: no numbers in", err);
    }
    if (fig->options.labels != QKV_LABELS_TOKENS || status != QKV_OK) return status;
    status = warn_panels(fig, report->with_indices, report,
                         "`labels` tokens: positions in place of tokens at", err);
    if (status != QKV_OK) return status;
    return warn_panels(fig, report->thinned, report,
                       "`labels` tokens: only every second or third token at", err);
}

static int check_drawing(qkv_figure *fig, const char *format, qkv_error *err) {
    char path[32];
    const qkv_grid *grid = NULL;
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    qkv_grid_report report = QKV_GRID_REPORT_INIT;
    snprintf(path, sizeof path, "figure.%s", format);
    int status = qkv_figure_page(fig, &grid, &style, err);
    if (status == QKV_OK) status = qkv_grid_check(grid, &style, path, &report, err);
    return status == QKV_OK ? warn_undrawn(fig, &report, err) : status;
}

static int render_drawing(qkv_figure *fig, const target *to, qkv_error *err) {
    const qkv_grid *grid = NULL;
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    int status = fig->warned ? QKV_OK : check_drawing(fig, to->format, err);
    if (status == QKV_OK) status = qkv_figure_page(fig, &grid, &style, err);
    if (status != QKV_OK) return status;
    return qkv_grid_render(grid, &style, to->format, to->bytes, to->n_bytes, err);
}

/* The text becomes the bytes, unless something failed. */
static int hand_over(qkv_text *text, int status, const target *to) {
    if (status != QKV_OK) {
        qkv_text_release(text);
        return status;
    }
    *to->bytes = text->data;
    *to->n_bytes = text->length;
    return QKV_OK;
}

/* ---- reports ---- */

static int check_report(qkv_figure *fig, const char *format, qkv_error *err) {
    if (fig->report) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "a figure made without `report` cannot be reported as %s", format);
}

/* Reports of text carry it like drawings; JSON holds it as a member. */
static int add_recipe(const qkv_figure *fig, const target *to, qkv_text *text, qkv_error *err) {
    if (strcmp(to->format, "json") == 0) return QKV_OK;
    qkv_text with = {0};
    const int status =
        qkv_recipe_file_write(text->data, text->length, to->format, fig->recipe, &with, err);
    qkv_text_release(status == QKV_OK ? text : &with);
    if (status == QKV_OK) *text = with;
    return status;
}

static int render_report(qkv_figure *fig, const target *to, qkv_error *err) {
    qkv_text text = {0};
    int status = check_report(fig, to->format, err);
    if (status == QKV_OK) status = qkv_report_format(fig->report, to->format, &text, err);
    if (status == QKV_OK && !fig->options.no_recipe) status = add_recipe(fig, to, &text, err);
    return hand_over(&text, status, to);
}

/* ---- numbers ---- */

/* Per cell: its name, and the keys NAME.title and NAME.edits. */
typedef struct data_names {
    char tensor[48], title[64], edits[64];
} data_names;

static void name_cells(const qkv_figure *fig, data_names *names, qkv_store_tensor *tensors,
                       const char **metadata) {
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        const size_t row = i / fig->cols, col = i % fig->cols;
        snprintf(names[i].tensor, sizeof names[i].tensor, "r%zu.c%zu", row, col);
        snprintf(names[i].title, sizeof names[i].title, "%s.title", names[i].tensor);
        snprintf(names[i].edits, sizeof names[i].edits, "%s.edits", names[i].tensor);
        tensors[i] = (qkv_store_tensor){.size = sizeof *tensors,
                                        .name = names[i].tensor,
                                        .data = cell->values,
                                        .n_dims = 2,
                                        .shape = {(int64_t)cell->n_rows, (int64_t)cell->n_cols, 0}};
        const char *const pairs[] = {names[i].title, cell->title, names[i].edits, cell->edits};
        memcpy(metadata + 4 * i, pairs, sizeof pairs);
    }
}

/* The prompts that cells name by their number. */
static json_t *describe_prompts(const qkv_figure *fig) {
    json_t *list = json_array();
    for (size_t i = 0; i < fig->prompts.n; i++) {
        const qkv_own_prompt *prompt = &fig->prompts.items[i];
        json_t *entry =
            json_pack("{s:o}", "tokens", qkv_json_token_ids(prompt->tokens, prompt->n_tokens));
        if (prompt->text)
            qkv_json_put(entry, "text", qkv_json_string(prompt->text, prompt->length));
        json_t *strings = prompt->labels ? json_array() : NULL;
        for (size_t t = 0; strings && t < prompt->n_tokens; t++)
            qkv_json_push(strings, qkv_json_text(prompt->labels[t]));
        if (prompt->labels) qkv_json_put(entry, "token_strings", strings);
        qkv_json_push(list, entry);
    }
    return list;
}

/* What every tensor is. */
static json_t *describe_cells(const qkv_figure *fig) {
    json_t *all = json_object();
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        char name[48];
        snprintf(name, sizeof name, "r%zu.c%zu", i / fig->cols, i % fig->cols);
        json_t *entry = json_pack(
            "{s:s, s:i, s:i, s:I, s:o, s:o, s:[I, I], s:[s, s]}", "site", qkv_site_name(fig->site),
            "layer", (int)fig->layer, "head", (int)fig->head, "prompt", (json_int_t)cell->prompt,
            "title", qkv_json_text(cell->title), "edits", qkv_json_text(cell->edits), "shape",
            (json_int_t)fig->prompts.items[cell->prompt].n_tokens,
            (json_int_t)qkv_figure_n_cols(fig, cell->prompt), "axes", "query", "key");
        qkv_json_put(all, name, entry);
    }
    return all;
}

static char *dump(json_t *json) {
    char *text = json ? qkv_json_dump(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

static int render_values(qkv_figure *fig, const target *to, qkv_error *err) {
    const size_t n = fig->rows * fig->cols;
    data_names *names = qkv_calloc(n, sizeof *names);
    qkv_store_tensor *tensors = qkv_calloc(n, sizeof *tensors);
    const char **metadata = qkv_calloc(4 * n + 6, sizeof *metadata);
    char *prompts = dump(describe_prompts(fig)), *described = dump(describe_cells(fig));
    int status = QKV_OK;
    if (names && tensors && metadata && prompts && described) {
        name_cells(fig, names, tensors, metadata);
        const char *const pairs[] = {"prompts", prompts,  "tensors",
                                     described, "recipe", fig->recipe};
        memcpy(metadata + 4 * n, pairs, sizeof pairs);
        status =
            qkv_store_render_tensors_as(tensors, n, metadata, 2 * n + 2 + !fig->options.no_recipe,
                                        to->format, to->bytes, to->n_bytes, err);
    } else {
        status = qkv_fail_memory(err);
    }
    free(names);
    free(tensors);
    free(metadata);
    free(prompts);
    free(described);
    return status;
}

/* A row for each cell of each panel: queries and keys by their numbers. */
static int render_table(qkv_figure *fig, const target *to, qkv_error *err) {
    qkv_text text = {0};
    qkv_text_puts(&text, "row,col,title,edits,query,key,value\n");
    for (size_t i = 0; i < fig->rows * fig->cols && !text.failed; i++) {
        const figure_cell *cell = &fig->cells[i];
        qkv_text about = {0};
        qkv_text_printf(&about, "%zu,%zu,", i / fig->cols, i % fig->cols);
        qkv_csv_append(&about, cell->title);
        qkv_text_puts(&about, ",");
        qkv_csv_append(&about, cell->edits);
        for (size_t v = 0; v < cell->n_rows * cell->n_cols && !about.failed; v++) {
            const size_t key = v % cell->n_cols + (size_t)fig->options.skip_keys;
            qkv_text_append(&text, about.data, about.length);
            qkv_text_printf(&text, ",%zu,%zu,", v / cell->n_cols, key);
            qkv_text_append_number(&text, (double)cell->values[v]);
            qkv_text_puts(&text, "\n");
        }
        text.failed |= about.failed;
        qkv_text_release(&about);
    }
    return hand_over(&text, text.failed ? qkv_fail_memory(err) : QKV_OK, to);
}

/* ---- the page ---- */

static int warn_hatched(qkv_figure *fig, qkv_error *err) {
    if (fig->options.masked != QKV_MASKED_HATCH || fig->warned_page) return QKV_OK;
    fig->warned_page = 1;
    return qkv_figure_warn(fig, qkv_strdup("`masked` hatch: a page shows masked cells white"), err);
}

static int check_page(qkv_figure *fig, const char *format, qkv_error *err) {
    if (fig->scores) return warn_hatched(fig, err);
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "a figure made without `page` or `report` cannot be written as %s", format);
}

static int render_page(qkv_figure *fig, const target *to, qkv_error *err) {
    qkv_text text = {0};
    int status = check_page(fig, to->format, err);
    if (status == QKV_OK) status = qkv_figure_html(fig, &text, err);
    return hand_over(&text, status, to);
}

/* ---- the list ---- */

typedef struct figure_format {
    const char *name;
    int (*render)(qkv_figure *fig, const target *to, qkv_error *err);
    int (*check)(qkv_figure *fig, const char *format, qkv_error *err); /* NULL: cannot fail */
} figure_format;

static const figure_format formats[] = {
    {"png", render_drawing, check_drawing},
    {"svg", render_drawing, check_drawing},
    {"pdf", render_drawing, check_drawing},
    {"md", render_report, check_report},
    {"html", render_page, check_page},
    {"json", render_report, check_report},
    {"safetensors", render_values, NULL},
    {"npz", render_values, NULL},
    {"csv", render_table, NULL},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

const char *qkv_figure_format(size_t index) {
    return index < N_FORMATS ? formats[index].name : NULL;
}

static int find_format(const figure_format **out, const char *name, qkv_error *err) {
    for (size_t i = 0; i < N_FORMATS; i++) {
        *out = &formats[i];
        if (qkv_equal_ignoring_case(name, formats[i].name)) return QKV_OK;
    }
    return qkv_fail(
        err, QKV_ERR_ARGUMENT,
        "a figure cannot be written as '%s': the formats are png, svg and pdf, html, md "
        "and json, and safetensors, npz and csv",
        name);
}

int qkv_figure_render(qkv_figure *fig, const char *format, char **bytes, size_t *n_bytes,
                      qkv_error *err) {
    const figure_format *found;
    if (!bytes || !n_bytes) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no place for the bytes");
    }
    *bytes = NULL;
    *n_bytes = 0;
    if (!fig || !format) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no figure or no format");
    const int status = find_format(&found, format, err);
    if (status != QKV_OK) return status;
    return found->render(fig, &(target){found->name, bytes, n_bytes}, err);
}
