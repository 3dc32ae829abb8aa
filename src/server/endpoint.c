#include "server/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "qkv/study.h"

/* Beside these, the fields of the studies that are figures; the last ones stand for some of them. */
#define FIGURE_FIELDS                                                                              \
    "prompt prompts format name dry kind all_heads rows cols heads hide_axes hide_notes"

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

/* Of figures, with what their studies are asked about work and look. What names or leaves out files is not asked here. */
static void list_fields(const qkv_endpoint *endpoint, qkv_text *out) {
    qkv_study_kind kind = QKV_STUDY_KIND_INIT;
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    const char *name;
    qkv_text_puts(out, endpoint->fields);
    for (size_t k = 0; endpoint->run == qkv_api_figure && (name = qkv_study_kind_name(k)); k++) {
        if (qkv_study_get_kind(name, &kind, NULL) != QKV_OK ||
            strncmp(kind.command, "figure ", 7) != 0)
            continue;
        for (size_t i = 0; qkv_study_get_field(name, i, &field); i++) {
            const int is_asked =
                field.use != QKV_FIELD_INPUT && strcmp(field.name, "no_recipe") != 0;
            if (is_asked && out->data && !qkv_request_lists(out->data, field.name))
                qkv_text_printf(out, " %s", field.name);
        }
    }
}

static int read_common(qkv_call *call, const qkv_endpoint *endpoint, qkv_error *err) {
    qkv_text fields = {0};
    list_fields(endpoint, &fields);
    const int status =
        fields.failed
            ? qkv_fail_memory(err)
            : qkv_request_read(call->request, fields.data ? fields.data : "", &call->common, err);
    qkv_text_release(&fields);
    return status;
}

int qkv_call_read(qkv_call *call, const qkv_endpoint *endpoint, const qkv_model_pool *pool,
                  char *body, size_t n_body, qkv_error *err) {
    *call = (qkv_call){.body = body, .n_body = n_body};
    if (!endpoint->fields) return QKV_OK;
    int status = qkv_request_parse(&call->request, body, n_body, err);
    if (status == QKV_OK) status = read_common(call, endpoint, err);
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
