/*
 * A GGUF file, or all the parts of a split one, mapped and checked; or something else that is made
 * to look like one (qkv_gguf_build), tensors that no file has as they are included.
 *
 * ggml's own reader parses the header; this file adds what ggml leaves to its callers: the bounds
 * of every tensor, sane counts, the set of parts, and typed access to metadata that fails with a
 * message instead of aborting.
 */
#ifndef QKV_FORMAT_GGUF_FILE_H
#define QKV_FORMAT_GGUF_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#include "gguf.h"

typedef struct qkv_gguf_part {
    char *path;
    qkv_mapping map;
    struct gguf_context *header;
} qkv_gguf_part;

struct qkv_gguf_tensor;

/* Makes the bytes of a tensor that no file has as it is. Part of a struct that knows how. */
typedef struct qkv_gguf_maker {
    void (*make)(const struct qkv_gguf_maker *maker, const struct qkv_gguf_tensor *t, void *out);
} qkv_gguf_maker;

/* What a tensor is and where it lies. */
typedef struct qkv_gguf_tensor {
    const char *name;
    enum ggml_type type;
    int64_t ne[4];
    const unsigned char *data; /* inside the mapping of its part; NULL: it has to be made */
    size_t size;
    size_t part;
    const qkv_gguf_maker *maker; /* how to make it */
} qkv_gguf_tensor;

typedef struct qkv_gguf {
    qkv_gguf_part *parts; /* metadata is in parts[0] */
    size_t n_parts;
    const char *path; /* for messages: of parts[0], or of the directory */
    qkv_gguf_tensor *tensors;
    size_t n_tensors;
    const qkv_gguf_tensor **by_name;
    void *source; /* what a file that was built owns besides, else NULL */
    void (*free_source)(void *source);
    /* Rows of W_q and W_k are in the original model's order, also where GGUF files of the family
     * have them reordered. */
    int original_order;
    char **notices; /* what the user of the file should know: one line each */
    size_t n_notices, notices_capacity;
} qkv_gguf;

int qkv_gguf_open(qkv_gguf **out, const char *path, qkv_error *err);
/* The same for something that is not a GGUF file: `fill` provides parts, path and tensors. */
int qkv_gguf_build(qkv_gguf **out, const char *path,
                   int (*fill)(qkv_gguf *file, const char *path, qkv_error *err), qkv_error *err);
void qkv_gguf_free(qkv_gguf *file);

/* Adds a notice; the text is the file's from here on, also after a failure. */
int qkv_gguf_add_notice(qkv_gguf *file, qkv_text *text, qkv_error *err);

/* gguf_keys.c: refuses keys that ggml would take too long to compare; `start` is where the first of
 * them is. */
int qkv_gguf_check_keys(const qkv_gguf_part *part, size_t start, uint64_t n_keys, qkv_error *err);
uint64_t qkv_little_endian(const unsigned char *bytes, int n);

/* In bytes, all parts. */
uint64_t qkv_gguf_size(const qkv_gguf *file);

size_t qkv_gguf_n_tensors(const qkv_gguf *file);
void qkv_gguf_get_tensor(const qkv_gguf *file, size_t index, qkv_gguf_tensor *out);
/* 1 and *out, or 0 when there is no such tensor. */
int qkv_gguf_find_tensor(const qkv_gguf *file, const char *name, qkv_gguf_tensor *out);
/* Copies the tensor's t->size bytes, or makes them. */
void qkv_gguf_load(const qkv_gguf_tensor *t, void *out);

/* Metadata. Each returns 1 when the key is there with a value in [low, high], 0 when it is absent,
 * and a negative status when it is there but has the wrong type or is out of range. Integers of
 * every width are accepted; an array of integers is accepted where all its elements are equal
 * (llama.cpp writes some numbers once per layer). */
int qkv_gguf_int(const qkv_gguf *file, const char *key, int64_t low, int64_t high, int64_t *value,
                 qkv_error *err);
/* A number for each of n: the first elements of an array, or n times the one number. */
int qkv_gguf_each(const qkv_gguf *file, const char *key, int64_t low, int64_t high, int32_t *out,
                  size_t n, qkv_error *err);
int qkv_gguf_float(const qkv_gguf *file, const char *key, double low, double high, double *value,
                   qkv_error *err);
int qkv_gguf_bool(const qkv_gguf *file, const char *key, int *value, qkv_error *err);
/* The string belongs to the file. */
int qkv_gguf_string(const qkv_gguf *file, const char *key, const char **value, qkv_error *err);
/* n values of an array of integers or booleans, as 0 and 1. */
int qkv_gguf_flags(const qkv_gguf *file, const char *key, uint8_t *out, size_t n, qkv_error *err);
/* n finite values of an array of F32, which must be there. */
int qkv_gguf_floats(const qkv_gguf *file, const char *key, float *out, size_t n, qkv_error *err);
int qkv_gguf_is_array(const qkv_gguf *file, const char *key);
/* 1 when the key is absent, or holds the number 0 or false. */
int qkv_gguf_is_zero(const qkv_gguf *file, const char *key);

#endif
