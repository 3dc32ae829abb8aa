#include "run/graph/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/product.h"

static int64_t pieces(int64_t n_tokens) {
    return (n_tokens + QKV_PIECE - 1) / QKV_PIECE * QKV_PIECE;
}

/* Dropping goes by pieces, so that up to one piece is still there that no query sees. */
int64_t qkv_kv_capacity(int64_t n_tokens, int64_t window, int64_t chunk) {
    const int64_t all = pieces(n_tokens), bounded = pieces(window + chunk) + QKV_PIECE;
    return window && bounded < all ? bounded : all;
}

static size_t keys_of_head(const qkv_kv_layer *layer) {
    return (size_t)qkv_packed_size(layer->k_width, layer->capacity);
}

static size_t values_of_head(const qkv_kv_layer *layer) {
    return (size_t)qkv_packed_size(layer->capacity, layer->v_width);
}

float *qkv_kv_keys(const qkv_kv_layer *layer, int64_t head) {
    return layer->k + (size_t)head * keys_of_head(layer);
}

float *qkv_kv_values(const qkv_kv_layer *layer, int64_t head) {
    return layer->v + (size_t)head * values_of_head(layer);
}

size_t qkv_kv_layer_size(const qkv_kv_layer *layer) {
    return ((size_t)layer->k_heads * keys_of_head(layer) +
            (size_t)layer->v_heads * values_of_head(layer)) *
               sizeof(float) +
           (size_t)(layer->q_heads * layer->keep_tokens) * (sizeof(double) + 1);
}

int qkv_kv_layer_allocate(qkv_kv_layer *layer, qkv_error *err) {
    layer->k = qkv_calloc((size_t)layer->k_heads * keys_of_head(layer), sizeof(float));
    layer->v = qkv_calloc((size_t)layer->v_heads * values_of_head(layer), sizeof(float));
    int status = layer->k && layer->v ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && layer->keep_tokens)
        status = qkv_keep_state_new(&layer->keep, layer->q_heads, layer->keep_tokens, err);
    if (status != QKV_OK) qkv_kv_layer_release(layer);
    return status;
}

void qkv_kv_layer_release(qkv_kv_layer *layer) {
    free(layer->k);
    free(layer->v);
    layer->k = layer->v = NULL;
    qkv_keep_state_release(&layer->keep);
}

void qkv_kv_layer_copy(qkv_kv_layer *to, const qkv_kv_layer *from) {
    const size_t keys = keys_of_head(to) * sizeof(float);
    const size_t values = values_of_head(to) * sizeof(float);
    for (int64_t h = 0; h < to->k_heads; h++)
        memcpy(qkv_kv_keys(to, h), qkv_kv_keys(from, h * from->k_heads / to->k_heads), keys);
    for (int64_t h = 0; h < to->v_heads; h++)
        memcpy(qkv_kv_values(to, h), qkv_kv_values(from, h * from->v_heads / to->v_heads), values);
    to->first = from->first;
}

void qkv_kv_layer_advance(qkv_kv_layer *layer, int64_t seen, int64_t position, int64_t n) {
    if (position + n - layer->first <= layer->capacity) return;
    const int64_t drop = (seen - layer->first) / QKV_PIECE * QKV_PIECE;
    for (int64_t h = 0; h < layer->k_heads; h++)
        qkv_packed_drop_columns(qkv_kv_keys(layer, h), layer->k_width, layer->capacity, drop);
    for (int64_t h = 0; h < layer->v_heads; h++)
        qkv_packed_drop_rows(qkv_kv_values(layer, h), layer->capacity, layer->v_width, drop);
    layer->first += drop;
}
