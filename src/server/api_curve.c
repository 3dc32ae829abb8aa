/*
 * POST /api/curve: a metric of the shown head against the number of an edit. `edits` have {eps} where
 * the number stands; all numbers are variants of one plan.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "qkv/measure.h"
#include "server/limits.h"
#include "server/request_plan.h"

enum { LONGEST_METRIC = 100 };

static const char PLACE[] = "{eps}";

typedef struct curve {
    qkv_request_plan request;
    const char *edits, *metric;
    double *numbers;
    size_t n;
    int32_t layer, head;
    qkv_measure *measure;
    qkv_table *table;
} curve;

static int read_curve(curve *c, const qkv_call *call, qkv_error *err) {
    c->edits = c->metric = "";
    int status = qkv_request_plan_head(&c->request, call, &c->layer, &c->head, err);
    if (status == QKV_OK)
        status = qkv_request_text(call->request, "edits", QKV_REQUEST_EDITS, &c->edits, err);
    if (status == QKV_OK)
        status = qkv_request_text(call->request, "metric", LONGEST_METRIC, &c->metric, err);
    if (status == QKV_OK)
        status = qkv_request_reals(call->request, "epsilons", QKV_LIMIT_EPSILONS, &c->numbers,
                                   &c->n, err);
    if (status == QKV_OK && (!c->n || !c->metric[0] || strchr(c->metric, ',')))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "a curve has one `metric` and some `epsilons`");
    if (status == QKV_OK && !strstr(c->edits, PLACE))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`edits` have {eps} where the number is to stand");
    return status;
}

/* The edits with one of the numbers in them. */
static int add_variant(const curve *c, double number, qkv_error *err) {
    qkv_text text = {0};
    const char *at = c->edits;
    for (const char *place; (place = strstr(at, PLACE)); at = place + sizeof PLACE - 1) {
        qkv_text_append(&text, at, (size_t)(place - at));
        qkv_text_append_number(&text, number);
    }
    qkv_text_puts(&text, at);
    const int status = text.failed ? qkv_fail_memory(err)
                                   : qkv_plan_add_variant(c->request.plan, text.data, NULL, err);
    qkv_text_release(&text);
    return status;
}

static int measure_curve(curve *c, qkv_model_pool *pool, qkv_error *err) {
    char layer[16], head[16];
    qkv_session *session = NULL;
    qkv_measure_options options = QKV_MEASURE_OPTIONS_INIT;
    snprintf(layer, sizeof layer, "%d", (int)c->layer);
    snprintf(head, sizeof head, "%d", (int)c->head);
    options.layers = layer;
    options.heads = head;
    int status = qkv_plan_new(&c->request.plan, c->request.model, c->request.prompt.tokens,
                              c->request.prompt.n_tokens, err);
    for (size_t i = 0; i < c->n && status == QKV_OK; i++) {
        status = qkv_model_pool_check(pool, err); /* a thousand edits take a while to read */
        if (status == QKV_OK) status = add_variant(c, c->numbers[i], err);
    }
    if (status == QKV_OK) status = qkv_measure_new(&c->measure, c->metric, &options, err);
    if (status == QKV_OK && qkv_measure_info(c->measure, 0)->scope == QKV_SCOPE_SET)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s is a metric of several prompts", c->metric);
    if (status == QKV_OK) status = qkv_model_pool_session(pool, c->request.model, &session, err);
    if (status == QKV_OK)
        status = qkv_measure_run(c->measure, &c->table, session, c->request.plan, err);
    return status;
}

/* One value of each variant, the baseline first; null where it is undefined. */
static json_t *list_values(const curve *c) {
    qkv_measurement m = QKV_MEASUREMENT_INIT;
    json_t *list = json_array();
    for (size_t i = 0; i <= c->n; i++) qkv_json_push(list, json_null());
    for (size_t i = 0; qkv_table_get(c->table, i, &m); i++)
        qkv_json_replace(list, m.variant, qkv_json_real(m.value));
    return list;
}

static int send_curve(const curve *c, qkv_reply *reply, qkv_error *err) {
    json_t *values = list_values(c), *numbers = json_array();
    for (size_t i = 0; i < c->n; i++) qkv_json_push(numbers, json_real(c->numbers[i]));
    json_t *baseline = json_incref(json_array_get(values, 0));
    json_array_remove(values, 0);
    return qkv_reply_json(reply,
                          json_pack("{s:o, s:o, s:o, s:o}", "epsilons", numbers, "values", values,
                                    "baseline", baseline, "metric", qkv_json_text(c->metric)),
                          err);
}

int qkv_api_curve(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    curve c = {0};
    int status = qkv_request_plan_tokens(&c.request, pool, call, err);
    if (status == QKV_OK) status = read_curve(&c, call, err);
    if (status == QKV_OK) status = measure_curve(&c, pool, err);
    if (status == QKV_OK) status = send_curve(&c, reply, err);
    qkv_table_free(c.table);
    qkv_measure_free(c.measure);
    free(c.numbers);
    qkv_request_plan_release(&c.request);
    return status;
}
