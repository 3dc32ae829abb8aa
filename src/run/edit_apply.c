#include "run/edit_apply.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "qkv/observe.h"
#include "run/site.h"
#include "run/vector.h"

qkv_view qkv_view_of(qkv_site site, int32_t layer, const qkv_model *model, int32_t n_heads,
                     int64_t n_rows, int64_t n_tokens) {
    const qkv_hparams *hp = &model->hp;
    qkv_view view = {.site = site, .layer = layer, .n_rows = n_rows, .model = model, .group = 1};
    view.n_heads = view.all_heads = n_heads ? n_heads : 1;
    view.width = view.n_cols = view.patch_width = qkv_site_width(site, hp, n_tokens);
    if (qkv_site_get_axes(site) == QKV_AXES_MAP) {
        view.head_stride = n_rows * n_tokens;
        view.row_stride = n_tokens;
    } else {
        view.head_stride = view.width;
        view.row_stride = view.width * view.n_heads;
    }
    view.src_head_stride = view.head_stride;
    if (qkv_site_get_axes(site) == QKV_AXES_KEYVALUE) view.group = n_heads / hp->n_kv_head;
    view.permuted = hp->qk_permuted && (site == QKV_SITE_Q || site == QKV_SITE_K ||
                                        site == QKV_SITE_Q_ROT || site == QKV_SITE_K_ROT);
    return view;
}

int32_t qkv_view_head(const qkv_view *view, int32_t head) {
    return view->heads ? view->heads[head] : view->first_head + head;
}

int64_t qkv_view_size(const qkv_view *view) {
    return view->n_heads * view->n_rows * view->width;
}

int64_t qkv_channel_original(int64_t c, int64_t d) {
    return c % 2 ? d / 2 + c / 2 : c / 2;
}

int64_t qkv_view_channel(const qkv_view *view, int64_t c) {
    return view->permuted ? qkv_channel_original(c, view->width) : c;
}

int64_t qkv_view_place(const qkv_view *view, int64_t channel) {
    const int64_t half = view->width / 2;
    if (!view->permuted) return channel;
    return channel < half ? 2 * channel : 2 * (channel - half) + 1;
}

/* Everything that the edit of one row needs. */
typedef struct row {
    const qkv_edit *edit;
    const qkv_view *view;
    int32_t head;
    int64_t index;
    const float *src;
    float *dst;
    const float *moved;  /* of scores: cache_positions.h */
    const float *patch;  /* that row of the other prompt */
    float *scratch;      /* mean over tokens of this head, for mean:token */
    const float *vector; /* that row of the edit's vector, in the original order of channels */
    double share;        /* of the vector in the row, for remove */
} row;

/* The head's number as the selector counts: a split group is one head to edits that name
 * key/value heads. */
static int32_t counted_head(const qkv_edit *edit, const qkv_view *view, int32_t head) {
    return qkv_view_head(view, head) / (edit->where.letter == 'h' ? 1 : view->group);
}

static int selected(const uint8_t *map, int64_t i) {
    return !map || map[i];
}

/* In a split group every query head counts; where they are still copies of one another, that is the
 * mean over the key/value heads. All copies of the own one are the head itself. */
static float mean_over_heads(const row *r, int64_t c) {
    const qkv_view *v = r->view;
    const int32_t own = r->edit->others ? (v->first_head + r->head) / v->group : -1;
    double sum = 0;
    int32_t n = 0;
    for (int32_t h = 0; h < v->n_heads; h++) {
        if ((v->first_head + h) / v->group == own) continue;
        sum += (double)v->src[h * v->src_head_stride + r->index * v->row_stride + c];
        n++;
    }
    return (float)(sum / n);
}

static float mean_over_row(const row *r) {
    double sum = 0;
    for (int64_t c = 0; c < r->view->width; c++) sum += (double)r->src[c];
    return (float)(sum / (double)r->view->width);
}

/* Keyed by what the element is, not by where it lies in memory: the same noise however the run is
 * batched. */
static float noise_at(const row *r, int64_t c) {
    const qkv_view *v = r->view;
    uint64_t key = qkv_random_mix(r->edit->seed, (uint64_t)v->site);
    key = qkv_random_mix(key, (uint64_t)v->layer);
    key = qkv_random_mix(key, (uint64_t)counted_head(r->edit, v, r->head));
    key = qkv_random_mix(key, (uint64_t)(v->first_row + r->index));
    return qkv_random_gaussian(
        qkv_random_mix(key, (uint64_t)(v->first_col + qkv_view_channel(v, c))));
}

static float clamp(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

static float vector_at(const row *r, int64_t c) {
    return r->vector[qkv_view_channel(r->view, c)];
}

static float masked_value(const row *r, int64_t c) {
    const qkv_mask_rule *rule = &r->edit->mask;
    const int64_t query = r->view->first_row + r->index, key = r->view->first_col + c;
    if (qkv_mask_hides(rule, query, key)) return -INFINITY;
    return r->moved && key < rule->sink && qkv_mask_ahead(rule, query) ? r->moved[c] : r->src[c];
}

static float edited_value(const row *r, int64_t c, float row_mean) {
    const qkv_edit *edit = r->edit;
    float x = r->src[c];
    switch (edit->op) {
    case QKV_OP_SCALE:
        return edit->a * x;
    case QKV_OP_SET:
        return r->vector ? vector_at(r, c) : edit->a;
    case QKV_OP_ZERO:
        return 0;
    case QKV_OP_ADD:
        return x + edit->a * (r->vector ? vector_at(r, c) : 1);
    case QKV_OP_REMOVE:
        return (float)((double)x - r->share * (double)vector_at(r, c));
    case QKV_OP_NOISE:
        return x + edit->a * noise_at(r, c);
    case QKV_OP_CLAMP:
        return clamp(x, edit->a, edit->b);
    case QKV_OP_MASK:
        return masked_value(r, c);
    case QKV_OP_PATCH:
    case QKV_OP_FREEZE:
        assert(r->patch);
        return r->patch[c];
    case QKV_OP_MEAN:
        if (r->patch) return r->patch[c];
        if (edit->axis == QKV_MEAN_HEAD) return mean_over_heads(r, c);
        return edit->axis == QKV_MEAN_TOKEN ? r->scratch[c] : row_mean;
    default:
        return x;
    }
}

static uint64_t apply_row(const row *r, int64_t *overflow) {
    const qkv_edit *edit = r->edit;
    int over_row = edit->op == QKV_OP_MEAN && edit->axis == QKV_MEAN_DIM;
    float row_mean = over_row ? mean_over_row(r) : 0;
    uint64_t changed = 0;
    const qkv_view *v = r->view;
    int64_t first = v->first_col, end = v->first_col + v->n_cols;
    if (v->site == QKV_SITE_SCORES)
        qkv_visible_keys(v->model, v->layer, end, v->first_row + r->index, &first, &end);
    first = first < v->first_col ? 0 : first - v->first_col;
    end -= v->first_col;
    for (int64_t c = first; c < end; c++) {
        if (!selected(edit->where.cols, v->first_col + c) ||
            !selected(edit->where.channels, qkv_view_channel(v, c)))
            continue;
        float value = edited_value(r, c, row_mean);
        changed += !(value == r->src[c]);
        if (!isfinite(value) && isfinite(r->src[c]) && !qkv_edit_masks(edit) &&
            (*overflow < 0 || *overflow > r->index))
            *overflow = r->index;
        r->dst[c] = value;
    }
    return changed;
}

static void mean_over_tokens(const qkv_view *view, int32_t head, float *mean) {
    for (int64_t c = 0; c < view->width; c++) {
        const float *src = view->src + head * view->src_head_stride + c;
        double sum = 0;
        for (int64_t t = 0; t < view->n_rows; t++) sum += (double)src[t * view->row_stride];
        mean[c] = (float)(sum / (double)view->n_rows);
    }
}

/* The row of what is taken that belongs to a token. */
static int64_t taken_row(const qkv_edit *edit, int64_t token) {
    if (edit->op == QKV_OP_MEAN && edit->axis == QKV_MEAN_SET) return 0;
    return edit->from ? edit->from[token] : token;
}

/* The other prompt's tensor is whole: all rows, and the site's own heads, none of them split. A mean
 * over all tokens has one row. */
static const float *patch_row(const qkv_edit *edit, const qkv_view *view, const float *patch,
                              int32_t head, int64_t t) {
    if (qkv_site_get_axes(view->site) == QKV_AXES_MAP)
        return patch +
               ((view->first_head + head) * view->patch_width + view->first_row + t) *
                   view->patch_width +
               view->first_col;
    const int64_t from = taken_row(edit, view->first_row + t);
    if (qkv_site_is_input(view->site)) return patch + from * view->width;
    return patch + from * (view->row_stride / view->group) + head / view->group * view->head_stride;
}

/* The copies of a split head count once for an edit that means the key/value head. */
static uint64_t times_counted(const qkv_edit *edit, const qkv_view *view, int32_t h) {
    const int by_heads = edit->where.letter == 'h';
    if (view->alike) return (uint64_t)(by_heads ? view->alike[h].heads : view->alike[h].groups);
    return by_heads || h % view->group == 0;
}

uint64_t qkv_edit_apply(const qkv_edit *edit, const qkv_view *view, int64_t first, int64_t end,
                        const float *patch, float *scratch, int64_t *overflow) {
    uint64_t changed = 0;
    for (int32_t h = 0; h < view->n_heads; h++) {
        if (!selected(edit->where.heads, counted_head(edit, view, h))) continue;
        const uint64_t counts = times_counted(edit, view, h);
        if (edit->op == QKV_OP_KEEP) {
            changed += qkv_keep_head(edit, view, h);
            continue;
        }
        if (edit->op == QKV_OP_QUANT) {
            const uint64_t in_head = qkv_quant_head(edit, view, h, first, end, scratch);
            changed += counts * in_head;
            continue;
        }
        if (edit->op == QKV_OP_MEAN && edit->axis == QKV_MEAN_TOKEN)
            mean_over_tokens(view, h, scratch);
        for (int64_t t = first; t < end; t++) {
            if (!selected(edit->where.rows, view->first_row + t)) continue;
            row r = {.edit = edit, .view = view, .head = h, .index = t, .scratch = scratch};
            r.src = view->src + h * view->src_head_stride + t * view->row_stride;
            r.dst = view->dst + h * view->head_stride + t * view->row_stride;
            if (view->moved) r.moved = view->moved + h * view->head_stride + t * view->row_stride;
            if (patch) r.patch = patch_row(edit, view, patch, h, t);
            r.vector = qkv_vector_row(edit, view, h, t);
            if (edit->op == QKV_OP_REMOVE) r.share = qkv_vector_share(r.vector, r.src, view);
            uint64_t in_row = apply_row(&r, overflow);
            changed += counts * in_row;
        }
    }
    return changed;
}
