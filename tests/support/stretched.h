/*
 * Models that take longer prompts than they were made for.
 */
#ifndef QKV_TESTS_STRETCHED_H
#define QKV_TESTS_STRETCHED_H

/* A scratch copy of a GGUF model that takes n_ctx tokens: learned positions are repeated. */
const char *stretched_model(const char *path, int n_ctx);
/* The model with RoPE scaled by YaRN. */
const char *yarn_model(const char *path);

#endif
