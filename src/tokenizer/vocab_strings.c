/* Strings to numbers, for token texts: open addressing over XXH3 with a secret seed, never more than half full. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"
#include "tokenizer/vocab_internal.h"

typedef struct qkv_string_slot {
    const char *text; /* NULL: free */
    uint32_t length;
    int32_t value;
    uint64_t hash;
} qkv_string_slot;

int qkv_string_map_init(qkv_string_map *map, size_t capacity) {
    *map = (qkv_string_map){.n_slots = 16};
    while (map->n_slots / 2 < capacity) {
        if (map->n_slots > SIZE_MAX / 2) return 0;
        map->n_slots *= 2;
    }
    map->slots = qkv_calloc(map->n_slots, sizeof *map->slots);
    return map->slots != NULL;
}

void qkv_string_map_release(qkv_string_map *map) {
    free(map->slots);
    *map = (qkv_string_map){0};
}

/* The slot that holds the string, or the free one where it belongs. */
static qkv_string_slot *probe(const qkv_string_map *map, const char *text, size_t length,
                              uint64_t hash) {
    size_t mask = map->n_slots - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        qkv_string_slot *slot = &map->slots[i];
        if (!slot->text) return slot;
        if (slot->hash == hash && slot->length == length && memcmp(slot->text, text, length) == 0)
            return slot;
    }
}

int32_t qkv_string_map_add(qkv_string_map *map, const char *text, size_t length, int32_t value) {
    uint64_t hash = XXH3_64bits_withSeed(text, length, qkv_random_seed());
    qkv_string_slot *slot = probe(map, text, length, hash);
    if (!slot->text) {
        *slot = (qkv_string_slot){text, (uint32_t)length, value, hash};
        map->count++;
    }
    return slot->value;
}

int32_t qkv_string_map_find(const qkv_string_map *map, const char *text, size_t length) {
    const qkv_string_slot *slot =
        probe(map, text, length, XXH3_64bits_withSeed(text, length, qkv_random_seed()));
    return slot->text ? slot->value : QKV_NO_TOKEN;
}
