/*
 * Results and figures to files: gathers tensors and metadata, picks the format by the suffix, and
 * writes to a temporary name that is renamed when complete.
 */
#define _POSIX_C_SOURCE 200809L
#include "qkv/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "store/store_formats.h"

static const store_format *const formats[] = {&qkv_store_safetensors, &qkv_store_json,
                                              &qkv_store_npz, &qkv_store_npy};

int64_t qkv_store_tensor_size(const qkv_store_tensor *tensor) {
    int64_t size = 1;
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        const int64_t n = tensor->shape[d];
        if (n < 0 || (n > 0 && size > INT64_MAX / 16 / n)) return -1;
        size *= n;
    }
    return size;
}

const char *qkv_store_format(size_t index) {
    return index < sizeof formats / sizeof *formats ? formats[index]->suffix : NULL;
}

int qkv_store_name(char out[QKV_STORE_NAME_SIZE], size_t variant, qkv_site site, int32_t layer,
                   qkv_reduction reduction) {
    char place[32] = "";
    if (!out) return 0;
    out[0] = '\0';
    if (!qkv_site_name(site) || !qkv_reduction_name(reduction)) return 0;
    if (qkv_site_has_layer(site)) snprintf(place, sizeof place, ".%" PRId32, layer);
    snprintf(out, QKV_STORE_NAME_SIZE, "v%zu/%s%s%s%s", variant, qkv_site_name(site), place,
             reduction ? "." : "", reduction ? qkv_reduction_name(reduction) : "");
    return 1;
}

/* ---- one file ---- */

static int find_format(const store_format **out, const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        *out = formats[i];
        if (strcmp(name, formats[i]->suffix) == 0) return 1;
    }
    return 0;
}

static int format_of(const store_format **out, const char *path, qkv_error *err) {
    if (find_format(out, qkv_path_suffix(path))) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "%s: the suffix must be .safetensors, .json, .npz or .npy", path);
}

static int check_tensors(const store_content *content, qkv_error *err) {
    for (size_t i = 0; i < content->n_tensors; i++) {
        const qkv_store_tensor *tensor = &content->tensors[i];
        if (!tensor->name) return qkv_fail(err, QKV_ERR_ARGUMENT, "tensor %zu has no name", i);
        if (tensor->n_dims < 1 || tensor->n_dims > 3 || qkv_store_tensor_size(tensor) < 0) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "tensor %s has a shape that cannot be stored",
                            tensor->name);
        }
        if (!tensor->data && qkv_store_tensor_size(tensor) > 0) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "tensor %s has no values", tensor->name);
        }
        if (!qkv_utf8_valid(tensor->name, strlen(tensor->name))) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "tensor name %s is not UTF-8", tensor->name);
        }
    }
    return QKV_OK;
}

/* A file of two tensors with one name has lost one of them. */
static int check_names(const store_content *content, qkv_error *err) {
    const size_t n = content->n_tensors;
    const char *twice = NULL, **names = qkv_calloc(n, sizeof *names);
    if (!names) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) names[i] = content->tensors[i].name;
    qsort(names, n, sizeof *names, qkv_compare_strings);
    for (size_t i = 1; i < n && !twice; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) twice = names[i];
    }
    free(names);
    return twice ? qkv_fail(err, QKV_ERR_ARGUMENT, "there are two tensors named %s", twice)
                 : QKV_OK;
}

static int check_content(const store_content *content, const store_format *format, qkv_error *err) {
    int status = check_tensors(content, err);
    if (status == QKV_OK) status = check_names(content, err);
    return status == QKV_OK && format->check ? format->check(content, err) : status;
}

static int write_content(const store_content *content, const store_format *format, qkv_error *err) {
    qkv_output out;
    int status = check_content(content, format, err);
    if (status == QKV_OK) status = qkv_output_open(&out, content->path, err);
    if (status != QKV_OK) return status;
    status = format->write(content, out.stream, err);
    if (status == QKV_OK) return qkv_output_finish(&out, err);
    qkv_output_abandon(&out);
    return status;
}

/* The same bytes in memory. */
static int render_content(const store_content *content, const store_format *format, char **bytes,
                          size_t *n_bytes, qkv_error *err) {
    qkv_output out;
    int status = check_content(content, format, err);
    if (status == QKV_OK) status = qkv_output_open_memory(&out, err);
    if (status != QKV_OK) return status;
    status = format->write(content, out.stream, err);
    if (status == QKV_OK) return qkv_output_take(&out, bytes, n_bytes, err);
    qkv_output_abandon(&out);
    return status;
}

/* ---- tensors of a result ---- */

typedef struct named_tensors {
    qkv_store_tensor *items;
    char (*names)[QKV_STORE_NAME_SIZE];
    size_t n;
} named_tensors;

static size_t count_items(const qkv_result *result) {
    size_t n = 0;
    while (qkv_result_item(result, n, NULL, NULL, NULL, NULL)) n++;
    return n;
}

static int gather(named_tensors *all, const qkv_result *result, qkv_error *err) {
    const size_t n = count_items(result);
    all->items = qkv_calloc(n, sizeof *all->items);
    all->names = qkv_calloc(n, sizeof *all->names);
    if (!all->items || !all->names) return qkv_fail_memory(err);
    all->n = n;
    for (size_t i = 0; i < n; i++) {
        size_t variant;
        qkv_site site;
        int32_t layer;
        qkv_tensor tensor = QKV_TENSOR_INIT;
        qkv_result_item(result, i, &variant, &site, &layer, &tensor);
        qkv_store_name(all->names[i], variant, site, layer, tensor.reduction);
        all->items[i] = (qkv_store_tensor){.size = sizeof *all->items,
                                           .name = all->names[i],
                                           .data = tensor.data,
                                           .n_dims = tensor.n_dims};
        memcpy(all->items[i].shape, tensor.shape, sizeof tensor.shape);
    }
    return QKV_OK;
}

static void release(named_tensors *all) {
    free(all->items);
    free(all->names);
}

int qkv_store_check(const qkv_result *result, const char *path, qkv_error *err) {
    QKV_NEED(err, result);
    QKV_NEED(err, path);
    const store_format *format;
    named_tensors all = {0};
    int status = format_of(&format, path, err);
    if (status == QKV_OK) status = gather(&all, result, err);
    if (status == QKV_OK) {
        const store_content content = {all.items, all.n, NULL, path};
        status = check_content(&content, format, err);
    }
    release(&all);
    return status;
}

int qkv_store_write(const qkv_result *result, const qkv_plan *plan, const qkv_model *model,
                    const char *path, qkv_error *err) {
    QKV_NEED(err, result);
    QKV_NEED(err, plan);
    QKV_NEED(err, model);
    QKV_NEED(err, path);
    if (qkv_result_n_variants(result) != qkv_plan_n_variants(plan)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the result has %zu variants but the plan %zu",
                        qkv_result_n_variants(result), qkv_plan_n_variants(plan));
    }
    const store_format *format;
    named_tensors all = {0};
    json_t *metadata = NULL;
    int status = format_of(&format, path, err);
    if (status == QKV_OK) status = gather(&all, result, err);
    if (status == QKV_OK) status = qkv_store_metadata(&metadata, result, plan, model, err);
    if (status == QKV_OK) {
        const store_content content = {all.items, all.n, metadata, path};
        status = write_content(&content, format, err);
    }
    json_decref(metadata);
    release(&all);
    return status;
}

int qkv_store_render(const qkv_result *result, const qkv_plan *plan, const qkv_model *model,
                     const char *format, char **bytes, size_t *n_bytes, qkv_error *err) {
    const store_format *how;
    named_tensors all = {0};
    json_t *metadata = NULL;
    if (!result || !plan || !model || !format || !bytes || !n_bytes) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a result, its plan and model, a format and a place for bytes are needed");
    }
    *bytes = NULL;
    *n_bytes = 0;
    if (!find_format(&how, format)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: a result is safetensors, json, npz or npy",
                        format);
    }
    int status = gather(&all, result, err);
    if (status == QKV_OK) status = qkv_store_metadata(&metadata, result, plan, model, err);
    if (status == QKV_OK) {
        const store_content content = {all.items, all.n, metadata, format};
        status = render_content(&content, how, bytes, n_bytes, err);
    }
    json_decref(metadata);
    release(&all);
    return status;
}

int qkv_store_describe(const qkv_result *result, const qkv_plan *plan, const qkv_model *model,
                       char **json, qkv_error *err) {
    json_t *metadata = NULL;
    QKV_NEED(err, json);
    *json = NULL;
    QKV_NEED(err, result);
    QKV_NEED(err, plan);
    QKV_NEED(err, model);
    const int status = qkv_store_metadata(&metadata, result, plan, model, err);
    if (status != QKV_OK) return status;
    *json = qkv_json_dump(metadata, JSON_COMPACT);
    json_decref(metadata);
    return *json ? QKV_OK : qkv_fail_memory(err);
}

/* ---- tensors of a caller ---- */

/* Copies of the caller's structs, freed with release_content, also after a failure. */
static int make_content(store_content *content, const qkv_store_tensor *tensors, size_t n_tensors,
                        const char *const *metadata, size_t n_metadata, qkv_error *err) {
    void *copies = NULL;
    *content = (store_content){0};
    if ((n_tensors && !tensors) || (n_metadata && !metadata)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there are no tensors or no metadata to store");
    }
    const int status =
        qkv_sized_read_items(&copies, sizeof *tensors, tensors, n_tensors, "qkv_store_tensor", err);
    if (status != QKV_OK) return status;
    int failed = 0;
    *content = (store_content){copies, n_tensors, json_object(), NULL};
    for (size_t i = 0; i < n_metadata; i++) {
        if (!metadata[2 * i] || !metadata[2 * i + 1]) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "entry %zu of the metadata is NULL", i);
        }
        failed |= qkv_json_put(content->metadata, metadata[2 * i],
                               qkv_json_text(metadata[2 * i + 1])) != 0;
    }
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static void release_content(store_content *content) {
    json_decref(content->metadata);
    free((void *)content->tensors);
}

/* Of a path or a format; any other name is safetensors, as it always was. */
static const store_format *format_of_tensors(const char *path) {
    return strcmp(qkv_path_suffix(path), "npz") == 0 ? &qkv_store_npz : &qkv_store_safetensors;
}

int qkv_store_write_tensors(const qkv_store_tensor *tensors, size_t n_tensors,
                            const char *const *metadata, size_t n_metadata, const char *path,
                            qkv_error *err) {
    store_content content;
    int status = make_content(&content, tensors, n_tensors, metadata, n_metadata, err);
    content.path = path;
    if (status == QKV_OK && !path) status = qkv_fail(err, QKV_ERR_ARGUMENT, "there is no path");
    if (status == QKV_OK) status = write_content(&content, format_of_tensors(path), err);
    release_content(&content);
    return status;
}

int qkv_store_render_tensors(const qkv_store_tensor *tensors, size_t n_tensors,
                             const char *const *metadata, size_t n_metadata, char **bytes,
                             size_t *n_bytes, qkv_error *err) {
    return qkv_store_render_tensors_as(tensors, n_tensors, metadata, n_metadata, "safetensors",
                                       bytes, n_bytes, err);
}

int qkv_store_render_tensors_as(const qkv_store_tensor *tensors, size_t n_tensors,
                                const char *const *metadata, size_t n_metadata, const char *format,
                                char **bytes, size_t *n_bytes, qkv_error *err) {
    if (!bytes || !n_bytes) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no place for the bytes");
    }
    *bytes = NULL;
    *n_bytes = 0;
    const store_format *how;
    if (!format || !find_format(&how, format)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: tensors are safetensors, json, npz or npy",
                        format ? format : "no format");
    }
    store_content content;
    int status = make_content(&content, tensors, n_tensors, metadata, n_metadata, err);
    content.path = format;
    if (status == QKV_OK) status = render_content(&content, how, bytes, n_bytes, err);
    release_content(&content);
    return status;
}
