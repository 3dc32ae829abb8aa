/* POST /api/tokens: how a prompt is cut into tokens. POST /api/check: what edits mean. */
#include <string.h>

#include "base/json.h"
#include "run/run.h"
#include "server/request_plan.h"

static json_t *describe_prompt(const qkv_request_plan *request) {
    const qkv_own_prompt *prompt = &request->prompt;
    json_t *ids = json_array(), *texts = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        qkv_json_push(ids, json_integer(prompt->tokens[i]));
        qkv_json_push(texts, qkv_request_plan_token_text(request->model, prompt->tokens[i]));
    }
    json_t *text = prompt->text ? qkv_json_string(prompt->text, prompt->length) : json_null();
    return json_pack("{s:o, s:o, s:o, s:I}", "ids", ids, "texts", texts, "text", text, "n",
                     (json_int_t)prompt->n_tokens);
}

int qkv_api_tokens(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    qkv_request_plan request;
    int status = qkv_request_plan_tokens(&request, pool, call, err);
    if (status == QKV_OK) status = qkv_reply_json(reply, describe_prompt(&request), err);
    qkv_request_plan_release(&request);
    return status;
}

/* ---- edits ---- */

/* The numbers of a list of bytes; null: all. */
static json_t *list_chosen(const uint8_t *chosen, size_t n) {
    if (!chosen) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        if (chosen[i]) qkv_json_push(list, json_integer((json_int_t)i));
    }
    return list;
}

static json_t *describe_edit(const qkv_request_plan *request, const qkv_edit_info *edit) {
    const size_t n = request->prompt.n_tokens;
    const char kind[2] = {edit->head_kind, '\0'};
    return json_pack("{s:o, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "text",
                     qkv_json_text(edit->text), "site", qkv_site_name(edit->site), "op", edit->op,
                     "number", qkv_json_real(edit->number), "selected", (json_int_t)edit->selected,
                     "layers", list_chosen(edit->layers, (size_t)request->info->n_layer),
                     "head_kind", kind[0] ? json_string(kind) : json_null(), "heads",
                     list_chosen(edit->heads, (size_t)edit->n_heads), "tokens",
                     list_chosen(edit->rows, n), "keys", list_chosen(edit->cols, n), "channels",
                     list_chosen(edit->channels, (size_t)edit->n_channels));
}

int qkv_api_check(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    qkv_request_plan request;
    qkv_edit_info edit = QKV_EDIT_INFO_INIT;
    const int status = qkv_request_plan_open(&request, pool, call, reply, err);
    json_t *list = json_array();
    for (size_t i = 0; status == QKV_OK && qkv_plan_get_edit(request.plan, 1, i, &edit); i++)
        qkv_json_push(list, describe_edit(&request, &edit));
    qkv_request_plan_release(&request);
    if (status == QKV_OK)
        return qkv_reply_json(reply, json_pack("{s:b, s:o}", "ok", 1, "edits", list), err);
    json_decref(list);
    return status;
}
