/*
 * llama.cpp's vocabularies and the .inp/.out pairs beside them: texts, and the ids that the models'
 * own tokenisers give.
 */
#ifndef QKV_TESTS_VOCAB_PAIRS_H
#define QKV_TESTS_VOCAB_PAIRS_H

#include <stddef.h>

#include "gguf.h"
#include "tokenizer/vocab.h"

/* The path of DIR/ggml-vocab-NAME.gguf, with `suffix` after it; valid until the next call. */
const char *vocab_path(const char *dir, const char *name, const char *suffix);
/* Fails the test when there is none. */
struct gguf_context *vocab_metadata(const char *path);
/* Compares the ids of every text of a pair and fails the test where they differ. Returns how many
 * texts there were. */
size_t vocab_compare_pair(const qkv_vocab *vocab, const char *dir, const char *name);

#endif
