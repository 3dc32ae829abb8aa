/* What a plot says: titles, labels, small print. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "draw/draw.h"
#include "measure/metric.h"
#include "qkv/measure.h"
#include "qkv/version.h"
#include "study/figure.h"
#include "study/plot.h"
#include "study/print.h"

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

/* "scale, ε = 0.001", after `before` when there is anything. */
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

/* In a title, asterisks would start italics. */
static void add_words(qkv_text *text, const char *words) {
    for (; *words; words++) {
        if (*words == '*') qkv_text_puts(text, "\\");
        qkv_text_append(text, words, 1);
    }
}

/* Differences say so, unless the metric is one. */
static void add_metric(const qkv_plot *p, qkv_text *text, const char *words) {
    static const char change[] = "change of ";
    if (p->options.change && strncmp(words, change, sizeof change - 1) != 0)
        qkv_text_puts(text, change);
    add_words(text, words);
}

void qkv_plot_value_label(const qkv_plot *p, qkv_text *text) {
    add_metric(p, text, p->metric_title);
}

/* A title begins with a capital letter. */
static void capitalize(qkv_text *text) {
    char *first = text->length ? text->data : NULL;
    if (first && *first >= 'a' && *first <= 'z') *first = (char)(*first - 'a' + 'A');
}

static void add_title(const qkv_plot *p, qkv_text *text) {
    const qkv_metric_info *info = qkv_metric_find(p->metric); /* units stand at the axis */
    if (p->kind == QKV_PLOT_RANKING) qkv_text_puts(text, "Heads by ");
    add_metric(p, text, info ? info->title : p->metric_title);
    capitalize(text);
    if (p->kind == QKV_PLOT_HEATMAP) qkv_text_puts(text, " by Layer and Head");
    if (p->kind == QKV_PLOT_LINES) qkv_text_puts(text, " against " EPSILON);
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

/* Lines on the axis may be taken for none. */
static int is_all_zero(const qkv_plot *p) {
    for (size_t i = 0; i < p->n_shown; i++) {
        const plot_summary *group = &p->groups[p->shown[i]];
        if (group->mean != 0 || group->low != 0 || group->high != 0) return 0;
    }
    return p->n_shown > 0;
}

static void add_small_print(const qkv_plot *p, qkv_text *text) {
    const char *file = qkv_path_base(p->info->path);
    if (p->info->model_name[0] || p->info->model_path[0]) {
        qkv_text_append_model(text, p->info->model_name, p->info->model_path,
                              p->info->model_weights);
        qkv_text_puts(text, DOT);
    }
    qkv_text_append_short(text, file, strlen(file), 80);
    add_averages(p, text);
    if (is_all_zero(p)) qkv_text_puts(text, DOT "all values are exactly 0");
    if (p->options.change) qkv_text_puts(text, DOT "edited minus unedited");
    if (p->kind == QKV_PLOT_LINES && p->options.axis != QKV_PLOT_SCALE_LINEAR &&
        p->epsilons[0] == 0)
        qkv_text_puts(text, DOT "\xce\xb5 = 0 stands apart: the axis is broken");
    add_gaps(p, text);
    /* A no-break space: the version stays beside the name. */
    qkv_text_printf(text, DOT "qkv\xc2\xa0%s" DOT "%s", qkv_version(), p->id);
}

/* ---- all of them ---- */

/* Takes over what was written; NULL: memory is short. */
static char *taken(qkv_text *text) {
    qkv_text_puts(text, "");
    if (!text->failed) return text->data;
    qkv_text_release(text);
    return NULL;
}

/* What the notes and the chart need of the options, which are the caller's. */
static int take_words(qkv_plot *p, qkv_error *err) {
    const int status = qkv_metric_title(p->metric, &p->metric_title, err);
    if (status != QKV_OK || !p->options.font) return status;
    p->font = qkv_strdup(p->options.font);
    return p->font ? QKV_OK : qkv_fail_memory(err);
}

/* Takes over the text. */
static int warn(qkv_plot *p, char *text, qkv_error *err) {
    if (text && QKV_PUSH(p->warnings, p->warnings_capacity, p->n_warnings, text)) return QKV_OK;
    free(text);
    return qkv_fail_memory(err);
}

static int warn_unfinished(qkv_plot *p, qkv_error *err) {
    qkv_text text = {0};
    if (!p->n_missing) return QKV_OK;
    qkv_text_printf(&text, "the sweep is unfinished: %zu of %zu values are missing", p->n_missing,
                    p->n_cells);
    return warn(p, taken(&text), err);
}

/* Of all words that are drawn, once. */
static int warn_glyphs(qkv_plot *p, qkv_error *err) {
    qkv_text all = {0};
    uint64_t scripts = 0;
    qkv_text_printf(&all, "%s\n%s\n", p->title, p->metric_title);
    if (!p->options.hide_notes) qkv_text_puts(&all, p->small_print);
    for (size_t i = 0; i < p->targets.n; i++) {
        qkv_text_printf(&all, "\n%s", qkv_plot_target_name(p, i));
    }
    char *words = taken(&all);
    int status = words ? qkv_fonts_missing(words, p->font, &scripts, err) : qkv_fail_memory(err);
    free(words);
    for (size_t i = 0; status == QKV_OK && qkv_script_name(i); i++) {
        if (scripts >> i & 1) status = warn(p, qkv_print_missing(i), err);
    }
    return status;
}

int qkv_plot_notes(qkv_plot *p, qkv_error *err) {
    qkv_text title = {0}, small_print = {0};
    int status = take_words(p, err);
    if (status != QKV_OK) return status;
    const char *given = p->options.title;
    if (given) {
        qkv_text_puts(&title, given);
    } else {
        add_title(p, &title);
    }
    add_small_print(p, &small_print);
    p->title = taken(&title);
    p->small_print = taken(&small_print);
    if (!p->title || !p->small_print) return qkv_fail_memory(err);
    status = warn_glyphs(p, err);
    if (!p->title[0]) free(p->title), p->title = NULL;
    return status == QKV_OK ? warn_unfinished(p, err) : status;
}
