/*
 * POST /api/overview: all heads of all layers as small maps, each cell the largest weight of its
 * block, before and after the edits; how much each head changed; and a metric of each. `skip_keys`
 * leaves the first keys out before the blocks are made, as figures do.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "qkv/measure.h"
#include "qkv/store.h"
#include "run/run.h"
#include "server/head_window.h"
#include "server/limits.h"
#include "server/request_plan.h"
#include "store/store_formats.h"

enum { DEFAULT_SIDE = 32, LONGEST_METRIC = 100 };

typedef struct overview {
    qkv_request_plan request;
    int64_t side, skip;       /* skip: first keys that are left out */
    int64_t rows, cols;       /* cells of a map */
    qkv_head_window *windows; /* one of each head, where keys are left out; else NULL */
    const char *metric;       /* "": none */
    qkv_measure *measure;     /* NULL: nothing is measured */
    qkv_table *table;
    qkv_result *owned;
    const qkv_result *result; /* the table's, or owned */
    float *maps[2];           /* [L, H, rows, cols] */
    float *metrics[2];        /* [L, H] */
    float *tv;                /* [L, H] */
} overview;

static size_t n_heads(const overview *view) {
    return (size_t)view->request.info->n_layer * (size_t)view->request.info->n_head;
}

static int read_view(overview *view, const qkv_call *call, qkv_error *err) {
    const int64_t n = (int64_t)view->request.prompt.n_tokens;
    view->side = DEFAULT_SIDE;
    view->metric = "";
    int status =
        qkv_request_integer(call->request, "side", 1, QKV_LIMIT_OVERVIEW_SIDE, &view->side, err);
    if (status == QKV_OK)
        status = qkv_request_text(call->request, "metric", LONGEST_METRIC, &view->metric, err);
    if (status == QKV_OK)
        status = qkv_request_integer(call->request, "skip_keys", 0, n - 1, &view->skip, err);
    if (view->side > n) view->side = n;
    view->rows = view->cols = view->side;
    if (status == QKV_OK && strchr(view->metric, ','))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`metric` is one metric");
    return status;
}

/* ---- maps ---- */

/* Without the first keys: blocks of the keys that are left, as large as those of the queries. */
static int open_windows(overview *view, qkv_error *err) {
    const int64_t n = (int64_t)view->request.prompt.n_tokens;
    int status = QKV_OK;
    view->windows = qkv_calloc(n_heads(view), sizeof *view->windows);
    if (!view->windows) return qkv_fail_memory(err);
    for (size_t i = 0; i < n_heads(view) && status == QKV_OK; i++) {
        view->windows[i] =
            (qkv_head_window){.r1 = n, .c0 = view->skip, .c1 = n, .side = view->side};
        status = qkv_head_window_open(&view->windows[i], err);
    }
    view->cols = view->windows[0].cols;
    return status;
}

static int add_maps(overview *view, qkv_error *err) {
    char capture[48];
    if (view->skip) {
        const int status = open_windows(view, err);
        return status == QKV_OK ? qkv_plan_observe(view->request.plan, "pattern@*", err) : status;
    }
    snprintf(capture, sizeof capture, "pattern@*:max=%d", (int)view->side);
    return qkv_plan_add_capture(view->request.plan, capture, err);
}

static void look_at_rows(void *user, const qkv_rows *rows) {
    const overview *view = user;
    const size_t at = (size_t)rows->layer * (size_t)view->request.info->n_head;
    qkv_head_window_look(&view->windows[at + (size_t)rows->head], rows);
}

static int run_maps(overview *view, qkv_session *session, qkv_error *err) {
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.rows = look_at_rows;
    observer.user = view;
    if (!view->windows) return qkv_session_run(session, &view->owned, view->request.plan, err);
    const int status =
        qkv_session_observe(session, &view->owned, view->request.plan, &observer, err);
    for (size_t i = 0; i < n_heads(view); i++) qkv_head_window_finish(&view->windows[i]);
    return status;
}

/* The maps of all heads one after the other. */
static int gather_maps(overview *view, size_t variant, qkv_error *err) {
    const size_t size = (size_t)view->rows * (size_t)view->cols,
                 layer_size = (size_t)view->request.info->n_head * size;
    float *to = view->maps[variant] = qkv_calloc(n_heads(view) * size, sizeof *to);
    if (!to) return qkv_fail_memory(err);
    for (size_t i = 0; view->windows && i < n_heads(view); i++)
        memcpy(to + i * size, view->windows[i].values[variant], size * sizeof *to);
    for (int32_t i = 0; !view->windows && i < view->request.info->n_layer; i++) {
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
    return qkv_fail(err, QKV_ERR_ARGUMENT, "%s is not a metric of single heads", info->name);
}

static void take_value(const overview *view, const qkv_measurement *m, const qkv_metric_info *info,
                       int is_metric) {
    const size_t at = (size_t)m->layer * (size_t)view->request.info->n_head + (size_t)m->head;
    if (is_metric)
        view->metrics[m->variant][at] = (float)m->value;
    else if (strcmp(info->name, "tv") == 0 && m->variant == 1)
        view->tv[at] = (float)m->value;
}

/* The metric, and the total variation where there are edits. */
static int choose_metrics(overview *view, qkv_error *err) {
    const int has_edits = qkv_request_plan_has_edits(&view->request),
              has_metric = view->metric[0] != '\0';
    const int is_tv = strcmp(view->metric, "tv") == 0;
    qkv_text wanted = {0};
    if (!has_edits && !has_metric) return QKV_OK;
    qkv_text_printf(&wanted, "%s%s%s", view->metric, has_metric && has_edits && !is_tv ? "," : "",
                    has_edits && !is_tv ? "tv" : "");
    int status = wanted.failed ? qkv_fail_memory(err)
                               : qkv_measure_new(&view->measure, wanted.data, NULL, err);
    qkv_text_release(&wanted);
    return status == QKV_OK ? check_metric(view, view->measure, err) : status;
}

static void take_values(overview *view) {
    qkv_measurement m = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; qkv_table_get(view->table, i, &m); i++) {
        const qkv_metric_info *info = qkv_measure_info(view->measure, m.metric);
        if (m.layer < 0 || m.head < 0) continue;
        if (view->metric[0] && m.metric == 0) take_value(view, &m, info, 1);
        take_value(view, &m, info, 0);
    }
}

/* Maps and metrics of patterns come from one run; a metric of anything else, and any metric where keys
 * are left out, needs one of its own. */
static int run_all(overview *view, qkv_session *session, qkv_error *err) {
    const qkv_metric_info *info = view->measure ? qkv_measure_info(view->measure, 0) : NULL;
    const int together =
        info && !view->windows &&
        (strcmp(info->needs, "pattern") == 0 || strcmp(info->needs, "pattern, baseline") == 0);
    qkv_plan *other = NULL;
    int status = QKV_OK;
    if (!together) {
        status = run_maps(view, session, err);
        view->result = view->owned;
    }
    if (status == QKV_OK && view->measure && !together) {
        status = qkv_plan_new(&other, view->request.model, view->request.prompt.tokens,
                              view->request.prompt.n_tokens, err);
        if (status == QKV_OK && qkv_request_plan_has_edits(&view->request))
            status = qkv_plan_add_variant(other, view->request.edits, NULL, err);
    }
    if (status == QKV_OK && view->measure)
        status = qkv_measure_run(view->measure, &view->table, session,
                                 together ? view->request.plan : other, err);
    if (status == QKV_OK && together) view->result = qkv_table_result(view->table);
    if (status == QKV_OK) take_values(view);
    qkv_plan_free(other);
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
    tensor.shape[0] = is_map ? (int64_t)n_heads(view) : view->request.info->n_layer;
    tensor.shape[1] = is_map ? view->rows : view->request.info->n_head;
    tensor.shape[2] = view->cols;
    return tensor;
}

static int send_view(const overview *view, qkv_reply *reply, qkv_error *err) {
    const int has_edits = qkv_request_plan_has_edits(&view->request);
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
    json_t *facts = json_pack(
        "{s:i, s:i, s:I, s:I, s:I, s:s, s:o}", "layers", (int)view->request.info->n_layer, "heads",
        (int)view->request.info->n_head, "side", (json_int_t)view->side, "skip_keys",
        (json_int_t)view->skip, "tokens", (json_int_t)view->request.prompt.n_tokens, "pooling",
        (int64_t)view->request.prompt.n_tokens > view->side ? "max" : "none", "edits",
        qkv_request_plan_changes(view->result));
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

int qkv_api_overview(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    overview view = {0};
    qkv_session *session = NULL;
    int status = qkv_request_plan_open(&view.request, pool, call, reply, err);
    if (status == QKV_OK) status = read_view(&view, call, err);
    if (status == QKV_OK) status = qkv_model_pool_session(pool, view.request.model, &session, err);
    if (status == QKV_OK) status = allocate(&view, err);
    if (status == QKV_OK) status = add_maps(&view, err);
    if (status == QKV_OK) status = choose_metrics(&view, err);
    if (status == QKV_OK) status = run_all(&view, session, err);
    for (size_t v = 0; status == QKV_OK && v < qkv_result_n_variants(view.result); v++)
        status = gather_maps(&view, v, err);
    if (status == QKV_OK) status = send_view(&view, reply, err);
    for (int i = 0; i < 2; i++) {
        free(view.maps[i]);
        free(view.metrics[i]);
    }
    for (size_t i = 0; view.windows && i < n_heads(&view); i++)
        qkv_head_window_release(&view.windows[i]);
    free(view.windows);
    free(view.tv);
    qkv_table_free(view.table);
    qkv_measure_free(view.measure);
    qkv_result_free(view.owned);
    qkv_request_plan_release(&view.request);
    return status;
}
