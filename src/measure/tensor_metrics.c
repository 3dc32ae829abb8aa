/* Metrics of q, k, v, z and the residual stream, computed when the tensor comes by. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "base/memory.h"
#include "measure/metric_sums.h"
#include "model/output_gram.h"

/* ---- massive channels of q and k ---- */

/* Channels c of one head whose norm over the tokens is above `factor` times the mean of all. x is
 * [T][n_heads][d], from the head on. */
static double count_massive_channels(const float *x, int64_t n_tokens, int64_t stride, int64_t d,
                                     double factor, double *norms) {
    double mean = 0;
    memset(norms, 0, (size_t)d * sizeof *norms);
    for (int64_t t = 0; t < n_tokens; t++) {
        for (int64_t c = 0; c < d; c++)
            norms[c] += (double)x[t * stride + c] * (double)x[t * stride + c];
    }
    for (int64_t c = 0; c < d; c++) mean += (norms[c] = sqrt(norms[c])) / (double)d;
    int64_t n = 0;
    for (int64_t c = 0; c < d; c++) n += norms[c] > factor * mean;
    return (double)n;
}

static int measure_channels(qkv_metric_sums *totals, size_t variant, int32_t layer, qkv_metric id,
                            const qkv_tensor *tensor, qkv_error *err) {
    const qkv_measure *m = totals->measure;
    int64_t n_heads = tensor->shape[1], d = tensor->shape[2];
    double *norms = qkv_calloc((size_t)d, sizeof *norms);
    if (!norms) return qkv_fail_memory(err);
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (m->metrics[i].id != id) continue;
        for (int32_t k = 0; k < tensor->n_heads; k++)
            qkv_metric_sums_set(totals, qkv_sum_slot(totals, variant, layer, tensor->heads[k]), i,
                                count_massive_channels(tensor->data + k * d, totals->n_tokens,
                                                       n_heads * d, d, m->metrics[i].parameters[0],
                                                       norms));
    }
    free(norms);
    return QKV_OK;
}

/* ---- massive activations ---- */

static double massive_value(const qkv_chosen_metric *metric, const float *sizes, size_t n,
                            double middle, double largest) {
    if (metric->id == QKV_METRIC_MASSIVE_MAX) return largest;
    if (metric->id == QKV_METRIC_MASSIVE_RATIO) return middle > 0 ? largest / middle : (double)NAN;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        double x = sizes[i];
        count += x > metric->parameters[0] && x > metric->parameters[1] * middle;
    }
    return (double)count;
}

static int measure_residual(qkv_metric_sums *totals, size_t variant, int32_t layer,
                            const qkv_tensor *tensor, qkv_error *err) {
    const qkv_measure *m = totals->measure;
    size_t n = (size_t)(tensor->shape[0] * tensor->shape[1]);
    float *sizes = qkv_calloc(n, sizeof *sizes);
    if (!sizes) return qkv_fail_memory(err);
    double largest = 0, middle = 0;
    for (size_t i = 0; i < n; i++) {
        sizes[i] = fabsf(tensor->data[i]);
        largest = fmax(largest, (double)sizes[i]);
    }
    int status = qkv_median(&middle, sizes, n) ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; status == QKV_OK && i < m->n_metrics; i++) {
        if (qkv_metric_needs(m->metrics[i].id) & NEED_RESID)
            qkv_metric_sums_set(totals, qkv_sum_slot(totals, variant, layer, -1), i,
                                massive_value(&m->metrics[i], sizes, n, middle, largest));
    }
    free(sizes);
    return status;
}

static void remember_last(qkv_metric_sums *totals, size_t variant, const qkv_tensor *tensor) {
    size_t width = (size_t)tensor->shape[1];
    memcpy(totals->hidden + variant * width,
           tensor->data + (tensor->shape[0] - 1) * tensor->shape[1], width * sizeof(float));
    totals->has_hidden[variant] = 1;
}

/* ---- outputs of heads ---- */

static double length(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static int measure_outputs(qkv_metric_sums *totals, size_t variant, int32_t layer,
                           const qkv_tensor *tensor, qkv_error *err) {
    const qkv_measure *m = totals->measure;
    int64_t T = tensor->shape[0], H = tensor->shape[1], d = tensor->shape[2];
    double *means = qkv_calloc((size_t)H, sizeof *means), all = 0;
    if (!means) return qkv_fail_memory(err);
    for (int64_t h = 0; h < H; h++) {
        for (int64_t t = 0; t < T; t++)
            means[h] += length(tensor->data + (t * H + h) * d, d) / (double)T;
        all += means[h] / (double)H;
    }
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (!(qkv_metric_needs(m->metrics[i].id) & NEED_Z)) continue;
        for (int32_t h = 0; h < (int32_t)H; h++) {
            if (!totals->head_set[h]) continue;
            double ratio = all > 0 ? means[h] / all : (double)NAN;
            double value = m->metrics[i].id == QKV_METRIC_AHON_RATIO ? ratio
                           : isnan(ratio)                            ? (double)NAN
                                          : ratio < m->metrics[i].parameters[0];
            qkv_metric_sums_set(totals, qkv_sum_slot(totals, variant, layer, h), i, value);
        }
    }
    free(means);
    return QKV_OK;
}

/* ---- values, weighted ---- */

/* √(vᵀ M v) */
static double projected_length(const double *gram, const float *v, int64_t d) {
    double sum = 0;
    for (int64_t r = 0; r < d; r++) {
        double dot = 0;
        for (int64_t c = 0; c < d; c++) dot += gram[r * d + c] * (double)v[c];
        sum += dot * (double)v[r];
    }
    return sqrt(fmax(sum, 0));
}

/* Lengths of every key's value, [measured heads][T]; projected where the layer's gram is given. */
static double *value_lengths(const qkv_metric_sums *totals, const qkv_tensor *v,
                             const double *gram) {
    int64_t T = totals->n_tokens, d = v->shape[2];
    double *norms = qkv_calloc((size_t)(v->n_heads * T), sizeof *norms);
    for (int32_t k = 0; norms && k < v->n_heads; k++) {
        const double *own = gram ? gram + v->heads[k] * d * d : NULL;
        for (int64_t t = 0; t < T; t++) {
            const float *x = v->data + (t * v->n_heads + k) * d;
            norms[k * T + t] = own ? projected_length(own, x, d) : length(x, d);
        }
    }
    return norms;
}

static int measure_values(qkv_metric_sums *totals, size_t variant, int32_t layer,
                          const qkv_tensor *v, qkv_error *err) {
    int32_t at = totals->layer_at[layer];
    size_t place = variant * (size_t)totals->n_layers + (size_t)at;
    totals->norms[0][place] = value_lengths(totals, v, NULL);
    if (!totals->norms[0][place]) return qkv_fail_memory(err);
    if (!(totals->measure->needs & NEED_O)) return QKV_OK;
    int status = QKV_OK;
    if (!totals->gram[at]) status = qkv_output_gram(&totals->gram[at], totals->model, layer, err);
    if (status != QKV_OK) return status;
    totals->norms[1][place] = value_lengths(totals, v, totals->gram[at]);
    return totals->norms[1][place] ? QKV_OK : qkv_fail_memory(err);
}

static double weighted(qkv_metric id, const double *columns, const double *norms, int64_t T) {
    double sum = 0;
    for (int64_t j = 0; j < T; j++) sum += columns[j] * norms[j];
    if (id == QKV_METRIC_VALUE_WEIGHTED || id == QKV_METRIC_NORM_WEIGHTED)
        return T > 1 ? sum / (double)(T - 1) : (double)NAN;
    return sum > 0 ? columns[0] * norms[0] / sum : (double)NAN;
}

void qkv_metric_sums_weigh(qkv_metric_sums *totals, size_t variant, int32_t layer_index,
                           int32_t head_index) {
    const qkv_measure *m = totals->measure;
    const qkv_head_sums *own = qkv_metric_sums_head(totals, variant, layer_index, head_index);
    const qkv_head_sums *base = qkv_metric_sums_head(totals, 0, layer_index, head_index);
    const double *columns = own->columns ? own->columns : base->columns;
    size_t place = variant * (size_t)totals->n_layers + (size_t)layer_index;
    size_t slot = variant * (1 + (size_t)totals->n_layers * ((size_t)totals->n_heads + 1)) + 2 +
                  (size_t)layer_index * ((size_t)totals->n_heads + 1) + (size_t)head_index;
    for (size_t i = 0; columns && i < m->n_metrics; i++) {
        unsigned needs = qkv_metric_needs(m->metrics[i].id);
        if (!(needs & NEED_V)) continue;
        double **all = totals->norms[(needs & NEED_O) != 0];
        const double *norms = all[place] ? all[place] : all[layer_index];
        if (norms)
            qkv_metric_sums_set(totals, slot, i,
                                weighted(m->metrics[i].id, columns,
                                         norms + (int64_t)head_index * totals->n_tokens,
                                         totals->n_tokens));
    }
}

/* ---- all of them ---- */

int qkv_metric_sums_tensor(void *user, size_t variant, qkv_site site, int32_t layer,
                           const qkv_tensor *tensor, qkv_error *err) {
    qkv_metric_sums *totals = user;
    switch (site) {
    case QKV_SITE_Q:
        return measure_channels(totals, variant, layer, QKV_METRIC_MASSIVE_Q, tensor, err);
    case QKV_SITE_K:
        return measure_channels(totals, variant, layer, QKV_METRIC_MASSIVE_K, tensor, err);
    case QKV_SITE_Q_ROT:
        return measure_channels(totals, variant, layer, QKV_METRIC_MASSIVE_Q_ROT, tensor, err);
    case QKV_SITE_K_ROT:
        return measure_channels(totals, variant, layer, QKV_METRIC_MASSIVE_K_ROT, tensor, err);
    case QKV_SITE_V:
        return measure_values(totals, variant, layer, tensor, err);
    case QKV_SITE_Z:
        return measure_outputs(totals, variant, layer, tensor, err);
    case QKV_SITE_RESID_POST:
        if (!(totals->measure->needs & NEED_RESID) || !totals->layer_set[layer]) return QKV_OK;
        return measure_residual(totals, variant, layer, tensor, err);
    case QKV_SITE_FINAL_NORM:
        if (totals->hidden) remember_last(totals, variant, tensor);
        return QKV_OK;
    case QKV_SITE_LOGITS:
        return qkv_metric_sums_logits(totals, variant, tensor, err);
    default:
        return QKV_OK; /* a capture of the plan's own */
    }
}
