/* Statuses, their texts, and the one function that makes errors. */
#include "base/fail.h"

#include <stdarg.h>
#include <string.h>

#include "base/number.h"

/* A message is one line: control characters that came in with file names or tokens must not break
 * it. */
static void keep_one_line(char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = ' ';
    }
}

void qkv_fail_with(qkv_error *err, int status, const char *format, ...) {
    if (!err) return;
    /* The arguments may point into err->message itself (a message wrapped in another one). */
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    qkv_vformat(message, sizeof message, format, args);
    va_end(args);
    keep_one_line(message);
    memcpy(err->message, message, sizeof message);
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

const char *qkv_version(void) {
    return QKV_VERSION;
}
