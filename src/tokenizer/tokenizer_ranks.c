/* The merge list: pairs of ids to rank and result, in a table with open addressing. */
#include "tokenizer/tokenizer_ranks.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"

#define MERGES_KEY "tokenizer.ggml.merges"

typedef struct qkv_ranked_merge {
    int32_t left, right; /* left QKV_NO_TOKEN: free */
    int32_t rank, id;
} qkv_ranked_merge;

static qkv_ranked_merge *probe(const qkv_merge_ranks *ranks, int32_t left, int32_t right) {
    const int32_t key[2] = {left, right};
    const uint64_t hash = XXH3_64bits_withSeed(key, sizeof key, qkv_random_seed());
    const size_t mask = ranks->n_slots - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        qkv_ranked_merge *slot = &ranks->slots[i];
        if (slot->left == QKV_NO_TOKEN || (slot->left == left && slot->right == right)) return slot;
    }
}

/* "LEFT RIGHT"; a part may start with a space but not be one. */
static int add_merge(qkv_merge_ranks *ranks, const qkv_string_map *ids, const qkv_gguf *file,
                     const char *text, size_t rank, qkv_text *joined, qkv_error *err) {
    const char *blank = text[0] ? strchr(text + 1, ' ') : NULL;
    if (!blank || !blank[1])
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: merge %zu, '%.80s', is not two tokens",
                        file->path, rank, text);
    size_t left_length = (size_t)(blank - text), right_length = strlen(blank + 1);
    joined->length = 0;
    qkv_text_append(joined, text, left_length);
    qkv_text_append(joined, blank + 1, right_length);
    if (joined->failed) return qkv_fail_memory(err);
    int32_t left = qkv_string_map_find(ids, text, left_length);
    int32_t right = qkv_string_map_find(ids, blank + 1, right_length);
    int32_t id = qkv_string_map_find(ids, joined->data, joined->length);
    if (left == QKV_NO_TOKEN || right == QKV_NO_TOKEN || id == QKV_NO_TOKEN)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: merge %zu, '%.80s': both parts and what they make must be tokens",
                        file->path, rank, text);
    qkv_ranked_merge *slot = probe(ranks, left, right);
    if (slot->left == QKV_NO_TOKEN) *slot = (qkv_ranked_merge){left, right, (int32_t)rank, id};
    return QKV_OK;
}

int qkv_merge_ranks_load(qkv_merge_ranks *ranks, const qkv_string_map *ids, const qkv_gguf *file,
                         qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    int64_t key;
    size_t count;
    qkv_text joined = {0};
    int status = qkv_vocab_string_array(file, MERGES_KEY, &key, &count, err);
    if (status != QKV_OK) return status;
    for (ranks->n_slots = 16; ranks->n_slots / 2 < count;) ranks->n_slots *= 2;
    ranks->slots = qkv_calloc(ranks->n_slots, sizeof *ranks->slots);
    if (!ranks->slots) return qkv_fail_memory(err);
    for (size_t i = 0; i < ranks->n_slots; i++) ranks->slots[i].left = QKV_NO_TOKEN;
    for (size_t i = 0; i < count && status == QKV_OK; i++)
        status = add_merge(ranks, ids, file, gguf_get_arr_str(header, key, i), i, &joined, err);
    qkv_text_release(&joined);
    return status;
}

void qkv_merge_ranks_release(qkv_merge_ranks *ranks) {
    free(ranks->slots);
    *ranks = (qkv_merge_ranks){0};
}

int qkv_merge_ranks_find(const void *context, const qkv_symbol *left, const qkv_symbol *right,
                         double *order, int32_t *id) {
    if (left->id == QKV_NO_TOKEN || right->id == QKV_NO_TOKEN) return 0;
    const qkv_ranked_merge *slot = probe(context, left->id, right->id);
    if (slot->left == QKV_NO_TOKEN) return 0;
    *order = slot->rank;
    *id = slot->id;
    return 1;
}
