/* Numbers in text, the same under every locale. See number.h. */
#define _XOPEN_SOURCE 700 /* newlocale */
#include "base/number.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Where newlocale finds no memory the host's locale stays: glibc's C locale needs none. */
qkv_locale qkv_locale_enter(void) {
    const locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return (qkv_locale){own ? uselocale(own) : NULL, own};
}

void qkv_locale_leave(qkv_locale host) {
    if (!host.own) return;
    uselocale(host.host);
    freelocale(host.own);
}

int qkv_vformat(char *out, size_t size, const char *format, va_list args) {
    const qkv_locale host = qkv_locale_enter();
    const int length = vsnprintf(out, size, format, args);
    qkv_locale_leave(host);
    return length;
}

int qkv_format(char *out, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = qkv_vformat(out, size, format, args);
    va_end(args);
    return length;
}

int qkv_print(FILE *stream, const char *format, ...) {
    va_list args;
    const qkv_locale host = qkv_locale_enter();
    va_start(args, format);
    const int length = vfprintf(stream, format, args);
    va_end(args);
    qkv_locale_leave(host);
    return length;
}

/* Copies the number to a NUL-terminated buffer; numbers longer than any sensible one are refused.
 */
static int number_text(const char *string, size_t length, char out[64]) {
    if (length == 0 || length >= 64 || qkv_is_space(string[0])) return 0;
    memcpy(out, string, length);
    out[length] = '\0';
    return strlen(out) == length;
}

int qkv_parse_int(const char *string, size_t length, int64_t *value) {
    char text[64], *end;
    if (!number_text(string, length, text)) return 0;
    size_t digits = strspn(text + (text[0] == '-' || text[0] == '+'), "0123456789");
    if (digits == 0 || digits > 18) return 0;
    *value = strtoll(text, &end, 10);
    return *end == '\0';
}

int qkv_parse_double(const char *string, size_t length, double *value) {
    char text[64], *end;
    if (!number_text(string, length, text)) return 0;
    const qkv_locale host = qkv_locale_enter();
    *value = strtod(text, &end);
    qkv_locale_leave(host);
    return *end == '\0';
}

const char *qkv_format_bytes(char out[QKV_BYTES_SIZE], uint64_t bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5; unit++) value /= 1000;
    qkv_format(out, QKV_BYTES_SIZE, "%.3g %s", value, units[unit]);
    return out;
}

double qkv_round_digits(double value, int digits) {
    char text[64];
    const qkv_locale host = qkv_locale_enter();
    snprintf(text, sizeof text, "%.*g", digits, value);
    const double rounded = strtod(text, NULL);
    qkv_locale_leave(host);
    return rounded;
}

int qkv_text_is_zero(const char *string, size_t length) {
    for (size_t i = 0; i < length && string[i] != 'e' && string[i] != 'E'; i++) {
        if (string[i] >= '1' && string[i] <= '9') return 0;
    }
    return 1;
}
