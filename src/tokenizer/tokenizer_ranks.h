/*
 * The merge list of BPE: which two tokens make a third, and in what order.
 */
#ifndef QKV_TOKENIZER_TOKENIZER_RANKS_H
#define QKV_TOKENIZER_TOKENIZER_RANKS_H

#include "tokenizer/vocab_internal.h"

typedef struct qkv_merge_ranks {
    struct qkv_ranked_merge *slots; /* open addressing */
    size_t n_slots;                 /* a power of two */
} qkv_merge_ranks;

/* Reads tokenizer.ggml.merges. Every merge must name tokens, so that symbols are token ids
 * throughout and never strings; of equal ones the first counts. */
int qkv_merge_ranks_load(qkv_merge_ranks *ranks, const qkv_string_map *ids, const qkv_gguf *file,
                         qkv_error *err);
void qkv_merge_ranks_release(qkv_merge_ranks *ranks);
/* A qkv_merge_find over the symbols' ids; `context` is the qkv_merge_ranks. */
qkv_merge_find qkv_merge_ranks_find;

#endif
