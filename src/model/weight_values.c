/*
 * Weights by name, converted row by row.
 *
 * A weight is a slot of the model, or a part of one: where a file has q, k and v (or gate and up) in one
 * matrix, each is a range of its rows. Rows of q and k that the file has reordered for RoPE are put back.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/sized.h"
#include "base/text.h"
#include "kernel/convert.h"
#include "model/model.h"
#include "qkv/weights.h"

/* A range of rows of a tensor. */
typedef struct part {
    const struct ggml_tensor *tensor;
    int64_t first, n; /* rows; of a vector, values */
    int is_vector;
    int permuted; /* rows are in the file's order inside each head */
} part;

#define SLOT_NAME(slot, name, shape) #slot,
static const char *const layer_names[] = {QKV_LAYER_WEIGHT_LIST(SLOT_NAME)};
static const char *const model_names[] = {QKV_MODEL_WEIGHT_LIST(SLOT_NAME)};
#undef SLOT_NAME

static void write_name(char out[QKV_WEIGHT_NAME_SIZE], const char *slot) {
    size_t i = 0;
    for (; slot[i] && i + 1 < QKV_WEIGHT_NAME_SIZE; i++) out[i] = (char)qkv_lower(slot[i]);
    out[i] = '\0';
}

/* ---- parts ---- */

static part whole(const struct ggml_tensor *tensor) {
    /* As bound (weights.c): what is not a matrix is F32. */
    const int is_vector = tensor->ne[1] == 1 || strstr(tensor->name, "norm") != NULL;
    return (part){.tensor = tensor,
                  .n = is_vector ? ggml_nelements(tensor) : ggml_nrows(tensor),
                  .is_vector = is_vector};
}

/* Rows of q, k or v out of a matrix of all three. */
static part fused_part(const qkv_model *model, int32_t il, int slot, int fused) {
    const qkv_layer_shape *shape = &model->hp.layers[il];
    const int64_t q = (int64_t)shape->n_head * shape->head_dim;
    const int64_t k = (int64_t)shape->n_kv_head * shape->head_dim;
    const int64_t v = (int64_t)shape->n_kv_head * shape->value_dim;
    const struct ggml_tensor *tensor = model->layers[il].w[fused];
    if (!tensor) return (part){0};
    part p = whole(tensor);
    const int is_q = slot == QKV_LAYER_Q || slot == QKV_LAYER_Q_BIAS;
    const int is_k = slot == QKV_LAYER_K || slot == QKV_LAYER_K_BIAS;
    p.first = is_q ? 0 : is_k ? q : q + k;
    p.n = is_q ? q : is_k ? k : v;
    return p;
}

static int is_reordered(int slot) {
    return slot == QKV_LAYER_Q || slot == QKV_LAYER_Q_BIAS || slot == QKV_LAYER_Q_NORM ||
           slot == QKV_LAYER_Q_NORM_BIAS || slot == QKV_LAYER_K || slot == QKV_LAYER_K_BIAS ||
           slot == QKV_LAYER_K_NORM || slot == QKV_LAYER_K_NORM_BIAS;
}

static part layer_part(const qkv_model *model, int32_t il, int slot) {
    const struct ggml_tensor *tensor = model->layers[il].w[slot];
    const int gated = model->family->mlp == QKV_MLP_GATED_FUSED;
    part p = {0};
    if (slot == QKV_LAYER_QKV || slot == QKV_LAYER_QKV_BIAS) return p;
    if (tensor)
        p = whole(tensor);
    else if (slot == QKV_LAYER_Q || slot == QKV_LAYER_K || slot == QKV_LAYER_V)
        p = fused_part(model, il, slot, QKV_LAYER_QKV);
    else if (slot == QKV_LAYER_Q_BIAS || slot == QKV_LAYER_K_BIAS || slot == QKV_LAYER_V_BIAS)
        p = fused_part(model, il, slot, QKV_LAYER_QKV_BIAS);
    else if (slot == QKV_LAYER_GATE && gated && model->layers[il].w[QKV_LAYER_UP])
        p = whole(model->layers[il].w[QKV_LAYER_UP]);
    if (gated && p.tensor && (slot == QKV_LAYER_GATE || slot == QKV_LAYER_UP)) {
        p.n = model->hp.layers[il].n_ff;
        p.first = slot == QKV_LAYER_UP ? p.n : 0;
    }
    /* Values that are made as keys are. */
    if (!p.tensor && slot == QKV_LAYER_V && model->layers[il].w[QKV_LAYER_V_NORM])
        p = whole(model->layers[il].w[QKV_LAYER_K]);
    p.permuted = p.tensor && model->hp.qk_permuted && is_reordered(slot);
    return p;
}

static part model_part(const qkv_model *model, int slot) {
    const struct ggml_tensor *tensor = slot == QKV_MODEL_OUTPUT ? model->output : model->w[slot];
    return tensor ? whole(tensor) : (part){0};
}

/* ---- finding ---- */

static void describe(const part *p, const char *slot, int32_t layer, qkv_weight *out) {
    const int64_t *ne = p->tensor->ne;
    *out = (qkv_weight)QKV_WEIGHT_INIT;
    write_name(out->name, slot);
    out->layer = layer;
    out->tensor = p->tensor->name;
    out->type = ggml_type_name(p->tensor->type);
    out->n_rows = p->n;
    out->width = p->is_vector ? 1 : ne[0];
    out->n_dims = ggml_n_dims(p->tensor);
    if (p->is_vector && out->n_dims == 1) {
        out->shape[0] = p->n;
        return;
    }
    for (int i = 0; i < out->n_dims && i < 3; i++) out->shape[i] = ne[out->n_dims - 1 - i];
    /* Of a matrix, the rows of this part. */
    if (!p->is_vector && out->n_dims == 2) out->shape[0] = p->n;
}

int qkv_weight_get(const qkv_model *model, size_t index, qkv_weight *weight) {
    if (!model || !weight) return 0;
    qkv_weight found;
    size_t n = 0;
    for (int i = 0; i < QKV_MODEL_WEIGHT_COUNT; i++) {
        const part p = model_part(model, i);
        if (!p.tensor || n++ != index) continue;
        describe(&p, model_names[i], -1, &found);
        return qkv_sized_write(weight, &found, sizeof found, "qkv_weight", NULL) == QKV_OK;
    }
    for (int32_t il = 0; il < model->hp.n_layer; il++) {
        for (int i = 0; i < QKV_LAYER_WEIGHT_COUNT; i++) {
            const part p = layer_part(model, il, i);
            if (!p.tensor || n++ != index) continue;
            describe(&p, layer_names[i], il, &found);
            return qkv_sized_write(weight, &found, sizeof found, "qkv_weight", NULL) == QKV_OK;
        }
    }
    return 0;
}

/* What there is in a layer, or in none: -1. */
static int fail_name(const qkv_model *model, const char *name, int32_t layer, qkv_error *err) {
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    const int n = layer < 0 ? QKV_MODEL_WEIGHT_COUNT : QKV_LAYER_WEIGHT_COUNT;
    char place[32] = "outside of its layers";
    if (layer >= 0) snprintf(place, sizeof place, "in layer %d", (int)layer);
    for (int i = 0; i < n; i++) {
        char one[QKV_WEIGHT_NAME_SIZE];
        const part p = layer < 0 ? model_part(model, i) : layer_part(model, layer, i);
        if (!p.tensor) continue;
        write_name(one, layer < 0 ? model_names[i] : layer_names[i]);
        qkv_text_printf(&known, "%s%s", known.length ? ", " : "", one);
        qkv_nearest_try(&near, one);
    }
    const int status =
        qkv_fail(err, QKV_ERR_ARGUMENT, "the model has no weight '%s' %s%s; it has %s", name, place,
                 qkv_nearest_hint(&near), known.data ? known.data : "none");
    qkv_text_release(&known);
    return status;
}

static int find_part(const qkv_model *model, const char *name, int32_t layer, part *out,
                     const char **slot, qkv_error *err) {
    const int n = layer < 0 ? QKV_MODEL_WEIGHT_COUNT : QKV_LAYER_WEIGHT_COUNT;
    if (layer < -1 || layer >= model->hp.n_layer)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "layer %d is out of range; the model has layers 0 to %d, and -1 is for "
                        "weights of none",
                        (int)layer, (int)model->hp.n_layer - 1);
    for (int i = 0; i < n; i++) {
        char one[QKV_WEIGHT_NAME_SIZE];
        *slot = layer < 0 ? model_names[i] : layer_names[i];
        write_name(one, *slot);
        if (strcmp(one, name) != 0) continue;
        *out = layer < 0 ? model_part(model, i) : layer_part(model, layer, i);
        return out->tensor ? QKV_OK : fail_name(model, name, layer, err);
    }
    return fail_name(model, name, layer, err);
}

int qkv_weight_find(const qkv_model *model, const char *name, int32_t layer, qkv_weight *weight,
                    qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, name);
    part p;
    const char *slot = NULL;
    qkv_weight found;
    int status = find_part(model, name, layer, &p, &slot, err);
    if (status != QKV_OK || !weight) return status;
    describe(&p, slot, layer, &found);
    return qkv_sized_write(weight, &found, sizeof found, "qkv_weight", err);
}

/* ---- reading ---- */

/* Where a row of the original model is in the file. */
static int64_t stored_row(const part *p, int64_t row, int64_t d) {
    if (!p->permuted) return p->first + row;
    const int64_t c = row % d, stored = c < d / 2 ? 2 * c : 2 * (c - d / 2) + 1;
    return p->first + row - c + stored;
}

int qkv_weight_read(const qkv_model *model, const char *name, int32_t layer, int64_t first,
                    int64_t n, float *values, qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, name);
    if (n) QKV_NEED(err, values);
    part p;
    const char *slot = NULL;
    int status = find_part(model, name, layer, &p, &slot, err);
    if (status != QKV_OK) return status;
    if (first < 0 || n < 0 || first > p.n || n > p.n - first)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%lld rows from row %lld on are out of range: %s has %lld", (long long)n,
                        (long long)first, name, (long long)p.n);
    if (layer >= 0) status = qkv_weights_prepare(model, layer, err);
    if (status != QKV_OK) return status;
    assert(p.tensor);
    const int64_t width = p.is_vector ? 1 : p.tensor->ne[0];
    const int64_t d =
        qkv_layer_shape_of(&model->hp, layer)->head_dim; /* of rows that are reordered */
    const size_t bytes = ggml_row_size(p.tensor->type, width);
    const qkv_convert_fn convert = qkv_converter(p.tensor->type);
    for (int64_t r = 0; r < n; r++) {
        const int64_t at = stored_row(&p, first + r, d);
        const char *row = (const char *)p.tensor->data + (size_t)at * bytes;
        if (p.tensor->type == GGML_TYPE_F32)
            memcpy(values + r * width, row, (size_t)width * sizeof *values);
        else
            convert(row, values + r * width, width);
    }
    return QKV_OK;
}
