/*
 * Binds the tensors of a file to the slots of a model.
 *
 * Matrices stay where they are, in the mapping, or are made when they are first needed (lazy_weights.h). Vectors (norms, biases), which ggml's elementwise
 * operations want as F32, are converted where they are stored otherwise; they are small. A tensor
 * that the family does not use is refused: to leave it out would silently compute something else
 * than the model.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ggml-cpu.h"
#include "kernel/convert.h"
#include "model/model.h"

/* Data that are not even aligned for their own type are copied. */
static int is_aligned(const qkv_gguf_tensor *t) {
    const size_t element = t->type == GGML_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    return (uintptr_t)t->data % element == 0;
}

static int64_t mixer_dimension(const qkv_hparams *hp, char letter) {
    const qkv_mixer_shape *m = &hp->mixer;
    switch (letter) {
    case 'c':
        return m->n_taps;
    case 'x':
        return qkv_mixer_channels(hp);
    case 'i':
        return m->inner;
    case 'h':
        return m->n_heads;
    case 'g':
        return m->n_groups;
    case 'w':
        return m->inner / m->n_heads;
    case 'b':
        return 2 * (int64_t)m->n_heads;
    case 't':
        return 3 * (int64_t)hp->n_embd;
    default:
        return 0; /* '*': any */
    }
}

int64_t qkv_hparams_dimension(const qkv_hparams *hp, const qkv_layer_shape *shape, char letter) {
    const int64_t q = (int64_t)shape->n_head * shape->head_dim;
    const int64_t k = (int64_t)shape->n_kv_head * shape->head_dim;
    const int64_t v = (int64_t)shape->n_kv_head * shape->value_dim;
    switch (letter) {
    case 'D':
        return hp->n_embd;
    case 'H':
        return shape->n_head;
    case 'G':
        return shape->n_kv_head;
    case 'd':
        return shape->head_dim;
    case 'Q':
        return q;
    case 'K':
        return k;
    case 'S':
        return q + k + v;
    case 'B':
        return 2 * q;
    case 'U':
        return v;
    case 'Z':
        return (int64_t)shape->n_head * shape->value_dim;
    case 'F':
        return shape->n_ff;
    case 'W':
        return 2 * (int64_t)shape->n_ff;
    case 'E':
        return hp->n_expert;
    case 'f':
        return hp->n_ff_expert;
    case 's':
        return hp->n_ff_shared;
    case 'V':
        return hp->n_vocab;
    case 'v':
        return shape->value_dim;
    case 'p':
        return hp->n_embd_own;
    case 'P':
        return (int64_t)hp->n_embd_own * hp->n_layer;
    case '1':
        return 1;
    case 'C':
        return hp->n_ctx;
    case 'R':
        return hp->rope[QKV_ROPE_GLOBAL].dims / 2;
    default:
        return mixer_dimension(hp, letter);
    }
}

static int check_shape(const qkv_model *model, const qkv_gguf_tensor *t, const char *shape,
                       int32_t layer, qkv_error *err) {
    const qkv_hparams *hp = &model->hp;
    int64_t want[4] = {1, 1, 1, 1};
    int fits = 1;
    for (int i = 0; shape[i]; i++) {
        want[i] = qkv_hparams_dimension(hp, qkv_layer_shape_of(hp, layer), shape[i]);
        if (shape[i] == '*') want[i] = t->ne[i];
    }
    for (int i = 0; i < 4; i++) fits = fits && want[i] == t->ne[i] && t->ne[i] > 0;
    if (fits) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "%s: tensor %s has shape [%lld, %lld, %lld, %lld], expected [%lld, %lld, %lld, "
                    "%lld]",
                    model->file->path, t->name, (long long)t->ne[0], (long long)t->ne[1],
                    (long long)t->ne[2], (long long)t->ne[3], (long long)want[0],
                    (long long)want[1], (long long)want[2], (long long)want[3]);
}

static int check_type(const qkv_model *model, const qkv_gguf_tensor *t, qkv_error *err) {
    if (qkv_converter(t->type)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: tensor %s has type %s, which holds no weights",
                    model->file->path, t->name, ggml_type_name(t->type));
}

static int keep_buffer(qkv_model *model, ggml_backend_buffer_t buffer, qkv_error *err) {
    if (!buffer) return qkv_fail_memory(err);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_t *moved = realloc(model->buffers, (model->n_buffers + 1) * sizeof *moved);
    if (!moved) {
        ggml_backend_buffer_free(buffer);
        return qkv_fail_memory(err);
    }
    model->buffers = moved;
    model->buffers[model->n_buffers++] = buffer;
    return QKV_OK;
}

/* A tensor of its own memory: vectors that need conversion, and data that the file did not
 * align. */
static int copy_tensor(qkv_model *model, struct ggml_tensor *tensor, const qkv_gguf_tensor *t,
                       qkv_error *err) {
    size_t size = ggml_nbytes(tensor);
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    int status = keep_buffer(model, buffer, err);
    if (status != QKV_OK) return status;
    ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer));
    if (tensor->type == t->type) {
        qkv_gguf_load(t, tensor->data);
        return QKV_OK;
    }
    void *stored = malloc(t->size); /* aligned, whatever the file does */
    if (!stored) return qkv_fail_memory(err);
    qkv_gguf_load(t, stored);
    qkv_converter(t->type)(stored, tensor->data, ggml_nelements(tensor));
    free(stored);
    return QKV_OK;
}

/* `layer` is -1 for what belongs to none. */
static int bind(qkv_model *model, struct ggml_tensor **out, const qkv_gguf_tensor *t,
                const char *shape, int32_t layer, qkv_error *err) {
    int status = check_shape(model, t, shape, layer, err);
    if (status == QKV_OK) status = check_type(model, t, err);
    if (status != QKV_OK) return status;
    int is_vector = shape[1] == '\0' || strstr(t->name, "norm") || strstr(t->name, ".bias") ||
                    shape[0] == 'c' || shape[0] == '1'; /* of mixers: not for products */
    enum ggml_type type = is_vector ? GGML_TYPE_F32 : t->type;
    struct ggml_tensor *tensor =
        ggml_new_tensor_4d(model->tensors, type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
    ggml_set_name(tensor, t->name);
    *out = tensor;
    if (!t->data && !is_vector && layer >= 0)
        return qkv_lazy_weights_add(&model->lazy, tensor, t, layer, err);
    if (!t->data || type != t->type || !is_aligned(t)) return copy_tensor(model, tensor, t, err);
    ggml_backend_tensor_alloc(model->buffers[t->part], tensor, (void *)t->data);
    return QKV_OK;
}

/* A norm without weights: ones, so that nothing else has to know. */
static int bind_ones(qkv_model *model, struct ggml_tensor **out, const char *name,
                     const char *shape, int32_t layer, qkv_error *err) {
    const qkv_hparams *hp = &model->hp;
    qkv_gguf_tensor t;
    if (qkv_gguf_find_tensor(model->file, name, &t))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %s is there, of a norm without weights",
                        model->file->path, name);
    struct ggml_tensor *tensor =
        ggml_new_tensor_1d(model->tensors, GGML_TYPE_F32,
                           qkv_hparams_dimension(hp, qkv_layer_shape_of(hp, layer), shape[0]));
    ggml_set_name(tensor, name);
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), ggml_nbytes(tensor));
    const int status = keep_buffer(model, buffer, err);
    if (status != QKV_OK) return status;
    ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer));
    for (int64_t i = 0; i < tensor->ne[0]; i++) ((float *)tensor->data)[i] = 1;
    *out = tensor;
    return QKV_OK;
}

/* One slot: bound when present, an error when required and absent. */
static int bind_slot(qkv_model *model, struct ggml_tensor **out, const char *name,
                     const char *shape, int32_t layer, int required, qkv_error *err) {
    qkv_gguf_tensor t;
    if (qkv_gguf_find_tensor(model->file, name, &t)) return bind(model, out, &t, shape, layer, err);
    if (!required) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %s is missing", model->file->path, name);
}

static void name_weight(const qkv_family *family, int il, int slot, char name[GGML_MAX_NAME]) {
    snprintf(name, GGML_MAX_NAME, "blk.%d.%s", il, qkv_family_layer_slot(family, slot).name);
}

static int has_weight(const qkv_model *model, int il, int slot) {
    char name[GGML_MAX_NAME];
    qkv_gguf_tensor t;
    name_weight(model->family, il, slot, name);
    return qkv_gguf_find_tensor(model->file, name, &t);
}

/* Slots of blocks that the layer does not have. */
static qkv_slot_set absent_weights(const qkv_model *model, int il) {
    qkv_slot_set absent = 0;
    if (!qkv_layer_has(&model->hp, il, QKV_PART_ATTENTION)) absent |= QKV_HAS_OF_ATTENTION;
    if (!qkv_layer_has(&model->hp, il, QKV_PART_FEED_FORWARD)) absent |= QKV_HAS_OF_MLP;
    return absent;
}

/* What a layer lacks that uses the keys and values of another one. Files may have it all the same: it says
 * nothing. */
static qkv_slot_set left_out(const qkv_model *model, int il) {
    if (model->hp.layers[il].kv_layer == il) return 0;
    return QKV_HAS(K) | QKV_HAS(V) | QKV_HAS(K_BIAS) | QKV_HAS(V_BIAS) | QKV_HAS(K_NORM) |
           QKV_HAS(V_NORM);
}

/* Does the file say that it does without this weight, which the family has? Of a norm ones take its
 * place. */
static int is_absent(const qkv_hparams *hp, const char *name) {
    const int is_norm = strstr(name, "norm.") != NULL, is_bias = strstr(name, ".bias") != NULL;
    if (strstr(name, "attn_q_norm.") || strstr(name, "attn_k_norm.")) return hp->no_head_norms;
    return is_norm ? hp->no_norm_weights : is_bias && hp->no_linear_biases;
}

static int is_norm_weight(const char *name) {
    return strstr(name, "norm.weight") != NULL;
}

/* What the layer must have: some weights stand in for others, where the family knows both. */
static qkv_slot_set required_weights(const qkv_model *model, int il) {
    const qkv_slot_set split = QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES;
    const qkv_family *family = model->family;
    qkv_slot_set required = family->layer_required;
    if (!model->hp.parallel) required |= family->sequential_required;
    if (family->first_unnormed && il == 0) required &= ~QKV_HAS(ATTN_NORM);
    if ((family->layer_optional & QKV_HAS(QKV)) && has_weight(model, il, QKV_LAYER_QKV)) {
        required = (required & ~split) | QKV_HAS(QKV);
        if (family->layer_required & QKV_HAS(Q_BIAS)) required |= QKV_HAS(QKV_BIAS);
    }
    const qkv_slot_set all = family->layer_required | family->layer_optional;
    if (model->hp.n_embd_own) required |= QKV_HAS(OWN_GATE) | QKV_HAS(OWN_PROJ) | QKV_HAS(OWN_NORM);
    required &= ~left_out(model, il);
    if (!(all & QKV_HAS(ROUTER))) return required;
    if (!qkv_layer_has_experts(&model->hp, il))
        return (required & ~QKV_HAS_EXPERT_PARTS) | QKV_HAS_GATED_MLP;
    required = (required & ~QKV_HAS_GATED_MLP) | QKV_HAS_EXPERTS;
    return model->hp.n_ff_shared ? required : required & ~QKV_HAS_SHARED_EXPERT;
}

/* What it may have beyond that. */
static qkv_slot_set optional_weights(const qkv_model *model, int il) {
    const qkv_slot_set optional =
        model->family->layer_optional | (model->family->layer_required & left_out(model, il));
    if (qkv_layer_has_experts(&model->hp, il)) return optional & ~QKV_HAS_GATED_MLP;
    return optional & ~QKV_HAS_EXPERT_PARTS;
}

static int bind_mixer(qkv_model *model, int il, qkv_error *err) {
    const qkv_family *family = model->family;
    if (!qkv_layer_has(&model->hp, il, QKV_PART_MIXER)) return QKV_OK;
    for (int i = 0; i < QKV_MIXER_WEIGHT_COUNT; i++) {
        const uint32_t bit = UINT32_C(1) << i;
        if (!((family->mixer_required | family->mixer_optional) & bit)) continue;
        const qkv_weight_slot slot = qkv_family_mixer_slot(i);
        char name[GGML_MAX_NAME];
        snprintf(name, sizeof name, "blk.%d.%s", il, slot.name);
        const int status = bind_slot(model, &model->layers[il].mixer[i], name, slot.shape, il,
                                     (family->mixer_required & bit) != 0, err);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

/* Norms without weights. */
static qkv_slot_set bare_norms(const qkv_model *model, int il) {
    const qkv_family *family = model->family;
    const int has_heads = model->hp.has_bare_head_norms && qkv_layer_rope(model, il) >= 0;
    return family->layer_ones | (has_heads ? family->norms_without_weights : 0);
}

static int bind_layer(qkv_model *model, int il, qkv_error *err) {
    const qkv_family *family = model->family;
    const qkv_slot_set missing = absent_weights(model, il);
    const qkv_slot_set required = required_weights(model, il) & ~missing;
    const qkv_slot_set ones = bare_norms(model, il) & ~left_out(model, il) & ~missing;
    qkv_slot_set known = required | (optional_weights(model, il) & ~missing);
    if (family->first_unnormed && il == 0) known &= ~QKV_HAS(ATTN_NORM_BIAS);
    for (int i = 0; i < QKV_LAYER_WEIGHT_COUNT; i++) {
        const qkv_slot_set bit = (qkv_slot_set)1 << i;
        if (!((known | ones) & bit)) continue;
        char name[GGML_MAX_NAME];
        name_weight(family, il, i, name);
        const char *shape = qkv_family_layer_slot(family, i).shape;
        struct ggml_tensor **out = &model->layers[il].w[i];
        const int absent = is_absent(&model->hp, name);
        if (absent && (model->hp.no_head_norms || !is_norm_weight(name))) continue;
        int status = absent || ones & bit
                         ? bind_ones(model, out, name, shape, il, err)
                         : bind_slot(model, out, name, shape, il, (required & bit) != 0, err);
        if (status != QKV_OK) return status;
    }
    return bind_mixer(model, il, err);
}

static int bind_globals(qkv_model *model, qkv_error *err) {
    const qkv_family *family = model->family;
    uint64_t required = family->model_required;
    if (model->hp.n_embd_own)
        required |=
            QKV_HAS_MODEL(OWN_EMBD) | QKV_HAS_MODEL(OWN_MODEL_PROJ) | QKV_HAS_MODEL(OWN_MODEL_NORM);
    for (int i = 0; i < QKV_MODEL_WEIGHT_COUNT; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (!((family->model_required | family->model_optional | family->model_ones) & bit))
            continue;
        qkv_weight_slot slot = qkv_family_model_slot(i);
        if (i == QKV_MODEL_OUTPUT_NORM && family->output_norm) slot.name = family->output_norm;
        const int absent = is_absent(&model->hp, slot.name);
        if (absent && !is_norm_weight(slot.name)) continue;
        int status = absent || family->model_ones & bit
                         ? bind_ones(model, &model->w[i], slot.name, slot.shape, -1, err)
                         : bind_slot(model, &model->w[i], slot.name, slot.shape, -1,
                                     (required & bit) != 0, err);
        if (status != QKV_OK) return status;
    }
    if (family->has_no_logits) return QKV_OK;
    model->output =
        model->w[QKV_MODEL_OUTPUT] ? model->w[QKV_MODEL_OUTPUT] : model->w[QKV_MODEL_TOKEN_EMBD];
    return QKV_OK;
}

/* Layers that predict further tokens stand after the others, and are not part of the model. */
static int is_of_later_layer(const qkv_model *model, const char *name) {
    char *end = NULL;
    if (!(model->family->keys & QKV_READS(LATER_LAYERS)) || strncmp(name, "blk.", 4) != 0) return 0;
    return strtol(name + 4, &end, 10) >= model->hp.n_layer && *end == '.';
}

/* Every tensor of the file must have found its slot. */
static int refuse_unused(const qkv_model *model, qkv_error *err) {
    size_t n = qkv_gguf_n_tensors(model->file);
    for (size_t i = 0; i < n; i++) {
        qkv_gguf_tensor t;
        qkv_gguf_get_tensor(model->file, i, &t);
        /* Old converters stored the plain RoPE frequencies per layer; they say nothing new. */
        if (strstr(t.name, "attn_rot_embd") || is_of_later_layer(model, t.name)) continue;
        if (!ggml_get_tensor(model->tensors, t.name))
            return qkv_fail(
                err, QKV_ERR_UNSUPPORTED,
                "%s: tensor %s is not part of architecture %s as it is known here; without it "
                "the result would be wrong",
                model->file->path, t.name, model->family->name);
    }
    return QKV_OK;
}

/* buffers[i] is the mapping of part i; buffers of copied tensors follow. */
static int map_parts(qkv_model *model, qkv_error *err) {
    for (size_t i = 0; i < model->file->n_parts; i++) {
        const qkv_mapping *map = &model->file->parts[i].map;
        int status =
            keep_buffer(model, ggml_backend_cpu_buffer_from_ptr((void *)map->data, map->size), err);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

int qkv_weights_bind(qkv_model *model, qkv_error *err) {
    /* Every layer has tensors; a number of layers that the file cannot have must not cost memory
     * before the first one is found missing. */
    if ((size_t)model->hp.n_layer > qkv_gguf_n_tensors(model->file))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %d layers, but only %zu tensors",
                        model->file->path, model->hp.n_layer, qkv_gguf_n_tensors(model->file));
    const size_t each = (size_t)QKV_LAYER_WEIGHT_COUNT + (size_t)QKV_MIXER_WEIGHT_COUNT;
    size_t slots = QKV_MODEL_WEIGHT_COUNT + (size_t)model->hp.n_layer * each;
    struct ggml_init_params params = {.mem_size = slots * ggml_tensor_overhead(), .no_alloc = true};
    if (qkv_memory_allows(params.mem_size)) model->tensors = ggml_init(params);
    model->layers = qkv_calloc((size_t)model->hp.n_layer, sizeof *model->layers);
    if (!model->tensors || !model->layers) return qkv_fail_memory(err);
    int status = map_parts(model, err);
    if (status == QKV_OK) status = bind_globals(model, err);
    for (int il = 0; status == QKV_OK && il < model->hp.n_layer; il++)
        status = bind_layer(model, il, err);
    return status == QKV_OK ? refuse_unused(model, err) : status;
}

int qkv_weights_prepare(const qkv_model *model, int32_t il, qkv_error *err) {
    return qkv_lazy_weights_make(model->lazy, il, err);
}

int qkv_model_sink(const qkv_model *model, int32_t layer, int32_t head, double *value,
                   qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, value);
    const qkv_hparams *hp = &model->hp;
    if (layer < 0 || layer >= hp->n_layer || head < 0 || head >= hp->layers[layer].n_head)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no layer %d with a head %d", (int)layer,
                        (int)head);
    const struct ggml_tensor *sinks = model->layers[layer].w[QKV_LAYER_SINKS];
    if (!sinks)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s has no learned sinks", model->file->path);
    const int status = qkv_weights_prepare(model, layer, err);
    if (status == QKV_OK) *value = (double)((const float *)sinks->data)[head];
    return status;
}

void qkv_weights_release(qkv_model *model) {
    qkv_lazy_weights_free(model->lazy);
    for (size_t i = 0; i < model->n_buffers; i++) ggml_backend_buffer_free(model->buffers[i]);
    free(model->buffers);
    free(model->layers);
    if (model->tensors) ggml_free(model->tensors);
}
