#include "server/command_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void qkv_words_add(qkv_words *words, const char *word) {
    char *copy = qkv_strdup(word);
    if (copy && QKV_PUSH(words->items, words->capacity, words->n, copy)) return;
    free(copy);
    words->failed = 1;
}

void qkv_words_pair(qkv_words *words, const char *option, const char *value) {
    qkv_words_add(words, option);
    qkv_words_add(words, value);
}

/* Inside single quotes a shell takes everything as it is, but for the quote. */
static void quote(const char *word, qkv_text *line) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:,./-";
    if (word[0] && strspn(word, plain) == strlen(word)) {
        qkv_text_puts(line, word);
        return;
    }
    qkv_text_puts(line, "'");
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            qkv_text_puts(line, "'\\''");
        else
            qkv_text_append(line, at, 1);
    }
    qkv_text_puts(line, "'");
}

void qkv_words_quote(const qkv_words *words, qkv_text *line) {
    for (size_t i = 0; i < words->n; i++) {
        if (i) qkv_text_puts(line, " ");
        quote(words->items[i], line);
    }
}

void qkv_words_release(qkv_words *words) {
    for (size_t i = 0; i < words->n; i++) free(words->items[i]);
    free(words->items);
    *words = (qkv_words){0};
}
