/*
 * The first key that a query sees, of a mask that is one number: 0, everything before the query; W > 0, a window
 * of W keys, the query's own included; -C, chunks of C keys, of which the query sees its own.
 */
#ifndef QKV_BASE_FIRST_KEY_H
#define QKV_BASE_FIRST_KEY_H

#include <stdint.h>

static inline int64_t qkv_first_key(int64_t window, int64_t query) {
    if (window < 0) return query - query % -window;
    return window > 0 && query >= window ? query - window + 1 : 0;
}

#endif
