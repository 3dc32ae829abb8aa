/* Walks the double array of a compiled character map. */
#include "tokenizer/charsmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The longest match and the longest replacement in bytes: far more than any real map has, and what
 * keeps the time and the memory that a text takes within bounds. */
enum { UNIT = 4, MAX_MATCH = 256, MAX_TEXT = 1024 };

static uint32_t read_unit(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static int texts_are_short(const char *texts, size_t size) {
    for (size_t i = 0; i < size;) {
        size_t length = strlen(texts + i);
        if (length > MAX_TEXT) return 0;
        i += length + 1;
    }
    return 1;
}

int qkv_charsmap_init(qkv_charsmap *map, const void *data, size_t size, const char *path,
                      qkv_error *err) {
    const unsigned char *bytes = data;
    *map = (qkv_charsmap){0};
    size_t trie = size >= UNIT ? read_unit(bytes) : 0;
    if (size < UNIT || trie == 0 || trie % UNIT != 0 || trie >= size - UNIT ||
        bytes[size - 1] != '\0' ||
        !texts_are_short((const char *)bytes + UNIT + trie, size - UNIT - trie))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the precompiled character map is damaged", path);
    map->trie = malloc(size - UNIT);
    if (!map->trie) return qkv_fail_memory(err);
    memcpy(map->trie, bytes + UNIT, size - UNIT);
    map->n_units = trie / UNIT;
    map->texts = (const char *)map->trie + trie;
    map->texts_size = size - UNIT - trie;
    return QKV_OK;
}

void qkv_charsmap_release(qkv_charsmap *map) {
    free(map->trie);
    *map = (qkv_charsmap){0};
}

/* An index beyond the array reads as a unit that matches nothing. */
static uint32_t unit_at(const qkv_charsmap *map, uint32_t index) {
    return index < map->n_units ? read_unit(map->trie + (size_t)index * UNIT) : UINT32_MAX;
}

static uint32_t offset_of(uint32_t unit) {
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* How many bytes the longest match takes, 0 for none, and its replacement. */
static size_t longest_match(const qkv_charsmap *map, const char *text, size_t length,
                            const char **replacement) {
    size_t best = 0;
    uint32_t at = offset_of(unit_at(map, 0));
    for (size_t i = 0; i < length && i < MAX_MATCH && text[i]; i++) {
        unsigned char byte = (unsigned char)text[i];
        at ^= byte;
        uint32_t unit = unit_at(map, at);
        if ((unit & (1u << 31 | 0xff)) != byte) break;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        uint32_t value = unit_at(map, at) & ~(1u << 31);
        if (value >= map->texts_size) break; /* the last text ends with the array */
        *replacement = map->texts + value;
        best = i + 1;
    }
    return best;
}

void qkv_charsmap_apply(const qkv_charsmap *map, qkv_text *out, const char *text, size_t length) {
    for (size_t i = 0; i < length;) {
        const char *replacement = NULL;
        size_t used = longest_match(map, text + i, length - i, &replacement);
        if (used > 0) {
            qkv_text_puts(out, replacement);
        } else {
            uint32_t code;
            used = qkv_utf8_decode(text + i, length - i, &code);
            if (used == 1 && (unsigned char)text[i] >= 0x80)
                qkv_text_puts(out, "\xef\xbf\xbd");
            else
                qkv_text_append(out, text + i, used);
        }
        i += used;
    }
}
