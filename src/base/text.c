#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static int reserve(qkv_text *text, size_t more) {
    if (text->failed) return 0;
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity) return 1;
    size_t wanted = text->capacity ? text->capacity : 64;
    while (wanted < needed) wanted *= 2;
    char *moved = realloc(text->data, wanted);
    if (!moved) {
        text->failed = 1;
        return 0;
    }
    text->data = moved;
    text->capacity = wanted;
    return 1;
}

void qkv_text_append(qkv_text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) return;
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void qkv_text_puts(qkv_text *text, const char *string) {
    qkv_text_append(text, string, strlen(string));
}

void qkv_text_printf(qkv_text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = qkv_vformat(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        text->failed = 1;
    } else if (reserve(text, (size_t)length)) {
        qkv_vformat(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void qkv_text_append_number(qkv_text *text, double value) {
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        qkv_format(digits, sizeof digits, "%.*g", precision, value);
        if (qkv_round_digits(value, precision) == value) break;
    }
    qkv_text_puts(text, digits);
}

void qkv_text_release(qkv_text *text) {
    free(text->data);
    *text = (qkv_text){0};
}

int qkv_is_space(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

int qkv_begins_as_text(const void *bytes, size_t n) {
    return n == 0 || !memchr(bytes, '\0', n < 8 ? n : 8);
}

const char *qkv_plural(uint64_t n) {
    return n == 1 ? "" : "s";
}

int qkv_is_letter(char byte) {
    return qkv_lower(byte) >= 'a' && qkv_lower(byte) <= 'z';
}

char qkv_lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

int qkv_equal_ignoring_case(const char *a, const char *b) {
    while (*a && qkv_lower(*a) == qkv_lower(*b)) a++, b++;
    return qkv_lower(*a) == qkv_lower(*b);
}

/* Length that a leading byte announces, and the smallest code point that needs that many bytes. */
static size_t sequence_length(unsigned char lead, uint32_t *smallest) {
    if (lead < 0x80) return *smallest = 0, 1;
    if (lead >= 0xc2 && lead < 0xe0) return *smallest = 0x80, 2;
    if (lead >= 0xe0 && lead < 0xf0) return *smallest = 0x800, 3;
    if (lead >= 0xf0 && lead < 0xf5) return *smallest = 0x10000, 4;
    return 0;
}

/* 1 and the code point, or 0 when the bytes are not a well-formed sequence. */
static int decode_strict(const char *bytes, size_t length, uint32_t *code, size_t *used) {
    unsigned char lead = (unsigned char)bytes[0];
    uint32_t smallest;
    size_t n = sequence_length(lead, &smallest);
    if (n == 0 || n > length) return 0;
    uint32_t value = n == 1 ? lead : lead & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        unsigned char next = (unsigned char)bytes[i];
        if ((next & 0xc0) != 0x80) return 0;
        value = value << 6 | (next & 0x3f);
    }
    if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
    *code = value;
    *used = n;
    return 1;
}

size_t qkv_utf8_decode(const char *bytes, size_t length, uint32_t *code) {
    size_t used;
    if (length == 0) return 0;
    if (decode_strict(bytes, length, code, &used)) return used;
    *code = 0xfffd;
    return 1;
}

size_t qkv_utf8_encode(uint32_t code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)((0xf00u >> n & 0xff) | code);
    return n;
}

int qkv_utf8_valid(const char *bytes, size_t length) {
    for (size_t i = 0; i < length;) {
        uint32_t code;
        size_t used;
        if (!decode_strict(bytes + i, length - i, &code, &used)) return 0;
        i += used;
    }
    return 1;
}

size_t qkv_utf8_prefix(const char *bytes, size_t length, size_t most) {
    size_t at = 0;
    uint32_t code;
    while (most-- && at < length) at += qkv_utf8_decode(bytes + at, length - at, &code);
    return at;
}

size_t qkv_utf8_unfinished(const char *bytes, size_t length) {
    for (size_t n = 1; n <= 3 && n <= length; n++) {
        const unsigned char c = (unsigned char)bytes[length - n];
        if ((c & 0xc0) == 0x80) continue;
        const size_t wanted = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return wanted > n ? n : 0;
    }
    return 0;
}

/* Characters that a terminal or a reader does not show: some it obeys, and would turn the line around
 * (bidirectional controls) or end it (separators); of others nothing is seen (spaces without a width, the
 * soft hyphen, the mark at the beginning of a file). The joiner of emoji, U+200D, is part of what is seen. */
static int is_unseen(uint32_t code) {
    return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x2069) ||
           code == 0x200b || code == 0x200c || code == 0x200e || code == 0x200f || code == 0xad ||
           code == 0xfeff;
}

size_t qkv_visible_next(const char *bytes, size_t length, char out[QKV_VISIBLE_SIZE]) {
    uint32_t code = 0;
    size_t used = 1;
    const int good = decode_strict(bytes, length, &code, &used);
    if (!good) {
        snprintf(out, QKV_VISIBLE_SIZE, "\\x%02X", (unsigned char)bytes[0]);
    } else if (code == '\n' || code == '\t' || code == '\r') {
        snprintf(out, QKV_VISIBLE_SIZE, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
        snprintf(out, QKV_VISIBLE_SIZE, "\\x%02X", (unsigned)code);
    } else if (is_unseen(code)) {
        snprintf(out, QKV_VISIBLE_SIZE, "\\u%04X", (unsigned)code);
    } else {
        memcpy(out, bytes, used);
        out[used] = '\0';
    }
    return good ? used : 1;
}

void qkv_text_append_visible(qkv_text *text, const char *bytes, size_t length) {
    char piece[QKV_VISIBLE_SIZE];
    for (size_t i = 0; i < length;) {
        i += qkv_visible_next(bytes + i, length - i, piece);
        qkv_text_puts(text, piece);
    }
}

void qkv_text_append_short(qkv_text *text, const char *bytes, size_t length, size_t most) {
    const size_t shown = qkv_utf8_prefix(bytes, length, most);
    qkv_text_append_visible(text, bytes, shown);
    if (shown < length) qkv_text_puts(text, QKV_ELLIPSIS);
}

void qkv_text_append_utf8(qkv_text *text, const char *bytes, size_t length) {
    if (qkv_utf8_valid(bytes, length)) {
        qkv_text_append(text, bytes, length);
    } else {
        qkv_text_append_visible(text, bytes, length);
    }
}

int qkv_compare_strings(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
