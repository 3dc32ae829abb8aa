#include "run/notation/notation_cursor.h"

#include <float.h>
#include <math.h>
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

int qkv_cursor_float(qkv_cursor *c, char stop, float *value, const char *what) {
    const char *end = stop ? strchr(c->at, stop) : NULL;
    size_t length = end ? (size_t)(end - c->at) : strlen(c->at);
    double number;
    qkv_cursor_begin(c, stop ? "," : "");
    if (!qkv_parse_double(c->at, length, &number))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected %s, not '%.*s'", what, (int)length,
                               c->at);
    *value = (float)number;
    if (!isfinite(*value))
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "%.*s is not a finite number of single precision",
                               (int)length, c->at);
    if (fabsf(*value) < FLT_MIN && !qkv_text_is_zero(c->at, length))
        return qkv_cursor_fail(
            c, QKV_ERR_PLAN,
            "%.*s is too small for single precision, which ends at 1.2e-38; write 0", (int)length,
            c->at);
    c->at += length;
    return QKV_OK;
}

int qkv_cursor_seed(qkv_cursor *c, qkv_edit *edit) {
    int64_t seed;
    if (!qkv_cursor_take(c, ',')) return QKV_OK;
    qkv_cursor_begin(c, "");
    if (strncmp(c->at, "seed=", 5) != 0)
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected seed=N, not '%s'", c->at);
    c->at += 5;
    if (!qkv_cursor_number(c, &seed))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "the seed must be a whole number, not '%s'",
                               c->at);
    edit->seed = (uint64_t)seed;
    return QKV_OK;
}

int qkv_cursor_read(qkv_cursor *c, qkv_edit *edit,
                    int (*parse)(qkv_edit *, const char *, qkv_error *)) {
    qkv_error own = {0};
    const int status = parse(edit, c->at, &own);
    if (status != QKV_OK) return qkv_cursor_fail(c, status, "%s", own.message);
    c->at += strlen(c->at);
    return QKV_OK;
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
