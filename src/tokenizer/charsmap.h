/*
 * The compiled character map of SentencePiece models, tokenizer.ggml.precompiled_charsmap: longest
 * match first, each match replaced by its text.
 *
 * Four bytes say how long the trie is, then come its 32-bit units (a double array, little-endian),
 * then the replacement texts, each ended by a NUL. None of these bytes are trusted: indices are
 * checked at every step.
 */
#ifndef QKV_TOKENIZER_CHARSMAP_H
#define QKV_TOKENIZER_CHARSMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

typedef struct qkv_charsmap {
    unsigned char *trie; /* owned */
    size_t n_units;
    const char *texts; /* within the same memory */
    size_t texts_size;
} qkv_charsmap;

/* Copies the bytes. */
int qkv_charsmap_init(qkv_charsmap *map, const void *data, size_t size, const char *path,
                      qkv_error *err);
void qkv_charsmap_release(qkv_charsmap *map);
/* Appends the text with every match replaced. A malformed byte becomes U+FFFD. */
void qkv_charsmap_apply(const qkv_charsmap *map, qkv_text *out, const char *text, size_t length);

#endif
