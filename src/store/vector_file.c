/* Vectors that edits take from safetensors files: @FILE#TENSOR. */
#include <stdlib.h>
#include <string.h>

#include "base/edit_words.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "format/safetensors.h"
#include "qkv/edit_data.h"
#include "run/run.h"

/* A vector for every token of a long prompt at the width of a vocabulary is smaller. */
#define MAX_VALUES ((size_t)1 << 28)

static int fail_tensor(const qkv_st_list *list, const char *path, const char *name,
                       qkv_error *err) {
    enum { MOST_NAMES = 20 };
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    for (size_t i = 0; i < list->count; i++) {
        qkv_nearest_try(&near, list->items[i].name);
        if (i >= MOST_NAMES) continue;
        qkv_text_puts(&known, i ? ", " : "");
        qkv_text_append_short(&known, list->items[i].name, strlen(list->items[i].name), 40);
    }
    if (list->count > MOST_NAMES)
        qkv_text_printf(&known, " and %zu more", list->count - MOST_NAMES);
    const int status =
        qkv_fail(err, QKV_ERR_ARGUMENT, "%s has no tensor '%.100s'%s; it has %s", path, name,
                 qkv_nearest_hint(&near), known.data ? known.data : "none");
    qkv_text_release(&known);
    return status;
}

static int take_tensor(qkv_edit_data *data, const char *path, const char *as,
                       const qkv_st_tensor *tensor, qkv_error *err) {
    const size_t n = tensor->size / (strcmp(tensor->dtype, "F32") == 0 ? 4 : 2);
    if (strcmp(tensor->dtype, "F32") != 0 && strcmp(tensor->dtype, "F16") != 0 &&
        strcmp(tensor->dtype, "BF16") != 0)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: tensor %.100s has the type %s; a vector is F32, F16 or BF16", path,
                        tensor->name, tensor->dtype);
    if (tensor->n_dims < 1 || tensor->n_dims > QKV_VECTOR_MAX_DIMS || n > MAX_VALUES)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%s: tensor %.100s has %d dimensions and %zu values; a vector has 1 to %d "
                        "dimensions and at most %zu values",
                        path, tensor->name, tensor->n_dims, n, QKV_VECTOR_MAX_DIMS, MAX_VALUES);
    float *values = qkv_calloc(n, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) values[i] = (float)qkv_st_value(tensor, i);
    const int status =
        qkv_edit_data_add_vector(data, as, values, tensor->shape, tensor->n_dims, err);
    free(values);
    return status;
}

static int read_file(qkv_edit_data *data, const char *path, const char *tensor, const char *as,
                     qkv_error *err) {
    qkv_mapping map;
    qkv_st_list list = {0};
    int status = qkv_mapping_open(&map, path, err);
    if (status != QKV_OK) return status;
    status = qkv_safetensors_read(&list, &map, path, 0, err);
    if (status == QKV_OK) status = qkv_st_sort(&list, path, err);
    if (status == QKV_OK) {
        const qkv_st_tensor *found = qkv_st_find(&list, tensor);
        status =
            found ? take_tensor(data, path, as, found, err) : fail_tensor(&list, path, tensor, err);
    }
    qkv_st_release(&list);
    qkv_mapping_close(&map);
    return status;
}

static int find_vector(const qkv_edit_data *data, const char *name, qkv_vector_info *info) {
    for (size_t i = 0; qkv_edit_data_vector(data, i, info); i++) {
        if (strcmp(info->name, name) == 0) return 1;
    }
    return 0;
}

/* One of a name that is there already must be the same: edits could not tell the two apart. */
static int read_again(const qkv_edit_data *data, const char *path, const char *tensor,
                      const char *as, qkv_error *err) {
    qkv_edit_data *other = NULL;
    qkv_vector_info have = QKV_VECTOR_INFO_INIT, read = QKV_VECTOR_INFO_INIT;
    int status = qkv_edit_data_new(&other, err);
    if (status == QKV_OK) status = read_file(other, path, tensor, as, err);
    if (status == QKV_OK && (!find_vector(data, as, &have) || !find_vector(other, as, &read) ||
                             strcmp(have.hash, read.hash) != 0))
        status =
            qkv_fail(err, QKV_ERR_ARGUMENT,
                     "two different vectors would be named %s: give the files other names", as);
    qkv_edit_data_free(other);
    return status;
}

static int read_vector(qkv_edit_data *data, const char *name, size_t length, qkv_error *err) {
    qkv_vector_info info = QKV_VECTOR_INFO_INIT;
    char *path = qkv_strndup(name, length);
    char *mark = path ? strchr(path, '#') : NULL;
    qkv_text as = {0};
    int status = path ? QKV_OK : qkv_fail_memory(err);
    if (mark) {
        *mark = '\0';
        qkv_text_printf(&as, "%s#%s", qkv_path_base(path), mark + 1);
        if (as.failed)
            status = qkv_fail_memory(err);
        else if (!*path || !mark[1])
            status = qkv_fail(err, QKV_ERR_SYNTAX, "a vector of a file is @FILE#NAME, not '@%.*s'",
                              (int)length, name);
        else if (find_vector(data, as.data, &info))
            status = read_again(data, path, mark + 1, as.data, err);
        else
            status = read_file(data, path, mark + 1, as.data, err);
    }
    qkv_text_release(&as);
    free(path);
    return status;
}

int qkv_edit_data_read_vectors(qkv_edit_data *data, const char *edits, qkv_error *err) {
    QKV_NEED(err, data);
    QKV_NEED(err, edits);
    size_t length = 0;
    int status = QKV_OK;
    for (const char *name = qkv_vector_name_next(edits, &length); name && status == QKV_OK;
         name = qkv_vector_name_next(name, &length))
        status = read_vector(data, name, length, err);
    return status;
}
