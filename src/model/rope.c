/*
 * How positions turn queries and keys: base, scaling, and their description.
 *
 * Every kind of scaling ends as one array: what each pair's frequency is divided by. Linear scaling
 * divides all by the same factor; YaRN divides the slow pairs by the factor, leaves the fast ones
 * alone and blends between; Llama 3 stores its divisors in the file as rope_freqs.weight. The
 * forward pass then knows a single case.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/model.h"

#define TWO_PI 6.283185307179586

typedef struct yarn {
    double factor, original_context, beta_fast, beta_slow, extrapolation, attn_factor;
} yarn;

static int read_float(const qkv_model *model, const char *suffix, double low, double high,
                      double fallback, double *out, qkv_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.rope.%s", model->family->name, suffix);
    *out = fallback;
    int found = qkv_gguf_float(model->file, key, low, high, out, err);
    return found < 0 ? found : QKV_OK;
}

static int describe(qkv_model *model, const char *format, double factor, qkv_error *err) {
    qkv_text text = {0};
    qkv_text_printf(&text, format, factor);
    if (text.failed) return qkv_fail_memory(err);
    free(model->position);
    model->position = text.data;
    return QKV_OK;
}

static int allocate_divisors(qkv_hparams *hp, qkv_error *err) {
    hp->rope_divisors = qkv_calloc((size_t)hp->rope_dims / 2, sizeof *hp->rope_divisors);
    return hp->rope_divisors ? QKV_OK : qkv_fail_memory(err);
}

static int scale_linear(qkv_model *model, double factor, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    int status = allocate_divisors(hp, err);
    if (status != QKV_OK) return status;
    for (int i = 0; i < hp->rope_dims / 2; i++) hp->rope_divisors[i] = (float)factor;
    return describe(model, "rope (linear x%g)", factor, err);
}

/* The (fractional) pair that makes `turns` full turns over the original context. */
static double pair_with_turns(const qkv_hparams *hp, double original_context, double turns) {
    return hp->rope_dims * log(original_context / (turns * TWO_PI)) /
           (2 * log((double)hp->rope_base));
}

static int scale_yarn(qkv_model *model, const yarn *y, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    int status = allocate_divisors(hp, err);
    if (status != QKV_OK) return status;
    double low = floor(pair_with_turns(hp, y->original_context, y->beta_fast));
    double high = ceil(pair_with_turns(hp, y->original_context, y->beta_slow));
    low = fmax(low, 0);
    high = fmin(high, hp->rope_dims - 1);
    for (int i = 0; i < hp->rope_dims / 2; i++) {
        double ramp = (i - low) / fmax(0.001, high - low);
        double keep =
            (1 - fmin(1, fmax(0, ramp))) * y->extrapolation; /* 1: a fast pair, left alone */
        hp->rope_divisors[i] = (float)(1 / ((1 - keep) / y->factor + keep));
    }
    if (y->extrapolation != 0)
        hp->rope_attn_factor = (float)(y->attn_factor * (1 + 0.1 * log(y->factor)));
    return describe(model, "rope (yarn x%g)", y->factor, err);
}

static int read_yarn(qkv_model *model, double factor, qkv_error *err) {
    yarn y = {.factor = factor};
    char key[128];
    int64_t original = model->hp.n_ctx;
    snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", model->family->name);
    int status = qkv_gguf_int(model->file, key, 1, 1 << 30, &original, err);
    if (status < 0) return status;
    y.original_context = (double)original;
    status = read_float(model, "scaling.attn_factor", 1e-6, 1e6, 1, &y.attn_factor, err);
    if (status == QKV_OK)
        status = read_float(model, "scaling.yarn_ext_factor", 0, 1, 1, &y.extrapolation, err);
    if (status == QKV_OK)
        status = read_float(model, "scaling.yarn_attn_factor", 1e-6, 1e6, y.attn_factor,
                            &y.attn_factor, err);
    if (status == QKV_OK)
        status = read_float(model, "scaling.yarn_beta_fast", 1e-6, 1e6, 32, &y.beta_fast, err);
    if (status == QKV_OK)
        status = read_float(model, "scaling.yarn_beta_slow", 1e-6, 1e6, 1, &y.beta_slow, err);
    return status == QKV_OK ? scale_yarn(model, &y, err) : status;
}

/* Llama 3: the divisors are a tensor of the file. */
static int read_stored_divisors(qkv_model *model, const qkv_gguf_tensor *tensor, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    if (tensor->type != GGML_TYPE_F32 || tensor->ne[0] != hp->rope_dims / 2 || tensor->ne[1] != 1)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: rope_freqs.weight should be %d F32 values",
                        model->file->path, hp->rope_dims / 2);
    int status = allocate_divisors(hp, err);
    if (status != QKV_OK) return status;
    memcpy(hp->rope_divisors, tensor->data, tensor->size);
    for (int i = 0; i < hp->rope_dims / 2; i++) {
        if (!(hp->rope_divisors[i] > 0 && isfinite(hp->rope_divisors[i])))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: rope_freqs.weight[%d] is %g",
                            model->file->path, i, (double)hp->rope_divisors[i]);
    }
    return describe(model, "rope (llama3)", 0, err);
}

static int read_scaling(qkv_model *model, qkv_error *err) {
    char key[128];
    const char *kind = "none";
    double factor = 1;
    snprintf(key, sizeof key, "%s.rope.scaling.type", model->family->name);
    int status = qkv_gguf_string(model->file, key, &kind, err);
    if (status < 0) return status;
    status = read_float(model, "scaling.factor", 1e-6, 1e6, 1, &factor, err);
    if (status != QKV_OK) return status;

    qkv_gguf_tensor stored;
    int has_stored = qkv_gguf_find_tensor(model->file, "rope_freqs.weight", &stored);
    int scaled = strcmp(kind, "none") != 0;
    if (has_stored && scaled && factor != 1)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: rope_freqs.weight together with %s scaling",
                        model->file->path, kind);
    if (has_stored) return read_stored_divisors(model, &stored, err);
    if (!scaled || (strcmp(kind, "linear") == 0 && factor == 1))
        return describe(model, "rope", 0, err);
    if (strcmp(kind, "linear") == 0) return scale_linear(model, factor, err);
    if (strcmp(kind, "yarn") == 0) return read_yarn(model, factor, err);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: RoPE scaling '%s'; none, linear and yarn are supported", model->file->path,
                    kind);
}

int qkv_rope_read(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    hp->rope_attn_factor = 1;
    if (model->family->position == QKV_POSITION_LEARNED) return describe(model, "learned", 0, err);

    char key[128];
    int64_t dims = hp->head_dim;
    double base = 10000;
    snprintf(key, sizeof key, "%s.rope.dimension_count", model->family->name);
    int status = qkv_gguf_int(model->file, key, 2, hp->head_dim, &dims, err);
    if (status < 0) return status;
    if (dims % 2 != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %s is %lld; RoPE turns pairs of channels, so it must be even",
                        model->file->path, key, (long long)dims);
    hp->rope_dims = (int32_t)dims;
    status = read_float(model, "freq_base", 1.0001, 1e12, base, &base, err);
    hp->rope_base = (float)base;
    return status == QKV_OK ? read_scaling(model, err) : status;
}
