/*
 * Weights of four bits with a shared exponent (MXFP4), as gpt-oss stores its experts: for each run of
 * 32 values, 16 bytes and one exponent, in two tensors. ggml's MXFP4 has the same codes in another
 * place: the exponent before the bytes, and value i beside value i + 16 instead of i + 1. Nothing is
 * rounded.
 */
#include <string.h>

#include "model/hf/hf.h"

enum { RUN = 32, BYTES = RUN / 2, BLOCK = 1 + BYTES };

/* sources: [experts, rows, runs, 16] and [experts, rows, runs]; every `step`-th row is taken. */
static int plan(const qkv_tensor_maker *r, int64_t step, qkv_gguf_tensor *out, qkv_error *err) {
    const qkv_st_tensor *codes = r->sources[0], *scales = r->n_sources == 2 ? r->sources[1] : NULL;
    int fits = scales && strcmp(codes->dtype, "U8") == 0 && strcmp(scales->dtype, "U8") == 0 &&
               codes->n_dims == 4 && scales->n_dims == 3 && codes->shape[3] == BYTES;
    for (int i = 0; fits && i < 3; i++)
        fits = codes->shape[i] == scales->shape[i] && codes->shape[i] > 0;
    if (!fits || codes->shape[1] % step != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "tensor %.100s and its scales should be U8, [experts, rows, runs, 16] and "
                        "[experts, rows, runs]",
                        codes->name);
    out->type = GGML_TYPE_MXFP4;
    out->ne[0] = codes->shape[2] * RUN;
    out->ne[1] = codes->shape[1] / step;
    out->ne[2] = codes->shape[0];
    out->ne[3] = 1;
    out->size = scales->size / (size_t)step * BLOCK;
    return QKV_OK;
}

static unsigned code(const unsigned char *bytes, int i) {
    return i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15u;
}

static void pack(unsigned char *block, const unsigned char *bytes, unsigned char scale) {
    block[0] = scale;
    for (int i = 0; i < BYTES; i++)
        block[1 + i] = (unsigned char)(code(bytes, i) | code(bytes, i + BYTES) << 4);
}

static void make(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out, size_t first,
                 size_t step) {
    const unsigned char *codes = r->sources[0]->data, *scales = r->sources[1]->data;
    const size_t runs = (size_t)t->ne[0] / RUN, rows = (size_t)(t->ne[1] * t->ne[2]);
    unsigned char *block = out;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < runs; i++, block += BLOCK) {
            const size_t from = (row * step + first) * runs + i;
            pack(block, codes + from * BYTES, scales[from]);
        }
    }
}

static int plan_all(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    return plan(r, 1, out, err);
}

static int plan_half(const qkv_tensor_maker *r, qkv_gguf_tensor *out, qkv_error *err) {
    return plan(r, 2, out, err);
}

static void make_all(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make(r, t, out, 0, 1);
}

static void make_even(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make(r, t, out, 0, 2);
}

static void make_odd(const qkv_tensor_maker *r, const qkv_gguf_tensor *t, void *out) {
    make(r, t, out, 1, 2);
}

const qkv_maker_kind qkv_maker_mxfp4 = {plan_all, make_all};
const qkv_maker_kind qkv_maker_mxfp4_even = {plan_half, make_even};
const qkv_maker_kind qkv_maker_mxfp4_odd = {plan_half, make_odd};
