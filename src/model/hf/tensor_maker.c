/*
 * How tensors of a directory become those of a GGUF file where their bytes cannot be used as they
 * are. A maker first says what comes out (type and shape), when the model is opened; it is made when
 * somebody needs it. Whatever shape a file claims is checked in the first step, so that the second
 * cannot fail.
 */
#include <string.h>

#include "model/hf/hf.h"

static int fail_shape(const qkv_st_tensor *t, const char *wanted, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "tensor %.100s has %d axes; %s", t->name, t->n_dims,
                    wanted);
}

/* The type of a source's elements must be one of ggml's. */
static int check_source(const qkv_st_tensor *t, qkv_error *err) {
    if (t->type == GGML_TYPE_COUNT)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "tensor %.100s is stored as %s; F32, F16 and BF16 are supported", t->name,
                        t->dtype);
    if (t->n_dims > 4) return fail_shape(t, "at most 4 are supported", err);
    if (t->size == 0) return qkv_fail(err, QKV_ERR_FORMAT, "tensor %.100s is empty", t->name);
    return QKV_OK;
}

/* What comes out is shaped as the source. */
static int plan_like(const qkv_st_tensor *t, qkv_gguf_tensor *out, qkv_error *err) {
    int status = check_source(t, err);
    if (status != QKV_OK) return status;
    out->type = t->type;
    out->size = t->size;
    for (int i = 0; i < 4; i++) out->ne[i] = i < t->n_dims ? t->shape[t->n_dims - 1 - i] : 1;
    return QKV_OK;
}

/* ---- as it is ---- */

static int plan_copy(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    int status = plan_like(r->sources[0], out, err);
    return status == QKV_OK ? 1 : status;
}

static void make_copy(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    memcpy(out, r->sources[0]->data, t->size);
}

const qkv_maker_kind qkv_maker_copy = {plan_copy, make_copy};

/* ---- transposed ---- */

static int plan_transpose(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = r->sources[0];
    int status = plan_like(t, out, err);
    if (status != QKV_OK) return status;
    if (t->n_dims == 1) return 1;
    if (t->n_dims > 3) return fail_shape(t, "a matrix or a stack of them was expected", err);
    int64_t rows = out->ne[1];
    out->ne[1] = out->ne[0];
    out->ne[0] = rows;
    return QKV_OK;
}

/* out[c][r] = in[r][first + c * step] for `columns` columns. */
static void transpose(unsigned char *out, const unsigned char *in, size_t element, int64_t rows,
                      int64_t width, int64_t first, int64_t step, int64_t columns) {
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            memcpy(out + (size_t)(c * rows + r) * element,
                   in + (size_t)(r * width + first + c * step) * element, element);
        }
    }
}

static void make_transpose(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    const size_t element = ggml_type_size(t->type);
    const size_t matrix = (size_t)(t->ne[0] * t->ne[1]) * element;
    for (int64_t i = 0; i < t->ne[2]; i++)
        transpose((unsigned char *)out + (size_t)i * matrix,
                  r->sources[0]->data + (size_t)i * matrix, element, t->ne[0], t->ne[1], 0, 1,
                  t->ne[1]);
}

const qkv_maker_kind qkv_maker_transpose = {plan_transpose, make_transpose};

/* ---- 1 + w ---- */

static int plan_plus_one(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    int status = plan_like(r->sources[0], out, err);
    if (status != QKV_OK) return status;
    out->size = out->size / ggml_type_size(out->type) * sizeof(float);
    out->type = GGML_TYPE_F32;
    return QKV_OK;
}

static void make_plus_one(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    const qkv_st_tensor *source = r->sources[0];
    float *values = out;
    const int64_t n = (int64_t)(t->size / sizeof(float));
    if (source->type == GGML_TYPE_F32)
        memcpy(values, source->data, t->size);
    else
        ggml_get_type_traits(source->type)->to_float(source->data, values, n);
    for (int64_t i = 0; i < n; i++) values[i] += 1;
}

const qkv_maker_kind qkv_maker_plus_one = {plan_plus_one, make_plus_one};

/* ---- stacked ---- */

static int plan_stack(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *first = r->sources[0];
    int status = plan_like(first, out, err);
    if (status != QKV_OK) return status;
    if (first->n_dims > 3) return fail_shape(first, "at most 3 can be stacked", err);
    for (size_t i = 1; i < r->n_sources; i++) {
        const qkv_st_tensor *t = r->sources[i];
        if (t->type != first->type || t->n_dims != first->n_dims ||
            memcmp(t->shape, first->shape, sizeof t->shape) != 0)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "tensors %.100s and %.100s should have one type and shape", first->name,
                            t->name);
    }
    out->ne[first->n_dims] = (int64_t)r->n_sources;
    out->size *= r->n_sources;
    return QKV_OK;
}

static void make_stack(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    const size_t each = t->size / r->n_sources;
    for (size_t i = 0; i < r->n_sources; i++)
        memcpy((unsigned char *)out + i * each, r->sources[i]->data, each);
}

const qkv_maker_kind qkv_maker_stack = {plan_stack, make_stack};

/* ---- fused heads, group by group ---- */

static int plan_ungroup(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = r->sources[0];
    int status = plan_like(t, out, err);
    if (status != QKV_OK) return status;
    const int64_t heads = r->n_head + 2 * (int64_t)r->n_kv_head;
    if (t->n_dims > 2) return fail_shape(t, "a matrix or a vector was expected", err);
    if (t->shape[0] % heads != 0)
        return qkv_fail(
            err, QKV_ERR_FORMAT,
            "tensor %.100s has %lld rows, which do not divide among %d query and 2 x %d "
            "key and value heads",
            t->name, (long long)t->shape[0], r->n_head, r->n_kv_head);
    return QKV_OK;
}

static void make_ungroup(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    const size_t n_head = (size_t)r->n_head, n_group = (size_t)r->n_kv_head;
    const size_t per_group = n_head / n_group; /* queries */
    const size_t head = t->size / (n_head + 2 * n_group);
    const unsigned char *in = r->sources[0]->data;
    unsigned char *q = out, *k = q + n_head * head, *v = k + n_group * head;
    for (size_t g = 0; g < n_group; g++) {
        memcpy(q, in, per_group * head);
        memcpy(k, in + per_group * head, head);
        memcpy(v, in + (per_group + 1) * head, head);
        q += per_group * head;
        k += head;
        v += head;
        in += (per_group + 2) * head;
    }
}

const qkv_maker_kind qkv_maker_ungroup = {plan_ungroup, make_ungroup};

/* ---- fused heads, in four blocks ---- */

static int plan_from_quarters(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = r->sources[0];
    int status = plan_like(t, out, err);
    if (status != QKV_OK) return status;
    if (t->n_dims > 2) return fail_shape(t, "a matrix or a vector was expected", err);
    if (t->shape[0] % 12 != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "tensor %.100s has %lld rows, which are not four blocks of three parts",
                        t->name, (long long)t->shape[0]);
    return QKV_OK;
}

static void make_from_quarters(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    static const size_t order[] = {0, 2, 1}; /* query, value, key */
    const size_t part = t->size / 12;
    for (size_t i = 0; i < 12; i++)
        memcpy((unsigned char *)out + (order[i % 3] * 4 + i / 3) * part,
               r->sources[0]->data + i * part, part);
}

const qkv_maker_kind qkv_maker_from_quarters = {plan_from_quarters, make_from_quarters};

/* ---- a table without its first rows ---- */

static int plan_skip(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = r->sources[0];
    int status = plan_like(t, out, err);
    if (status != QKV_OK) return status;
    if (t->n_dims != 2) return fail_shape(t, "a table was expected", err);
    if (out->ne[1] <= r->n_skipped)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "tensor %.100s has %lld rows, and the first %lld are not used", t->name,
                        (long long)out->ne[1], (long long)r->n_skipped);
    out->size -= out->size / (size_t)out->ne[1] * (size_t)r->n_skipped;
    out->ne[1] -= r->n_skipped;
    return QKV_OK;
}

static void make_skip(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    const qkv_st_tensor *source = r->sources[0];
    memcpy(out, source->data + (source->size - t->size), t->size);
}

const qkv_maker_kind qkv_maker_skip_rows = {plan_skip, make_skip};

/* ---- gate and up in one, half and half ---- */

static int plan_rows(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = r->sources[0];
    int status = plan_like(t, out, err);
    if (status != QKV_OK) return status;
    if (t->n_dims != 3) return fail_shape(t, "a stack of matrices was expected", err);
    if (out->ne[1] % 2 != 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "tensor %.100s should have an even number of rows",
                        t->name);
    out->ne[1] /= 2;
    out->size /= 2;
    return QKV_OK;
}

static void make_rows(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out, size_t half) {
    const size_t each = t->size / (size_t)t->ne[2];
    for (size_t e = 0; e < (size_t)t->ne[2]; e++)
        memcpy((unsigned char *)out + e * each, r->sources[0]->data + (2 * e + half) * each, each);
}

static void make_first_rows(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make_rows(r, t, out, 0);
}

static void make_second_rows(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make_rows(r, t, out, 1);
}

const qkv_maker_kind qkv_maker_first_rows = {plan_rows, make_first_rows};
const qkv_maker_kind qkv_maker_second_rows = {plan_rows, make_second_rows};

/* ---- interleaved gate and up ---- */

static int plan_columns(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = r->sources[0];
    int status = plan_like(t, out, err);
    if (status != QKV_OK) return status;
    if (t->n_dims != 2 && t->n_dims != 3)
        return fail_shape(t, "2 (biases) or 3 (matrices) were expected", err);
    if (out->ne[0] % 2 != 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "tensor %.100s should have an even number of columns",
                        t->name);
    const int64_t half = out->ne[0] / 2;
    if (t->n_dims == 3) {
        out->ne[0] = out->ne[1];
        out->ne[1] = half;
    } else {
        out->ne[0] = half;
    }
    out->size /= 2;
    return QKV_OK;
}

static void make_columns(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out,
                         int64_t first, int64_t step) {
    const qkv_st_tensor *source = r->sources[0];
    const size_t element = ggml_type_size(t->type);
    const int64_t width = source->shape[source->n_dims - 1];
    const int64_t rows = source->n_dims == 3 ? source->shape[1] : 1;
    const int64_t experts = source->shape[0];
    for (int64_t e = 0; e < experts; e++)
        transpose((unsigned char *)out + (size_t)(e * rows * (width / 2)) * element,
                  source->data + (size_t)(e * rows * width) * element, element, rows, width, first,
                  step, width / 2);
}

static void make_even(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make_columns(r, t, out, 0, 2);
}

static void make_odd(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make_columns(r, t, out, 1, 2);
}

static void make_first_half(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make_columns(r, t, out, 0, 1);
}

static void make_second_half(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    const qkv_st_tensor *source = r->sources[0];
    make_columns(r, t, out, source->shape[source->n_dims - 1] / 2, 1);
}

const qkv_maker_kind qkv_maker_first_columns = {plan_columns, make_first_half};
const qkv_maker_kind qkv_maker_second_columns = {plan_columns, make_second_half};
const qkv_maker_kind qkv_maker_even_columns = {plan_columns, make_even};
const qkv_maker_kind qkv_maker_odd_columns = {plan_columns, make_odd};

/* ---- computed ---- */

/* The caller has set type and shape: they follow from the settings, not from a source. */
static int plan_values(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    (void)r;
    (void)out;
    (void)err;
    return QKV_OK;
}

static void make_values(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    memcpy(out, r->values, t->size);
}

const qkv_maker_kind qkv_maker_values = {plan_values, make_values};

void qkv_tensor_make(const qkv_gguf_maker *maker, const qkv_gguf_tensor *t, void *out) {
    const qkv_tensor_maker *own = (const qkv_tensor_maker *)maker; /* its first member */
    own->kind->make(own, t, out);
}
