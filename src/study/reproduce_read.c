/* Recipes of files, field by field: types, limits, and nothing that is not understood. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/plot.h"
#include "study/reproduce.h"

enum {
    MOST_PROMPTS = 3000,
    MOST_TOKENS = 1 << 20, /* of all prompts together */
    MOST_PANELS = 4096,
    MOST_WORDS = 20000, /* of a command line */
    MOST_NAME = 1000    /* bytes */
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

static int take_prompts(qkv_reproduction *r, qkv_error *err) {
    size_t n = 0, total = 0;
    int status = list_length(r->tree, "inputs", MOST_PROMPTS, &n, err);
    if (status != QKV_OK) return status;
    r->prompts = qkv_calloc(n, sizeof *r->prompts);
    if (!r->prompts) return qkv_fail_memory(err);
    for (; r->n_prompts < n && status == QKV_OK; r->n_prompts++) {
        const json_t *input = json_array_get(json_object_get(r->tree, "inputs"), r->n_prompts);
        qkv_prompt *to = &r->prompts[r->n_prompts];
        *to = (qkv_prompt)QKV_PROMPT_INIT;
        to->name = short_text(input, "name", MOST_NAME);
        status = take_tokens(input, to, &total, err);
        if (status == QKV_OK) status = take_text(input, to, err);
    }
    return status;
}

/* ---- kinds ---- */

static int is_plot_kind(const char *name) {
    const char *known;
    for (int i = 1; name && (known = qkv_plot_kind_name((qkv_plot_kind)i)); i++)
        if (strcmp(known, name) == 0) return 1;
    return 0;
}

static int find_kind(qkv_reproduction *r, qkv_error *err) {
    const char *kind = short_text(r->tree, "kind", MOST_NAME);
    if (!json_is_string(json_object_get(r->tree, "kind")))
        return qkv_fail(err, QKV_ERR_FORMAT, "\"kind\" is not a text");
    r->study = kind ? qkv_study_find_kind(kind) : NULL;
    if (r->study || is_plot_kind(kind)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "there is no study \"%.40s\" in this version",
                    kind ? kind : "");
}

/* How many values a field has that are divided by such a character. */
static size_t count_values(const json_t *options, const char *name, char divider) {
    const char *text = json_string_value(json_object_get(options, name));
    size_t n = 1;
    for (; text && *text; text++) n += *text == divider;
    return n;
}

/* A few bytes of a recipe must not ask for a million panels. */
static int check_panels(const qkv_reproduction *r, qkv_error *err) {
    const json_t *options = json_object_get(r->tree, "options");
    size_t n_listed = 0;
    const int status = list_length(r->tree, "panels", MOST_PANELS, &n_listed, err);
    if (status != QKV_OK || !r->study || !r->study->figure) return status;
    const size_t sides = count_values(options, "row", '\n') * count_values(options, "col", '\n'),
                 parts = 3 * count_values(options, "eps", ','), n = sides > parts ? sides : parts;
    if (n <= MOST_PANELS) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "it has %zu panels, and the most is %d", n, MOST_PANELS);
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

/* Fields are checked here and read again when it is made. Options are work alone: no recipe names a file. */
static int check_fields(const qkv_reproduction *r, qkv_error *err) {
    const json_t *options = json_object_get(r->tree, "options"),
                 *look = json_object_get(r->tree, "look");
    field_table tables[3];
    void *read = NULL;
    if (!options) return qkv_fail(err, QKV_ERR_FORMAT, "there are no options");
    int status = qkv_study_read_options(&read, r->study, options, err);
    free(read);
    if (status != QKV_OK || !look) return status;
    qkv_study_tables(r->study, tables);
    read = qkv_calloc(1, r->study->figure ? r->study->options_size : sizeof(study_look));
    status =
        read ? qkv_fields_read(&tables[QKV_FIELD_LOOK], look, read, err) : qkv_fail_memory(err);
    free(read);
    return status;
}

static int take_study(qkv_reproduction *r, qkv_error *err) {
    const char *hash = short_text(r->tree, "other_hash", 32);
    const char *name = short_text(r->tree, "other_model", MOST_NAME);
    r->other_hash = hash ? hash : "";
    r->other_name = name ? name : "";
    if (!is_hash(r->hashes[0]) || (r->study->needs_other && !is_hash(r->other_hash)))
        return qkv_fail(err, QKV_ERR_FORMAT, "it names no model by a hash");
    int status = check_fields(r, err);
    if (status == QKV_OK) status = take_prompts(r, err);
    if (status == QKV_OK && r->study->figure && r->n_prompts == 0)
        status = qkv_fail(err, QKV_ERR_FORMAT, "it has no inputs");
    return status;
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

/* `id` is that of the work as the file has it. */
static int check_id(const qkv_reproduction *r, const char *id, qkv_error *err) {
    const char *given = short_text(r->tree, "id", RECIPE_ID_SIZE);
    if (!given) return qkv_fail(err, QKV_ERR_FORMAT, "it has no id");
    if (strcmp(given, id) == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "it was changed: its id is %.8s, and what it says to do has the id %s", given,
                    id);
}

static int check_format(const json_t *tree, qkv_error *err) {
    const json_t *format = json_object_get(tree, "format");
    if (!json_is_integer(format))
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "it has no format number: it was made by an early version of qkv");
    const json_int_t number = json_integer_value(format);
    if (number >= 1 && number <= RECIPE_FORMAT) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "its format is not one of 1 to %d", RECIPE_FORMAT);
}

static void take_names(qkv_reproduction *r) {
    static const char *const hashes[] = {"model_hash", "results_hash"};
    static const char *const names[] = {"model", "results"};
    for (size_t i = 0; i < 2; i++) {
        const char *hash = short_text(r->tree, hashes[i], 32);
        const char *name = short_text(r->tree, names[i], MOST_NAME);
        r->hashes[i] = hash ? hash : "";
        r->names[i] = name ? name : "";
    }
    r->other_hash = r->other_name = "";
}

int qkv_reproduction_take(qkv_reproduction *r, qkv_error *err) {
    char id[RECIPE_ID_SIZE];
    int status = check_format(r->tree, err);
    if (status == QKV_OK) status = qkv_recipe_id(r->tree, id, err);
    if (status == QKV_OK) status = qkv_recipe_modernize(r->tree, err);
    if (status != QKV_OK) return status;
    take_names(r);
    status = find_kind(r, err);
    if (status == QKV_OK) status = r->study ? take_study(r, err) : take_plot(r, err);
    if (status == QKV_OK) status = take_command(r, err);
    if (status == QKV_OK) status = check_panels(r, err);
    return status == QKV_OK ? check_id(r, id, err) : status;
}
