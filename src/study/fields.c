/* Structs of options to JSON and back. See fields.h. */
#include "study/fields.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "qkv/head_choice.h"

/* Enums of the options are read and written as ints. */
_Static_assert(sizeof(field_kind) == sizeof(int), "enums have the size of an int");

/* ---- words ---- */

/* Word number `index` of "a|b|c": where it begins; NULL past the end. */
static const char *word_at(const char *words, int index, size_t *length) {
    for (const char *at = words;; at += *length + 1) {
        *length = strcspn(at, "|");
        if (index-- == 0) return at;
        if (at[*length] == '\0') return NULL;
    }
}

static json_t *write_word(const field *f, const void *at) {
    int value;
    size_t length;
    memcpy(&value, at, sizeof value);
    const char *word = value ? word_at(f->words, value, &length) : NULL;
    return word ? json_stringn(word, length) : NULL;
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

/* ---- numbers ---- */

static int is_within(const field *f, double value) {
    return (f->least == 0 && f->most == 0) || (value >= f->least && value <= f->most);
}

static int read_int32(const field *f, const json_t *value, void *at) {
    const json_int_t number = json_integer_value(value);
    const int32_t narrow = (int32_t)number;
    if (!json_is_integer(value) || narrow != number || !is_within(f, (double)number)) return 0;
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
    if (!json_is_number(value) || !is_within(f, number)) return 0;
    memcpy(at, &number, sizeof number);
    return 1;
}

static int read_range(const field *f, const json_t *value, void *at) {
    if (json_array_size(value) != 2) return 0;
    return read_real(f, json_array_get(value, 0), at) &&
           read_real(f, json_array_get(value, 1), (char *)at + sizeof(double));
}

/* ---- texts ---- */

static int read_text(const field *f, const json_t *value, void *at) {
    const char *text = json_string_value(value);
    if (!text || strlen(text) != json_string_length(value)) return 0;
    if (f->most > 0 && (double)json_string_length(value) > f->most) return 0;
    memcpy(at, &text, sizeof text);
    return 1;
}

/* ---- a field ---- */

/* NULL: it has its default. */
static json_t *write_field(const field *f, const void *at) {
    int32_t narrow;
    int64_t count;
    double pair[2] = {0};
    const char *text;
    switch (f->kind) {
    case FIELD_WORD:
        return write_word(f, at);
    case FIELD_FLAG:
        memcpy(&narrow, at, sizeof narrow);
        return narrow ? json_true() : NULL;
    case FIELD_INDEX:
    case FIELD_INT:
        memcpy(&narrow, at, sizeof narrow);
        return narrow == (f->kind == FIELD_INDEX ? QKV_AUTO : 0) ? NULL : json_integer(narrow);
    case FIELD_COUNT:
        memcpy(&count, at, sizeof count);
        return count ? json_integer(count) : NULL;
    case FIELD_REAL:
        memcpy(pair, at, sizeof *pair);
        return pair[0] != 0 ? qkv_json_exact(pair[0]) : NULL;
    case FIELD_RANGE:
        memcpy(pair, at, sizeof pair);
        if (pair[0] == 0 && pair[1] == 0) return NULL;
        return json_pack("[o, o]", qkv_json_exact(pair[0]), qkv_json_exact(pair[1]));
    case FIELD_TEXT:
        memcpy(&text, at, sizeof text);
        return text ? qkv_json_text(text) : NULL;
    }
    return NULL;
}

static int read_flag(const field *f, const json_t *value, void *at) {
    const int32_t flag = json_is_true(value);
    (void)f;
    memcpy(at, &flag, sizeof flag);
    return json_is_boolean(value);
}

static int read_field(const field *f, const json_t *value, void *at, qkv_error *err) {
    static int (*const readers[])(const field *, const json_t *, void *) = {
        [FIELD_FLAG] = read_flag,   [FIELD_INDEX] = read_int32, [FIELD_INT] = read_int32,
        [FIELD_COUNT] = read_count, [FIELD_REAL] = read_real,   [FIELD_RANGE] = read_range,
        [FIELD_WORD] = read_word,   [FIELD_TEXT] = read_text,
    };
#define FIELD_WHAT(name, type, what) what,
    static const char *const kinds[] = {FIELD_KINDS(FIELD_WHAT)};
#undef FIELD_WHAT
    if (readers[f->kind](f, value, at)) return QKV_OK;
    if (f->kind == FIELD_WORD) {
        return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" is none of %s", f->name, f->words);
    }
    if (f->kind == FIELD_TEXT && json_is_string(value))
        return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" is too long, or has NUL bytes", f->name);
    if (f->kind == FIELD_TEXT || (f->least == 0 && f->most == 0))
        return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" is not %s", f->name, kinds[f->kind]);
    return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" is not %s from %g to %g", f->name, kinds[f->kind],
                    f->least, f->most);
}

/* ---- all of them ---- */

json_t *qkv_fields_write(const field *fields, size_t n, const void *options) {
    json_t *to = json_object();
    int failed = !to;
    for (size_t i = 0; i < n && !failed; i++) {
        json_t *value = write_field(&fields[i], (const char *)options + fields[i].offset);
        if (value) failed = json_object_set_new(to, fields[i].name, value) != 0;
    }
    if (!failed) return to;
    json_decref(to);
    return NULL;
}

static const field *find_field(const field *fields, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fields[i].name, name) == 0) return &fields[i];
    }
    return NULL;
}

static int fail_name(const field *fields, size_t n, const char *name, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    for (size_t i = 0; i < n; i++) qkv_nearest_try(&near, fields[i].name);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "there is no option \"%.40s\"%s in this version of qkv", name,
                    qkv_nearest_hint(&near));
}

int qkv_fields_read(const field *fields, size_t n, const json_t *from, void *options,
                    qkv_error *err) {
    const char *name;
    json_t *value;
    if (!json_is_object(from)) return qkv_fail(err, QKV_ERR_FORMAT, "there are no options");
    json_object_foreach((json_t *)from, name, value) {
        const field *f = find_field(fields, n, name);
        if (!f) return fail_name(fields, n, name, err);
        const int status = read_field(f, value, (char *)options + f->offset, err);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}
