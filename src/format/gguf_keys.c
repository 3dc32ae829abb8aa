/*
 * A look at the keys of a GGUF header before ggml reads it.
 *
 * ggml compares every key with every other one, byte by byte, and so takes half a minute for a few
 * thousand keys of some kilobytes that begin alike. No real key has more than a hundred bytes. What
 * is malformed or cut off is left to ggml, which says so.
 */
#include "format/gguf_file.h"

#define MAX_KEY 256 /* bytes */

typedef struct cursor {
    const unsigned char *at, *end;
} cursor;

static int skip(cursor *c, uint64_t bytes) {
    if (bytes > (uint64_t)(c->end - c->at)) return 0;
    c->at += bytes;
    return 1;
}

static int take(cursor *c, int n, uint64_t *value) {
    const unsigned char *bytes = c->at;
    if (!skip(c, (uint64_t)n)) return 0;
    *value = qkv_little_endian(bytes, n);
    return 1;
}

static int skip_string(cursor *c) {
    uint64_t length;
    return take(c, 8, &length) && skip(c, length);
}

/* Bytes of a value; 0: it is not of one size. */
static uint64_t size_of(uint64_t type) {
    static const unsigned char sizes[GGUF_TYPE_COUNT] = {
        [GGUF_TYPE_UINT8] = 1, [GGUF_TYPE_INT8] = 1,    [GGUF_TYPE_UINT16] = 2,
        [GGUF_TYPE_INT16] = 2, [GGUF_TYPE_UINT32] = 4,  [GGUF_TYPE_INT32] = 4,
        [GGUF_TYPE_BOOL] = 1,  [GGUF_TYPE_FLOAT32] = 4, [GGUF_TYPE_UINT64] = 8,
        [GGUF_TYPE_INT64] = 8, [GGUF_TYPE_FLOAT64] = 8,
    };
    return type < GGUF_TYPE_COUNT ? sizes[type] : 0;
}

static int skip_array(cursor *c) {
    uint64_t type, count;
    if (!take(c, 4, &type) || !take(c, 8, &count)) return 0;
    if (size_of(type)) return count <= (uint64_t)(c->end - c->at) && skip(c, count * size_of(type));
    if (type != GGUF_TYPE_STRING) return 0;
    while (count > 0 && skip_string(c)) count--;
    return count == 0;
}

static int skip_value(cursor *c) {
    uint64_t type;
    if (!take(c, 4, &type)) return 0;
    if (type == GGUF_TYPE_ARRAY) return skip_array(c);
    if (type == GGUF_TYPE_STRING) return skip_string(c);
    return size_of(type) && skip(c, size_of(type));
}

int qkv_gguf_check_keys(const qkv_gguf_part *part, size_t start, uint64_t n_keys, qkv_error *err) {
    cursor c = {part->map.data + start, part->map.data + part->map.size};
    for (uint64_t i = 0; i < n_keys; i++) {
        uint64_t length;
        if (!take(&c, 8, &length)) break;
        if (length > MAX_KEY)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: key %llu of the header has %llu bytes; at most %d are accepted",
                            part->path, (unsigned long long)i, (unsigned long long)length, MAX_KEY);
        if (!skip(&c, length) || !skip_value(&c)) break;
    }
    return QKV_OK;
}
