/*
 * Writing into Hugging Face's cache, in its layout (hub/places.h):
 *
 *     blobs/DIGEST.incomplete     what was fetched so far
 *     blobs/DIGEST                all of it, and checked
 *     snapshots/COMMIT/FILE       a relative link to that
 *     refs/REVISION               the commit, when all files of the model are there
 *     CACHE/.locks/models--org--name/DIGEST.lock     who fetches it
 */
#ifndef QKV_HUB_PULL_CACHE_H
#define QKV_HUB_PULL_CACHE_H

#include "hub/listing.h"

typedef struct qkv_pull_cache {
    qkv_text folder, locks;
    const qkv_listing *listing; /* borrowed */
} qkv_pull_cache;

/* Close it also after a failure. Creates nothing. */
int qkv_pull_cache_open(qkv_pull_cache *cache, const char *repository, const qkv_listing *listing,
                        qkv_error *err);
void qkv_pull_cache_close(qkv_pull_cache *cache);

/* How many bytes of a file are there: all, or those of an earlier attempt. */
uint64_t qkv_pull_cache_present(const qkv_pull_cache *cache, const qkv_listed_file *file);
/* 1 when it is there whole; `path` (may be NULL) gets where. */
int qkv_pull_cache_has(const qkv_pull_cache *cache, const qkv_listed_file *file, qkv_text *path);

/* blobs/DIGEST and what follows. */
void qkv_pull_cache_append_blob(const qkv_pull_cache *cache, qkv_text *path,
                                const qkv_listed_file *file, const char *suffix);
/* snapshots/COMMIT/FILE; file NULL: the folder. */
void qkv_pull_cache_append_snapshot(const qkv_pull_cache *cache, qkv_text *path, const char *file);

/* Fails where `needed` bytes do not fit. */
int qkv_pull_cache_check_space(const qkv_pull_cache *cache, uint64_t needed, qkv_error *err);

/* The folders that fetching needs. */
int qkv_pull_cache_prepare(const qkv_pull_cache *cache, qkv_error *err);
/* The link of a file that is there. */
int qkv_pull_cache_link(const qkv_pull_cache *cache, const qkv_listed_file *file, qkv_error *err);
/* Last of all: the revision leads to the commit. A commit needs no such thing. */
int qkv_pull_cache_refer(const qkv_pull_cache *cache, const char *revision, qkv_error *err);

/*
 * Fetching the bytes of one file into the cache: blobs/DIGEST.incomplete grows, is resumed after
 * whatever stopped it, and becomes blobs/DIGEST when it has the size and the digest that the hub's list
 * promised.
 */

/* Does nothing when another process has fetched it meanwhile, which is waited for. */
int qkv_pull_blob(const qkv_pull_cache *cache, qkv_hub *hub, qkv_listed_file *file, qkv_error *err);

/*
 * Which files of a repository are fetched: settings, tokenizer and weights for a directory that
 * transformers opens too, or one GGUF file with all its parts. Never anything pickled.
 */

typedef struct qkv_pull_choice {
    qkv_listed_file **files; /* of the listing, in the order of fetching */
    size_t n, capacity;
    const char *gguf; /* the path of the file to open; NULL: the directory */
} qkv_pull_choice;

/* Release it also after a failure. */
int qkv_pull_choose(qkv_pull_choice *choice, qkv_listing *listing, qkv_hub *hub,
                    const qkv_pull_cache *cache, qkv_error *err);
void qkv_pull_choice_release(qkv_pull_choice *choice);

#endif
