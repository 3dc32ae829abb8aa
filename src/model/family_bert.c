/*
 * bert: BERT, bidirectional.
 *
 * Every token sees every other one. LayerNorm behind each residual addition and on the embeddings, to
 * which learned positions and token type 0 are added; biases everywhere; GELU in its exact form. There
 * are no logits: the output is the last layer's resid_post.
 */
#include "model/family.h"

const qkv_family qkv_family_bert = {
    .name = "bert",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_LEARNED,
    .activation = QKV_ACT_GELU_ERF,
    .bidirectional = 1,
    .has_no_logits = 1,
    .layer_required = QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES | QKV_HAS(O) | QKV_HAS(O_BIAS) |
                      QKV_HAS(ATTN_OUT_NORM) | QKV_HAS(ATTN_OUT_NORM_BIAS) | QKV_HAS_PLAIN_MLP |
                      QKV_HAS(LAYER_OUT_NORM) | QKV_HAS(LAYER_OUT_NORM_BIAS),
    .layer_optional = QKV_HAS(QKV) | QKV_HAS(QKV_BIAS),
    .model_required = QKV_HAS_MODEL(TOKEN_EMBD) | QKV_HAS_MODEL(POSITION_EMBD) |
                      QKV_HAS_MODEL(TOKEN_TYPES) | QKV_HAS_MODEL(EMBD_NORM) |
                      QKV_HAS_MODEL(EMBD_NORM_BIAS),
};
