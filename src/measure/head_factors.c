#include "measure/head_factors.h"

#include <stdlib.h>

#include "base/memory.h"
#include "model/model.h"
#include "qkv/weights.h"

/* ---- rows ---- */

static void centre(float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    for (int64_t i = 0; i < n; i++) x[i] -= (float)(sum / (double)n);
}

static void scale_by(float *x, const float *weights, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] *= weights[i];
}

static void scale(float *x, float factor, int64_t n) {
    for (int64_t i = 0; factor != 1 && i < n; i++) x[i] *= factor;
}

/* Norms have F32 weights in every file; without them there is no norm. */
static const float *norm_of(const struct ggml_tensor *w) {
    return w ? w->data : NULL;
}

static int takes_mean_away(const qkv_model *model) {
    return model->family->norm != QKV_NORM_RMS;
}

/* A row that reads w ⊙ c(x), c being what takes the mean away: it reads x by c(w ⊙ row). */
static void fold_reader(const qkv_model *model, const float *w, float *row) {
    const int64_t n = model->hp.n_embd;
    if (!w) return;
    scale_by(row, w, n);
    if (takes_mean_away(model)) centre(row, n);
}

/* What becomes of x after a norm, but for the division. */
static void fold_writer(const qkv_model *model, const float *w, float *x) {
    const int64_t n = model->hp.n_embd;
    if (!w) return;
    if (takes_mean_away(model)) centre(x, n);
    scale_by(x, w, n);
}

int qkv_stream_is_centred(const qkv_model *model) {
    return takes_mean_away(model) && !model->layers[0].w[QKV_LAYER_ATTN_OUT_NORM];
}

/* ---- q, k and v ---- */

/* QK-norm acts on the channels of a head, or of all heads together: rows of the matrix. Weights stand
 * in the order of captures, as rows do. */
static int fold_head_norm(const qkv_model *model, int32_t layer, const char *name, float *x,
                          int64_t rows, qkv_error *err) {
    const int64_t width = model->hp.n_embd, d = model->hp.layers[layer].head_dim;
    qkv_weight found = QKV_WEIGHT_INIT;
    int status = qkv_weight_find(model, name, layer, &found, err);
    float *w = status == QKV_OK ? qkv_calloc((size_t)found.n_rows, sizeof *w) : NULL;
    if (status != QKV_OK || !w) return w ? status : qkv_fail_memory(err);
    status = qkv_weight_read(model, name, layer, 0, found.n_rows, w, err);
    /* The mean is that of the channels which are normalised together. */
    const int64_t together = found.n_dims == 1 && found.n_rows == rows ? rows : d;
    for (int64_t r = 0; status == QKV_OK && takes_mean_away(model) && r < rows; r += together) {
        for (int64_t i = 0; i < width; i++) {
            double sum = 0;
            for (int64_t c = 0; c < together; c++) sum += (double)x[(r + c) * width + i];
            for (int64_t c = 0; c < together; c++)
                x[(r + c) * width + i] -= (float)(sum / (double)together);
        }
    }
    for (int64_t r = 0; status == QKV_OK && r < rows; r++)
        scale(x + r * width, w[r % found.n_rows], width);
    free(w);
    return status;
}

typedef struct reader {
    const char *name, *norm;
    int norm_slot; /* QKV-norm's; -1: none */
    int of_group;
} reader;

static const reader readers[] = {
    [QKV_FACTOR_Q] = {"q", "q_norm", QKV_LAYER_Q_NORM, 0},
    [QKV_FACTOR_K] = {"k", "k_norm", QKV_LAYER_K_NORM, 1},
    [QKV_FACTOR_V] = {"v", NULL, -1, 1},
};

static int read_reader(float **out, const qkv_model *model, int32_t layer, const reader *how,
                       int fold, qkv_error *err) {
    const qkv_layer *weights = &model->layers[layer];
    const qkv_hparams *hp = &model->hp;
    const qkv_layer_shape *shape = &hp->layers[layer];
    const int64_t rows =
        (int64_t)(how->of_group ? shape->n_kv_head : shape->n_head) * shape->head_dim;
    const struct ggml_tensor *second = weights->w[QKV_LAYER_ATTN_NORM_2];
    const float *w = norm_of(second ? second : weights->w[QKV_LAYER_ATTN_NORM]);
    float *x = qkv_calloc((size_t)(rows * hp->n_embd), sizeof *x);
    if (!x) return qkv_fail_memory(err);
    int status = qkv_weight_read(model, how->name, layer, 0, rows, x, err);
    if (status == QKV_OK && fold && how->norm_slot >= 0 && weights->w[how->norm_slot])
        status = fold_head_norm(model, layer, how->norm, x, rows, err);
    for (int64_t r = 0; status == QKV_OK && fold && r < rows; r++)
        fold_reader(model, w, x + r * hp->n_embd);
    if (status != QKV_OK) {
        free(x);
        x = NULL;
    }
    *out = x;
    return status;
}

/* ---- o ---- */

static void fold_output(const qkv_model *model, int32_t layer, float *row) {
    fold_writer(model, norm_of(model->layers[layer].w[QKV_LAYER_POST_ATTN_NORM]), row);
    scale(row, model->hp.residual_scale, model->hp.n_embd);
    if (qkv_stream_is_centred(model)) centre(row, model->hp.n_embd);
}

static int read_output(float **out, const qkv_model *model, int32_t layer, int fold,
                       qkv_error *err) {
    const qkv_layer_shape *shape = &model->hp.layers[layer];
    const int64_t width = model->hp.n_embd, rows = (int64_t)shape->n_head * shape->value_dim;
    float *x = qkv_calloc((size_t)(rows * width), sizeof *x);
    float *line = qkv_calloc((size_t)rows, sizeof *line);
    int status = x && line ? QKV_OK : qkv_fail_memory(err);
    for (int64_t i = 0; status == QKV_OK && i < width; i++) {
        status = qkv_weight_read(model, "o", layer, i, 1, line, err);
        for (int64_t r = 0; status == QKV_OK && r < rows; r++) x[r * width + i] = line[r];
    }
    for (int64_t r = 0; status == QKV_OK && fold && r < rows; r++)
        fold_output(model, layer, x + r * width);
    free(line);
    if (status != QKV_OK) {
        free(x);
        x = NULL;
    }
    *out = x;
    return status;
}

int qkv_head_factor(float **out, const qkv_model *model, int32_t layer, qkv_factor factor, int fold,
                    qkv_error *err) {
    *out = NULL;
    if (factor == QKV_FACTOR_O) return read_output(out, model, layer, fold, err);
    return read_reader(out, model, layer, &readers[factor], fold, err);
}

/* ---- the ends ---- */

int qkv_embedding_rows(float *out, const qkv_model *model, int64_t first, int64_t n, int fold,
                       qkv_error *err) {
    const int64_t width = model->hp.n_embd;
    int status = qkv_weight_read(model, "token_embd", -1, first, n, out, err);
    for (int64_t r = 0; status == QKV_OK && fold && r < n; r++) {
        scale(out + r * width, model->hp.embedding_scale, width);
        fold_writer(model, norm_of(model->w[QKV_MODEL_EMBD_NORM]), out + r * width);
    }
    return status;
}

int qkv_output_rows(float *out, const qkv_model *model, int64_t first, int64_t n, int fold,
                    qkv_error *err) {
    const int64_t width = model->hp.n_embd;
    int status = qkv_weight_read(model, "output", -1, first, n, out, err);
    for (int64_t r = 0; status == QKV_OK && fold && r < n; r++) {
        fold_reader(model, norm_of(model->w[QKV_MODEL_OUTPUT_NORM]), out + r * width);
        scale(out + r * width, model->hp.logit_scale, width);
    }
    return status;
}
