/*
 * A folder of tests/vectors: a model, token ids, and what another implementation computed for them
 * without and with edits. See tests/vectors/README.md.
 */
#ifndef QKV_TESTS_EXPECTATIONS_H
#define QKV_TESTS_EXPECTATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "support/tensor_file.h"

/* What tests must know of a folder. */
enum {
    HAS_GGUF = 1,  /* model.gguf, as llama.cpp's converter makes it; else `hf` alone */
    GENERATES = 2, /* its model has a next token */
};

/* X(folder, what tests must know of it): sorted by name, one to a line. The empty line at the end is for
 * merging: whoever adds a family changes its own line alone. */
/* clang-format off */
#define VECTOR_LIST(X)                                                                             \
    X(apertus, HAS_GGUF | GENERATES)                                                               \
    X(arcee, HAS_GGUF | GENERATES)                                                                 \
    X(bert, HAS_GGUF)                                                                              \
    X(bloom, HAS_GGUF | GENERATES)                                                                 \
    X(codegen, GENERATES)                                                                          \
    X(cohere, HAS_GGUF | GENERATES)                                                                \
    X(cohere2, HAS_GGUF | GENERATES)                                                               \
    X(distilbert, HAS_GGUF)                                                                        \
    X(ernie4_5, HAS_GGUF | GENERATES)                                                              \
    X(eurobert, HAS_GGUF)                                                                          \
    X(exaone4, HAS_GGUF | GENERATES)                                                               \
    X(falcon, HAS_GGUF | GENERATES)                                                                \
    X(falcon_mqa, HAS_GGUF | GENERATES)                                                            \
    X(gemma, HAS_GGUF | GENERATES)                                                                 \
    X(gemma2, HAS_GGUF | GENERATES)                                                                \
    X(gemma3, HAS_GGUF | GENERATES)                                                                \
    X(gemma4, HAS_GGUF | GENERATES)                                                                \
    X(gemma4_e, HAS_GGUF | GENERATES)                                                              \
    X(glm4, HAS_GGUF | GENERATES)                                                                  \
    X(glm4_moe, HAS_GGUF | GENERATES)                                                              \
    X(gpt2, HAS_GGUF | GENERATES)                                                                  \
    X(gpt_bigcode, HAS_GGUF | GENERATES)                                                           \
    X(gpt_neo, GENERATES)                                                                          \
    X(gpt_neox, HAS_GGUF | GENERATES)                                                              \
    X(gpt_neox_seq, HAS_GGUF | GENERATES)                                                          \
    X(gpt_oss, HAS_GGUF | GENERATES)                                                               \
    X(gpt_oss_yarn, HAS_GGUF | GENERATES)                                                          \
    X(gptj, GENERATES)                                                                             \
    X(granite, HAS_GGUF | GENERATES)                                                               \
    X(granitemoe, HAS_GGUF | GENERATES)                                                            \
    X(hunyuan_v1_dense, HAS_GGUF | GENERATES)                                                      \
    X(llama, HAS_GGUF | GENERATES)                                                                 \
    X(llama3_rope, HAS_GGUF | GENERATES)                                                           \
    X(llama4, HAS_GGUF | GENERATES)                                                                \
    X(llama4_nonorm, GENERATES)                                                                    \
    X(llama_gqa, HAS_GGUF | GENERATES)                                                             \
    X(minimax_m2, HAS_GGUF | GENERATES)                                                            \
    X(ministral3, HAS_GGUF | GENERATES)                                                            \
    X(mistral, HAS_GGUF | GENERATES)                                                               \
    X(mixtral, HAS_GGUF | GENERATES)                                                               \
    X(modernbert, HAS_GGUF)                                                                        \
    X(mpt, HAS_GGUF | GENERATES)                                                                   \
    X(nomic_bert, HAS_GGUF)                                                                        \
    X(olmo, HAS_GGUF | GENERATES)                                                                  \
    X(olmo2, HAS_GGUF | GENERATES)                                                                 \
    X(olmo3, HAS_GGUF | GENERATES)                                                                 \
    X(olmoe, HAS_GGUF | GENERATES)                                                                 \
    X(opt, GENERATES)                                                                              \
    X(persimmon, GENERATES)                                                                        \
    X(phi, HAS_GGUF | GENERATES)                                                                   \
    X(phi3, HAS_GGUF | GENERATES)                                                                  \
    X(phimoe, GENERATES)                                                                           \
    X(qwen2, HAS_GGUF | GENERATES)                                                                 \
    X(qwen2_moe, HAS_GGUF | GENERATES)                                                             \
    X(qwen3, HAS_GGUF | GENERATES)                                                                 \
    X(qwen3_moe, HAS_GGUF | GENERATES)                                                             \
    X(roberta, HAS_GGUF)                                                                           \
    X(seed_oss, HAS_GGUF | GENERATES)                                                              \
    X(smollm3, HAS_GGUF | GENERATES)                                                               \
    X(stablelm, HAS_GGUF | GENERATES)                                                              \
    X(stablelm_par, HAS_GGUF | GENERATES)                                                          \
    X(starcoder2, HAS_GGUF | GENERATES)                                                            \
    X(xlm_roberta, HAS_GGUF)

/* clang-format on */

enum { EXPECT_MAX_LAYERS = 16, EXPECT_MAX_RUNS = 32, EXPECT_MAX_TOKENS = 64 };

typedef struct expected_run {
    const char *edits;                      /* joined by " + "; "" for the baseline */
    file_tensor pattern[EXPECT_MAX_LAYERS]; /* [H][T][T]; of layers without attention: no data */
    file_tensor logits;                     /* [T][V] */
    int same_pattern[EXPECT_MAX_LAYERS];    /* 1: bit-identical to the baseline's */
    int same_logits;
} expected_run;

typedef struct expected_prompt {
    int32_t tokens[EXPECT_MAX_TOKENS];
    size_t n_tokens;
    size_t n_runs; /* run 0 is the baseline */
    expected_run runs[EXPECT_MAX_RUNS];
    const void *sites; /* for expected_site; NULL when there are none */
} expected_prompt;

/* What a layer's attention is like. */
typedef struct expected_layer {
    int has_attention; /* the rest is 0 without */
    int n_head, n_kv_head;
    int head_dim, v_head_dim; /* widths of queries and keys, and of values */
    int window, chunk;        /* keys that a query sees; 0: all */
} expected_layer;

typedef struct expectations {
    char model[512]; /* its path */
    int n_layer;
    expected_layer layers[EXPECT_MAX_LAYERS];
    size_t n_prompts;
    expected_prompt prompts[2];
    tensor_file *tensors;
    void *json;
} expectations;

/* The path of a folder's GGUF file; where llama.cpp has no such model, of one that qkv has converted from the
 * directory (a scratch file; see scratch.h). It stays valid for the next 15 calls. Ends the program with a message
 * when there is neither. */
const char *vector_model(const char *name);

/* `name` is the folder's, e.g. "llama"; `model` the file or directory in it: "model.gguf" (see vector_model),
 * "hf". For the former, expect_gguf.json is preferred to expect.json. Returns 0, and says why on standard
 * error, when it cannot be read or is not as described. */
int expectations_open(expectations *out, const char *vectors, const char *name, const char *model);
void expectations_close(expectations *e);

/* A tensor of the baseline, e.g. "q", 1. Returns 0 when it is not there: layers without attention have no q, k, v
 * and z, and those that share keys and values no k and v. */
int expected_site(const expectations *e, const expected_prompt *prompt, const char *site, int layer,
                  file_tensor *out);

#endif
