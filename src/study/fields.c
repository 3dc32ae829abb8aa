/* Options by their names: texts and JSON to structs, and back. See fields.h. */
#include "study/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/text.h"
#include "qkv/head_choice.h"

/* Enums of the options are read and written as ints. */
_Static_assert(sizeof(field_kind) == sizeof(int), "enums have the size of an int");

/* ---- what a value can be ---- */

static const char *kind_text(field_kind kind) {
#define FIELD_WHAT(name, type, what) what,
    static const char *const kinds[] = {FIELD_KINDS(FIELD_WHAT)};
#undef FIELD_WHAT
    return kinds[kind];
}

static int is_text_kind(const field *f) {
    return f->kind == FIELD_TEXT || f->kind == FIELD_LIST || f->kind == FIELD_FILE ||
           f->kind == FIELD_PATH;
}

/* Is QKV_AUTO, -1, what it has when it is not given? */
static int has_auto(const field *f) {
    return f->kind == FIELD_INDEX || f->kind == FIELD_POSITION;
}

static int has_bounds(const field *f) {
    return !is_text_kind(f) && !(f->least == 0 && f->most == 0);
}

void qkv_field_append_values(const field *f, qkv_text *out) {
    if (f->kind == FIELD_INDEX && f->least < 0) {
        qkv_text_puts(out, "a number from 0, or from the end (-1), or auto");
        return;
    }
    qkv_text_puts(out, f->kind == FIELD_WORD ? f->words : kind_text(f->kind));
    if (has_bounds(f) && f->kind == FIELD_LENGTH)
        qkv_text_printf(out, ", up to %gpt", f->most);
    else if (has_bounds(f)) {
        qkv_text_puts(out, " from ");
        qkv_text_append_number(out, f->least);
        if (f->most > 1e15) return;
        qkv_text_puts(out, " to ");
        qkv_text_append_number(out, f->most);
    }
}

static int fail_value(const field *f, const char *given, qkv_error *err) {
    qkv_text wanted = {0};
    qkv_nearest near = qkv_nearest_of(given, strlen(given));
    for (const char *word = f->words; f->kind == FIELD_WORD && *word;) {
        char name[QKV_NEAREST_SIZE];
        const size_t n = strcspn(word, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        qkv_nearest_try(&near, name);
        word += n + (word[n] == '|');
    }
    qkv_field_append_values(f, &wanted);
    const int status =
        wanted.failed
            ? qkv_fail_memory(err)
            : qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` wants %s, not '%.80s'%s", f->name, wanted.data,
                       given, f->kind == FIELD_WORD ? qkv_nearest_hint(&near) : "");
    qkv_text_release(&wanted);
    return status;
}

/* The same of a value that is JSON, or was made from a text. */
static int fail_json(const field *f, const json_t *value, const char *text, qkv_error *err) {
    if (text) return fail_value(f, text, err);
    if (json_is_string(value)) return fail_value(f, json_string_value(value), err);
    char *shown = qkv_json_dump(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const int status = shown ? fail_value(f, shown, err) : qkv_fail_memory(err);
    free(shown);
    return status;
}

/* ---- texts to JSON ---- */

/* Points of "85mm"; NaN where it is none. */
static double length_of(const char *text) {
    static const struct {
        const char *name;
        double points;
    } units[] = {{"mm", 72 / 25.4}, {"cm", 720 / 25.4}, {"in", 72}, {"pt", 1}};
    const size_t length = strlen(text);
    double number;
    for (size_t i = 0; length > 2 && i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + length - 2, units[i].name) == 0)
            return qkv_parse_double(text, length - 2, &number) ? number * units[i].points
                                                               : (double)NAN;
    }
    return (double)NAN;
}

static json_t *real_of(const char *text, size_t length) {
    double number;
    return qkv_parse_double(text, length, &number) && isfinite(number) ? json_real(number)
                                                                       : json_null();
}

static json_t *range_of(const char *text) {
    const char *comma = strchr(text, ',');
    if (!comma) return json_null();
    return json_pack("[o, o]", real_of(text, (size_t)(comma - text)),
                     real_of(comma + 1, strlen(comma + 1)));
}

/* null: it is not one of its kind. NULL: memory is short. */
static json_t *json_of(const field *f, const char *text) {
    int64_t number;
    switch (f->kind) {
    case FIELD_FLAG:
        if (!text || strcmp(text, "true") == 0) return json_true();
        return strcmp(text, "false") == 0 ? json_false() : json_null();
    case FIELD_INDEX:
        if (strcmp(text, "auto") == 0) return json_integer(QKV_AUTO);
        if (!qkv_parse_int(text, strlen(text), &number)) return json_null();
        return json_integer(number < 0 ? QKV_AUTO + number : number);
    case FIELD_POSITION:
    case FIELD_INT:
    case FIELD_COUNT:
        return qkv_parse_int(text, strlen(text), &number) ? json_integer(number) : json_null();
    case FIELD_REAL:
        return real_of(text, strlen(text));
    case FIELD_RANGE:
        return range_of(text);
    default:
        return qkv_json_text(text);
    }
}

/* ---- checks: JSON to a struct's field ---- */

/* Word number `index` of "a|b|c": where it begins; NULL past the end. */
static const char *word_at(const char *words, int index, size_t *length) {
    for (const char *at = words;; at += *length + 1) {
        *length = strcspn(at, "|");
        if (index-- == 0) return at;
        if (at[*length] == '\0') return NULL;
    }
}

static int read_word(const field *f, const json_t *value, void *at) {
    const char *word;
    size_t length;
    for (int i = 0; json_is_string(value) && (word = word_at(f->words, i, &length)); i++) {
        if (json_string_length(value) != length) continue;
        if (memcmp(word, json_string_value(value), length) != 0) continue;
        memcpy(at, &i, sizeof i);
        return 1;
    }
    return 0;
}

static int is_within(const field *f, double value) {
    return !has_bounds(f) || (value >= f->least && value <= f->most);
}

static int read_flag(const field *f, const json_t *value, void *at) {
    const int32_t flag = json_is_true(value);
    (void)f;
    memcpy(at, &flag, sizeof flag);
    return json_is_boolean(value);
}

static int read_int32(const field *f, const json_t *value, void *at) {
    const json_int_t number = json_integer_value(value);
    const int32_t narrow = (int32_t)number;
    const int is_auto = has_auto(f) && number == QKV_AUTO;
    if (!json_is_integer(value) || narrow != number) return 0;
    if (!is_auto && !is_within(f, (double)number)) return 0;
    memcpy(at, &narrow, sizeof narrow);
    return 1;
}

static int read_count(const field *f, const json_t *value, void *at) {
    const int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || !is_within(f, (double)number)) return 0;
    memcpy(at, &number, sizeof number);
    return 1;
}

static int read_real(const field *f, const json_t *value, void *at) {
    const double number = json_number_value(value);
    if (!json_is_number(value) || !isfinite(number) || !is_within(f, number)) return 0;
    memcpy(at, &number, sizeof number);
    return 1;
}

static int read_range(const field *f, const json_t *value, void *at) {
    if (json_array_size(value) != 2) return 0;
    return read_real(f, json_array_get(value, 0), at) &&
           read_real(f, json_array_get(value, 1), (char *)at + sizeof(double)) &&
           json_number_value(json_array_get(value, 0)) <
               json_number_value(json_array_get(value, 1));
}

static int read_text(const field *f, const json_t *value, void *at) {
    const char *text = json_string_value(value);
    if (!text || strlen(text) != json_string_length(value)) return 0;
    if (f->most > 0 && (double)json_string_length(value) > f->most) return 0;
    memcpy(at, &text, sizeof text);
    return 1;
}

/* `text`: what the value was made from; NULL: it came as JSON. */
static int read_field(const field *f, const json_t *value, const char *text, void *at,
                      qkv_error *err) {
    static int (*const readers[])(const field *, const json_t *, void *) = {
        [FIELD_FLAG] = read_flag,      [FIELD_INDEX] = read_int32, [FIELD_INT] = read_int32,
        [FIELD_POSITION] = read_int32, [FIELD_COUNT] = read_count, [FIELD_REAL] = read_real,
        [FIELD_RANGE] = read_range,    [FIELD_LENGTH] = read_real, [FIELD_WORD] = read_word,
        [FIELD_TEXT] = read_text,      [FIELD_LIST] = read_text,   [FIELD_FILE] = read_text,
        [FIELD_PATH] = read_text,
    };
    if (readers[f->kind](f, value, at)) return QKV_OK;
    if (is_text_kind(f) && json_is_string(value))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is too long, or has NUL bytes", f->name);
    return fail_json(f, value, text, err);
}

/* ---- the form in which values are kept ---- */

/* The lines of a list; NULL where memory is short, null where it is not of texts. */
static json_t *lines_of(const json_t *list) {
    qkv_text lines = {0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *line = json_string_value(json_array_get(list, i));
        if (!line || strchr(line, '\n')) return qkv_text_release(&lines), json_null();
        qkv_text_printf(&lines, "%s%s", i ? "\n" : "", line);
    }
    json_t *value = lines.failed ? NULL : json_stringn(lines.data ? lines.data : "", lines.length);
    qkv_text_release(&lines);
    return value;
}

/* A new reference, as the field's kind is kept. NULL: memory is short. */
static json_t *kept_form(const field *f, const json_t *value) {
    if (f->kind == FIELD_LIST && json_is_array(value)) return lines_of(value);
    if (f->kind == FIELD_LENGTH && json_is_string(value)) {
        const double points = length_of(json_string_value(value));
        return isnan(points) ? json_null() : json_real(points);
    }
    return json_incref((json_t *)value);
}

static int put(const field *f, json_t *into, const json_t *value, const char *text,
               qkv_error *err) {
    union {
        double numbers[2];
        int64_t count;
        const char *text;
    } checked;
    json_t *form = kept_form(f, value);
    if (!form) return qkv_fail_memory(err);
    const int status = json_is_null(form) ? fail_json(f, value, text, err)
                                          : read_field(f, form, text, &checked, err);
    if (status != QKV_OK) return json_decref(form), status;
    return qkv_json_put(into, f->name, form) == 0 ? QKV_OK : qkv_fail_memory(err);
}

int qkv_field_put_json(const field *f, json_t *into, const json_t *value, qkv_error *err) {
    return put(f, into, value, NULL, err);
}

/* A list that is there already, and one more. */
static json_t *longer_list(const json_t *list, const char *text) {
    qkv_text lines = {0};
    qkv_text_printf(&lines, "%s\n%s", json_string_value(list), text);
    json_t *value = lines.failed ? NULL : qkv_json_text(lines.data);
    qkv_text_release(&lines);
    return value;
}

int qkv_field_put_text(const field *f, json_t *into, const char *text, qkv_error *err) {
    if (!text && f->kind != FIELD_FLAG)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` needs a value", f->name);
    if (f->kind == FIELD_LIST && strchr(text, '\n'))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a value of `%s` is one line", f->name);
    const json_t *there = f->kind == FIELD_LIST ? json_object_get(into, f->name) : NULL;
    json_t *value = there ? longer_list(there, text) : json_of(f, text);
    if (!value) return qkv_fail_memory(err);
    const int status =
        json_is_null(value) ? fail_value(f, text ? text : "", err) : put(f, into, value, text, err);
    json_decref(value);
    return status;
}

/* ---- structs to JSON ---- */

static json_t *write_word(const field *f, const void *at) {
    int value;
    size_t length;
    memcpy(&value, at, sizeof value);
    const char *word = value ? word_at(f->words, value, &length) : NULL;
    return word ? json_stringn(word, length) : json_null();
}

static json_t *write_int32(const field *f, const void *at) {
    int32_t number;
    memcpy(&number, at, sizeof number);
    if (f->kind == FIELD_FLAG) return number ? json_true() : json_null();
    return number == (has_auto(f) ? QKV_AUTO : 0) ? json_null() : json_integer(number);
}

/* null: it has its default. NULL: memory is short. */
static json_t *write_field(const field *f, const void *at) {
    int64_t count;
    double pair[2] = {0};
    const char *text;
    switch (f->kind) {
    case FIELD_WORD:
        return write_word(f, at);
    case FIELD_FLAG:
    case FIELD_INDEX:
    case FIELD_POSITION:
    case FIELD_INT:
        return write_int32(f, at);
    case FIELD_COUNT:
        memcpy(&count, at, sizeof count);
        return count ? json_integer(count) : json_null();
    case FIELD_REAL:
    case FIELD_LENGTH:
        memcpy(pair, at, sizeof *pair);
        return pair[0] != 0 ? qkv_json_exact(pair[0]) : json_null();
    case FIELD_RANGE:
        memcpy(pair, at, sizeof pair);
        if (pair[0] == 0 && pair[1] == 0) return json_null();
        return json_pack("[o, o]", qkv_json_exact(pair[0]), qkv_json_exact(pair[1]));
    case FIELD_TEXT:
    case FIELD_LIST:
    case FIELD_FILE:
    case FIELD_PATH:
        memcpy(&text, at, sizeof text);
        return text ? qkv_json_text(text) : json_null();
    }
    return json_null();
}

/* ---- all of them ---- */

json_t *qkv_fields_write(const field_table *table, const void *options) {
    json_t *to = json_object();
    int failed = !to;
    for (size_t i = 0; i < table->n && !failed; i++) {
        const field *f = &table->fields[i];
        json_t *value = write_field(f, (const char *)options + f->offset);
        if (!json_is_null(value)) failed = qkv_json_put(to, f->name, value) != 0;
    }
    if (!failed) return to;
    json_decref(to);
    return NULL;
}

const field *qkv_field_find(const field_table *table, const char *name) {
    for (size_t i = 0; i < table->n; i++) {
        const field *f = &table->fields[i];
        if (strcmp(f->name, name) == 0 || (f->former && strcmp(f->former, name) == 0)) return f;
    }
    return NULL;
}

int qkv_field_fail_name(const field_table *tables, size_t n, const char *name, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    for (size_t t = 0; t < n; t++) {
        for (size_t i = 0; i < tables[t].n; i++) qkv_nearest_try(&near, tables[t].fields[i].name);
    }
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "there is no option \"%.40s\"%s in this version of qkv", name,
                    qkv_nearest_hint(&near));
}

int qkv_fields_read(const field_table *table, const json_t *from, void *options, qkv_error *err) {
    const char *name;
    json_t *value;
    if (!json_is_object(from)) return qkv_fail(err, QKV_ERR_FORMAT, "there are no options");
    json_object_foreach((json_t *)from, name, value) {
        const field *f = qkv_field_find(table, name);
        if (!f) return qkv_field_fail_name(table, 1, name, err);
        const int status = read_field(f, value, NULL, (char *)options + f->offset, err);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

/* Choices that are out of their words have none to be written as. */
static int check_choice(const field *f, const void *at, qkv_error *err) {
    int value;
    size_t length;
    memcpy(&value, at, sizeof value);
    if (value >= 0 && word_at(f->words, value, &length)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is not one of its constants", f->name);
}

int qkv_fields_check(const field_table *table, const void *options, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < table->n && status == QKV_OK; i++) {
        const field *f = &table->fields[i];
        const void *at = (const char *)options + f->offset;
        if (f->kind == FIELD_WORD) status = check_choice(f, at, err);
        double number;
        int32_t whole;
        if (f->kind == FIELD_INT) {
            memcpy(&whole, at, sizeof whole);
            number = whole;
        } else if (f->kind == FIELD_REAL || f->kind == FIELD_LENGTH) {
            memcpy(&number, at, sizeof number);
        } else {
            continue;
        }
        if (number == 0 || is_within(f, number)) continue;
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` must be %g to %g, not %g", f->name, f->least,
                          f->most, number);
    }
    return status;
}

void qkv_fields_clear(const field_table *table, void *options, size_t size) {
    const int32_t automatic = QKV_AUTO;
    memset(options, 0, size);
    for (size_t i = 0; i < table->n; i++) {
        if (has_auto(&table->fields[i]))
            memcpy((char *)options + table->fields[i].offset, &automatic, sizeof automatic);
    }
}
