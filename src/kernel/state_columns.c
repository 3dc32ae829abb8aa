#include "kernel/state_columns.h"

#include <string.h>

enum { N = QKV_STATE_COLUMNS };

static void load(float *columns, const qkv_token_rows *rows, int64_t t, int64_t n) {
    memset(columns, 0, N * sizeof *columns);
    memcpy(columns, rows->data + t * rows->stride, (size_t)n * sizeof *columns);
}

static const float *row(const qkv_token_rows *rows, int64_t t) {
    return rows->data + t * rows->stride;
}

void qkv_delta_pass(const qkv_state_pass *p) {
    for (int64_t t = 0; t < p->n_tokens; t++) {
        const float *q = row(&p->read, t), *k = row(&p->write, t);
        const float decay = *row(&p->decay, t), step = *row(&p->step, t);
        float change[N], held[N] = {0}, out[N] = {0};
        load(change, &p->value, t, p->n_columns);
        for (int64_t i = 0; i < p->width; i++) {
            float *s = p->state + i * N;
            for (int c = 0; c < N; c++) {
                s[c] *= decay;
                held[c] += k[i] * s[c];
            }
        }
        for (int c = 0; c < N; c++) change[c] = (change[c] - held[c]) * step;
        for (int64_t i = 0; i < p->width; i++) {
            float *s = p->state + i * N;
            for (int c = 0; c < N; c++) {
                s[c] += k[i] * change[c];
                out[c] += q[i] * s[c];
            }
        }
        memcpy(p->out + t * p->out_stride, out, (size_t)p->n_columns * sizeof *out);
    }
}
