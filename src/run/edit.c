/* Membership questions about edits and captures. */
#include "run/edit.h"

#include <stdlib.h>

#include "run/site.h"

void qkv_selector_release(qkv_selector *where) {
    free(where->layers);
    free(where->heads);
    free(where->rows);
    free(where->cols);
    free(where->channels);
    *where = (qkv_selector){0};
}

void qkv_edit_release(qkv_edit *edit) {
    qkv_selector_release(&edit->where);
    free(edit->text);
    free(edit->note);
    free(edit->from);
    *edit = (qkv_edit){0};
}

int qkv_selector_has_layer(const qkv_selector *where, int32_t layer) {
    return where->layers == NULL || where->layers[layer];
}

int32_t qkv_selector_first_layer(const qkv_selector *where, const qkv_hparams *hp) {
    int32_t il = 0;
    while (il < hp->n_layer && (!where->layers || !where->layers[il])) il++;
    return il;
}

int qkv_selector_splits(const qkv_selector *where, const qkv_hparams *hp, int32_t layer) {
    return where->letter == 'h' && qkv_site_get_axes(where->site) == QKV_AXES_KEYVALUE &&
           qkv_layer_group(qkv_layer_shape_of(hp, layer)) > 1;
}

int qkv_selector_splits_any(const qkv_selector *where, const qkv_hparams *hp) {
    for (int32_t il = 0; where->layers && il < hp->n_layer; il++) {
        if (where->layers[il] && qkv_selector_splits(where, hp, il)) return 1;
    }
    return 0;
}

/* Without a way out in the middle of a block, which compilers make vectors of: every pair of a thousand
 * edits is looked at, over thousands of tokens. */
static int both_set(const uint8_t *a, const uint8_t *b, int64_t n) {
    enum { BLOCK = 256 };
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t end = first + BLOCK < n ? first + BLOCK : n;
        uint8_t any = 0;
        for (int64_t i = first; i < end; i++) any |= (uint8_t)((a[i] != 0) & (b[i] != 0));
        if (any) return 1;
    }
    return n == 0;
}

static int maps_meet(const uint8_t *a, const uint8_t *b, int64_t n) {
    if (a && b) return both_set(a, b, n);
    for (int64_t i = 0; i < n; i++) {
        if ((!a || a[i]) && (!b || b[i])) return 1;
    }
    return n == 0;
}

int qkv_selector_has_query_head(const qkv_selector *where, const qkv_hparams *hp, int32_t layer,
                                int32_t h) {
    if (!where->heads) return 1;
    return where
        ->heads[where->letter == 'g' ? h / qkv_layer_group(qkv_layer_shape_of(hp, layer)) : h];
}

static int heads_meet_in(const qkv_selector *a, const qkv_selector *b, const qkv_hparams *hp,
                         int32_t layer) {
    for (int32_t h = 0; h < qkv_layer_shape_of(hp, layer)->n_head; h++) {
        if (qkv_selector_has_query_head(a, hp, layer, h) &&
            qkv_selector_has_query_head(b, hp, layer, h))
            return 1;
    }
    return 0;
}

static int heads_meet(const qkv_selector *a, const qkv_selector *b, const qkv_hparams *hp) {
    if (!a->heads || !b->heads) return 1;
    if (!a->layers) return heads_meet_in(a, b, hp, hp->n_layer);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        if (a->layers[il] && b->layers[il] && heads_meet_in(a, b, hp, il)) return 1;
    }
    return 0;
}

/* Of sites that have channels: layers that several are named in have equally many. */
static int64_t n_channels(const qkv_selector *where, const qkv_hparams *hp, int64_t n_tokens) {
    return qkv_site_width(where->site, hp, qkv_selector_first_layer(where, hp), n_tokens);
}

int qkv_selector_overlap(const qkv_selector *a, const qkv_selector *b, const qkv_hparams *hp,
                         int64_t n_tokens) {
    if (a->site != b->site) return 0;
    if (a->layers && !maps_meet(a->layers, b->layers, hp->n_layer)) return 0;
    return maps_meet(a->rows, b->rows, n_tokens) && maps_meet(a->cols, b->cols, n_tokens) &&
           (!a->channels || !b->channels ||
            maps_meet(a->channels, b->channels, n_channels(a, hp, n_tokens))) &&
           heads_meet(a, b, hp);
}

static uint64_t count_map(const uint8_t *map, int64_t n) {
    uint64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += !map || map[i];
    return count;
}

/* Heads times channels, or keys. */
static uint64_t count_in_layer(const qkv_selector *where, const qkv_hparams *hp, int32_t layer,
                               int64_t n_tokens) {
    const qkv_layer_shape *shape = qkv_layer_shape_of(hp, layer);
    const int32_t own = qkv_site_n_heads(where->site, hp, layer);
    const int32_t named = where->letter == 'g' ? shape->n_kv_head : shape->n_head;
    const uint64_t heads =
        where->heads ? count_map(where->heads, named) : (uint64_t)(own ? own : 1);
    const uint64_t width =
        qkv_site_get_axes(where->site) == QKV_AXES_MAP
            ? count_map(where->cols, n_tokens)
            : count_map(where->channels, qkv_site_width(where->site, hp, layer, n_tokens));
    return heads * width;
}

uint64_t qkv_selector_count(const qkv_selector *where, const qkv_hparams *hp, int64_t n_tokens) {
    uint64_t count = where->layers ? 0 : count_in_layer(where, hp, hp->n_layer, n_tokens);
    for (int32_t il = 0; where->layers && il < hp->n_layer; il++) {
        if (where->layers[il]) count += count_in_layer(where, hp, il, n_tokens);
    }
    return count * count_map(where->rows, n_tokens);
}
