#include "model/model_hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

struct qkv_model_hash_cache {
    pthread_mutex_t lock;
    char text[33]; /* "": not known yet */
    int n_computed;
};

qkv_model_hash_cache *qkv_model_hash_cache_new(void) {
    qkv_model_hash_cache *cache = qkv_calloc(1, sizeof *cache);
    if (cache && pthread_mutex_init(&cache->lock, NULL) != 0) {
        free(cache);
        return NULL;
    }
    return cache;
}

void qkv_model_hash_cache_free(qkv_model_hash_cache *cache) {
    if (!cache) return;
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static int compute(char out[33], const qkv_gguf *file, qkv_error *err) {
    XXH3_state_t *state = XXH3_createState();
    if (!state) return qkv_fail_memory(err);
    XXH3_128bits_reset(state);
    for (size_t i = 0; i < file->n_parts; i++)
        XXH3_128bits_update(state, file->parts[i].map.data, file->parts[i].map.size);
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state));
    XXH3_freeState(state);
    for (size_t i = 0; i < sizeof bytes.digest; i++) {
        out[2 * i] = "0123456789abcdef"[bytes.digest[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[bytes.digest[i] & 15];
    }
    out[32] = '\0';
    return QKV_OK;
}

int qkv_model_hash_get(qkv_model_hash_cache *cache, const qkv_gguf *file, char out[33],
                       qkv_error *err) {
    int status = QKV_OK;
    pthread_mutex_lock(&cache->lock);
    if (!cache->text[0]) {
        status = compute(cache->text, file, err);
        cache->n_computed++;
    }
    if (status == QKV_OK) memcpy(out, cache->text, sizeof cache->text);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

int qkv_model_hash_n_computed(qkv_model_hash_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    const int n = cache->n_computed;
    pthread_mutex_unlock(&cache->lock);
    return n;
}
