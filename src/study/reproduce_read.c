/* Recipes of files, field by field: types, limits, and nothing that is not understood. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/figure.h"
#include "study/plot.h"
#include "study/reproduce.h"

enum {
    MOST_PROMPTS = 1000,
    MOST_SOURCES = 1000,
    MOST_TOKENS = 1 << 20, /* of all prompts together */
    MOST_SIDES = 4096,
    MOST_PANELS = 4096,
    MOST_WORDS = 20000, /* of a command line */
    MOST_NAME = 1000,   /* bytes */
    MOST_EDITS = 20000  /* bytes */
};

/* ---- parts ---- */

/* A list of at most so many; 0 where it is not there. */
static int list_length(const json_t *tree, const char *key, size_t most, size_t *n,
                       qkv_error *err) {
    const json_t *list = json_object_get(tree, key);
    *n = json_array_size(list);
    if (list && !json_is_array(list))
        return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" is not a list", key);
    if (*n <= most) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "it has %zu %s, and the most is %zu", *n, key, most);
}

/* NULL where it is not a text without NUL of at most so many bytes. */
static const char *short_text(const json_t *object, const char *key, size_t most) {
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    if (!text || json_string_length(value) > most) return NULL;
    return strlen(text) == json_string_length(value) ? text : NULL;
}

static int is_hash(const char *text) {
    return strspn(text, "0123456789abcdef") == 32 && strlen(text) == 32;
}

/* ---- prompts ---- */

static int take_tokens(const json_t *input, qkv_prompt *to, size_t *total, qkv_error *err) {
    const json_t *list = json_object_get(input, "tokens");
    const size_t n = json_array_size(list);
    *total += n;
    if (n == 0) return qkv_fail(err, QKV_ERR_FORMAT, "an input has no tokens");
    if (*total > MOST_TOKENS) {
        return qkv_fail(err, QKV_ERR_FORMAT, "it has more than %d tokens", MOST_TOKENS);
    }
    int32_t *tokens = qkv_calloc(n, sizeof *tokens);
    if (!tokens) return qkv_fail_memory(err);
    to->tokens = tokens;
    to->n_tokens = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *token = json_array_get(list, i);
        const json_int_t id = json_integer_value(token);
        if (!json_is_integer(token) || id < 0 || id > INT32_MAX) {
            return qkv_fail(err, QKV_ERR_FORMAT, "token %zu of an input is not a token id", i);
        }
        tokens[i] = (int32_t)id;
    }
    return QKV_OK;
}

static int take_text(const json_t *input, qkv_prompt *to, qkv_error *err) {
    const json_t *text = json_object_get(input, "text");
    const json_t *parse = json_object_get(input, "parse_special");
    const json_t *add = json_object_get(input, "add_special");
    if ((text && !json_is_string(text)) || (parse && !json_is_boolean(parse)) ||
        (add && !json_is_boolean(add))) {
        return qkv_fail(err, QKV_ERR_FORMAT, "the text of an input is not a string");
    }
    to->text = json_string_value(text);
    to->length = json_string_length(text);
    to->flags = (json_is_true(parse) ? QKV_TOKENIZE_PARSE_SPECIAL : 0) |
                (json_is_false(add) ? 0 : QKV_TOKENIZE_ADD_SPECIAL);
    if (to->length == 0) to->text = NULL;
    return QKV_OK;
}

static int take_prompts(const json_t *tree, const char *key, size_t most, qkv_prompt **out,
                        size_t *n, size_t *total, qkv_error *err) {
    int status = list_length(tree, key, most, n, err);
    if (status != QKV_OK) return *n = 0, status;
    *out = qkv_calloc(*n, sizeof **out);
    if (!*out) return *n = 0, qkv_fail_memory(err);
    for (size_t i = 0; i < *n && status == QKV_OK; i++) {
        const json_t *input = json_array_get(json_object_get(tree, key), i);
        (*out)[i] = (qkv_prompt)QKV_PROMPT_INIT;
        (*out)[i].name = short_text(input, "name", MOST_NAME);
        status = take_tokens(input, &(*out)[i], total, err);
        if (status == QKV_OK) status = take_text(input, &(*out)[i], err);
    }
    return status;
}

/* ---- rows and columns ---- */

static int take_sides(const json_t *tree, const char *key, qkv_figure_side **out, size_t *n,
                      qkv_error *err) {
    int status = list_length(tree, key, MOST_SIDES, n, err);
    if (status != QKV_OK) return status;
    *out = qkv_calloc(*n, sizeof **out);
    if (!*out) return qkv_fail_memory(err);
    for (size_t i = 0; i < *n && status == QKV_OK; i++) {
        const json_t *side = json_array_get(json_object_get(tree, key), i);
        (*out)[i] = (qkv_figure_side)QKV_FIGURE_SIDE_INIT;
        (*out)[i].label = short_text(side, "label", MOST_EDITS);
        (*out)[i].edits = short_text(side, "edits", MOST_EDITS);
        if ((*out)[i].label && (*out)[i].edits) continue;
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s %zu has no label or no edits", key, i);
    }
    return status;
}

/* ---- kinds ---- */

static int find_study(qkv_reproduction *r, qkv_error *err) {
    const char *name = short_text(r->tree, "study", MOST_NAME);
    r->study = name ? qkv_study_find_recorded(name) : NULL;
    if (r->study) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "there is no study \"%.40s\" in this version",
                    name ? name : "");
}

static int find_kind(qkv_reproduction *r, qkv_error *err) {
    const char *name = short_text(r->tree, "kind", MOST_NAME), *known;
    if (!json_is_string(json_object_get(r->tree, "kind"))) {
        return qkv_fail(err, QKV_ERR_FORMAT, "\"kind\" is not a text");
    }
    if (name && strcmp(name, "study") == 0) return find_study(r, err);
    for (int i = 0; name && (known = qkv_figure_kind_name((qkv_figure_kind)i)); i++) {
        if (strcmp(known, name) != 0) continue;
        r->kind = i;
        return QKV_OK;
    }
    for (int i = 1; name && (known = qkv_plot_kind_name((qkv_plot_kind)i)); i++) {
        if (strcmp(known, name) != 0) continue;
        r->kind = i;
        r->is_plot = 1;
        return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "there is no kind of figure \"%.40s\" in this version", name ? name : "");
}

static size_t n_commas(const char *text) {
    size_t n = 0;
    for (; text && *text; text++) n += *text == ',';
    return n;
}

static int check_panels(const qkv_reproduction *r, qkv_error *err) {
    size_t n_listed = 0;
    const int status = list_length(r->tree, "panels", MOST_PANELS, &n_listed, err);
    if (status != QKV_OK || r->is_plot || r->study) return status;
    const size_t rows = r->n_rows ? r->n_rows : 1, cols = r->n_cols ? r->n_cols : 1;
    const size_t n_eps = 1 + n_commas(r->figure.eps);
    const size_t n = rows * cols > 3 * n_eps ? rows * cols : 3 * n_eps;
    if (n <= MOST_PANELS) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "it has %zu panels, and the most is %d", n, MOST_PANELS);
}

static int take_figure(qkv_reproduction *r, qkv_error *err) {
    const json_t *tree = r->tree;
    size_t total = 0;
    if (!is_hash(r->hashes[0])) return qkv_fail(err, QKV_ERR_FORMAT, "it names no model by a hash");
    r->figure = (qkv_figure_options)QKV_FIGURE_OPTIONS_INIT;
    int status =
        qkv_fields_read(&qkv_figure_table, json_object_get(tree, "options"), &r->figure, err);
    if (status == QKV_OK) {
        status =
            take_prompts(tree, "inputs", MOST_PROMPTS, &r->prompts, &r->n_prompts, &total, err);
    }
    if (status == QKV_OK && r->n_prompts == 0) {
        status = qkv_fail(err, QKV_ERR_FORMAT, "it has no inputs");
    }
    if (status == QKV_OK) {
        status =
            take_prompts(tree, "sources", MOST_SOURCES, &r->sources, &r->n_sources, &total, err);
    }
    if (status == QKV_OK)
        status = take_prompts(tree, "set", FIGURE_MOST_SET, &r->set, &r->n_set, &total, err);
    if (status == QKV_OK) status = take_sides(tree, "rows", &r->rows, &r->n_rows, err);
    if (status == QKV_OK) status = take_sides(tree, "cols", &r->cols, &r->n_cols, err);
    return status;
}

static int take_plot(qkv_reproduction *r, qkv_error *err) {
    if (!is_hash(r->hashes[1])) {
        return qkv_fail(err, QKV_ERR_FORMAT, "it names no results by a hash");
    }
    r->plot = (qkv_plot_options)QKV_PLOT_OPTIONS_INIT;
    const int status =
        qkv_fields_read(&qkv_plot_table, json_object_get(r->tree, "options"), &r->plot, err);
    return status == QKV_OK ? qkv_plot_options_check(&r->plot, err) : status;
}

/* The options of its kind are checked here and read again when it is made. */
static int take_study(qkv_reproduction *r, qkv_error *err) {
    const json_t *tree = r->tree, *look = json_object_get(tree, "look");
    size_t total = 0;
    void *options = NULL;
    const char *hash = short_text(tree, "other_hash", 32);
    const char *name = short_text(tree, "other_model", MOST_NAME);
    r->other_hash = hash ? hash : "";
    r->other_name = name ? name : "";
    if (!is_hash(r->hashes[0]) || (r->study->needs_other && !is_hash(r->other_hash)))
        return qkv_fail(err, QKV_ERR_FORMAT, "it names no model by a hash");
    int status = qkv_study_read_options(&options, r->study, json_object_get(tree, "options"), err);
    free(options);
    if (status == QKV_OK && !json_object_get(tree, "options"))
        status = qkv_fail(err, QKV_ERR_FORMAT, "there are no options");
    study_look drawn = {0};
    if (status == QKV_OK && look)
        status = qkv_fields_read(&qkv_study_look_table, look, &drawn, err);
    if (status != QKV_OK) return status;
    return take_prompts(tree, "inputs", MOST_PROMPTS, &r->prompts, &r->n_prompts, &total, err);
}

static int take_command(qkv_reproduction *r, qkv_error *err) {
    const json_t *list = json_object_get(r->tree, "command");
    if (!list || json_is_null(list)) return QKV_OK;
    const int status = list_length(r->tree, "command", MOST_WORDS, &r->n_command, err);
    if (status != QKV_OK) return r->n_command = 0, status;
    r->command = qkv_calloc(r->n_command, sizeof *r->command);
    if (!r->command) return qkv_fail_memory(err);
    for (size_t i = 0; i < r->n_command; i++) {
        r->command[i] = json_string_value(json_array_get(list, i));
        if (!r->command[i])
            return qkv_fail(err, QKV_ERR_FORMAT, "a word of its command is not a text");
    }
    return QKV_OK;
}

static int check_id(const qkv_reproduction *r, qkv_error *err) {
    char id[RECIPE_ID_SIZE];
    const char *given = short_text(r->tree, "id", RECIPE_ID_SIZE);
    const int status = qkv_recipe_id(r->tree, id, err);
    if (status != QKV_OK) return status;
    if (!given) return qkv_fail(err, QKV_ERR_FORMAT, "it has no id");
    if (strcmp(given, id) == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "it was changed: its id is %.8s, and what it says to do has the id %s", given,
                    id);
}

int qkv_reproduction_take(qkv_reproduction *r, qkv_error *err) {
    static const char *const hashes[] = {"model_hash", "results_hash"};
    static const char *const names[] = {"model", "results"};
    const json_t *format = json_object_get(r->tree, "format");
    if (!json_is_integer(format)) {
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "it has no format number: it was made by an early version of qkv");
    }
    if (json_integer_value(format) != RECIPE_FORMAT) {
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "its format is not %d", RECIPE_FORMAT);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *hash = short_text(r->tree, hashes[i], 32);
        const char *name = short_text(r->tree, names[i], MOST_NAME);
        r->hashes[i] = hash ? hash : "";
        r->names[i] = name ? name : "";
    }
    int status = find_kind(r, err);
    if (status == QKV_OK)
        status = r->study     ? take_study(r, err)
                 : r->is_plot ? take_plot(r, err)
                              : take_figure(r, err);
    if (status == QKV_OK) status = take_command(r, err);
    if (status == QKV_OK) status = check_panels(r, err);
    return status == QKV_OK ? check_id(r, err) : status;
}
