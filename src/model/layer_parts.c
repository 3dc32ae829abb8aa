/*
 * Which blocks a layer consists of: attention, a linear mixer, a feed-forward.
 *
 * The tensors of a layer say it: a block is there when its output matrix is. Where the file has a list of
 * recurrent layers, the two must agree.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/model.h"

#define MAX_NUMBER (1 << 20)

int qkv_layer_has(const qkv_hparams *hp, int32_t il, int part) {
    const int usual = QKV_PART_ATTENTION | QKV_PART_FEED_FORWARD;
    return ((hp->parts ? hp->parts[il] : usual) & part) != 0;
}

const char *qkv_layer_name(const qkv_hparams *hp, int32_t il) {
    if (qkv_layer_has(hp, il, QKV_PART_MIXER)) return qkv_mixer_name(hp->mixer_kind);
    return qkv_layer_has(hp, il, QKV_PART_ATTENTION) ? "an attention layer"
                                                     : "a feed-forward layer";
}

int64_t qkv_mixer_channels(const qkv_hparams *hp) {
    const qkv_mixer_shape *m = &hp->mixer;
    return m->inner + 2 * (int64_t)m->n_groups * m->state;
}

/* ---- numbers ---- */

static int read_number(const qkv_model *model, const char *suffix, int32_t *out, qkv_error *err) {
    char key[128];
    int64_t value = 0;
    snprintf(key, sizeof key, "%s.%s", model->family->name, suffix);
    const int found = qkv_gguf_int(model->file, key, 1, MAX_NUMBER, &value, err);
    if (found < 0) return found;
    if (!found) return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is missing", model->file->path, key);
    *out = (int32_t)value;
    return QKV_OK;
}

/* One group of one head without a state. */
static int read_short_conv(qkv_model *model, qkv_error *err) {
    qkv_mixer_shape *m = &model->hp.mixer;
    *m = (qkv_mixer_shape){.n_groups = 1, .n_heads = 1, .inner = model->hp.n_embd};
    return read_number(model, "shortconv.l_cache", &m->n_taps, err);
}

static int read_shape(qkv_model *model, qkv_error *err) {
    qkv_mixer_shape *m = &model->hp.mixer;
    if (model->hp.mixer_kind == QKV_MIXER_SHORT_CONV) return read_short_conv(model, err);
    int status = read_number(model, "ssm.conv_kernel", &m->n_taps, err);
    if (status == QKV_OK) status = read_number(model, "ssm.state_size", &m->state, err);
    if (status == QKV_OK) status = read_number(model, "ssm.group_count", &m->n_groups, err);
    if (status == QKV_OK) status = read_number(model, "ssm.time_step_rank", &m->n_heads, err);
    if (status == QKV_OK) status = read_number(model, "ssm.inner_size", &m->inner, err);
    if (status != QKV_OK) return status;
    if (m->inner % m->n_heads != 0 || m->n_heads % m->n_groups != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: a mixer of %d channels cannot have %d heads in %d groups",
                        model->file->path, m->inner, m->n_heads, m->n_groups);
    return QKV_OK;
}

/* ---- layers ---- */

static int has_tensor(const qkv_model *model, int32_t il, const char *name) {
    char full[GGML_MAX_NAME];
    qkv_gguf_tensor t;
    snprintf(full, sizeof full, "blk.%d.%s", (int)il, name);
    return qkv_gguf_find_tensor(model->file, full, &t);
}

static int has_slot(const qkv_model *model, int32_t il, int slot) {
    return has_tensor(model, il, qkv_family_layer_slot(model->family, slot).name);
}

static uint8_t parts_of(const qkv_model *model, int32_t il) {
    const int is_short = model->hp.mixer_kind == QKV_MIXER_SHORT_CONV;
    const char *mixer = qkv_family_mixer_slot(is_short ? QKV_MIXER_SHORT_OUT : QKV_MIXER_OUT).name;
    int parts = 0;
    if (has_slot(model, il, QKV_LAYER_O)) parts |= QKV_PART_ATTENTION;
    if (has_tensor(model, il, mixer)) parts |= QKV_PART_MIXER;
    if (has_slot(model, il, QKV_LAYER_DOWN) || has_slot(model, il, QKV_LAYER_DOWN_EXPERTS))
        parts |= QKV_PART_FEED_FORWARD;
    return (uint8_t)parts;
}

/* The list of recurrent layers, which newer files have. */
static int check_list(const qkv_model *model, qkv_error *err) {
    const qkv_hparams *hp = &model->hp;
    char key[128];
    snprintf(key, sizeof key, "%s.attention.recurrent_layers", model->family->name);
    if (!qkv_gguf_is_array(model->file, key)) return QKV_OK;
    uint8_t *listed = qkv_calloc((size_t)hp->n_layer, 1);
    if (!listed) return qkv_fail_memory(err);
    int status = qkv_gguf_flags(model->file, key, listed, (size_t)hp->n_layer, err);
    for (int32_t il = 0; status == QKV_OK && il < hp->n_layer; il++) {
        if (listed[il] == qkv_layer_has(hp, il, QKV_PART_MIXER)) continue;
        status =
            qkv_fail(err, QKV_ERR_FORMAT, "%s: by %s layer %d is %s, and by its tensors it is not",
                     model->file->path, key, (int)il, listed[il] ? "recurrent" : "not recurrent");
    }
    free(listed);
    return status;
}

int qkv_layer_parts_read(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    hp->has_gate = model->family->attention_gate;
    hp->mixer_kind = model->family->mixer;
    if (hp->mixer_kind == QKV_MIXER_NONE) return QKV_OK;
    /* Every layer has tensors: a number that the file cannot hold must not cost memory. */
    if ((size_t)hp->n_layer > qkv_gguf_n_tensors(model->file))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %d layers, but only %zu tensors",
                        model->file->path, hp->n_layer, qkv_gguf_n_tensors(model->file));
    int status = read_shape(model, err);
    if (status != QKV_OK) return status;
    hp->parts = qkv_calloc((size_t)hp->n_layer, 1);
    if (!hp->parts) return qkv_fail_memory(err);
    int all = 0;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        hp->parts[il] = parts_of(model, il);
        all |= hp->parts[il];
        if (hp->parts[il]) continue;
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: layer %d has neither attention nor a mixer nor a feed-forward",
                        model->file->path, (int)il);
    }
    if (!(all & QKV_PART_ATTENTION))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: no layer has attention", model->file->path);
    return check_list(model, err);
}
