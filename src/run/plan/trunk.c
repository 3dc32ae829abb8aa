#include "run/plan/trunk.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void drop(float **data) {
    free(*data);
    *data = NULL;
}

static void drop_layer(qkv_trunk_layer *layer) {
    drop(&layer->resid);
    drop(&layer->q);
    drop(&layer->k);
    drop(&layer->v);
}

void qkv_trunk_release(qkv_trunk *trunk) {
    for (int32_t il = 0; trunk->layers && il <= trunk->n_layer; il++)
        drop_layer(&trunk->layers[il]);
    free(trunk->layers);
    free(trunk->tokens);
    *trunk = (qkv_trunk){.clock = trunk->clock};
}

int qkv_trunk_holds(const qkv_trunk *trunk, const int32_t *tokens, int64_t n_tokens,
                    int64_t block_rows) {
    return trunk->tokens && trunk->n_tokens == n_tokens && trunk->block_rows == block_rows &&
           memcmp(trunk->tokens, tokens, (size_t)n_tokens * sizeof *tokens) == 0;
}

int qkv_trunk_select(qkv_trunk *trunk, const qkv_model *model, const int32_t *tokens,
                     int64_t n_tokens, int64_t block_rows, qkv_error *err) {
    size_t size = (size_t)n_tokens * sizeof *tokens;
    trunk->clock++;
    if (qkv_trunk_holds(trunk, tokens, n_tokens, block_rows)) return QKV_OK;
    qkv_trunk_release(trunk);
    trunk->n_layer = model->hp.n_layer;
    trunk->n_tokens = n_tokens;
    trunk->block_rows = block_rows;
    trunk->tokens = malloc(size);
    trunk->layers = qkv_calloc((size_t)trunk->n_layer + 1, sizeof *trunk->layers);
    if (!trunk->tokens || !trunk->layers) {
        qkv_trunk_release(trunk);
        return qkv_fail_memory(err);
    }
    memcpy(trunk->tokens, tokens, size);
    return QKV_OK;
}

/* Floats per token of a layer's q, k and v. */
static size_t heads_width(const qkv_layer_shape *shape) {
    return (size_t)(shape->n_head + shape->n_kv_head) * (size_t)shape->head_dim +
           (size_t)shape->n_kv_head * (size_t)shape->value_dim;
}

void qkv_trunk_mark(const qkv_model *model, int64_t n_tokens, const uint8_t *prepared,
                    size_t budget, uint8_t *marked) {
    const qkv_hparams *hp = &model->hp;
    size_t size =
        ((size_t)hp->n_embd + heads_width(&hp->largest)) * (size_t)n_tokens * sizeof(float);
    size_t fit = budget / size, n = 0, at = 0;
    if (!fit) return;
    for (int32_t il = 0; il <= hp->n_layer; il++) n += prepared[il];
    size_t step = (n + fit - 1) / fit;
    for (int32_t il = hp->n_layer; il >= 0; il--) {
        if (prepared[il] && at++ % step == 0) marked[il] = 1;
    }
}

static size_t layer_size(const qkv_trunk *trunk, const qkv_model *model, int32_t il) {
    const qkv_hparams *hp = &model->hp;
    const qkv_trunk_layer *layer = &trunk->layers[il];
    size_t row = (layer->resid ? (size_t)hp->n_embd : 0) +
                 (layer->q ? heads_width(qkv_layer_shape_of(hp, il)) : 0);
    return row * (size_t)trunk->n_tokens * sizeof(float);
}

size_t qkv_trunk_size(const qkv_trunk *trunk, const qkv_model *model) {
    size_t size = 0;
    for (int32_t il = 0; trunk->layers && il <= trunk->n_layer; il++)
        size += layer_size(trunk, model, il);
    return size;
}

void qkv_trunk_trim(qkv_trunk *trunk, const qkv_model *model, size_t budget) {
    while (qkv_trunk_size(trunk, model) > budget) {
        qkv_trunk_layer *oldest = NULL;
        for (int32_t il = 0; il <= trunk->n_layer; il++) {
            qkv_trunk_layer *layer = &trunk->layers[il];
            if (!layer->resid || layer->last_use == trunk->clock) continue;
            if (!oldest || layer->last_use < oldest->last_use) oldest = layer;
        }
        if (!oldest) return;
        drop_layer(oldest);
    }
}
