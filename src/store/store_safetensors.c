/*
 * safetensors:
 *
 *     8 bytes      length N of the header, little-endian
 *     N bytes      JSON: {"__metadata__": {key: text}, NAME: {"dtype", "shape", "data_offsets"}}
 *     the rest     values; offsets count from here, tensors follow each other without gaps
 *
 * The header is filled with spaces to a multiple of 8, so that the values are aligned in a mapped
 * file. A tensor that two variants share is written twice: readers refuse overlapping offsets.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "store/store_formats.h"

static json_t *describe_tensor(const qkv_store_tensor *tensor, int64_t *offset) {
    json_t *shape = json_array();
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        qkv_json_push(shape, json_integer(tensor->shape[d]));
    }
    const int64_t begin = *offset;
    *offset += qkv_store_tensor_size(tensor) * (int64_t)sizeof(float);
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)*offset);
}

static char *describe(const store_content *content) {
    json_t *header = json_object();
    int64_t offset = 0;
    int failed =
        json_object_size(content->metadata) > 0 &&
        qkv_json_put(header, "__metadata__", qkv_store_metadata_texts(content->metadata)) != 0;
    for (size_t i = 0; i < content->n_tensors && !failed; i++) {
        const qkv_store_tensor *tensor = &content->tensors[i];
        failed = qkv_json_put(header, tensor->name, describe_tensor(tensor, &offset)) != 0;
    }
    char *text = failed ? NULL : qkv_json_dump(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

static int write_safetensors(const store_content *content, FILE *stream, qkv_error *err) {
    char *header = describe(content);
    if (!header) return qkv_fail_memory(err);
    const size_t length = strlen(header);
    const size_t padded = (length + 7) / 8 * 8;
    unsigned char prefix[8];
    for (size_t i = 0; i < 8; i++) prefix[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    fwrite(prefix, 1, sizeof prefix, stream);
    fwrite(header, 1, length, stream);
    for (size_t i = length; i < padded; i++) fputc(' ', stream);
    for (size_t i = 0; i < content->n_tensors; i++) {
        const qkv_store_tensor *tensor = &content->tensors[i];
        fwrite(tensor->data, sizeof(float), (size_t)qkv_store_tensor_size(tensor), stream);
    }
    free(header);
    return QKV_OK;
}

const store_format qkv_store_safetensors = {"safetensors", NULL, write_safetensors};
