/* Words of a command line. */
#ifndef QKV_SERVER_WORDS_H
#define QKV_SERVER_WORDS_H

#include "base/text.h"

typedef struct qkv_words {
    char **items;
    size_t n, capacity;
    int failed; /* memory ran short */
} qkv_words;

void qkv_words_add(qkv_words *words, const char *word);
/* An option and its value; NULL is memory that ran short. */
void qkv_words_pair(qkv_words *words, const char *option, const char *value);
/* As one line for a POSIX shell. */
void qkv_words_quote(const qkv_words *words, qkv_text *line);
void qkv_words_release(qkv_words *words);

#endif
