/*
 * Tokens sorted by their bytes: those that a text starts with are found by narrowing a range byte
 * after byte; a table by first byte lets ordinary text pass at the cost of one look.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/vocab_internal.h"

typedef struct entry {
    const qkv_vocab_token *token;
    int32_t id;
    size_t order; /* as given */
} entry;

static int compare_texts(const qkv_vocab_token *a, const qkv_vocab_token *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, shorter);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_entries(const void *left, const void *right) {
    const entry *a = left, *b = right;
    int order = compare_texts(a->token, b->token);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

int qkv_token_index_init(qkv_token_index *index, const qkv_vocab_token *tokens, const int32_t *ids,
                         size_t count, qkv_error *err) {
    *index = (qkv_token_index){0};
    entry *sorted = qkv_calloc(count, sizeof *sorted);
    index->ids = qkv_calloc(count, sizeof *index->ids);
    if (!sorted || !index->ids) {
        free(sorted);
        return qkv_fail_memory(err);
    }
    for (size_t i = 0; i < count; i++) sorted[i] = (entry){&tokens[ids[i]], ids[i], i};
    qsort(sorted, count, sizeof *sorted, compare_entries);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && compare_texts(sorted[i - 1].token, sorted[i].token) == 0) continue;
        index->ids[index->count++] = sorted[i].id;
        index->ranges[(unsigned char)sorted[i].token->text[0] + 1]++;
    }
    for (size_t i = 0; i < 256; i++) index->ranges[i + 1] += index->ranges[i];
    free(sorted);
    return QKV_OK;
}

void qkv_token_index_release(qkv_token_index *index) {
    free(index->ids);
    *index = (qkv_token_index){0};
}

qkv_token_cursor qkv_token_index_start(const qkv_token_index *index, char first) {
    unsigned char byte = (unsigned char)first;
    return (qkv_token_cursor){index->ranges[byte], index->ranges[byte + 1], 1};
}

/* First index in [low, high) whose byte at `depth` is at least `byte`. Texts that end there come
 * first. */
static size_t lower_bound(const qkv_token_index *index, const qkv_vocab_token *tokens, size_t low,
                          size_t high, size_t depth, int byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const qkv_vocab_token *token = &tokens[index->ids[middle]];
        int at = depth < token->length ? (unsigned char)token->text[depth] : -1;
        if (at < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int qkv_token_index_step(const qkv_token_index *index, const qkv_vocab_token *tokens,
                         qkv_token_cursor *cursor, char byte) {
    int wanted = (unsigned char)byte;
    size_t low = lower_bound(index, tokens, cursor->low, cursor->high, cursor->depth, wanted);
    cursor->high = lower_bound(index, tokens, low, cursor->high, cursor->depth, wanted + 1);
    cursor->low = low;
    cursor->depth++;
    return cursor->low < cursor->high;
}

int32_t qkv_token_index_get(const qkv_token_index *index, const qkv_vocab_token *tokens,
                            const qkv_token_cursor *cursor) {
    if (cursor->low >= cursor->high) return QKV_NO_TOKEN;
    int32_t id = index->ids[cursor->low];
    return tokens[id].length == cursor->depth ? id : QKV_NO_TOKEN;
}
