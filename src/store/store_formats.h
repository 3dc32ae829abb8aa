/*
 * The file formats of qkv_store_write. Each writer takes a stream that is already open and
 * leaves errors of the stream itself to the caller, who finishes the output.
 */
#ifndef QKV_STORE_STORE_FORMATS_H
#define QKV_STORE_STORE_FORMATS_H

#include <jansson.h>
#include <stdio.h>

#include "base/text.h"
#include "qkv/store.h"

/* "safetensors", "json", "npz", "npy"; NULL past the end. */
const char *qkv_store_format(size_t index);

/* A file of matrices that belong to a figure: names, shapes and data are the caller's. A path that ends
 * in .npz is written as that, any other as safetensors.
 * Tensors are an array, all of one size.
 * metadata is a list of n_metadata key, value pairs (2 * n_metadata strings). */
typedef struct qkv_store_tensor {
    size_t size;
    const char *name;
    const float *data;
    int32_t n_dims;
    int64_t shape[3];
} qkv_store_tensor;

#define QKV_STORE_TENSOR_INIT                                                                      \
    { .size = sizeof(qkv_store_tensor) }

int qkv_store_write_tensors(const qkv_store_tensor *tensors, size_t n_tensors,
                            const char *const *metadata, size_t n_metadata, const char *path,
                            qkv_error *err);
/* The same bytes in memory, safetensors, freed with qkv_bytes_free. */
int qkv_store_render_tensors(const qkv_store_tensor *tensors, size_t n_tensors,
                             const char *const *metadata, size_t n_metadata, char **bytes,
                             size_t *n_bytes, qkv_error *err);
/* The same in a format of qkv_store_format. */
int qkv_store_render_tensors_as(const qkv_store_tensor *tensors, size_t n_tensors,
                                const char *const *metadata, size_t n_metadata, const char *format,
                                char **bytes, size_t *n_bytes, qkv_error *err);

/* What a file holds: tensors in the order they are written, and what it says about itself. */
typedef struct store_content {
    const qkv_store_tensor *tensors;
    size_t n_tensors;
    json_t *metadata;
    const char *path; /* for messages; of one in memory its format, or NULL */
} store_content;

/* A format may refuse a content before anything is opened: `check` may be NULL. */
typedef struct store_format {
    const char *suffix;
    int (*check)(const store_content *content, qkv_error *err);
    int (*write)(const store_content *content, FILE *stream, qkv_error *err);
} store_format;

extern const store_format qkv_store_safetensors;
extern const store_format qkv_store_npy;
extern const store_format qkv_store_npz;
extern const store_format qkv_store_json;

/* The header of a .npy of n_dims dimensions: magic, version, length and a dictionary. `type` is
 * NumPy's, e.g. "<f4". */
void qkv_store_npy_header(qkv_text *out, const char *type, const int64_t *shape, int32_t n_dims);

/* store_metadata.c. What the file of a result says about itself: an object of any values. */
int qkv_store_metadata(json_t **out, const qkv_result *result, const qkv_plan *plan,
                       const qkv_model *model, qkv_error *err);
/* The same with texts alone, for a format that has nothing else: what is none becomes its JSON text.
 * NULL when memory is short. */
json_t *qkv_store_metadata_texts(const json_t *metadata);

/* Number of values of a tensor; -1 where it cannot be counted. */
int64_t qkv_store_tensor_size(const qkv_store_tensor *tensor);

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "every format here is little-endian, and values are written as they lie in memory"
#endif

#endif
