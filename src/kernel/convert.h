/*
 * Weights of any type ggml knows, turned into F32.
 *
 * ggml's own converters say what each type means, and most of them are compiled for any processor. The
 * ones here give the same bits with the instructions of this one. Which of the two is taken is decided
 * once, when a converter is first asked for: a type whose converter here does not give ggml's bits on a
 * generated row (another version of ggml may store it differently) is left to ggml.
 */
#ifndef QKV_KERNEL_CONVERT_H
#define QKV_KERNEL_CONVERT_H

#include <stdint.h>

#include "ggml.h"

/* Turns n weights of one row (n a multiple of the type's block) into F32, bit for bit as ggml's own
 * converter does; where a quantised row has a scale that is NaN, which NaN comes out is not promised.
 * `from` may lie anywhere if the type is quantised. Thread-safe. */
typedef void (*qkv_convert_fn)(const void *from, float *to, int64_t n);

/* The fastest converter there is for a type; NULL where ggml has none. Thread-safe. */
qkv_convert_fn qkv_converter(enum ggml_type type);

#endif
