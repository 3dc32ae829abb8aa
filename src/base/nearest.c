#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static char folded(char c) {
    return c == '-' ? '_' : qkv_lower(c);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Changes from one word to the other: the rows of the usual table, of which three are kept. */
static size_t count_changes(const char *a, size_t n, const char *b, size_t m) {
    size_t rows[3][QKV_NEAREST_SIZE + 1];
    for (size_t k = 0; k <= m; k++) rows[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            const char x = folded(a[i - 1]), y = folded(b[k - 1]);
            row[k] = least(least(above[k], row[k - 1]) + 1, above[k - 1] + (x != y));
            if (i > 1 && k > 1 && x == folded(b[k - 2]) && y == folded(a[i - 2]))
                row[k] = least(row[k], two_above[k - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

static int begins_with(const char *name, const char *word, size_t length) {
    size_t i = 0;
    while (i < length && folded(name[i]) == folded(word[i])) i++;
    /* The last letter may be another one where three are left: mode, modify. */
    return (length >= 3 && i == length) || (length >= 4 && i + 1 == length);
}

qkv_nearest qkv_nearest_of(const char *word, size_t length) {
    qkv_nearest near = {0};
    if (length >= sizeof near.word) return near;
    memcpy(near.word, word, length);
    near.length = length;
    near.distance = (length + 1) / 3 + 1;
    return near;
}

void qkv_nearest_try(qkv_nearest *near, const char *name) {
    const size_t length = strlen(name);
    if (near->length == 0 || length == 0 || length >= sizeof near->best) return;
    size_t distance = count_changes(near->word, near->length, name, length);
    if (distance > 1 && begins_with(name, near->word, near->length)) distance = 1;
    /* Nothing of the word would be left. */
    if (distance >= near->distance || distance >= least(near->length, length)) return;
    near->distance = distance;
    memcpy(near->best, name, length + 1);
}

qkv_nearest qkv_nearest_named(const char *name) {
    qkv_nearest near = {0};
    snprintf(near.best, sizeof near.best, "%s", name);
    return near;
}

const char *qkv_nearest_hint(qkv_nearest *near) {
    near->hint[0] = '\0';
    if (near->best[0]) snprintf(near->hint, sizeof near->hint, " (did you mean '%s'?)", near->best);
    return near->hint;
}
