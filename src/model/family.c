#include "model/family.h"

#include <stddef.h>
#include <string.h>

#define FAMILY_ADDRESS(id) &qkv_family_##id,
static const qkv_family *const families[] = {QKV_FAMILY_LIST(FAMILY_ADDRESS)};
#undef FAMILY_ADDRESS

_Static_assert(QKV_LAYER_WEIGHT_COUNT <= 64 && QKV_MODEL_WEIGHT_COUNT <= 64,
               "sets of weights are 64-bit masks");

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
