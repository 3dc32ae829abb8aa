/*
 * Allocation with overflow checks, and arrays that grow.
 *
 * Everything returns NULL (or 0) when memory is short; callers turn that into QKV_ERR_MEMORY.
 */
#ifndef QKV_BASE_MEMORY_H
#define QKV_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed memory for n elements; n = 0 gives a valid pointer too. */
void *qkv_calloc(size_t n, size_t size);

/* Could this much be allocated now? To be asked before calling a library that ends the process when
 * it cannot: 1 or 0. */
int qkv_memory_allows(size_t size);

/* NULL for NULL. */
char *qkv_strdup(const char *text);
char *qkv_strndup(const char *text, size_t length);

/* Makes room for one more element in an array: *items may move. Returns 0 when memory is short. */
int qkv_grow(void **items, size_t *capacity, size_t count, size_t size);

/* QKV_PUSH(&items, &capacity, &count, value): 1, or 0 when memory is short. */
#define QKV_PUSH(items, capacity, count, value)                                                    \
    (qkv_grow((void **)&(items), &(capacity), (count), sizeof *(items))                            \
         ? ((items)[(count)++] = (value), 1)                                                       \
         : 0)

#endif
