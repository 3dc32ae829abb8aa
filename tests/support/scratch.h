/*
 * Temporary files: one directory per test program, removed with all it holds by scratch_remove.
 */
#ifndef QKV_TESTS_SCRATCH_H
#define QKV_TESTS_SCRATCH_H

#include <stddef.h>

/* The path of a file of that name in the directory. It stays valid for the next 15 calls. */
const char *scratch_path(const char *name);

/* Writes a file there and returns its path. */
const char *scratch_write(const char *name, const void *data, size_t size);

void scratch_remove(void);

/* The same as a group teardown of cmocka. */
int scratch_clean(void **state);

#endif
