/*
 * Recipes of earlier versions, format 1.
 *
 *     studies   "kind" was "study", and "study" the name of the kind, which may have changed
 *     figures   "options" were all options, also those of the look, by the names of qkv_figure_table; rows, columns,
 *               sources and the set of prompts stood by themselves
 *     charts    as they are
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/figure.h"
#include "study/study.h"

/* ---- figures ---- */

enum {
    MOST_SIDES = 4096,
    MOST_TEXT = 20000 /* bytes of a label or of edits */
};

/* NULL where it is not a text without NUL that is short enough. */
static const char *side_text(const json_t *side, const char *key) {
    const json_t *value = json_object_get(side, key);
    const char *text = json_string_value(value);
    const size_t n = json_string_length(value);
    return text && n <= MOST_TEXT && strlen(text) == n ? text : NULL;
}

/* *out is freed also after a failure. */
static int take_sides(const json_t *recipe, const char *key, qkv_figure_side **out, size_t *n,
                      qkv_error *err) {
    const json_t *list = json_object_get(recipe, key);
    const size_t n_listed = json_array_size(list);
    if (list && !json_is_array(list))
        return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" is not a list", key);
    if (n_listed > MOST_SIDES)
        return qkv_fail(err, QKV_ERR_FORMAT, "it has %zu %s, and the most is %d", n_listed, key,
                        MOST_SIDES);
    *out = qkv_calloc(n_listed, sizeof **out);
    if (!*out) return qkv_fail_memory(err);
    for (; *n < n_listed; (*n)++) {
        const json_t *side = json_array_get(list, *n);
        (*out)[*n] = (qkv_figure_side)QKV_FIGURE_SIDE_INIT;
        (*out)[*n].label = side_text(side, "label");
        (*out)[*n].edits = side_text(side, "edits");
        if (!(*out)[*n].label || !(*out)[*n].edits)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s %zu has no label or no edits", key, *n);
    }
    return QKV_OK;
}

/* Moves a list to the end of the inputs; `name` is that of all, NULL: each has its own. */
static int move_prompts(json_t *recipe, const char *key, const char *name, qkv_error *err) {
    json_t *from = json_object_get(recipe, key), *inputs = json_object_get(recipe, "inputs");
    const size_t n = json_array_size(from);
    if ((from && !json_is_array(from)) || !json_is_array(inputs))
        return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" is not a list",
                        json_is_array(inputs) ? key : "inputs");
    if (n > FIGURE_MOST_SET)
        return qkv_fail(err, QKV_ERR_FORMAT, "it has %zu %s, and the most is %d", n, key,
                        FIGURE_MOST_SET);
    for (size_t i = 0; i < n; i++) {
        json_t *prompt = json_array_get(from, i);
        if (!json_is_object(prompt) || (!name && !json_object_get(prompt, "name")))
            return qkv_fail(err, QKV_ERR_FORMAT, "a prompt of \"%s\" has no name", key);
        if (name && qkv_json_put(prompt, "name", qkv_json_text(name)) != 0)
            return qkv_fail_memory(err);
    }
    if (from && json_array_extend(inputs, from) != 0) return qkv_fail_memory(err);
    json_object_del(recipe, key);
    return QKV_OK;
}

static int put_fields(json_t *recipe, const qkv_figure_options *o, json_t *work, json_t *look,
                      qkv_error *err) {
    json_t *with =
        json_pack("{s:o, s:o, s:b}", "options", work, "look", look, "report", (int)o->report);
    const int failed = !with || qkv_json_put_all(recipe, with) != 0;
    json_decref(with);
    json_object_del(recipe, "rows");
    json_object_del(recipe, "cols");
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static int take_options(json_t *recipe, qkv_figure_kind kind, qkv_error *err) {
    qkv_figure_options o = QKV_FIGURE_OPTIONS_INIT;
    qkv_figure_side *rows = NULL, *cols = NULL;
    json_t *work = NULL, *look = NULL;
    int status = qkv_fields_read(&qkv_figure_table, json_object_get(recipe, "options"), &o, err);
    if (status == QKV_OK) status = take_sides(recipe, "rows", &rows, &o.n_rows, err);
    if (status == QKV_OK) status = take_sides(recipe, "cols", &cols, &o.n_cols, err);
    o.rows = rows;
    o.cols = cols;
    if (status == QKV_OK) status = qkv_figure_write_fields(kind, &o, &work, &look, err);
    if (status == QKV_OK) status = put_fields(recipe, &o, work, look, err);
    free(rows);
    free(cols);
    return status;
}

static int change_figure(json_t *recipe, qkv_figure_kind kind, qkv_error *err) {
    int status = take_options(recipe, kind, err);
    if (status == QKV_OK) status = move_prompts(recipe, "sources", NULL, err);
    return status == QKV_OK ? move_prompts(recipe, "set", QKV_SET_PROMPT, err) : status;
}

/* ---- studies ---- */

static int change_study(json_t *recipe, qkv_error *err) {
    const char *name = json_string_value(json_object_get(recipe, "study"));
    const study_kind *kind = name ? qkv_study_find_recorded(name) : NULL;
    if (!kind)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "there is no study \"%.40s\" in this version",
                        name ? name : "");
    return qkv_json_put(recipe, "kind", json_string(kind->name)) == 0 ? QKV_OK
                                                                      : qkv_fail_memory(err);
}

int qkv_recipe_modernize(json_t *recipe, qkv_error *err) {
    const char *kind = json_string_value(json_object_get(recipe, "kind")), *known;
    if (!kind || json_integer_value(json_object_get(recipe, "format")) != 1) return QKV_OK;
    if (strcmp(kind, "study") == 0) return change_study(recipe, err);
    for (int i = 0; (known = qkv_figure_kind_name((qkv_figure_kind)i)); i++)
        if (strcmp(known, kind) == 0) return change_figure(recipe, (qkv_figure_kind)i, err);
    return QKV_OK;
}
