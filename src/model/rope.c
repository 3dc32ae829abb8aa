/*
 * How positions turn queries and keys: base, scaling, and their description.
 *
 * Every kind of scaling ends as one array: what each pair's frequency is divided by. Linear scaling
 * divides all by the same factor; YaRN divides the slow pairs by the factor, leaves the fast ones
 * alone and blends between; Llama 3 stores its divisors in the file as rope_freqs.weight, Phi 3 two
 * sets of them, by the prompt's length. The forward pass then knows a single case.
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
    int truncate; /* the blend starts and ends at whole pairs */
} yarn;

static int read_float(const qkv_model *model, const char *suffix, double low, double high,
                      double fallback, double *out, qkv_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.rope.%s", model->family->name, suffix);
    *out = fallback;
    int found = qkv_gguf_float(model->file, key, low, high, out, err);
    return found < 0 ? found : QKV_OK;
}

static int read_original_context(const qkv_model *model, int64_t *out, qkv_error *err) {
    char key[128];
    *out = model->hp.n_ctx;
    snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", model->family->name);
    int found = qkv_gguf_int(model->file, key, 1, 1 << 30, out, err);
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

static float *new_divisors(const qkv_rope *rope) {
    return qkv_calloc((size_t)rope->dims / 2, sizeof(float));
}

static int scale_linear(qkv_model *model, qkv_rope *rope, double factor, qkv_error *err) {
    rope->divisors = new_divisors(rope);
    if (!rope->divisors) return qkv_fail_memory(err);
    for (int i = 0; i < rope->dims / 2; i++) rope->divisors[i] = (float)factor;
    return describe(model, "rope (linear x%g)", factor, err);
}

/* The (fractional) pair that makes `turns` full turns over the original context. */
static double pair_with_turns(const qkv_rope *rope, const yarn *y, double turns) {
    return rope->dims * log(y->original_context / (turns * TWO_PI)) / (2 * log((double)rope->base));
}

/* What the file says of the logarithm by which q and k are multiplied: some divide by another one. */
static int read_yarn_log(const qkv_model *model, yarn *y, qkv_error *err) {
    double weight = 0;
    if (!model->family->yarn_log_divides) return QKV_OK;
    const int status = read_float(model, "scaling.yarn_log_multiplier", 0, 1e6, 0, &weight, err);
    y->attn_factor /= 1 + 0.1 * weight * log(y->factor);
    return status;
}

static int scale_yarn(qkv_model *model, qkv_rope *rope, const yarn *y, qkv_error *err) {
    rope->divisors = new_divisors(rope);
    if (!rope->divisors) return qkv_fail_memory(err);
    double low = pair_with_turns(rope, y, y->beta_fast);
    double high = pair_with_turns(rope, y, y->beta_slow);
    if (y->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, rope->dims - 1);
    for (int i = 0; i < rope->dims / 2; i++) {
        double ramp = (i - low) / fmax(0.001, high - low);
        double keep =
            (1 - fmin(1, fmax(0, ramp))) * y->extrapolation; /* 1: a fast pair, left alone */
        rope->divisors[i] = (float)(1 / ((1 - keep) / y->factor + keep));
    }
    if (y->extrapolation != 0)
        rope->attn_factor = (float)(y->attn_factor * (1 + 0.1 * log(y->factor)));
    return describe(model, "rope (yarn x%g)", y->factor, err);
}

static int read_yarn(qkv_model *model, qkv_rope *rope, double factor, qkv_error *err) {
    yarn y = {.factor = factor, .truncate = 1};
    char key[128];
    int64_t original = 0;
    snprintf(key, sizeof key, "%s.rope.scaling.yarn_truncate", model->family->name);
    int status = qkv_gguf_bool(model->file, key, &y.truncate, err);
    if (status >= 0) status = read_original_context(model, &original, err);
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
    if (status == QKV_OK) status = read_yarn_log(model, &y, err);
    return status == QKV_OK ? scale_yarn(model, rope, &y, err) : status;
}

/* ---- divisors that the file stores ---- */

static int read_divisors(const qkv_model *model, const qkv_rope *rope,
                         const qkv_gguf_tensor *tensor, float **out, qkv_error *err) {
    const int n = rope->dims / 2;
    if (tensor->type != GGML_TYPE_F32 || tensor->ne[0] != n || tensor->ne[1] != 1)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be %d F32 values", model->file->path,
                        tensor->name, n);
    *out = new_divisors(rope);
    if (!*out) return qkv_fail_memory(err);
    qkv_gguf_load(tensor, *out);
    for (int i = 0; i < n; i++) {
        if (!((*out)[i] > 0 && isfinite((*out)[i])))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s[%d] is %g", model->file->path,
                            tensor->name, i, (double)(*out)[i]);
    }
    return QKV_OK;
}

/* Two sets, by the prompt's length; and a factor on q and k. */
static int read_long_divisors(qkv_model *model, qkv_rope *rope, const qkv_gguf_tensor *longer,
                              qkv_error *err) {
    qkv_gguf_tensor shorter;
    double factor = 1;
    int64_t original = 0;
    if (!qkv_gguf_find_tensor(model->file, "rope_factors_short.weight", &shorter))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor rope_factors_short.weight is missing",
                        model->file->path);
    int status = read_divisors(model, rope, &shorter, &rope->divisors, err);
    if (status == QKV_OK) status = read_divisors(model, rope, longer, &rope->long_divisors, err);
    if (status == QKV_OK)
        status = read_float(model, "scaling.attn_factor", 1e-6, 1e6, 1, &factor, err);
    if (status == QKV_OK) status = read_original_context(model, &original, err);
    if (status != QKV_OK) return status;
    rope->attn_factor = (float)factor;
    rope->long_from = (int32_t)original;
    return describe(model, "rope (longrope)", 0, err);
}

/* 1 where the file has its own divisors. */
static int read_stored_divisors(qkv_model *model, qkv_rope *rope, qkv_error *err) {
    qkv_gguf_tensor stored;
    int status = QKV_OK;
    if (qkv_gguf_find_tensor(model->file, "rope_freqs.weight", &stored)) {
        status = read_divisors(model, rope, &stored, &rope->divisors, err);
        const char *name =
            model->family->proportional_rope ? "rope (proportional)" : "rope (llama3)";
        if (status == QKV_OK) status = describe(model, name, 0, err);
    } else if (qkv_gguf_find_tensor(model->file, "rope_factors_long.weight", &stored)) {
        status = read_long_divisors(model, rope, &stored, err);
    } else {
        return 0;
    }
    return status == QKV_OK ? 1 : status;
}

static int read_scaling(qkv_model *model, qkv_rope *rope, qkv_error *err) {
    char key[128];
    const char *kind = "none";
    double factor = 1;
    snprintf(key, sizeof key, "%s.rope.scaling.type", model->family->name);
    int status = qkv_gguf_string(model->file, key, &kind, err);
    if (status < 0) return status;
    status = read_float(model, "scaling.factor", 1e-6, 1e6, 1, &factor, err);
    if (status != QKV_OK) return status;

    int scaled = strcmp(kind, "none") != 0 && strcmp(kind, "longrope") != 0;
    int stored = read_stored_divisors(model, rope, err);
    if (stored < 0) return stored;
    if (stored && scaled && factor != 1)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: divisors of the frequencies together with %s scaling",
                        model->file->path, kind);
    if (stored) return QKV_OK;
    if (!scaled || (strcmp(kind, "linear") == 0 && factor == 1))
        return describe(model, "rope", 0, err);
    if (strcmp(kind, "linear") == 0) return scale_linear(model, rope, factor, err);
    if (strcmp(kind, "yarn") == 0) return read_yarn(model, rope, factor, err);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: RoPE scaling '%s'; none, linear, yarn and longrope are supported",
                    model->file->path, kind);
}

static int read_bases(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    double base, local = (double)model->family->local_base;
    int status = read_float(model, "freq_base", 1.0001, 1e12, 10000, &base, err);
    if (status == QKV_OK)
        status = read_float(model, "freq_base_swa", 1.0001, 1e12, local != 0 ? local : base, &local,
                            err);
    if (status != QKV_OK) return status;
    for (int i = 0; i < QKV_ROPE_COUNT; i++) {
        hp->rope[i].base = (float)(i == QKV_ROPE_LOCAL ? local : base);
        hp->rope[i].attn_factor = 1;
    }
    return QKV_OK;
}

int qkv_layer_rope(const qkv_model *model, int32_t il) {
    const qkv_family *family = model->family;
    if (model->hp.rope[QKV_ROPE_GLOBAL].dims == 0) return -1;
    if (family->rope_skip_period && (il + 1) % family->rope_skip_period == 0) return -1;
    if (family->rope_in_windows && model->hp.window && !qkv_layer_window(model, il)) return -1;
    return family->local_rope && qkv_layer_window(model, il) ? QKV_ROPE_LOCAL : QKV_ROPE_GLOBAL;
}

/* Channels that turn: as the file says, all of a head where it does not. */
static int read_dims(const qkv_model *model, const char *suffix, int64_t most, int64_t fallback,
                     int32_t *out, qkv_error *err) {
    char key[128];
    int64_t dims = fallback;
    snprintf(key, sizeof key, "%s.rope.%s", model->family->name, suffix);
    const int status = qkv_gguf_int(model->file, key, 2, most, &dims, err);
    if (status < 0) return status;
    if (dims % 2 != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %s is %lld; RoPE turns pairs of channels, so it must be even",
                        model->file->path, key, (long long)dims);
    *out = (int32_t)dims;
    return QKV_OK;
}

int qkv_rope_read(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    /* A directory has the original order, and the pairs that belong to it. */
    hp->qk_permuted = model->family->qk_permuted && !model->file->original_order;
    hp->rope_pairs = model->family->qk_permuted && model->file->original_order
                         ? QKV_ROPE_HALVES
                         : model->family->rope_pairs;
    if (model->family->position == QKV_POSITION_LEARNED) return describe(model, "learned", 0, err);
    if (model->family->position == QKV_POSITION_ALIBI) return describe(model, "alibi", 0, err);

    qkv_rope *all = &hp->rope[QKV_ROPE_GLOBAL], *local = &hp->rope[QKV_ROPE_LOCAL];
    const int64_t width = hp->largest.head_dim;
    int status = read_dims(model, "dimension_count", width, width, &all->dims, err);
    if (status == QKV_OK)
        status = read_dims(model, "dimension_count_swa", width, all->dims, &local->dims, err);
    if (status == QKV_OK) status = read_bases(model, err);
    return status == QKV_OK ? read_scaling(model, all, err) : status;
}
