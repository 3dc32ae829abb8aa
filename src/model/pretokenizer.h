/*
 * Pre-tokenisers: the patterns that cut text into words before byte-level BPE merges inside each.
 *
 * A pre-tokeniser is a name and one or several patterns. The first pattern cuts the text into its
 * matches and what lies between them; each further one cuts those pieces again, on their own.
 */
#ifndef QKV_MODEL_PRETOKENIZER_H
#define QKV_MODEL_PRETOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct qkv_pretokenizer qkv_pretokenizer;

/* NAME as in tokenizer.ggml.pre; `path` is for messages. */
int qkv_pretokenizer_new(qkv_pretokenizer **out, const char *name, const char *path,
                         qkv_error *err);
void qkv_pretokenizer_free(qkv_pretokenizer *pre);

/* 1 when a word that is a token as a whole is taken whole, whatever the merges say. */
int qkv_pretokenizer_whole_words(const qkv_pretokenizer *pre);
/* 1 when such vocabularies add BOS unless the metadata say otherwise. */
int qkv_pretokenizer_adds_bos(const qkv_pretokenizer *pre);

/* The pieces of a text, by where each ends; freed with free. Any bytes will do: malformed UTF-8
 * counts as a control character. */
int qkv_pretokenizer_split(const qkv_pretokenizer *pre, const char *text, size_t length,
                           uint32_t **ends, size_t *count, qkv_error *err);

#endif
