/* What a plot says: titles, labels, small print, recipe. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "qkv/figure.h"
#include "qkv/version.h"
#include "study/plot.h"

#define DOT " \xc2\xb7 "
#define EPSILON "\xce\xb5"
#define NBSP "\xc2\xa0" /* a line is not broken there */

/* ---- names ---- */

const char *qkv_plot_target_name(const qkv_plot *p, size_t target) {
    const char *name = p->target_names[target], *part = qkv_figure_part_name(name);
    if (part) return part;
    return strcmp(name, "none") == 0 ? "unedited" : name;
}

static int is_edited(const qkv_plot *p) {
    return p->op_name[0] != '\0';
}

/* "scale, ε = 0.001", behind `before` when there is anything. */
static void add_operation(const qkv_plot *p, qkv_text *text, const char *before) {
    if (!is_edited(p)) return;
    qkv_text_printf(text, "%s%s", before, p->op_name);
    if (p->n_epsilons == 1 && !isnan(p->epsilons[0])) {
        qkv_text_printf(text, ", " EPSILON NBSP "=" NBSP "%g", p->epsilons[0]);
    }
}

void qkv_plot_panel_title(const qkv_plot *p, size_t target, qkv_text *text) {
    qkv_text_printf(text, "*%s*", qkv_plot_target_name(p, target));
    add_operation(p, text, ", ");
}

void qkv_plot_head_name(const qkv_plot *p, size_t layer, size_t head, qkv_text *text) {
    const int l = (int)p->layers.at[layer], h = (int)p->heads.at[head];
    const int only_all = p->heads.n == 1 && h < 0;
    if (l < 0) {
        qkv_text_puts(text, "all layers");
    } else {
        qkv_text_printf(text, "layer %d", l);
    }
    if (only_all) return;
    if (h < 0) {
        qkv_text_puts(text, ", all heads");
    } else {
        qkv_text_printf(text, ", head %d", h);
    }
}

void qkv_plot_value_label(const qkv_plot *p, qkv_text *text) {
    qkv_text_printf(text, "%s%s", p->options.change ? "change of " : "", p->metric);
}

static void add_title(const qkv_plot *p, qkv_text *text) {
    const char *change = p->options.change ? "Change of " : "";
    if (p->kind == QKV_PLOT_HEATMAP) {
        qkv_text_printf(text, "%s%s by Layer and Head", change, p->metric);
    } else if (p->kind == QKV_PLOT_LINES) {
        qkv_text_printf(text, "%s%s against " EPSILON, change, p->metric);
    } else {
        qkv_text_printf(text, "Heads by %s%s", change, p->metric);
    }
    if (p->kind == QKV_PLOT_HEATMAP) return; /* its panels say the rest */
    qkv_text_puts(text, " (");
    if (p->targets.n == 1) {
        qkv_plot_panel_title(p, 0, text);
    } else {
        add_operation(p, text, "");
    }
    qkv_text_puts(text, ")");
}

/* ---- small print ---- */

static void add_list(qkv_text *text, const plot_indices *list, const char *one, const char *many) {
    if (list->n == 1 && list->at[0] < 0) {
        qkv_text_printf(text, "all %s together", many);
        return;
    }
    qkv_text_printf(text, "%s ", list->n == 1 ? one : many);
    for (size_t i = 0, end; i < list->n; i = end) {
        for (end = i + 1; end < list->n && list->at[end] == list->at[end - 1] + 1; end++) {}
        if (list->at[i] < 0) {
            end = i + 1;
            qkv_text_puts(text, "(all together)");
        } else {
            qkv_text_printf(text, "%s%d", i ? ", " : "", (int)list->at[i]);
        }
        if (end - i > 1) {
            qkv_text_printf(text, "%s%d", end - i > 2 ? "\xe2\x80\x93" : ", ",
                            (int)list->at[end - 1]);
        }
    }
}

/* What was averaged: heads of a line, prompts of everything. */
static void add_averages(const qkv_plot *p, qkv_text *text) {
    const size_t heads = p->heads.n, places = p->layers.n * heads;
    const size_t merged = p->by == QKV_PLOT_BY_TARGET  ? places
                          : p->by == QKV_PLOT_BY_LAYER ? heads
                                                       : 1;
    qkv_text_puts(text, DOT);
    add_list(text, &p->layers, "layer", "layers");
    qkv_text_puts(text, ", ");
    add_list(text, &p->heads, "head", "heads");
    if (p->kind == QKV_PLOT_LINES && merged > 1) qkv_text_puts(text, ", averaged");
    if (p->most_prompts < 2) {
        qkv_text_puts(text, DOT "1 prompt");
        return;
    }
    qkv_text_printf(text, DOT "mean over %s%zu prompts", p->n_missing ? "up to " : "",
                    p->most_prompts);
    if (p->kind == QKV_PLOT_HEATMAP || p->options.band == QKV_PLOT_BAND_NONE) return;
    qkv_text_printf(text, ", %s: %s", p->kind == QKV_PLOT_LINES ? "band" : "whisker",
                    p->options.band == QKV_PLOT_BAND_SD
                        ? "\xc2\xb1 one standard deviation over them"
                        : "least to largest of them");
}

static void add_gaps(const qkv_plot *p, qkv_text *text) {
    if (p->n_missing) {
        qkv_text_printf(text, DOT "unfinished sweep: %zu of %zu values missing (%.3g %%)",
                        p->n_missing, p->n_cells,
                        100.0 * (double)p->n_missing / (double)p->n_cells);
    }
    if (p->n_undefined) {
        qkv_text_printf(text, DOT "undefined in %zu of %zu cells", p->n_undefined, p->n_cells);
    }
    for (size_t i = 0; p->kind == QKV_PLOT_HEATMAP && i < p->n_groups; i++) {
        if (p->groups[i].prompts) continue;
        qkv_text_puts(text, DOT "crossed out: no value");
        return;
    }
}

static void add_small_print(const qkv_plot *p, qkv_text *text) {
    const char *file = qkv_path_base(p->info->path);
    if (p->info->model_name[0] || p->info->model_path[0]) {
        qkv_text_append_model(text, p->info->model_name, p->info->model_path);
        qkv_text_puts(text, DOT);
    }
    qkv_text_append_short(text, file, strlen(file), 80);
    add_averages(p, text);
    if (p->options.change) qkv_text_puts(text, DOT "edited minus unedited");
    add_gaps(p, text);
    /* A no-break space: the version stays beside the name. */
    qkv_text_printf(text, DOT "qkv\xc2\xa0%s", qkv_version());
}

/* ---- recipe ---- */

/* Files that are handed on must not tell where on somebody's machine things lie. */
static json_t *path_of(const char *path) {
    return qkv_json_text(qkv_path_base(path));
}

/* null, where there was no command line. */
static json_t *command_of(const qkv_plot_options *options) {
    if (!options->n_command) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < options->n_command; i++) {
        json_array_append_new(list, qkv_json_text(options->command[i]));
    }
    return list;
}

static json_t *target_list(const qkv_plot *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->targets.n; i++) {
        const char *name = p->target_names[i];
        json_array_append_new(list, qkv_json_text(name));
    }
    return list;
}

static json_t *epsilon_list(const qkv_plot *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_epsilons; i++) {
        if (!isnan(p->epsilons[i])) json_array_append_new(list, json_real(p->epsilons[i]));
    }
    return list;
}

static json_t *index_list(const plot_indices *indices) {
    json_t *list = json_array();
    for (size_t i = 0; i < indices->n; i++) {
        json_array_append_new(list, json_integer(indices->at[i]));
    }
    return list;
}

static char *make_recipe(const qkv_plot *p) {
    static const char *const kinds[] = {"", "heatmap", "lines", "ranking"};
    json_t *json =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}",
                  "qkv_version", qkv_version(), "command", command_of(&p->options), "results",
                  path_of(p->info->path), "spec_hash", qkv_json_text(p->info->spec_hash), "model",
                  path_of(p->info->model_path), "model_hash", qkv_json_text(p->info->model_hash),
                  "kind", kinds[p->kind], "metric", qkv_json_text(p->metric), "targets",
                  target_list(p), "op", qkv_json_text(p->op_name), "epsilon", epsilon_list(p),
                  "layers", index_list(&p->layers), "heads", index_list(&p->heads), "cells",
                  (json_int_t)p->n_cells, "missing", (json_int_t)p->n_missing);
    if (p->kind == QKV_PLOT_HEATMAP) {
        const char *colormap = qkv_colormap_name(qkv_plot_colormap(p));
        json_object_set_new(json, "colormap", json_string(colormap));
    }
    if (p->info->model_notices[0])
        json_object_set_new(json, "model_notices", qkv_json_text(p->info->model_notices));
    const qkv_locale host = qkv_locale_enter();
    char *recipe = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    qkv_locale_leave(host);
    json_decref(json);
    return recipe;
}

/* ---- all of them ---- */

/* Takes over what was written; NULL: memory is short. */
static char *taken(qkv_text *text) {
    qkv_text_puts(text, "");
    if (!text->failed) return text->data;
    qkv_text_release(text);
    return NULL;
}

int qkv_plot_notes(qkv_plot *p, qkv_error *err) {
    qkv_text title = {0}, small_print = {0}, warning = {0};
    const char *given = p->options.title;
    if (given) {
        qkv_text_puts(&title, given);
    } else {
        add_title(p, &title);
    }
    add_small_print(p, &small_print);
    qkv_text_printf(&warning, "the sweep is unfinished: %zu of %zu values are missing",
                    p->n_missing, p->n_cells);
    p->title = taken(&title);
    p->small_print = taken(&small_print);
    p->warning = taken(&warning);
    p->recipe = make_recipe(p);
    if (!p->title || !p->small_print || !p->warning || !p->recipe) return qkv_fail_memory(err);
    if (!p->title[0]) free(p->title), p->title = NULL;
    if (!p->n_missing) free(p->warning), p->warning = NULL;
    return QKV_OK;
}
