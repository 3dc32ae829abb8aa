/*
 * POST /api/overview: all heads of all layers as small maps, each cell the largest weight of its
 * block, before and after the edits; how much each head changed; and a metric of each.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "qkv/measure.h"
#include "qkv/store.h"
#include "server/ask.h"
#include "server/limits.h"

enum { DEFAULT_SIDE = 32, LONGEST_METRIC = 100 };

typedef struct overview {
    qkv_ask ask;
    int64_t side;
    const char *metric; /* "": none */
    qkv_result *result;
    float *maps[2];    /* [L, H, side, side] */
    float *metrics[2]; /* [L, H] */
    float *tv;         /* [L, H] */
} overview;

static size_t n_heads(const overview *view) {
    return (size_t)view->ask.info->n_layer * (size_t)view->ask.info->n_head;
}

static int read_view(overview *view, const qkv_call *call, qkv_error *err) {
    const int64_t n = (int64_t)view->ask.prompt->n_tokens;
    view->side = DEFAULT_SIDE;
    view->metric = "";
    int status =
        qkv_request_integer(call->request, "side", 1, QKV_LIMIT_OVERVIEW_SIDE, &view->side, err);
    if (status == QKV_OK)
        status = qkv_request_text(call->request, "metric", LONGEST_METRIC, &view->metric, err);
    if (view->side > n) view->side = n;
    if (status == QKV_OK && strchr(view->metric, ','))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`metric` is one metric");
    return status;
}

/* ---- maps ---- */

static int run_maps(overview *view, qkv_session *session, qkv_error *err) {
    char capture[48];
    snprintf(capture, sizeof capture, "pattern@*:max=%d", (int)view->side);
    int status = qkv_plan_add_capture(view->ask.plan, capture, err);
    if (status == QKV_OK) status = qkv_session_run(session, &view->result, view->ask.plan, err);
    return status;
}

/* The maps of all layers one behind the other. */
static int gather_maps(overview *view, size_t variant, qkv_error *err) {
    const size_t layer_size =
        (size_t)view->ask.info->n_head * (size_t)view->side * (size_t)view->side;
    float *to = view->maps[variant] =
        qkv_calloc((size_t)view->ask.info->n_layer * layer_size, sizeof *to);
    if (!to) return qkv_fail_memory(err);
    for (int32_t i = 0; i < view->ask.info->n_layer; i++) {
        qkv_tensor map = QKV_TENSOR_INIT;
        if (!qkv_result_get_reduced(view->result, variant, QKV_REDUCTION_MAX, i, &map)) continue;
        memcpy(to + (size_t)i * layer_size, map.data, layer_size * sizeof *to);
    }
    return QKV_OK;
}

/* ---- metrics ---- */

static int check_metric(const overview *view, const qkv_measure *measure, qkv_error *err) {
    const qkv_metric_info *info = qkv_measure_info(measure, 0);
    if (!view->metric[0] || info->scope == QKV_SCOPE_HEAD) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "%s is no metric of single heads", info->name);
}

static void take_value(const overview *view, const qkv_measurement *m, const qkv_metric_info *info,
                       int is_metric) {
    const size_t at = (size_t)m->layer * (size_t)view->ask.info->n_head + (size_t)m->head;
    if (is_metric)
        view->metrics[m->variant][at] = (float)m->value;
    else if (strcmp(info->name, "tv") == 0 && m->variant == 1)
        view->tv[at] = (float)m->value;
}

/* The metric, and the total variation where there are edits, in one run. */
static int measure_heads(overview *view, qkv_session *session, qkv_error *err) {
    const int has_edits = qkv_ask_has_edits(&view->ask), has_metric = view->metric[0] != '\0';
    qkv_text wanted = {0};
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    qkv_plan *plan = NULL;
    qkv_measurement m = QKV_MEASUREMENT_INIT;
    if (!has_edits && !has_metric) return QKV_OK;
    qkv_text_printf(&wanted, "%s%s%s", view->metric, has_metric && has_edits ? "," : "",
                    has_edits ? "tv" : "");
    if (strcmp(wanted.data ? wanted.data : "", "tv,tv") == 0) wanted.data[2] = '\0';
    int status =
        wanted.failed ? qkv_fail_memory(err) : qkv_measure_new(&measure, wanted.data, NULL, err);
    if (status == QKV_OK) status = check_metric(view, measure, err);
    if (status == QKV_OK)
        status = qkv_plan_new(&plan, view->ask.model, view->ask.prompt->tokens,
                              view->ask.prompt->n_tokens, err);
    if (status == QKV_OK && has_edits)
        status = qkv_plan_add_variant(plan, view->ask.edits, NULL, err);
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, session, plan, err);
    for (size_t i = 0; status == QKV_OK && qkv_table_get(table, i, &m); i++) {
        const qkv_metric_info *info = qkv_measure_info(measure, m.metric);
        if (m.layer < 0 || m.head < 0) continue;
        if (has_metric && m.metric == 0) take_value(view, &m, info, 1);
        take_value(view, &m, info, 0);
    }
    qkv_table_free(table);
    qkv_plan_free(plan);
    qkv_measure_free(measure);
    qkv_text_release(&wanted);
    return status;
}

static int allocate(overview *view, qkv_error *err) {
    for (int i = 0; i < 2; i++) {
        view->metrics[i] = qkv_calloc(n_heads(view), sizeof(float));
        if (!view->metrics[i]) return qkv_fail_memory(err);
    }
    view->tv = qkv_calloc(n_heads(view), sizeof(float));
    return view->tv ? QKV_OK : qkv_fail_memory(err);
}

/* ---- the answer ---- */

/* Tensors of files have three dimensions at most: layers and heads of maps are one. */
static qkv_store_tensor tensor_of(const overview *view, const char *name, const float *data,
                                  int is_map) {
    qkv_store_tensor tensor = QKV_STORE_TENSOR_INIT;
    tensor.name = name;
    tensor.data = data;
    tensor.n_dims = is_map ? 3 : 2;
    tensor.shape[0] = is_map ? (int64_t)n_heads(view) : view->ask.info->n_layer;
    tensor.shape[1] = is_map ? view->side : view->ask.info->n_head;
    tensor.shape[2] = view->side;
    return tensor;
}

static int send_view(const overview *view, qkv_reply *reply, qkv_error *err) {
    const int has_edits = qkv_ask_has_edits(&view->ask);
    qkv_store_tensor tensors[5];
    size_t n = 0, n_bytes = 0;
    char *bytes = NULL;
    tensors[n++] = tensor_of(view, "before", view->maps[0], 1);
    if (has_edits) {
        tensors[n++] = tensor_of(view, "after", view->maps[1], 1);
        tensors[n++] = tensor_of(view, "tv", view->tv, 0);
    }
    if (view->metric[0]) tensors[n++] = tensor_of(view, "metric_before", view->metrics[0], 0);
    if (view->metric[0] && has_edits)
        tensors[n++] = tensor_of(view, "metric_after", view->metrics[1], 0);
    json_t *facts =
        json_pack("{s:i, s:i, s:I, s:I, s:s, s:o}", "layers", (int)view->ask.info->n_layer, "heads",
                  (int)view->ask.info->n_head, "side", (json_int_t)view->side, "tokens",
                  (json_int_t)view->ask.prompt->n_tokens, "pooling",
                  (int64_t)view->ask.prompt->n_tokens > view->side ? "max" : "none", "edits",
                  qkv_ask_changes(view->result));
    char *text = facts ? qkv_json_dump(facts, JSON_COMPACT) : NULL;
    json_decref(facts);
    const char *const metadata[] = {"qkv", text};
    const int status =
        text ? qkv_store_render_tensors(tensors, n, metadata, 1, &bytes, &n_bytes, err)
             : qkv_fail_memory(err);
    if (status == QKV_OK) qkv_reply_bytes(reply, bytes, n_bytes, "application/octet-stream");
    free(text);
    return status;
}

int qkv_api_overview(qkv_workshop *shop, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    overview view = {0};
    qkv_session *session = NULL;
    int status = qkv_ask_open(&view.ask, shop, call, reply, err);
    if (status == QKV_OK) status = read_view(&view, call, err);
    if (status == QKV_OK) status = qkv_workshop_session(shop, view.ask.shop_model, &session, err);
    if (status == QKV_OK) status = allocate(&view, err);
    if (status == QKV_OK) status = run_maps(&view, session, err);
    for (size_t v = 0; status == QKV_OK && v < qkv_result_n_variants(view.result); v++)
        status = gather_maps(&view, v, err);
    if (status == QKV_OK) status = measure_heads(&view, session, err);
    if (status == QKV_OK) status = send_view(&view, reply, err);
    for (int i = 0; i < 2; i++) {
        free(view.maps[i]);
        free(view.metrics[i]);
    }
    free(view.tv);
    qkv_result_free(view.result);
    qkv_ask_release(&view.ask);
    return status;
}
