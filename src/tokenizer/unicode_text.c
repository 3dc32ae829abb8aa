/*
 * Unicode by utf8proc.
 *
 * Normalising is done here piece by piece rather than with utf8proc_map: that one sorts marks in
 * quadratic time, so that a long run of them would hang, and refuses a text with one bad byte.
 */
#include "tokenizer/unicode_text.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"

typedef struct code_list {
    utf8proc_int32_t *codes;
    size_t count, capacity;
} code_list;

enum { MOST_PER_CODE = 32 }; /* U+FDFA becomes 18 */

static int combining_class(utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
}

static int decompose(code_list *list, uint32_t code, unsigned flags) {
    utf8proc_int32_t parts[MOST_PER_CODE];
    int boundary = 0;
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    if (flags & QKV_UNICODE_COMPATIBILITY) options |= UTF8PROC_COMPAT;
    utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)code, parts, MOST_PER_CODE, options, &boundary);
    if (n < 0 || n > MOST_PER_CODE) {
        parts[0] = (utf8proc_int32_t)code;
        n = 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        if (!QKV_PUSH(list->codes, list->capacity, list->count, parts[i])) return 0;
    }
    return 1;
}

/* Stable, by combining class: one pass per class for long runs, insertion for the usual ones. */
static int sort_marks(utf8proc_int32_t *codes, size_t n) {
    if (n < 32) {
        for (size_t i = 1; i < n; i++) {
            const utf8proc_int32_t code = codes[i];
            size_t at = i;
            for (; at > 0 && combining_class(codes[at - 1]) > combining_class(code); at--)
                codes[at] = codes[at - 1];
            codes[at] = code;
        }
        return 1;
    }
    size_t starts[257] = {0};
    utf8proc_int32_t *sorted = qkv_calloc(n, sizeof *sorted);
    if (!sorted) return 0;
    for (size_t i = 0; i < n; i++) starts[(combining_class(codes[i]) & 255) + 1]++;
    for (size_t i = 0; i < 256; i++) starts[i + 1] += starts[i];
    for (size_t i = 0; i < n; i++) sorted[starts[combining_class(codes[i]) & 255]++] = codes[i];
    memcpy(codes, sorted, n * sizeof *codes);
    free(sorted);
    return 1;
}

static int order_marks(code_list *list) {
    for (size_t i = 0; i < list->count;) {
        size_t end = i;
        while (end < list->count && combining_class(list->codes[end]) != 0) end++;
        if (end - i > 1 && !sort_marks(list->codes + i, end - i)) return 0;
        i = end + 1;
    }
    return 1;
}

void qkv_unicode_append(qkv_text *out, uint32_t code) {
    char bytes[4];
    qkv_text_append(out, bytes, qkv_utf8_encode(code, bytes));
}

/* Orders, composes and writes what was gathered, and empties the list. */
static void flush(code_list *list, qkv_text *out, unsigned flags) {
    if (list->count == 0) return;
    if (!order_marks(list)) {
        out->failed = 1;
        return;
    }
    utf8proc_ssize_t n = (utf8proc_ssize_t)list->count;
    if (flags & QKV_UNICODE_COMPOSE)
        n = utf8proc_normalize_utf32(list->codes, n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) qkv_unicode_append(out, (uint32_t)list->codes[i]);
    list->count = 0;
}

static int is_ascii(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] >= 0x80) return 0;
    }
    return 1;
}

void qkv_unicode_normalize(qkv_text *out, const char *text, size_t length, unsigned flags) {
    code_list list = {0};
    if (is_ascii(text, length)) {
        qkv_text_append(out, text, length);
        return;
    }
    for (size_t i = 0; i < length && !out->failed;) {
        uint32_t code;
        size_t used = qkv_utf8_decode(text + i, length - i, &code);
        if (used == 1 && (unsigned char)text[i] >= 0x80) {
            flush(&list, out, flags);
            qkv_text_append(out, text + i, 1);
        } else if (!decompose(&list, code, flags)) {
            out->failed = 1;
        }
        i += used;
    }
    if (!out->failed) flush(&list, out, flags);
    free(list.codes);
}

void qkv_unicode_append_lower(qkv_text *out, uint32_t code) {
    if (code == 0x130) {
        qkv_text_puts(out, "i\xcc\x87");
        return;
    }
    qkv_unicode_append(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
}

int qkv_unicode_is_white(uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
    return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

static utf8proc_category_t category(uint32_t code) {
    return utf8proc_category((utf8proc_int32_t)code);
}

int qkv_unicode_is_control(uint32_t code) {
    utf8proc_category_t c = category(code);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO ||
           c == UTF8PROC_CATEGORY_CS;
}

int qkv_unicode_is_nonspacing(uint32_t code) {
    return category(code) == UTF8PROC_CATEGORY_MN;
}

int qkv_unicode_is_mark(uint32_t code) {
    utf8proc_category_t c = category(code);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

int qkv_unicode_is_word(uint32_t code) {
    utf8proc_category_t c = category(code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NO) || c == UTF8PROC_CATEGORY_PC;
}

/* The blocks that BERT's tokeniser names. */
int qkv_unicode_is_ideograph(uint32_t code) {
    static const struct {
        uint32_t first, last;
    } blocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                  {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (code >= blocks[i].first && code <= blocks[i].last) return 1;
    }
    return 0;
}
