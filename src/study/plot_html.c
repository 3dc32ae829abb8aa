/* A chart as a page that lives: offline_plot.js draws it, and its cells open. */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "study/living.h"
#include "study/plot_heads.h"
#include "study/plot_living.h"

static json_t *describe_floats(const float *values, size_t n) {
    if (!values) return json_null();
    const living_map map = {.values = values, .rows = n, .cols = 1, .step = 1};
    return qkv_living_map_json(&map, LIVING_F32);
}

static json_t *describe_metrics(const qkv_plot *p) {
    const plot_living *all = p->living;
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

static json_t *describe_indices(const plot_indices *list) {
    json_t *out = json_array();
    for (size_t i = 0; i < list->n; i++) qkv_json_push(out, json_integer(list->at[i]));
    return out;
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

static json_t *describe_prompts(const plot_living *all) {
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

/* ---- the attention of the cells ---- */

static json_t *describe_labels(const qkv_own_prompt *prompt) {
    json_t *tokens = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        qkv_json_push(tokens, qkv_json_text(prompt->labels[i]));
    }
    return tokens;
}

static json_t *describe_scores(const qkv_plot *p, const plot_heads *all, size_t prompt) {
    const size_t n = all->prompts.items[prompt].n_tokens, places = p->layers.n * p->heads.n;
    json_t *list = json_array();
    for (size_t i = 0; i < places; i++) {
        const int32_t window = all->windows[i / p->heads.n];
        const living_map map = {.values = all->scores[prompt * places + i],
                                .rows = n,
                                .cols = n,
                                .step = 1,
                                .causal = all->causal,
                                .window = window,
                                .is_masked = all->causal || window > 0};
        qkv_json_push(list, map.values ? qkv_living_map_json(&map, LIVING_F32) : json_null());
    }
    return list;
}

static json_t *describe_attention(const qkv_plot *p) {
    const plot_heads *all = p->living->heads;
    if (!all || all->prompts.n == 0) return json_null();
    json_t *prompts = json_array(), *windows = json_array();
    for (size_t i = 0; i < all->prompts.n; i++) {
        qkv_json_push(prompts, json_pack("{s:I, s:o, s:o}", "id", (json_int_t)all->ids[i], "tokens",
                                         describe_labels(&all->prompts.items[i]), "scores",
                                         describe_scores(p, all, i)));
    }
    for (size_t i = 0; i < p->layers.n; i++) {
        qkv_json_push(windows, json_integer(all->windows[i]));
    }
    return json_pack("{s:b, s:o, s:o, s:o, s:o}", "causal", all->causal, "softcap",
                     qkv_json_exact(all->softcap), "windows", windows, "sinks",
                     describe_numbers(all->sinks, p->layers.n * p->heads.n), "prompts", prompts);
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
    const plot_living *all = p->living;
    qkv_text label = {0};
    qkv_plot_value_label(p, &label);
    json_t *json = json_pack(
        "{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:b, s:o, s:o}",
        "format", 1, "kind", "plot", "plot", qkv_plot_kind_name(p->kind), "by", bys[p->by], "title",
        p->title ? qkv_json_text(p->title) : json_null(), "label",
        qkv_json_text(label.failed ? p->metric : label.data), "small_print",
        qkv_json_text(p->options.hide_notes ? "" : p->small_print), "id", p->id, "op", p->op_name,
        "targets", describe_targets(p, 0), "target_names", describe_targets(p, 1), "layers",
        describe_indices(&p->layers), "heads", describe_indices(&p->heads), "epsilons",
        describe_numbers(all->epsilons, all->n_epsilons), "chosen",
        describe_numbers(p->epsilons, p->n_epsilons), "prompts", describe_prompts(all), "look",
        describe_look(p), "reference", qkv_json_real(p->reference), "left_out", all->left_out,
        "values", describe_values(p), "metrics", describe_metrics(p));
    qkv_text_release(&label);
    if (json) qkv_json_put(json, "attention", describe_attention(p));
    if (json) qkv_json_put(json, "colors", qkv_living_colors(qkv_plot_colormap(p)));
    return json;
}

int qkv_plot_html(const qkv_plot *p, qkv_text *out, qkv_error *err) {
    if (!p->living) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a plot made without `living` cannot be written as html");
    }
    json_t *data = describe(p);
    if (!data) return qkv_fail_memory(err);
    const living_page page = {.title = p->title && p->title[0] ? p->title : p->metric_title,
                              .data = data,
                              .recipe = p->options.no_recipe ? NULL : p->recipe};
    const int status = qkv_living_page(&page, out, err);
    json_decref(data);
    return status;
}
