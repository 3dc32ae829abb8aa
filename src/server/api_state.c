/*
 * GET /api/state: all that the page needs to begin with. POST /api/model: the facts of a model, which
 * is opened.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "draw/draw.h"
#include "qkv/grid.h"
#include "qkv/measure.h"
#include "qkv/prompt.h"
#include "qkv/version.h"
#include "server/limits.h"
#include "server/request_plan.h"

/* As many places as figures read a map at. */
enum { COLOR_STEPS = 1024 };

static json_t *list_models(qkv_model_pool *pool) {
    const qkv_pool_model *model;
    json_t *list = json_array();
    for (size_t i = 0; (model = qkv_model_pool_get(pool, i)); i++) {
        qkv_json_push(list, json_pack("{s:o, s:I, s:b}", "name", qkv_json_text(model->name), "size",
                                      (json_int_t)model->file_size, "open",
                                      qkv_model_pool_is_open(pool, i)));
    }
    return list;
}

static json_t *list_sites(void) {
    json_t *list = json_array();
    for (int i = 0; i < QKV_SITE_COUNT; i++) {
        const char *shape = qkv_site_shape((qkv_site)i);
        qkv_json_push(list, json_pack("{s:s, s:s, s:s, s:b, s:b, s:b}", "name",
                                      qkv_site_name((qkv_site)i), "shape", shape, "what",
                                      qkv_site_description((qkv_site)i), "has_layer",
                                      qkv_site_has_layer((qkv_site)i), "has_heads",
                                      strchr(shape, 'H') || strchr(shape, 'G'), "has_kv_heads",
                                      strchr(shape, 'G') != NULL));
    }
    return list;
}

static json_t *list_ops(void) {
    json_t *list = json_array();
    for (size_t i = 0; qkv_op_name(i); i++) {
        if (strcmp(qkv_op_name(i), "custom") == 0) continue; /* needs a function of a program's */
        qkv_json_push(list, json_pack("{s:s, s:s, s:s}", "name", qkv_op_name(i), "arguments",
                                      qkv_op_arguments(i), "what", qkv_op_description(i)));
    }
    return list;
}

static json_t *list_metrics(void) {
    const qkv_metric_info *metric;
    json_t *list = json_array();
    for (size_t i = 0; (metric = qkv_metric_get(i)); i++) {
        qkv_json_push(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:s}", "name",
                                      metric->name, "title", metric->title, "unit", metric->unit,
                                      "scope", qkv_metric_scope_name(metric->scope), "needs",
                                      metric->needs, "compares", (int)metric->compares,
                                      "parameters", metric->parameters, "range", metric->range,
                                      "formula", metric->formula, "undefined", metric->undefined));
    }
    return list;
}

static json_t *list_colors(qkv_colormap map) {
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    json_t *list = json_array();
    style.colormap = map;
    for (int i = 0; i <= COLOR_STEPS; i++) {
        const uint32_t color = qkv_grid_color(&style, (double)i / COLOR_STEPS);
        qkv_json_push(list, json_sprintf("#%06x", (unsigned)color));
    }
    return list;
}

static json_t *list_colormaps(void) {
    json_t *maps = json_object();
    for (int i = QKV_COLORMAP_AUTO + 1; qkv_colormap_name((qkv_colormap)i); i++)
        qkv_json_put(maps, qkv_colormap_name((qkv_colormap)i), list_colors((qkv_colormap)i));
    return maps;
}

static json_t *list_prompts(void) {
    json_t *list = json_array();
    for (size_t i = 0; qkv_default_prompt(i); i++)
        qkv_json_push(list, json_string(qkv_default_prompt(i)));
    return list;
}

static json_t *list_limits(const qkv_model_pool *pool) {
    return json_pack("{s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "tokens",
                     (json_int_t)qkv_model_pool_options(pool)->max_tokens, "edits",
                     QKV_REQUEST_EDITS, "side", QKV_LIMIT_SIDE, "overview_side",
                     QKV_LIMIT_OVERVIEW_SIDE, "generate", QKV_LIMIT_GENERATE, "epsilons",
                     QKV_LIMIT_EPSILONS, "top", QKV_LIMIT_TOP, "study_prompts",
                     QKV_LIMIT_STUDY_PROMPTS, "study_tokens", QKV_LIMIT_STUDY_TOKENS, "study_cells",
                     QKV_LIMIT_STUDY_CELLS);
}

int qkv_api_state(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    const qkv_pool_model *which;
    qkv_model *model = NULL;
    int status = qkv_model_pool_open(pool, call->common.model, &which, &model, err);
    if (status != QKV_OK) return status;
    status = qkv_reply_json(reply,
                            json_pack("{s:s, s:o, s:o, s:{s:o}, s:o, s:o, s:o, s:o, s:o, s:o}",
                                      "version", qkv_version(), "models", list_models(pool),
                                      "model", qkv_request_plan_facts(which, model), "prompt",
                                      "text", qkv_json_text(qkv_model_pool_options(pool)->prompt),
                                      "default_prompts", list_prompts(), "sites", list_sites(),
                                      "ops", list_ops(), "metrics", list_metrics(), "colormaps",
                                      list_colormaps(), "limits", list_limits(pool)),
                            err);
    qkv_model_free(model);
    return status;
}

int qkv_api_model(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    const qkv_pool_model *which;
    qkv_model *model = NULL;
    int status = qkv_model_pool_open(pool, call->common.model, &which, &model, err);
    if (status == QKV_OK) status = qkv_reply_json(reply, qkv_request_plan_facts(which, model), err);
    qkv_model_free(model);
    return status;
}
