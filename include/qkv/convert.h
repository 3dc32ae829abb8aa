/*
 * Writing a model as one GGUF file, from a Hugging Face directory or from another GGUF file.
 *
 *     qkv_convert_options options = QKV_CONVERT_OPTIONS_INIT;
 *     options.type = "q8_0";
 *     qkv_model_convert("model.gguf", "small.gguf", &options, &err);
 *
 * The result is what llama.cpp's tools make and read: matrices in the type asked for; norms, biases,
 * routers, position and segment embeddings as F32. It is written tensor by tensor, and appears under
 * its name when it is complete. A matrix with values that are too large for its type is an error
 * (QKV_ERR_NUMERIC): they would be read as infinite. Any thread may convert.
 */
#ifndef QKV_CONVERT_H
#define QKV_CONVERT_H

#include "qkv/error.h"
#include "qkv/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_convert_options {
    size_t size;
    /* "f32", "f16", "bf16", "q8_0", "q4_K" and whatever else ggml can quantise to without an
     * importance matrix, in capital or small letters; NULL: matrices stay as they are stored. */
    const char *type;
    /* Is told, in one line each, what is not as the type says: a matrix whose rows do not divide
     * into the type's blocks gets another type. May be NULL. */
    void (*note)(void *user, const char *line);
    void *user;
    const qkv_progress *progress; /* watches, and can stop the work: qkv/progress.h; may be NULL */
} qkv_convert_options;

#define QKV_CONVERT_OPTIONS_INIT                                                                   \
    { .size = sizeof(qkv_convert_options) }

/* `model` is whatever qkv_model_open takes. options may be NULL. */
QKV_API int qkv_model_convert(const char *model, const char *path,
                              const qkv_convert_options *options, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
