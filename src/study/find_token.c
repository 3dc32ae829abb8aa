/* The token that a text is: looked up by its bytes, so that a blank before a word counts. */
#include <string.h>

#include "base/text.h"
#include "qkv/next.h"

typedef struct token_search {
    const qkv_model *model;
    const char *text;
    size_t length;
} token_search;

static int is_text_of(const token_search *s, int32_t id) {
    char *bytes = NULL;
    size_t length = 0;
    const int same = qkv_token_text(s->model, &bytes, &length, id, NULL) == QKV_OK &&
                     length == s->length && memcmp(bytes, s->text, length) == 0;
    qkv_text_free(bytes);
    return same;
}

static void append_quoted(qkv_text *out, const char *bytes, size_t length) {
    qkv_text_puts(out, "\"");
    qkv_text_append_short(out, bytes, length, 60);
    qkv_text_puts(out, "\"");
}

static void append_token(qkv_text *out, const qkv_model *model, int32_t id) {
    char *bytes = NULL;
    size_t length = 0;
    if (qkv_token_text(model, &bytes, &length, id, NULL) == QKV_OK) {
        qkv_text_puts(out, " ");
        append_quoted(out, bytes, length);
    }
    qkv_text_free(bytes);
}

enum { MOST_NAMED = 12 };

static int fail_not_one(const token_search *s, const int32_t *ids, size_t n, qkv_error *err) {
    qkv_text words = {0};
    append_quoted(&words, s->text, s->length);
    if (n == 1)
        qkv_text_puts(&words, " is no token of the model, whose tokenizer reads it as");
    else
        qkv_text_printf(&words, " is not one token but %zu:", n);
    for (size_t i = 0; i < n && i < MOST_NAMED; i++) append_token(&words, s->model, ids[i]);
    if (n > MOST_NAMED) qkv_text_puts(&words, " " QKV_ELLIPSIS);
    const int status =
        words.failed ? qkv_fail_memory(err) : qkv_fail(err, QKV_ERR_ARGUMENT, "%s", words.data);
    qkv_text_release(&words);
    return status;
}

int qkv_find_token(const qkv_model *model, int32_t *token, const char *text, size_t length,
                   qkv_error *err) {
    QKV_NEED(err, token);
    *token = -1;
    QKV_NEED(err, model);
    QKV_NEED(err, text);
    if (length == 0) return qkv_fail(err, QKV_ERR_ARGUMENT, "the text of a token is empty");
    const token_search s = {model, text, length};
    const int32_t n_vocab = qkv_model_get_info(model)->n_vocab;
    int32_t *ids = NULL;
    size_t n = 0;
    int status = qkv_tokenize(model, &ids, &n, text, length, 0, err);
    if (status == QKV_OK && n == 1 && is_text_of(&s, ids[0])) *token = ids[0];
    for (int32_t id = 0; id < n_vocab && *token < 0 && status == QKV_OK; id++) {
        if (is_text_of(&s, id)) *token = id;
    }
    if (status == QKV_OK && *token < 0) status = fail_not_one(&s, ids, n, err);
    qkv_tokens_free(ids);
    return status;
}
