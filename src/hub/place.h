/* Where a model is, as an object and as one of a list: a qkv_model_place_info and its strings. */
#ifndef QKV_HUB_PLACE_H
#define QKV_HUB_PLACE_H

#include "base/fail.h"
#include "qkv/hub.h"

struct qkv_model_place {
    qkv_model_place_info info;
};

/* Copies the strings; NULL becomes "". Release it also after a failure. */
int qkv_place_fill(qkv_model_place *place, const qkv_model_place_info *from, qkv_error *err);
void qkv_place_release(qkv_model_place *place);

#endif
