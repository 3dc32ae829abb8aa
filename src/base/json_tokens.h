/* Tokens as JSON, for files that describe themselves: ids, and what each of them stands for. */
#ifndef QKV_BASE_JSON_TOKENS_H
#define QKV_BASE_JSON_TOKENS_H

#include "base/json.h"
#include "qkv/model.h"

/* NULL when memory is short. */
json_t *qkv_json_token_ids(const int32_t *tokens, size_t n);
/* Bytes that are not UTF-8 are escapes; null for an id that has no text. NULL when memory is short. */
json_t *qkv_json_token_string(const qkv_model *model, int32_t token);
json_t *qkv_json_token_strings(const qkv_model *model, const int32_t *tokens, size_t n);

#endif
