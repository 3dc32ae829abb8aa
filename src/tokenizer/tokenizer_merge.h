/*
 * Merging neighbours, best pair first, until no pair is left: the core of both byte-level BPE (best
 * = lowest rank) and SentencePiece (best = highest score).
 *
 * The symbols are a linked list, the candidates a heap, so that n symbols take O(n log n) whatever
 * the text. A candidate whose symbols have changed since is recognised by its length and dropped.
 */
#ifndef QKV_TOKENIZER_TOKENIZER_MERGE_H
#define QKV_TOKENIZER_TOKENIZER_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct qkv_symbol {
    uint32_t start;  /* where it is in the text */
    uint32_t length; /* 0: merged into the one before */
    int32_t id;      /* its token, or QKV_NO_TOKEN */
    int32_t prev, next;
} qkv_symbol;

/* 1 when the two neighbours make a token: its id, and its place in the order (lowest merges first;
 * of equal ones the leftmost). */
typedef int qkv_merge_find(const void *context, const qkv_symbol *left, const qkv_symbol *right,
                           double *order, int32_t *id);

typedef struct qkv_merger {
    qkv_symbol *symbols;
    size_t n_symbols, symbol_capacity;
    struct qkv_merge_candidate *heap;
    size_t n_heap, heap_capacity;
} qkv_merger;

/* A merger starts as {0} and may be used for one text after another. */
void qkv_merger_clear(qkv_merger *merger);
void qkv_merger_release(qkv_merger *merger);
int qkv_merger_add(qkv_merger *merger, uint32_t start, uint32_t length, int32_t id, qkv_error *err);
/* What remains are the symbols from index 0 along `next`. */
int qkv_merger_run(qkv_merger *merger, qkv_merge_find *find, const void *context, qkv_error *err);

#endif
