#include "model/output_gram.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/convert.h"
#include "model/model.h"

/* Adds one row of the projection, x [H · d], to the lower halves. */
static void add_row(double *gram, const float *x, int64_t n_head, int64_t d) {
    for (int64_t h = 0; h < n_head; h++, x += d, gram += d * d) {
        for (int64_t r = 0; r < d; r++) {
            for (int64_t c = 0; c <= r; c++) gram[r * d + c] += (double)x[r] * (double)x[c];
        }
    }
}

static void mirror(double *gram, int64_t n_head, int64_t d) {
    for (int64_t h = 0; h < n_head; h++, gram += d * d) {
        for (int64_t r = 0; r < d; r++) {
            for (int64_t c = 0; c < r; c++) gram[c * d + r] = gram[r * d + c];
        }
    }
}

int qkv_output_gram(double **out, const qkv_model *model, int32_t layer, qkv_error *err) {
    *out = NULL;
    const struct ggml_tensor *w = model->layers[layer].w[QKV_LAYER_O]; // [H · d, D]
    const int64_t n_head = model->hp.layers[layer].n_head, d = model->hp.layers[layer].value_dim;
    if (!w) return qkv_fail(err, QKV_ERR_UNSUPPORTED, "layer %d has no output projection", layer);
    double *gram = qkv_calloc((size_t)(n_head * d * d), sizeof *gram);
    float *row = qkv_calloc((size_t)w->ne[0], sizeof *row);
    if (!gram || !row) {
        free(gram);
        free(row);
        return qkv_fail_memory(err);
    }
    const qkv_convert_fn convert = qkv_converter(w->type);
    for (int64_t i = 0; i < w->ne[1]; i++) {
        convert((const char *)w->data + (size_t)i * w->nb[1], row, w->ne[0]);
        add_row(gram, row, n_head, d);
    }
    mirror(gram, n_head, d);
    free(row);
    *out = gram;
    return QKV_OK;
}
