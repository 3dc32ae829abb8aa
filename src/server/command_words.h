/* Words of a command line. */
#ifndef QKV_SERVER_WORDS_H
#define QKV_SERVER_WORDS_H

#include <jansson.h>

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
/* {"command": one line, "words": list}; NULL when memory is short. */
json_t *qkv_words_json(const qkv_words *words);
/* What recipes tell of the model after -m: of a path its last part, as the program does (cli_command_words). NULL of
 * NULL. */
const char *qkv_words_short_model(const char *model);
void qkv_words_release(qkv_words *words);

#endif
