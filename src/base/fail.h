/*
 * How errors are made. qkv_fail fills the caller's qkv_error and is the status, so that a failing
 * function ends with
 *
 *     return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %s is not a matrix", path, name);
 *
 * qkv_fail_with is the one place where errors come into being: set a breakpoint there.
 */
#ifndef QKV_BASE_FAIL_H
#define QKV_BASE_FAIL_H

#include "qkv/error.h"

#if defined(__GNUC__)
#define QKV_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define QKV_PRINTF(text, first)
#endif

void qkv_fail_with(qkv_error *err, int status, const char *format, ...) QKV_PRINTF(3, 4);

static inline int qkv_status(int status) {
    return status;
}

/* A macro, so that compilers and analysers see in the caller which status it is. */
#define qkv_fail(err, status, ...) qkv_status((qkv_fail_with(err, status, __VA_ARGS__), status))

/* For public functions, whose arguments are anybody's: ends the function when a pointer is NULL. */
#define QKV_NEED(err, pointer)                                                                     \
    do {                                                                                           \
        if (!(pointer))                                                                            \
            return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: no %s was given", __func__, #pointer);     \
    } while (0)

/* For failed allocations. */
#define qkv_fail_memory(err) qkv_fail(err, QKV_ERR_MEMORY, "out of memory")

#endif
