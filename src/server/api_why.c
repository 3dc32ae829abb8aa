/*
 * POST /api/why: why a query looks at a key. The score is a sum over channels, q_rot · k_rot times the
 * scale, before the soft-cap; what each channel adds is told before and after the edits, and what the
 * distance adds where the model has ALiBi. And which
 * tokens the head would write for that key's value (qkv/head_output.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/head_output.h"
#include "qkv/next.h"
#include "server/limits.h"
#include "server/request_plan.h"
#include "study/head_scores.h"

enum { DEFAULT_TOP = 10 };

typedef struct cell {
    qkv_request_plan request;
    int32_t layer, head, kv_layer; /* the last: whose keys and values the head sees */
    int64_t query, key, top;
    qkv_result *result;
} cell;

static int read_cell(cell *c, const qkv_call *call, qkv_error *err) {
    const int64_t last = (int64_t)c->request.prompt.n_tokens - 1;
    c->top = DEFAULT_TOP;
    int status = qkv_request_plan_head(&c->request, call, &c->layer, &c->head, err);
    qkv_layer_info shape = QKV_LAYER_INFO_INIT;
    if (status == QKV_OK && qkv_model_get_layer(c->request.model, c->layer, &shape))
        c->kv_layer = shape.kv_layer;
    if (status == QKV_OK) status = qkv_request_need(call->request, "query", err);
    if (status == QKV_OK) status = qkv_request_need(call->request, "key", err);
    if (status == QKV_OK)
        status = qkv_request_integer(call->request, "query", 0, last, &c->query, err);
    if (status == QKV_OK) status = qkv_request_integer(call->request, "key", 0, last, &c->key, err);
    if (status == QKV_OK)
        status = qkv_request_integer(call->request, "top", 1, QKV_LIMIT_TOP, &c->top, err);
    return status;
}

static int run_cell(cell *c, qkv_model_pool *pool, qkv_error *err) {
    static const char *const sites[] = {"q_rot", "k_rot", "v"};
    qkv_session *session = NULL;
    char text[64];
    int status = QKV_OK;
    for (size_t i = 0; i < 3 && status == QKV_OK; i++) {
        snprintf(text, sizeof text, "%s@%d.h%d", sites[i], (int)(i ? c->kv_layer : c->layer),
                 (int)c->head);
        status = qkv_plan_add_capture(c->request.plan, text, err);
    }
    snprintf(text, sizeof text, "pattern@%d", (int)c->layer);
    if (status == QKV_OK) status = qkv_plan_prepare(c->request.plan, text, err);
    if (status == QKV_OK)
        status = qkv_model_pool_head_session(pool, c->request.model, &session, err);
    return status == QKV_OK ? qkv_session_run(session, &c->result, c->request.plan, err) : status;
}

/* One token's channels of a site [T, heads captured, d], and how many there are; NULL: not captured. */
static const float *channels_of(const cell *c, size_t variant, qkv_site site, int64_t token,
                                int64_t *n) {
    qkv_tensor t = QKV_TENSOR_INIT;
    const int32_t layer = site == QKV_SITE_Q_ROT ? c->layer : c->kv_layer;
    if (!qkv_result_get(c->result, variant, site, layer, &t)) return NULL;
    *n = t.shape[2];
    return t.data + token * t.shape[1] * t.shape[2];
}

/* ---- the score ---- */

static json_t *describe_score(const cell *c, size_t variant) {
    int64_t n = 0;
    const float *q = channels_of(c, variant, QKV_SITE_Q_ROT, c->query, &n);
    const float *k = channels_of(c, variant, QKV_SITE_K_ROT, c->key, &n);
    if (!q || !k) return json_null();
    json_t *channels = json_array();
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double part = c->request.info->attn_scale * (double)q[i] * (double)k[i];
        sum += part;
        qkv_json_push(channels, qkv_json_real(part));
    }
    return json_pack("{s:o, s:o}", "score", qkv_json_real(sum), "channels", channels);
}

static double bias_of(const cell *c) {
    return qkv_head_slope(c->request.model, c->layer, c->head) * (double)(c->key - c->query);
}

/* ---- what is written ---- */

static int list_writes(const cell *c, size_t variant, json_t **out, qkv_error *err) {
    int64_t width = 0;
    const float *value = channels_of(c, variant, QKV_SITE_V, c->key, &width);
    const size_t n = (size_t)c->request.info->n_vocab;
    int32_t tokens[QKV_LIMIT_TOP];
    *out = json_array();
    if (!c->request.info->has_logits || !value) return QKV_OK;
    float *logits = qkv_calloc(n, sizeof *logits);
    if (!logits) return qkv_fail_memory(err);
    const int status = qkv_head_logits(c->request.model, c->layer, c->head, value, logits, err);
    const size_t n_top =
        status == QKV_OK ? qkv_most_likely_tokens(logits, n, tokens, (size_t)c->top) : 0;
    for (size_t i = 0; i < n_top; i++)
        qkv_json_push(*out, json_pack("{s:i, s:o, s:f}", "id", (int)tokens[i], "text",
                                      qkv_request_plan_token_text(c->request.model, tokens[i]),
                                      "logit", (double)logits[tokens[i]]));
    free(logits);
    return status;
}

static int send_cell(const cell *c, qkv_reply *reply, qkv_error *err) {
    const int has_edits = qkv_request_plan_has_edits(&c->request);
    json_t *writes = NULL, *after = NULL;
    int status = list_writes(c, 0, &writes, err);
    if (status == QKV_OK && has_edits) status = list_writes(c, 1, &after, err);
    if (status != QKV_OK) {
        json_decref(writes);
        json_decref(after);
        return status;
    }
    return qkv_reply_json(
        reply,
        json_pack("{s:o, s:o, s:f, s:f, s:f, s:o, s:o, s:o}", "before", describe_score(c, 0),
                  "after", has_edits ? describe_score(c, 1) : json_null(), "scale",
                  c->request.info->attn_scale, "soft_cap", c->request.info->attn_softcap, "bias",
                  bias_of(c), "writes", writes, "writes_after", after ? after : json_null(),
                  "edits", qkv_request_plan_changes(c->result)),
        err);
}

int qkv_api_why(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    cell c = {0};
    int status = qkv_request_plan_open(&c.request, pool, call, reply, err);
    if (status == QKV_OK) status = read_cell(&c, call, err);
    if (status == QKV_OK) status = run_cell(&c, pool, err);
    if (status == QKV_OK) status = send_cell(&c, reply, err);
    qkv_result_free(c.result);
    qkv_request_plan_release(&c.request);
    return status;
}
