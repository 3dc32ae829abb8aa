/*
 * A cache as Hugging Face's tools leave it, in a scratch directory: "hub", and "own" for models with
 * short names. Repositories are "models--org--name".
 */
#ifndef QKV_TESTS_FAKE_CACHE_H
#define QKV_TESTS_FAKE_CACHE_H

#include "qkv/error.h"

/* Of a group of tests, and before each test. */
int cache_enter(void **state);
int cache_leave(void **state);
int cache_empty(void **state);

/* One file of a commit, as a link to its bytes; NULL: which are not there. */
void cache_add_file(const char *folder, const char *commit, const char *file, const char *text);
void cache_add_ref(const char *folder, const char *name, const char *commit);
/* A directory that transformers would open, as far as names tell. */
void cache_add_directory(const char *folder, const char *commit);

/* The path that a name leads to, freed with free; NULL with the error. */
char *cache_find_path(const char *name, qkv_error *err);
void cache_expect_found(const char *name, const char *wanted);
/* Each of the words, which a NULL ends, is in the message, and that is one line. */
void cache_expect_refused(const char *name, const char *const *words);
#define REFUSED(name, ...) cache_expect_refused(name, (const char *const[]){__VA_ARGS__, NULL})

#define ONE "1111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222"
#define TWIN "1111111222222222222222222222222222222222" /* begins as ONE does */

#endif
