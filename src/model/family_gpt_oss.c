/*
 * gpt-oss: gpt-oss 20B and 120B.
 *
 * A learned sink per head takes part in the softmax and is dropped, so that rows of the pattern sum to
 * less than 1. Biases everywhere in attention, a window in every other layer, the first included.
 * Experts with biases in place of the feed-forward: the best k, a softmax over their scores, and a
 * clamped SwiGLU. The norm before them is called post_attention_norm. YaRN leaves its range
 * unrounded (rope.scaling.yarn_truncate).
 */
#include <stddef.h>

#include "model/family.h"

static const qkv_slot_override norm_name[] = {
    {QKV_LAYER_FFN_NORM, "post_attention_norm.weight", NULL}, {-1, NULL, NULL}};

const qkv_family qkv_family_gpt_oss = {
    .name = "gpt-oss",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SWIGLU_CLAMPED,
    .mlp = QKV_MLP_GATED,
    .window_period = 2,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES |
                      QKV_HAS(SINKS) | QKV_HAS(O) | QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) |
                      QKV_HAS_EXPERTS | QKV_HAS(ROUTER_BIAS) | QKV_HAS(GATE_EXPERTS_BIAS) |
                      QKV_HAS(UP_EXPERTS_BIAS) | QKV_HAS(DOWN_EXPERTS_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS),
    .overrides = norm_name,
};
