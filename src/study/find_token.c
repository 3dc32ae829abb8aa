/* The token that a text is, looked up by its bytes, so that a space before a word counts; and answers,
 * which may be several tokens, alone and in pairs. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "qkv/next.h"

typedef struct token_search {
    const qkv_model *model;
    const char *text;
    size_t length;
} token_search;

/* *token becomes the id if that is its text. */
static int try_token(const token_search *s, int32_t id, int32_t *token, qkv_error *err) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(s->model, &bytes, &length, id, NULL);
    if (status == QKV_ERR_MEMORY) return qkv_fail_memory(err);
    if (status == QKV_OK && length == s->length && memcmp(bytes, s->text, length) == 0) *token = id;
    qkv_text_free(bytes);
    return QKV_OK;
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
        qkv_text_puts(&words, " is not a token of the model, whose tokenizer reads it as");
    else
        qkv_text_printf(&words, " is not one token but %zu:", n);
    for (size_t i = 0; i < n && i < MOST_NAMED; i++) append_token(&words, s->model, ids[i]);
    if (n > MOST_NAMED) qkv_text_puts(&words, " " QKV_ELLIPSIS);
    const int status =
        words.failed ? qkv_fail_memory(err) : qkv_fail(err, QKV_ERR_ARGUMENT, "%s", words.data);
    qkv_text_release(&words);
    return status;
}

/* -1: the text is not one token. *ids are those that it is read as, after another text. */
static int search(const token_search *s, int32_t *token, int32_t **ids, size_t *n, qkv_error *err) {
    const int32_t n_vocab = qkv_model_get_info(s->model)->n_vocab;
    *token = -1;
    int status = qkv_tokenize(s->model, ids, n, s->text, s->length, QKV_TOKENIZE_CONTINUES, err);
    if (status == QKV_OK && *n == 1) status = try_token(s, (*ids)[0], token, err);
    for (int32_t id = 0; id < n_vocab && *token < 0 && status == QKV_OK; id++)
        status = try_token(s, id, token, err);
    return status;
}

static int check_given(const char *text, size_t length, qkv_error *err) {
    QKV_NEED(err, text);
    if (length) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "the text of a token is empty");
}

int qkv_find_token(const qkv_model *model, int32_t *token, const char *text, size_t length,
                   qkv_error *err) {
    QKV_NEED(err, token);
    *token = -1;
    QKV_NEED(err, model);
    int status = check_given(text, length, err);
    if (status != QKV_OK) return status;
    const token_search s = {model, text, length};
    int32_t *ids = NULL;
    size_t n = 0;
    status = search(&s, token, &ids, &n, err);
    if (status == QKV_OK && *token < 0) status = fail_not_one(&s, ids, n, err);
    qkv_tokens_free(ids);
    return status;
}

/* ---- answers ---- */

/* With a space before it; NULL when memory is short. */
static char *put_space(const char *text, size_t length) {
    char *spaced = qkv_calloc(length + 2, 1);
    if (!spaced) return NULL;
    spaced[0] = ' ';
    memcpy(spaced + 1, text, length);
    return spaced;
}

/* The same text with a space before it, where that is one token; -1: it is not. */
static int search_spaced(const token_search *s, int32_t *token, qkv_error *err) {
    int32_t *ids = NULL;
    size_t n = 0;
    *token = -1;
    if (s->text[0] == ' ') return QKV_OK;
    char *spaced = put_space(s->text, s->length);
    if (!spaced) return qkv_fail_memory(err);
    const token_search with = {s->model, spaced, s->length + 1};
    const int status = search(&with, token, &ids, &n, err);
    qkv_tokens_free(ids);
    free(spaced);
    return status;
}

static int32_t *one_token(int32_t token) {
    int32_t *ids = malloc(sizeof *ids);
    if (ids) *ids = token;
    return ids;
}

int qkv_find_answer(const qkv_model *model, int32_t **tokens, size_t *n_tokens, int *spaced,
                    const char *text, size_t length, qkv_error *err) {
    QKV_NEED(err, tokens);
    *tokens = NULL;
    QKV_NEED(err, n_tokens);
    *n_tokens = 0;
    if (spaced) *spaced = 0;
    QKV_NEED(err, model);
    int status = check_given(text, length, err);
    if (status != QKV_OK) return status;
    const token_search s = {model, text, length};
    int32_t token = -1, *ids = NULL;
    size_t n = 0;
    status = search(&s, &token, &ids, &n, err);
    if (status == QKV_OK && token < 0) {
        status = search_spaced(&s, &token, err);
        if (spaced) *spaced = token >= 0;
    }
    if (status == QKV_OK && token >= 0) {
        qkv_tokens_free(ids);
        ids = one_token(token);
        n = 1;
        if (!ids) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK && n == 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "the tokenizer leaves nothing of the text");
    if (status != QKV_OK) {
        qkv_tokens_free(ids);
        return status;
    }
    *tokens = ids;
    *n_tokens = n;
    return QKV_OK;
}

/* ---- pairs ---- */

/* `needs`: the one that is a token only with a space. Several tokens most likely want it too. */
static int fail_mixed(const char *const texts[2], const size_t lengths[2], const size_t n[2],
                      int needs, qkv_error *err) {
    qkv_text words[2] = {0};
    for (int i = 0; i < 2; i++) qkv_text_append_short(&words[i], texts[i], lengths[i], 60);
    const int failed = words[0].failed || words[1].failed;
    const int status =
        failed ? qkv_fail_memory(err)
               : qkv_fail(err, QKV_ERR_ARGUMENT,
                          "\"%s\" is a token only with a space before it, and \"%s\" is not one "
                          "with it: write both as they follow the prompt, as in \"%s%s/%s%s\"",
                          words[needs].data, words[!needs].data, needs == 0 || n[0] > 1 ? " " : "",
                          words[0].data, needs == 1 || n[1] > 1 ? " " : "", words[1].data);
    for (int i = 0; i < 2; i++) qkv_text_release(&words[i]);
    return status;
}

/* The other answer of the pair has got a space: so does this one, where that is a token. */
static int follow_other(const token_search *s, int32_t **tokens, size_t *n, int *spaced,
                        qkv_error *err) {
    int32_t token = -1;
    const int status = search_spaced(s, &token, err);
    if (status != QKV_OK || token < 0) return status;
    qkv_tokens_free(*tokens);
    *tokens = one_token(token);
    *n = 1;
    *spaced = 1;
    return *tokens ? QKV_OK : qkv_fail_memory(err);
}

int qkv_find_answer_pair(const qkv_model *model, int32_t *tokens[2], size_t n_tokens[2],
                         int spaced[2], const char *const texts[2], const size_t lengths[2],
                         qkv_error *err) {
    int status = QKV_OK;
    QKV_NEED(err, tokens);
    tokens[0] = tokens[1] = NULL;
    QKV_NEED(err, n_tokens);
    n_tokens[0] = n_tokens[1] = 0;
    QKV_NEED(err, spaced);
    QKV_NEED(err, model);
    QKV_NEED(err, texts);
    QKV_NEED(err, texts[0]);
    QKV_NEED(err, texts[1]);
    QKV_NEED(err, lengths);
    for (int i = 0; i < 2 && status == QKV_OK; i++)
        status =
            qkv_find_answer(model, &tokens[i], &n_tokens[i], &spaced[i], texts[i], lengths[i], err);
    for (int i = 0; i < 2 && status == QKV_OK; i++) {
        if (spaced[i] || !spaced[!i] || qkv_is_space(texts[i][0])) continue;
        const token_search s = {model, texts[i], lengths[i]};
        status = follow_other(&s, &tokens[i], &n_tokens[i], &spaced[i], err);
        if (status == QKV_OK && !spaced[i]) status = fail_mixed(texts, lengths, n_tokens, !i, err);
    }
    for (int i = 0; i < 2 && status != QKV_OK; i++) {
        qkv_tokens_free(tokens[i]);
        tokens[i] = NULL;
        n_tokens[i] = 0;
    }
    return status;
}

/* ---- spaces that were left out ---- */

/* The text of tokens. */
static int join(const qkv_model *model, const int32_t *tokens, size_t n, qkv_text *out,
                qkv_error *err) {
    for (size_t i = 0; i < n; i++) {
        char *bytes = NULL;
        size_t length = 0;
        const int status = qkv_token_text(model, &bytes, &length, tokens[i], err);
        if (status != QKV_OK) return status;
        qkv_text_append(out, bytes, length);
        qkv_text_free(bytes);
    }
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

/* Marks such as a full stop stand right after a word. */
static int begins_word(const qkv_text *text) {
    const unsigned char c = text->length ? (unsigned char)text->data[0] : 0;
    return c >= 128 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Is it as many tokens with a space before it, or fewer? */
static int is_shorter(const qkv_model *model, const qkv_text *text, size_t n, int *shorter,
                      qkv_error *err) {
    int32_t *ids = NULL;
    size_t with = 0;
    char *spaced = put_space(text->data, text->length);
    if (!spaced) return qkv_fail_memory(err);
    const int status =
        qkv_tokenize(model, &ids, &with, spaced, text->length + 1, QKV_TOKENIZE_CONTINUES, err);
    *shorter = status == QKV_OK && with <= n;
    qkv_tokens_free(ids);
    free(spaced);
    return status;
}

int qkv_answer_lacks_space(const qkv_model *model, int *lacks, const int32_t *prompt,
                           size_t n_prompt, const int32_t *answer, size_t n_answer,
                           qkv_error *err) {
    QKV_NEED(err, lacks);
    *lacks = 0;
    QKV_NEED(err, model);
    QKV_NEED(err, prompt);
    QKV_NEED(err, answer);
    if (n_answer < 2 || n_prompt == 0) return QKV_OK;
    qkv_text before = {0}, text = {0};
    int status = join(model, prompt + n_prompt - 1, 1, &before, err);
    if (status == QKV_OK) status = join(model, answer, n_answer, &text, err);
    if (status == QKV_OK && begins_word(&text) && before.length &&
        !qkv_is_space(before.data[before.length - 1]))
        status = is_shorter(model, &text, n_answer, lacks, err);
    qkv_text_release(&before);
    qkv_text_release(&text);
    return status;
}
