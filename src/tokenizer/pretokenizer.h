/*
 * Pre-tokenisers: the patterns that cut text into words before a tokeniser works inside each.
 *
 * A pre-tokeniser is one or several patterns. The first cuts the text into its matches and what
 * lies between them; each further one cuts those pieces again, on their own. What becomes of the
 * matches is the pattern's behaviour.
 */
#ifndef QKV_TOKENIZER_PRETOKENIZER_H
#define QKV_TOKENIZER_PRETOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "tokenizer/regex.h"

/* X(name): as in qkv.tokenizer.behaviors; "removed_inverted" keeps the matches only. */
#define QKV_SPLIT_LIST(X)                                                                          \
    X(isolated)                                                                                    \
    X(removed)                                                                                     \
    X(removed_inverted)                                                                            \
    X(contiguous)                                                                                  \
    X(merged_with_previous)                                                                        \
    X(merged_with_next)

typedef struct qkv_pretokenizer qkv_pretokenizer;

/* NAME as in tokenizer.ggml.pre; `path` is for messages. */
int qkv_pretokenizer_new(qkv_pretokenizer **out, const char *name, const char *path,
                         qkv_error *err);
/* From patterns and their behaviours. `name` is for messages. */
int qkv_pretokenizer_new_from(qkv_pretokenizer **out, const char *const *patterns,
                              const char *const *behaviors, size_t count, const char *name,
                              const char *path, qkv_error *err);
void qkv_pretokenizer_free(qkv_pretokenizer *pre);

/* 1 when a word that is a token as a whole is taken whole, whatever the merges say. */
int qkv_pretokenizer_whole_words(const qkv_pretokenizer *pre);
/* 1 when such vocabularies add BOS unless the metadata say otherwise. */
int qkv_pretokenizer_adds_bos(const qkv_pretokenizer *pre);

/* The known pre-tokenisers in turn, for comparing: the name, and its patterns up to the first
 * NULL. Returns NULL after the last. */
const char *qkv_pretokenizer_known(size_t index, const char *const **patterns, size_t *count,
                                   int *whole_words);

/* The pieces of a text; freed with free. Any bytes will do: malformed UTF-8 counts as a control
 * character. */
int qkv_pretokenizer_split(const qkv_pretokenizer *pre, const char *text, size_t length,
                           qkv_match_budget *budget, qkv_span **pieces, size_t *count,
                           qkv_error *err);

#endif
