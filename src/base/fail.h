/*
 * How errors are made. qkv_fail fills the caller's qkv_error and returns the status, so that a
 * failing function ends with
 *
 *     return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %s has %d dimensions, not 2", path, name,
 * n);
 *
 * It is the one place where errors come into being: set a breakpoint there.
 */
#ifndef QKV_BASE_FAIL_H
#define QKV_BASE_FAIL_H

#include "qkv/error.h"

#if defined(__GNUC__)
#define QKV_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define QKV_PRINTF(text, first)
#endif

int qkv_fail(qkv_error *err, int status, const char *format, ...) QKV_PRINTF(3, 4);

/* The message for failed allocations. */
int qkv_fail_memory(qkv_error *err);

#endif
