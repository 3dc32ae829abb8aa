#include "measure/tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- slots ---- */

size_t qkv_tally_slot(const qkv_tally *tally, size_t variant, int32_t layer, int32_t head) {
    size_t per_layer = (size_t)tally->n_heads + 1;
    size_t slot = variant * (1 + (size_t)tally->n_layers * per_layer);
    if (layer < 0) return slot;
    slot += 1 + (size_t)tally->layer_at[layer] * per_layer;
    return head < 0 ? slot : slot + 1 + (size_t)tally->head_at[head];
}

void qkv_tally_set(qkv_tally *tally, size_t slot, size_t metric, double value) {
    tally->values[slot * tally->measure->n_metrics + metric] = value;
    tally->known[slot * tally->measure->n_metrics + metric] = 1;
}

qkv_head_tally *qkv_tally_head(const qkv_tally *tally, size_t variant, int32_t layer_index,
                               int32_t head_index) {
    size_t layer = variant * (size_t)tally->n_layers + (size_t)layer_index;
    return &tally->heads[layer * (size_t)tally->n_heads + (size_t)head_index];
}

/* ---- preparing ---- */

static int32_t number(const uint8_t *set, int32_t n, int32_t *at) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) at[i] = set[i] ? count++ : -1;
    return count;
}

static int select_places(qkv_tally *tally, const qkv_plan *plan, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(tally->model);
    size_t layers = (size_t)info->n_layer, heads = (size_t)info->n_head;
    tally->layer_set = qkv_calloc(layers, 1);
    tally->head_set = qkv_calloc(heads, 1);
    tally->layer_at = qkv_calloc(layers, sizeof *tally->layer_at);
    tally->head_at = qkv_calloc(heads, sizeof *tally->head_at);
    size_t size = strlen(tally->measure->layers) + strlen(tally->measure->heads) + 16;
    char *what = malloc(size);
    int ok = tally->layer_set && tally->head_set && tally->layer_at && tally->head_at && what;
    int status = ok ? QKV_OK : qkv_fail_memory(err);
    if (ok) {
        snprintf(what, size, "pattern@%s.h%s", tally->measure->layers, tally->measure->heads);
        status = qkv_plan_select(plan, what, tally->layer_set, tally->head_set, err);
    }
    free(what);
    if (status != QKV_OK) return status;
    tally->all_layers = info->n_layer;
    tally->all_heads = info->n_head;
    tally->n_layers = number(tally->layer_set, info->n_layer, tally->layer_at);
    tally->n_heads = number(tally->head_set, info->n_head, tally->head_at);
    return QKV_OK;
}

static int edits_patterns(const qkv_plan *plan) {
    for (size_t v = 1; v < qkv_plan_n_variants(plan); v++) {
        if (strstr(qkv_plan_variant_text(plan, v), "pattern")) return 1;
    }
    return 0;
}

/* Weight above the diagonal: later keys are seen, or an edit may put some there. */
static int may_look_ahead(const qkv_tally *tally, const qkv_plan *plan) {
    int64_t first, end;
    for (int32_t il = 0; il < tally->all_layers; il++) {
        qkv_visible_keys(tally->model, il, tally->n_tokens, 0, &first, &end);
        if (end > 1) return 1;
    }
    return edits_patterns(plan);
}

static int check_maps(qkv_tally *tally, const qkv_plan *plan, qkv_error *err) {
    const qkv_measure *m = tally->measure;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (m->metrics[i].id == QKV_METRIC_EFFECTIVE_RANK) tally->needs_map |= QKV_MAP_RANK;
        if (m->metrics[i].id == QKV_METRIC_SYMMETRY && may_look_ahead(tally, plan))
            tally->needs_map |= QKV_MAP_SYMMETRY;
    }
    if (!tally->needs_map || tally->n_tokens <= QKV_LARGEST_MAP) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "%s needs the whole map, which is limited to %d tokens; the prompt has %lld",
                    tally->needs_map & QKV_MAP_RANK ? "effective_rank" : "symmetry",
                    QKV_LARGEST_MAP, (long long)tally->n_tokens);
}

int qkv_tally_prepare(qkv_tally *tally, const qkv_plan *plan, const qkv_model *model,
                      qkv_error *err) {
    size_t n_tokens;
    tally->model = model;
    tally->tokens = qkv_plan_tokens(plan, &n_tokens);
    tally->n_tokens = (int64_t)n_tokens;
    tally->n_variants = qkv_plan_n_variants(plan);
    pthread_mutex_init(&tally->lock, NULL);
    int status = select_places(tally, plan, err);
    if (status == QKV_OK) status = check_maps(tally, plan, err);
    if (status != QKV_OK) return status;
    size_t layers = tally->n_variants * (size_t)tally->n_layers;
    tally->n_slots = tally->n_variants + layers * ((size_t)tally->n_heads + 1);
    tally->heads = qkv_calloc(layers * (size_t)tally->n_heads, sizeof *tally->heads);
    tally->norms[0] = qkv_calloc(layers, sizeof *tally->norms[0]);
    tally->norms[1] = qkv_calloc(layers, sizeof *tally->norms[1]);
    tally->gram = qkv_calloc((size_t)tally->n_layers, sizeof *tally->gram);
    tally->values = qkv_calloc(tally->n_slots * tally->measure->n_metrics, sizeof(double));
    tally->known = qkv_calloc(tally->n_slots * tally->measure->n_metrics, 1);
    size_t width = (size_t)qkv_model_get_info(model)->n_embd;
    if (tally->measure->needs & NEED_LAST)
        tally->hidden = qkv_calloc(tally->n_variants * width, sizeof *tally->hidden);
    tally->has_hidden = qkv_calloc(tally->n_variants, 1);
    int ok = tally->heads && tally->norms[0] && tally->norms[1] && tally->gram && tally->values &&
             tally->known && tally->has_hidden &&
             (tally->hidden || !(tally->measure->needs & NEED_LAST));
    return ok ? QKV_OK : qkv_fail_memory(err);
}

void qkv_tally_release(qkv_tally *tally) {
    size_t layers = tally->n_variants * (size_t)tally->n_layers;
    for (size_t i = 0; tally->heads && i < layers * (size_t)tally->n_heads; i++) {
        free(tally->heads[i].sums);
        free(tally->heads[i].columns);
        free(tally->heads[i].map);
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; tally->norms[k] && i < layers; i++) free(tally->norms[k][i]);
        free(tally->norms[k]);
    }
    for (int32_t i = 0; tally->gram && i < tally->n_layers; i++) free(tally->gram[i]);
    free(tally->gram);
    free(tally->heads);
    free(tally->layer_set);
    free(tally->head_set);
    free(tally->layer_at);
    free(tally->head_at);
    free(tally->logit_sums);
    free(tally->hidden);
    free(tally->has_hidden);
    free(tally->values);
    free(tally->known);
    pthread_mutex_destroy(&tally->lock);
}

/* ---- rows ---- */

static void remember_failure(qkv_tally *tally, const qkv_error *err) {
    pthread_mutex_lock(&tally->lock);
    if (tally->failure.status == QKV_OK) tally->failure = *err;
    pthread_mutex_unlock(&tally->lock);
}

static int allocate_head(const qkv_tally *tally, qkv_head_tally *head) {
    const qkv_measure *m = tally->measure;
    if (!head->sums) head->sums = qkv_calloc(m->n_metrics * QKV_METRIC_SUMS, sizeof(double));
    if (!head->columns && (m->needs & NEED_COLUMNS))
        head->columns = qkv_calloc((size_t)tally->n_tokens, sizeof(double));
    return head->sums && (head->columns || !(m->needs & NEED_COLUMNS));
}

static void add_row(const qkv_tally *tally, qkv_head_tally *head, qkv_row *row) {
    const qkv_measure *m = tally->measure;
    if (m->reads_entropy) row->entropy = qkv_row_entropy(row);
    for (size_t i = 0; i < m->n_metrics; i++) {
        row->parameters = m->metrics[i].parameters;
        if (row->baseline || !(qkv_metric_needs(m->metrics[i].id) & NEED_BASELINE))
            qkv_metric_add_row(m->metrics[i].id, row, head->sums + i * QKV_METRIC_SUMS);
    }
    if (!head->columns || row->query == 0) return;
    for (int64_t j = 0; j < row->n_keys; j++) head->columns[j] += (double)row->weights[j];
}

/* Values of a complete map. */
static int measure_map(qkv_tally *tally, size_t slot, const float *map, qkv_error *err) {
    const qkv_measure *m = tally->measure;
    int status = QKV_OK;
    for (size_t i = 0; i < m->n_metrics && status == QKV_OK; i++) {
        double value;
        if (m->metrics[i].id == QKV_METRIC_SYMMETRY && (tally->needs_map & QKV_MAP_SYMMETRY)) {
            qkv_tally_set(tally, slot, i, qkv_map_symmetry(map, tally->n_tokens));
        } else if (m->metrics[i].id == QKV_METRIC_EFFECTIVE_RANK) {
            status = qkv_map_effective_rank(&value, map, tally->n_tokens, err);
            qkv_tally_set(tally, slot, i, value);
        }
    }
    return status;
}

/* Where a metric needs the map, rows are put together until it is complete; a block that is the
 * whole map already is not copied. */
static int collect_map(qkv_tally *tally, qkv_head_tally *head, const qkv_rows *rows,
                       qkv_error *err) {
    size_t slot = qkv_tally_slot(tally, rows->variant, rows->layer, rows->head);
    int64_t T = tally->n_tokens;
    if (rows->n_rows == T && rows->n_keys == T) return measure_map(tally, slot, rows->data, err);
    if (!head->map) head->map = qkv_calloc((size_t)(T * T), sizeof *head->map);
    if (!head->map) return qkv_fail_memory(err);
    for (int64_t r = 0; r < rows->n_rows; r++)
        memcpy(head->map + (rows->first_row + r) * T, rows->data + r * rows->n_keys,
               (size_t)rows->n_keys * sizeof *head->map);
    head->n_rows += rows->n_rows;
    if (head->n_rows < T) return QKV_OK;
    int status = measure_map(tally, slot, head->map, err);
    free(head->map);
    head->map = NULL;
    return status;
}

void qkv_tally_rows(void *user, const qkv_rows *rows) {
    qkv_tally *tally = user;
    qkv_error err = {0};
    int32_t layer = tally->layer_at[rows->layer], at = tally->head_at[rows->head];
    qkv_head_tally *head = qkv_tally_head(tally, rows->variant, layer, at);
    if (!allocate_head(tally, head)) {
        qkv_fail_memory(&err);
        remember_failure(tally, &err);
        return;
    }
    for (int64_t r = 0; r < rows->n_rows; r++) {
        qkv_row row = {.query = rows->first_row + r,
                       .n_tokens = tally->n_tokens,
                       .n_keys = rows->n_keys,
                       .weights = rows->data + r * rows->n_keys,
                       .tokens = tally->tokens};
        if (rows->baseline) row.baseline = rows->baseline + r * rows->n_keys;
        qkv_visible_keys(tally->model, rows->layer, tally->n_tokens, row.query, &row.first,
                         &row.end);
        add_row(tally, head, &row);
    }
    if (tally->needs_map && collect_map(tally, head, rows, &err) != QKV_OK)
        remember_failure(tally, &err);
}

/* ---- values ---- */

static void finish_head(qkv_tally *tally, size_t variant, int32_t layer, int32_t head) {
    const qkv_measure *m = tally->measure;
    int32_t li = tally->layer_at[layer], hi = tally->head_at[head];
    const qkv_head_tally *sums = qkv_tally_head(tally, variant, li, hi);
    size_t slot = qkv_tally_slot(tally, variant, layer, head);
    for (size_t i = 0; sums->sums && i < m->n_metrics; i++) {
        unsigned needs = qkv_metric_needs(m->metrics[i].id);
        if (!(needs & NEED_ROWS) || tally->known[slot * m->n_metrics + i]) continue;
        qkv_tally_set(tally, slot, i,
                      qkv_metric_value(&m->metrics[i], sums->sums + i * QKV_METRIC_SUMS));
    }
    if (m->needs & NEED_V) qkv_tally_weigh(tally, variant, li, hi);
    const size_t own = slot * m->n_metrics;
    const size_t base = qkv_tally_slot(tally, 0, layer, head) * m->n_metrics;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (!tally->known[own + i]) tally->values[own + i] = tally->values[base + i];
    }
}

/* The share of heads that are sinks; their own slots say which. */
static double sink_rate(const qkv_tally *tally, size_t variant, size_t metric) {
    double sum = 0;
    for (int32_t il = 0; il < tally->all_layers; il++) {
        for (int32_t h = 0; tally->layer_set[il] && h < tally->all_heads; h++) {
            if (!tally->head_set[h]) continue;
            size_t slot = qkv_tally_slot(tally, variant, il, h);
            sum += tally->values[slot * tally->measure->n_metrics + metric];
        }
    }
    return sum / ((double)tally->n_layers * (double)tally->n_heads);
}

/* Layer-wide and variant-wide slots. */
static void finish_wide(qkv_tally *tally, size_t variant, int32_t layer) {
    const qkv_measure *m = tally->measure;
    size_t slot = qkv_tally_slot(tally, variant, layer, -1) * m->n_metrics;
    size_t base = qkv_tally_slot(tally, 0, layer, -1) * m->n_metrics;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (!tally->known[slot + i]) tally->values[slot + i] = tally->values[base + i];
        if (layer < 0 && m->metrics[i].id == QKV_METRIC_SINK_RATE)
            tally->values[slot + i] = sink_rate(tally, variant, i);
    }
}

void qkv_tally_finish(qkv_tally *tally) {
    for (size_t v = 0; v < tally->n_variants; v++) {
        for (int32_t il = 0; il < tally->all_layers; il++) {
            if (!tally->layer_set[il]) continue;
            finish_wide(tally, v, il);
            for (int32_t h = 0; h < tally->all_heads; h++) {
                if (tally->head_set[h]) finish_head(tally, v, il, h);
            }
        }
        finish_wide(tally, v, -1);
    }
}
