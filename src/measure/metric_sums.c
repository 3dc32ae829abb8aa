#include "measure/metric_sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/run.h"

/* ---- slots ---- */

size_t qkv_sum_slot(const qkv_metric_sums *totals, size_t variant, int32_t layer, int32_t head) {
    size_t per_layer = (size_t)totals->n_heads + 1;
    size_t slot = variant * (1 + (size_t)totals->n_layers * per_layer);
    if (layer < 0) return slot;
    slot += 1 + (size_t)totals->layer_at[layer] * per_layer;
    return head < 0 ? slot : slot + 1 + (size_t)totals->head_at[head];
}

void qkv_metric_sums_set(qkv_metric_sums *totals, size_t slot, size_t metric, double value) {
    totals->values[slot * totals->measure->n_metrics + metric] = value;
    totals->known[slot * totals->measure->n_metrics + metric] = 1;
}

qkv_head_sums *qkv_metric_sums_head(const qkv_metric_sums *totals, size_t variant,
                                    int32_t layer_index, int32_t head_index) {
    size_t layer = variant * (size_t)totals->n_layers + (size_t)layer_index;
    return &totals->heads[layer * (size_t)totals->n_heads + (size_t)head_index];
}

/* ---- preparing ---- */

static int32_t number(const uint8_t *set, int32_t n, int32_t *at) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) at[i] = set[i] ? count++ : -1;
    return count;
}

static int select_places(qkv_metric_sums *totals, const qkv_plan *plan, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(totals->model);
    size_t layers = (size_t)info->n_layer, heads = (size_t)info->n_head;
    totals->layer_set = qkv_calloc(layers, 1);
    totals->head_set = qkv_calloc(heads, 1);
    totals->layer_at = qkv_calloc(layers, sizeof *totals->layer_at);
    totals->head_at = qkv_calloc(heads, sizeof *totals->head_at);
    size_t size = strlen(totals->measure->layers) + strlen(totals->measure->heads) + 16;
    char *what = malloc(size);
    int ok = totals->layer_set && totals->head_set && totals->layer_at && totals->head_at && what;
    int status = ok ? QKV_OK : qkv_fail_memory(err);
    if (ok) {
        snprintf(what, size, "pattern@%s.h%s", totals->measure->layers, totals->measure->heads);
        status = qkv_plan_select(plan, what, totals->layer_set, totals->head_set, err);
    }
    free(what);
    if (status != QKV_OK) return status;
    totals->all_layers = info->n_layer;
    totals->all_heads = info->n_head;
    totals->n_layers = number(totals->layer_set, info->n_layer, totals->layer_at);
    totals->n_heads = number(totals->head_set, info->n_head, totals->head_at);
    return QKV_OK;
}

static int edits_patterns(const qkv_plan *plan) {
    for (size_t v = 1; v < qkv_plan_n_variants(plan); v++) {
        if (strstr(qkv_plan_variant_text(plan, v), "pattern")) return 1;
    }
    return 0;
}

/* Weight above the diagonal: later keys are seen, or an edit may put some there. */
static int may_look_ahead(const qkv_metric_sums *totals, const qkv_plan *plan) {
    int64_t first, end;
    for (int32_t il = 0; il < totals->all_layers; il++) {
        qkv_visible_keys(totals->model, il, totals->n_tokens, 0, &first, &end);
        if (end > 1) return 1;
    }
    return edits_patterns(plan);
}

static int check_maps(qkv_metric_sums *totals, const qkv_plan *plan, qkv_error *err) {
    const qkv_measure *m = totals->measure;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (m->metrics[i].id == QKV_METRIC_EFFECTIVE_RANK) totals->needs_map |= QKV_MAP_RANK;
        if (m->metrics[i].id == QKV_METRIC_SYMMETRY && may_look_ahead(totals, plan))
            totals->needs_map |= QKV_MAP_SYMMETRY;
    }
    if (!totals->needs_map || totals->n_tokens <= QKV_LARGEST_MAP) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "%s needs the whole map, which is limited to %d tokens; the prompt has %lld",
                    totals->needs_map & QKV_MAP_RANK ? "effective_rank" : "symmetry",
                    QKV_LARGEST_MAP, (long long)totals->n_tokens);
}

int qkv_metric_sums_prepare(qkv_metric_sums *totals, const qkv_plan *plan, const qkv_model *model,
                            qkv_error *err) {
    size_t n_tokens;
    totals->model = model;
    totals->tokens = qkv_plan_tokens(plan, &n_tokens);
    totals->n_tokens = (int64_t)n_tokens;
    totals->n_variants = qkv_plan_n_variants(plan);
    pthread_mutex_init(&totals->lock, NULL);
    int status = select_places(totals, plan, err);
    if (status == QKV_OK) status = check_maps(totals, plan, err);
    if (status != QKV_OK) return status;
    size_t layers = totals->n_variants * (size_t)totals->n_layers;
    totals->n_slots = totals->n_variants + layers * ((size_t)totals->n_heads + 1);
    totals->heads = qkv_calloc(layers * (size_t)totals->n_heads, sizeof *totals->heads);
    totals->norms[0] = qkv_calloc(layers, sizeof *totals->norms[0]);
    totals->norms[1] = qkv_calloc(layers, sizeof *totals->norms[1]);
    totals->gram = qkv_calloc((size_t)totals->n_layers, sizeof *totals->gram);
    totals->values = qkv_calloc(totals->n_slots * totals->measure->n_metrics, sizeof(double));
    totals->known = qkv_calloc(totals->n_slots * totals->measure->n_metrics, 1);
    size_t width = (size_t)qkv_model_get_info(model)->n_embd;
    if (totals->measure->needs & NEED_LAST)
        totals->hidden = qkv_calloc(totals->n_variants * width, sizeof *totals->hidden);
    totals->has_hidden = qkv_calloc(totals->n_variants, 1);
    int ok = totals->heads && totals->norms[0] && totals->norms[1] && totals->gram &&
             totals->values && totals->known && totals->has_hidden &&
             (totals->hidden || !(totals->measure->needs & NEED_LAST));
    return ok ? QKV_OK : qkv_fail_memory(err);
}

void qkv_metric_sums_release(qkv_metric_sums *totals) {
    size_t layers = totals->n_variants * (size_t)totals->n_layers;
    for (size_t i = 0; totals->heads && i < layers * (size_t)totals->n_heads; i++) {
        free(totals->heads[i].sums);
        free(totals->heads[i].columns);
        free(totals->heads[i].map);
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; totals->norms[k] && i < layers; i++) free(totals->norms[k][i]);
        free(totals->norms[k]);
    }
    for (int32_t i = 0; totals->gram && i < totals->n_layers; i++) free(totals->gram[i]);
    free(totals->gram);
    free(totals->heads);
    free(totals->layer_set);
    free(totals->head_set);
    free(totals->layer_at);
    free(totals->head_at);
    free(totals->logit_sums);
    free(totals->hidden);
    free(totals->has_hidden);
    free(totals->values);
    free(totals->known);
    pthread_mutex_destroy(&totals->lock);
}

/* ---- rows ---- */

static void remember_failure(qkv_metric_sums *totals, const qkv_error *err) {
    pthread_mutex_lock(&totals->lock);
    if (totals->failure.status == QKV_OK) totals->failure = *err;
    pthread_mutex_unlock(&totals->lock);
}

static int allocate_head(const qkv_metric_sums *totals, qkv_head_sums *head) {
    const qkv_measure *m = totals->measure;
    if (!head->sums) head->sums = qkv_calloc(m->n_metrics * QKV_METRIC_SUMS, sizeof(double));
    if (!head->columns && (m->needs & NEED_COLUMNS))
        head->columns = qkv_calloc((size_t)totals->n_tokens, sizeof(double));
    return head->sums && (head->columns || !(m->needs & NEED_COLUMNS));
}

static void add_row(const qkv_metric_sums *totals, qkv_head_sums *head, qkv_row *row) {
    const qkv_measure *m = totals->measure;
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
static int measure_map(qkv_metric_sums *totals, size_t slot, const float *map, qkv_error *err) {
    const qkv_measure *m = totals->measure;
    int status = QKV_OK;
    for (size_t i = 0; i < m->n_metrics && status == QKV_OK; i++) {
        double value;
        if (m->metrics[i].id == QKV_METRIC_SYMMETRY && (totals->needs_map & QKV_MAP_SYMMETRY)) {
            qkv_metric_sums_set(totals, slot, i, qkv_map_symmetry(map, totals->n_tokens));
        } else if (m->metrics[i].id == QKV_METRIC_EFFECTIVE_RANK) {
            status = qkv_map_effective_rank(&value, map, totals->n_tokens, err);
            qkv_metric_sums_set(totals, slot, i, value);
        }
    }
    return status;
}

/* Where a metric needs the map, rows are put together until it is complete; a block that is the
 * whole map already is not copied. */
static int collect_map(qkv_metric_sums *totals, qkv_head_sums *head, const qkv_rows *rows,
                       qkv_error *err) {
    size_t slot = qkv_sum_slot(totals, rows->variant, rows->layer, rows->head);
    int64_t T = totals->n_tokens;
    if (rows->n_rows == T && rows->n_keys == T) return measure_map(totals, slot, rows->data, err);
    if (!head->map) head->map = qkv_calloc((size_t)(T * T), sizeof *head->map);
    if (!head->map) return qkv_fail_memory(err);
    for (int64_t r = 0; r < rows->n_rows; r++)
        memcpy(head->map + (rows->first_row + r) * T, rows->data + r * rows->n_keys,
               (size_t)rows->n_keys * sizeof *head->map);
    head->n_rows += rows->n_rows;
    if (head->n_rows < T) return QKV_OK;
    int status = measure_map(totals, slot, head->map, err);
    free(head->map);
    head->map = NULL;
    return status;
}

void qkv_metric_sums_rows(void *user, const qkv_rows *rows) {
    qkv_metric_sums *totals = user;
    qkv_error err = {0};
    int32_t layer = totals->layer_at[rows->layer], at = totals->head_at[rows->head];
    qkv_head_sums *head = qkv_metric_sums_head(totals, rows->variant, layer, at);
    if (!allocate_head(totals, head)) {
        qkv_fail_memory(&err);
        remember_failure(totals, &err);
        return;
    }
    for (int64_t r = 0; r < rows->n_rows; r++) {
        qkv_row row = {.query = rows->first_row + r,
                       .n_tokens = totals->n_tokens,
                       .n_keys = rows->n_keys,
                       .weights = rows->data + r * rows->n_keys,
                       .tokens = totals->tokens};
        if (rows->baseline) row.baseline = rows->baseline + r * rows->n_keys;
        qkv_visible_keys(totals->model, rows->layer, totals->n_tokens, row.query, &row.first,
                         &row.end);
        add_row(totals, head, &row);
    }
    if (totals->needs_map && collect_map(totals, head, rows, &err) != QKV_OK)
        remember_failure(totals, &err);
}

/* ---- values ---- */

static void finish_head(qkv_metric_sums *totals, size_t variant, int32_t layer, int32_t head) {
    const qkv_measure *m = totals->measure;
    int32_t li = totals->layer_at[layer], hi = totals->head_at[head];
    const qkv_head_sums *sums = qkv_metric_sums_head(totals, variant, li, hi);
    size_t slot = qkv_sum_slot(totals, variant, layer, head);
    for (size_t i = 0; sums->sums && i < m->n_metrics; i++) {
        unsigned needs = qkv_metric_needs(m->metrics[i].id);
        if (!(needs & NEED_ROWS) || totals->known[slot * m->n_metrics + i]) continue;
        qkv_metric_sums_set(totals, slot, i,
                            qkv_metric_value(&m->metrics[i], sums->sums + i * QKV_METRIC_SUMS));
    }
    if (m->needs & NEED_V) qkv_metric_sums_weigh(totals, variant, li, hi);
    const size_t own = slot * m->n_metrics;
    const size_t base = qkv_sum_slot(totals, 0, layer, head) * m->n_metrics;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (!totals->known[own + i]) totals->values[own + i] = totals->values[base + i];
    }
}

/* The share of heads that are sinks; their own slots say which. */
static double sink_rate(const qkv_metric_sums *totals, size_t variant, size_t metric) {
    double sum = 0;
    for (int32_t il = 0; il < totals->all_layers; il++) {
        for (int32_t h = 0; totals->layer_set[il] && h < totals->all_heads; h++) {
            if (!totals->head_set[h]) continue;
            size_t slot = qkv_sum_slot(totals, variant, il, h);
            sum += totals->values[slot * totals->measure->n_metrics + metric];
        }
    }
    return sum / ((double)totals->n_layers * (double)totals->n_heads);
}

/* Layer-wide and variant-wide slots. */
static void finish_wide(qkv_metric_sums *totals, size_t variant, int32_t layer) {
    const qkv_measure *m = totals->measure;
    size_t slot = qkv_sum_slot(totals, variant, layer, -1) * m->n_metrics;
    size_t base = qkv_sum_slot(totals, 0, layer, -1) * m->n_metrics;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (!totals->known[slot + i]) totals->values[slot + i] = totals->values[base + i];
        if (layer < 0 && m->metrics[i].id == QKV_METRIC_SINK_RATE)
            totals->values[slot + i] = sink_rate(totals, variant, i);
    }
}

void qkv_metric_sums_finish(qkv_metric_sums *totals) {
    for (size_t v = 0; v < totals->n_variants; v++) {
        for (int32_t il = 0; il < totals->all_layers; il++) {
            if (!totals->layer_set[il]) continue;
            finish_wide(totals, v, il);
            for (int32_t h = 0; h < totals->all_heads; h++) {
                if (totals->head_set[h]) finish_head(totals, v, il, h);
            }
        }
        finish_wide(totals, v, -1);
    }
}
