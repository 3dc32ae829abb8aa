#ifndef QKV_KERNEL_CONVERT_H
#define QKV_KERNEL_CONVERT_H
#include "ggml.h"
#include <stdint.h>
typedef void (*qkv_convert_fn)(const void *from, float *to, int64_t n);
qkv_convert_fn qkv_converter(enum ggml_type type);
#endif
