/*
 * Which files of a repository are fetched: settings, tokenizer and weights for a directory that
 * transformers opens too, or one GGUF file with all its parts. Never anything pickled.
 */
#ifndef QKV_HUB_PULL_CHOICE_H
#define QKV_HUB_PULL_CHOICE_H

#include "hub/pull_cache.h"

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
