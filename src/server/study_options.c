#include "server/study_options.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "server/request.h"

enum { MOST_ITEMS = 32, MOST_LINES = 10000, MOST_DPI = 600 };

/* ---- fields ---- */

/* PATH: the name of a file. */
static int is_offered(const qkv_study_field *field) {
    return field->use != QKV_FIELD_INPUT && field->type != QKV_FIELD_PATH;
}

int qkv_study_option(const char *kind, size_t index, qkv_study_field *field) {
    for (size_t i = 0; qkv_study_get_field(kind, i, field); i++) {
        if (is_offered(field) && index-- == 0) return 1;
    }
    return 0;
}

const json_t *qkv_study_option_value(const json_t *options, const char *name) {
    const json_t *value = json_object_get(options, name);
    return value && !json_is_null(value) && !json_is_false(value) ? value : NULL;
}

json_t *qkv_study_split(const char *words) {
    if (!words) return json_null();
    json_t *list = json_array();
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, "|");
        qkv_json_push(list, json_stringn(at, n));
        at += n + (at[n] == '|');
    }
    return list;
}

/* ---- checks ---- */

static int find_field(const char *kind, const char *name, qkv_study_field *field, qkv_error *err) {
    for (size_t i = 0; qkv_study_option(kind, i, field); i++) {
        if (strcmp(field->name, name) == 0) return QKV_OK;
    }
    qkv_text shown = {0};
    qkv_text_append_short(&shown, name, strlen(name), 40);
    const int status =
        shown.failed ? qkv_fail_memory(err)
                     : qkv_fail(err, QKV_ERR_ARGUMENT,
                                "`options`: %s has no field \"%s\"; /api/kinds lists its fields",
                                kind, shown.data);
    qkv_text_release(&shown);
    return status;
}

static size_t count_lines(const char *text) {
    size_t n = 1;
    for (; *text; text++) n += *text == '\n';
    return n;
}

/* Items of a list, or lines of a text that is a file elsewhere. */
static int check_items(const qkv_study_field *field, const json_t *value, qkv_error *err) {
    const int is_file = field->type == QKV_FIELD_FILE;
    const size_t most = is_file ? MOST_LINES : MOST_ITEMS;
    const size_t n =
        json_is_string(value) ? count_lines(json_string_value(value)) : json_array_size(value);
    if ((!is_file && field->type != QKV_FIELD_LIST) || n <= most) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has %zu %s; %zu are the most here", field->name, n,
                    is_file ? "lines" : "items", most);
}

/* Texts are as long as edits are elsewhere; those of files as long as a request. */
static int check_length(const qkv_study_field *field, const json_t *value, qkv_error *err) {
    size_t length = json_string_length(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        length += json_string_length(json_array_get(value, i)) + 1;
    if (field->type == QKV_FIELD_FILE || length <= QKV_REQUEST_EDITS) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has %zu bytes; %d are the most here", field->name,
                    length, QKV_REQUEST_EDITS);
}

static int is_one_of(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, "|");
        if (n == length && strncmp(at, word, n) == 0) return 1;
        at += n + (at[n] == '|');
    }
    return 0;
}

static int check_value(const qkv_study_field *field, const json_t *value, qkv_error *err) {
    if (field->type == QKV_FIELD_LENGTH && json_is_string(value))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is a number of points here", field->name);
    const int status = check_items(field, value, err);
    return status == QKV_OK ? check_length(field, value, err) : status;
}

/* The program refuses a look that no output has. */
static int check_effect(const qkv_study_field *field, const char *format, qkv_error *err) {
    if (!field->outputs || is_one_of(field->outputs, format)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has an effect on %s alone, and `format` is %s",
                    field->name, field->outputs, format);
}

/* Letters that grow make the page grow; what it holds is as wide as a sheet of paper. */
static int check_pixels(const json_t *options, const char *format, qkv_error *err) {
    static const double usual_width = 600, usual_size = 8, most = 100e6;
    const double dpi = json_number_value(json_object_get(options, "dpi"));
    const double size = json_number_value(json_object_get(options, "font_size"));
    const double width = json_number_value(json_object_get(options, "width"));
    const double points = width > 0 ? width : usual_width * fmax(1, size / usual_size);
    const double side = points * (dpi > 0 ? dpi : width > 0 ? 300 : 150) / 72;
    if (dpi > MOST_DPI)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`dpi` is %g; %d is the most here", dpi, MOST_DPI);
    if (strcmp(format, "png") != 0 || side * side <= most) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "this picture has about %.0f million pixels, and %.0f million are the most "
                    "here; the command line can make it",
                    side * side / 1e6, most / 1e6);
}

int qkv_study_options_check(const json_t *options, const char *kind, const char *format,
                            qkv_error *err) {
    const char *name;
    json_t *value;
    if (options && !json_is_object(options) && !json_is_null(options))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`options` is an object");
    json_object_foreach((json_t *)options, name, value) {
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        int status = find_field(kind, name, &field, err);
        if (status == QKV_OK) status = check_value(&field, value, err);
        if (status == QKV_OK && qkv_study_option_value(options, name))
            status = check_effect(&field, format, err);
        if (status != QKV_OK) return status;
    }
    return check_pixels(options, format, err);
}

/* ---- words ---- */

/* What the command line takes for a value; only texts and numbers are asked for. */
static void append_value(qkv_text *out, const qkv_study_field *field, const json_t *value) {
    if (json_is_string(value)) {
        qkv_text_puts(out, json_string_value(value));
    } else if (json_is_integer(value)) {
        qkv_text_printf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        qkv_text_append_number(out, json_real_value(value));
    }
    if (field->type == QKV_FIELD_LENGTH && json_is_number(value)) qkv_text_puts(out, "pt");
}

static void add_pair(qkv_words *words, const char *option, const qkv_text *value) {
    qkv_words_pair(words, option, value->failed ? NULL : value->data ? value->data : "");
}

static void add_value(qkv_words *words, const char *option, const qkv_study_field *field,
                      const json_t *value) {
    qkv_text text = {0};
    if (field->type == QKV_FIELD_FILE) {
        qkv_text_printf(&text, "%s.txt", field->name);
    } else if (field->type == QKV_FIELD_RANGE) {
        append_value(&text, field, json_array_get(value, 0));
        qkv_text_puts(&text, ",");
        append_value(&text, field, json_array_get(value, 1));
    } else {
        append_value(&text, field, value);
    }
    add_pair(words, option, &text);
    qkv_text_release(&text);
}

/* Each item of a list is an option of its own. */
static void add_list(qkv_words *words, const char *option, const json_t *value) {
    const char *lines = json_string_value(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        qkv_words_pair(words, option, json_string_value(json_array_get(value, i)));
    while (lines && *lines) {
        const size_t n = strcspn(lines, "\n");
        qkv_text line = {0};
        qkv_text_append(&line, lines, n);
        add_pair(words, option, &line);
        qkv_text_release(&line);
        lines += n + (lines[n] == '\n');
    }
}

static void add_field(qkv_words *words, const qkv_study_field *field, const json_t *value) {
    qkv_text option = {0};
    qkv_text_printf(&option, "--%s", field->name);
    for (char *at = option.data; at && *at; at++) {
        if (*at == '_') *at = '-';
    }
    if (option.failed)
        words->failed = 1;
    else if (field->type == QKV_FIELD_FLAG)
        qkv_words_add(words, option.data);
    else if (field->type == QKV_FIELD_LIST)
        add_list(words, option.data, value);
    else
        add_value(words, option.data, field, value);
    qkv_text_release(&option);
}

void qkv_study_options_words(const json_t *options, const qkv_study_kind *kind, qkv_words *words) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_option(kind->name, i, &field); i++) {
        const json_t *value = qkv_study_option_value(options, field.name);
        const int is_operand = kind->operand && strcmp(kind->operand, field.name) == 0;
        if (value && !is_operand) add_field(words, &field, value);
    }
}

json_t *qkv_study_options_files(const json_t *options, const char *kind) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    json_t *files = json_object();
    for (size_t i = 0; qkv_study_option(kind, i, &field); i++) {
        if (field.type != QKV_FIELD_FILE || !qkv_study_option_value(options, field.name)) continue;
        qkv_text name = {0};
        qkv_text_printf(&name, "%s.txt", field.name);
        if (name.failed || qkv_json_put(files, name.data, qkv_json_text(field.name)) != 0) {
            json_decref(files);
            files = NULL;
        }
        qkv_text_release(&name);
    }
    return files;
}
