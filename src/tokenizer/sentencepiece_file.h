/*
 * tokenizer.model, the file of the SentencePiece library: a protocol buffer with pieces, their scores
 * and types, and how they were trained.
 */
#ifndef QKV_TOKENIZER_SENTENCEPIECE_FILE_H
#define QKV_TOKENIZER_SENTENCEPIECE_FILE_H

#include "tokenizer/tokenizer_json_internal.h"

/* What it says besides the pieces. */
typedef struct qkv_pieces_facts {
    int is_bpe;       /* else Unigram, or words or characters */
    int has_charsmap; /* text is normalised by a compiled map */
    int adds_prefix;  /* a space goes before the text */
    json_t *roles;    /* "bos_token", "eos_token" and "unk_token": the caller's to decref */
} qkv_pieces_facts;

/* A file that is not such a protocol buffer leaves is_bpe 0. facts->roles is NULL after a failure. */
int qkv_pieces_read_facts(qkv_pieces_facts *facts, qkv_json_span file, qkv_error *err);
/* Fills reader->tokens from reader->pieces. */
int qkv_pieces_read_vocab(qkv_tokenizer_json *reader, qkv_error *err);

#endif
