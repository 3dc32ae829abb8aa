#include "model/family/family.h"

#include <stddef.h>
#include <string.h>

#define FAMILY_ADDRESS(id) &qkv_family_##id,
static const qkv_family *const families[] = {QKV_FAMILY_LIST(FAMILY_ADDRESS)};
#undef FAMILY_ADDRESS

#define SLOT_ENTRY(id, name, shape) {name, shape},
static const qkv_weight_slot layer_slots[] = {QKV_LAYER_WEIGHT_LIST(SLOT_ENTRY)};
static const qkv_weight_slot model_slots[] = {QKV_MODEL_WEIGHT_LIST(SLOT_ENTRY)};
#undef SLOT_ENTRY

#define KEY_NAME(id, key) key,
static const char *const key_names[] = {QKV_FAMILY_KEY_LIST(KEY_NAME)};
#undef KEY_NAME

_Static_assert(QKV_LAYER_WEIGHT_COUNT <= 64 && QKV_MODEL_WEIGHT_COUNT <= 64 && QKV_KEY_COUNT <= 32,
               "sets of weights are 64-bit masks, those of keys 32-bit ones");

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

qkv_weight_slot qkv_family_model_slot(int slot) {
    return model_slots[slot];
}

const char *qkv_family_key_name(int key) {
    return key_names[key];
}
