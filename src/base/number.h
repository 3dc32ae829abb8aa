/*
 * Numbers in text, the same under every locale: a host program may have called setlocale, and then
 * printf and strtod use its decimal sign (a comma, or more than one byte). This is the only place
 * that calls them for fractions: everything else prints through qkv_format, qkv_print,
 * qkv_text_printf and qkv_fail, and reads through qkv_parse_double
 * (tests/unit/test_locale.c looks for others).
 *
 * A call into another library that reads or writes fractions stands between two lines:
 *
 *     const qkv_locale host = qkv_locale_enter();
 *     ... json_dumpf(...) ...
 *     qkv_locale_leave(host);
 *
 * Only the calling thread's locale is changed, and put back.
 */
#ifndef QKV_BASE_NUMBER_H
#define QKV_BASE_NUMBER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"

typedef struct qkv_locale {
    void *host, *own;
} qkv_locale;

qkv_locale qkv_locale_enter(void);
void qkv_locale_leave(qkv_locale host);

/* snprintf, vsnprintf and fprintf. */
int qkv_format(char *out, size_t size, const char *format, ...) QKV_PRINTF(3, 4);
int qkv_vformat(char *out, size_t size, const char *format, va_list args) QKV_PRINTF(3, 0);
int qkv_print(FILE *stream, const char *format, ...) QKV_PRINTF(2, 3);

/* The whole string must be the number (decimal; exponents for doubles). Return 1 or 0. */
int qkv_parse_int(const char *string, size_t length, int64_t *value);
int qkv_parse_double(const char *string, size_t length, double *value);
/* Is a number written as zero, and not as one that is too small for its type? */
int qkv_text_is_zero(const char *string, size_t length);

/* A number of bytes for people, in powers of 1000 as shops and hubs count: "812 B", "4.37 GB". */
enum { QKV_BYTES_SIZE = 16 };
const char *qkv_format_bytes(char out[QKV_BYTES_SIZE], uint64_t bytes);

/* The value after being written with so many digits: 12 make powers of ten come out as such. */
double qkv_round_digits(double value, int digits);

#endif
