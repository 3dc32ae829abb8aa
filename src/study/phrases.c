#include "study/phrases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int add(phrase_list *list, const char *line, size_t length, qkv_error *err) {
    if (length && line[length - 1] == '\r') length--;
    if (!length) return QKV_OK;
    char *phrase = qkv_strndup(line, length);
    if (!phrase) return qkv_fail_memory(err);
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i], phrase) != 0) continue;
        const int status =
            qkv_fail(err, QKV_ERR_ARGUMENT, "the phrase \"%.60s\" is given twice", phrase);
        free(phrase);
        return status;
    }
    if (QKV_PUSH(list->items, list->capacity, list->n, phrase)) return QKV_OK;
    free(phrase);
    return qkv_fail_memory(err);
}

int qkv_phrases_read(phrase_list *list, const char *text, qkv_error *err) {
    int status = QKV_OK;
    *list = (phrase_list){0};
    while (status == QKV_OK && *text) {
        const size_t length = strcspn(text, "\n");
        status = add(list, text, length, err);
        text += length + (text[length] == '\n');
    }
    if (status == QKV_OK && !list->n)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "there are no phrases to look for");
    return status;
}

void qkv_phrases_release(phrase_list *list) {
    for (size_t i = 0; i < list->n; i++) free(list->items[i]);
    free(list->items);
    *list = (phrase_list){0};
}

/* ---- looking ---- */

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static int starts_with(const char *text, const char *phrase, int ignore_case) {
    for (; *phrase; text++, phrase++) {
        if (*text != *phrase && !(ignore_case && lower(*text) == lower(*phrase))) return 0;
    }
    return 1;
}

int qkv_phrase_is_in(const char *phrase, const char *text, const phrase_match *match) {
    if (match->how == PHRASE_BEGIN)
        return starts_with(text + strspn(text, " \t\r\n"), phrase, match->ignore_case);
    for (; *text; text++) {
        if (starts_with(text, phrase, match->ignore_case)) return 1;
    }
    return 0;
}

size_t qkv_phrase_text_length(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* ---- shares ---- */

void qkv_wilson_interval(size_t k, size_t n, double *low, double *high) {
    const double z = 1.959963984540054; /* of the normal distribution: 2.5 % lie beyond */
    const double size = (double)n, share = (double)k / size;
    const double middle = share + z * z / (2 * size);
    const double reach = z * sqrt(share * (1 - share) / size + z * z / (4 * size * size));
    *low = fmax(0, (middle - reach) / (1 + z * z / size));
    *high = fmin(1, (middle + reach) / (1 + z * z / size));
    if (k == 0) *low = 0;
    if (k == n) *high = 1;
}
