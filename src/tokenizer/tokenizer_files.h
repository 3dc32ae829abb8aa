/*
 * The files of a tokeniser in a Hugging Face directory, as the metadata that a GGUF would carry.
 *
 * Vocabulary loading then has one path for both formats (vocab.h), and a converter writes what it
 * is given. What the standard keys cannot say is in keys of our own, qkv.tokenizer.*.
 */
#ifndef QKV_TOKENIZER_TOKENIZER_FILES_H
#define QKV_TOKENIZER_TOKENIZER_FILES_H

#include "base/fail.h"

struct gguf_context;

/* X(identifier, name): the order in which they go into a model's hash */
#define QKV_TOKENIZER_FILE_LIST(X)                                                                 \
    X(JSON, "tokenizer.json")                                                                      \
    X(CONFIG, "tokenizer_config.json")                                                             \
    X(ROLES, "special_tokens_map.json")                                                            \
    X(ADDED, "added_tokens.json")                                                                  \
    X(VOCAB_JSON, "vocab.json")                                                                    \
    X(MERGES, "merges.txt")                                                                        \
    X(VOCAB_TXT, "vocab.txt")                                                                      \
    X(PIECES, "tokenizer.model")                                                                   \
    X(CHAT, "chat_template.jinja")                                                                 \
    X(GENERATION, "generation_config.json")

/* The tokens that end a text: ids, as many at most. */
#define QKV_END_TOKENS_KEY "qkv.tokenizer.end_tokens"
#define QKV_MOST_END_TOKENS 256

enum qkv_tokenizer_file {
#define QKV_TOKENIZER_FILE_ENUM(identifier, name) QKV_TOKENIZER_FILE_##identifier,
    QKV_TOKENIZER_FILE_LIST(QKV_TOKENIZER_FILE_ENUM) QKV_TOKENIZER_N_FILES
#undef QKV_TOKENIZER_FILE_ENUM
};

const char *qkv_tokenizer_file_name(enum qkv_tokenizer_file file);

/* Reads the tokeniser of a directory and sets tokenizer.ggml.* and qkv.tokenizer.* in `meta`, which
 * may have the architecture and its vocab_size already. *files gets a bit, by enum
 * qkv_tokenizer_file, for every file that ids depend on: 0 when there is no tokeniser. What the files
 * say and cannot be done is an error that names it; then `meta` may have some of the keys. */
int qkv_tokenizer_read(struct gguf_context *meta, const char *dir, unsigned *files, qkv_error *err);

#endif
