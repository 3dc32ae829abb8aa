/*
 * Makes tiny GGUF models with seeded random weights, for tests that need a model of a given kind.
 *
 *     const tiny_options options = {"llama", .n_kv_head = 2, .window = 4};
 *     const char *path = tiny_model(&options, "windowed.gguf");
 *
 * Tensors and keys are named as llama.cpp names them. The vocabulary is byte-level: three control
 * tokens, the 256 bytes and three merges, so that every text can be tokenised. To get a file with
 * something wrong in it, build it, change its keys with gguf_set_*, and save it.
 */
#ifndef QKV_TESTS_TINY_MODEL_H
#define QKV_TESTS_TINY_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "ggml.h"
#include "gguf.h"

enum { TINY_VOCAB = 262 };

typedef enum tiny_rope {
    TINY_ROPE_PLAIN,
    TINY_ROPE_LINEAR, /* factor 2 */
    TINY_ROPE_YARN,   /* factor 4 over 16 positions */
    TINY_ROPE_LLAMA3, /* rope_freqs.weight */
    TINY_ROPE_LONG    /* rope_factors_short.weight up to rope_context tokens, beyond _long; phi3 */
} tiny_rope;

typedef struct tiny_options {
    const char *family; /* "llama", "phi3" or "gpt2" */
    /* 0: 3 layers, width 32, 4 heads, as many key/value heads, width 8 of a head, 64, 64 */
    int n_layer, n_embd, n_head, n_kv_head, head_dim, n_ff, n_ctx;
    int qkv_bias, out_bias, ffn_bias; /* llama; gpt2 has them all */
    tiny_rope rope;
    int rope_context; /* of YARN and LONG; 0: 16 */
    int window;       /* 0 = none */
    int untied;
    enum ggml_type type; /* of the matrices; F32 is 0 */
    uint64_t seed;
    /* For files that must be refused: the name of one tensor, and what is wrong with it. */
    const char *omitted;
    const char *misshapen; /* its last dimension is one too long */
    const char *mistyped;  /* I32 */
} tiny_options;

typedef struct tiny_file {
    tiny_options options;
    struct ggml_context *tensors;
    struct gguf_context *gguf;
    uint64_t random;
} tiny_file;

void tiny_build(tiny_file *file, const tiny_options *options);
/* Writes it as a scratch file and returns the path. */
const char *tiny_save(const tiny_file *file, const char *name);
void tiny_free(tiny_file *file);

/* Writes it in two parts, STEM-00001-of-00002.gguf and -00002-, the keys in the first and the
 * tensors in turn. Returns the path of the first. */
const char *tiny_save_split(const tiny_file *file, const char *stem);

/* All three in one. */
const char *tiny_model(const tiny_options *options, const char *name);

#endif
