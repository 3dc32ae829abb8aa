/*
 * tokenizer.json of a Hugging Face directory, as the metadata that a GGUF would carry.
 *
 * Vocabulary loading then has one path for both formats (vocab.h), and a converter writes what it
 * is given. What the standard keys cannot say is in keys of our own, qkv.tokenizer.*.
 */
#ifndef QKV_TOKENIZER_TOKENIZER_JSON_H
#define QKV_TOKENIZER_TOKENIZER_JSON_H

#include "base/fail.h"

struct gguf_context;

/* Reads DIR/tokenizer.json, and DIR/tokenizer_config.json where there is one, and sets
 * tokenizer.ggml.* and qkv.tokenizer.* in `meta`. What the files say and cannot be done is an error
 * that names it; then `meta` may have some of the keys. */
int qkv_tokenizer_json_read(struct gguf_context *meta, const char *dir, qkv_error *err);

#endif
