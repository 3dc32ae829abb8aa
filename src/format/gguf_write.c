#include "format/gguf_write.h"

#include <stdlib.h>

#include "ggml.h"

/* A failed write is told by qkv_output_finish, which knows the reason and leaves no part of the file. */
int qkv_gguf_put(qkv_output *out, const void *data, size_t size, qkv_error *err) {
    if (fwrite(data, 1, size, out->stream) == size) return QKV_OK;
    return qkv_output_finish(out, err);
}

int qkv_gguf_put_header(qkv_output *out, const struct gguf_context *header, qkv_error *err) {
    const size_t size = gguf_get_meta_size(header);
    void *bytes = malloc(size);
    if (!bytes) return qkv_fail_memory(err);
    gguf_get_meta_data(header, bytes);
    const int status = qkv_gguf_put(out, bytes, size, err);
    free(bytes);
    return status;
}

int qkv_gguf_put_padding(qkv_output *out, size_t size, qkv_error *err) {
    static const char zeros[GGUF_DEFAULT_ALIGNMENT] = {0};
    return qkv_gguf_put(out, zeros, GGML_PAD(size, GGUF_DEFAULT_ALIGNMENT) - size, err);
}
