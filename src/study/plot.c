/* A plot from its options to its numbers and words, and what can be asked of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "qkv/measure.h"
#include "study/plot.h"
#include "study/plot_numbers.h"
#include "study/print.h"

/* ---- options ---- */

static int has_range(const qkv_plot_options *o) {
    return o->range[0] != 0 || o->range[1] != 0;
}

static int check_numbers(const qkv_plot_options *o, qkv_error *err) {
    if (has_range(o) &&
        !(isfinite(o->range[0]) && isfinite(o->range[1]) && o->range[0] < o->range[1])) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`range` %g to %g is empty: low must be below high",
                        o->range[0], o->range[1]);
    }
    if (has_range(o) && o->scale == QKV_PLOT_SCALE_LOG && o->range[0] <= 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`range` of a log scale must begin above 0");
    }
    if (o->session && !o->page) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`session` is for pages: set `page`, too");
    }
    int status = qkv_print_check(
        &(study_print){o->text, o->font, o->width, o->hide_notes, o->font_size}, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < o->n_command; i++) {
        if (o->command && o->command[i]) continue;
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`command` has a word that is NULL");
    }
    return QKV_OK;
}

static int read_options(qkv_plot_options *to, const qkv_plot_options *from, qkv_error *err) {
    *to = (qkv_plot_options)QKV_PLOT_OPTIONS_INIT;
    int status = qkv_sized_read(to, sizeof *to, from, "qkv_plot_options", err);
    if (status == QKV_OK) status = qkv_fields_check(&qkv_plot_table, to, err);
    if (status == QKV_OK && to->change && to->scale == QKV_PLOT_SCALE_LOG) {
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "`scale` log cannot show differences, they may be negative");
    }
    return status == QKV_OK ? check_numbers(to, err) : status;
}

int qkv_plot_options_check(const qkv_plot_options *options, qkv_error *err) {
    qkv_plot_options read;
    return read_options(&read, options, err);
}

/* A heatmap around 0. */
static int check_signed(const qkv_plot_options *o, qkv_error *err) {
    const char *what = o->change ? "differences" : "values of two signs";
    if (has_range(o) && o->range[0] != -o->range[1]) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`range` of %s must be the same to both sides, e.g. -1,1", what);
    }
    if (o->scale == QKV_PLOT_SCALE_LOG) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`scale` log cannot show %s", what);
    }
    if (o->colormap > QKV_COLORMAP_COOLWARM) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`colormap` %s cannot show %s, it has no middle for 0: use coolwarm",
                        qkv_colormap_name(o->colormap), what);
    }
    return QKV_OK;
}

/* Changes, a metric that can have either sign, or values that do. */
static int is_signed(const qkv_plot *p) {
    const qkv_metric_info *metric = qkv_metric_find(p->metric);
    int below = 0, above = 0;
    if (p->options.change || (metric && strcmp(metric->range, "any") == 0)) return 1;
    for (size_t i = 0; i < p->n_groups; i++) {
        below |= p->groups[i].mean < 0;
        above |= p->groups[i].mean > 0;
    }
    return below && above;
}

/* An option that the kind of chart has no use for must not pass as if it had an effect. */
static int check_kind(const qkv_plot *p, qkv_error *err) {
    const qkv_plot_options *o = &p->options;
    const struct {
        int given, kinds; /* bits of the kinds that know it */
        const char *name;
    } rules[] = {
        {o->by != 0, 1 << QKV_PLOT_LINES, "by"},
        {o->axis != 0, 1 << QKV_PLOT_LINES, "axis"},
        {o->band != 0, 1 << QKV_PLOT_LINES | 1 << QKV_PLOT_RANKING, "band"},
        {o->scale != 0, 1 << QKV_PLOT_LINES | 1 << QKV_PLOT_HEATMAP, "scale"},
        {o->top > 0, 1 << QKV_PLOT_RANKING, "top"},
        {o->colormap != 0, 1 << QKV_PLOT_HEATMAP, "colormap"},
        {o->order != 0, 1 << QKV_PLOT_RANKING, "order"},
    };
    static const char *const names[] = {"", "a heatmap", "lines", "a ranking"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!rules[i].given || rules[i].kinds & 1 << p->kind) continue;
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has no meaning for %s", rules[i].name,
                        names[p->kind]);
    }
    return p->kind == QKV_PLOT_HEATMAP && p->is_signed ? check_signed(o, err) : QKV_OK;
}

/* ---- making ---- */

/* What the caller owns is not looked at any more. */
static void let_go(qkv_plot *p) {
    qkv_plot_options *o = &p->options;
    p->file = NULL;
    p->info = NULL;
    free(p->rows);
    p->rows = NULL;
    free(p->cells);
    p->cells = NULL;
    o->metric = o->target = o->op = o->epsilon = o->layers = o->heads = o->title = NULL;
    o->command = NULL;
    o->session = NULL;
    o->font = p->font;
    o->n_command = 0;
}

static int make(qkv_plot *p, qkv_error *err) {
    int status = qkv_plot_select(p, err);
    if (status == QKV_OK) status = qkv_plot_summarize(p, err);
    if (status == QKV_OK) {
        p->is_signed = is_signed(p);
        status = check_kind(p, err);
    }
    if (status == QKV_OK) status = qkv_plot_make_recipe(p, err);
    if (status == QKV_OK) status = qkv_plot_notes(p, err);
    if (status != QKV_OK || !p->options.page) return status;
    return qkv_plot_numbers_new(&p->numbers, p, err);
}

int qkv_plot_new(qkv_plot **out, qkv_sweep_reader *file, const qkv_plot_options *options,
                 qkv_error *err) {
    if (out) *out = NULL;
    if (!out || !file) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a plot needs a file of results and a place for it");
    }
    qkv_plot *p = qkv_calloc(1, sizeof *p);
    if (!p) return qkv_fail_memory(err);
    p->file = file;
    p->info = qkv_sweep_reader_get_info(file);
    int status = p->info->patches
                     ? qkv_fail(err, QKV_ERR_UNSUPPORTED,
                                "%s holds patching, which 'qkv patch' draws: give it the options "
                                "that made the file",
                                p->info->path)
                     : read_options(&p->options, options, err);
    if (status == QKV_OK) status = make(p, err);
    let_go(p);
    if (status == QKV_OK) {
        *out = p;
    } else {
        qkv_plot_free(p);
    }
    return status;
}

void qkv_plot_free(qkv_plot *p) {
    if (!p) return;
    for (size_t i = 0; p->target_names && i < p->targets.n; i++) free(p->target_names[i]);
    free(p->target_names);
    free(p->op_name);
    free(p->metric);
    qkv_plot_numbers_free(p->numbers);
    free(p->targets.at);
    free(p->layers.at);
    free(p->heads.at);
    free(p->epsilons);
    free(p->groups);
    free(p->shown);
    free(p->title);
    free(p->small_print);
    free(p->recipe);
    for (size_t i = 0; i < p->n_warnings; i++) free(p->warnings[i]);
    free(p->warnings);
    free(p->metric_title);
    free(p->font);
    free(p);
}

/* ---- looking ---- */

const char *qkv_plot_kind_name(qkv_plot_kind kind) {
    static const char *const names[] = {"auto", "heatmap", "lines", "ranking"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

int qkv_plot_get_info(const qkv_plot *p, qkv_plot_info *info, qkv_error *err) {
    if (!p || !info) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no plot, or no place");
    const qkv_plot_info own = {.kind = p->kind,
                               .metric = p->metric,
                               .op = p->op_name,
                               .title = p->title,
                               .small_print = p->small_print,
                               .recipe = p->recipe,
                               .n_values = p->n_shown,
                               .n_cells = p->n_cells,
                               .n_missing = p->n_missing,
                               .n_undefined = p->n_undefined,
                               .reference = p->reference,
                               .id = p->id};
    return qkv_sized_write(info, &own, sizeof own, "qkv_plot_info", err);
}

/* Where in the sweep a group lies: the other way round than qkv_plot_group. */
static void locate(const qkv_plot *p, size_t group, qkv_plot_value *v) {
    size_t target = 0, layer = 0, head = 0;
    int with_layer = 1, with_head = 1;
    if (p->kind != QKV_PLOT_LINES) {
        head = group % p->heads.n;
        layer = group / p->heads.n % p->layers.n;
        target = group / p->heads.n / p->layers.n;
        v->epsilon = p->epsilons[0];
    } else {
        const size_t series = group / p->n_epsilons;
        v->epsilon = p->epsilons[group % p->n_epsilons];
        with_layer = p->by != QKV_PLOT_BY_TARGET;
        with_head = p->by == QKV_PLOT_BY_HEAD;
        if (!with_layer) target = series;
        if (with_layer) layer = with_head ? series / p->heads.n : series;
        if (with_head) head = series % p->heads.n;
    }
    v->target = p->target_names[target];
    v->layer = with_layer || p->layers.n == 1 ? p->layers.at[layer] : QKV_PLOT_AVERAGED;
    v->head = with_head || p->heads.n == 1 ? p->heads.at[head] : QKV_PLOT_AVERAGED;
}

int qkv_plot_get_value(const qkv_plot *p, size_t index, qkv_plot_value *value, qkv_error *err) {
    if (!p || !value) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no plot, or no place");
    if (index >= p->n_shown) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "value %zu of a plot with %zu", index, p->n_shown);
    }
    const plot_summary *summary = &p->groups[p->shown[index]];
    qkv_plot_value own = {
        .mean = summary->mean, .low = summary->low, .high = summary->high, .n = summary->prompts};
    locate(p, p->shown[index], &own);
    return qkv_sized_write(value, &own, sizeof own, "qkv_plot_value", err);
}

const char *qkv_plot_warning(const qkv_plot *p, size_t index) {
    return p && index < p->n_warnings ? p->warnings[index] : NULL;
}
