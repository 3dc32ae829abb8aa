/*
 * POST /api/head: one head's map before and after the edits. Fast enough to follow a slider: another factor of
 * an edit in the head's own layer costs the attention of that head and no more.
 *
 * A prompt of at most `side` tokens gives whole maps, those of `qkv run` bit for bit. A longer one
 * gives maps that are pooled to `side` cells, the largest weight of each block, or a `window` of the
 * whole map.
 *
 * `only`: "scores" gives what the page needs to make the maps of other factors itself, while a slider
 * moves: the head's scores, and which of the edits are factors of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/model.h"
#include "qkv/measure.h"
#include "qkv/store.h"
#include "run/run.h"
#include "server/head_window.h"
#include "server/limits.h"
#include "server/request_plan.h"
#include "store/store_formats.h"
#include "study/head_scores.h"

enum { DEFAULT_SIDE = 1024, MOST_METRICS = 400 };

typedef struct head_view {
    qkv_request_plan request;
    int32_t layer, head;
    int64_t side;
    const char *metrics, *only;
    int pooled;
    int has_window;
    qkv_head_window window;
    qkv_result *result;
    int wants_scores;
    float *scores; /* [T, T], where they are wanted */
} head_view;

/* [first query, end, first key, end] */
static int read_window(head_view *view, const json_t *request, qkv_error *err) {
    const int64_t n = (int64_t)view->request.prompt.n_tokens;
    int32_t *at = NULL;
    size_t count = 0;
    const int status = qkv_request_integers(request, "window", 0, n, 4, &at, &count, err);
    if (status != QKV_OK || !at) return status;
    const int fits = count == 4 && at[0] < at[1] && at[2] < at[3];
    view->has_window = fits;
    if (fits)
        view->window = (qkv_head_window){
            .r0 = at[0], .r1 = at[1], .c0 = at[2], .c1 = at[3], .side = view->side};
    free(at);
    return fits ? QKV_OK
                : qkv_fail(err, QKV_ERR_ARGUMENT,
                           "`window` is [first query, end, first key, end], and not empty");
}

static int read_view(head_view *view, const qkv_call *call, qkv_error *err) {
    const json_t *request = call->request;
    view->side = DEFAULT_SIDE;
    view->metrics = "";
    view->only = "";
    int status = qkv_request_plan_head(&view->request, call, &view->layer, &view->head, err);
    if (status == QKV_OK)
        status = qkv_request_integer(request, "side", 1, QKV_LIMIT_SIDE, &view->side, err);
    if (status == QKV_OK)
        status = qkv_request_text(request, "metrics", MOST_METRICS, &view->metrics, err);
    if (status == QKV_OK) status = qkv_request_text(request, "only", 16, &view->only, err);
    view->wants_scores = strcmp(view->only, "scores") == 0;
    if (status == QKV_OK && view->only[0] && !view->wants_scores &&
        strcmp(view->only, "after") != 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`only` is \"after\", \"scores\" or not there");
    if (status == QKV_OK) status = read_window(view, request, err);
    view->pooled = !view->has_window && (int64_t)view->request.prompt.n_tokens > view->side;
    if (status == QKV_OK && view->wants_scores && (view->pooled || view->has_window))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "scores are given for whole maps only");
    return status;
}

static int add_captures(const head_view *view, qkv_error *err) {
    char own[32], whole[64], pooled[96], sink[96];
    qkv_plan *plan = view->request.plan;
    snprintf(own, sizeof own, "pattern@%d", (int)view->layer);
    snprintf(whole, sizeof whole, "%s.h%d", own, (int)view->head);
    snprintf(pooled, sizeof pooled, "%s:max=%d", whole, (int)view->side);
    snprintf(sink, sizeof sink, "%s:sink", whole);
    int status = view->has_window ? qkv_plan_observe(plan, whole, err)
                                  : qkv_plan_add_capture(plan, view->pooled ? pooled : whole, err);
    if (status == QKV_OK && view->request.info->has_sink)
        status = qkv_plan_add_capture(plan, sink, err);
    /* What another factor starts from stays in the session. */
    return status == QKV_OK ? qkv_plan_prepare(plan, own, err) : status;
}

static int take_scores(head_view *view, qkv_session *session, qkv_error *err) {
    const qkv_own_prompt *prompt = &view->request.prompt;
    view->scores = qkv_calloc(prompt->n_tokens * prompt->n_tokens, sizeof *view->scores);
    if (!view->scores) return qkv_fail_memory(err);
    return qkv_head_scores(session, prompt->tokens, prompt->n_tokens, view->layer, view->head,
                           view->scores, err);
}

static int run_view(head_view *view, qkv_model_pool *pool, qkv_error *err) {
    qkv_session *session;
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.rows = qkv_head_window_look;
    observer.user = &view->window;
    int status = add_captures(view, err);
    if (status == QKV_OK)
        status = qkv_model_pool_head_session(pool, view->request.model, &session, err);
    if (status == QKV_OK && view->has_window) status = qkv_head_window_open(&view->window, err);
    if (status != QKV_OK) return status;
    if (!view->has_window) {
        status = qkv_session_run(session, &view->result, view->request.plan, err);
        return status == QKV_OK && view->wants_scores ? take_scores(view, session, err) : status;
    }
    status = qkv_session_observe(session, &view->result, view->request.plan, &observer, err);
    if (status == QKV_OK) qkv_head_window_finish(&view->window);
    return status;
}

/* ---- the answer ---- */

enum { BEFORE, AFTER };

static int get_map(const head_view *view, size_t variant, qkv_tensor *map) {
    *map = (qkv_tensor)QKV_TENSOR_INIT;
    if (view->has_window) {
        map->data = view->window.values[variant];
        map->n_dims = 3;
        map->shape[0] = 1;
        map->shape[1] = view->window.rows;
        map->shape[2] = view->window.cols;
        return 1;
    }
    if (view->pooled)
        return qkv_result_get_reduced(view->result, variant, QKV_REDUCTION_MAX, view->layer, map);
    return qkv_result_get(view->result, variant, QKV_SITE_PATTERN, view->layer, map);
}

static qkv_store_tensor matrix(const char *name, const qkv_tensor *map) {
    qkv_store_tensor tensor = QKV_STORE_TENSOR_INIT;
    tensor.name = name;
    tensor.data = map->data;
    tensor.n_dims = map->n_dims - 1; /* of one head */
    tensor.shape[0] = map->shape[1];
    tensor.shape[1] = map->shape[2];
    return tensor;
}

static qkv_store_tensor score_tensor(const head_view *view) {
    qkv_store_tensor tensor = QKV_STORE_TENSOR_INIT;
    tensor.name = "scores";
    tensor.data = view->scores;
    tensor.n_dims = 2;
    tensor.shape[0] = tensor.shape[1] = (int64_t)view->request.prompt.n_tokens;
    return tensor;
}

static size_t list_tensors(const head_view *view, qkv_store_tensor tensors[4]) {
    if (view->wants_scores) return tensors[0] = score_tensor(view), 1;
    static const char *const maps[] = {"before", "after"};
    static const char *const sinks[] = {"sink_before", "sink_after"};
    const size_t n_variants = qkv_result_n_variants(view->result);
    size_t n = 0;
    for (size_t v = view->only[0] && n_variants > 1 ? 1 : 0; v < n_variants && v < 2; v++) {
        qkv_tensor map, sink = QKV_TENSOR_INIT;
        if (get_map(view, v, &map)) tensors[n++] = matrix(maps[v], &map);
        if (qkv_result_get_reduced(view->result, v, QKV_REDUCTION_SINK, view->layer, &sink))
            tensors[n++] = matrix(sinks[v], &sink);
    }
    return n;
}

/* The metrics of a whole map by their names; null where one is undefined. */
static json_t *measure_map(const head_view *view, const qkv_measure *measure, size_t variant) {
    qkv_tensor before, after;
    double values[MOST_METRICS];
    qkv_pattern pattern = QKV_PATTERN_INIT;
    if (!get_map(view, 0, &before) || !get_map(view, variant, &after)) return NULL;
    pattern.weights = after.data;
    pattern.baseline = before.data;
    pattern.tokens = view->request.prompt.tokens;
    pattern.n_tokens = (int64_t)view->request.prompt.n_tokens;
    pattern.window = qkv_model_window(view->request.model, view->layer);
    pattern.bidirectional = !view->request.info->causal;
    if (qkv_measure_pattern(measure, &pattern, values, NULL) != QKV_OK) return NULL;
    json_t *json = json_object();
    for (size_t i = 0; qkv_measure_text(measure, i); i++)
        qkv_json_put(json, qkv_measure_text(measure, i), qkv_json_real(values[i]));
    return json;
}

static int add_metrics(const head_view *view, json_t *facts, qkv_error *err) {
    qkv_measure *measure = NULL;
    json_t *list = json_array();
    if (!view->metrics[0] || view->pooled || view->has_window) return json_decref(list), QKV_OK;
    const int status = qkv_measure_new(&measure, view->metrics, NULL, err);
    for (size_t v = 0; status == QKV_OK && v < qkv_result_n_variants(view->result); v++)
        qkv_json_push(list, measure_map(view, measure, v));
    qkv_measure_free(measure);
    qkv_json_put(facts, "metrics", list);
    return status;
}

/* The tokens that an edit selects; null: all of them. */
static json_t *selected_tokens(const qkv_edit_info *edit, size_t n_tokens) {
    if (!edit->rows) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n_tokens; i++) {
        if (edit->rows[i]) qkv_json_push(list, json_integer((json_int_t)i));
    }
    return list;
}

/* What each edit is to the scores: null where the map cannot be made of them. */
static json_t *list_factors(const head_view *view) {
    static const char *const axes[] = {[QKV_SCORE_NOTHING] = "none",
                                       [QKV_SCORE_VALUE] = "none",
                                       [QKV_SCORE_QUERY] = "query",
                                       [QKV_SCORE_KEY] = "key"};
    const qkv_plan *plan = view->request.plan;
    qkv_edit_info edit = QKV_EDIT_INFO_INIT;
    json_t *list = json_array();
    for (size_t i = 0; qkv_plan_get_edit(plan, 1, i, &edit); i++) {
        const qkv_score_role role =
            qkv_edit_score_role(plan, view->result, 1, i, view->layer, view->head);
        if (role == QKV_SCORE_OTHER) return json_decref(list), json_null();
        qkv_json_push(list, json_pack("{s:s, s:o}", "axis", axes[role], "tokens",
                                      selected_tokens(&edit, view->request.prompt.n_tokens)));
    }
    return list;
}

static int add_score_facts(const head_view *view, json_t *facts, qkv_error *err) {
    double sink = 0;
    if (!view->wants_scores) return QKV_OK;
    const int has_sink = view->request.info->has_sink;
    const int status =
        has_sink ? qkv_model_sink(view->request.model, view->layer, view->head, &sink, err)
                 : QKV_OK;
    qkv_json_put(facts, "soft_cap", json_real(view->request.info->attn_softcap));
    qkv_json_put(facts, "slope",
                 json_real(qkv_head_slope(view->request.model, view->layer, view->head)));
    qkv_json_put(facts, "sink", has_sink ? json_real(sink) : json_null());
    qkv_json_put(facts, "factors", list_factors(view));
    return status;
}

/* A text of JSON, under the key "qkv" of the file's metadata. */
static int describe(const head_view *view, char **out, qkv_error *err) {
    const int64_t n = (int64_t)view->request.prompt.n_tokens;
    const qkv_head_window *w = &view->window;
    const double step = view->has_window ? (double)w->extent / (double)w->cells
                        : view->pooled   ? (double)n / (double)view->side
                                         : 1;
    json_t *facts = json_pack(
        "{s:i, s:i, s:I, s:i, s:b, s:s, s:f, s:[I, I, I, I], s:o}", "layer", (int)view->layer,
        "head", (int)view->head, "tokens", (json_int_t)n, "window",
        (int)qkv_model_window(view->request.model, view->layer), "causal",
        (int)view->request.info->causal, "pooling", step > 1 ? "max" : "none", "step", step, "view",
        (json_int_t)(view->has_window ? w->r0 : 0), (json_int_t)(view->has_window ? w->r1 : n),
        (json_int_t)(view->has_window ? w->c0 : 0), (json_int_t)(view->has_window ? w->c1 : n),
        "edits", qkv_request_plan_changes(view->result));
    int status = facts ? add_metrics(view, facts, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = add_score_facts(view, facts, err);
    *out = status == QKV_OK ? qkv_json_dump(facts, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(facts);
    if (status != QKV_OK) return status;
    return *out ? QKV_OK : qkv_fail_memory(err);
}

static int send_view(const head_view *view, qkv_reply *reply, qkv_error *err) {
    qkv_store_tensor tensors[4];
    const size_t n = list_tensors(view, tensors);
    char *facts = NULL, *bytes = NULL;
    size_t n_bytes = 0;
    int status = describe(view, &facts, err);
    const char *const metadata[] = {"qkv", facts};
    if (status == QKV_OK)
        status = qkv_store_render_tensors(tensors, n, metadata, 1, &bytes, &n_bytes, err);
    if (status == QKV_OK) qkv_reply_bytes(reply, bytes, n_bytes, "application/octet-stream");
    free(facts);
    return status;
}

int qkv_api_head(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    head_view view = {0};
    int status = qkv_request_plan_open(&view.request, pool, call, reply, err);
    if (status == QKV_OK) status = read_view(&view, call, err);
    if (status == QKV_OK) status = run_view(&view, pool, err);
    if (status == QKV_OK) status = send_view(&view, reply, err);
    qkv_head_window_release(&view.window);
    free(view.scores);
    qkv_result_free(view.result);
    qkv_request_plan_release(&view.request);
    return status;
}
