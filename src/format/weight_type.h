/*
 * The types that weights can be written in, by name.
 */
#ifndef QKV_FORMAT_WEIGHT_TYPE_H
#define QKV_FORMAT_WEIGHT_TYPE_H

#include "base/fail.h"
#include "ggml.h"

/* "f16", "Q8_0", ...: all that ggml can quantise to without an importance matrix. */
int qkv_weight_type_parse(enum ggml_type *type, const char *text, qkv_error *err);

#endif
