/*
 * What kinds whose texts have U+2581 for a space share.
 */
#ifndef QKV_TOKENIZER_TOKENIZER_SPM_H
#define QKV_TOKENIZER_TOKENIZER_SPM_H

#include "tokenizer/vocab_internal.h"

#define QKV_SPM_SPACE "\xe2\x96\x81" /* U+2581, which stands for a space */

/* use_merges: in the order of tokenizer.ggml.merges rather than of the scores. */
int qkv_spm_load(qkv_vocab *vocab, const qkv_gguf *file, int use_merges, const char *label,
                 qkv_error *err);
void qkv_spm_free_state(void *state);
int qkv_spm_encode(const qkv_vocab *vocab, qkv_encoding *work, const char *bytes, size_t length,
                   qkv_error *err);
void qkv_spm_decode(const qkv_vocab_token *token, qkv_text *out);
/* Spaces to U+2581, and one before the text where the vocabulary says so; nothing when the file has
 * steps of its own. */
int qkv_spm_default_normalizer(qkv_vocab *vocab, const char *path, qkv_error *err);

#endif
