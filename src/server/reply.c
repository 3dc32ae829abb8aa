#include "server/reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char JSON_TYPE[] = "application/json; charset=utf-8";

void qkv_reply_release(qkv_reply *reply) {
    free(reply->bytes);
    *reply = (qkv_reply)QKV_REPLY_INIT;
}

void qkv_reply_bytes(qkv_reply *reply, char *bytes, size_t n_bytes, const char *type) {
    free(reply->bytes);
    reply->status = 200;
    reply->bytes = bytes;
    reply->n_bytes = n_bytes;
    reply->type = type;
}

int qkv_reply_json(qkv_reply *reply, json_t *json, qkv_error *err) {
    char *text = json ? qkv_json_dump(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    if (!text) return qkv_fail_memory(err);
    qkv_reply_bytes(reply, text, strlen(text), JSON_TYPE);
    return QKV_OK;
}

void qkv_reply_error(qkv_reply *reply, unsigned status, const char *code, const char *message) {
    json_t *at = reply->at >= 0 ? json_integer(reply->at) : json_null();
    json_t *length = reply->at >= 0 ? json_integer(reply->length) : json_null();
    json_t *json = json_pack("{s:{s:s, s:o, s:o, s:o}}", "error", "code", code, "message",
                             qkv_json_text(message), "at", at, "length", length);
    /* Without memory there is still a status. */
    if (qkv_reply_json(reply, json, NULL) != QKV_OK) qkv_reply_bytes(reply, NULL, 0, JSON_TYPE);
    reply->status = status;
}

void qkv_reply_failure(qkv_reply *reply, const qkv_error *err) {
    static const struct {
        int status;
        unsigned http;
        const char *code;
    } table[] = {
        {QKV_ERR_ARGUMENT, 400, "argument"},
        {QKV_ERR_SYNTAX, 400, "syntax"},
        {QKV_ERR_PLAN, 400, "plan"},
        {QKV_ERR_FORMAT, 400, "format"},
        {QKV_ERR_UNSUPPORTED, 400, "unsupported"},
        {QKV_ERR_NUMERIC, 422, "numeric"},
        {QKV_ERR_MEMORY, 503, "memory"},
        {QKV_ERR_CANCELLED, 409, "replaced"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].status != err->status) continue;
        qkv_reply_error(reply, table[i].http, table[i].code, err->message);
        return;
    }
    qkv_reply_error(reply, 500, err->status == QKV_ERR_IO ? "io" : "backend", err->message);
}
