/*
 * Files of tensors read back. Safetensors and NumPy's files stay mapped, their arrays in one kind of
 * list; a result as JSON becomes such a list of F64 values of its own.
 */
#include "qkv/store_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "format/json_read.h"
#include "format/numpy.h"
#include "format/safetensors.h"

/* Of a result as JSON, of which store_json.c writes no more than two million values. */
#define MAX_JSON ((size_t)256 << 20)
/* Of what a file says about itself. */
#define MAX_METADATA ((size_t)64 << 20)

struct qkv_store_reader {
    const char *format;
    qkv_mapping map;
    qkv_st_list list;
    double **owned; /* the values of JSON, list.count of them */
    char *metadata;
};

/* ---- metadata ---- */

static json_t *load(const char *text, size_t length, json_error_t *where) {
    return qkv_json_parse(text, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, where);
}

/* A text that is the JSON of a list or an object stands for that. It is parsed as a part of something,
 * which it will be: one that is nested too deeply for a part stays a text. NULL when memory is short. */
static json_t *meaning(json_t *value) {
    const char *text = json_string_value(value);
    if (!text || (*text != '[' && *text != '{')) return json_incref(value);
    qkv_text part = {0};
    json_error_t where;
    qkv_text_printf(&part, "[%s]", text);
    json_t *list = part.failed ? NULL : load(part.data, part.length, &where);
    json_t *meant = json_array_size(list) == 1 ? json_array_get(list, 0) : value;
    if (part.failed || qkv_json_lacked_memory(list, &where)) meant = NULL;
    json_incref(meant);
    json_decref(list);
    qkv_text_release(&part);
    return meant;
}

static int take_metadata(qkv_store_reader *file, json_t *given, int are_texts, qkv_error *err) {
    json_t *all = json_object(), *value;
    const char *key;
    int failed = !all;
    json_object_foreach(given, key, value) {
        json_t *meant = are_texts ? meaning(value) : json_incref(value);
        failed |= qkv_json_put(all, key, meant) != 0;
    }
    file->metadata = failed ? NULL : qkv_json_dump(all, JSON_COMPACT);
    json_decref(all);
    return file->metadata ? QKV_OK : qkv_fail_memory(err);
}

static int read_metadata(qkv_store_reader *file, qkv_json_span text, int are_texts,
                         const char *path, qkv_error *err) {
    if (text.length > MAX_METADATA)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: its metadata is too large", path);
    json_error_t where;
    json_t *given = text.length ? load(text.text, text.length, &where) : NULL;
    if (text.length && qkv_json_lacked_memory(given, &where)) return qkv_fail_memory(err);
    if (text.length && !json_is_object(given)) {
        json_decref(given);
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: its metadata is not a JSON object", path);
    }
    const int status = take_metadata(file, given, are_texts, err);
    json_decref(given);
    return status;
}

/* ---- JSON ---- */

/* Appends the numbers of nested lists; 0 where there is anything else, or too many. */
static int flatten(const json_t *value, int depth, double *to, size_t most, size_t *n) {
    if (depth == 0) {
        if (*n == most || !(json_is_number(value) || json_is_null(value))) return 0;
        to[(*n)++] = json_is_null(value) ? NAN : json_number_value(value);
        return 1;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!flatten(json_array_get(value, i), depth - 1, to, most, n)) return 0;
    }
    return json_is_array(value);
}

static int read_json_shape(qkv_st_tensor *t, const json_t *shape, size_t limit) {
    const size_t n_dims = json_array_size(shape);
    size_t count = 1;
    if (n_dims < 1 || n_dims > QKV_ST_MAX_DIMS) return 0;
    for (size_t d = 0; d < n_dims; d++) {
        const json_t *number = json_array_get(shape, d);
        const json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;
        if (n < 0 || (size_t)n > limit || (n && count > limit / (size_t)n)) return 0;
        t->shape[d] = n;
        count *= (size_t)n;
    }
    t->n_dims = (int)n_dims;
    t->size = count * sizeof(double);
    return 1;
}

static int add_json_tensor(qkv_store_reader *file, const char *name, const json_t *entry,
                           size_t limit, const char *path, qkv_error *err) {
    qkv_st_tensor t = {.dtype = "F64", .type = GGML_TYPE_COUNT};
    size_t n = 0;
    if (!read_json_shape(&t, json_object_get(entry, "shape"), limit))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %.100s has no shape", path, name);
    const size_t count = t.size / sizeof(double);
    double *values = qkv_calloc(count ? count : 1, sizeof *values);
    t.name = qkv_strdup(name);
    t.data = (const unsigned char *)values;
    if (!values || !t.name ||
        !QKV_PUSH(file->list.items, file->list.capacity, file->list.count, t)) {
        free(values);
        free(t.name);
        return qkv_fail_memory(err);
    }
    file->owned[file->list.count - 1] = values;
    if (flatten(json_object_get(entry, "data"), t.n_dims, values, count, &n) && n == count)
        return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: the values of %.100s are not as its shape says", path,
                    name);
}

static int read_json(qkv_store_reader *file, const char *path, qkv_error *err) {
    const size_t size = file->map.size;
    json_error_t where = {0};
    json_t *json = size <= MAX_JSON ? load((const char *)file->map.data, size, &where) : NULL,
           *entry;
    json_t *tensors = json_object_get(json, "tensors");
    const char *name;
    int status = QKV_OK;
    file->format = "json";
    if (qkv_json_lacked_memory(json, &where)) {
        status = qkv_fail_memory(err);
    } else if (!json_is_object(tensors)) {
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          json ? "%s holds no tensors" : "%s is malformed JSON", path);
    } else {
        file->owned = qkv_calloc(json_object_size(tensors) + 1, sizeof *file->owned);
        if (!file->owned) status = qkv_fail_memory(err);
    }
    json_object_foreach(tensors, name, entry) {
        if (status == QKV_OK) status = add_json_tensor(file, name, entry, size, path, err);
    }
    if (status == QKV_OK) status = qkv_st_sort(&file->list, path, err); /* owned has no order */
    if (status == QKV_OK) status = take_metadata(file, json_object_get(json, "metadata"), 0, err);
    json_decref(json);
    return status;
}

/* ---- the others ---- */

static int read_npz(qkv_store_reader *file, const char *path, qkv_error *err) {
    qkv_json_span metadata;
    file->format = "npz";
    int status = qkv_npz_read(&file->list, &file->map, path, &metadata, err);
    if (status == QKV_OK) status = qkv_st_sort(&file->list, path, err);
    return status == QKV_OK ? read_metadata(file, metadata, 0, path, err) : status;
}

static int read_npy(qkv_store_reader *file, const char *path, qkv_error *err) {
    file->format = "npy";
    const int status =
        qkv_npy_read(&file->list, file->map.data, file->map.size, qkv_path_base(path), path, err);
    return status == QKV_OK ? take_metadata(file, NULL, 0, err) : status;
}

static int read_safetensors(qkv_store_reader *file, const char *path, qkv_error *err) {
    qkv_json_span metadata;
    file->format = "safetensors";
    int status = qkv_safetensors_read(&file->list, &file->map, path, 0, err);
    if (status == QKV_OK) status = qkv_st_sort(&file->list, path, err);
    if (status == QKV_OK) status = qkv_safetensors_metadata(&file->map, path, &metadata, err);
    return status == QKV_OK ? read_metadata(file, metadata, 1, path, err) : status;
}

static int read_file(qkv_store_reader *file, const char *path, qkv_error *err) {
    const unsigned char *data = file->map.data;
    const size_t size = file->map.size;
    if (qkv_is_npy(data, size)) return read_npy(file, path, err);
    if (qkv_is_npz(data, size)) return read_npz(file, path, err);
    if (size && (data[0] == '{' || qkv_is_space((char)data[0])) && qkv_begins_as_text(data, size))
        return read_json(file, path, err);
    return read_safetensors(file, path, err);
}

int qkv_store_reader_open(qkv_store_reader **out, const char *path, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, path);
    qkv_store_reader *file = qkv_calloc(1, sizeof *file);
    if (!file) return qkv_fail_memory(err);
    int status = qkv_mapping_open(&file->map, path, err);
    if (status == QKV_OK) status = read_file(file, path, err);
    if (status == QKV_OK) {
        *out = file;
        return QKV_OK;
    }
    qkv_store_reader_close(file);
    return status;
}

void qkv_store_reader_close(qkv_store_reader *file) {
    if (!file) return;
    for (size_t i = 0; file->owned && i < file->list.count; i++) free(file->owned[i]);
    free(file->owned);
    free(file->metadata);
    qkv_st_release(&file->list);
    qkv_mapping_close(&file->map);
    free(file);
}

const char *qkv_store_reader_format(const qkv_store_reader *file) {
    return file ? file->format : NULL;
}

const char *qkv_store_reader_metadata(const qkv_store_reader *file) {
    return file ? file->metadata : NULL;
}

static int64_t count_values(const qkv_st_tensor *t) {
    int64_t n = 1;
    for (int d = 0; d < t->n_dims; d++) n *= t->shape[d];
    return n;
}

int qkv_store_reader_item(const qkv_store_reader *file, size_t index, qkv_store_item *item) {
    if (!file || index >= file->list.count) return 0;
    const qkv_st_tensor *t = &file->list.items[index];
    qkv_store_item filled = {.size = sizeof filled,
                             .name = t->name,
                             .type = t->dtype,
                             .n_dims = t->n_dims,
                             .n_values = count_values(t)};
    for (int d = 0; d < t->n_dims; d++) filled.shape[d] = t->shape[d];
    if (!item) return 1;
    return qkv_sized_write(item, &filled, sizeof filled, "qkv_store_item", NULL) == QKV_OK;
}

int qkv_store_reader_values(const qkv_store_reader *file, size_t index, int64_t first, int64_t n,
                            double *values, qkv_error *err) {
    QKV_NEED(err, file);
    if (index >= file->list.count)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no tensor %zu", index);
    const qkv_st_tensor *t = &file->list.items[index];
    if (first < 0 || n < 0 || first > count_values(t) || n > count_values(t) - first)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "tensor %s has no such values", t->name);
    if (n) QKV_NEED(err, values);
    for (int64_t i = 0; i < n; i++) values[i] = qkv_st_value(t, (size_t)(first + i));
    return QKV_OK;
}

const void *qkv_store_reader_data(const qkv_store_reader *file, size_t index) {
    return file && index < file->list.count ? file->list.items[index].data : NULL;
}
