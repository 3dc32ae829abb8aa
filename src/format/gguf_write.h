/*
 * Writing GGUF files piece by piece: the header, then each tensor's bytes with the padding after
 * them. After a failed write the output is finished, with the reason in `err`.
 */
#ifndef QKV_FORMAT_GGUF_WRITE_H
#define QKV_FORMAT_GGUF_WRITE_H

#include "base/fail.h"
#include "base/file.h"
#include "ggml.h"
#include "gguf.h"

int qkv_gguf_put(qkv_output *out, const void *data, size_t size, qkv_error *err);
int qkv_gguf_put_header(qkv_output *out, const struct gguf_context *header, qkv_error *err);
/* What follows a tensor of `size` bytes. */
int qkv_gguf_put_padding(qkv_output *out, size_t size, qkv_error *err);

/*
 * The types that weights can be written in, by name.
 */

/* "f16", "Q8_0", ...: all that ggml can quantise to without an importance matrix. */
int qkv_weight_type_parse(enum ggml_type *type, const char *text, qkv_error *err);

#endif
