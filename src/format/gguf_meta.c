/*
 * Typed access to GGUF metadata. ggml's getters abort on the wrong type; these look at the type
 * first and answer with a message that names file and key.
 */
#include <math.h>
#include <string.h>

#include "format/gguf_file.h"

static int64_t find(const qkv_gguf *file, const char *key) {
    return gguf_find_key(file->parts[0].header, key);
}

/* One integer of whatever width at `data`; 0 when the type is not an integer. */
static int read_int(enum gguf_type type, const void *data, size_t index, int64_t *value) {
    switch (type) {
    case GGUF_TYPE_UINT8:
        *value = ((const uint8_t *)data)[index];
        return 1;
    case GGUF_TYPE_INT8:
        *value = ((const int8_t *)data)[index];
        return 1;
    case GGUF_TYPE_UINT16:
        *value = ((const uint16_t *)data)[index];
        return 1;
    case GGUF_TYPE_INT16:
        *value = ((const int16_t *)data)[index];
        return 1;
    case GGUF_TYPE_UINT32:
        *value = ((const uint32_t *)data)[index];
        return 1;
    case GGUF_TYPE_INT32:
        *value = ((const int32_t *)data)[index];
        return 1;
    case GGUF_TYPE_INT64:
        *value = ((const int64_t *)data)[index];
        return 1;
    case GGUF_TYPE_UINT64: {
        uint64_t big = ((const uint64_t *)data)[index];
        *value = big > INT64_MAX ? INT64_MAX : (int64_t)big;
        return 1;
    }
    default:
        return 0;
    }
}

static int read_int_array(const qkv_gguf *file, const char *key, int64_t id, int64_t *value,
                          qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    enum gguf_type type = gguf_get_arr_type(header, id);
    size_t n = gguf_get_arr_n(header, id);
    int64_t item = 0;
    if (type == GGUF_TYPE_STRING || type == GGUF_TYPE_ARRAY || n == 0 ||
        !read_int(type, gguf_get_arr_data(header, id), 0, value))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be an integer", file->path, key);
    for (size_t i = 1; i < n; i++) {
        read_int(type, gguf_get_arr_data(header, id), i, &item);
        if (item != *value)
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "%s: %s differs between layers (%lld and %lld), which is not supported",
                            file->path, key, (long long)*value, (long long)item);
    }
    return 1;
}

int qkv_gguf_int(const qkv_gguf *file, const char *key, int64_t low, int64_t high, int64_t *value,
                 qkv_error *err) {
    int64_t id = find(file, key);
    if (id < 0) return 0;
    const struct gguf_context *header = file->parts[0].header;
    enum gguf_type type = gguf_get_kv_type(header, id);
    if (type == GGUF_TYPE_ARRAY) {
        int status = read_int_array(file, key, id, value, err);
        if (status < 0) return status;
    } else if (type == GGUF_TYPE_STRING ||
               !read_int(type, gguf_get_val_data(header, id), 0, value)) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be an integer, not %s", file->path, key,
                        gguf_type_name(type));
    }
    if (*value < low || *value > high)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is %lld, outside %lld to %lld", file->path,
                        key, (long long)*value, (long long)low, (long long)high);
    return 1;
}

static int has_numbers(const qkv_gguf *file, const char *key, size_t n) {
    const struct gguf_context *header = file->parts[0].header;
    const int64_t id = find(file, key);
    const enum gguf_type type = gguf_get_arr_type(header, id);
    int64_t value;
    return gguf_get_arr_n(header, id) >= n && type != GGUF_TYPE_STRING && type != GGUF_TYPE_ARRAY &&
           read_int(type, gguf_get_arr_data(header, id), 0, &value);
}

int qkv_gguf_each(const qkv_gguf *file, const char *key, int64_t low, int64_t high, int32_t *out,
                  size_t n, qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    int64_t value = 0;
    if (!qkv_gguf_is_array(file, key)) {
        const int found = qkv_gguf_int(file, key, low, high, &value, err);
        for (size_t i = 0; found > 0 && i < n; i++) out[i] = (int32_t)value;
        return found;
    }
    const int64_t id = find(file, key);
    if (!has_numbers(file, key, n))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be an integer, or %zu of them",
                        file->path, key, n);
    for (size_t i = 0; i < n; i++) {
        read_int(gguf_get_arr_type(header, id), gguf_get_arr_data(header, id), i, &value);
        if (value < low || value > high)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s[%zu] is %lld, outside %lld to %lld",
                            file->path, key, i, (long long)value, (long long)low, (long long)high);
        out[i] = (int32_t)value;
    }
    return 1;
}

int qkv_gguf_float(const qkv_gguf *file, const char *key, double low, double high, double *value,
                   qkv_error *err) {
    int64_t id = find(file, key);
    if (id < 0) return 0;
    const struct gguf_context *header = file->parts[0].header;
    enum gguf_type type = gguf_get_kv_type(header, id);
    if (type == GGUF_TYPE_FLOAT32)
        *value = gguf_get_val_f32(header, id);
    else if (type == GGUF_TYPE_FLOAT64)
        *value = gguf_get_val_f64(header, id);
    else
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be a float, not %s", file->path, key,
                        gguf_type_name(type));
    if (!(*value >= low && *value <= high)) /* also refuses NaN */
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is %g, outside %g to %g", file->path, key,
                        *value, low, high);
    return 1;
}

int qkv_gguf_bool(const qkv_gguf *file, const char *key, int *value, qkv_error *err) {
    int64_t id = find(file, key);
    if (id < 0) return 0;
    if (gguf_get_kv_type(file->parts[0].header, id) != GGUF_TYPE_BOOL)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be true or false", file->path, key);
    *value = gguf_get_val_bool(file->parts[0].header, id);
    return 1;
}

int qkv_gguf_string(const qkv_gguf *file, const char *key, const char **value, qkv_error *err) {
    int64_t id = find(file, key);
    if (id < 0) return 0;
    if (gguf_get_kv_type(file->parts[0].header, id) != GGUF_TYPE_STRING)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be a string", file->path, key);
    *value = gguf_get_val_str(file->parts[0].header, id);
    return 1;
}

int qkv_gguf_is_array(const qkv_gguf *file, const char *key) {
    int64_t id = find(file, key);
    return id >= 0 && gguf_get_kv_type(file->parts[0].header, id) == GGUF_TYPE_ARRAY;
}

int qkv_gguf_flags(const qkv_gguf *file, const char *key, uint8_t *out, size_t n, qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    int64_t id = find(file, key), value = 0;
    enum gguf_type type = gguf_get_arr_type(header, id);
    int is_bool = type == GGUF_TYPE_BOOL;
    if (gguf_get_arr_n(header, id) != n || type == GGUF_TYPE_STRING || type == GGUF_TYPE_ARRAY ||
        !(is_bool || read_int(type, gguf_get_arr_data(header, id), 0, &value)))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be %zu times true or false", file->path,
                        key, n);
    for (size_t i = 0; i < n; i++) {
        if (is_bool)
            value = ((const int8_t *)gguf_get_arr_data(header, id))[i];
        else
            read_int(type, gguf_get_arr_data(header, id), i, &value);
        out[i] = value != 0;
    }
    return QKV_OK;
}

int qkv_gguf_floats(const qkv_gguf *file, const char *key, float *out, size_t n, qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    const int64_t id = find(file, key);
    int fits = id >= 0 && gguf_get_kv_type(header, id) == GGUF_TYPE_ARRAY &&
               gguf_get_arr_type(header, id) == GGUF_TYPE_FLOAT32 &&
               gguf_get_arr_n(header, id) == n;
    for (size_t i = 0; i < n && fits; i++) {
        out[i] = ((const float *)gguf_get_arr_data(header, id))[i];
        fits = isfinite(out[i]);
    }
    if (fits) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be %zu numbers", file->path, key, n);
}

int qkv_gguf_is_zero(const qkv_gguf *file, const char *key) {
    int64_t id = find(file, key), integer = 1;
    if (id < 0) return 1;
    const struct gguf_context *header = file->parts[0].header;
    switch (gguf_get_kv_type(header, id)) {
    case GGUF_TYPE_FLOAT32:
        return gguf_get_val_f32(header, id) == 0;
    case GGUF_TYPE_FLOAT64:
        return gguf_get_val_f64(header, id) == 0;
    case GGUF_TYPE_BOOL:
        return !gguf_get_val_bool(header, id);
    case GGUF_TYPE_STRING:
    case GGUF_TYPE_ARRAY:
        return 0;
    default:
        read_int(gguf_get_kv_type(header, id), gguf_get_val_data(header, id), 0, &integer);
        return integer == 0;
    }
}
