/*
 * Models with random weights, of the shape of real ones: for measuring speed and memory, which do
 * not depend on what the weights are.
 *
 * They have no tokenizer: prompts are given as token ids. Any thread may write one.
 */
#ifndef QKV_MODEL_SYNTHETIC_H
#define QKV_MODEL_SYNTHETIC_H

#include "qkv/error.h"
#include <stddef.h>
#include <stdint.h>

/* Writes a GGUF file. `shape` is one of the names below, or [FAMILY:]LAYERS,HEADS,KV,D,FF,V[,CTX]
 * (family llama, longest prompt 4096 unless told). `type` is how matrices are stored: "f32", "f16",
 * "bf16", "q8_0", "q4_K" and whatever else ggml can quantise to without an importance matrix, in
 * capital or small letters; vectors are F32. The same shape, type and seed give the same bytes. The
 * file is written piece by piece, and appears under its name when it is complete. */
int qkv_synthetic_write(const char *path, const char *shape, const char *type, uint64_t seed,
                        qkv_error *err);

/* The names of shapes: "gpt2-124m", "smollm-135m", "llama-1b"; NULL past the end. */
const char *qkv_synthetic_shape_name(size_t index);

#endif
