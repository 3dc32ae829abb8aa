/*
 * How far an edit can be seen: through sites and layers (site.c), and inside its own layer head by head
 * and, at its own site, channel by channel. Where only some tokens' logits, or states after the final
 * norm, are captured, token by token too.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "run/plan/plan.h"
#include "run/run.h"

/* ---- heads: they stay apart until the output projection, unless they are normed together ---- */

static int wants_head(const qkv_wanted *wanted, const qkv_layer_shape *shape, int32_t h) {
    int32_t counted = wanted->letter == 'g' ? h / qkv_layer_group(shape) : h;
    if (wanted->wanted && wanted->heads[counted]) return 1;
    if (wanted->observed && wanted->observed[h]) return 1;
    for (size_t r = 0; r < wanted->n_reductions; r++) {
        if (wanted->reductions[r].heads[h]) return 1;
    }
    return 0;
}

static int shows_in_heads(const qkv_plan *plan, const qkv_selector *where, int32_t layer,
                          qkv_site seen, const qkv_wanted *wanted) {
    const qkv_hparams *hp = &plan->model->hp;
    if (!qkv_site_has_heads(where->site) || !qkv_site_has_heads(seen)) return 1;
    if (seen != where->site && qkv_heads_are_normed_together(plan->model, where->site, layer))
        return 1;
    const qkv_layer_shape *shape = &hp->layers[layer];
    for (int32_t h = 0; h < shape->n_head; h++) {
        if (qkv_selector_has_query_head(where, hp, layer, h) && wants_head(wanted, shape, h))
            return 1;
    }
    return 0;
}

/* ---- channels: they stay apart at a site, and from v to z ---- */

static int shows_in_channels(const qkv_selector *where, qkv_site seen, const qkv_wanted *wanted) {
    if (!qkv_site_keeps_channels(where->site, seen) || !where->channels || !wanted->channels)
        return 1;
    for (int64_t c = 0; c < wanted->width; c++) {
        if (where->channels[c] && wanted->channels[c]) return 1;
    }
    return 0;
}

/* ---- tokens ---- */

/* Turns the tokens that differ at the keys of a layer into the queries that see one of them.
 * `before` has room for n_tokens + 1. */
static void spread(const qkv_plan *plan, int32_t layer, uint8_t *tokens, int64_t *before) {
    int64_t T = plan->n_tokens;
    before[0] = 0;
    for (int64_t t = 0; t < T; t++) before[t + 1] = before[t] + tokens[t];
    for (int64_t t = 0; t < T; t++) {
        int64_t first, end;
        qkv_visible_keys(plan->model, layer, T, t, &first, &end);
        tokens[t] = before[end] > before[first];
    }
}

static int shows_in_tokens(const qkv_plan *plan, const qkv_selector *where, int32_t layer,
                           const uint8_t *rows) {
    int64_t T = plan->n_tokens;
    if (!rows || !where->rows) return 1;
    uint8_t *tokens = qkv_calloc((size_t)T, 1);
    int64_t *before = qkv_calloc((size_t)T + 1, sizeof *before);
    int shows = !tokens || !before; /* out of memory: computing too much does no harm */
    if (!shows) {
        const int at_keys = qkv_site_feeds_keys(where->site);
        for (int64_t t = 0; t < T; t++) tokens[t] = where->rows[t];
        for (int32_t il = at_keys ? layer : layer + 1; il < plan->model->hp.n_layer; il++)
            spread(plan, il, tokens, before);
        for (int64_t t = 0; t < T; t++) shows |= tokens[t] && rows[t];
    }
    free(tokens);
    free(before);
    return shows;
}

/* ---- the whole ---- */

/* Other edits of a variant can carry what one has changed to other heads and tokens (QKV_EDIT_SPREADS), and a
 * pattern can get weight on keys that the mask hides. Does one follow? Then all is taken to show: computing too
 * much does no harm. */
static int is_carried(const qkv_variant *variant, const qkv_edit *edit, int32_t layer,
                      int32_t n_layer) {
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *other = &variant->edits[i];
        const int carries =
            (other->flags & QKV_EDIT_SPREADS) || qkv_site_is_weights(other->where.site);
        if (other == edit || (other->flags & QKV_EDIT_TAKES_SET) || !carries) continue;
        if (!other->where.layers) return 1;
        for (int32_t il = layer; il < n_layer; il++) {
            if (other->where.layers[il]) return 1;
        }
    }
    return 0;
}

int qkv_plan_edit_shows(const qkv_plan *plan, const qkv_variant *variant, const qkv_edit *edit,
                        int32_t layer) {
    const qkv_selector *where = &edit->where;
    int32_t n_layer = plan->model->hp.n_layer;
    int carried = is_carried(variant, edit, layer, n_layer);
    for (int32_t il = layer; il <= n_layer; il++) {
        for (int i = 0; i < QKV_SITE_COUNT; i++) {
            qkv_site site = (qkv_site)i;
            const qkv_wanted *wanted = &plan->wanted[(size_t)il * QKV_SITE_COUNT + (size_t)i];
            if (!qkv_wanted_any(wanted) ||
                !qkv_site_reaches(&plan->model->hp, where->site, layer, site, il) ||
                (il == layer && !carried &&
                 !(shows_in_heads(plan, where, layer, site, wanted) &&
                   shows_in_channels(where, site, wanted))) ||
                (!qkv_site_has_layer(site) && !carried &&
                 !shows_in_tokens(plan, where, layer, wanted->rows)))
                continue;
            return 1;
        }
    }
    return 0;
}

/* Does the edit act in the layer (n_layer: after all of them)? */
static int acts_in(const qkv_plan *plan, const qkv_selector *where, int32_t layer) {
    const int32_t n_layer = plan->model->hp.n_layer;
    if (!where->layers) return layer == n_layer;
    return layer < n_layer && where->layers[layer];
}

int qkv_plan_is_disturbed(const qkv_plan *plan, const qkv_variant *variant, const qkv_edit *edit,
                          int32_t layer) {
    if (!acts_in(plan, &edit->where, layer)) return 0;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *other = &variant->edits[i];
        if (other == edit || (other->flags & QKV_EDIT_TAKES_UNEDITED)) continue;
        for (int32_t il = 0; il <= layer; il++) {
            if (!acts_in(plan, &other->where, il)) continue;
            if (il == layer && other->where.site == edit->where.site) continue;
            if (qkv_site_reaches(&plan->model->hp, other->where.site, il, edit->where.site, layer))
                return 1;
        }
    }
    return 0;
}

/* A freeze shows only where the edits that disturb it do. */
int qkv_plan_variant_reaches(const qkv_plan *plan, size_t variant, qkv_site site, int32_t layer) {
    const qkv_variant *v = &plan->variants[variant];
    int32_t n_layer = plan->model->hp.n_layer;
    int32_t seen = qkv_plan_layer(plan, site, layer);
    for (size_t i = 0; i < v->n_edits; i++) {
        const qkv_selector *where = &v->edits[i].where;
        if (v->edits[i].flags & QKV_EDIT_TAKES_UNEDITED) continue;
        if (!where->layers && qkv_site_reaches(&plan->model->hp, where->site, n_layer, site, seen))
            return 1;
        for (int32_t il = 0; where->layers && il <= seen && il < n_layer; il++) {
            if (where->layers[il] &&
                qkv_site_reaches(&plan->model->hp, where->site, il, site, seen))
                return 1;
        }
    }
    return 0;
}
