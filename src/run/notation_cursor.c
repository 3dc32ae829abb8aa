#include "run/notation_cursor.h"

#include <stdarg.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

void qkv_cursor_begin(qkv_cursor *c, const char *stops) {
    c->part = c->at;
    c->stops = stops;
}

int qkv_cursor_fail(qkv_cursor *c, int status, const char *format, ...) {
    char detail[600];
    va_list args;
    va_start(args, format);
    qkv_vformat(detail, sizeof detail, format, args);
    va_end(args);
    if (c->notation->mistake) {
        const size_t length = strcspn(c->part, c->stops);
        const size_t taken = c->at > c->part ? (size_t)(c->at - c->part) : 0;
        *c->notation->mistake =
            (qkv_span){(size_t)(c->part - c->text), length > taken ? length : taken};
    }
    return qkv_fail(c->err, status, "%s '%s': %s", c->kind, c->text, detail);
}

int qkv_cursor_take(qkv_cursor *c, char wanted) {
    if (*c->at != wanted) return 0;
    c->at++;
    return 1;
}

int qkv_cursor_number(qkv_cursor *c, int64_t *value) {
    size_t digits = strspn(c->at, "0123456789");
    if (!qkv_parse_int(c->at, digits, value)) return 0;
    c->at += digits;
    return 1;
}

qkv_axis qkv_cursor_tokens(const qkv_cursor *c) {
    const qkv_notation *notation = c->notation;
    const int is_longer = notation->n_prompt && notation->n_prompt < notation->n_tokens;
    return (qkv_axis){.one = "token",
                      .whole = is_longer ? "the prompt with all new tokens" : "the prompt",
                      .n = notation->n_tokens,
                      .end = notation->n_prompt ? notation->n_prompt : notation->n_tokens,
                      .open = '[',
                      .close = ']'};
}
