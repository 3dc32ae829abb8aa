/* A linked list of symbols and a heap of the pairs that may merge. */
#include "tokenizer/tokenizer_merge.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct qkv_merge_candidate {
    double order;
    int32_t left, right;
    uint32_t length; /* of both together when they met */
    int32_t id;
} qkv_merge_candidate;

void qkv_merger_clear(qkv_merger *merger) {
    merger->n_symbols = 0;
    merger->n_heap = 0;
}

void qkv_merger_release(qkv_merger *merger) {
    free(merger->symbols);
    free(merger->heap);
    *merger = (qkv_merger){0};
}

int qkv_merger_add(qkv_merger *merger, uint32_t start, uint32_t length, int32_t id,
                   qkv_error *err) {
    int32_t index = (int32_t)merger->n_symbols;
    const qkv_symbol symbol = {start, length, id, index - 1, -1};
    if (!QKV_PUSH(merger->symbols, merger->symbol_capacity, merger->n_symbols, symbol))
        return qkv_fail_memory(err);
    if (index > 0) merger->symbols[index - 1].next = index;
    return QKV_OK;
}

static int comes_before(const qkv_merge_candidate *a, const qkv_merge_candidate *b) {
    return a->order < b->order || (a->order == b->order && a->left < b->left);
}

static int push(qkv_merger *merger, qkv_merge_candidate item) {
    if (!QKV_PUSH(merger->heap, merger->heap_capacity, merger->n_heap, item)) return 0;
    qkv_merge_candidate *heap = merger->heap;
    size_t i = merger->n_heap - 1;
    for (; i > 0 && comes_before(&item, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = item;
    return 1;
}

static qkv_merge_candidate pop(qkv_merger *merger) {
    qkv_merge_candidate *heap = merger->heap;
    const qkv_merge_candidate top = heap[0];
    size_t n = --merger->n_heap, i = 0;
    const qkv_merge_candidate last = heap[n];
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && comes_before(&heap[child + 1], &heap[child])) child++;
        if (!comes_before(&heap[child], &last)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

static int consider(qkv_merger *merger, int32_t left, int32_t right, qkv_merge_find *find,
                    const void *context, qkv_error *err) {
    if (left < 0 || right < 0) return QKV_OK;
    const qkv_symbol *a = &merger->symbols[left], *b = &merger->symbols[right];
    qkv_merge_candidate item = {0, left, right, a->length + b->length, -1};
    if (!find(context, a, b, &item.order, &item.id)) return QKV_OK;
    return push(merger, item) ? QKV_OK : qkv_fail_memory(err);
}

/* Right becomes part of left and leaves the list. */
static void join(qkv_merger *merger, const qkv_merge_candidate *pair) {
    qkv_symbol *left = &merger->symbols[pair->left], *right = &merger->symbols[pair->right];
    left->length += right->length;
    left->id = pair->id;
    left->next = right->next;
    right->length = 0;
    if (right->next >= 0) merger->symbols[right->next].prev = pair->left;
}

int qkv_merger_run(qkv_merger *merger, qkv_merge_find *find, const void *context, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 1; i < merger->n_symbols && status == QKV_OK; i++)
        status = consider(merger, (int32_t)i - 1, (int32_t)i, find, context, err);
    while (merger->n_heap > 0 && status == QKV_OK) {
        const qkv_merge_candidate pair = pop(merger);
        const qkv_symbol *left = &merger->symbols[pair.left];
        const qkv_symbol *right = &merger->symbols[pair.right];
        if (left->length == 0 || right->length == 0 || left->length + right->length != pair.length)
            continue;
        join(merger, &pair);
        status = consider(merger, left->prev, pair.left, find, context, err);
        if (status == QKV_OK) status = consider(merger, pair.left, left->next, find, context, err);
    }
    return status;
}
