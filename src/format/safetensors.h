/*
 * Safetensors files: where each tensor lies, and what it is.
 *
 * A file is 8 bytes of length (little-endian), that many bytes of JSON, and the data. Reading looks
 * at the JSON only; every tensor is checked to lie inside the file, not to share bytes with another
 * one, and to be as large as its shape and type say.
 */
#ifndef QKV_FORMAT_SAFETENSORS_H
#define QKV_FORMAT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/file.h"
#include "format/json_scan.h"
#include "ggml.h"

enum { QKV_ST_MAX_DIMS = 8 };

typedef struct qkv_st_tensor {
    char *name;
    const char *dtype;   /* "F32", "BF16", "U8", ... */
    enum ggml_type type; /* GGML_TYPE_COUNT: ggml has no such type of weights */
    int n_dims;
    int64_t shape[QKV_ST_MAX_DIMS]; /* outermost first, as in the file */
    const unsigned char *data;
    size_t size;
    size_t part; /* which of the model's files it is in */
    int used;
} qkv_st_tensor;

typedef struct qkv_st_list {
    qkv_st_tensor *items;
    size_t count, capacity;
} qkv_st_list;

/* Appends the tensors of a mapped file to the list. `path` is for messages. */
int qkv_safetensors_read(qkv_st_list *list, const qkv_mapping *map, const char *path, size_t part,
                         qkv_error *err);
/* What a mapped file says about itself: the text of its __metadata__, of length 0 without one. */
int qkv_safetensors_metadata(const qkv_mapping *map, const char *path, qkv_json_span *metadata,
                             qkv_error *err);
/* Value i of a tensor, whatever its type; NaN for one of a type without numbers of its own (F8). */
double qkv_st_value(const qkv_st_tensor *tensor, size_t i);
/* Sorts by name, which qkv_st_find needs; a name that appears twice is an error. */
int qkv_st_sort(qkv_st_list *list, const char *path, qkv_error *err);
qkv_st_tensor *qkv_st_find(const qkv_st_list *list, const char *name);
void qkv_st_release(qkv_st_list *list);

#endif
