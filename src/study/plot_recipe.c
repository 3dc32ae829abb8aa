/* The recipe of a chart: its options, from which results, and what came out. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "qkv/version.h"
#include "study/plot.h"

/* ---- options ---- */

/* clang-format off: one option to a line */
#define PLAIN(member, kind) FIELD(qkv_plot_options, member, kind, NULL, 0, 0, NULL)
#define WORDS(member, words) FIELD_WORDS(qkv_plot_options, member, words, NULL)
#define LIMITED(member, kind, least, most)                                                         \
    FIELD(qkv_plot_options, member, kind, NULL, least, most, NULL)

enum { MOST_TEXT = 20000 }; /* bytes of texts that files bring along */

/* Everything in qkv_plot_options but the command, and what each can be. */
static const field fields[] = {
    WORDS(kind, "auto|heatmap|lines|ranking"),
    LIMITED(metric, TEXT, 0, MOST_TEXT),
    LIMITED(target, TEXT, 0, MOST_TEXT),
    LIMITED(op, TEXT, 0, MOST_TEXT),
    LIMITED(epsilon, TEXT, 0, MOST_TEXT),
    LIMITED(layers, TEXT, 0, MOST_TEXT),
    LIMITED(heads, TEXT, 0, MOST_TEXT),
    PLAIN(change, FLAG),
    WORDS(by, "auto|target|layer|head"),
    LIMITED(top, INT, 1, 2000),
    WORDS(order, "auto|largest|smallest|magnitude"),
    WORDS(band, "auto|range|sd|none"),
    WORDS(scale, "auto|linear|log"),
    WORDS(axis, "auto|linear|log"),
    PLAIN(range, RANGE),
    LIMITED(title, TEXT, 0, MOST_TEXT),
    LIMITED(dpi, REAL, 10, 2400),
    WORDS(colormap, "auto|coolwarm|viridis|cividis|magma|grey"),
    WORDS(text, "auto|paths|text"),
    LIMITED(font, TEXT, 0, MOST_TEXT),
    LIMITED(width, REAL, 1, 14400),
    PLAIN(hide_notes, FLAG),
    LIMITED(font_size, REAL, 5, 72),
};
/* clang-format on */
const field_table qkv_plot_table = FIELD_TABLE(fields, QKV_FIELD_WORK);

/* ---- results ---- */

static uint64_t bits_of(double value) {
    uint64_t bits;
    if (isnan(value)) return UINT64_MAX;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Of every cell of the metric, whatever the file's pages look like. */
static int hash_results(const qkv_plot *p, char out[QKV_FINGERPRINT_SIZE], qkv_error *err) {
    qkv_fingerprint print;
    const int status = qkv_fingerprint_start(&print, err);
    if (status != QKV_OK) return status;
    qkv_fingerprint_add(&print, p->metric, strlen(p->metric) + 1);
    qkv_fingerprint_add(&print, p->info->spec_hash, strlen(p->info->spec_hash) + 1);
    for (size_t i = 0; i < p->n_rows; i++) {
        const qkv_sweep_row *row = &p->rows[i];
        const uint64_t numbers[] = {(uint64_t)row->prompt, (uint64_t)row->layer,
                                    (uint64_t)row->head,   (uint64_t)row->target,
                                    (uint64_t)row->op,     bits_of(row->epsilon),
                                    bits_of(row->value),   (uint64_t)row->missing};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            qkv_fingerprint_add_number(&print, numbers[k]);
        }
    }
    qkv_fingerprint_end(&print, out);
    return QKV_OK;
}

/* ---- numbers ---- */

/* Mean, low and high of all that is shown, as one panel. */
static json_t *describe_values(const qkv_plot *p, qkv_error *err) {
    float *values = qkv_calloc(p->n_shown, 3 * sizeof *values);
    panel_summary summary;
    json_t *panel = NULL, *list = json_array();
    for (size_t i = 0; values && i < p->n_shown; i++) {
        const plot_summary *group = &p->groups[p->shown[i]];
        values[3 * i] = (float)group->mean;
        values[3 * i + 1] = (float)group->low;
        values[3 * i + 2] = (float)group->high;
    }
    if (values && p->n_shown &&
        qkv_panel_summarize(&summary, values, p->n_shown, 3, PANEL_SAMPLE, err) == QKV_OK) {
        panel = json_object();
        qkv_recipe_add_summary(panel, &summary);
    }
    free(values);
    if (p->n_shown) qkv_json_push(list, panel);
    return list;
}

/* ---- lists ---- */

static json_t *target_list(const qkv_plot *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->targets.n; i++) {
        const char *name = p->target_names[i];
        qkv_json_push(list, qkv_json_text(name));
    }
    return list;
}

static json_t *epsilon_list(const qkv_plot *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_epsilons; i++) {
        if (!isnan(p->epsilons[i])) qkv_json_push(list, qkv_json_exact(p->epsilons[i]));
    }
    return list;
}

static json_t *index_list(const plot_indices *indices) {
    json_t *list = json_array();
    for (size_t i = 0; i < indices->n; i++) {
        qkv_json_push(list, json_integer(indices->at[i]));
    }
    return list;
}

/* ---- the recipe ---- */

/* Files that are handed on must not tell where on somebody's machine things lie. */
static json_t *path_of(const char *path) {
    return qkv_json_text(qkv_path_base(path));
}

static json_t *describe(const qkv_plot *p, const char *hash, qkv_error *err) {
    const qkv_plot_options *o = &p->options;
    json_t *json = json_pack(
        "{s:i, s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, "
        "s:o}",
        "format", RECIPE_FORMAT, "kind", qkv_plot_kind_name(p->kind), "qkv_version", qkv_version(),
        "command", qkv_recipe_command(o->command, o->n_command), "results", path_of(p->info->path),
        "results_hash", hash, "spec_hash", qkv_json_text(p->info->spec_hash), "model",
        path_of(p->info->model_path), "model_hash", qkv_json_text(p->info->model_hash), "options",
        qkv_fields_write(&qkv_plot_table, o), "metric", qkv_json_text(p->metric), "targets",
        target_list(p), "op", qkv_json_text(p->op_name), "epsilon", epsilon_list(p), "layers",
        index_list(&p->layers), "heads", index_list(&p->heads), "cells", (json_int_t)p->n_cells,
        "missing", (json_int_t)p->n_missing, "panels", describe_values(p, err));
    if (json && p->kind == QKV_PLOT_HEATMAP) {
        const char *colormap = qkv_colormap_name(qkv_plot_colormap(p));
        qkv_json_put(json, "colormap", json_string(colormap));
    }
    if (json && p->info->model_notices[0])
        qkv_json_put(json, "model_notices", qkv_json_text(p->info->model_notices));
    return json;
}

int qkv_plot_make_recipe(qkv_plot *p, qkv_error *err) {
    char hash[QKV_FINGERPRINT_SIZE];
    int status = hash_results(p, hash, err);
    if (status != QKV_OK) return status;
    json_t *recipe = describe(p, hash, err);
    status = qkv_recipe_finish(recipe, p->id, &p->recipe, err);
    json_decref(recipe);
    return status;
}
