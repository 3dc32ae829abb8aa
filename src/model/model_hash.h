/*
 * The hash of a model's files, computed when it is first asked for: that reads all of them. Threads may
 * ask at the same time.
 */
#ifndef QKV_MODEL_MODEL_HASH_H
#define QKV_MODEL_MODEL_HASH_H

#include "base/fail.h"
#include "format/gguf_file.h"

typedef struct qkv_model_hash_cache qkv_model_hash_cache;

/* NULL when memory is short. */
qkv_model_hash_cache *qkv_model_hash_cache_new(void);
void qkv_model_hash_cache_free(qkv_model_hash_cache *cache);

/* XXH3-128 of all parts, as 32 hexadecimal digits. */
int qkv_model_hash_get(qkv_model_hash_cache *cache, const qkv_gguf *file, char out[33],
                       qkv_error *err);
/* How often it was computed. */
int qkv_model_hash_n_computed(qkv_model_hash_cache *cache);

#endif
