/*
 * JSON for small results, to be read by eye or by tools without a tensor library:
 *
 *     {"metadata": {key: value}, "tensors": {NAME: {"shape": [...], "data": nested arrays}}}
 *
 * Nine digits bring every float back exactly; what is not finite is null. Values are written row by
 * row, so that memory does not grow with the result. Refuses results of more than MOST_VALUES: as
 * text they are of no use to anybody.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "store/store_formats.h"

#define MOST_VALUES 2000000

static int check_json(const store_content *content, qkv_error *err) {
    int64_t total = 0;
    for (size_t i = 0; i < content->n_tensors; i++) {
        total += qkv_store_tensor_size(&content->tensors[i]);
        if (total > MOST_VALUES) {
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "%s would hold more than %d values; write .safetensors instead",
                            content->path, MOST_VALUES);
        }
    }
    return QKV_OK;
}

static int write_row(const float *values, int64_t n, FILE *stream) {
    json_t *row = json_array();
    for (int64_t i = 0; i < n; i++) qkv_json_push(row, qkv_json_real(values[i]));
    const int status = qkv_json_print(row, stream, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(row);
    return status == 0;
}

/* Rows of a matrix, or the single row of a vector. */
static int write_matrix(const float *values, int64_t n_rows, int64_t n_cols, int bracket,
                        FILE *stream) {
    int good = 1;
    if (bracket) fputc('[', stream);
    for (int64_t i = 0; i < n_rows && good; i++) {
        if (i) fputs(",\n", stream);
        good = write_row(values + i * n_cols, n_cols, stream);
    }
    if (bracket) fputc(']', stream);
    return good;
}

static int write_values(const qkv_store_tensor *tensor, FILE *stream) {
    const int32_t n_dims = tensor->n_dims;
    const int64_t n_matrices = n_dims == 3 ? tensor->shape[0] : 1;
    const int64_t n_rows = n_dims >= 2 ? tensor->shape[n_dims - 2] : 1;
    const int64_t n_cols = tensor->shape[n_dims - 1];
    int good = 1;
    if (n_dims == 3) fputc('[', stream);
    for (int64_t i = 0; i < n_matrices && good; i++) {
        if (i) fputs(",\n", stream);
        good =
            write_matrix(tensor->data + i * n_rows * n_cols, n_rows, n_cols, n_dims >= 2, stream);
    }
    if (n_dims == 3) fputc(']', stream);
    return good;
}

static int write_name(const char *text, FILE *stream) {
    json_t *name = qkv_json_text(text);
    const int status = qkv_json_print(name, stream, JSON_ENCODE_ANY);
    json_decref(name);
    return status == 0;
}

static int write_tensor(const qkv_store_tensor *tensor, FILE *stream) {
    int good = write_name(tensor->name, stream);
    fputs(": {\"shape\": [", stream);
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        fprintf(stream, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
    }
    fputs("], \"data\":\n", stream);
    good = good && write_values(tensor, stream);
    fputc('}', stream);
    return good;
}

/* A line for every key, however long its list. */
static int write_metadata(const json_t *metadata, FILE *stream) {
    const char *key, *comma = "\n";
    json_t *value;
    int good = 1;
    fputs("{\"metadata\": {", stream);
    json_object_foreach((json_t *)metadata, key, value) {
        fprintf(stream, "%s  ", comma);
        good &= write_name(key, stream);
        fputs(": ", stream);
        good &= qkv_json_print(value, stream, JSON_ENCODE_ANY | JSON_COMPACT) == 0;
        comma = ",\n";
    }
    fputs("\n}", stream);
    return good;
}

static int write_json(const store_content *content, FILE *stream, qkv_error *err) {
    if (!write_metadata(content->metadata, stream)) return qkv_fail_memory(err);
    fputs(",\n\"tensors\": {", stream);
    for (size_t i = 0; i < content->n_tensors; i++) {
        fputs(i ? ",\n" : "\n", stream);
        if (!write_tensor(&content->tensors[i], stream)) return qkv_fail_memory(err);
    }
    fputs("\n}}\n", stream);
    return QKV_OK;
}

const store_format qkv_store_json = {"json", check_json, write_json};
