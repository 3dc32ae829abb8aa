#include "run/ops/edit_apply.h"

#include <math.h>
#include <string.h>

#include "run/run.h"
#include "run/site.h"

qkv_view qkv_view_of(qkv_site site, int32_t layer, const qkv_model *model, int32_t n_heads,
                     int64_t n_rows, int64_t n_tokens) {
    const qkv_hparams *hp = &model->hp;
    qkv_view view = {.site = site, .layer = layer, .n_rows = n_rows, .model = model, .group = 1};
    view.n_heads = view.all_heads = n_heads ? n_heads : 1;
    view.width = view.n_cols = view.patch_width = qkv_site_width(site, hp, layer, n_tokens);
    if (qkv_site_get_axes(site) == QKV_AXES_MAP) {
        view.head_stride = n_rows * n_tokens;
        view.row_stride = n_tokens;
    } else {
        view.head_stride = view.width;
        view.row_stride = view.width * view.n_heads;
    }
    view.src_head_stride = view.head_stride;
    if (qkv_site_get_axes(site) == QKV_AXES_KEYVALUE)
        view.group = n_heads / hp->layers[layer].n_kv_head;
    view.permuted = hp->qk_permuted && qkv_site_is_rotary(site);
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

int32_t qkv_counted_head(const qkv_edit *edit, const qkv_view *view, int32_t head) {
    return qkv_view_head(view, head) / (edit->where.letter == 'h' ? 1 : view->group);
}

float qkv_row_vector(const qkv_edit_row *row, int64_t c) {
    return row->vector[qkv_view_channel(row->view, c)];
}

static int selected(const uint8_t *map, int64_t i) {
    return !map || map[i];
}

static uint64_t apply_row(const qkv_edit_row *r, int64_t *overflow) {
    const qkv_edit *edit = r->edit;
    const qkv_operation *code = qkv_op_get(edit->op);
    uint64_t changed = 0;
    const qkv_view *v = r->view;
    int64_t first = v->first_col, end = v->first_col + v->n_cols;
    if (qkv_site_is_masked(v->site))
        qkv_visible_keys(v->model, v->layer, end, v->first_row + r->index, &first, &end);
    first = first < v->first_col ? 0 : first - v->first_col;
    end -= v->first_col;
    for (int64_t c = first; c < end; c++) {
        if (!selected(edit->where.cols, v->first_col + c) ||
            !selected(edit->where.channels, qkv_view_channel(v, c)))
            continue;
        float value = code->value(r, c);
        changed += !(value == r->src[c]);
        if (!isfinite(value) && isfinite(r->src[c]) && !(edit->flags & QKV_EDIT_HIDES) &&
            (*overflow < 0 || *overflow > r->index))
            *overflow = r->index;
        r->dst[c] = value;
    }
    return changed;
}

/* The row of what is taken that belongs to a token. */
static int64_t taken_row(const qkv_edit *edit, int64_t token) {
    if (edit->axis == QKV_MEAN_SET) return 0;
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
    const qkv_operation *code = qkv_op_get(edit->op);
    uint64_t changed = 0;
    for (int32_t h = 0; h < view->n_heads; h++) {
        if (!selected(edit->where.heads, qkv_counted_head(edit, view, h))) continue;
        const uint64_t counts = times_counted(edit, view, h);
        if (code->apply_head) {
            changed += counts * code->apply_head(edit, view, h, first, end, scratch);
            continue;
        }
        if (code->begin_head) code->begin_head(edit, view, h, scratch);
        for (int64_t t = first; t < end; t++) {
            if (!selected(edit->where.rows, view->first_row + t)) continue;
            qkv_edit_row r = {
                .edit = edit, .view = view, .head = h, .index = t, .scratch = scratch};
            r.src = view->src + h * view->src_head_stride + t * view->row_stride;
            r.dst = view->dst + h * view->head_stride + t * view->row_stride;
            if (view->moved) r.moved = view->moved + h * view->head_stride + t * view->row_stride;
            if (patch) r.patch = patch_row(edit, view, patch, h, t);
            r.vector = qkv_vector_row(edit, view, h, t);
            if (code->begin_row) code->begin_row(&r);
            uint64_t in_row = apply_row(&r, overflow);
            changed += counts * in_row;
        }
    }
    return changed;
}
