/*
 * What is done to text before it is cut into words: a list of steps, each with its arguments.
 *
 * A step and its arguments are strings, one after the other; the list of the key
 * qkv.tokenizer.normalizer. The kinds of tokenisers make their own where a file has no such key.
 */
#ifndef QKV_TOKENIZER_NORMALIZER_H
#define QKV_TOKENIZER_NORMALIZER_H

#include <stddef.h>

#include "base/text.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/regex.h"

/* X(name, number of arguments)
 *   nfc nfd nfkc nfkd         normal forms
 *   lowercase
 *   strip_accents             drops marks
 *   strip LEFT RIGHT          white space at the ends (0 or 1 each)
 *   prepend TEXT              before whatever there is
 *   prefix TEXT               before what does not start with it
 *   prefix_first TEXT         the same, at the start of the whole text only
 *   replace FROM TO           literally
 *   replace_pattern FROM TO   FROM is a PCRE2 pattern
 *   bert CLEAN CJK STRIP LOWER  as BERT does it (0 or 1 each)
 *   nmt                       control characters go, odd white space becomes a space
 *   precompiled               the vocabulary's character map
 *   join_blanks               runs of spaces become one, none at the ends
 *   join_white                the same with all white space */
#define QKV_NORMALIZER_LIST(X)                                                                     \
    X(nfc, 0)                                                                                      \
    X(nfd, 0)                                                                                      \
    X(nfkc, 0)                                                                                     \
    X(nfkd, 0)                                                                                     \
    X(lowercase, 0)                                                                                \
    X(strip_accents, 0)                                                                            \
    X(strip, 2)                                                                                    \
    X(prepend, 1)                                                                                  \
    X(prefix, 1)                                                                                   \
    X(prefix_first, 1)                                                                             \
    X(replace, 2)                                                                                  \
    X(replace_pattern, 2)                                                                          \
    X(bert, 4)                                                                                     \
    X(nmt, 0)                                                                                      \
    X(precompiled, 0)                                                                              \
    X(join_blanks, 0)                                                                              \
    X(join_white, 0)

typedef struct qkv_normalizer qkv_normalizer;

/* The charsmap may be NULL where no step asks for it; it must live as long. `path` is for
 * messages. */
int qkv_normalizer_new(qkv_normalizer **out, const char *const *words, size_t n_words,
                       const qkv_charsmap *charsmap, const char *path, qkv_error *err);
void qkv_normalizer_free(qkv_normalizer *normalizer);

/* Where a stretch of text begins. */
typedef enum qkv_stretch_place {
    QKV_STRETCH_LATER,    /* within the text */
    QKV_STRETCH_FIRST,    /* at the start of the whole text */
    QKV_STRETCH_CONTINUES /* there too, but the text follows another one: nothing is put before it */
} qkv_stretch_place;

/* Replaces what is in `out`. Any bytes will do. */
int qkv_normalizer_run(const qkv_normalizer *normalizer, qkv_text *out, const char *text,
                       size_t length, qkv_stretch_place place, qkv_match_budget *budget,
                       qkv_error *err);

/* What a token is looked for as in text that has been normalised: the same without the prefix
 * steps. */
int qkv_normalizer_form(const qkv_normalizer *normalizer, qkv_text *out, const char *text,
                        size_t length, qkv_match_budget *budget, qkv_error *err);

#endif
