#include "kernel/convert.h"

#include <string.h>

static void copy(const void *from, float *to, int64_t n) {
    memcpy(to, from, (size_t)n * sizeof *to);
}

qkv_convert_fn qkv_converter(enum ggml_type type) {
    if (type == GGML_TYPE_F32) return copy;
    return (qkv_convert_fn)ggml_get_type_traits(type)->to_float;
}
