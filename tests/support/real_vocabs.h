/*
 * The vocabularies of real models that llama.cpp comes with, loaded when they are asked for.
 * Whatever fails here fails the running cmocka test.
 */
#ifndef QKV_TESTS_REAL_VOCABS_H
#define QKV_TESTS_REAL_VOCABS_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/model.h"
#include "tokenizer/vocab.h"

typedef struct real_vocab {
    const char *name, *kind;
    int has_pair;   /* .inp and .out files beside it (vocab_pairs.h) */
    int simplifies; /* text does not come back as it was: lower case, one space for several */
} real_vocab;

enum { N_REAL_VOCABS = 19, N_VOCAB_PAIRS = 15 };
extern const real_vocab real_vocabs[N_REAL_VOCABS];

/* One of the table, loaded once and kept until free_real_vocabs. */
const qkv_vocab *get_vocab_at(const char *dir, const char *name);
#define get_vocab(name) get_vocab_at(QKV_TEST_VOCABS, name)
/* A group teardown of cmocka. */
int free_real_vocabs(void **state);

/* The vocabulary of any GGUF file, the caller's to free. */
int load_vocab(qkv_vocab **vocab, const char *path, qkv_error *err);

/* The ids of a text; they are the caller's to free. */
size_t vocab_ids(const qkv_vocab *vocab, int32_t **ids, const char *text, size_t length,
                 unsigned flags);

#endif
