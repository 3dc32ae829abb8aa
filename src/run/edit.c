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

int qkv_selector_splits(const qkv_selector *where, const qkv_hparams *hp) {
    return where->letter == 'h' && qkv_site_get_axes(where->site) == QKV_AXES_KEYVALUE &&
           hp->n_head != hp->n_kv_head;
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

int qkv_selector_has_query_head(const qkv_selector *where, const qkv_hparams *hp, int32_t h) {
    if (!where->heads) return 1;
    return where->heads[where->letter == 'g' ? h / (hp->n_head / hp->n_kv_head) : h];
}

static int heads_meet(const qkv_selector *a, const qkv_selector *b, const qkv_hparams *hp) {
    for (int32_t h = 0; h < hp->n_head; h++) {
        if (qkv_selector_has_query_head(a, hp, h) && qkv_selector_has_query_head(b, hp, h))
            return 1;
    }
    return 0;
}

int qkv_selector_overlap(const qkv_selector *a, const qkv_selector *b, const qkv_hparams *hp,
                         int64_t n_tokens) {
    if (a->site != b->site) return 0;
    if (a->layers && !maps_meet(a->layers, b->layers, hp->n_layer)) return 0;
    return heads_meet(a, b, hp) && maps_meet(a->rows, b->rows, n_tokens) &&
           maps_meet(a->cols, b->cols, n_tokens) &&
           maps_meet(a->channels, b->channels, qkv_site_width(a->site, hp, n_tokens));
}

static uint64_t count_map(const uint8_t *map, int64_t n) {
    uint64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += !map || map[i];
    return count;
}

uint64_t qkv_selector_count(const qkv_selector *where, const qkv_hparams *hp, int64_t n_tokens) {
    int32_t all_heads = qkv_site_n_heads(where->site, hp);
    uint64_t layers = where->layers ? count_map(where->layers, hp->n_layer) : 1;
    uint64_t heads = where->heads ? count_map(where->heads, where->n_heads)
                                  : (uint64_t)(all_heads ? all_heads : 1);
    uint64_t width = qkv_site_get_axes(where->site) == QKV_AXES_MAP
                         ? count_map(where->cols, n_tokens)
                         : count_map(where->channels, qkv_site_width(where->site, hp, n_tokens));
    return layers * heads * count_map(where->rows, n_tokens) * width;
}
