#include "server/reply_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct kept_reply kept_reply;

struct kept_reply {
    char *key;
    qkv_reply reply;
    kept_reply *next;
};

struct qkv_reply_cache {
    kept_reply *first; /* the one used last */
    size_t n_bytes, most_bytes;
};

/* Keys are counted, too: they hold whole prompts. */
static size_t size_of(const char *key, const qkv_reply *reply) {
    return strlen(key) + reply->n_bytes;
}

static void kept_reply_free(kept_reply *kept) {
    if (!kept) return;
    free(kept->key);
    qkv_reply_release(&kept->reply);
    free(kept);
}

qkv_reply_cache *qkv_reply_cache_new(size_t most_bytes) {
    qkv_reply_cache *cache = qkv_calloc(1, sizeof *cache);
    if (cache) cache->most_bytes = most_bytes;
    return cache;
}

void qkv_reply_cache_clear(qkv_reply_cache *cache) {
    while (cache->first) {
        kept_reply *kept = cache->first;
        cache->first = kept->next;
        kept_reply_free(kept);
    }
    cache->n_bytes = 0;
}

void qkv_reply_cache_free(qkv_reply_cache *cache) {
    if (!cache) return;
    qkv_reply_cache_clear(cache);
    free(cache);
}

static int copy_reply(qkv_reply *to, const qkv_reply *from) {
    char *bytes = qkv_calloc(from->n_bytes, 1);
    if (!bytes) return 0;
    memcpy(bytes, from->bytes, from->n_bytes);
    *to = *from;
    to->bytes = bytes;
    return 1;
}

static kept_reply *take_out(qkv_reply_cache *cache, const char *key) {
    for (kept_reply **at = &cache->first; *at; at = &(*at)->next) {
        kept_reply *kept = *at;
        if (strcmp(kept->key, key) != 0) continue;
        *at = kept->next;
        return kept;
    }
    return NULL;
}

static void put_in_front(qkv_reply_cache *cache, kept_reply *kept) {
    kept->next = cache->first;
    cache->first = kept;
}

int qkv_reply_cache_get(qkv_reply_cache *cache, const char *key, qkv_reply *out) {
    kept_reply *kept = take_out(cache, key);
    if (!kept) return 0;
    put_in_front(cache, kept);
    return copy_reply(out, &kept->reply);
}

static void drop_last(qkv_reply_cache *cache) {
    kept_reply **last = &cache->first;
    while (*last && (*last)->next) last = &(*last)->next;
    kept_reply *kept = *last;
    *last = NULL;
    if (kept) cache->n_bytes -= size_of(kept->key, &kept->reply);
    kept_reply_free(kept);
}

void qkv_reply_cache_put(qkv_reply_cache *cache, const char *key, const qkv_reply *reply) {
    const size_t size = size_of(key, reply);
    kept_reply *old = take_out(cache, key);
    if (old) cache->n_bytes -= size_of(old->key, &old->reply);
    kept_reply_free(old);
    if (size > cache->most_bytes) return;
    kept_reply *kept = qkv_calloc(1, sizeof *kept);
    if (kept) kept->key = qkv_strdup(key);
    if (!kept || !kept->key || !copy_reply(&kept->reply, reply)) {
        kept_reply_free(kept);
        return;
    }
    while (cache->first && cache->n_bytes > cache->most_bytes - size) drop_last(cache);
    cache->n_bytes += size;
    put_in_front(cache, kept);
}
