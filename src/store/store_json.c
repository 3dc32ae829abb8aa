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
#include "base/number.h"
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
    for (int64_t i = 0; i < n; i++) json_array_append_new(row, qkv_json_real(values[i]));
    const int failed = !row || (int64_t)json_array_size(row) != n;
    const qkv_locale host = qkv_locale_enter();
    if (!failed) json_dumpf(row, stream, JSON_COMPACT | JSON_REAL_PRECISION(9));
    qkv_locale_leave(host);
    json_decref(row);
    return !failed;
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

static int write_tensor(const qkv_store_tensor *tensor, FILE *stream) {
    json_t *name = qkv_json_text(tensor->name);
    if (!name) return 0;
    json_dumpf(name, stream, JSON_ENCODE_ANY);
    json_decref(name);
    fputs(": {\"shape\": [", stream);
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        fprintf(stream, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
    }
    fputs("], \"data\":\n", stream);
    const int good = write_values(tensor, stream);
    fputc('}', stream);
    return good;
}

/* A line for every key, however long its list. */
static void write_metadata(const json_t *metadata, FILE *stream) {
    const char *key, *comma = "\n";
    json_t *value;
    fputs("{\"metadata\": {", stream);
    json_object_foreach((json_t *)metadata, key, value) {
        json_t *name = qkv_json_text(key);
        fprintf(stream, "%s  ", comma);
        json_dumpf(name, stream, JSON_ENCODE_ANY);
        fputs(": ", stream);
        json_dumpf(value, stream, JSON_ENCODE_ANY | JSON_COMPACT);
        json_decref(name);
        comma = ",\n";
    }
    fputs("\n}", stream);
}

static int write_json(const store_content *content, FILE *stream, qkv_error *err) {
    write_metadata(content->metadata, stream);
    fputs(",\n\"tensors\": {", stream);
    for (size_t i = 0; i < content->n_tensors; i++) {
        fputs(i ? ",\n" : "\n", stream);
        if (!write_tensor(&content->tensors[i], stream)) return qkv_fail_memory(err);
    }
    fputs("\n}}\n", stream);
    return QKV_OK;
}

const store_format qkv_store_json = {"json", check_json, write_json};
