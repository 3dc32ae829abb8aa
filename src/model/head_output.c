#include "model/head_output.h"

#include <stdlib.h>

#include "base/forked.h"
#include "base/memory.h"
#include "kernel/convert.h"
#include "model/model.h"

/* out[i] = sum over k of w[i][first + k] · x[k], for all rows of a matrix in any type. Rows do not see
 * each other, and sums are taken in one order: the number of threads changes nothing. */
static int multiply(const struct ggml_tensor *w, int64_t first, int64_t n, const float *x,
                    float *out, qkv_error *err) {
    const qkv_convert_fn convert = qkv_converter(w->type);
    int failed = 0;
#pragma omp parallel if (!qkv_is_forked()) reduction(| : failed)
    {
        float *row = qkv_calloc((size_t)w->ne[0], sizeof *row);
        failed = row == NULL;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < w->ne[1]; i++) {
            double sum = 0;
            if (!row) continue;
            convert((const char *)w->data + (size_t)i * w->nb[1], row, w->ne[0]);
            for (int64_t k = 0; k < n; k++) sum += (double)row[first + k] * (double)x[k];
            out[i] = (float)sum;
        }
        free(row);
    }
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static int check(const qkv_model *model, int32_t layer, int32_t head, qkv_error *err) {
    if (layer < 0 || layer >= model->hp.n_layer)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "layer %d is out of range; the model has 0 to %d",
                        (int)layer, (int)model->hp.n_layer - 1);
    const int32_t n_head = model->hp.layers[layer].n_head;
    if (!model->layers[layer].w[QKV_LAYER_O])
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "layer %d has no output projection", (int)layer);
    if (head < 0 || head >= n_head)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "head %d is out of range; layer %d has 0 to %d",
                        (int)head, (int)layer, (int)n_head - 1);
    return qkv_weights_prepare(model, layer, err);
}

int qkv_head_output(const qkv_model *model, int32_t layer, int32_t head, const float *value,
                    float *out, qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, value);
    QKV_NEED(err, out);
    const int status = check(model, layer, head, err);
    if (status != QKV_OK) return status;
    const struct ggml_tensor *w = model->layers[layer].w[QKV_LAYER_O]; // [H · d, D]
    const int64_t d = model->hp.layers[layer].value_dim;
    return multiply(w, head * d, d, value, out, err);
}

/* x ⊙ w, of a norm's weights; NULL: none. They are F32 in every file. */
static void scale_by(float *x, const struct ggml_tensor *w, int64_t n) {
    const float *weights = w ? w->data : NULL;
    for (int64_t i = 0; weights && i < n; i++) x[i] *= weights[i];
}

static void take_mean_away(float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    for (int64_t i = 0; i < n; i++) x[i] -= (float)(sum / (double)n);
}

int qkv_head_logits(const qkv_model *model, int32_t layer, int32_t head, const float *value,
                    float *out, qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, value);
    QKV_NEED(err, out);
    const qkv_hparams *hp = &model->hp;
    const struct ggml_tensor *last = model->w[QKV_MODEL_OUTPUT_NORM];
    if (!model->output) return qkv_fail(err, QKV_ERR_UNSUPPORTED, "this model has no logits");
    float *x = qkv_calloc((size_t)hp->n_embd, sizeof *x);
    if (!x) return qkv_fail_memory(err);
    int status = qkv_head_output(model, layer, head, value, x, err);
    if (status == QKV_OK) {
        scale_by(x, model->layers[layer].w[QKV_LAYER_POST_ATTN_NORM], hp->n_embd);
        for (int64_t i = 0; i < hp->n_embd; i++) x[i] *= hp->residual_scale;
        if (last && model->family->norm != QKV_NORM_RMS) take_mean_away(x, hp->n_embd);
        scale_by(x, last, hp->n_embd);
    }
    if (status == QKV_OK) status = multiply(model->output, 0, hp->n_embd, x, out, err);
    for (int64_t i = 0; status == QKV_OK && i < hp->n_vocab; i++) out[i] *= hp->logit_scale;
    free(x);
    return status;
}
