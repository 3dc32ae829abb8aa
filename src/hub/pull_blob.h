/*
 * Fetching the bytes of one file into the cache: blobs/DIGEST.incomplete grows, is resumed after
 * whatever stopped it, and becomes blobs/DIGEST when it has the size and the digest that the hub's list
 * promised.
 */
#ifndef QKV_HUB_PULL_BLOB_H
#define QKV_HUB_PULL_BLOB_H

#include "hub/pull_cache.h"

/* Does nothing when another process has fetched it meanwhile, which is waited for. */
int qkv_pull_blob(const qkv_pull_cache *cache, qkv_hub *hub, qkv_listed_file *file, qkv_error *err);

#endif
