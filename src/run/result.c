#include "run/result.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "qkv/edit_data.h"
#include "run/graph/reduce.h"
#include "run/ops/edit_apply.h"

static int fill_report(qkv_variant_report *report, const qkv_variant *variant) {
    report->edits = qkv_calloc(variant->n_edits, sizeof *report->edits);
    report->changed = qkv_calloc(variant->n_edits, sizeof *report->changed);
    if (!report->edits || !report->changed) return 0;
    report->n_edits = variant->n_edits;
    for (size_t i = 0; i < variant->n_edits; i++) {
        report->edits[i].text = qkv_strdup(variant->edits[i].text);
        report->edits[i].note = qkv_strdup(variant->edits[i].note);
        report->edits[i].selected = variant->edits[i].selected;
        if (!report->edits[i].text || (variant->edits[i].note && !report->edits[i].note)) return 0;
    }
    return 1;
}

int qkv_result_new(qkv_result **out, const qkv_plan *plan, qkv_error *err) {
    *out = NULL;
    qkv_result *result = qkv_calloc(1, sizeof *result);
    if (!result) return qkv_fail_memory(err);
    result->n_layer = plan->model->hp.n_layer;
    result->stats.size = sizeof result->stats;
    result->variants = qkv_calloc(plan->n_variants, sizeof *result->variants);
    int ok = result->variants != NULL;
    for (size_t i = 0; ok && i < plan->n_variants; i++) {
        result->n_variants++;
        ok = fill_report(&result->variants[i], &plan->variants[i]);
    }
    if (!ok) {
        qkv_result_free(result);
        return qkv_fail_memory(err);
    }
    *out = result;
    return QKV_OK;
}

void qkv_item_release(qkv_item *item) {
    free(item->owned);
    free(item->owned_heads);
    free(item->owned_channels);
}

void qkv_result_free(qkv_result *result) {
    if (!result) return;
    for (size_t i = 0; i < result->n_items; i++) qkv_item_release(&result->items[i]);
    for (size_t v = 0; result->variants && v < result->n_variants; v++) {
        for (size_t i = 0; i < result->variants[v].n_edits; i++) {
            free(result->variants[v].edits[i].text);
            free(result->variants[v].edits[i].note);
        }
        free(result->variants[v].edits);
        free(result->variants[v].changed);
    }
    free(result->items);
    free(result->variants);
    free(result);
}

/* ---- adding ---- */

/* Says where in the tensor the bad value is, the way its axes are called. */
static int fail_not_finite(const qkv_plan *plan, const qkv_item *item, int64_t at, qkv_error *err) {
    const int64_t *shape = item->tensor.shape;
    float value = item->tensor.data[at];
    const char *kind = isnan(value) ? "NaN" : "Inf";
    char where[128], layer[32] = "", variant[32] = "the baseline";
    int64_t inner = shape[item->tensor.n_dims - 1];
    if (qkv_site_get_axes(item->site) == QKV_AXES_MAP)
        snprintf(where, sizeof where, "head %d, query %lld, key %lld",
                 item->tensor.heads[at / (inner * shape[1])], (long long)(at / inner % shape[1]),
                 (long long)(at % inner));
    else
        snprintf(where, sizeof where, "token %lld",
                 (long long)(at / (inner * (item->tensor.n_dims == 3 ? shape[1] : 1))));
    if (qkv_site_has_layer(item->site)) snprintf(layer, sizeof layer, " of layer %d", item->layer);
    if (item->variant) snprintf(variant, sizeof variant, "variant %zu", item->variant);
    return qkv_fail(err, QKV_ERR_NUMERIC, "%s%s%s%s: %s%s holds %s, first at %s", variant,
                    item->variant ? " (" : "",
                    item->variant ? plan->variants[item->variant].text : "",
                    item->variant ? ")" : "", qkv_site_name(item->site), layer, kind, where);
}

/* Scores that a mask has taken away are -inf. */
static int has_masked_scores(const qkv_plan *plan, const qkv_item *item) {
    const qkv_variant *variant = &plan->variants[item->variant];
    for (size_t i = 0; qkv_site_is_masked(item->site) && i < variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i];
        if ((edit->flags & QKV_EDIT_HIDES) && qkv_selector_has_layer(&edit->where, item->layer))
            return 1;
    }
    return 0;
}

static int check_finite(const qkv_plan *plan, const qkv_item *item, int64_t size, qkv_error *err) {
    const int masked = has_masked_scores(plan, item);
    for (int64_t i = 0; i < size; i++) {
        if (masked && item->owned[i] == -INFINITY) continue;
        if (!isfinite(item->owned[i])) return fail_not_finite(plan, item, i, err);
    }
    return QKV_OK;
}

static int list_heads(qkv_item *item, const qkv_wanted *wanted, qkv_error *err) {
    item->owned_heads = qkv_calloc((size_t)wanted->n_heads, sizeof *item->owned_heads);
    if (!item->owned_heads) return qkv_fail_memory(err);
    for (int32_t h = 0; h < wanted->n_heads; h++) {
        if (wanted->heads[h]) item->owned_heads[item->tensor.n_heads++] = h;
    }
    item->tensor.heads = item->owned_heads;
    item->tensor.head_kind = wanted->letter;
    return QKV_OK;
}

static int list_channels(qkv_item *item, const qkv_wanted *wanted, qkv_error *err) {
    if (!wanted->channels) return QKV_OK;
    item->owned_channels = qkv_calloc((size_t)wanted->width, sizeof *item->owned_channels);
    if (!item->owned_channels) return qkv_fail_memory(err);
    for (int64_t c = 0; c < wanted->width; c++) {
        if (wanted->channels[c]) item->owned_channels[item->tensor.n_channels++] = c;
    }
    item->tensor.channels = item->owned_channels;
    return QKV_OK;
}

static void set_shape(qkv_tensor *tensor, qkv_site site, int64_t rows, int64_t width) {
    if (tensor->n_heads == 0) {
        tensor->n_dims = 2;
        tensor->shape[0] = rows;
        tensor->shape[1] = width;
        return;
    }
    int is_map = qkv_site_get_axes(site) == QKV_AXES_MAP;
    tensor->n_dims = 3;
    tensor->shape[0] = is_map ? tensor->n_heads : rows;
    tensor->shape[1] = is_map ? rows : tensor->n_heads;
    tensor->shape[2] = width;
}

/* Writes as many values as the item has channels. */
static void copy_row(const qkv_item *item, int64_t to, const float *src, const qkv_view *view) {
    const int64_t *channels = item->owned_channels, n = item->tensor.shape[item->tensor.n_dims - 1];
    float *dst = item->owned + to * n;
    if (!view->permuted && !channels) {
        memcpy(dst, src, (size_t)n * sizeof *dst);
        return;
    }
    for (int64_t i = 0; i < n; i++) dst[i] = src[qkv_view_place(view, channels ? channels[i] : i)];
}

static const qkv_item *find_item(const qkv_result *result, size_t variant, qkv_site site,
                                 int32_t layer, qkv_reduction reduction) {
    if (!qkv_site_has_layer(site)) layer = result->n_layer;
    for (size_t i = 0; i < result->n_items; i++) {
        const qkv_item *item = &result->items[i];
        if (item->variant == variant && item->site == site && item->layer == layer &&
            item->tensor.reduction == reduction)
            return item;
    }
    return NULL;
}

/* Row t of head h of the site, wherever it was computed. */
static const float *source_row(const qkv_result *result, const qkv_item *item, const qkv_view *view,
                               const qkv_computed *computed, int32_t capture_head, int32_t h,
                               int64_t t) {
    if (qkv_site_is_input(item->site)) {
        const float *copy = computed->copies ? computed->copies[h] : NULL;
        return (copy ? copy : computed->data) + t * view->width;
    }
    h -= view->first_head;
    if (h >= 0 && h < view->n_heads)
        return view->src + h * view->head_stride + t * view->row_stride;
    /* Only maps are computed in part; the other heads are the baseline's. */
    const qkv_tensor *base =
        &find_item(result, 0, item->site, item->layer, QKV_REDUCTION_NONE)->tensor;
    return base->data + (capture_head * view->n_rows + t) * view->width;
}

/* Copies the wanted heads (everything where the site has none) from the graph's layout to the
 * result's. */
static void copy_heads(const qkv_result *result, qkv_item *item, const qkv_view *view,
                       const qkv_computed *computed, const qkv_wanted *wanted, int32_t site_heads) {
    int32_t n_heads = item->tensor.n_heads ? item->tensor.n_heads : 1;
    int is_map = qkv_site_get_axes(item->site) == QKV_AXES_MAP;
    for (int32_t i = 0; i < n_heads; i++) {
        /* The tensor may have more heads than the capture counts (a split group), or fewer (k by
         * query heads). */
        int32_t h = wanted->n_heads ? item->owned_heads[i] * site_heads / wanted->n_heads : 0;
        for (int64_t t = 0; t < view->n_rows; t++) {
            int64_t to = is_map ? i * view->n_rows + t : t * n_heads + i;
            copy_row(item, to, source_row(result, item, view, computed, i, h, t), view);
        }
    }
}

/* After all layers: rows of the wanted tokens, out of those that were computed. */
static void copy_rows(qkv_item *item, const qkv_view *view, const qkv_wanted *wanted,
                      const uint8_t *computed, int64_t n_tokens) {
    int64_t from = 0, to = 0;
    for (int64_t t = 0; t < n_tokens; t++) {
        if (computed && !computed[t]) continue;
        if (!wanted->rows || wanted->rows[t])
            copy_row(item, to++, view->src + from * view->row_stride, view);
        from++;
    }
}

static int push_item(qkv_result *result, qkv_item *item, qkv_error *err) {
    if (QKV_PUSH(result->items, result->capacity, result->n_items, *item)) return QKV_OK;
    qkv_item_release(item);
    return qkv_fail_memory(err);
}

static int64_t count_rows(const qkv_wanted *wanted, int64_t n_tokens) {
    int64_t n = 0;
    for (int64_t t = 0; t < n_tokens; t++) n += !wanted->rows || wanted->rows[t];
    return n;
}

int qkv_result_add(qkv_result *result, const qkv_plan *plan, size_t variant,
                   const qkv_computed *computed, qkv_error *err) {
    const qkv_wanted *wanted = qkv_plan_wanted(plan, computed->layer, computed->site);
    qkv_view view = qkv_view_of(computed->site, computed->layer, plan->model, computed->n_heads,
                                computed->n_rows, plan->n_tokens);
    view.src = computed->data;
    view.first_head = computed->first_head;
    qkv_item item = {.variant = variant,
                     .site = computed->site,
                     .layer = computed->layer,
                     .tensor = QKV_TENSOR_INIT};
    int status = wanted->n_heads ? list_heads(&item, wanted, err) : QKV_OK;
    if (status == QKV_OK) status = list_channels(&item, wanted, err);
    if (status != QKV_OK) {
        qkv_item_release(&item);
        return status;
    }
    int64_t rows = count_rows(wanted, plan->n_tokens);
    int64_t width = item.owned_channels ? item.tensor.n_channels : view.width;
    int64_t size = (item.tensor.n_heads ? item.tensor.n_heads : 1) * rows * width;
    item.owned = qkv_calloc((size_t)size, sizeof *item.owned);
    if (!item.owned) {
        qkv_item_release(&item);
        return qkv_fail_memory(err);
    }
    item.tensor.data = item.owned;
    set_shape(&item.tensor, item.site, rows, width);
    /* A part of a map counts its heads as the whole map does. */
    int is_map = qkv_site_get_axes(item.site) == QKV_AXES_MAP;
    int32_t site_heads = is_map ? plan->model->hp.layers[item.layer].n_head : view.n_heads;
    if (!qkv_site_has_layer(item.site))
        copy_rows(&item, &view, wanted, computed->rows, plan->n_tokens);
    else
        copy_heads(result, &item, &view, computed, wanted, site_heads);
    status = check_finite(plan, &item, size, err);
    if (status != QKV_OK) {
        qkv_item_release(&item);
        return status;
    }
    return push_item(result, &item, err);
}

static const qkv_wanted_reduction *find_reduction(const qkv_wanted *wanted, qkv_reduction kind) {
    size_t i = 0;
    while (wanted->reductions[i].kind != kind) i++;
    return &wanted->reductions[i];
}

static void set_reduced_shape(qkv_tensor *tensor, int64_t side, int64_t n_tokens) {
    tensor->shape[0] = tensor->n_heads;
    tensor->n_dims = 1 + qkv_reduction_dims(tensor->reduction);
    int64_t inner = tensor->n_dims == 2 ? n_tokens : qkv_reduction_side(side, n_tokens);
    tensor->shape[1] = tensor->shape[2] = inner;
}

int qkv_result_add_reduced(qkv_result *result, const qkv_plan *plan, size_t variant,
                           const qkv_computed *computed, qkv_reduction kind, qkv_error *err) {
    const qkv_wanted *place = qkv_plan_wanted(plan, computed->layer, computed->site);
    const qkv_wanted_reduction *reduction = find_reduction(place, kind);
    qkv_wanted wanted = {.letter = 'h',
                         .heads = reduction->heads,
                         .n_heads = plan->model->hp.layers[computed->layer].n_head};
    qkv_item item = {.variant = variant,
                     .site = computed->site,
                     .layer = computed->layer,
                     .tensor = QKV_TENSOR_INIT};
    int status = list_heads(&item, &wanted, err);
    if (status != QKV_OK) return status;
    item.tensor.reduction = kind;
    int64_t size = qkv_reduction_size(kind, reduction->side, plan->n_tokens);
    item.owned = qkv_calloc((size_t)(item.tensor.n_heads * size), sizeof *item.owned);
    if (!item.owned) {
        qkv_item_release(&item);
        return qkv_fail_memory(err);
    }
    item.tensor.data = item.owned;
    set_reduced_shape(&item.tensor, reduction->side, plan->n_tokens);
    const qkv_item *base = find_item(result, 0, item.site, item.layer, kind);
    for (int32_t i = 0; i < item.tensor.n_heads; i++) {
        int32_t h = item.owned_heads[i];
        float *to = item.owned + i * size;
        if (h >= computed->first_head && h < computed->first_head + computed->n_heads) {
            for (int64_t c = 0; c < size; c++) to[c] = (float)computed->sums[h * size + c];
        } else {
            assert(base); /* only variants compute a part of the heads */
            memcpy(to, base->tensor.data + i * size, (size_t)size * sizeof *to);
        }
    }
    status = check_finite(plan, &item, item.tensor.n_heads * size, err);
    if (status == QKV_OK) return push_item(result, &item, err);
    qkv_item_release(&item);
    return status;
}

int qkv_result_share(qkv_result *result, size_t variant, qkv_site site, int32_t layer,
                     qkv_error *err) {
    int status = QKV_OK;
    for (int kind = 0; status == QKV_OK && kind < QKV_REDUCTION_COUNT; kind++) {
        const qkv_item *base = find_item(result, 0, site, layer, (qkv_reduction)kind);
        if (!base) continue;
        qkv_item item = {
            .variant = variant, .site = site, .layer = base->layer, .tensor = base->tensor};
        status = push_item(result, &item, err);
    }
    return status;
}

static int item_order(const void *left, const void *right) {
    const qkv_item *a = left, *b = right;
    if (a->variant != b->variant) return a->variant < b->variant ? -1 : 1;
    if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
    if (a->site != b->site) return a->site < b->site ? -1 : 1;
    return (a->tensor.reduction > b->tensor.reduction) -
           (a->tensor.reduction < b->tensor.reduction);
}

void qkv_result_sort(qkv_result *result) {
    if (result->n_items) qsort(result->items, result->n_items, sizeof *result->items, item_order);
}

/* ---- reading ---- */

size_t qkv_result_n_variants(const qkv_result *result) {
    return result ? result->n_variants : 0;
}

int qkv_result_get_stats(const qkv_result *result, qkv_run_stats *stats) {
    if (!result || !stats) return 0;
    return qkv_sized_write(stats, &result->stats, sizeof *stats, "qkv_run_stats", NULL) == QKV_OK;
}

/* 1, or 0 where there is no item or no place for it. */
static int show_item(const qkv_item *item, qkv_tensor *tensor) {
    if (!item || !tensor) return 0;
    return qkv_sized_write(tensor, &item->tensor, sizeof *tensor, "qkv_tensor", NULL) == QKV_OK;
}

int qkv_result_get(const qkv_result *result, size_t variant, qkv_site site, int32_t layer,
                   qkv_tensor *tensor) {
    if (!result) return 0;
    return show_item(find_item(result, variant, site, layer, QKV_REDUCTION_NONE), tensor);
}

int qkv_result_get_reduced(const qkv_result *result, size_t variant, qkv_reduction reduction,
                           int32_t layer, qkv_tensor *tensor) {
    if (!result) return 0;
    return show_item(find_item(result, variant, QKV_SITE_PATTERN, layer, reduction), tensor);
}

int qkv_result_item(const qkv_result *result, size_t index, size_t *variant, qkv_site *site,
                    int32_t *layer, qkv_tensor *tensor) {
    if (!result || index >= result->n_items) return 0;
    const qkv_item *item = &result->items[index];
    if (variant) *variant = item->variant;
    if (site) *site = item->site;
    if (layer) *layer = item->layer;
    return tensor ? show_item(item, tensor) : 1;
}

static const qkv_edit_report *find_report(const qkv_result *result, size_t variant, size_t edit) {
    if (!result || variant >= result->n_variants || edit >= result->variants[variant].n_edits)
        return NULL;
    return &result->variants[variant].edits[edit];
}

size_t qkv_result_n_edits(const qkv_result *result, size_t variant) {
    return result && variant < result->n_variants ? result->variants[variant].n_edits : 0;
}

const char *qkv_result_edit_text(const qkv_result *result, size_t variant, size_t edit) {
    const qkv_edit_report *report = find_report(result, variant, edit);
    return report ? report->text : NULL;
}

const char *qkv_result_edit_note(const qkv_result *result, size_t variant, size_t edit) {
    const qkv_edit_report *report = find_report(result, variant, edit);
    return report ? report->note : NULL;
}

uint64_t qkv_result_edit_changed(const qkv_result *result, size_t variant, size_t edit) {
    return find_report(result, variant, edit) ? result->variants[variant].changed[edit] : 0;
}

uint64_t qkv_result_edit_selected(const qkv_result *result, size_t variant, size_t edit) {
    const qkv_edit_report *report = find_report(result, variant, edit);
    return report ? report->selected : 0;
}

int qkv_result_edit_ran(const qkv_result *result, size_t variant, size_t edit) {
    const qkv_edit_report *report = find_report(result, variant, edit);
    return report ? report->ran : 0;
}

int qkv_result_edit_is_idle(const qkv_result *result, size_t variant, size_t edit) {
    return !qkv_result_edit_ran(result, variant, edit) ||
           qkv_result_edit_changed(result, variant, edit) == 0;
}
