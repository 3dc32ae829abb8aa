/*
 * Reading a safetensors file of F32 tensors: 8 bytes of length, a JSON header, the data.
 */
#ifndef QKV_TESTS_TENSOR_FILE_H
#define QKV_TESTS_TENSOR_FILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct tensor_file tensor_file;

typedef struct file_tensor {
    const float *data;
    size_t count;
    int n_dims;
    int64_t shape[4];
} file_tensor;

/* NULL, and a line on standard error, when it cannot be read. */
tensor_file *tensor_file_open(const char *path);
void tensor_file_close(tensor_file *file);

/* 1, or 0 when there is no F32 tensor of that name within the file. */
int tensor_file_get(const tensor_file *file, const char *name, file_tensor *out);

/* A string of __metadata__, NULL when it is not there. */
const char *tensor_file_metadata(const tensor_file *file, const char *key);

#endif
