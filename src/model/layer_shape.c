/*
 * The shapes of layers, as the file says them: one number for all layers, or an array with one for each.
 *
 * Layers with a window may have heads of another width than the others (key_length_swa, value_length_swa).
 * The last shared_kv_layers layers have no keys and values of their own: they use those of the last layer
 * before them that has the window as they do. A shape that the file cannot hold is refused before it costs
 * memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sized.h"
#include "model/layer_shape.h"
#include "model/model.h"

#define MAX_WIDTH (1 << 20)
#define MAX_HEADS 4096

const qkv_layer_shape *qkv_layer_shape_of(const qkv_hparams *hp, int32_t il) {
    return il >= 0 && il < hp->n_layer ? &hp->layers[il] : &hp->largest;
}

int32_t qkv_layer_group(const qkv_layer_shape *shape) {
    return shape->n_kv_head ? shape->n_head / shape->n_kv_head : 1;
}

int32_t qkv_layer_fork(const qkv_hparams *hp, int32_t il) {
    int32_t fork = il;
    for (int32_t later = hp->n_layer - 1; later >= fork; later--) {
        if (hp->layers[later].kv_layer < fork) fork = hp->layers[later].kv_layer;
    }
    return fork;
}

/* ---- reading ---- */

/* ARCH.suffix for every layer, into `out`, which has the values for a file that does not say it; those
 * of -1 are then an error. */
static int read_each(const qkv_model *model, const char *suffix, int64_t low, int64_t high,
                     int32_t *out, qkv_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", model->family->name, suffix);
    const int found =
        qkv_gguf_each(model->file, key, low, high, out, (size_t)model->hp.n_layer, err);
    if (found < 0) return found;
    if (!found && out[0] < 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is missing", model->file->path, key);
    return QKV_OK;
}

enum { HEADS, KV_HEADS, KEYS, VALUES, KEYS_SWA, VALUES_SWA, FEED_FORWARD, N_NUMBERS };

/* Where every layer has experts, their width may be all that a file says. */
static int read_feed_forward(const qkv_model *model, int64_t least, int32_t *row, qkv_error *err) {
    int64_t width = -1;
    char key[128];
    snprintf(key, sizeof key, "%s.expert_feed_forward_length", model->family->name);
    const int found = qkv_gguf_int(model->file, key, 1, MAX_WIDTH, &width, err);
    if (found < 0) return found;
    for (int32_t il = 0; il < model->hp.n_layer; il++) row[il] = (int32_t)width;
    return read_each(model, "feed_forward_length", least, MAX_WIDTH, row, err);
}

/* One row of n_layer numbers for each of them. */
static int read_numbers(const qkv_model *model, int32_t *rows, qkv_error *err) {
    const qkv_hparams *hp = &model->hp;
    const size_t n = (size_t)hp->n_layer;
    const int64_t least = hp->parts ? 0 : 1; /* of layers that lack a block */
    int32_t *row[N_NUMBERS];
    for (size_t i = 0; i < N_NUMBERS; i++) row[i] = rows + i * n;
    for (size_t il = 0; il < n; il++) row[HEADS][il] = row[FEED_FORWARD][il] = -1;
    int status = read_each(model, "attention.head_count", 1, MAX_HEADS, row[HEADS], err);
    for (size_t il = 0; il < n; il++) row[KV_HEADS][il] = row[HEADS][il];
    if (status == QKV_OK)
        status = read_each(model, "attention.head_count_kv", least, MAX_HEADS, row[KV_HEADS], err);
    for (size_t il = 0; status == QKV_OK && il < n; il++)
        row[KEYS][il] = hp->n_embd % row[HEADS][il] == 0 ? hp->n_embd / row[HEADS][il] : -1;
    if (status == QKV_OK)
        status = read_each(model, "attention.key_length", 1, MAX_WIDTH, row[KEYS], err);
    for (size_t il = 0; il < n; il++) row[VALUES][il] = row[KEYS][il];
    if (status == QKV_OK)
        status = read_each(model, "attention.value_length", 1, MAX_WIDTH, row[VALUES], err);
    for (size_t il = 0; il < n; il++) {
        row[KEYS_SWA][il] = row[KEYS][il];
        row[VALUES_SWA][il] = row[VALUES][il];
    }
    if (status == QKV_OK)
        status = read_each(model, "attention.key_length_swa", 1, MAX_WIDTH, row[KEYS_SWA], err);
    if (status == QKV_OK)
        status = read_each(model, "attention.value_length_swa", 1, MAX_WIDTH, row[VALUES_SWA], err);
    if (status == QKV_OK) status = read_feed_forward(model, least, row[FEED_FORWARD], err);
    return status;
}

/* ---- keys and values of another layer ---- */

static int is_windowed(const qkv_model *model, int32_t il) {
    return qkv_layer_window(model, il) > 0;
}

static int share_keys(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    char key[128];
    int64_t n = 0;
    snprintf(key, sizeof key, "%s.attention.shared_kv_layers", model->family->name);
    const int found = qkv_gguf_int(model->file, key, 0, hp->n_layer - 1, &n, err);
    if (found < 0) return found;
    for (int32_t il = 0; il < hp->n_layer; il++) hp->layers[il].kv_layer = il;
    for (int32_t il = hp->n_layer - (int32_t)n; il < hp->n_layer; il++) {
        int32_t from = hp->n_layer - (int32_t)n - 1;
        while (from >= 0 && is_windowed(model, from) != is_windowed(model, il)) from--;
        if (from < 0)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: layer %d has no keys of its own, and there is no layer before it "
                            "whose keys it could use",
                            model->file->path, (int)il);
        hp->layers[il].kv_layer = from;
    }
    return QKV_OK;
}

/* ---- checking ---- */

static int check(const qkv_model *model, const qkv_layer_shape *shape, qkv_error *err) {
    if (shape->n_kv_head == 0 || shape->n_head % shape->n_kv_head != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %d query heads cannot share %d key/value heads evenly",
                        model->file->path, shape->n_head, shape->n_kv_head);
    if (shape->head_dim < 1)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s.attention.key_length is missing",
                        model->file->path, model->family->name);
    if (shape->value_dim != shape->head_dim)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: keys of width %d with values of width %d are not supported",
                        model->file->path, shape->head_dim, shape->value_dim);
    /* Every channel has weights, of more than a bit each: a width that the file cannot hold must not
     * cost memory before the first tensor is found to be smaller. */
    const int64_t width = (int64_t)shape->head_dim * shape->n_head;
    if (width > MAX_WIDTH || (uint64_t)width / 8 > qkv_gguf_size(model->file))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %d heads of width %d are implausible",
                        model->file->path, shape->n_head, shape->head_dim);
    return QKV_OK;
}

static void grow(int32_t *largest, int32_t n) {
    if (n > *largest) *largest = n;
}

static void find_largest(qkv_hparams *hp) {
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const qkv_layer_shape *shape = &hp->layers[il];
        grow(&hp->largest.n_head, shape->n_head);
        grow(&hp->largest.n_kv_head, shape->n_kv_head);
        grow(&hp->largest.head_dim, shape->head_dim);
        grow(&hp->largest.value_dim, shape->value_dim);
        grow(&hp->largest.n_ff, shape->n_ff);
    }
    hp->largest.kv_layer = hp->n_layer;
}

int qkv_layer_shapes_read(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    const size_t n = (size_t)hp->n_layer;
    int32_t *rows = qkv_calloc(N_NUMBERS * n, sizeof *rows);
    hp->layers = qkv_calloc(n, sizeof *hp->layers);
    int status = rows && hp->layers ? read_numbers(model, rows, err) : qkv_fail_memory(err);
    for (size_t il = 0; status == QKV_OK && il < n; il++) {
        const int local = is_windowed(model, (int32_t)il);
        qkv_layer_shape *shape = &hp->layers[il];
        *shape = (qkv_layer_shape){.n_head = rows[HEADS * n + il],
                                   .n_kv_head = rows[KV_HEADS * n + il],
                                   .head_dim = rows[(local ? KEYS_SWA : KEYS) * n + il],
                                   .value_dim = rows[(local ? VALUES_SWA : VALUES) * n + il],
                                   .n_ff = rows[FEED_FORWARD * n + il]};
        if (!qkv_layer_has(hp, (int32_t)il, QKV_PART_ATTENTION))
            shape->n_head = shape->n_kv_head = 0;
        else
            status = check(model, shape, err);
        if (!qkv_layer_has(hp, (int32_t)il, QKV_PART_FEED_FORWARD)) shape->n_ff = 0;
    }
    if (status == QKV_OK) status = share_keys(model, err);
    if (status == QKV_OK) find_largest(hp);
    free(rows);
    return status;
}

/* ---- the public side ---- */

int qkv_model_get_layer(const qkv_model *model, int32_t layer, qkv_layer_info *info) {
    if (!model || !info || layer < 0 || layer >= model->hp.n_layer) return 0;
    const qkv_layer_shape *shape = &model->hp.layers[layer];
    const qkv_layer_info own = {.size = sizeof own,
                                .n_head = shape->n_head,
                                .n_kv_head = shape->n_kv_head,
                                .head_dim = shape->head_dim,
                                .value_dim = shape->value_dim,
                                .n_ff = shape->n_ff,
                                .window = qkv_model_window(model, layer),
                                .kv_layer = shape->kv_layer,
                                .has_gate = shape->n_head && model->hp.has_gate,
                                .kind = qkv_layer_name(&model->hp, layer)};
    return qkv_sized_write(info, &own, sizeof own, "qkv_layer_info", NULL) == QKV_OK;
}
