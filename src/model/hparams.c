/* Reads the numbers of an architecture from the metadata and refuses those that cannot be meant. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/first_key.h"
#include "base/memory.h"
#include "model/layer_shape.h"
#include "model/model.h"

#define MAX_LAYERS 1024
#define MAX_WIDTH (1 << 20)
#define MAX_VOCAB (1 << 24)

/* ARCH.suffix as an integer; `fallback` where it is absent, which for a negative fallback is an
 * error. */
static int read_int(const qkv_model *model, const char *suffix, int64_t low, int64_t high,
                    int64_t fallback, int32_t *out, qkv_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", model->family->name, suffix);
    int64_t value = fallback;
    int found = qkv_gguf_int(model->file, key, low, high, &value, err);
    if (found < 0) return found;
    if (!found && fallback < 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is missing", model->file->path, key);
    *out = (int32_t)value;
    return QKV_OK;
}

static int read_norm_eps(qkv_model *model, qkv_error *err) {
    char key[128];
    double eps = 0;
    snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", model->family->name,
             model->family->norm == QKV_NORM_RMS ? "rms_" : "");
    int found = qkv_gguf_float(model->file, key, 0, 1, &eps, err);
    if (found < 0) return found;
    if (!found) return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is missing", model->file->path, key);
    model->hp.norm_eps = (float)eps;
    return QKV_OK;
}

/* The vocabulary's size is that of the embedding; metadata must not contradict it. */
static int read_vocab_size(qkv_model *model, qkv_error *err) {
    qkv_gguf_tensor embedding;
    if (!qkv_gguf_find_tensor(model->file, "token_embd.weight", &embedding))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor token_embd.weight is missing",
                        model->file->path);
    if (embedding.ne[1] < 1 || embedding.ne[1] > MAX_VOCAB)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: token_embd.weight has %lld rows, outside 1 to %d",
                        model->file->path, (long long)embedding.ne[1], MAX_VOCAB);
    model->hp.n_vocab = (int32_t)embedding.ne[1];

    int32_t claimed = 0;
    int status = read_int(model, "vocab_size", 1, MAX_VOCAB, model->hp.n_vocab, &claimed, err);
    if (status != QKV_OK) return status;
    if (claimed != model->hp.n_vocab)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %s.vocab_size is %d but token_embd.weight has %d rows",
                        model->file->path, model->family->name, claimed, model->hp.n_vocab);
    return QKV_OK;
}

/* ---- what families differ in ---- */

static int reads(const qkv_model *model, int key) {
    return (model->family->keys >> key & 1) != 0;
}

static void name_key(const qkv_model *model, int key, char name[static 128]) {
    snprintf(name, 128, "%s.%s", model->family->name, qkv_family_key_name(key));
}

static int refuse_unread_keys(const qkv_model *model, qkv_error *err) {
    for (int i = 0; i < QKV_KEY_COUNT; i++) {
        char key[128];
        name_key(model, i, key);
        if (reads(model, i) || qkv_gguf_is_zero(model->file, key)) continue;
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: %s is set, which architecture %s as it is known here lacks",
                        model->file->path, key, model->family->name);
    }
    return QKV_OK;
}

/* A factor; `fallback` where the family has none, or the file does not say or says 0. */
static int read_factor(const qkv_model *model, int key, float fallback, float *out,
                       qkv_error *err) {
    char name[128];
    double value = 0;
    *out = fallback;
    if (!reads(model, key)) return QKV_OK;
    name_key(model, key, name);
    int found = qkv_gguf_float(model->file, name, 0, 1e6, &value, err);
    if (found > 0 && value > 0) *out = (float)value;
    return found < 0 ? found : QKV_OK;
}

static float default_attn_scale(const qkv_model *model) {
    const qkv_hparams *hp = &model->hp;
    if (model->family->unscaled) return 1;
    if (model->family->width_scaled_layers == hp->n_layer)
        return 1.0f / sqrtf((float)hp->n_embd / (float)hp->largest.n_head);
    return 1.0f / sqrtf((float)hp->largest.head_dim);
}

/* Of n heads, a power of two, head i (from 1) has the slope 2^-(e i/n), e being the exponent of the last.
 * Of other numbers the largest power of two below has these; the rest has every other slope, from the first
 * on, of twice as many heads. */
float qkv_score_slope(const qkv_hparams *hp, int32_t il, int32_t head) {
    const int32_t n_head = qkv_layer_shape_of(hp, il)->n_head;
    int32_t n = 1;
    if (hp->alibi_exponent == 0) return 0;
    while (2 * n <= n_head) n *= 2;
    const double place = head < n ? head + 1 : head - n + 0.5;
    return (float)exp2(-(double)hp->alibi_exponent * place / n);
}

static int read_alibi(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    const int status =
        read_factor(model, QKV_KEY_ALIBI, model->family->alibi_exponent, &hp->alibi_exponent, err);
    if (status != QKV_OK || model->family->position != QKV_POSITION_ALIBI) return status;
    if (hp->alibi_exponent == 0)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: %s.%s is missing or 0: without ALiBi nothing says where tokens are",
                        model->file->path, model->family->name, qkv_family_key_name(QKV_KEY_ALIBI));
    return QKV_OK;
}

static int read_factors(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    float embedding = model->family->embedding_sqrt ? sqrtf((float)hp->n_embd) : 1;
    int status =
        read_factor(model, QKV_KEY_ATTN_SCALE, default_attn_scale(model), &hp->attn_scale, err);
    if (status == QKV_OK)
        status = read_factor(model, QKV_KEY_ATTN_SOFTCAP, 0, &hp->attn_softcap, err);
    if (status == QKV_OK)
        status = read_factor(model, QKV_KEY_LOGIT_SOFTCAP, 0, &hp->logit_softcap, err);
    if (status == QKV_OK) status = read_factor(model, QKV_KEY_CLAMP, 0, &hp->head_clamp, err);
    if (status == QKV_OK)
        status = read_factor(model, QKV_KEY_EMBEDDING_SCALE, embedding, &hp->embedding_scale, err);
    if (status == QKV_OK)
        status = read_factor(model, QKV_KEY_RESIDUAL_SCALE, 1, &hp->residual_scale, err);
    if (status == QKV_OK)
        status = read_factor(model, QKV_KEY_LOGIT_SCALE, 1, &hp->logit_scale, err);
    if (model->family->logit_scale_divides && hp->logit_scale > 0)
        hp->logit_scale = 1 / hp->logit_scale;
    return status;
}

/* A part that the family has, unless the file says that it is not there. */
static int read_absence(const qkv_model *model, int key, int32_t *absent, qkv_error *err) {
    char name[128];
    int present = 1;
    if (!reads(model, key)) return QKV_OK;
    name_key(model, key, name);
    const int found = qkv_gguf_bool(model->file, name, &present, err);
    *absent = !present;
    return found < 0 ? found : QKV_OK;
}

static int read_absences(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    int status = read_absence(model, QKV_KEY_LINEAR_BIASES, &hp->no_linear_biases, err);
    if (status == QKV_OK)
        status = read_absence(model, QKV_KEY_NORM_WEIGHTS, &hp->no_norm_weights, err);
    if (status == QKV_OK) status = read_absence(model, QKV_KEY_HEAD_NORMS, &hp->no_head_norms, err);
    return status;
}

static int read_flags(qkv_model *model, qkv_error *err) {
    char key[128];
    int parallel = model->family->parallel, causal = !model->family->bidirectional, found = 0;
    name_key(model, QKV_KEY_PARALLEL, key);
    if (reads(model, QKV_KEY_PARALLEL)) found = qkv_gguf_bool(model->file, key, &parallel, err);
    if (found < 0) return found;
    snprintf(key, sizeof key, "%s.attention.causal", model->family->name);
    found = qkv_gguf_bool(model->file, key, &causal, err);
    model->hp.parallel = parallel;
    model->hp.causal = causal;
    model->hp.has_sink = (model->family->layer_required & QKV_HAS(SINKS)) != 0;
    model->hp.has_logits = !model->family->has_no_logits;
    model->hp.has_final_norm = ((model->family->model_required | model->family->model_ones) &
                                QKV_HAS_MODEL(OUTPUT_NORM)) != 0;
    return found < 0 ? found : QKV_OK;
}

/* ---- temperature of queries ---- */

static int read_temperature(qkv_model *model, qkv_error *err) {
    qkv_temperature *t = &model->hp.temperature;
    double scale = (double)model->family->temperature.scale;
    char key[128];
    *t = model->family->temperature;
    if (!reads(model, QKV_KEY_TEMPERATURE)) return QKV_OK;
    name_key(model, QKV_KEY_TEMPERATURE, key);
    int status = qkv_gguf_float(model->file, key, 0, 1e6, &scale, err);
    if (status < 0) return status;
    t->scale = (float)scale;
    int32_t step = t->step;
    status = QKV_OK;
    if (step == 0)
        status = read_int(model, "rope.scaling.original_context_length", 1, 1 << 30,
                          model->hp.n_ctx, &step, err);
    if (status == QKV_OK)
        status = read_int(model, "attention.temperature_length", 1, 1 << 30, step, &t->step, err);
    return status;
}

int qkv_layer_has_temperature(const qkv_model *model, int32_t il) {
    if (model->family->temperature_unturned && qkv_layer_rope(model, il) >= 0) return 0;
    return model->hp.temperature.scale != 0;
}

/* ---- activation ---- */

/* One of the four lists of numbers, which have no architecture before their name. */
static int read_xielu_list(qkv_model *model, const char *key, size_t offset, qkv_error *err) {
    const size_t n = (size_t)model->hp.n_layer;
    float *values = qkv_calloc(n, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    const int status = qkv_gguf_floats(model->file, key, values, n, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        memcpy((char *)&model->hp.xielu[i] + offset, &values[i], sizeof *values);
    free(values);
    return status;
}

static int read_xielu(qkv_model *model, qkv_error *err) {
    model->hp.xielu = qkv_calloc((size_t)model->hp.n_layer, sizeof *model->hp.xielu);
    if (!model->hp.xielu) return qkv_fail_memory(err);
    int status = read_xielu_list(model, "xielu.alpha_p", offsetof(qkv_xielu, alpha_p), err);
    if (status == QKV_OK)
        status = read_xielu_list(model, "xielu.alpha_n", offsetof(qkv_xielu, alpha_n), err);
    if (status == QKV_OK)
        status = read_xielu_list(model, "xielu.beta", offsetof(qkv_xielu, beta), err);
    if (status == QKV_OK)
        status = read_xielu_list(model, "xielu.eps", offsetof(qkv_xielu, eps), err);
    return status;
}

/* The family's own where the file names none; a family whose own has no name takes no other. */
static int read_activation(qkv_model *model, qkv_error *err) {
    char key[128];
    const char *name = NULL;
    const int usual = (int)model->family->activation;
    snprintf(key, sizeof key, "%s.hidden_activation", model->family->name);
    int found = qkv_gguf_string(model->file, key, &name, err);
    if (found < 0) return found;
    const int activation = found ? qkv_activation_find(name) : usual;
    if (found && (activation < 0 || !qkv_activation_name(usual)))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %s is '%.60s', which is not supported",
                        model->file->path, key, name);
    model->hp.activation = (qkv_activation)activation;
    return activation == QKV_ACT_XIELU ? read_xielu(model, err) : QKV_OK;
}

/* ---- experts ---- */

/* Numbers of llama.cpp's expert_gating_func. A softmax over the chosen alone (3) is one that is brought to a
 * sum of 1. */
enum { GATING_NONE, GATING_SOFTMAX, GATING_SIGMOID, GATING_SOFTMAX_OF_CHOSEN };

static int read_gating(qkv_model *model, qkv_error *err) {
    qkv_router *router = &model->hp.router;
    int32_t gating = GATING_NONE;
    router->kind = model->family->router;
    if (!reads(model, QKV_KEY_EXPERT_GATING)) return QKV_OK;
    int status = read_int(model, "expert_gating_func", 0, 1000, GATING_NONE, &gating, err);
    if (status != QKV_OK || gating == GATING_NONE) return status;
    if (gating > GATING_SOFTMAX_OF_CHOSEN)
        return qkv_fail(
            err, QKV_ERR_UNSUPPORTED,
            "%s: %s.expert_gating_func is %d; 1 (softmax), 2 (sigmoid) and 3 (softmax of "
            "the chosen) are supported",
            model->file->path, model->family->name, gating);
    router->kind = gating == GATING_SIGMOID ? QKV_ROUTER_SIGMOID : QKV_ROUTER_SOFTMAX;
    if (gating == GATING_SOFTMAX_OF_CHOSEN) router->is_normed = 1;
    return QKV_OK;
}

/* Every expert is in a group, and the groups that are used have enough of them. */
static int check_groups(const qkv_model *model, qkv_error *err) {
    const qkv_hparams *hp = &model->hp;
    const qkv_router *router = &hp->router;
    if (router->n_groups <= 1) return QKV_OK;
    const int32_t each = hp->n_expert / router->n_groups;
    if (hp->n_expert % router->n_groups == 0 && router->n_groups_used * each >= hp->n_expert_used &&
        each >= router->group_best)
        return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "%s: %d of %d experts cannot be chosen from %d of %d groups", model->file->path,
                    hp->n_expert_used, hp->n_expert, router->n_groups_used, router->n_groups);
}

static int read_groups(qkv_model *model, qkv_error *err) {
    qkv_router *router = &model->hp.router;
    router->group_best = model->family->groups_by_best ? 1 : 2;
    if (!reads(model, QKV_KEY_EXPERT_GROUPS)) return QKV_OK;
    int status =
        read_int(model, "expert_group_count", 0, QKV_MAX_EXPERTS, 0, &router->n_groups, err);
    if (status == QKV_OK && router->n_groups > 1)
        status = read_int(model, "expert_group_used_count", 1, router->n_groups, router->n_groups,
                          &router->n_groups_used, err);
    return status == QKV_OK ? check_groups(model, err) : status;
}

static int read_router(qkv_model *model, qkv_error *err) {
    qkv_router *router = &model->hp.router;
    char key[128];
    double jitter = 0.01;
    int normed = !model->family->experts_keep_shares;
    snprintf(key, sizeof key, "%s.expert_weights_norm", model->family->name);
    int status = qkv_gguf_bool(model->file, key, &normed, err);
    if (status < 0) return status;
    router->is_normed = normed;
    router->on_input = model->family->router_on_input;
    snprintf(key, sizeof key, "%s.expert_jitter", model->family->name);
    status = qkv_gguf_float(model->file, key, 0, 1, &jitter, err);
    if (status < 0) return status;
    router->jitter = (float)jitter;
    status = read_gating(model, err);
    if (status == QKV_OK) status = read_groups(model, err);
    return status == QKV_OK ? read_factor(model, QKV_KEY_EXPERT_SCALE, 1, &router->factor, err)
                            : status;
}

/* How wide the expert is that all tokens have: as the file says, or as so many of the others. */
static int read_shared_expert(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    const qkv_slot_set all = model->family->layer_required | model->family->layer_optional;
    int32_t width = hp->largest.n_ff, count = 1;
    int status = QKV_OK;
    if (!(all & QKV_HAS(SHARED_UP))) return QKV_OK;
    if (reads(model, QKV_KEY_SHARED_EXPERTS)) {
        status = read_int(model, "expert_shared_count", 0, QKV_MAX_EXPERTS, 1, &count, err);
        if ((int64_t)count * hp->n_ff_expert > MAX_WIDTH)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: %d shared experts of width %d are implausible", model->file->path,
                            count, hp->n_ff_expert);
        width = count * hp->n_ff_expert;
    }
    if (status != QKV_OK) return status;
    return read_int(model, "expert_shared_feed_forward_length", width ? 1 : 0, MAX_WIDTH, width,
                    &hp->n_ff_shared, err);
}

static int read_expert_layers(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    int status = QKV_OK;
    if (reads(model, QKV_KEY_DENSE_LAYERS))
        status = read_int(model, "leading_dense_block_count", 0, hp->n_layer, 0, &hp->n_dense, err);
    if (status == QKV_OK && reads(model, QKV_KEY_EXPERT_PERIOD))
        status =
            read_int(model, "interleave_moe_layer_step", 0, MAX_LAYERS, 0, &hp->expert_period, err);
    return status;
}

int qkv_layer_has_experts(const qkv_hparams *hp, int32_t il) {
    if (!hp->n_expert || il < hp->n_dense) return 0;
    return !hp->expert_period || (il + 1) % hp->expert_period == 0;
}

static int read_experts(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    if (!reads(model, QKV_KEY_EXPERTS)) return QKV_OK;
    int status = read_int(model, "expert_count", 0, QKV_MAX_EXPERTS, 0, &hp->n_expert, err);
    if (status != QKV_OK || hp->n_expert == 0) return status;
    status = read_int(model, "expert_used_count", 1, hp->n_expert, -1, &hp->n_expert_used, err);
    if (status == QKV_OK)
        status = read_int(model, "expert_feed_forward_length", 1, MAX_WIDTH, hp->largest.n_ff,
                          &hp->n_ff_expert, err);
    if (status == QKV_OK) status = read_router(model, err);
    if (status == QKV_OK) status = read_shared_expert(model, err);
    return status == QKV_OK ? read_expert_layers(model, err) : status;
}

/* Layers that predict further tokens stand after the others; they are not part of the model. */
static int leave_later_layers(qkv_model *model, qkv_error *err) {
    int32_t later = 0;
    if (!reads(model, QKV_KEY_LATER_LAYERS)) return QKV_OK;
    const int status =
        read_int(model, "nextn_predict_layers", 0, model->hp.n_layer - 1, 0, &later, err);
    model->hp.n_layer -= later;
    return status;
}

static int read_window_use(qkv_model *model, qkv_error *err) {
    char key[128];
    int used = model->hp.n_layer == model->family->window_layers;
    snprintf(key, sizeof key, "%s.attention.sliding_window_used", model->family->name);
    const int found = qkv_gguf_bool(model->file, key, &used, err);
    if (!used) model->hp.window = 0;
    return found < 0 ? found : QKV_OK;
}

/* llama.cpp takes a window of 0 to mean that there are no chunks either, and no layer without RoPE. */
static int read_chunk(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    char key[128];
    snprintf(key, sizeof key, "%s.attention.sliding_window", model->family->name);
    int64_t window = 1;
    const int found = qkv_gguf_int(model->file, key, 0, INT32_MAX, &window, err);
    if (found < 0) return found;
    if (found && window == 0)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: %s is 0: models without chunks are not supported", model->file->path,
                        key);
    hp->is_chunked = 1;
    return read_int(model, "attention.chunk_size", 1, INT32_MAX, model->family->chunk, &hp->window,
                    err);
}

static int read_bare_norms(qkv_model *model, qkv_error *err) {
    const qkv_family *family = model->family;
    char key[128];
    int has = model->hp.n_expert != family->experts_without_norm;
    if (!family->norms_without_weights) return QKV_OK;
    snprintf(key, sizeof key, "%s.attention.head_norms", family->name);
    const int found = qkv_gguf_bool(model->file, key, &has, err);
    model->hp.has_bare_head_norms = has;
    return found < 0 ? found : QKV_OK;
}

/* The window, and which layers have it: by the family's rule, or as the file says. */
static int read_window(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    char key[128];
    int status = model->family->chunk ? read_chunk(model, err)
                                      : read_int(model, "attention.sliding_window", 0, INT32_MAX, 0,
                                                 &hp->window, err);
    if (status == QKV_OK && model->family->window_layers) status = read_window_use(model, err);
    if (status != QKV_OK) return status;
    if (hp->window && model->family->window_both_sides) hp->window = hp->window / 2 + 1;
    hp->window_period = model->family->window_period;
    snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", model->family->name);
    if (!qkv_gguf_is_array(model->file, key))
        return read_int(model, "attention.sliding_window_pattern", 0, MAX_LAYERS, hp->window_period,
                        &hp->window_period, err);
    hp->windowed = qkv_calloc((size_t)hp->n_layer, 1);
    if (!hp->windowed) return qkv_fail_memory(err);
    return qkv_gguf_flags(model->file, key, hp->windowed, (size_t)hp->n_layer, err);
}

int32_t qkv_layer_window(const qkv_model *model, int32_t il) {
    const qkv_hparams *hp = &model->hp;
    const int period = hp->window_period, shift = !model->family->full_layer_first;
    int has_window = hp->windowed ? hp->windowed[il] : period == 0 || (il + shift) % period != 0;
    return has_window ? hp->window : 0;
}

int64_t qkv_layer_first_key(const qkv_model *model, int32_t il, int64_t query) {
    return qkv_first_key(qkv_model_window(model, il), query);
}

int32_t qkv_model_window(const qkv_model *model, int32_t layer) {
    if (!model || layer < 0 || layer >= model->hp.n_layer) return 0;
    const int32_t window = qkv_layer_window(model, layer);
    return model->hp.is_chunked ? -window : window;
}

void qkv_hparams_release(qkv_hparams *hp) {
    free(hp->windowed);
    free(hp->xielu);
    free(hp->layers);
    for (int i = 0; i < QKV_ROPE_COUNT; i++) {
        free(hp->rope[i].divisors);
        free(hp->rope[i].long_divisors);
    }
}

int qkv_hparams_read(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    int status = read_int(model, "block_count", 1, MAX_LAYERS, -1, &hp->n_layer, err);
    if (status == QKV_OK)
        status = read_int(model, "embedding_length", 1, MAX_WIDTH, -1, &hp->n_embd, err);
    if (status == QKV_OK)
        status = read_int(model, "context_length", 1, 1 << 30, -1, &hp->n_ctx, err);
    if (status == QKV_OK && reads(model, QKV_KEY_OWN_EMBEDDINGS))
        status = read_int(model, "embedding_length_per_layer_input", 0, MAX_WIDTH, 0,
                          &hp->n_embd_own, err);
    if (status == QKV_OK) status = refuse_unread_keys(model, err);
    if (status == QKV_OK) status = leave_later_layers(model, err);
    if (status == QKV_OK) status = read_window(model, err);
    if (status == QKV_OK) status = qkv_layer_shapes_read(model, err);
    if (status == QKV_OK) status = read_norm_eps(model, err);
    if (status == QKV_OK) status = read_vocab_size(model, err);
    if (status == QKV_OK) status = read_experts(model, err);
    if (status == QKV_OK) status = read_factors(model, err);
    if (status == QKV_OK) status = read_temperature(model, err);
    if (status == QKV_OK) status = read_bare_norms(model, err);
    if (status == QKV_OK) status = read_absences(model, err);
    if (status == QKV_OK) status = read_alibi(model, err);
    if (status == QKV_OK) status = read_flags(model, err);
    if (status == QKV_OK) status = read_activation(model, err);
    return status == QKV_OK ? qkv_rope_read(model, err) : status;
}
