/*
 * Makes tokenizer.json files: of the vocabulary of a GGUF, or of small parts given as JSON.
 */
#ifndef QKV_TESTS_TOKENIZER_FILE_H
#define QKV_TESTS_TOKENIZER_FILE_H

#include <jansson.h>

#include "gguf.h"

typedef struct tokenizer_parts {
    const char *model; /* "BPE", "Unigram" or "WordPiece" */
    /* As JSON; NULL for null. */
    const char *normalizer, *pre_tokenizer, *post_processor;
    int byte_fallback, ignore_merges;
    int pairs; /* merges as pairs rather than strings */
} tokenizer_parts;

/* Writes tokenizer.json, and tokenizer_config.json or none, into the directory of temporary files
 * (scratch.h), and returns the directory. The next call writes over them. */
const char *tokenizer_dir(const char *json, const char *config);
/* The same with the vocabulary, merges and special tokens of a GGUF. A SentencePiece vocabulary
 * gets the merges that its scores stand for. */
const char *tokenizer_dir_of(const struct gguf_context *gguf, const tokenizer_parts *parts);

#endif
