/* The page of a chart: one part that draws it and has its cells at every ε. */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "study/html_page.h"
#include "study/plot_numbers.h"

static json_t *describe_floats(const float *values, size_t n) {
    if (!values) return json_null();
    const html_map map = {.values = values, .rows = n, .cols = 1, .step = 1};
    return qkv_html_map_json(&map, HTML_F32);
}

static json_t *describe_metrics(const qkv_plot *p) {
    const plot_numbers *all = p->numbers;
    json_t *list = json_array();
    for (size_t i = 0; i < all->n_metrics; i++) {
        const plot_metric *m = &all->metrics[i];
        qkv_json_push(list,
                      json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", qkv_json_text(m->name),
                                "title", qkv_json_text(m->title), "means",
                                describe_floats(m->means, all->n_cells), "unedited",
                                describe_floats(m->unedited, p->layers.n * p->heads.n), "values",
                                describe_floats(m->values, all->n_prompts * all->n_cells)));
    }
    return list;
}

static json_t *describe_numbers(const double *values, size_t n) {
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++) {
        qkv_json_push(out, isnan(values[i]) ? json_null() : qkv_json_exact(values[i]));
    }
    return out;
}

static json_t *describe_targets(const qkv_plot *p, int shown) {
    json_t *out = json_array();
    for (size_t i = 0; i < p->targets.n; i++) {
        qkv_json_push(out, qkv_json_text(shown ? qkv_plot_target_name(p, i) : p->target_names[i]));
    }
    return out;
}

static json_t *describe_prompts(const plot_numbers *all) {
    json_t *out = json_array();
    for (size_t i = 0; i < all->n_prompts; i++) {
        qkv_json_push(out, json_integer(all->prompts[i]));
    }
    return out;
}

/* The values of the chart itself: cells, points or bars, in its order. */
static json_t *describe_values(const qkv_plot *p) {
    json_t *out = json_array();
    for (size_t i = 0; i < p->n_shown; i++) {
        qkv_plot_value v = QKV_PLOT_VALUE_INIT;
        if (qkv_plot_get_value(p, i, &v, NULL) != QKV_OK) continue;
        qkv_json_push(out, json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:I}", "target", v.target,
                                     "layer", (int)v.layer, "head", (int)v.head, "epsilon",
                                     qkv_json_real(v.epsilon), "mean", qkv_json_real(v.mean), "low",
                                     qkv_json_real(v.low), "high", qkv_json_real(v.high), "n",
                                     (json_int_t)v.n));
    }
    return out;
}

static json_t *describe_look(const qkv_plot *p) {
    static const char *const bands[] = {"range", "range", "sd", "none"};
    const qkv_plot_options *o = &p->options;
    return json_pack("{s:s, s:b, s:s, s:s, s:s, s:[o, o], s:b}", "colormap",
                     qkv_colormap_name(qkv_plot_colormap(p)), "signed", p->is_signed, "scale",
                     o->scale == QKV_PLOT_SCALE_LOG ? "log" : "linear", "axis",
                     o->axis == QKV_PLOT_SCALE_LINEAR ? "linear" : "log", "band", bands[o->band],
                     "range", qkv_json_exact(o->range[0]), qkv_json_exact(o->range[1]), "change",
                     o->change);
}

static json_t *describe(const qkv_plot *p) {
    static const char *const bys[] = {"target", "target", "layer", "head"};
    const plot_numbers *all = p->numbers;
    qkv_text label = {0};
    qkv_plot_value_label(p, &label);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "type",
        "sweep", "plot", qkv_plot_kind_name(p->kind), "by", bys[p->by], "label",
        label.failed ? NULL : qkv_json_text(label.data), "op", p->op_name, "targets",
        describe_targets(p, 0), "target_names", describe_targets(p, 1), "layers",
        qkv_html_integers(p->layers.at, p->layers.n), "heads",
        qkv_html_integers(p->heads.at, p->heads.n), "epsilons",
        describe_numbers(all->epsilons, all->n_epsilons), "chosen",
        describe_numbers(p->epsilons, p->n_epsilons), "prompts", describe_prompts(all), "look",
        describe_look(p), "reference", qkv_json_real(p->reference), "values", describe_values(p),
        "metrics", describe_metrics(p));
    qkv_text_release(&label);
    return json;
}

/* ---- the page ---- */

static const char *ending(size_t n) {
    return n == 1 ? "" : "s";
}

static void put_about(const plot_numbers *all, size_t n_places, qkv_text *about) {
    const size_t shown = json_array_size(json_object_get(all->attention, "prompts"));
    qkv_text_printf(about,
                    "%zu cells of %zu metric%s in this file, means over %zu prompt%s, in F32",
                    all->n_cells, all->n_metrics, ending(all->n_metrics), all->n_prompts,
                    ending(all->n_prompts));
    if (all->n_prompts > 1 && !all->metrics[0].values)
        qkv_text_puts(about, "; the values of single prompts are too many for a page");
    if (all->attention)
        qkv_text_printf(about, "; the scores of %zu heads for %zu of them, in F32", n_places,
                        shown);
    if (all->left_out) qkv_text_puts(about, "; other metrics of the sweep are too many for a page");
    qkv_text_puts(about, ".");
}

int qkv_plot_html(const qkv_plot *p, qkv_text *out, qkv_error *err) {
    if (!p->numbers) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a plot made without `page` cannot be written as html");
    }
    json_t *parts = json_array();
    qkv_text about = {0};
    qkv_json_push(parts, describe(p));
    put_about(p->numbers, p->layers.n * p->heads.n, &about);
    const html_page page = {.title = p->title,
                            .name = p->metric_title,
                            .small_print = p->options.hide_notes ? NULL : p->small_print,
                            .about = about.data,
                            .options = "--results RESULTS",
                            .id = p->id,
                            .recipe = p->options.no_recipe ? NULL : p->recipe,
                            .colormap = qkv_plot_colormap(p),
                            .parts = parts,
                            .attention = p->numbers->attention};
    const int status = about.failed ? qkv_fail_memory(err) : qkv_html_page_write(&page, out, err);
    qkv_text_release(&about);
    json_decref(parts);
    return status;
}
