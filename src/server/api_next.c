/*
 * POST /api/next: the most likely next tokens before and after the edits. POST /api/losses: how
 * likely each token of the prompt was. Numbers are those of qkv/next.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/logits.h"
#include "base/memory.h"
#include "qkv/next.h"
#include "server/limits.h"
#include "server/request_plan.h"

enum { DEFAULT_TOP = 10 };

/* ---- next tokens ---- */

/* One position's logits before and after; after is NULL without edits. */
typedef struct next_rows {
    const float *before, *after;
    qkv_log_sum sums[2];
    size_t n_vocab;
} next_rows;

static json_t *describe_token(const qkv_request_plan *request, const next_rows *rows,
                              int32_t token) {
    json_t *json =
        json_pack("{s:i, s:o, s:f, s:f, s:I}", "id", (int)token, "text",
                  qkv_request_plan_token_text(request->model, token), "logit_before",
                  (double)rows->before[token], "before",
                  exp(qkv_logit_log_p(rows->before[token], rows->sums[0])), "rank_before",
                  (json_int_t)qkv_logits_rank(rows->before, rows->n_vocab, token));
    if (!json || !rows->after) return json;
    qkv_json_put(json, "logit_after", json_real((double)rows->after[token]));
    qkv_json_put(json, "after", json_real(exp(qkv_logit_log_p(rows->after[token], rows->sums[1]))));
    qkv_json_put(json, "rank_after",
                 json_integer(qkv_logits_rank(rows->after, rows->n_vocab, token)));
    return json;
}

/* The most likely ones of both, those after the edits first. */
static json_t *list_tokens(const qkv_request_plan *request, const next_rows *rows, size_t top) {
    const float *const lists[] = {rows->after, rows->before};
    int32_t seen[2 * QKV_LIMIT_TOP];
    size_t n_seen = 0;
    json_t *list = json_array();
    for (int i = 0; i < 2; i++) {
        int32_t tokens[QKV_LIMIT_TOP];
        if (!lists[i]) continue;
        const size_t n = qkv_most_likely_tokens(lists[i], rows->n_vocab, tokens, top);
        for (size_t k = 0; k < n; k++) {
            size_t at = 0;
            while (at < n_seen && seen[at] != tokens[k]) at++;
            if (at < n_seen) continue;
            seen[n_seen++] = tokens[k];
            qkv_json_push(list, describe_token(request, rows, tokens[k]));
        }
    }
    return list;
}

static int take_rows(const qkv_request_plan *request, const qkv_result *result, next_rows *rows,
                     qkv_error *err) {
    qkv_tensor before = QKV_TENSOR_INIT, after = QKV_TENSOR_INIT;
    rows->n_vocab = (size_t)request->info->n_vocab;
    if (!qkv_result_get(result, 0, QKV_SITE_LOGITS, 0, &before))
        return qkv_fail(err, QKV_ERR_BACKEND, "the run gave no logits");
    rows->before = before.data;
    rows->sums[0] = qkv_log_sum_exp(rows->before, rows->n_vocab);
    if (!qkv_result_get(result, 1, QKV_SITE_LOGITS, 0, &after)) return QKV_OK;
    rows->after = after.data;
    rows->sums[1] = qkv_log_sum_exp(rows->after, rows->n_vocab);
    return QKV_OK;
}

static int send_next(const qkv_request_plan *request, const qkv_result *result, int64_t at,
                     size_t top, qkv_reply *reply, qkv_error *err) {
    next_rows rows = {0};
    const int status = take_rows(request, result, &rows, err);
    if (status != QKV_OK) return status;
    json_t *kl = rows.after ? qkv_json_real(qkv_logits_kl(rows.before, rows.sums[0], rows.after,
                                                          rows.sums[1], rows.n_vocab))
                            : json_null();
    return qkv_reply_json(reply,
                          json_pack("{s:I, s:o, s:o, s:o}", "at", (json_int_t)at, "tokens",
                                    list_tokens(request, &rows, top), "kl", kl, "edits",
                                    qkv_request_plan_changes(result)),
                          err);
}

int qkv_api_next(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    qkv_request_plan request;
    char capture[64];
    qkv_session *session = NULL;
    qkv_result *result = NULL;
    int64_t top = DEFAULT_TOP, at = -1;
    int status = qkv_request_plan_open(&request, pool, call, reply, err);
    const int64_t n = status == QKV_OK ? (int64_t)request.prompt.n_tokens : 0;
    if (status == QKV_OK)
        status = qkv_request_integer(call->request, "top", 1, QKV_LIMIT_TOP, &top, err);
    if (status == QKV_OK) status = qkv_request_integer(call->request, "at", -n, n - 1, &at, err);
    if (at < 0) at += n;
    snprintf(capture, sizeof capture, "logits[%lld]", (long long)at);
    if (status == QKV_OK) status = qkv_plan_add_capture(request.plan, capture, err);
    if (status == QKV_OK) status = qkv_model_pool_session(pool, request.model, &session, err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, request.plan, err);
    if (status == QKV_OK) status = send_next(&request, result, at, (size_t)top, reply, err);
    qkv_result_free(result);
    qkv_request_plan_release(&request);
    return status;
}

/* ---- losses ---- */

static json_t *describe_loss(const qkv_next *next, size_t index, int has_edits) {
    qkv_next_loss before = QKV_NEXT_LOSS_INIT, after = QKV_NEXT_LOSS_INIT;
    if (!qkv_next_get_loss(next, 0, index, &before)) return NULL;
    json_t *json = json_pack("{s:f, s:f, s:I}", "probability", exp(-before.loss), "loss",
                             before.loss, "rank", (json_int_t)before.rank);
    if (!json || !has_edits || !qkv_next_get_loss(next, 1, index, &after)) return json;
    qkv_json_put(json, "probability_after", json_real(exp(-after.loss)));
    qkv_json_put(json, "loss_after", json_real(after.loss));
    qkv_json_put(json, "rank_after", json_integer(after.rank));
    qkv_json_put(json, "kl", qkv_json_real(after.kl));
    return json;
}

/* Nothing predicts the first token: it has null. */
static json_t *list_losses(const qkv_next *next, size_t n, int has_edits) {
    json_t *list = json_pack("[n]");
    for (size_t i = 0; i + 1 < n; i++) qkv_json_push(list, describe_loss(next, i, has_edits));
    return list;
}

int qkv_api_losses(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    qkv_request_plan request;
    qkv_session *session = NULL;
    qkv_next *next = NULL;
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    int status = qkv_request_plan_open(&request, pool, call, reply, err);
    const int has_edits = status == QKV_OK && qkv_request_plan_has_edits(&request);
    const size_t n = status == QKV_OK ? request.prompt.n_tokens : 0;
    how.all = 1;
    how.top = 0;
    how.variants = &request.edits;
    how.n_variants = (size_t)has_edits;
    if (status == QKV_OK) status = qkv_model_pool_session(pool, request.model, &session, err);
    if (status == QKV_OK && n > 1)
        status = qkv_next_new(&next, session, request.prompt.tokens, n, &how, err);
    if (status == QKV_OK)
        status = qkv_reply_json(
            reply,
            json_pack("{s:o, s:o, s:o}", "tokens", list_losses(next, n, has_edits), "mean_loss",
                      next ? qkv_json_real(qkv_next_mean_loss(next, 0)) : json_null(),
                      "mean_loss_after",
                      next && has_edits ? qkv_json_real(qkv_next_mean_loss(next, 1)) : json_null()),
            err);
    qkv_next_free(next);
    qkv_request_plan_release(&request);
    return status;
}
