/*
 * Tokens as --of and --diff name them: texts with something between them, blanks before a word kept.
 */
#include "base/escapes.h"
#include "base/memory.h"
#include "cli/next.h"

static int add_token(cli_token_list *list, const qkv_model *model, const char *option,
                     const qkv_text *text, qkv_error *err) {
    int32_t token;
    qkv_error why = {0};
    if (text->failed) return qkv_fail_memory(err);
    if (text->length == 0) return cli_usage(err, "%s: the text of a token is empty", option);
    const int status = qkv_find_token(model, &token, text->data, text->length, &why);
    if (status != QKV_OK) {
        qkv_fail_with(err, status, "%s: %s", option, why.message);
        return status;
    }
    return QKV_PUSH(list->ids, list->capacity, list->n, token) ? QKV_OK : qkv_fail_memory(err);
}

int cli_token_list_read(cli_token_list *list, const qkv_model *model, const char *option,
                        const char *given, char between, qkv_error *err) {
    qkv_text text = {0};
    int status = QKV_OK;
    for (const char *at = given; status == QKV_OK; at++) {
        at = qkv_read_escaped(&text, at, between);
        status = add_token(list, model, option, &text, err);
        if (!*at) break;
    }
    qkv_text_release(&text);
    return status;
}
