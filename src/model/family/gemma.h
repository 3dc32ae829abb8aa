/*
 * What the directories of the Gemma families have in common: their norms multiply by 1 + w.
 */
#ifndef QKV_MODEL_FAMILY_GEMMA_H
#define QKV_MODEL_FAMILY_GEMMA_H

#include "model/hf/hf.h"

/* gemma.c */
extern const qkv_hf_name qkv_gemma_model_names[];

/* Entries for layers with a norm before and after each block: Gemma 2 and later. */
#define QKV_GEMMA_SANDWICH_NORMS                                                                   \
    {"input_layernorm", "attn_norm", &qkv_maker_plus_one},                                         \
        {"post_attention_layernorm", "post_attention_norm", &qkv_maker_plus_one},                  \
        {"pre_feedforward_layernorm", "ffn_norm", &qkv_maker_plus_one}, {                          \
        "post_feedforward_layernorm", "post_ffw_norm", &qkv_maker_plus_one                         \
    }

#endif
