/*
 * XXH3-128 of bytes that come piece by piece, as 32 hexadecimal digits: tells contents apart, and
 * finds damage. It does not protect against contents made to look the same.
 */
#ifndef QKV_BASE_FINGERPRINT_H
#define QKV_BASE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

enum { QKV_FINGERPRINT_SIZE = 33 }; /* digits, and a NUL */

typedef struct qkv_fingerprint {
    void *state;
} qkv_fingerprint;

/* Between these two nothing can fail. */
int qkv_fingerprint_start(qkv_fingerprint *print, qkv_error *err);
void qkv_fingerprint_add(qkv_fingerprint *print, const void *bytes, size_t n);
/* The number as 8 bytes, the least first, whatever the machine's order. */
void qkv_fingerprint_add_number(qkv_fingerprint *print, uint64_t number);
/* Ends it, also with out NULL. */
void qkv_fingerprint_end(qkv_fingerprint *print, char out[QKV_FINGERPRINT_SIZE]);

#endif
