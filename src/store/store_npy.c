/*
 * NumPy's .npy, version 1.0: magic, version, a 2-byte length, a Python dictionary filled with
 * spaces so that the values start at a multiple of 64, and the values. One tensor. The format has no place for metadata.
 */
#include <inttypes.h>

#include "base/fail.h"
#include "base/text.h"
#include "store/store_formats.h"

enum { PREFIX = 10, ALIGNMENT = 64 };

static int check_npy(const store_content *content, qkv_error *err) {
    if (content->n_tensors == 1) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "%s can hold one tensor, and %zu were captured; write .safetensors instead",
                    content->path, content->n_tensors);
}

static void describe(qkv_text *header, const qkv_store_tensor *tensor) {
    qkv_text_puts(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        qkv_text_printf(header, "%" PRId64 "%s", tensor->shape[d],
                        d + 1 < tensor->n_dims ? ", "
                        : tensor->n_dims == 1  ? ","
                                               : "");
    }
    qkv_text_puts(header, "), }");
    while ((PREFIX + header->length + 1) % ALIGNMENT && !header->failed) {
        qkv_text_puts(header, " ");
    }
    qkv_text_puts(header, "\n");
}

static int write_npy(const store_content *content, FILE *stream, qkv_error *err) {
    const qkv_store_tensor *tensor = &content->tensors[0];
    qkv_text header = {0};
    describe(&header, tensor);
    if (header.failed) {
        qkv_text_release(&header);
        return qkv_fail_memory(err);
    }
    fwrite("\x93NUMPY\x01\x00", 1, 8, stream);
    fputc((int)(header.length & 0xff), stream);
    fputc((int)(header.length >> 8), stream);
    fwrite(header.data, 1, header.length, stream);
    fwrite(tensor->data, sizeof(float), (size_t)qkv_store_tensor_size(tensor), stream);
    qkv_text_release(&header);
    return QKV_OK;
}

const store_format qkv_store_npy = {"npy", check_npy, write_npy};
