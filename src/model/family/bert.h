/*
 * What the directories of BERT's relatives share.
 */
#ifndef QKV_MODEL_FAMILY_BERT_H
#define QKV_MODEL_FAMILY_BERT_H

#include "model/hf/hf.h"

extern const qkv_hf_name qkv_bert_layer_names[], qkv_bert_model_names[];
/* Says how many segments the model knows, and that its mask is not causal. */
int qkv_bert_configure(qkv_hf_config *config, qkv_error *err);

/* Other kinds of directories of the family bert. */
extern const qkv_hf qkv_hf_roberta, qkv_hf_distilbert;

#endif
