/*
 * Unstable: may change in every version.
 *
 * Models with random weights, of the shape of real ones: for measuring speed and memory, which do
 * not depend on what the weights are.
 *
 *     qkv_model *model = NULL;
 *     if (qkv_synthetic_write("bench.gguf", "2,4,2,64,128,100", "f32", 1, &err) == QKV_OK) {
 *         qkv_model_open(&model, "bench.gguf", &err);
 *     }
 *     qkv_model_free(model);
 *
 * They have no tokenizer: prompts are given as token ids. Any thread may write one.
 */
#ifndef QKV_SYNTHETIC_H
#define QKV_SYNTHETIC_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a GGUF file. `shape` is one of the names below, or [FAMILY:]LAYERS,HEADS,KV,D,FF,V[,CTX]
 * (family llama, longest prompt 4096 unless told). `type` is how matrices are stored: "f32", "f16",
 * "bf16", "q8_0", "q4_K" and whatever else ggml can quantise to without an importance matrix, in
 * capital or small letters; vectors are F32. The same shape, type and seed give the same bytes. The
 * file is written piece by piece, and appears under its name when it is complete. */
QKV_API int qkv_synthetic_write(const char *path, const char *shape, const char *type,
                                uint64_t seed, qkv_error *err);

/* The names of shapes: "gpt2-124m", "smollm-135m", "llama-1b"; NULL past the end. */
QKV_API const char *qkv_synthetic_shape_name(size_t index);

#ifdef __cplusplus
}
#endif

#endif
