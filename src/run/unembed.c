/* States to logits, and parts of states to parts of logits. See qkv/unembed.h. */
#include "run/unembed.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/forked.h"
#include "base/memory.h"
#include "kernel/product.h"
#include "run/openmp_threads.h"
#include "run/run.h"
#include "run/session.h"

/* ---- the norm ---- */

static const float *values_of(const struct ggml_tensor *w) {
    return w ? w->data : NULL; /* norms and biases are F32 in every file */
}

typedef struct moments {
    double mean, divisor; /* of RMS the mean is 0 */
} moments;

static moments moments_of(const qkv_model *model, const double *x) {
    const int64_t n = model->hp.n_embd;
    const int centred = model->family->norm != QKV_NORM_RMS;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n && centred; i++) sum += x[i];
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return (moments){mean, sqrt(squares / (double)n + (double)model->hp.norm_eps)};
}

static void take_state(double *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = (double)from[i];
}

/* As ggml does it: sums in double, the factor and the products in single precision. */
static void normalise(const qkv_model *model, const float *x, double *wide, float *out) {
    const float *weight = values_of(model->w[QKV_MODEL_OUTPUT_NORM]);
    const float *bias = values_of(model->w[QKV_MODEL_OUTPUT_NORM_BIAS]);
    const int64_t n = model->hp.n_embd;
    if (!weight) {
        memcpy(out, x, (size_t)n * sizeof *out);
        return;
    }
    take_state(wide, x, n);
    const moments m = moments_of(model, wide);
    const float factor = (float)(1 / m.divisor), mean = (float)m.mean;
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - mean) * factor * weight[i] + (bias ? bias[i] : 0);
}

/* ---- many states ---- */

enum { MOST_STATES = 512 }; /* at a time */

typedef struct unembed_work {
    float *normal, *packed, *scratch;
    double *wide;
} unembed_work;

static void multiply(const qkv_session *s, const unembed_work *w, int64_t n, float *logits) {
    const qkv_model *model = s->model;
    const qkv_weights_view view = qkv_weights_matrix(model->output, 0);
    const qkv_columns in = {w->normal, model->hp.n_embd, NULL, 1, n};
    const qkv_columns out = {logits, model->hp.n_vocab, NULL, 1, n};
    const int64_t each = qkv_product_rows(view.rows, s->n_threads);
    for (int64_t part = 0; part < qkv_packed_parts(n); part++)
        qkv_pack(w->packed, &in, model->hp.n_embd, part);
#pragma omp parallel if (!qkv_is_forked()) num_threads(s->n_threads)
    {
        float *scratch = w->scratch + (size_t)omp_get_thread_num() * qkv_product_scratch();
#pragma omp for schedule(dynamic)
        for (int64_t first = 0; first < view.rows; first += each) {
            const int64_t end = first + each < view.rows ? first + each : view.rows;
            qkv_product(&view, first, end, w->packed, &out, scratch);
        }
    }
}

/* Bias, scale and cap, in the order of the forward pass. */
static void finish(const qkv_model *model, int64_t n, float *logits) {
    const float *bias = values_of(model->w[QKV_MODEL_OUTPUT_BIAS]);
    const float scale = model->hp.logit_scale, cap = model->hp.logit_softcap;
    for (int64_t t = 0; t < n; t++, logits += model->hp.n_vocab) {
        for (int64_t i = 0; i < model->hp.n_vocab; i++) {
            float x = logits[i] + (bias ? bias[i] : 0);
            if (scale != 1) x *= scale;
            if (cap != 0) x = tanhf(x * (1 / cap)) * cap;
            logits[i] = x;
        }
    }
}

int qkv_unembed(qkv_session *session, const float *states, size_t n, float *logits,
                qkv_error *err) {
    QKV_NEED(err, session);
    QKV_NEED(err, states);
    QKV_NEED(err, logits);
    const qkv_model *model = session->model;
    const size_t most = n < MOST_STATES ? n : MOST_STATES, D = (size_t)model->hp.n_embd;
    if (!model->output) return qkv_fail(err, QKV_ERR_UNSUPPORTED, "this model has no logits");
    unembed_work w = {
        .normal = qkv_calloc(most * D, sizeof *w.normal),
        .packed = qkv_calloc((size_t)qkv_packed_size((int64_t)D, (int64_t)most), sizeof(float)),
        .scratch = qkv_calloc((size_t)session->n_threads * qkv_product_scratch(), sizeof(float)),
        .wide = qkv_calloc(D, sizeof *w.wide)};
    qkv_openmp_settings before;
    int status = w.normal && w.packed && w.scratch && w.wide ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && !qkv_openmp_enter(&before, session->n_threads))
        status = qkv_fail_memory(err);
    else if (status == QKV_OK) {
        for (size_t first = 0; first < n && status == QKV_OK; first += most) {
            const size_t rows = n - first < most ? n - first : most;
            float *to = logits + first * (size_t)model->hp.n_vocab;
            for (size_t i = 0; i < rows; i++)
                normalise(model, states + (first + i) * D, w.wide, w.normal + i * D);
            multiply(session, &w, (int64_t)rows, to);
            finish(model, (int64_t)rows, to);
            status = qkv_session_report(session, "states", (double)(first + rows), (double)n, err);
        }
        qkv_openmp_leave(before);
    }
    free(w.normal);
    free(w.packed);
    free(w.scratch);
    free(w.wide);
    return status;
}

/* ---- one direction ---- */

static void read_row(const struct ggml_tensor *w, int64_t row, float *to) {
    qkv_converter(w->type)((const char *)w->data + (size_t)row * w->nb[1], to, w->ne[0]);
}

/* Takes the mean away: the transpose of what the norm does to a state is that itself. */
static void centre(double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    for (int64_t i = 0; i < n; i++) x[i] -= sum / (double)n;
}

static void pull_through_norm(const qkv_model *model, const float *state, double *direction) {
    const float *weight = values_of(model->w[QKV_MODEL_OUTPUT_NORM]);
    const int64_t n = model->hp.n_embd;
    if (!weight) return;
    double *wide = direction + n;
    take_state(wide, state, n);
    const double divisor = moments_of(model, wide).divisor;
    for (int64_t i = 0; i < n; i++) direction[i] *= (double)weight[i] / divisor;
    if (model->family->norm != QKV_NORM_RMS) centre(direction, n);
}

int qkv_unembed_direction(const qkv_model *model, const float *state, int32_t token,
                          double *direction, double *offset, qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, state);
    QKV_NEED(err, direction);
    QKV_NEED(err, offset);
    const int64_t n = model->hp.n_embd;
    if (!model->output) return qkv_fail(err, QKV_ERR_UNSUPPORTED, "this model has no logits");
    if (token < 0 || token >= model->hp.n_vocab)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "token %d is out of range: the vocabulary has 0 to %d", (int)token,
                        (int)model->hp.n_vocab - 1);
    const float *norm_bias = values_of(model->w[QKV_MODEL_OUTPUT_NORM_BIAS]);
    const float *bias = values_of(model->w[QKV_MODEL_OUTPUT_BIAS]);
    float *row = qkv_calloc((size_t)n, sizeof *row);
    double *wide = qkv_calloc((size_t)n, 2 * sizeof *wide);
    if (!row || !wide) {
        free(row);
        free(wide);
        return qkv_fail_memory(err);
    }
    read_row(model->output, token, row);
    *offset = bias ? (double)bias[token] : 0;
    for (int64_t i = 0; i < n; i++) {
        wide[i] = (double)row[i] * (double)model->hp.logit_scale;
        if (norm_bias) *offset += (double)row[i] * (double)norm_bias[i];
    }
    *offset *= (double)model->hp.logit_scale;
    pull_through_norm(model, state, wide);
    memcpy(direction, wide, (size_t)n * sizeof *direction);
    free(row);
    free(wide);
    return QKV_OK;
}

double qkv_unembed_cap(const qkv_model *model, double logit) {
    const double cap = model ? (double)model->hp.logit_softcap : 0;
    return cap > 0 ? cap * tanh(logit / cap) : logit;
}

/* ---- heads ---- */

/* What attention gives before the norm after it, of one token; wide has n_embd numbers. */
static void project(const qkv_model *model, int32_t layer, const float *z, double *wide,
                    float *row) {
    const struct ggml_tensor *w = model->layers[layer].w[QKV_LAYER_O]; // [H · d, D]
    const float *bias = values_of(model->layers[layer].w[QKV_LAYER_O_BIAS]);
    for (int64_t i = 0; i < w->ne[1]; i++) {
        read_row(w, i, row);
        wide[i] = bias ? (double)bias[i] : 0;
        for (int64_t k = 0; k < w->ne[0]; k++) wide[i] += (double)row[k] * (double)z[k];
    }
}

static void pull_through_block(const qkv_model *model, int32_t layer, const float *z,
                               double *direction, double *wide, float *row) {
    const float *after = values_of(model->layers[layer].w[QKV_LAYER_POST_ATTN_NORM]);
    const int64_t n = model->hp.n_embd;
    for (int64_t i = 0; i < n; i++) direction[i] *= (double)model->hp.residual_scale;
    if (!after) return;
    project(model, layer, z, wide, row);
    const double divisor = moments_of(model, wide).divisor;
    for (int64_t i = 0; i < n; i++) direction[i] *= (double)after[i] / divisor;
    if (model->family->norm != QKV_NORM_RMS) centre(direction, n);
}

int qkv_unembed_heads(const qkv_model *model, int32_t layer, const float *z,
                      const double *direction, double *parts, double *bias, qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, z);
    QKV_NEED(err, direction);
    QKV_NEED(err, parts);
    QKV_NEED(err, bias);
    if (layer < 0 || layer >= model->hp.n_layer)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "layer %d is out of range; the model has 0 to %d",
                        (int)layer, (int)model->hp.n_layer - 1);
    int status = qkv_weights_prepare(model, layer, err);
    if (status != QKV_OK) return status;
    const struct ggml_tensor *w = model->layers[layer].w[QKV_LAYER_O];
    const float *added = values_of(model->layers[layer].w[QKV_LAYER_O_BIAS]);
    if (!w || model->layers[layer].w[QKV_LAYER_ATTN_OUT_NORM] ||
        model->layers[layer].w[QKV_LAYER_LAYER_SCALE])
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "the residual stream of this model is not a sum of parts: there are norms "
                        "or factors in it");
    const int64_t n = model->hp.n_embd, width = w->ne[0], n_head = model->hp.layers[layer].n_head;
    const int64_t d = width / n_head;
    float *row = qkv_calloc((size_t)width, sizeof *row);
    double *wide = qkv_calloc((size_t)n, 2 * sizeof *wide);
    if (!row || !wide) {
        free(row);
        free(wide);
        return qkv_fail_memory(err);
    }
    double *pulled = wide + n;
    memcpy(pulled, direction, (size_t)n * sizeof *pulled);
    pull_through_block(model, layer, z, pulled, wide, row);
    *bias = 0;
    memset(parts, 0, (size_t)n_head * sizeof *parts);
    for (int64_t i = 0; i < n; i++) {
        read_row(w, i, row);
        if (added) *bias += pulled[i] * (double)added[i];
        for (int64_t h = 0; h < n_head; h++) {
            double sum = 0;
            for (int64_t k = h * d; k < (h + 1) * d; k++) sum += (double)row[k] * (double)z[k];
            parts[h] += pulled[i] * sum;
        }
    }
    free(row);
    free(wide);
    return QKV_OK;
}
