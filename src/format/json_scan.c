/* Finds where JSON values end, and reads strings and numbers. */
#include "format/json_scan.h"

#include <string.h>

#include "base/number.h"
#include "format/json_read.h"

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
    return at;
}

/* After a string that starts at `at`, or NULL. */
static const char *skip_string(const char *at, const char *end) {
    for (at++; at < end; at++) {
        if (*at == '"') return at + 1;
        if (*at == '\\')
            at++;
        else if ((unsigned char)*at < 0x20)
            return NULL;
    }
    return NULL;
}

/* After an object or array: brackets are counted, whatever their kind. */
static const char *skip_container(const char *at, const char *end) {
    size_t depth = 0;
    while (at && at < end) {
        switch (*at) {
        case '"':
            at = skip_string(at, end);
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (--depth == 0) return at + 1;
            break;
        default:
            break;
        }
        at++;
    }
    return NULL;
}

static int is_scalar(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

/* After a value that starts at `at`, or NULL. */
static const char *skip_value(const char *at, const char *end) {
    if (at >= end) return NULL;
    if (*at == '"') return skip_string(at, end);
    if (*at == '{' || *at == '[') return skip_container(at, end);
    const char *start = at;
    while (at < end && is_scalar(*at)) at++;
    return at > start ? at : NULL;
}

qkv_json_span qkv_json_whole(const char *text, size_t length) {
    const char *end = text + length;
    const char *start = skip_blanks(text, end);
    const char *stop = skip_value(start, end);
    if (!stop || skip_blanks(stop, end) != end) return (qkv_json_span){NULL, 0};
    return (qkv_json_span){start, (size_t)(stop - start)};
}

int qkv_json_open(qkv_json_scan *scan, qkv_json_span value) {
    if (!value.text || (value.text[0] != '{' && value.text[0] != '[')) return 0;
    *scan = (qkv_json_scan){
        .at = value.text + 1, .end = value.text + value.length, .is_object = value.text[0] == '{'};
    return 1;
}

static int take(qkv_json_scan *scan, qkv_json_span *out) {
    const char *start = skip_blanks(scan->at, scan->end);
    const char *stop = skip_value(start, scan->end);
    if (!stop) return 0;
    *out = (qkv_json_span){start, (size_t)(stop - start)};
    scan->at = skip_blanks(stop, scan->end);
    return 1;
}

int qkv_json_next(qkv_json_scan *scan, qkv_json_span *key, qkv_json_span *value) {
    scan->at = skip_blanks(scan->at, scan->end);
    if (scan->at >= scan->end) return -1;
    if (*scan->at == (scan->is_object ? '}' : ']')) return scan->at + 1 == scan->end ? 0 : -1;
    if (scan->any) {
        if (*scan->at != ',') return -1;
        scan->at++;
    }
    scan->any = 1;
    if (scan->is_object) {
        if (!take(scan, key) || key->text[0] != '"' || scan->at >= scan->end || *scan->at != ':')
            return -1;
        scan->at++;
    }
    return take(scan, value) ? 1 : -1;
}

static int hex4(const char *text, const char *end, uint32_t *code) {
    if (end - text < 4) return 0;
    *code = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return 0;
        *code = *code << 4 | (uint32_t)digit;
    }
    return 1;
}

/* After the "\u": one code point, of two halves where it has them. NULL when malformed. */
static const char *append_unicode(const char *at, const char *end, qkv_text *out) {
    uint32_t code, low;
    char bytes[4];
    if (!hex4(at, end, &code)) return NULL;
    at += 4;
    if (code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' &&
        hex4(at + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
    qkv_text_append(out, bytes, qkv_utf8_encode(code, bytes));
    return at;
}

int qkv_json_append_string(qkv_json_span value, qkv_text *out) {
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (!value.text || value.length < 2 || value.text[0] != '"') return 0;
    const char *at = value.text + 1, *end = value.text + value.length - 1;
    while (at && at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        qkv_text_append(out, at, (size_t)((escape ? escape : end) - at));
        if (!escape) return 1;
        if (end - escape < 2) return 0;
        const char *name = escape[1] ? strchr(names, escape[1]) : NULL;
        if (name)
            qkv_text_append(out, &meanings[name - names], 1);
        else if (escape[1] != 'u')
            return 0;
        at = name ? escape + 2 : append_unicode(escape + 2, end, out);
    }
    return at != NULL;
}

int qkv_json_equals(qkv_json_span value, const char *string) {
    size_t length = strlen(string);
    return value.text && value.length == length + 2 && value.text[0] == '"' &&
           memcmp(value.text + 1, string, length) == 0;
}

int qkv_json_number(qkv_json_span value, double *number) {
    if (!value.text) return 0;
    if (qkv_parse_double(value.text, value.length, number)) return 1;
    json_t *tree = qkv_json_load(value.text, value.length, JSON_DECODE_ANY, NULL);
    const int is_number = json_is_number(tree);
    *number = json_number_value(tree);
    json_decref(tree);
    return is_number;
}
