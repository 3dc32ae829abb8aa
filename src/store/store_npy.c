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
    return qkv_fail(
        err, QKV_ERR_ARGUMENT,
        "%s can hold one tensor, and %zu were captured; write .npz or .safetensors instead",
        content->path, content->n_tensors);
}

void qkv_store_npy_header(qkv_text *out, const char *type, const int64_t *shape, int32_t n_dims) {
    qkv_text words = {0};
    qkv_text_printf(&words, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int32_t d = 0; d < n_dims; d++) {
        qkv_text_printf(&words, "%" PRId64 "%s", shape[d],
                        d + 1 < n_dims ? ", "
                        : n_dims == 1  ? ","
                                       : "");
    }
    qkv_text_puts(&words, "), }");
    while ((PREFIX + words.length + 1) % ALIGNMENT && !words.failed) qkv_text_puts(&words, " ");
    qkv_text_puts(&words, "\n");
    const char prefix[PREFIX] = {'\x93',
                                 'N',
                                 'U',
                                 'M',
                                 'P',
                                 'Y',
                                 1,
                                 0,
                                 (char)(words.length & 0xff),
                                 (char)(words.length >> 8)};
    qkv_text_append(out, prefix, sizeof prefix);
    if (!words.failed) qkv_text_append(out, words.data, words.length);
    out->failed |= words.failed;
    qkv_text_release(&words);
}

static int write_npy(const store_content *content, FILE *stream, qkv_error *err) {
    const qkv_store_tensor *tensor = &content->tensors[0];
    qkv_text header = {0};
    qkv_store_npy_header(&header, "<f4", tensor->shape, tensor->n_dims);
    if (header.failed) {
        qkv_text_release(&header);
        return qkv_fail_memory(err);
    }
    fwrite(header.data, 1, header.length, stream);
    fwrite(tensor->data, sizeof(float), (size_t)qkv_store_tensor_size(tensor), stream);
    qkv_text_release(&header);
    return QKV_OK;
}

const store_format qkv_store_npy = {"npy", check_npy, write_npy};
