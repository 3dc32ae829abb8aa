/*
 * Checkpoints of llama2.c, as GGUF files.
 *
 * A checkpoint is a header of seven 32-bit numbers (width, feed-forward width, layers, heads,
 * key/value heads, vocabulary, context) and F32 weights: the embedding, then kind by kind those of
 * all layers, the final norm, two tables of RoPE that are not needed, and the output matrix where the
 * vocabulary's size is negative (else the embedding is the output too).
 *
 * tokenizer.bin is the length of the longest token, and for every token of a SentencePiece model its
 * score, its length and its bytes, with spaces in place of U+2581. It does not say what is special:
 * 0 to 2 are <unk>, <s> and </s>, and the 256 after them stand for bytes.
 */
#ifndef QKV_MODEL_LLAMA2C_H
#define QKV_MODEL_LLAMA2C_H

#include <stddef.h>

#include "base/fail.h"
#include "qkv/progress.h"

#define QKV_LLAMA2C_CHECKPOINT "checkpoint.bin"
#define QKV_LLAMA2C_TOKENIZER "tokenizer.bin"

/* What a checkpoint does not say about itself, for the file's metadata. Names may be NULL. */
typedef struct qkv_llama2c_facts {
    const char *name;
    const char *licence; /* as SPDX has it, in small letters */
    const char *source;  /* a URL, or package@version */
} qkv_llama2c_facts;

/* Reads these two files of a directory and writes a GGUF file of architecture llama. progress may be
 * NULL. */
int qkv_llama2c_convert(const char *dir, const char *path, const qkv_llama2c_facts *facts,
                        const qkv_progress *progress, qkv_error *err);

/* llama2c_tokenizer.c: the vocabulary of DIR/tokenizer.bin, n tokens, as metadata. */
struct gguf_context;
int qkv_llama2c_read_tokenizer(struct gguf_context *meta, const char *dir, size_t n,
                               qkv_error *err);

#endif
