#include "base/split_name.h"

#include <stdio.h>
#include <string.h>

#define TAIL (sizeof "-00001-of-00003.gguf" - 1)

/* Five digits, or -1. */
static int five_digits(const char *text) {
    int value = 0;
    for (int i = 0; i < 5; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

int qkv_split_name_read(qkv_split_name *split, const char *path) {
    *split = (qkv_split_name){0};
    const size_t length = strlen(path);
    if (length <= TAIL) return 0;
    const char *text = path + length - TAIL;
    if (text[0] != '-' || memcmp(text + 6, "-of-", 4) != 0 || strcmp(text + 15, ".gguf") != 0)
        return 0;
    const int index = five_digits(text + 1), count = five_digits(text + 10);
    if (index < 1 || index > count) return 0;
    *split = (qkv_split_name){length - TAIL, index, count};
    return 1;
}

void qkv_split_name_write(char *path, const qkv_split_name *split, int index) {
    snprintf(path + split->prefix, TAIL + 1, "-%05d-of-%05d.gguf", index, split->count);
}
