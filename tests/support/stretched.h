/*
 * Models that take longer prompts than they were made for.
 */
#ifndef QKV_TESTS_STRETCHED_H
#define QKV_TESTS_STRETCHED_H

#include <stddef.h>

/* A scratch copy of a GGUF model that takes n_ctx tokens: learned positions are repeated. */
const char *stretched_model(const char *path, int n_ctx);
/* The model with RoPE scaled by YaRN. */
const char *yarn_model(const char *path);
typedef struct model_key {
    const char *name; /* without ARCH. */
    enum { MODEL_KEY_INT, MODEL_KEY_FLOAT, MODEL_KEY_FLAG } kind;
    double value;
} model_key;

/* A copy of the model with other keys. */
const char *keyed_model(const char *path, const model_key *keys, size_t n_keys);

#endif
