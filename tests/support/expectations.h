/*
 * A folder of tests/vectors: a model, token ids, and what another implementation computed for them
 * without and with edits. See tests/vectors/README.md.
 */
#ifndef QKV_TESTS_EXPECTATIONS_H
#define QKV_TESTS_EXPECTATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "support/tensor_file.h"

/* The folders. X(name) */
/* clang-format off */
#define VECTOR_LIST(X)                                                                             \
    X(llama) X(llama_gqa) X(llama3_rope) X(mistral) X(mixtral) X(gpt2) X(qwen2) X(qwen3)           \
    X(qwen3_moe) X(gemma) X(gemma2) X(gemma3) X(phi) X(phi3) X(gpt_neox) X(gpt_neox_seq) X(olmo2)  \
    X(starcoder2) X(stablelm) X(stablelm_par) X(falcon) X(falcon_mqa) X(granite) X(cohere)         \
    X(cohere2) X(smollm3) X(gpt_oss) X(gpt_oss_yarn) X(bert) X(seed_oss) X(ernie4_5) X(olmo3)      \
    X(arcee) X(gpt_bigcode)
/* clang-format on */

enum { EXPECT_MAX_LAYERS = 8, EXPECT_MAX_RUNS = 32, EXPECT_MAX_TOKENS = 64 };

typedef struct expected_run {
    const char *edits;                      /* joined by " + "; "" for the baseline */
    file_tensor pattern[EXPECT_MAX_LAYERS]; /* [H][T][T] */
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

typedef struct expectations {
    char model[512]; /* its path */
    int n_layer;
    size_t n_prompts;
    expected_prompt prompts[2];
    tensor_file *tensors;
    void *json;
} expectations;

/* `name` is the folder's, e.g. "llama"; `model` the file or directory in it: "model.gguf", "hf". For
 * the former, expect_gguf.json is preferred to expect.json. Returns 0, and says why on standard
 * error, when it cannot be read or is not as described. */
int expectations_open(expectations *out, const char *vectors, const char *name, const char *model);
void expectations_close(expectations *e);

/* A tensor of the baseline, e.g. "q", 1. Returns 0 when it is not there. */
int expected_site(const expectations *e, const expected_prompt *prompt, const char *site, int layer,
                  file_tensor *out);

#endif
