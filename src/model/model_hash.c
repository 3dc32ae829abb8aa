#include "model/model.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
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
    qkv_fingerprint print;
    const int status = qkv_fingerprint_start(&print, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < file->n_parts; i++)
        qkv_fingerprint_add(&print, file->parts[i].map.data, file->parts[i].map.size);
    qkv_fingerprint_end(&print, out);
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
