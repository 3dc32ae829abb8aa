#include "base/json_tokens.h"

#include "base/json.h"

#include <jansson.h>

json_t *qkv_json_token_ids(const int32_t *tokens, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, json_integer(tokens[i]));
    return list;
}

json_t *qkv_json_token_string(const qkv_model *model, int32_t token) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(model, &bytes, &length, token, NULL);
    json_t *string = NULL;
    if (status != QKV_ERR_MEMORY)
        string = status == QKV_OK ? qkv_json_string(bytes, length) : json_null();
    qkv_text_free(bytes);
    return string;
}

json_t *qkv_json_token_strings(const qkv_model *model, const int32_t *tokens, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, qkv_json_token_string(model, tokens[i]));
    return list;
}
