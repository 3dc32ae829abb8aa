/*
 * What edits may name besides prompts, as plans hold it together with their callers.
 */
#ifndef QKV_RUN_EDIT_DATA_H
#define QKV_RUN_EDIT_DATA_H

#include <stdatomic.h>

#include "base/fingerprint.h"
#include "qkv/edit_data.h"

typedef struct qkv_vector {
    char *name;
    float *values;
    int32_t n_dims;
    int64_t shape[QKV_VECTOR_MAX_DIMS];
    char hash[QKV_FINGERPRINT_SIZE];
} qkv_vector;

/* Prompts that mean:set and patch:resample are about. */
typedef struct qkv_prompt_set {
    int32_t **tokens;
    size_t *lengths;
    size_t n;
    size_t n_tokens; /* of all */
    size_t shortest, longest;
    char hash[QKV_FINGERPRINT_SIZE];
} qkv_prompt_set;

struct qkv_edit_data {
    atomic_size_t n_owners;
    qkv_vector **vectors; /* they stay where they are */
    size_t n_vectors, vectors_capacity;
    qkv_prompt_set *set; /* NULL: none */
};

/* One more owner; NULL stays NULL. Given up with qkv_edit_data_free. */
qkv_edit_data *qkv_edit_data_retain(const qkv_edit_data *data);

/* NULL when there is none of that name. */
const qkv_vector *qkv_edit_data_find_vector(const qkv_edit_data *data, const char *name,
                                            size_t length);

#endif
