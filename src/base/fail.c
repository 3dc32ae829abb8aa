/* Statuses, their texts, and the one function that makes errors. */
#include "base/fail.h"

#include <stdarg.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "qkv/version.h"

/* A message is one line, and nothing in it commands the terminal: control characters that came in
 * with file names or tokens become escapes. What is too long ends in an ellipsis. */
static void make_visible(char *out, size_t size, const char *text, int is_whole) {
    const size_t room = size - sizeof QKV_ELLIPSIS, bytes = strlen(text);
    const size_t length = is_whole ? bytes : bytes - 3; /* a character may have been cut in half */
    size_t at = 0, n = 0;
    char piece[QKV_VISIBLE_SIZE];
    while (at < length) {
        const size_t used = qkv_visible_next(text + at, length - at, piece);
        const size_t added = strlen(piece);
        if (n + added > room) break;
        memcpy(out + n, piece, added);
        n += added;
        at += used;
    }
    if (at < length || !is_whole) {
        memcpy(out + n, QKV_ELLIPSIS, sizeof QKV_ELLIPSIS - 1);
        n += sizeof QKV_ELLIPSIS - 1;
    }
    out[n] = '\0';
}

void qkv_fail_with(qkv_error *err, int status, const char *format, ...) {
    if (!err) return;
    /* The arguments may point into err->message itself (a message wrapped in another one). */
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    const int length = qkv_vformat(message, sizeof message, format, args);
    va_end(args);
    make_visible(err->message, sizeof err->message, message, length < (int)sizeof message);
    err->status = status;
}

const char *qkv_status_text(int status) {
    switch (status) {
#define QKV_STATUS_CASE(name, value, text)                                                         \
    case QKV_##name:                                                                               \
        return text;
        QKV_STATUS_LIST(QKV_STATUS_CASE)
#undef QKV_STATUS_CASE
    default:
        return "unknown status";
    }
}

const char *qkv_status_name(size_t index, int *status) {
#define QKV_STATUS_ENTRY(name, value, text) {"QKV_" #name, (value)},
    static const struct {
        const char *name;
        int status;
    } all[] = {QKV_STATUS_LIST(QKV_STATUS_ENTRY)};
#undef QKV_STATUS_ENTRY
    if (index >= sizeof all / sizeof *all) return NULL;
    if (status) *status = all[index].status;
    return all[index].name;
}

const char *qkv_version(void) {
    return QKV_VERSION;
}
