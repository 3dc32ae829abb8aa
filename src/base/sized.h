/*
 * Structs that may grow.
 *
 * Every struct of the public headers that callers allocate starts with `size_t size`, which its
 * initialiser NAME_INIT sets. A program that was compiled against an older header hands over a
 * shorter struct, one that was compiled against a newer header a longer one: both work with this
 * library as long as no field is set that it does not know.
 */
#ifndef QKV_BASE_SIZED_H
#define QKV_BASE_SIZED_H

#include <stddef.h>

#include "base/fail.h"

/* Reads a caller's struct into `to`, of `size` bytes, which holds the defaults. `from` may be NULL:
 * the defaults stay. `name` is for messages. */
int qkv_sized_read(void *to, size_t size, const void *from, const char *name, qkv_error *err);

/* The same for one of a caller's array, whose first struct says how far apart they are. */
int qkv_sized_read_item(void *to, size_t size, const void *items, size_t index, const char *name,
                        qkv_error *err);

/* All n of a caller's array, as an array of ours that is freed with free; what the caller's structs
 * lack is 0. *out is NULL on failure. */
int qkv_sized_read_items(void **out, size_t size, const void *items, size_t n, const char *name,
                         qkv_error *err);

/* Fills a caller's struct from one of ours, as far as the caller's reaches. A size that no
 * initialiser set is an error. */
int qkv_sized_write(void *to, const void *from, size_t size, const char *name, qkv_error *err);

#endif
