#include "qkv/figure_spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/figure.h"

enum { MOST_SIDES = 64, MOST_EDITS = 20000 };

struct qkv_figure_spec {
    json_t *tree; /* texts of the options are its */
    qkv_figure_kind kind;
    qkv_figure_options options;
    qkv_figure_side *rows, *cols;
    char **words;
    size_t n_words, words_capacity;
};

void qkv_figure_spec_free(qkv_figure_spec *spec) {
    if (!spec) return;
    for (size_t i = 0; i < spec->n_words; i++) free(spec->words[i]);
    free(spec->words);
    free(spec->rows);
    free(spec->cols);
    json_decref(spec->tree);
    free(spec);
}

qkv_figure_kind qkv_figure_spec_kind(const qkv_figure_spec *spec) {
    return spec ? spec->kind : QKV_FIGURE_KINDS;
}

const char *qkv_figure_spec_word(const qkv_figure_spec *spec, size_t index) {
    return spec && index < spec->n_words ? spec->words[index] : NULL;
}

/* ---- reading ---- */

static int read_kind(qkv_figure_spec *spec, qkv_error *err) {
    const char *name = json_string_value(json_object_get(spec->tree, "kind")), *known;
    for (int i = 0; name && (known = qkv_figure_kind_name((qkv_figure_kind)i)); i++) {
        if (strcmp(known, name) != 0) continue;
        spec->kind = (qkv_figure_kind)i;
        json_object_del(spec->tree, "kind");
        return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`kind` is none of modify, mean, grid, heads and rows");
}

/* The program has LABEL=EDITS in one word. */
static int read_side(const json_t *from, qkv_figure_side *side, const char *key, qkv_error *err) {
    const json_t *label = json_object_get(from, "label"), *edits = json_object_get(from, "edits");
    *side = (qkv_figure_side)QKV_FIGURE_SIDE_INIT;
    side->label = json_string_value(label);
    side->edits = json_string_value(edits);
    if (!side->label || !side->edits || json_object_size(from) != 2 ||
        json_string_length(label) > MOST_EDITS || json_string_length(edits) > MOST_EDITS)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is a list of {\"label\", \"edits\"}", key);
    if (!side->label[0] || strchr(side->label, '='))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a label of `%s` is empty or has a '='", key);
    return QKV_OK;
}

static int read_sides(qkv_figure_spec *spec, const char *key, qkv_figure_side **out, size_t *n,
                      qkv_error *err) {
    const json_t *list = json_object_get(spec->tree, key);
    int status = QKV_OK;
    *n = json_array_size(list);
    if (list && (!json_is_array(list) || *n > MOST_SIDES))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is a list of %d at most", key, MOST_SIDES);
    *out = qkv_calloc(*n, sizeof **out);
    if (!*out) return qkv_fail_memory(err);
    for (size_t i = 0; i < *n && status == QKV_OK; i++)
        status = read_side(json_array_get(list, i), &(*out)[i], key, err);
    return status;
}

/* All but the lists; the tree keeps what the options point to. */
static int read_fields(qkv_figure_spec *spec, qkv_error *err) {
    static const char *const others[] = {"rows", "cols", "report", "always_linear", "auto_range"};
    json_t *fields = json_copy(spec->tree);
    if (!fields) return qkv_fail_memory(err);
    for (size_t i = 0; i < 2; i++) json_object_del(fields, others[i]);
    for (size_t i = 2; i < sizeof others / sizeof *others; i++) {
        if (!json_object_get(fields, others[i])) continue;
        json_decref(fields);
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no option \"%s\" here", others[i]);
    }
    const json_t *range = json_object_get(fields, "range");
    spec->options.auto_range =
        json_is_string(range) && strcmp(json_string_value(range), "auto") == 0;
    if (spec->options.auto_range) json_object_del(fields, "range");
    const int status =
        qkv_fields_read(qkv_figure_fields, qkv_figure_n_fields, fields, &spec->options, err);
    const char *scale = json_string_value(json_object_get(fields, "scale"));
    spec->options.always_linear = scale && strcmp(scale, "linear") == 0;
    json_decref(fields);
    return status;
}

/* ---- words ---- */

static int add_word(qkv_figure_spec *spec, const char *word, qkv_error *err) {
    char *copy = qkv_strdup(word);
    if (copy && QKV_PUSH(spec->words, spec->words_capacity, spec->n_words, copy)) return QKV_OK;
    free(copy);
    return qkv_fail_memory(err);
}

static int add_pair(qkv_figure_spec *spec, const char *name, const qkv_text *value,
                    qkv_error *err) {
    if (value->failed) return qkv_fail_memory(err);
    const int status = add_word(spec, name, err);
    return status == QKV_OK ? add_word(spec, value->data ? value->data : "", err) : status;
}

/* What an option's value is on the command line. */
static void write_value(qkv_text *out, const json_t *value) {
    if (json_is_string(value)) {
        qkv_text_puts(out, json_string_value(value));
    } else if (json_is_array(value)) {
        qkv_text_append_number(out, json_number_value(json_array_get(value, 0)));
        qkv_text_puts(out, ",");
        qkv_text_append_number(out, json_number_value(json_array_get(value, 1)));
    } else {
        qkv_text_append_number(out, json_number_value(value));
    }
}

/* Options that are not called as their fields are. */
static const struct {
    const char *field, *option, *value; /* value: a flag's; NULL: none */
} renamed[] = {{"all_heads", "--edit-heads", "all"},
               {"hide_axes", "--no-axis-labels", NULL},
               {"hide_notes", "--no-notes", NULL}};

static int add_flag(qkv_figure_spec *spec, const char *key, const char *name, qkv_error *err) {
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        if (strcmp(renamed[i].field, key) != 0) continue;
        const int status = add_word(spec, renamed[i].option, err);
        return status == QKV_OK && renamed[i].value ? add_word(spec, renamed[i].value, err)
                                                    : status;
    }
    return add_word(spec, name, err);
}

static int add_option(qkv_figure_spec *spec, const char *key, const json_t *value, qkv_error *err) {
    qkv_text name = {0}, text = {0};
    qkv_text_puts(&name, "--");
    for (const char *at = key; *at; at++) qkv_text_append(&name, *at == '_' ? "-" : at, 1);
    int status = name.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK && json_is_boolean(value)) {
        if (json_is_true(value)) status = add_flag(spec, key, name.data, err);
    } else if (status == QKV_OK) {
        qkv_text_puts(&text, "");
        write_value(&text, value);
        if (strcmp(key, "width") == 0) qkv_text_puts(&text, "pt");
        status = add_pair(spec, name.data, &text, err);
    }
    qkv_text_release(&name);
    qkv_text_release(&text);
    return status;
}

static int add_sides(qkv_figure_spec *spec, const char *name, const qkv_figure_side *sides,
                     size_t n, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_text text = {0};
        qkv_text_printf(&text, "%s=%s", sides[i].label, sides[i].edits);
        status = add_pair(spec, name, &text, err);
        qkv_text_release(&text);
    }
    return status;
}

/* In the order of the table of fields, what has its default left out. */
static int make_words(qkv_figure_spec *spec, qkv_error *err) {
    const qkv_figure_options *o = &spec->options;
    json_t *fields = qkv_fields_write(qkv_figure_fields, qkv_figure_n_fields, o);
    const char *name;
    json_t *value;
    int status = fields ? QKV_OK : qkv_fail_memory(err);
    json_object_foreach(fields, name, value) {
        const char *option = strcmp(name, "always_linear") == 0 ? "scale"
                             : strcmp(name, "auto_range") == 0  ? "range"
                                                                : name;
        const json_t *given = option == name ? value : json_object_get(spec->tree, option);
        if (status == QKV_OK) status = add_option(spec, option, given, err);
    }
    json_decref(fields);
    if (status == QKV_OK) status = add_sides(spec, "--row", spec->rows, o->n_rows, err);
    return status == QKV_OK ? add_sides(spec, "--col", spec->cols, o->n_cols, err) : status;
}

/* ---- the object ---- */

static int fill(qkv_figure_spec *spec, const char *json, size_t length, qkv_error *err) {
    spec->tree = qkv_json_parse(json, length, JSON_REJECT_DUPLICATES, NULL);
    spec->options = (qkv_figure_options)QKV_FIGURE_OPTIONS_INIT;
    if (!json_is_object(spec->tree))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the figure's options are no JSON object");
    int status = read_kind(spec, err);
    if (status == QKV_OK) status = read_fields(spec, err);
    if (status == QKV_OK)
        status = read_sides(spec, "rows", &spec->rows, &spec->options.n_rows, err);
    if (status == QKV_OK)
        status = read_sides(spec, "cols", &spec->cols, &spec->options.n_cols, err);
    spec->options.rows = spec->rows;
    spec->options.cols = spec->cols;
    if (status == QKV_OK) status = qkv_figure_options_check(spec->kind, &spec->options, err);
    return status == QKV_OK ? make_words(spec, err) : status;
}

int qkv_figure_spec_new(qkv_figure_spec **out, const char *json, size_t length, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, json);
    qkv_figure_spec *spec = qkv_calloc(1, sizeof *spec);
    if (!spec) return qkv_fail_memory(err);
    const int status = fill(spec, json, length, err);
    if (status == QKV_OK)
        *out = spec;
    else
        qkv_figure_spec_free(spec);
    return status;
}

int qkv_figure_spec_make(const qkv_figure_spec *spec, qkv_figure **out, qkv_session *session,
                         const qkv_prompt *prompts, size_t n_prompts, const char *format,
                         const char *const *command, size_t n_command, qkv_error *err) {
    static int (*const makers[])(qkv_figure **, qkv_session *, const qkv_figure_options *,
                                 qkv_error *) = {
        [QKV_FIGURE_MODIFY] = qkv_figure_modify, [QKV_FIGURE_MEAN] = qkv_figure_mean,
        [QKV_FIGURE_GRID] = qkv_figure_grid,     [QKV_FIGURE_HEADS] = qkv_figure_heads,
        [QKV_FIGURE_ROWS] = qkv_figure_rows,
    };
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, spec);
    QKV_NEED(err, session);
    QKV_NEED(err, format);
    qkv_figure_options options = spec->options;
    options.prompts = prompts;
    options.n_prompts = n_prompts;
    options.living = strcmp(format, "html") == 0;
    options.command = command;
    options.n_command = n_command;
    return makers[spec->kind](out, session, &options, err);
}
