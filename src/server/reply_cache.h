/*
 * Answers that are kept: a page that is loaded again, or goes back to an edit, asks for the same once
 * more, and the same request has the same answer.
 *
 * Bounded in bytes; what was used longest ago goes first. It belongs to one thread.
 */
#ifndef QKV_SERVER_REPLY_CACHE_H
#define QKV_SERVER_REPLY_CACHE_H

#include "server/reply.h"

typedef struct qkv_reply_cache qkv_reply_cache;

/* NULL when memory is short. */
qkv_reply_cache *qkv_reply_cache_new(size_t most_bytes);
void qkv_reply_cache_free(qkv_reply_cache *cache);
void qkv_reply_cache_clear(qkv_reply_cache *cache);
/* Fills an empty reply with a copy of the one that was kept, and returns 1; 0 where there is none. */
int qkv_reply_cache_get(qkv_reply_cache *cache, const char *key, qkv_reply *out);
/* Keeps a copy, where there is room for it. */
void qkv_reply_cache_put(qkv_reply_cache *cache, const char *key, const qkv_reply *reply);

#endif
