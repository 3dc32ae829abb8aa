#include "base/sized.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static size_t size_of(const void *object) {
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

/* No struct is this large: what was never initialised is found, mostly. */
enum { MOST = 65536 };

static int check_size(size_t size, const char *name, qkv_error *err) {
    if (size >= sizeof(size_t) && size <= MOST) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "%s has no size: initialise it with its _INIT", name);
}

int qkv_sized_read(void *to, size_t size, const void *from, const char *name, qkv_error *err) {
    if (!from) return QKV_OK;
    const size_t given = size_of(from);
    const int status = check_size(given, name, err);
    if (status != QKV_OK) return status;
    for (size_t i = size; i < given; i++) {
        if (((const unsigned char *)from)[i] == 0) continue;
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s sets a field that this version of the library does not know", name);
    }
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &size, sizeof size);
    return QKV_OK;
}

int qkv_sized_read_item(void *to, size_t size, const void *items, size_t index, const char *name,
                        qkv_error *err) {
    const size_t stride = size_of(items);
    const int status = check_size(stride, name, err);
    if (status != QKV_OK) return status;
    const void *item = (const char *)items + index * stride;
    if (size_of(item) == stride) return qkv_sized_read(to, size, item, name, err);
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "%s %zu of a list has another size than the first: initialise all with _INIT",
                    name, index);
}

int qkv_sized_read_items(void **out, size_t size, const void *items, size_t n, const char *name,
                         qkv_error *err) {
    *out = NULL;
    if (n && !items) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no list of %s", name);
    char *copies = qkv_calloc(n, size);
    if (!copies) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const int status = qkv_sized_read_item(copies + i * size, size, items, i, name, err);
        if (status == QKV_OK) continue;
        free(copies);
        return status;
    }
    *out = copies;
    return QKV_OK;
}

int qkv_sized_write(void *to, const void *from, size_t size, const char *name, qkv_error *err) {
    const size_t room = size_of(to);
    const int status = check_size(room, name, err);
    if (status != QKV_OK) return status;
    memset((char *)to + sizeof room, 0, room - sizeof room);
    const size_t n = room < size ? room : size;
    memcpy((char *)to + sizeof room, (const char *)from + sizeof room, n - sizeof room);
    return QKV_OK;
}
