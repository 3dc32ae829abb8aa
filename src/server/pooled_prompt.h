/* From the prompt of a request to tokens. */
#ifndef QKV_SERVER_POOLED_PROMPT_H
#define QKV_SERVER_POOLED_PROMPT_H

#include "server/model_pool.h"

/* Fills an empty one. Release it also after a failure. */
int qkv_pooled_prompt_make(qkv_own_prompt *out, const qkv_model *model,
                           const qkv_request_prompt *wanted, qkv_error *err);

#endif
