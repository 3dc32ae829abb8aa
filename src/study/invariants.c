#include "study/invariants.h"

#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"

enum { ROWS_AT_A_TIME = 64, MOST_TOKENS = 8 };

/* NaN is larger than anything. */
static void widen(invariant_gap *gap, double difference, int32_t layer, int64_t head,
                  int64_t token) {
    if (difference <= gap->largest) return;
    gap->largest = isfinite(difference) ? difference : (double)INFINITY;
    gap->layer = layer;
    gap->head = (int32_t)head;
    gap->token = (int32_t)token;
}

static double largest_size(const float *x, int64_t n) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)x[i]));
    return largest > 0 ? largest : 1;
}

static int64_t count(const qkv_tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->n_dims; i++) n *= t->shape[i];
    return n;
}

/* ---- attention ---- */

void qkv_invariant_mix(invariant_gap *gap, int32_t layer, const qkv_tensor *pattern,
                       const qkv_tensor *v, const qkv_tensor *z) {
    const int64_t H = pattern->shape[0], T = pattern->shape[1], G = v->shape[1], d = v->shape[2];
    const double scale = largest_size(z->data, count(z));
    for (int64_t h = 0; h < H; h++) {
        for (int64_t i = 0; i < T; i++) {
            const float *row = pattern->data + (h * T + i) * T;
            for (int64_t c = 0; c < d; c++) {
                double sum = 0;
                for (int64_t j = 0; j < T; j++)
                    sum += (double)row[j] * (double)v->data[(j * G + h / (H / G)) * d + c];
                widen(gap, fabs(sum - (double)z->data[(i * H + h) * d + c]) / scale, layer, h, i);
            }
        }
    }
}

/* What a sink leaves to the keys: softmax divides all by one number, which any key's weight and score
 * tell; the largest weight tells it best. */
static double share_of_keys(const float *row, const float *scores, int64_t n, double sink) {
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++) {
        if (row[j] > row[best]) best = j;
    }
    return 1 - (double)row[best] * exp(sink - (double)scores[best]);
}

void qkv_invariant_rows(invariant_gap *gap, int32_t layer, const qkv_tensor *pattern,
                        const qkv_tensor *scores, const float *sinks) {
    const int64_t H = pattern->shape[0], T = pattern->shape[1];
    for (int64_t h = 0; h < H; h++) {
        for (int64_t i = 0; i < T; i++) {
            const float *row = pattern->data + (h * T + i) * T;
            double sum = 0, wanted = 1;
            for (int64_t j = 0; j < T; j++) sum += (double)row[j];
            if (sinks)
                wanted = share_of_keys(row, scores->data + (h * T + i) * T, T, (double)sinks[h]);
            widen(gap, fabs(sum - wanted), layer, h, i);
        }
    }
}

/* ---- the residual stream ---- */

static void apply_norm(const invariant_norm *norm, double *x, int64_t n) {
    double mean = 0, square = 0;
    if (!norm->weight) return;
    for (int64_t i = 0; i < n && norm->centred; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean) / (double)n;
    const double size = sqrt(square + norm->epsilon);
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] - mean) / size * (double)norm->weight[i] +
               (norm->bias ? (double)norm->bias[i] : 0);
}

int qkv_invariant_residual(invariant_gap *gap, int32_t layer, const invariant_stream *s,
                           qkv_error *err) {
    const int64_t T = s->post->shape[0], D = s->post->shape[1];
    const double scale = largest_size(s->post->data, T * D);
    double *x = qkv_calloc((size_t)D, sizeof *x);
    if (!x) return qkv_fail_memory(err);
    for (int64_t t = 0; t < T; t++) {
        const float *post = s->post->data + t * D;
        for (int64_t i = 0; i < D; i++)
            x[i] = (double)s->pre->data[t * D + i] + (double)s->attn->data[t * D + i];
        apply_norm(&s->after_attn, x, D);
        for (int64_t i = 0; i < D; i++) x[i] += (double)s->mlp->data[t * D + i];
        apply_norm(&s->after_mlp, x, D);
        for (int64_t i = 0; i < D; i++)
            widen(gap, fabs(x[i] - (double)post[i]) / scale, layer, -1, t);
    }
    free(x);
    return QKV_OK;
}

/* ---- output matrices ---- */

/* The i-th of the tokens that are looked at, evenly spaced from the first to the last. */
static int64_t chosen_token(int64_t i, int64_t n, int64_t T) {
    return n == 1 ? 0 : i * (T - 1) / (n - 1);
}

static int multiply(const invariant_matrix *w, const qkv_tensor *x, int64_t T, int64_t n_tokens,
                    double *out, qkv_error *err) {
    float *rows = qkv_calloc((size_t)(ROWS_AT_A_TIME * w->width), sizeof *rows);
    int status = rows ? QKV_OK : qkv_fail_memory(err);
    for (int64_t first = 0; first < w->n && status == QKV_OK; first += ROWS_AT_A_TIME) {
        const int64_t n = w->n - first < ROWS_AT_A_TIME ? w->n - first : ROWS_AT_A_TIME;
        status = w->read(w->user, first, n, rows, err);
        for (int64_t t = 0; t < n_tokens && status == QKV_OK; t++) {
            const float *in = x->data + chosen_token(t, n_tokens, T) * w->width;
            for (int64_t r = 0; r < n; r++) {
                double sum = w->bias ? (double)w->bias[first + r] : 0;
                for (int64_t k = 0; k < w->width; k++)
                    sum += (double)rows[r * w->width + k] * (double)in[k];
                out[t * w->n + first + r] = sum;
            }
        }
    }
    free(rows);
    return status;
}

int qkv_invariant_product(invariant_gap *gap, int32_t layer, const invariant_matrix *w,
                          const qkv_tensor *x, const qkv_tensor *y, qkv_error *err) {
    const int64_t T = y->shape[0], n_tokens = T < MOST_TOKENS ? T : MOST_TOKENS;
    const double scale = largest_size(y->data, T * w->n);
    double *out = qkv_calloc((size_t)(n_tokens * w->n), sizeof *out);
    int status = out ? multiply(w, x, T, n_tokens, out, err) : qkv_fail_memory(err);
    for (int64_t t = 0; t < n_tokens && status == QKV_OK; t++) {
        const int64_t token = chosen_token(t, n_tokens, T);
        double *row = out + t * w->n;
        apply_norm(&w->norm, row, w->n);
        for (int64_t i = 0; i < w->n; i++)
            widen(gap, fabs(row[i] * w->factor - (double)y->data[token * w->n + i]) / scale, layer,
                  -1, token);
    }
    free(out);
    return status;
}

/* ---- time ---- */

void qkv_invariant_earlier_rows(invariant_gap *gap, int32_t layer, const qkv_tensor *a,
                                const qkv_tensor *b) {
    const int is_map = a->n_dims == 3;
    const int64_t H = is_map ? a->shape[0] : 1, T = a->shape[is_map], n = a->shape[is_map + 1];
    const double scale = largest_size(a->data, count(a));
    for (int64_t h = 0; h < H; h++) {
        for (int64_t t = 0; t + 1 < T; t++) {
            const int64_t at = (h * T + t) * n;
            for (int64_t i = 0; i < n; i++)
                widen(gap, fabs((double)a->data[at + i] - (double)b->data[at + i]) / scale, layer,
                      is_map ? h : -1, t);
        }
    }
}

void qkv_invariant_no_future(invariant_gap *gap, int32_t layer, const qkv_tensor *pattern) {
    const int64_t H = pattern->shape[0], T = pattern->shape[1];
    for (int64_t h = 0; h < H; h++) {
        for (int64_t i = 0; i < T; i++) {
            for (int64_t j = i + 1; j < T; j++)
                widen(gap, fabs((double)pattern->data[(h * T + i) * T + j]), layer, h, i);
        }
    }
}

void qkv_invariant_same(invariant_gap *gap, int32_t layer, int32_t token, const float *a,
                        const float *b, int64_t n) {
    const double scale = largest_size(a, n);
    for (int64_t i = 0; i < n; i++)
        widen(gap, fabs((double)a[i] - (double)b[i]) / scale, layer, -1, token);
}
