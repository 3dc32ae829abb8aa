#include "server/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* Beside the first line, those of the study of the same kind. */
#define FIGURE_FIELDS                                                                              \
    "prompt prompts format name dry "                                                              \
    "kind layer head all_heads eps show baseline diff skip_keys sink_column labels values "        \
    "hide_axes scale gamma range title dpi panel_size colormap masked text font width hide_notes " \
    "layers variant query rows cols font_size bar_label heads"

static const qkv_endpoint endpoints[] = {
    {"/api/state", "GET", "", QKV_RANK_LIGHT, 0, qkv_api_state},
    {"/api/model", "POST", "", QKV_RANK_LIGHT, 0, qkv_api_model},
    {"/api/tokens", "POST", "prompt", QKV_RANK_LIGHT, 0, qkv_api_tokens},
    {"/api/check", "POST", "prompt edits", QKV_RANK_LIGHT, 0, qkv_api_check},
    {"/api/head", "POST", "prompt edits layer head side window metrics only", QKV_RANK_HEAD, 0,
     qkv_api_head},
    {"/api/overview", "POST", "prompt edits side skip_keys metric", QKV_RANK_REST, 1,
     qkv_api_overview},
    {"/api/losses", "POST", "prompt edits", QKV_RANK_REST, 1, qkv_api_losses},
    {"/api/next", "POST", "prompt edits top at", QKV_RANK_REST, 1, qkv_api_next},
    {"/api/curve", "POST", "prompt edits epsilons layer head metric", QKV_RANK_REST, 1,
     qkv_api_curve},
    {"/api/generate", "POST", "prompt edits n temperature top_k top_p min_p seed", QKV_RANK_REST, 1,
     qkv_api_generate},
    {"/api/why", "POST", "prompt edits layer head query key top", QKV_RANK_REST, 1, qkv_api_why},
    {"/api/figure", "POST", FIGURE_FIELDS, QKV_RANK_REST, 0, qkv_api_figure},
    {"/api/kinds", "GET", "", QKV_RANK_LIGHT, 0, qkv_api_kinds},
    {"/api/study", "POST", "kind options prompts second_model format name dry", QKV_RANK_REST, 1,
     qkv_api_study},
    {"/api/recipe", "POST", NULL, QKV_RANK_LIGHT, 0, qkv_api_recipe},
};

const qkv_endpoint *qkv_endpoint_get(size_t index) {
    return index < sizeof endpoints / sizeof *endpoints ? &endpoints[index] : NULL;
}

const qkv_endpoint *qkv_endpoint_find(const char *path) {
    const qkv_endpoint *endpoint;
    for (size_t i = 0; (endpoint = qkv_endpoint_get(i)); i++) {
        if (strcmp(endpoint->path, path) == 0) return endpoint;
    }
    return NULL;
}

/* A field that is not given is what the server takes for it. */
static void add_default(json_t *fields, const char *field, json_t *value) {
    const json_t *given = json_object_get(fields, field);
    if (!given || json_is_null(given))
        qkv_json_put(fields, field, value);
    else
        json_decref(value);
}

/* The path and the fields, without who asks. */
static char *make_key(const json_t *request, const qkv_endpoint *endpoint,
                      const qkv_model_pool *pool) {
    static const char *const asker[] = {"client", "slot", "seq"};
    qkv_text key = {0};
    json_t *fields = qkv_json_copy(request);
    for (size_t i = 0; i < sizeof asker / sizeof *asker; i++) json_object_del(fields, asker[i]);
    add_default(fields, "model", qkv_json_text(qkv_model_pool_get(pool, 0)->name));
    add_default(fields, "prompt",
                json_pack("{s:o}", "text", qkv_json_text(qkv_model_pool_options(pool)->prompt)));
    char *text = fields ? qkv_json_dump(fields, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    qkv_text_printf(&key, "%s %s", endpoint->path, text ? text : "");
    const int failed = !text || key.failed;
    free(text);
    json_decref(fields);
    if (failed) qkv_text_release(&key);
    return key.data;
}

int qkv_call_read(qkv_call *call, const qkv_endpoint *endpoint, const qkv_model_pool *pool,
                  char *body, size_t n_body, qkv_error *err) {
    *call = (qkv_call){.body = body, .n_body = n_body};
    if (!endpoint->fields) return QKV_OK;
    int status = qkv_request_parse(&call->request, body, n_body, err);
    if (status == QKV_OK)
        status = qkv_request_read(call->request, endpoint->fields, &call->common, err);
    if (status != QKV_OK || !endpoint->keeps) return status;
    call->key = make_key(call->request, endpoint, pool);
    return call->key ? QKV_OK : qkv_fail_memory(err);
}

void qkv_call_release(qkv_call *call) {
    json_decref(call->request);
    free(call->body);
    free(call->key);
    *call = (qkv_call){0};
}

void qkv_call_run(const qkv_call *call, const qkv_endpoint *endpoint, qkv_model_pool *pool,
                  qkv_reply *reply) {
    qkv_error err = {0};
    if (endpoint->run(pool, call, reply, &err) != QKV_OK) qkv_reply_failure(reply, &err);
}
