#include "server/request_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/model.h"
#include "qkv/chat.h"
#include "run/run.h"

/* ---- edits ---- */

int qkv_request_plan_has_edits(const qkv_request_plan *request) {
    for (const char *at = request->edits; *at; at++) {
        if (!qkv_is_space(*at)) return 1;
    }
    return 0;
}

/* Where the edit after `at` ends: at a '+' with spaces around it, or at the end of the text. */
static size_t end_of(const char *text, size_t at) {
    for (; text[at]; at++) {
        const int joint = text[at] == '+' && at && qkv_is_space(text[at - 1]);
        if (joint && (qkv_is_space(text[at + 1]) || !text[at + 1])) return at;
    }
    return at;
}

/* Is the text up to `end` a variant? */
static int works(const qkv_request_plan *request, size_t end) {
    char *prefix = qkv_strndup(request->edits, end);
    qkv_plan *plan = NULL;
    const int good = prefix &&
                     qkv_plan_new(&plan, request->model, request->prompt.tokens,
                                  request->prompt.n_tokens, NULL) == QKV_OK &&
                     qkv_plan_add_variant(plan, prefix, NULL, NULL) == QKV_OK;
    qkv_plan_free(plan);
    free(prefix);
    return good;
}

/* Of edits that do not go together, the one at fault is the first with which the text is refused. More of
 * a text that is refused is refused as well, so half of the edits are left out each time: a text may
 * have a thousand of them. */
static void find_edit(const qkv_request_plan *request, qkv_reply *reply) {
    const size_t length = strlen(request->edits);
    size_t *ends = NULL, n = 0, capacity = 0;
    for (size_t at = 0; at <= length; at = ends[n - 1] + 1) {
        if (!QKV_PUSH(ends, capacity, n, end_of(request->edits, at))) break;
    }
    size_t first = 0, last = n; /* the one at fault is of [first, last) */
    while (last > first + 1) {
        const size_t middle = first + (last - first) / 2;
        if (works(request, ends[middle - 1]))
            first = middle;
        else
            last = middle;
    }
    if (n) {
        size_t begin = first ? ends[first - 1] + 1 : 0, end = ends[first];
        while (begin < end && qkv_is_space(request->edits[begin])) begin++;
        while (end > begin && qkv_is_space(request->edits[end - 1])) end--;
        reply->at = (int64_t)begin;
        reply->length = (int64_t)(end - begin);
    }
    free(ends);
}

static void find_mistake(const qkv_request_plan *request, qkv_reply *reply) {
    size_t at, length;
    if (!qkv_plan_mistake(request->plan, &at, &length) || length == strlen(request->edits)) {
        find_edit(request, reply);
        return;
    }
    reply->at = (int64_t)at;
    reply->length = (int64_t)length;
}

/* ---- the whole ---- */

int qkv_request_plan_tokens(qkv_request_plan *request, qkv_model_pool *pool, const qkv_call *call,
                            qkv_error *err) {
    *request = (qkv_request_plan){.edits = ""};
    const int status =
        qkv_model_pool_open(pool, call->common.model, &request->pool_model, &request->model, err);
    if (status != QKV_OK) return status;
    request->info = qkv_model_get_info(request->model);
    return qkv_model_pool_prompt(pool, request->model, call->request, &request->prompt, err);
}

int qkv_request_plan_open(qkv_request_plan *request, qkv_model_pool *pool, const qkv_call *call,
                          qkv_reply *reply, qkv_error *err) {
    int status = qkv_request_plan_tokens(request, pool, call, err);
    if (status == QKV_OK)
        status = qkv_request_text(call->request, "edits", QKV_REQUEST_EDITS, &request->edits, err);
    if (status == QKV_OK)
        status = qkv_plan_new(&request->plan, request->model, request->prompt.tokens,
                              request->prompt.n_tokens, err);
    if (status != QKV_OK || !qkv_request_plan_has_edits(request)) return status;
    status = qkv_plan_add_variant(request->plan, request->edits, NULL, err);
    if (status != QKV_OK) find_mistake(request, reply);
    return status;
}

void qkv_request_plan_release(qkv_request_plan *request) {
    qkv_plan_free(request->plan);
    qkv_own_prompt_release(&request->prompt);
    qkv_model_free(request->model);
    *request = (qkv_request_plan){.edits = ""};
}

int qkv_request_plan_head(const qkv_request_plan *request, const qkv_call *call, int32_t *layer,
                          int32_t *head, qkv_error *err) {
    int64_t l = 0, h = 0;
    int status = qkv_request_need(call->request, "layer", err);
    if (status == QKV_OK) status = qkv_request_need(call->request, "head", err);
    if (status == QKV_OK)
        status =
            qkv_request_integer(call->request, "layer", 0, request->info->n_layer - 1, &l, err);
    if (status == QKV_OK)
        status = qkv_request_integer(call->request, "head", 0, request->info->n_head - 1, &h, err);
    *layer = (int32_t)l;
    *head = (int32_t)h;
    return status;
}

/* ---- parts of answers ---- */

json_t *qkv_request_plan_token_text(const qkv_model *model, int32_t token) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(model, &bytes, &length, token, NULL);
    if (status == QKV_ERR_MEMORY) return NULL;
    if (status != QKV_OK) return json_sprintf("%d", (int)token); /* a model without a tokenizer */
    json_t *text = qkv_json_string(bytes, length);
    qkv_text_free(bytes);
    return text;
}

json_t *qkv_request_plan_changes(const qkv_result *result) {
    json_t *list = json_array();
    for (size_t i = 0; i < qkv_result_n_edits(result, 1); i++) {
        qkv_json_push(list, json_pack("{s:o, s:I, s:I, s:b}", "text",
                                      qkv_json_text(qkv_result_edit_text(result, 1, i)), "selected",
                                      (json_int_t)qkv_result_edit_selected(result, 1, i), "changed",
                                      (json_int_t)qkv_result_edit_changed(result, 1, i), "ran",
                                      qkv_result_edit_ran(result, 1, i)));
    }
    return list;
}

static json_t *windows(const qkv_model *model, int32_t n_layer) {
    json_t *list = json_array();
    for (int32_t i = 0; i < n_layer; i++)
        qkv_json_push(list, json_integer(qkv_model_window(model, i)));
    return list;
}

static int has_gate(const qkv_model *model) {
    qkv_layer_info layer = QKV_LAYER_INFO_INIT;
    for (int32_t i = 0; qkv_model_get_layer(model, i, &layer); i++) {
        if (layer.has_gate) return 1;
    }
    return 0;
}

json_t *qkv_request_plan_facts(const qkv_pool_model *which, const qkv_model *model) {
    const qkv_model_info *info = qkv_model_get_info(model);
    json_t *facts =
        json_pack("{s:o, s:o, s:s, s:s, s:o, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "name",
                  qkv_json_text(which->name), "title", qkv_json_text(info->name), "architecture",
                  info->architecture, "position", info->position, "tensor_types",
                  qkv_json_text(info->tensor_types), "tokenizer", info->tokenizer, "layers",
                  (int)info->n_layer, "heads", (int)info->n_head, "kv_heads", (int)info->n_kv_head,
                  "head_dim", (int)info->head_dim, "width", (int)info->n_embd, "vocab",
                  (int)info->n_vocab, "n_ctx", (int)info->n_ctx);
    json_t *more =
        json_pack("{s:I, s:I, s:b, s:b, s:b, s:b, s:f, s:b, s:o, s:o, s:o}", "params",
                  (json_int_t)info->n_params, "size", (json_int_t)info->file_size, "causal",
                  (int)info->causal, "has_logits", (int)info->has_logits, "has_sink",
                  (int)info->has_sink, "has_gate", has_gate(model), "soft_cap", info->attn_softcap,
                  "has_chat", qkv_model_chat_template(model) != NULL, "windows",
                  windows(model, info->n_layer), "notices", qkv_json_text(info->notices),
                  "argument", which->argument ? qkv_json_text(which->argument) : json_null());
    qkv_json_put_all(facts, more);
    json_decref(more);
    return facts;
}
