/*
 * POST /api/recipe: the state of the page that a dropped figure was made from. The body is the file.
 * It is read by the library's reader of recipes, field by field; nothing in it names a file here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "server/dropped_prompt.h"
#include "server/request_plan.h"
#include "study/reproduce.h"

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
        qkv_json_push(list, qkv_json_string(at, n));
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

/* The first edits of the rows or columns, lines of LABEL=EDITS, that has any. Freed by the caller; NULL: none. */
static char *first_side(const json_t *options) {
    static const char *const fields[] = {"col", "row"};
    for (size_t f = 0; f < 2; f++) {
        const char *line = json_string_value(json_object_get(options, fields[f]));
        while (line && *line) {
            const size_t n = strcspn(line, "\n");
            const char *equals = memchr(line, '=', n);
            while (equals && equals > line && equals[-1] == '\\')
                equals = memchr(equals + 1, '=', (size_t)(line + n - equals - 1));
            if (equals && equals + 1 < line + n)
                return qkv_strndup(equals + 1, (size_t)(line + n - equals - 1));
            line += n + (line[n] == '\n');
        }
    }
    return NULL;
}

/* The edits of a panel; NULL: it has none. */
static const char *panel_edits(const json_t *recipe, size_t index) {
    const json_t *panel = json_array_get(json_object_get(recipe, "panels"), index);
    const char *edits = json_string_value(json_object_get(panel, "edits"));
    return edits && edits[0] ? edits : NULL;
}

/* Of a figure of many panels, what its first edited panel shows: the edits of its row and column. A
 * recipe written by hand may have no panels. */
static json_t *find_edits(const json_t *recipe, int layer, int head) {
    const size_t n = json_array_size(json_object_get(recipe, "panels"));
    const json_t *options = json_object_get(recipe, "options");
    const char *edits = NULL;
    for (size_t i = 0; !edits && i < n; i++) edits = panel_edits(recipe, i);
    if (!edits) edits = json_string_value(json_object_get(options, "variant"));
    char *side = edits ? NULL : first_side(options);
    if (side) edits = side;
    json_t *list = edits ? fill_places(edits, layer, head) : json_array();
    free(side);
    return list;
}

/* How many different edits its panels have. */
static size_t count_edits(const json_t *recipe) {
    const size_t n = json_array_size(json_object_get(recipe, "panels"));
    json_t *seen = json_object();
    for (size_t i = 0; i < n; i++) {
        const char *edits = panel_edits(recipe, i);
        if (edits) qkv_json_put(seen, edits, json_true());
    }
    const size_t count = json_object_size(seen);
    json_decref(seen);
    return count;
}

/* ---- the state ---- */

static int index_of(const json_t *recipe, const char *key) {
    const json_int_t value = json_integer_value(json_object_get(recipe, key));
    return value >= 0 && value < 1 << 20 ? (int)value : -1;
}

/* model: that of `which`; NULL: it is not in the list. prompt: taken. */
static json_t *make_state(const json_t *recipe, const qkv_pool_model *which, const qkv_model *model,
                          json_t *prompt) {
    const int layer = index_of(recipe, "layer"), head = index_of(recipe, "head");
    json_t *state = json_pack("{s:o, s:o}", "prompt", prompt, "edits",
                              find_edits(recipe, layer < 0 ? 0 : layer, head < 0 ? 0 : head));
    if (state && model) qkv_json_put(state, "model", qkv_json_text(which->name));
    if (state && layer >= 0) qkv_json_put(state, "layer", json_integer(layer));
    if (state && head >= 0) qkv_json_put(state, "head", json_integer(head));
    return state;
}

/* How it is drawn: the options of `qkv figure` that the page has controls for. */
static const char *const display_names[] = {"scale", "colormap", "skip_keys",
                                            "range", "masked",   "diff"};

/* What was asked, work and look. */
static json_t *find_asked(const json_t *recipe) {
    json_t *asked = qkv_json_copy(json_object_get(recipe, "options"));
    json_t *look = json_object_get(recipe, "look");
    if (asked && look && qkv_json_put_all(asked, look) != 0) {
        json_decref(asked);
        return NULL;
    }
    return asked;
}

/* A range is two numbers there. */
static json_t *range_value(const json_t *range) {
    double low, high;
    const char *text = json_string_value(range), *comma = text ? strchr(text, ',') : NULL;
    if (!comma || !qkv_parse_double(text, (size_t)(comma - text), &low) ||
        !qkv_parse_double(comma + 1, strlen(comma + 1), &high))
        return NULL;
    return json_pack("[o, o]", qkv_json_exact(low), qkv_json_exact(high));
}

static json_t *find_display(const json_t *asked) {
    json_t *display = json_object();
    for (size_t i = 0; i < sizeof display_names / sizeof *display_names; i++) {
        const char *name = display_names[i];
        json_t *value = json_object_get(asked, name);
        value = value && strcmp(name, "range") == 0 ? range_value(value) : json_incref(value);
        if (value) qkv_json_put(display, name, value);
    }
    return display;
}

/* ---- what the page cannot show ---- */

/* Options that the page has a place for: those of find_display, and these. `baseline` is its map
 * before the edits; the usual factors are those that it draws itself. It has no hatching. */
static int is_kept(const char *name, const json_t *value) {
    static const char *const kept[] = {"layer", "head", "variant", "baseline",
                                       "query", "show", "row",     "col"};
    const char *text = json_string_value(value);
    if (strcmp(name, "range") == 0) return text && strcmp(text, "auto") != 0;
    if (strcmp(name, "masked") == 0) return text && strcmp(text, "hatch") != 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strcmp(name, kept[i]) == 0) return 1;
    for (size_t i = 0; i < sizeof display_names / sizeof *display_names; i++)
        if (strcmp(name, display_names[i]) == 0) return 1;
    return strcmp(name, "eps") == 0 && text && strcmp(text, "5e-1,1e-3,1e-10") == 0;
}

static void leave_options(json_t *list, json_t *asked) {
    json_t *value;
    const char *name;
    qkv_text names = {0};
    json_object_foreach(asked, name, value) {
        if (!is_kept(name, value)) qkv_text_printf(&names, "%s%s", names.length ? ", " : "", name);
    }
    if (names.length && !names.failed)
        qkv_json_push(list, json_sprintf("options of its drawing (%s)", names.data));
    qkv_text_release(&names);
}

/* Of its inputs, those without a name; edits name the others. */
static size_t count_shown(const json_t *recipe) {
    const json_t *inputs = json_object_get(recipe, "inputs");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(inputs); i++)
        n += json_object_get(json_array_get(inputs, i), "name") == NULL;
    return n;
}

/* What of a figure the page does not bring back, in words that follow "but for". */
static json_t *find_left_out(const json_t *recipe, json_t *asked, const char *kind, int lost_chat) {
    const size_t n_prompts = count_shown(recipe);
    const size_t n_edits = count_edits(recipe);
    const char *site = json_string_value(json_object_get(recipe, "site"));
    const int is_own = strcmp(kind, "modify") == 0 || strcmp(kind, "mean") == 0;
    json_t *list = json_array();
    if (lost_chat)
        qkv_json_push(list, json_string("the turns of its conversation (its text or tokens "
                                        "are here)"));
    if (n_prompts > 1)
        qkv_json_push(list, json_sprintf("%zu of its %zu prompts", n_prompts - 1, n_prompts));
    /* Of the figures that the page draws itself all edits are its own. */
    if (n_edits > 1 && !is_own)
        qkv_json_push(list, json_sprintf("%zu of its %zu edits", n_edits - 1, n_edits));
    if (strcmp(kind, "rows") == 0)
        qkv_json_push(list, json_string("its table of one query in every layer or head (the "
                                        "page shows the maps of one head)"));
    if (site && strcmp(site, "scores") == 0)
        qkv_json_push(list, json_string("its scores (the page shows weights)"));
    if (json_array_size(json_object_get(recipe, "inputs")) > n_prompts)
        qkv_json_push(list, json_string("the prompts that its edits take values from"));
    leave_options(list, asked);
    return list;
}

/* The query of a table of one; NULL: it is none. */
static json_t *find_query(const json_t *recipe) {
    const json_t *input = json_array_get(json_object_get(recipe, "inputs"), 0);
    const json_t *query = json_object_get(json_object_get(recipe, "options"), "query");
    const json_int_t n = (json_int_t)json_array_size(json_object_get(input, "tokens"));
    json_int_t at = json_is_integer(query) ? json_integer_value(query) : -1;
    if (at < 0) at += n;
    return at >= 0 && at < n ? json_integer(at) : NULL;
}

/* ---- the answer ---- */

/* model: NULL where it is not here. */
static json_t *make_answer(const qkv_reproduction_info *info, const json_t *recipe,
                           const qkv_pool_model *which, const qkv_model *model) {
    int lost_chat = 0;
    json_t *prompt = qkv_dropped_prompt(recipe, model, &lost_chat);
    json_t *state = make_state(recipe, which, model, prompt), *asked = find_asked(recipe);
    json_t *query = strcmp(info->kind, "rows") == 0 ? find_query(recipe) : NULL;
    if (query) qkv_json_put(state, "query", query);
    json_t *answer = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "state", state, "display", find_display(asked),
        "left_out", find_left_out(recipe, asked, info->kind, lost_chat), "kind",
        qkv_json_text(info->kind), "id", qkv_json_text(info->id), "made_with",
        qkv_json_text(info->model), "same_model", model != NULL);
    json_decref(asked);
    return answer;
}

static int send_state(const qkv_reproduction *r, qkv_model_pool *pool, qkv_reply *reply,
                      qkv_error *err) {
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT;
    int status = qkv_reproduction_get_info(r, &info, err);
    if (status == QKV_OK && (info.is_plot || info.is_study))
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "this is a %s: drop a figure of attention maps",
                          info.is_study ? "study" : "chart of a sweep");
    if (status != QKV_OK) return status;
    const qkv_pool_model *which = NULL;
    qkv_model *model = find_model(pool, &info, &which);
    status = qkv_reply_json(reply, make_answer(&info, r->tree, which, model), err);
    qkv_model_free(model);
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
