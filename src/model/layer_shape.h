/* Reads the shapes of layers (model/model.h says what a shape is) into model->hp. */
#ifndef QKV_MODEL_LAYER_SHAPE_H
#define QKV_MODEL_LAYER_SHAPE_H

#include "base/fail.h"
#include "qkv/model.h"

/* Once the number of layers, the width and the windows are known. */
int qkv_layer_shapes_read(qkv_model *model, qkv_error *err);

#endif
