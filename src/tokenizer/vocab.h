/*
 * The vocabulary of a model: token ids to bytes and back.
 *
 * Built from a GGUF's tokenizer.ggml.* metadata. Immutable once loaded.
 */
#ifndef QKV_TOKENIZER_VOCAB_H
#define QKV_TOKENIZER_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

struct gguf_context;
typedef struct qkv_vocab qkv_vocab;

/* How many separators stand between two texts, where that is not as the kind has it. */
#define QKV_VOCAB_PAIR_KEY "qkv.tokenizer.pair_separators"

/* *out stays NULL with QKV_OK when the file has no tokenizer at all (such a model takes ids only).
 * `path` is for messages. */
int qkv_vocab_load(qkv_vocab **out, const struct gguf_context *gguf, const char *path,
                   qkv_error *err);
void qkv_vocab_free(qkv_vocab *vocab);

int32_t qkv_vocab_size(const qkv_vocab *vocab);
/* "bpe (gpt-2)", "sentencepiece" */
const char *qkv_vocab_kind(const qkv_vocab *vocab);

/* Tokens that end a text; -1 past the last one. */
int32_t qkv_vocab_end(const qkv_vocab *vocab, size_t index);
int qkv_vocab_is_end(const qkv_vocab *vocab, int32_t token);
/* The token between two texts; -1 where there is none. */
int32_t qkv_vocab_separator(const qkv_vocab *vocab);
/* Does what follows it count as a second segment? WordPiece's tokenizers say so; those of RoBERTa, in bytes or
 * Unigram, put everything into the first one, also for models that have two. */
int qkv_vocab_has_segments(const qkv_vocab *vocab);
/* How many of it stand between them; 0 where the file does not say how texts are joined. */
int32_t qkv_vocab_pair_separators(const qkv_vocab *vocab);

/* As the public functions of the same names say. */
int qkv_vocab_tokenize(const qkv_vocab *vocab, int32_t **tokens, size_t *n_tokens, const char *text,
                       size_t length, unsigned flags, qkv_error *err);
/* The same, but names of special tokens stay text wherever they touch one of the n stretches of bytes,
 * which are in order. */
typedef struct qkv_vocab_span {
    size_t start, end;
} qkv_vocab_span;
int qkv_vocab_tokenize_around(const qkv_vocab *vocab, int32_t **tokens, size_t *n_tokens,
                              const char *text, size_t length, unsigned flags,
                              const qkv_vocab_span *plain, size_t n_plain, qkv_error *err);
int qkv_vocab_detokenize(const qkv_vocab *vocab, char **text, size_t *length, const int32_t *tokens,
                         size_t n_tokens, int keep_special, qkv_error *err);
int qkv_vocab_token_text(const qkv_vocab *vocab, char **text, size_t *length, int32_t token,
                         qkv_error *err);

#endif
