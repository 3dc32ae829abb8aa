/*
 * The weights of linear mixers as a GGUF file has them: decays as numbers below 0, convolutions as matrices,
 * fused matrices apart, and value heads of some delta-nets in another order.
 *
 * There, the value heads that share a key head follow each other; in files of Qwen 3.5 they are dealt out:
 * one for each key head, then the next for each. Rows (or columns) of head k·r + i move to place i·g + k, for
 * g key heads with r value heads each.
 */
#include <math.h>
#include <string.h>

#include "model/hf/hf.h"

/* ---- shapes ---- */

/* The source's first axis is rows; what it has beside that is one row's width. */
static int plan_rows(const qkv_tensor_maker *m, qkv_gguf_tensor *out, int64_t *rows,
                     qkv_error *err) {
    const qkv_st_tensor *t = m->sources[0];
    const int status = qkv_maker_copy.plan(m, out, err);
    if (status < 0) return status;
    *rows = t->n_dims ? t->shape[0] : 1;
    return QKV_OK;
}

static int fail_rows(const qkv_st_tensor *t, int64_t rows, int64_t wanted, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "tensor %.100s has %lld rows; %lld were expected", t->name,
                    (long long)rows, (long long)wanted);
}

/* Rows of the source, in the order of `source_of`. */
static void make_rows(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out, int64_t rows,
                      int64_t (*source_of)(const qkv_tensor_maker *m, int64_t row, int64_t rows)) {
    const size_t width = t->size / (size_t)rows;
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)out + (size_t)i * width,
               m->sources[0]->data + (size_t)source_of(m, i, rows) * width, width);
}

static int64_t rows_of(const qkv_tensor_maker *m) {
    return m->sources[0]->shape[0];
}

/* ---- value heads dealt out ---- */

/* The head of the source that stands at place `head`. */
static int64_t dealt(const qkv_tensor_maker *m, int64_t head) {
    const int64_t g = m->mixer.n_groups, shared = m->mixer.n_heads / g;
    return head % g * shared + head / g;
}

/* All rows belong to value heads. */
static int64_t dealt_row(const qkv_tensor_maker *m, int64_t row, int64_t rows) {
    const int64_t each = rows / m->mixer.n_heads;
    return dealt(m, row / each) * each + row % each;
}

/* Rows of q and k come first. */
static int64_t dealt_value_row(const qkv_tensor_maker *m, int64_t row, int64_t rows) {
    const int64_t keys = 2 * (int64_t)m->mixer.n_groups * m->mixer.state;
    return row < keys ? row : keys + dealt_row(m, row - keys, rows - keys);
}

static int plan_dealt(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    int64_t rows = 0;
    const int status = plan_rows(m, out, &rows, err);
    if (status != QKV_OK) return status;
    if (rows % m->mixer.n_heads == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "tensor %.100s has %lld rows for %d heads",
                    m->sources[0]->name, (long long)rows, m->mixer.n_heads);
}

static int plan_dealt_values(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    int64_t rows = 0;
    const int64_t wanted = m->mixer.inner + 2 * (int64_t)m->mixer.n_groups * m->mixer.state;
    const int status = plan_rows(m, out, &rows, err);
    if (status != QKV_OK) return status;
    return rows == wanted ? QKV_OK : fail_rows(m->sources[0], rows, wanted, err);
}

static void make_dealt(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    make_rows(m, t, out, rows_of(m), dealt_row);
}

static void make_dealt_values(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    make_rows(m, t, out, rows_of(m), dealt_value_row);
}

const qkv_maker_kind qkv_maker_dealt_heads = {plan_dealt, make_dealt};
const qkv_maker_kind qkv_maker_dealt_values = {plan_dealt_values, make_dealt_values};

static int plan_dealt_columns(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = m->sources[0];
    int64_t rows = 0;
    const int status = plan_rows(m, out, &rows, err);
    if (status != QKV_OK) return status;
    if (t->n_dims == 2 && t->shape[1] == m->mixer.inner) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "tensor %.100s should have %d columns", t->name,
                    m->mixer.inner);
}

static void make_dealt_columns(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    const int64_t rows = rows_of(m), heads = m->mixer.n_heads;
    const size_t row = t->size / (size_t)rows, each = row / (size_t)heads;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t h = 0; h < heads; h++)
            memcpy((char *)out + (size_t)i * row + (size_t)h * each,
                   m->sources[0]->data + (size_t)i * row + (size_t)dealt(m, h) * each, each);
    }
}

const qkv_maker_kind qkv_maker_dealt_columns = {plan_dealt_columns, make_dealt_columns};

/* ---- convolutions: [C, 1, taps] as [C, taps] ---- */

static int plan_conv(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *t = m->sources[0];
    const int status = qkv_maker_copy.plan(m, out, err);
    if (status < 0) return status;
    if (t->n_dims != 3 || t->shape[1] != 1)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "tensor %.100s should be a convolution of single channels", t->name);
    out->ne[1] = out->ne[2];
    out->ne[2] = 1;
    return status;
}

static int plan_dealt_conv(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    const int status = plan_conv(m, out, err);
    if (status < 0) return status;
    qkv_gguf_tensor unused = {0};
    return plan_dealt_values(m, &unused, err);
}

static void make_conv(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    qkv_maker_copy.make(m, t, out);
}

const qkv_maker_kind qkv_maker_conv = {plan_conv, make_conv};
const qkv_maker_kind qkv_maker_dealt_conv = {plan_dealt_conv, make_dealt_values};

/* ---- decays: -exp(A) ---- */

static int plan_decay(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    int64_t rows = 0;
    const int status = plan_rows(m, out, &rows, err);
    if (status != QKV_OK) return status;
    if (rows != m->mixer.n_heads || m->sources[0]->n_dims != 1)
        return fail_rows(m->sources[0], rows, m->mixer.n_heads, err);
    out->size = (size_t)rows * sizeof(float);
    out->type = GGML_TYPE_F32;
    return QKV_OK;
}

static void make_decay(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    const qkv_st_tensor *source = m->sources[0];
    float *values = out;
    if (source->type == GGML_TYPE_F32)
        memcpy(values, source->data, t->size);
    else
        ggml_get_type_traits(source->type)->to_float(source->data, values, m->mixer.n_heads);
    for (int64_t i = 0; i < m->mixer.n_heads; i++) values[i] = -expf(values[i]);
}

static void make_dealt_decay(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    const qkv_st_tensor *source = m->sources[0];
    const size_t each = source->size / (size_t)m->mixer.n_heads;
    for (int64_t i = 0; i < m->mixer.n_heads; i++) {
        float value;
        const unsigned char *from = source->data + (size_t)dealt(m, i) * each;
        if (source->type == GGML_TYPE_F32)
            memcpy(&value, from, sizeof value);
        else
            ggml_get_type_traits(source->type)->to_float(from, &value, 1);
        ((float *)out)[i] = -expf(value);
    }
    (void)t;
}

const qkv_maker_kind qkv_maker_decay = {plan_decay, make_decay};
const qkv_maker_kind qkv_maker_dealt_decay = {plan_decay, make_dealt_decay};

/* ---- q, k, v and z of each key head after another, to [q, k, v] and z ---- */

static int64_t rows_of_key_head(const qkv_tensor_maker *m) {
    return 2 * ((int64_t)m->mixer.state + m->mixer.inner / m->mixer.n_groups);
}

static int64_t mixed_row(const qkv_tensor_maker *m, int64_t row, int64_t rows) {
    const int64_t width = m->mixer.state, keys = width * m->mixer.n_groups;
    const int64_t values = m->mixer.inner / m->mixer.n_groups, each = rows_of_key_head(m);
    (void)rows;
    if (row < keys) return row / width * each + row % width;
    row -= keys;
    if (row < keys) return row / width * each + width + row % width;
    row -= keys;
    return row / values * each + 2 * width + row % values;
}

static int64_t gate_row(const qkv_tensor_maker *m, int64_t row, int64_t rows) {
    const int64_t values = m->mixer.inner / m->mixer.n_groups;
    (void)rows;
    return row / values * rows_of_key_head(m) + 2 * (int64_t)m->mixer.state + values + row % values;
}

static int plan_part(const qkv_tensor_maker *m, qkv_gguf_tensor *out, int64_t part,
                     qkv_error *err) {
    int64_t rows = 0;
    const int64_t wanted = rows_of_key_head(m) * m->mixer.n_groups;
    const int status = plan_rows(m, out, &rows, err);
    if (status != QKV_OK) return status;
    if (rows != wanted || m->sources[0]->n_dims != 2)
        return fail_rows(m->sources[0], rows, wanted, err);
    out->size = out->size / (size_t)rows * (size_t)part;
    out->ne[1] = part;
    return QKV_OK;
}

static int64_t n_mixed(const qkv_tensor_maker *m) {
    return m->mixer.inner + 2 * (int64_t)m->mixer.n_groups * m->mixer.state;
}

static int plan_mixed(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    return plan_part(m, out, n_mixed(m), err);
}

static int plan_gate(const qkv_tensor_maker *m, qkv_gguf_tensor *out, qkv_error *err) {
    return plan_part(m, out, m->mixer.inner, err);
}

static void make_mixed(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    make_rows(m, t, out, n_mixed(m), mixed_row);
}

static void make_gate(const qkv_tensor_maker *m, const qkv_gguf_tensor *t, void *out) {
    make_rows(m, t, out, m->mixer.inner, gate_row);
}

const qkv_maker_kind qkv_maker_delta_qkv = {plan_mixed, make_mixed};
const qkv_maker_kind qkv_maker_delta_gate = {plan_gate, make_gate};
