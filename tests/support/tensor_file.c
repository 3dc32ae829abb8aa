/* Holds the whole file in memory; tensors point into it. Refuses offsets outside of the file. */
#include "support/tensor_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

struct tensor_file {
    char *bytes;
    size_t size;
    size_t data_start;
    json_t *header;
};

static uint64_t little_endian(const char *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static int parse_header(tensor_file *file) {
    if (file->size < 8) return 0;
    const uint64_t length = little_endian(file->bytes);
    if (length > file->size - 8) return 0;
    file->data_start = 8 + (size_t)length;
    file->header = json_loadb(file->bytes + 8, (size_t)length, 0, NULL);
    return json_is_object(file->header);
}

tensor_file *tensor_file_open(const char *path) {
    qkv_error err = {0};
    tensor_file *file = calloc(1, sizeof *file);
    if (!file) return NULL;
    if (qkv_read_file(&file->bytes, &file->size, path, (size_t)1 << 30, &err) != QKV_OK ||
        !parse_header(file)) {
        fprintf(stderr, "%s: %s\n", path, err.status ? err.message : "not a safetensors file");
        tensor_file_close(file);
        return NULL;
    }
    return file;
}

void tensor_file_close(tensor_file *file) {
    if (!file) return;
    json_decref(file->header);
    free(file->bytes);
    free(file);
}

static int read_shape(const json_t *shape, file_tensor *out) {
    out->n_dims = (int)json_array_size(shape);
    if (!json_is_array(shape) || out->n_dims > 4) return 0;
    out->count = 1;
    for (int i = 0; i < out->n_dims; i++) {
        out->shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
        out->count *= (size_t)out->shape[i];
    }
    return 1;
}

int tensor_file_get(const tensor_file *file, const char *name, file_tensor *out) {
    const json_t *entry = json_object_get(file->header, name);
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_int_t begin = json_integer_value(json_array_get(offsets, 0));
    const json_int_t end = json_integer_value(json_array_get(offsets, 1));
    memset(out, 0, sizeof *out);
    if (!type || strcmp(type, "F32") != 0 || !read_shape(json_object_get(entry, "shape"), out))
        return 0;
    if (begin < 0 || end < begin || (size_t)end > file->size - file->data_start) return 0;
    if ((size_t)(end - begin) != out->count * sizeof(float)) return 0;
    const char *start = file->bytes + file->data_start + begin;
    if ((uintptr_t)start % sizeof(float) != 0) return 0;
    out->data = (const float *)(const void *)start;
    return 1;
}

const char *tensor_file_metadata(const tensor_file *file, const char *key) {
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}
