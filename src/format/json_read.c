/* Numbers that jansson cannot hold or does not know are written otherwise in a copy of the text. */
#include "format/json_read.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

#define LARGEST "1.7976931348623157e308"

static int fits(const char *number, size_t length, size_t flags) {
    json_error_t where;
    json_t *value = qkv_json_parse(number, length, flags | JSON_DECODE_ANY, &where);
    const int fits = value || json_error_code(&where) != json_error_numeric_overflow;
    json_decref(value);
    return fits;
}

/* The number itself where it can be read, as an integer or else as a real number; else the largest. */
static void append_number(qkv_text *out, const char *number, size_t length, size_t flags) {
    if (fits(number, length, flags))
        qkv_text_append(out, number, length);
    else if (fits(number, length, flags | JSON_DECODE_INT_AS_REAL)) {
        qkv_text_append(out, number, length);
        qkv_text_puts(out, ".0");
    } else
        qkv_text_puts(out, *number == '-' ? "-" LARGEST : LARGEST);
}

static size_t string_length(const char *text, size_t length) {
    size_t i = 1;
    while (i < length && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    return i < length ? i + 1 : length;
}

static size_t number_length(const char *text, size_t length) {
    size_t i = 0;
    while (i < length && text[i] && strchr("0123456789+-.eE", text[i])) i++;
    return i;
}

/* The length of a word that Python writes for a number that JSON does not have, or 0. */
static size_t word_length(const char *text, size_t length) {
    static const char *const words[] = {"Infinity", "NaN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if (length >= n && memcmp(text, words[i], n) == 0) return n;
    }
    return 0;
}

/* "1e99" fits, "1e999" does not. */
enum { SHORTEST = 5 };

static void rewrite(qkv_text *out, const char *text, size_t length, size_t flags) {
    for (size_t i = 0, n; i < length && !out->failed; i += n) {
        const char *at = text + i;
        if (*at == '"') {
            n = string_length(at, length - i);
            qkv_text_append(out, at, n);
        } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
            n = number_length(at, length - i);
            if (n < SHORTEST)
                qkv_text_append(out, at, n);
            else
                append_number(out, at, n, flags);
        } else if ((n = word_length(at, length - i)) > 0) {
            qkv_text_puts(out, LARGEST);
        } else {
            n = 1;
            qkv_text_append(out, at, 1);
        }
    }
}

/* An error of which the other way to write a number may be the cure. */
static int is_of_number(const json_error_t *error) {
    const enum json_error_code code = json_error_code(error);
    return code == json_error_numeric_overflow || code == json_error_invalid_syntax;
}

json_t *qkv_json_load(const char *text, size_t length, size_t flags, json_error_t *where) {
    json_error_t error;
    json_t *tree = qkv_json_parse(text, length, flags, &error);
    if (!tree && is_of_number(&error)) {
        qkv_text copy = {0};
        rewrite(&copy, text, length, flags);
        if (!copy.failed) tree = qkv_json_parse(copy.data, copy.length, flags, &error);
        qkv_text_release(&copy);
    }
    if (where) *where = error;
    return tree;
}
