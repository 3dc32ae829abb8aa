#include "model/family/family.h"

#include <stddef.h>
#include <string.h>

#define FAMILY_ADDRESS(id) &qkv_family_##id,
static const qkv_family *const families[] = {QKV_FAMILY_LIST(FAMILY_ADDRESS)};
#undef FAMILY_ADDRESS

#define SLOT_ENTRY(id, name, shape) {name, shape},
static const qkv_weight_slot layer_slots[] = {QKV_LAYER_WEIGHT_LIST(SLOT_ENTRY)};
static const qkv_weight_slot mixer_slots[] = {QKV_MIXER_WEIGHT_LIST(SLOT_ENTRY)};
static const qkv_weight_slot model_slots[] = {QKV_MODEL_WEIGHT_LIST(SLOT_ENTRY)};
#undef SLOT_ENTRY

#define KEY_NAME(id, key) key,
static const char *const key_names[] = {QKV_FAMILY_KEY_LIST(KEY_NAME)};
#undef KEY_NAME

_Static_assert(QKV_LAYER_WEIGHT_COUNT <= 64 && QKV_MODEL_WEIGHT_COUNT <= 64 &&
                   QKV_KEY_COUNT <= 32 && QKV_MIXER_WEIGHT_COUNT <= 32,
               "sets of weights are 64-bit masks, those of keys and of mixers 32-bit ones");

const qkv_family *qkv_family_get(int index) {
    int count = (int)(sizeof families / sizeof families[0]);
    return index >= 0 && index < count ? families[index] : NULL;
}

const qkv_family *qkv_family_find(const char *name) {
    const qkv_family *family;
    for (int i = 0; (family = qkv_family_get(i)) != NULL; i++) {
        if (strcmp(family->name, name) == 0) return family;
    }
    return NULL;
}

qkv_weight_slot qkv_family_layer_slot(const qkv_family *family, int slot) {
    qkv_weight_slot found = layer_slots[slot];
    for (const qkv_slot_override *o = family->overrides; o && o->slot >= 0; o++) {
        if (o->slot != slot) continue;
        if (o->name) found.name = o->name;
        if (o->shape) found.shape = o->shape;
    }
    return found;
}

qkv_weight_slot qkv_family_mixer_slot(int slot) {
    return mixer_slots[slot];
}

const char *qkv_mixer_name(qkv_mixer_kind kind) {
    static const char *const names[] = {[QKV_MIXER_NONE] = "no mixer",
                                        [QKV_MIXER_DELTA] = "a gated delta-net layer",
                                        [QKV_MIXER_DELTA_RUNS] = "a gated delta-net layer",
                                        [QKV_MIXER_SHORT_CONV] = "a short convolution layer"};
    return names[kind];
}

qkv_weight_slot qkv_family_model_slot(int slot) {
    return model_slots[slot];
}

/* Names of transformers; the first of each function is the one that is written. */
static const struct activation_name {
    const char *name;
    qkv_activation activation;
} activation_names[] = {
    {"silu", QKV_ACT_SILU},
    {"swish", QKV_ACT_SILU},
    {"gelu", QKV_ACT_GELU_ERF},
    {"gelu_python", QKV_ACT_GELU_ERF},
    {"gelu_pytorch_tanh", QKV_ACT_GELU_TANH},
    {"gelu_new", QKV_ACT_GELU_TANH},
    {"gelu_fast", QKV_ACT_GELU_TANH},
    {"gelu_accurate", QKV_ACT_GELU_TANH},
    {"gelu_python_tanh", QKV_ACT_GELU_TANH},
    {"relu", QKV_ACT_RELU},
    {"relu2", QKV_ACT_RELU_SQUARED},
};

int qkv_activation_find(const char *name) {
    for (size_t i = 0; i < sizeof activation_names / sizeof *activation_names; i++) {
        if (strcmp(activation_names[i].name, name) == 0) return (int)activation_names[i].activation;
    }
    return -1;
}

const char *qkv_activation_name(int activation) {
    for (size_t i = 0; i < sizeof activation_names / sizeof *activation_names; i++) {
        if ((int)activation_names[i].activation == activation) return activation_names[i].name;
    }
    return NULL;
}

const char *qkv_family_key_name(int key) {
    return key_names[key];
}
