/*
 * Reading the headers of safetensors files, entry by entry: a tree of a whole header can take eighty
 * times its size.
 */
#include "format/safetensors.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/json_read.h"
#include "format/json_scan.h"

/* The format's own limit for the header. */
#define MAX_HEADER (100u << 20)
#define MAX_TENSORS (1u << 18)
#define MAX_ENTRY 4096 /* bytes of a name, or of what is said about a tensor */

/* X(name, bytes, ggml's type) */
#define DTYPE_LIST(X)                                                                              \
    X(F32, 4, GGML_TYPE_F32)                                                                       \
    X(F16, 2, GGML_TYPE_F16)                                                                       \
    X(BF16, 2, GGML_TYPE_BF16)                                                                     \
    X(BOOL, 1, GGML_TYPE_COUNT)                                                                    \
    X(U8, 1, GGML_TYPE_COUNT)                                                                      \
    X(I8, 1, GGML_TYPE_COUNT)                                                                      \
    X(F8_E5M2, 1, GGML_TYPE_COUNT)                                                                 \
    X(F8_E4M3, 1, GGML_TYPE_COUNT)                                                                 \
    X(I16, 2, GGML_TYPE_COUNT)                                                                     \
    X(U16, 2, GGML_TYPE_COUNT)                                                                     \
    X(I32, 4, GGML_TYPE_COUNT)                                                                     \
    X(U32, 4, GGML_TYPE_COUNT)                                                                     \
    X(F64, 8, GGML_TYPE_COUNT)                                                                     \
    X(I64, 8, GGML_TYPE_COUNT)                                                                     \
    X(U64, 8, GGML_TYPE_COUNT)

static const struct dtype {
    const char *name;
    size_t bytes;
    enum ggml_type type;
} dtypes[] = {
#define DTYPE_ENTRY(name, bytes, type) {#name, bytes, type},
    DTYPE_LIST(DTYPE_ENTRY)
#undef DTYPE_ENTRY
};

typedef struct header {
    const char *path;
    const unsigned char *data; /* after the JSON */
    size_t size;               /* of the data */
    size_t part;
} header;

static const struct dtype *find_dtype(const char *name) {
    for (size_t i = 0; name && i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    }
    return NULL;
}

/* Shape into `t`; its number of elements into *count. */
static int read_shape(qkv_st_tensor *t, const header *h, json_t *shape, uint64_t *count,
                      qkv_error *err) {
    if (!json_is_array(shape) || json_array_size(shape) > QKV_ST_MAX_DIMS)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: the shape of tensor %.100s is not a list of at most %d numbers",
                        h->path, t->name, QKV_ST_MAX_DIMS);
    t->n_dims = (int)json_array_size(shape);
    *count = 1;
    for (int i = 0; i < t->n_dims; i++) {
        const json_t *number = json_array_get(shape, (size_t)i);
        json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;
        if (n < 0 || (n > 0 && *count > (uint64_t)INT64_MAX / (uint64_t)n))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: the shape of tensor %.100s is implausible",
                            h->path, t->name);
        t->shape[i] = n;
        *count *= (uint64_t)n;
    }
    return QKV_OK;
}

static int read_place(qkv_st_tensor *t, const header *h, json_t *offsets, qkv_error *err) {
    json_int_t begin = -1, end = -1;
    if (json_is_array(offsets) && json_array_size(offsets) == 2) {
        const json_t *a = json_array_get(offsets, 0), *b = json_array_get(offsets, 1);
        if (json_is_integer(a) && json_is_integer(b))
            begin = json_integer_value(a), end = json_integer_value(b);
    }
    if (begin < 0 || end < begin)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: the data_offsets of tensor %.100s are not two rising numbers", h->path,
                        t->name);
    if ((uint64_t)end > h->size)
        return qkv_fail(
            err, QKV_ERR_FORMAT,
            "%s: tensor %.100s lies beyond the end of the file; is the download complete?", h->path,
            t->name);
    t->data = h->data + begin;
    t->size = (size_t)(end - begin);
    t->part = h->part;
    return QKV_OK;
}

static int read_tensor(qkv_st_tensor *t, const header *h, json_t *entry, qkv_error *err) {
    const struct dtype *dtype = find_dtype(json_string_value(json_object_get(entry, "dtype")));
    if (!dtype)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %.100s has no type that is known here",
                        h->path, t->name);
    t->dtype = dtype->name;
    t->type = dtype->type;
    uint64_t count = 0;
    int status = read_shape(t, h, json_object_get(entry, "shape"), &count, err);
    if (status == QKV_OK) status = read_place(t, h, json_object_get(entry, "data_offsets"), err);
    if (status != QKV_OK) return status;
    if (count > UINT64_MAX / dtype->bytes || count * dtype->bytes != t->size)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: tensor %.100s has %zu bytes, which is not what its shape and type %s "
                        "take",
                        h->path, t->name, t->size, t->dtype);
    return QKV_OK;
}

static int fail_header(const header *h, const char *why, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: its header is not a JSON object%s", h->path, why);
}

static json_t *load_span(qkv_json_span span) {
    if (span.length > MAX_ENTRY) return NULL;
    return qkv_json_load(span.text, span.length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

static int add_entry(qkv_st_list *list, const header *h, const char *name, json_t *entry,
                     qkv_error *err) {
    if (list->count >= MAX_TENSORS)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: more than %u tensors", h->path, MAX_TENSORS);
    qkv_st_tensor t = {.name = qkv_strdup(name)};
    if (!t.name || !QKV_PUSH(list->items, list->capacity, list->count, t)) {
        free(t.name);
        return qkv_fail_memory(err);
    }
    return read_tensor(&list->items[list->count - 1], h, entry, err);
}

static int read_entries(qkv_st_list *list, const header *h, qkv_json_span json, qkv_error *err) {
    qkv_json_scan scan;
    qkv_json_span key, value;
    int more, status = QKV_OK;
    if (!qkv_json_open(&scan, json) || !scan.is_object) return fail_header(h, "", err);
    while (status == QKV_OK && (more = qkv_json_next(&scan, &key, &value)) != 0) {
        if (more < 0) return fail_header(h, ": malformed", err);
        if (qkv_json_equals(key, "__metadata__")) continue;
        json_t *name = load_span(key), *entry = load_span(value);
        status = name && entry
                     ? add_entry(list, h, json_string_value(name), entry, err)
                     : fail_header(h, " of tensors: an entry is malformed or too long", err);
        json_decref(name);
        json_decref(entry);
    }
    return status;
}

static int by_place(const void *a, const void *b) {
    const qkv_st_tensor *x = *(const qkv_st_tensor *const *)a,
                        *y = *(const qkv_st_tensor *const *)b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

/* No byte belongs to two tensors. */
static int check_overlap(const qkv_st_list *list, size_t first, const char *path, qkv_error *err) {
    size_t n = list->count - first;
    const qkv_st_tensor **order = qkv_calloc(n, sizeof *order);
    if (!order) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) order[i] = &list->items[first + i];
    qsort(order, n, sizeof *order, by_place);
    int status = QKV_OK;
    for (size_t i = 1; i < n && status == QKV_OK; i++) {
        if (order[i - 1]->data + order[i - 1]->size > order[i]->data)
            status =
                qkv_fail(err, QKV_ERR_FORMAT, "%s: tensors %.100s and %.100s lie over each other",
                         path, order[i - 1]->name, order[i]->name);
    }
    free(order);
    return status;
}

/* The JSON of a mapped file. */
static int find_json(const qkv_mapping *map, const char *path, qkv_json_span *json,
                     size_t *json_size, qkv_error *err) {
    uint64_t length = 0;
    if (map->size < 8) return qkv_fail(err, QKV_ERR_FORMAT, "%s is not a safetensors file", path);
    for (int i = 7; i >= 0; i--) length = length << 8 | map->data[i];
    if (length > MAX_HEADER || length > map->size - 8)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s is not a safetensors file, or is cut off inside its header", path);
    *json = qkv_json_whole((const char *)map->data + 8, (size_t)length);
    *json_size = (size_t)length; /* with the spaces after it, which the span leaves out */
    return QKV_OK;
}

int qkv_safetensors_metadata(const qkv_mapping *map, const char *path, qkv_json_span *metadata,
                             qkv_error *err) {
    qkv_json_span json, key, value;
    qkv_json_scan scan;
    size_t size;
    *metadata = (qkv_json_span){0};
    const int status = find_json(map, path, &json, &size, err);
    if (status != QKV_OK) return status;
    if (!qkv_json_open(&scan, json) || !scan.is_object) return QKV_OK;
    while (qkv_json_next(&scan, &key, &value) > 0) {
        if (qkv_json_equals(key, "__metadata__")) *metadata = value;
    }
    return QKV_OK;
}

#define READ_AS(name, type_)                                                                       \
    if (strcmp(t->dtype, name) == 0) {                                                             \
        type_ value;                                                                               \
        memcpy(&value, t->data + i * sizeof value, sizeof value);                                  \
        return (double)value;                                                                      \
    }

double qkv_st_value(const qkv_st_tensor *t, size_t i) {
    uint16_t half;
    READ_AS("F32", float)
    READ_AS("F64", double)
    READ_AS("U8", uint8_t)
    READ_AS("BOOL", uint8_t)
    READ_AS("I8", int8_t)
    READ_AS("I16", int16_t)
    READ_AS("U16", uint16_t)
    READ_AS("I32", int32_t)
    READ_AS("U32", uint32_t)
    READ_AS("I64", int64_t)
    READ_AS("U64", uint64_t)
    if (strcmp(t->dtype, "F16") != 0 && strcmp(t->dtype, "BF16") != 0) return NAN;
    memcpy(&half, t->data + 2 * i, sizeof half);
    return t->dtype[0] == 'F' ? (double)ggml_fp16_to_fp32(half)
                              : (double)ggml_bf16_to_fp32((ggml_bf16_t){half});
}
#undef READ_AS

int qkv_safetensors_read(qkv_st_list *list, const qkv_mapping *map, const char *path, size_t part,
                         qkv_error *err) {
    qkv_json_span json;
    size_t json_size;
    int status = find_json(map, path, &json, &json_size, err);
    if (status != QKV_OK) return status;
    const header h = {.path = path,
                      .data = map->data + 8 + json_size,
                      .size = map->size - 8 - json_size,
                      .part = part};
    size_t first = list->count;
    status = read_entries(list, &h, json, err);
    if (status == QKV_OK) status = check_overlap(list, first, path, err);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const qkv_st_tensor *)a)->name, ((const qkv_st_tensor *)b)->name);
}

int qkv_st_sort(qkv_st_list *list, const char *path, qkv_error *err) {
    if (list->count > 1) qsort(list->items, list->count, sizeof *list->items, by_name);
    for (size_t i = 1; i < list->count; i++) {
        const qkv_st_tensor *a = &list->items[i - 1], *b = &list->items[i];
        if (strcmp(a->name, b->name) == 0)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %.100s is %s", path, b->name,
                            a->part == b->part ? "twice in one file" : "in two files");
    }
    return QKV_OK;
}

qkv_st_tensor *qkv_st_find(const qkv_st_list *list, const char *name) {
    const qkv_st_tensor key = {.name = (char *)name};
    if (list->count == 0) return NULL;
    return bsearch(&key, list->items, list->count, sizeof *list->items, by_name);
}

void qkv_st_release(qkv_st_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->items[i].name);
    free(list->items);
    *list = (qkv_st_list){0};
}
