#include "format/numpy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_HEADER = 4096, LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22 };
#define METADATA_NAME "__metadata__"

static uint64_t little_endian(const unsigned char *at, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

/* ---- one array ---- */

/* The header's text and what is after it. */
typedef struct npy {
    char header[MAX_HEADER + 1];
    const unsigned char *data;
    size_t size;
    const char *name, *path;
} npy;

int qkv_is_npy(const unsigned char *data, size_t size) {
    return size >= 10 && memcmp(data, "\x93NUMPY", 6) == 0;
}

static int fail_npy(const npy *a, const char *why, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: the array %.100s %s", a->path, a->name, why);
}

static int open_npy(npy *a, const unsigned char *data, size_t size, qkv_error *err) {
    if (!qkv_is_npy(data, size)) return fail_npy(a, "is not as NumPy writes them", err);
    const size_t width = data[6] == 1 ? 2 : 4, start = 8 + width;
    if (data[6] < 1 || data[6] > 3 || size < start)
        return fail_npy(a, "has a version that is not known", err);
    const uint64_t length = little_endian(data + 8, (int)width);
    if (length > MAX_HEADER || length > size - start)
        return fail_npy(a, "is cut off inside its header", err);
    memcpy(a->header, data + start, length);
    a->header[length] = '\0';
    a->data = data + start + length;
    a->size = size - start - (size_t)length;
    return QKV_OK;
}

/* What follows a key of the dictionary; NULL without it. */
static const char *value_of(const npy *a, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(a->header, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

/* "(2, 3)", "(5,)" or "()". */
static int read_shape(const npy *a, qkv_st_tensor *t, uint64_t *count, qkv_error *err) {
    const char *at = value_of(a, "shape");
    *count = 1;
    if (!at || *at++ != '(') return fail_npy(a, "has no shape", err);
    while (*at != ')') {
        char *end = NULL;
        const unsigned long long n = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;
        if (!end || t->n_dims == QKV_ST_MAX_DIMS || n > INT64_MAX ||
            (n && *count > (uint64_t)INT64_MAX / n))
            return fail_npy(a, "has an implausible shape", err);
        t->shape[t->n_dims++] = (int64_t)n;
        *count *= n;
        at = end + strspn(end, ", ");
    }
    return QKV_OK;
}

static const struct {
    const char *descr, *dtype;
    size_t bytes;
} types[] = {{"<f4", "F32", 4}, {"<f8", "F64", 8}, {"<f2", "F16", 2}, {"|b1", "BOOL", 1},
             {"|u1", "U8", 1},  {"|i1", "I8", 1},  {"<i2", "I16", 2}, {"<u2", "U16", 2},
             {"<i4", "I32", 4}, {"<u4", "U32", 4}, {"<i8", "I64", 8}, {"<u8", "U64", 8}};

static int read_type(const npy *a, qkv_st_tensor *t, size_t *bytes, qkv_error *err) {
    const char *at = value_of(a, "descr"), *order = value_of(a, "fortran_order");
    if (!at || *at++ != '\'') return fail_npy(a, "does not hold plain numbers", err);
    if (!order || strncmp(order, "False", 5) != 0)
        return fail_npy(a, "is stored by columns; save it with numpy.ascontiguousarray", err);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t n = strlen(types[i].descr);
        if (strncmp(at, types[i].descr, n) != 0 || at[n] != '\'') continue;
        t->dtype = types[i].dtype;
        *bytes = types[i].bytes;
        return QKV_OK;
    }
    return fail_npy(a, "has a type that is not known here", err);
}

int qkv_npy_read(qkv_st_list *list, const unsigned char *data, size_t size, const char *name,
                 const char *path, qkv_error *err) {
    npy a = {.name = name, .path = path};
    qkv_st_tensor t = {.type = GGML_TYPE_COUNT};
    uint64_t count = 0;
    size_t bytes = 0;
    int status = open_npy(&a, data, size, err);
    if (status == QKV_OK) status = read_type(&a, &t, &bytes, err);
    if (status == QKV_OK) status = read_shape(&a, &t, &count, err);
    if (status != QKV_OK) return status;
    if (count > a.size / bytes) return fail_npy(&a, "is cut off", err);
    t.data = a.data;
    t.size = (size_t)count * bytes;
    t.name = qkv_strdup(name);
    if (t.name && QKV_PUSH(list->items, list->capacity, list->count, t)) return QKV_OK;
    free(t.name);
    return qkv_fail_memory(err);
}

/* ---- archives ---- */

int qkv_is_npz(const unsigned char *data, size_t size) {
    return size >= END_SIZE && memcmp(data, "PK\x03\x04", 4) == 0;
}

static int fail_npz(const char *path, const char *why, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s", path, why);
}

/* The record at the end; NULL without one. A comment may follow it. */
static const unsigned char *find_end(const qkv_mapping *map) {
    const size_t furthest = END_SIZE + 65535;
    for (size_t back = END_SIZE; back <= map->size && back <= furthest; back++) {
        const unsigned char *at = map->data + map->size - back;
        if (memcmp(at, "PK\x05\x06", 4) == 0) return at;
    }
    return NULL;
}

/* The bytes of one file of the archive, by its central record. */
static int find_member(const qkv_mapping *map, const unsigned char *central, const char *path,
                       const unsigned char **data, size_t *size, qkv_error *err) {
    const uint64_t stored = little_endian(central + 20, 4), at = little_endian(central + 42, 4);
    if (little_endian(central + 10, 2) != 0)
        return fail_npz(path, "the archive is compressed; save it with numpy.savez", err);
    if (stored == UINT32_MAX || at == UINT32_MAX)
        return fail_npz(path, "the archive is larger than 4 GiB, which is not read", err);
    if (at + LOCAL_SIZE > map->size || memcmp(map->data + at, "PK\x03\x04", 4) != 0)
        return fail_npz(path, "the archive is malformed", err);
    const unsigned char *local = map->data + at;
    const uint64_t begin =
        at + LOCAL_SIZE + little_endian(local + 26, 2) + little_endian(local + 28, 2);
    if (begin > map->size || stored > map->size - begin)
        return fail_npz(path, "the archive is cut off", err);
    *data = map->data + begin;
    *size = (size_t)stored;
    return QKV_OK;
}

static int read_member(qkv_st_list *list, const qkv_mapping *map, const unsigned char *central,
                       const char *path, qkv_json_span *metadata, qkv_error *err) {
    const unsigned char *data = NULL;
    size_t size = 0, length = (size_t)little_endian(central + 28, 2);
    char name[512];
    int status = find_member(map, central, path, &data, &size, err);
    if (status != QKV_OK) return status;
    if (length >= 4 && memcmp(central + CENTRAL_SIZE + length - 4, ".npy", 4) == 0) length -= 4;
    if (length >= sizeof name) return fail_npz(path, "a name in the archive is too long", err);
    memcpy(name, central + CENTRAL_SIZE, length);
    name[length] = '\0';
    if (strcmp(name, METADATA_NAME) != 0) return qkv_npy_read(list, data, size, name, path, err);
    npy a = {.name = name, .path = path};
    status = open_npy(&a, data, size, err);
    if (status == QKV_OK) *metadata = qkv_json_whole((const char *)a.data, a.size);
    return status;
}

int qkv_npz_read(qkv_st_list *list, const qkv_mapping *map, const char *path,
                 qkv_json_span *metadata, qkv_error *err) {
    *metadata = (qkv_json_span){0};
    const unsigned char *end = find_end(map);
    if (!end) return fail_npz(path, "the archive has no end; is it complete?", err);
    const size_t limit = (size_t)(end - map->data);
    const uint64_t n = little_endian(end + 10, 2);
    uint64_t at = little_endian(end + 16, 4);
    int status = QKV_OK;
    for (uint64_t i = 0; i < n && status == QKV_OK; i++) {
        if (at + CENTRAL_SIZE > limit || memcmp(map->data + at, "PK\x01\x02", 4) != 0)
            return fail_npz(path, "the archive is malformed", err);
        const unsigned char *central = map->data + at;
        const uint64_t name = little_endian(central + 28, 2);
        const uint64_t next = at + CENTRAL_SIZE + name + little_endian(central + 30, 2) +
                              little_endian(central + 32, 2);
        if (next > limit) return fail_npz(path, "the archive is malformed", err);
        status = read_member(list, map, central, path, metadata, err);
        at = next;
    }
    return status;
}
