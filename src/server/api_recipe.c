/*
 * POST /api/recipe: the state of the page that a dropped figure was made from. The body is the file.
 * It is read by the library's reader of recipes, field by field; nothing in it names a file here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "qkv/reproduce.h"
#include "server/request_plan.h"

/* ---- the model ---- */

static int has_name(const char *path, const qkv_reproduction_info *info) {
    return strcmp(qkv_path_model(path), info->model) == 0;
}

/* Hashing reads every byte, so only a model that has the name is looked at. */
static int is_same(const qkv_model *model, const qkv_reproduction_info *info) {
    char hash[33];
    return has_name(qkv_model_get_info(model)->path, info) &&
           qkv_model_hash(model, hash, NULL) == QKV_OK && strcmp(hash, info->model_hash) == 0;
}

/* The model of the list that the figure was made with, opened: by its file's name and hash. NULL: none. */
static qkv_model *find_model(qkv_model_pool *pool, const qkv_reproduction_info *info,
                             const qkv_pool_model **which) {
    for (size_t i = 0; (*which = qkv_model_pool_get(pool, i)); i++) {
        qkv_model *model = NULL;
        if ((*which)->path && !has_name((*which)->path, info)) continue;
        if (qkv_model_pool_open(pool, (*which)->name, which, &model, NULL) == QKV_OK &&
            is_same(model, info))
            return model;
        qkv_model_free(model);
    }
    return NULL;
}

/* ---- edits ---- */

/* Edits one by one, as the page has them. */
static json_t *split_edits(const char *text) {
    static const char joint[] = " + ";
    json_t *list = json_array();
    for (const char *at = text; *at;) {
        const char *end = strstr(at, joint);
        const size_t n = end ? (size_t)(end - at) : strlen(at);
        json_array_append_new(list, qkv_json_string(at, n));
        at += n + (end ? sizeof joint - 1 : 0);
    }
    return list;
}

/* {layer} and {head} stand for those shown. */
static json_t *fill_places(const char *edits, int layer, int head) {
    qkv_text out = {0};
    qkv_text_puts(&out, "");
    for (const char *at = edits; *at;) {
        if (strncmp(at, "{layer}", 7) == 0) {
            qkv_text_printf(&out, "%d", layer);
            at += 7;
        } else if (strncmp(at, "{head}", 6) == 0) {
            qkv_text_printf(&out, "%d", head);
            at += 6;
        } else {
            qkv_text_append(&out, at++, 1);
        }
    }
    json_t *list = out.failed ? NULL : split_edits(out.data);
    qkv_text_release(&out);
    return list;
}

/* The first edits of a list of rows or columns that has any. */
static const char *first_side(const json_t *recipe) {
    static const char *const lists[] = {"cols", "rows"};
    for (size_t l = 0; l < 2; l++) {
        const json_t *list = json_object_get(recipe, lists[l]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *edits =
                json_string_value(json_object_get(json_array_get(list, i), "edits"));
            if (edits && edits[0]) return edits;
        }
    }
    return NULL;
}

/* Of a figure of many panels, what its first edited panel shows. */
static json_t *find_edits(const json_t *recipe, int layer, int head) {
    const json_t *panels = json_object_get(recipe, "panels");
    const json_t *options = json_object_get(recipe, "options");
    const char *edits = json_string_value(json_object_get(options, "variant"));
    if (!edits) edits = first_side(recipe);
    for (size_t i = 0; !edits && i < json_array_size(panels); i++) {
        const char *of = json_string_value(json_object_get(json_array_get(panels, i), "edits"));
        if (of && of[0]) edits = of;
    }
    return edits ? fill_places(edits, layer, head) : json_array();
}

/* ---- the state ---- */

/* Whether the text gives the very tokens: that of a conversation does not, its names of special
 * tokens are those tokens there and letters here. */
static int gives_tokens(const qkv_model *model, const json_t *text, const json_t *tokens,
                        int parse_special) {
    int32_t *ids = NULL;
    size_t n = 0, same = 0;
    const unsigned flags =
        QKV_TOKENIZE_ADD_SPECIAL | (parse_special ? (unsigned)QKV_TOKENIZE_PARSE_SPECIAL : 0);
    if (qkv_tokenize(model, &ids, &n, json_string_value(text), json_string_length(text), flags,
                     NULL) != QKV_OK)
        return 0;
    while (same < n && json_integer_value(json_array_get(tokens, same)) == ids[same]) same++;
    qkv_tokens_free(ids);
    return same == n && n == json_array_size(tokens);
}

/* The text, where it says all: a page shows it. model: NULL where it is not here, and its tokens
 * would say nothing. */
static json_t *find_prompt(const json_t *recipe, const qkv_model *model) {
    const json_t *input = json_array_get(json_object_get(recipe, "inputs"), 0);
    json_t *text = json_object_get(input, "text"), *tokens = json_object_get(input, "tokens");
    const char *bytes = json_string_value(text);
    const int parse_special = json_is_true(json_object_get(input, "parse_special"));
    const int whole = bytes && strlen(bytes) == json_string_length(text);
    if (!whole || (model && !gives_tokens(model, text, tokens, parse_special)))
        return json_pack("{s:O}", "tokens", tokens);
    json_t *prompt = json_pack("{s:O}", "text", text);
    if (prompt && parse_special) json_object_set_new(prompt, "parse_special", json_true());
    return prompt;
}

static int index_of(const json_t *recipe, const char *key) {
    const json_int_t value = json_integer_value(json_object_get(recipe, key));
    return value >= 0 && value < 1 << 20 ? (int)value : -1;
}

/* model: that of `which`; NULL: it is not in the list. */
static json_t *make_state(const json_t *recipe, const qkv_pool_model *which,
                          const qkv_model *model) {
    const int layer = index_of(recipe, "layer"), head = index_of(recipe, "head");
    json_t *state = json_pack("{s:o, s:o}", "prompt", find_prompt(recipe, model), "edits",
                              find_edits(recipe, layer < 0 ? 0 : layer, head < 0 ? 0 : head));
    if (state && model) json_object_set_new(state, "model", qkv_json_text(which->name));
    if (state && layer >= 0) json_object_set_new(state, "layer", json_integer(layer));
    if (state && head >= 0) json_object_set_new(state, "head", json_integer(head));
    return state;
}

/* How it is drawn: the options of `qkv figure` that the page has controls for. */
static json_t *find_display(const json_t *recipe) {
    static const char *const names[] = {"scale", "colormap", "skip_keys",
                                        "range", "masked",   "diff"};
    json_t *options = json_object_get(recipe, "options"), *display = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(options, names[i]);
        if (value) json_object_set(display, names[i], value);
    }
    return display;
}

static int send_state(const qkv_reproduction *r, qkv_model_pool *pool, qkv_reply *reply,
                      qkv_error *err) {
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT;
    int status = qkv_reproduction_get_info(r, &info, err);
    if (status == QKV_OK && (info.is_plot || info.is_study))
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "this is a %s: drop a figure of attention maps",
                          info.is_study ? "study" : "chart of a sweep");
    json_t *recipe = status == QKV_OK
                         ? qkv_json_parse(info.recipe, strlen(info.recipe), JSON_ALLOW_NUL, NULL)
                         : NULL;
    if (status != QKV_OK) return status;
    const qkv_pool_model *which = NULL;
    qkv_model *model = find_model(pool, &info, &which);
    status = qkv_reply_json(reply,
                            json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "state",
                                      make_state(recipe, which, model), "display",
                                      find_display(recipe), "kind", qkv_json_text(info.kind), "id",
                                      qkv_json_text(info.id), "made_with",
                                      qkv_json_text(info.model), "same_model", model != NULL),
                            err);
    qkv_model_free(model);
    json_decref(recipe);
    return status;
}

int qkv_api_recipe(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    qkv_reproduction *r = NULL;
    int status =
        qkv_reproduction_read(&r, call->body ? call->body : "", call->n_body, "the file", err);
    if (status == QKV_OK) status = send_state(r, pool, reply, err);
    qkv_reproduction_free(r);
    return status;
}
