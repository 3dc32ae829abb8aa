#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "qkv/bytes.h"

void *qkv_calloc(size_t n, size_t size) {
    if (n == 0) n = 1;
    return calloc(n, size);
}

int qkv_memory_allows(size_t size) {
    const size_t more = (size_t)64 << 10;       /* for alignment, and small things beside it */
    void *volatile probe = malloc(size + more); /* volatile: or the compiler leaves it out */
    int allowed = probe != NULL;
    free(probe);
    return allowed;
}

char *qkv_strdup(const char *text) {
    return text ? qkv_strndup(text, strlen(text)) : NULL;
}

char *qkv_strndup(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void qkv_bytes_free(char *bytes) {
    free(bytes);
}

int qkv_grow(void **items, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity) return 1;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    if (wanted > SIZE_MAX / size) return 0;
    void *moved = realloc(*items, wanted * size);
    if (!moved) return 0;
    *items = moved;
    *capacity = wanted;
    return 1;
}
