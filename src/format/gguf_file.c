/* Opening GGUF files: mapping, header, bounds of every tensor, the parts of a split model. */
#define _POSIX_C_SOURCE 200809L
#include "format/gguf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/split_name.h"
#include "format/ggml_log.h"
#include "ggml.h"

/* ggml compares every name with every other one: four times as many take half a minute, and no model
 * has them. */
#define MAX_TENSORS 16384
#define MAX_KEYS 4096
#define MAX_PARTS 1000
#define HEADER_SIZE 24

uint64_t qkv_little_endian(const unsigned char *bytes, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static int is_of_directory(const char *path) {
    const char *suffix = qkv_path_suffix(path);
    return strcmp(suffix, "safetensors") == 0 || strcmp(suffix, "json") == 0;
}

static int check_fixed_header(const qkv_gguf_part *part, qkv_error *err) {
    const unsigned char *data = part->map.data;
    const char *path = part->path;
    if (part->map.size < 4 || memcmp(data, "GGUF", 4) != 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is not a GGUF file%s", path,
                        is_of_directory(path) ? "; a Hugging Face model is named by its directory"
                                              : "");
    if (part->map.size < HEADER_SIZE)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is cut off inside its header", path);
    uint64_t version = qkv_little_endian(data + 4, 4);
    if (version < 2 || version > 3)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: GGUF version %llu; versions 2 and 3 are supported", path,
                        (unsigned long long)version);
    uint64_t tensors = qkv_little_endian(data + 8, 8), keys = qkv_little_endian(data + 16, 8);
    if (tensors > MAX_TENSORS || keys > MAX_KEYS)
        return qkv_fail(
            err, QKV_ERR_FORMAT,
            "%s: the header claims %llu tensors and %llu keys; at most %d and %d are accepted",
            path, (unsigned long long)tensors, (unsigned long long)keys, MAX_TENSORS, MAX_KEYS);
    return qkv_gguf_check_keys(part, HEADER_SIZE, keys, err);
}

/* ggml's reader lets shapes pass whose product does not fit 64 bits when what is left of it is 0 or
 * negative; sizes and bounds then mean nothing. No element takes less than a bit. */
static int holds_elements(const int64_t ne[4], size_t bytes) {
    uint64_t most = (uint64_t)bytes * 8, n = 1;
    for (int i = 0; i < 4; i++) {
        if (ne[i] == 0) return 1;
    }
    for (int i = 0; i < 4; i++) {
        if ((uint64_t)ne[i] > most / n) return 0;
        n *= (uint64_t)ne[i];
    }
    return 1;
}

static int check_tensor_bounds(const qkv_gguf_part *part, qkv_error *err) {
    size_t start = gguf_get_data_offset(part->header);
    int64_t n = gguf_get_n_tensors(part->header);
    for (int64_t i = 0; i < n; i++) {
        const char *name = gguf_get_tensor_name(part->header, i);
        size_t offset = gguf_get_tensor_offset(part->header, i);
        size_t size = gguf_get_tensor_size(part->header, i);
        if (!holds_elements(gguf_get_tensor_ne(part->header, i), part->map.size) ||
            start > part->map.size || offset > part->map.size - start ||
            size > part->map.size - start - offset)
            return qkv_fail(
                err, QKV_ERR_FORMAT,
                "%s: tensor %s lies beyond the end of the file; is the download complete?",
                part->path, name);
    }
    return QKV_OK;
}

static int open_part(qkv_gguf_part *part, const char *path, qkv_error *err) {
    part->path = qkv_strdup(path);
    if (!part->path) return qkv_fail_memory(err);
    int status = qkv_mapping_open(&part->map, path, err);
    if (status == QKV_OK) status = check_fixed_header(part, err);
    if (status != QKV_OK) return status;

    /* ggml says what is wrong with a header through its log. */
    qkv_ggml_log_enter();
    qkv_ggml_log_clear();
    struct gguf_init_params params = {.no_alloc = true, .ctx = NULL};
    part->header = gguf_init_from_buffer(part->map.data, part->map.size, params);
    qkv_ggml_log_leave();
    const char *why = qkv_ggml_log_first();
    if (!part->header)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: malformed or cut-off GGUF header%s%s", path,
                        why[0] ? ": " : "", why);
    return check_tensor_bounds(part, err);
}

/* Parts that were renamed, swapped or taken from another model would show as missing tensors: say
 * what is wrong instead. Each part is asked before the next one is opened, so that a name alone
 * does not make us open a thousand files. */
static int check_split_keys(const qkv_gguf_part *opened, size_t i, size_t n_parts, qkv_error *err) {
    qkv_gguf_part alone = *opened;
    const qkv_gguf part = {.parts = &alone, .n_parts = 1, .path = opened->path};
    int64_t count = 1, number = (int64_t)i;
    int found = qkv_gguf_int(&part, "split.count", 0, 65535, &count, err);
    if (found >= 0) found = qkv_gguf_int(&part, "split.no", 0, 65535, &number, err);
    if (found < 0) return found;
    if (count <= 1 && n_parts == 1) return QKV_OK;
    if ((size_t)count != n_parts)
        return qkv_fail(
            err, QKV_ERR_FORMAT,
            "%s belongs to a split model of %lld files but its name says %zu; give the parts "
            "their original names (…-00001-of-%05lld.gguf) and keep them together",
            part.path, (long long)count, n_parts, (long long)count);
    if ((size_t)number != i)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s says that it is part %lld of its model, not %zu",
                        part.path, (long long)number + 1, i + 1);
    return QKV_OK;
}

/* Part i, of a split model or the only one. */
static int add_part(qkv_gguf *file, const char *path, const qkv_split_name *split, int i,
                    qkv_error *err) {
    char *name = qkv_strdup(path);
    if (!name) return qkv_fail_memory(err);
    const int count = split->count;
    if (count) qkv_split_name_write(name, split, i + 1);
    qkv_gguf_part *part = &file->parts[file->n_parts++];
    int status = open_part(part, name, err);
    free(name);
    if (count && err && status == QKV_ERR_IO)
        return qkv_fail(err, status, "%s (part %d of %d of a split model)", err->message, i + 1,
                        count);
    return status == QKV_OK ? check_split_keys(part, (size_t)i, count ? (size_t)count : 1, err)
                            : status;
}

/* Opens the parts of a split model, whichever of them was named. */
static int open_parts(qkv_gguf *file, const char *path, qkv_error *err) {
    qkv_split_name split;
    if (!qkv_split_name_read(&split, path) || split.count > MAX_PARTS) split.count = 0;
    const int n = split.count ? split.count : 1;
    int status = QKV_OK;
    file->parts = qkv_calloc((size_t)n, sizeof *file->parts);
    if (!file->parts) return qkv_fail_memory(err);
    for (int i = 0; i < n && status == QKV_OK; i++) status = add_part(file, path, &split, i, err);
    file->path = file->parts[0].path;
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const qkv_gguf_tensor *const *)a)->name,
                  (*(const qkv_gguf_tensor *const *)b)->name);
}

static int sort_tensors(qkv_gguf *file, qkv_error *err) {
    file->by_name = qkv_calloc(file->n_tensors, sizeof *file->by_name);
    if (!file->by_name) return qkv_fail_memory(err);
    for (size_t i = 0; i < file->n_tensors; i++) file->by_name[i] = &file->tensors[i];
    if (file->n_tensors > 1)
        qsort((void *)file->by_name, file->n_tensors, sizeof *file->by_name, by_name);
    for (size_t i = 1; i < file->n_tensors; i++) {
        if (by_name(&file->by_name[i - 1], &file->by_name[i]) == 0)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %s is there twice", file->path,
                            file->by_name[i]->name);
    }
    return QKV_OK;
}

static qkv_gguf_tensor tensor_of(const qkv_gguf_part *part, int64_t id) {
    const struct gguf_context *header = part->header;
    qkv_gguf_tensor t = {
        .name = gguf_get_tensor_name(header, id),
        .type = gguf_get_tensor_type(header, id),
        .size = gguf_get_tensor_size(header, id),
        .data = part->map.data + gguf_get_data_offset(header) + gguf_get_tensor_offset(header, id),
    };
    memcpy(t.ne, gguf_get_tensor_ne(header, id), sizeof t.ne);
    return t;
}

static int list_tensors(qkv_gguf *file, qkv_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < file->n_parts; i++)
        n += (size_t)gguf_get_n_tensors(file->parts[i].header);
    file->tensors = qkv_calloc(n, sizeof *file->tensors);
    if (!file->tensors) return qkv_fail_memory(err);
    for (size_t i = 0; i < file->n_parts; i++) {
        int64_t n_in_part = gguf_get_n_tensors(file->parts[i].header);
        for (int64_t id = 0; id < n_in_part; id++) {
            file->tensors[file->n_tensors] = tensor_of(&file->parts[i], id);
            file->tensors[file->n_tensors++].part = i;
        }
    }
    return QKV_OK;
}

static int open_files(qkv_gguf *file, const char *path, qkv_error *err) {
    const int status = open_parts(file, path, err);
    return status == QKV_OK ? list_tensors(file, err) : status;
}

int qkv_gguf_build(qkv_gguf **out, const char *path,
                   int (*fill)(qkv_gguf *file, const char *path, qkv_error *err), qkv_error *err) {
    *out = NULL;
    qkv_gguf *file = qkv_calloc(1, sizeof *file);
    if (!file) return qkv_fail_memory(err);
    int status = fill(file, path, err);
    if (status == QKV_OK) status = sort_tensors(file, err);
    if (status != QKV_OK) {
        qkv_gguf_free(file);
        return status;
    }
    *out = file;
    return QKV_OK;
}

int qkv_gguf_open(qkv_gguf **out, const char *path, qkv_error *err) {
    return qkv_gguf_build(out, path, open_files, err);
}

int qkv_gguf_add_notice(qkv_gguf *file, qkv_text *text, qkv_error *err) {
    if (!text->failed && text->data &&
        QKV_PUSH(file->notices, file->notices_capacity, file->n_notices, text->data)) {
        *text = (qkv_text){0};
        return QKV_OK;
    }
    qkv_text_release(text);
    return qkv_fail_memory(err);
}

void qkv_gguf_free(qkv_gguf *file) {
    if (!file) return;
    for (size_t i = 0; i < file->n_notices; i++) free(file->notices[i]);
    free(file->notices);
    for (size_t i = 0; i < file->n_parts; i++) {
        if (file->parts[i].header) gguf_free(file->parts[i].header);
        qkv_mapping_close(&file->parts[i].map);
        free(file->parts[i].path);
    }
    if (file->free_source) file->free_source(file->source);
    free(file->parts);
    free((void *)file->by_name);
    free(file->tensors);
    free(file);
}

uint64_t qkv_gguf_size(const qkv_gguf *file) {
    uint64_t size = 0;
    for (size_t i = 0; i < file->n_parts; i++) size += file->parts[i].map.size;
    return size;
}

size_t qkv_gguf_n_tensors(const qkv_gguf *file) {
    return file->n_tensors;
}

void qkv_gguf_get_tensor(const qkv_gguf *file, size_t index, qkv_gguf_tensor *out) {
    *out = file->tensors[index];
}

int qkv_gguf_find_tensor(const qkv_gguf *file, const char *name, qkv_gguf_tensor *out) {
    const qkv_gguf_tensor wanted = {.name = name}, *key = &wanted;
    if (file->n_tensors == 0) return 0;
    const qkv_gguf_tensor **found = bsearch((const void *)&key, (const void *)file->by_name,
                                            file->n_tensors, sizeof *file->by_name, by_name);
    if (found) *out = **found;
    return found != NULL;
}

void qkv_gguf_load(const qkv_gguf_tensor *t, void *out) {
    if (t->data)
        memcpy(out, t->data, t->size);
    else
        t->maker->make(t->maker, t, out);
}
