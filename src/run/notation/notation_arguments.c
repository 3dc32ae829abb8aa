#include "run/notation/notation_cursor.h"

#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/text.h"

enum { MOST_ARGUMENTS = 16 };

/* One `name=value` of the text. */
typedef struct item {
    const char *name, *value;
    size_t name_length, value_length;
} item;

static int is_word(const char *word, const char *text, size_t length) {
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

static int fail_name(const item *it, const qkv_argument *list, size_t n, qkv_error *err) {
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(it->name, it->name_length);
    for (size_t i = 0; i < n; i++) {
        qkv_text_printf(&known, "%s%s=", i ? ", " : "", list[i].name);
        qkv_nearest_try(&near, list[i].name);
    }
    const int status = qkv_fail(
        err, QKV_ERR_SYNTAX, "there is no argument '%.*s'%s; arguments are %s",
        (int)it->name_length, it->name, qkv_nearest_hint(&near), known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

static int read_word(const item *it, const qkv_argument *arg, qkv_error *err) {
    int64_t number = 0;
    for (const char *at = arg->words; *at; number++) {
        const size_t length = strcspn(at, "|");
        if (length == it->value_length && strncmp(at, it->value, length) == 0) {
            *arg->value = number;
            return QKV_OK;
        }
        at += length + (at[length] == '|');
    }
    return qkv_fail(err, QKV_ERR_SYNTAX, "%s= is one of %s, not '%.*s'", arg->name, arg->words,
                    (int)it->value_length, it->value);
}

static int read_value(const item *it, const qkv_argument *arg, qkv_error *err) {
    if (arg->words) return read_word(it, arg, err);
    int64_t number;
    if (!qkv_parse_int(it->value, it->value_length, &number))
        return qkv_fail(err, QKV_ERR_SYNTAX, "%s= needs a whole number, not '%.*s'", arg->name,
                        (int)it->value_length, it->value);
    if (number < arg->least || number > arg->most)
        return qkv_fail(err, QKV_ERR_PLAN, "%s=%.*s is out of range; give %lld to %lld", arg->name,
                        (int)it->value_length, it->value, (long long)arg->least,
                        (long long)arg->most);
    *arg->value = number;
    return QKV_OK;
}

static int read_item(const item *it, const qkv_argument *list, size_t n, uint8_t *given,
                     qkv_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!is_word(list[i].name, it->name, it->name_length)) continue;
        if (given[i]) return qkv_fail(err, QKV_ERR_SYNTAX, "%s= is given twice", list[i].name);
        given[i] = 1;
        return read_value(it, &list[i], err);
    }
    return fail_name(it, list, n, err);
}

int qkv_arguments_read(const char *text, const qkv_argument *list, size_t n, qkv_error *err) {
    uint8_t given[MOST_ARGUMENTS] = {0};
    while (*text) {
        const size_t length = strcspn(text, ",");
        const char *equals = memchr(text, '=', length);
        if (!equals)
            return qkv_fail(err, QKV_ERR_SYNTAX, "expected NAME=VALUE, e.g. %s=, not '%.*s'",
                            list[0].name, (int)length, text);
        const item it = {.name = text,
                         .name_length = (size_t)(equals - text),
                         .value = equals + 1,
                         .value_length = length - (size_t)(equals + 1 - text)};
        const int status = read_item(&it, list, n, given, err);
        if (status != QKV_OK) return status;
        text += length;
        if (*text == ',' && !*++text)
            return qkv_fail(err, QKV_ERR_SYNTAX, "expected NAME=VALUE after the last comma");
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].is_needed && !given[i])
            return qkv_fail(err, QKV_ERR_SYNTAX, "%s= is missing", list[i].name);
    }
    return QKV_OK;
}
