/* From the prompt of a request to tokens. */
#ifndef QKV_SERVER_SHOP_PROMPT_H
#define QKV_SERVER_SHOP_PROMPT_H

#include "server/workshop.h"

/* Fills an empty one. Release it also after a failure. */
int qkv_shop_prompt_make(qkv_shop_prompt *out, const qkv_model *model,
                         const qkv_request_prompt *wanted, qkv_error *err);
void qkv_shop_prompt_release(qkv_shop_prompt *prompt);

#endif
