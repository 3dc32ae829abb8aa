/* Prompts of callers: checked, and turned into tokens. */
#include "study/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "model/model.h"

static const char *const default_prompts[] = {
    "The river runs past the old mill and down to the sea.",
    "A good teacher explains the same idea in many ways.",
    "In the morning the children walk to the village school.",
};

const char *qkv_default_prompt(size_t index) {
    return index < sizeof default_prompts / sizeof *default_prompts ? default_prompts[index] : NULL;
}

/* ---- one ---- */

static size_t text_length(const qkv_prompt *prompt) {
    return prompt->length ? prompt->length : strlen(prompt->text);
}

static int check(const qkv_prompt *prompt, qkv_error *err) {
    if (prompt->text && prompt->tokens) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a prompt is a text or token ids, not both");
    }
    if (!prompt->text && !prompt->tokens) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a prompt has neither text nor token ids");
    }
    if (prompt->flags & ~(uint32_t)(QKV_TOKENIZE_ADD_SPECIAL | QKV_TOKENIZE_PARSE_SPECIAL)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a prompt has unknown flags");
    }
    if (prompt->pair &&
        (!prompt->text || !prompt->pair[0] || !(prompt->flags & QKV_TOKENIZE_ADD_SPECIAL))) {
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "`pair` is the second of two texts, with the tokens that stand around them");
    }
    if (prompt->text ? text_length(prompt) == 0 : prompt->n_tokens == 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt is empty");
    }
    return QKV_OK;
}

static int copy_tokens(const qkv_prompt *prompt, int32_t **tokens, size_t *n_tokens,
                       qkv_error *err) {
    *tokens = qkv_calloc(prompt->n_tokens, sizeof **tokens);
    if (!*tokens) return qkv_fail_memory(err);
    memcpy(*tokens, prompt->tokens, prompt->n_tokens * sizeof **tokens);
    *n_tokens = prompt->n_tokens;
    return QKV_OK;
}

/* Separators between two texts; 0 where there are no pairs. */
static int32_t n_separators(const qkv_model *model) {
    return model->vocab && !model->hp.causal ? qkv_vocab_pair_separators(model->vocab) : 0;
}

/* Two texts that were tokenized as if each stood alone: the second without its first token, [CLS] TEXT [SEP] PAIR
 * [SEP]. RoBERTa repeats the separator between them. */
static int join(const qkv_model *model, const int32_t *first, size_t n_first, const int32_t *second,
                size_t n_second, int32_t **tokens, size_t *n_tokens, qkv_error *err) {
    const int32_t separator = qkv_vocab_separator(model->vocab);
    const size_t n_more = (size_t)n_separators(model) - 1;
    if (n_first < 2 || n_second < 2 || first[n_first - 1] != separator || first[0] != second[0])
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: the tokenizer puts no tokens around a text, so two cannot be joined",
                        model->file->path);
    int32_t *both = qkv_calloc(n_first + n_more + n_second, sizeof *both);
    if (!both) return qkv_fail_memory(err);
    memcpy(both, first, n_first * sizeof *both);
    for (size_t i = 0; i < n_more; i++) both[n_first + i] = separator;
    memcpy(both + n_first + n_more, second + 1, (n_second - 1) * sizeof *both);
    *tokens = both;
    *n_tokens = n_first + n_more + n_second - 1;
    return QKV_OK;
}

static int tokenize_pair(const qkv_prompt *prompt, const qkv_model *model, int32_t **tokens,
                         size_t *n_tokens, qkv_error *err) {
    int32_t *first = NULL, *second = NULL;
    size_t n_first = 0, n_second = 0;
    if (!n_separators(model)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`pair` is for encoders that take two texts, such as BERT; the file of %s "
                        "does not say how",
                        qkv_model_get_info(model)->path);
    }
    int status = qkv_tokenize(model, &first, &n_first, prompt->text, text_length(prompt),
                              prompt->flags, err);
    if (status == QKV_OK)
        status = qkv_tokenize(model, &second, &n_second, prompt->pair, strlen(prompt->pair),
                              prompt->flags, err);
    if (status == QKV_OK)
        status = join(model, first, n_first, second, n_second, tokens, n_tokens, err);
    qkv_tokens_free(first);
    qkv_tokens_free(second);
    return status;
}

int qkv_prompt_tokenize(const qkv_prompt *prompt, const qkv_model *model, int32_t **tokens,
                        size_t *n_tokens, qkv_error *err) {
    qkv_prompt own = QKV_PROMPT_INIT;
    if (!tokens || !n_tokens) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no place for the tokens");
    }
    *tokens = NULL;
    *n_tokens = 0;
    if (!prompt || !model) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "tokenizing needs a prompt and a model");
    }
    int status = qkv_sized_read(&own, sizeof own, prompt, "qkv_prompt", err);
    if (status == QKV_OK) status = check(&own, err);
    if (status != QKV_OK) return status;
    if (own.tokens) return copy_tokens(&own, tokens, n_tokens, err);
    if (own.pair) return tokenize_pair(&own, model, tokens, n_tokens, err);
    return qkv_tokenize(model, tokens, n_tokens, own.text, text_length(&own), own.flags, err);
}

/* ---- lists ---- */

int qkv_prompts_check(const qkv_prompt *given, size_t n, const char *name, qkv_error *err) {
    int status = QKV_OK;
    if (n && !given) return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is NULL", name);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_prompt prompt = QKV_PROMPT_INIT;
        status = qkv_sized_read_item(&prompt, sizeof prompt, given, i, "qkv_prompt", err);
        if (status == QKV_OK) status = check(&prompt, err);
    }
    return status;
}

/* As one text that would give the same tokens: TEXT</s></s>PAIR. WordPiece sees no spaces: TEXT [SEP] PAIR. */
static int write_pair(qkv_own_prompt *to, const qkv_prompt *from, const qkv_model *model,
                      qkv_error *err) {
    const int32_t n = n_separators(model);
    const int spaced = n && strcmp(qkv_vocab_kind(model->vocab), "wordpiece") == 0;
    char *separator = NULL;
    size_t length = 0;
    qkv_text both = {0};
    int status = n ? qkv_vocab_token_text(model->vocab, &separator, &length,
                                          qkv_vocab_separator(model->vocab), err)
                   : QKV_OK; /* to be refused */
    qkv_text_append(&both, from->text, text_length(from));
    if (spaced) qkv_text_puts(&both, " ");
    for (int32_t i = 0; i < n; i++) qkv_text_append(&both, separator, length);
    if (spaced) qkv_text_puts(&both, " ");
    qkv_text_puts(&both, from->pair);
    to->text = both.data;
    to->length = both.length;
    free(separator);
    return status == QKV_OK && both.failed ? qkv_fail_memory(err) : status;
}

static int take(qkv_own_prompt *to, const qkv_prompt *from, const qkv_model *model,
                qkv_error *err) {
    to->flags = from->flags;
    if (from->text && from->pair) {
        const int status = write_pair(to, from, model, err);
        if (status != QKV_OK) return status;
    } else if (from->text) {
        to->length = text_length(from);
        to->text = qkv_strndup(from->text, to->length);
        if (!to->text) return qkv_fail_memory(err);
    }
    if (from->tokens && from->written) {
        to->is_written = 1;
        to->length = strlen(from->written);
        to->text = qkv_strdup(from->written);
        if (!to->text) return qkv_fail_memory(err);
    }
    to->name = qkv_strdup(from->name);
    if (from->name && !to->name) return qkv_fail_memory(err);
    return qkv_prompt_tokenize(from, model, &to->tokens, &to->n_tokens, err);
}

int qkv_prompts_take(qkv_own_prompts *list, const qkv_prompt *given, size_t n,
                     const qkv_model *model, qkv_error *err) {
    list->items = qkv_calloc(n, sizeof *list->items);
    if (!list->items) return qkv_fail_memory(err);
    list->n = n;
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_prompt prompt = QKV_PROMPT_INIT;
        if (given) {
            status = qkv_sized_read_item(&prompt, sizeof prompt, given, i, "qkv_prompt", err);
        } else {
            prompt.text = qkv_default_prompt(i);
        }
        if (status == QKV_OK) status = take(&list->items[i], &prompt, model, err);
    }
    return status;
}

/* ---- labels ---- */

enum { MOST_OF_A_LABEL = 200 }; /* characters */

/* The text of a token as a label: the space that begins most words would only shift it. */
static char *visible_label(const char *bytes, size_t length) {
    const size_t blank = length > 1 && bytes[0] == ' ';
    const int only_blanks = length > 0 && strspn(bytes, " ") == length;
    qkv_text label = {0};
    qkv_text_puts(&label, "");
    for (size_t i = 0; only_blanks && i < length && i < MOST_OF_A_LABEL; i++) {
        qkv_text_puts(&label, "\xe2\x90\xa3"); /* U+2423 */
    }
    if (!only_blanks) qkv_text_append_short(&label, bytes + blank, length - blank, MOST_OF_A_LABEL);
    if (!label.failed) return label.data;
    qkv_text_release(&label);
    return NULL;
}

int qkv_token_label(const qkv_model *model, int32_t token, char **out, qkv_error *err) {
    char *bytes = NULL;
    size_t length = 0;
    if (strcmp(qkv_model_get_info(model)->tokenizer, "none") == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)token);
        *out = qkv_strdup(number);
    } else {
        const int status = qkv_token_text(model, &bytes, &length, token, err);
        if (status != QKV_OK) return status;
        *out = visible_label(bytes, length);
        qkv_text_free(bytes);
    }
    return *out ? QKV_OK : qkv_fail_memory(err);
}

int qkv_prompt_make_labels(qkv_own_prompt *prompt, const qkv_model *model, qkv_error *err) {
    int status = QKV_OK;
    prompt->labels = qkv_calloc(prompt->n_tokens, sizeof *prompt->labels);
    if (!prompt->labels) return qkv_fail_memory(err);
    for (size_t i = 0; i < prompt->n_tokens && status == QKV_OK; i++) {
        status = qkv_token_label(model, prompt->tokens[i], &prompt->labels[i], err);
    }
    return status;
}

/* ---- new text ---- */

/* After `skip` bytes. */
static int take_rest(const char *text, size_t length, size_t skip, char **out, qkv_error *err) {
    qkv_text rest = {0};
    qkv_text_puts(&rest, "");
    if (length > skip) qkv_text_append_utf8(&rest, text + skip, length - skip);
    *out = rest.failed ? NULL : rest.data;
    if (!rest.failed) return QKV_OK;
    qkv_text_release(&rest);
    return qkv_fail_memory(err);
}

int qkv_prompt_new_text(const qkv_model *model, const int32_t *prompt, size_t n_prompt,
                        const int32_t *tokens, size_t n_tokens, char **out, qkv_error *err) {
    char *before = NULL, *whole = NULL;
    size_t skip = 0, length = 0;
    int32_t *all = qkv_calloc(n_prompt + n_tokens, sizeof *all);
    *out = NULL;
    if (!all) return qkv_fail_memory(err);
    memcpy(all, prompt, n_prompt * sizeof *all);
    memcpy(all + n_prompt, tokens, n_tokens * sizeof *all);
    int status = qkv_detokenize(model, &before, &skip, all, n_prompt, 0, err);
    if (status == QKV_OK)
        status = qkv_detokenize(model, &whole, &length, all, n_prompt + n_tokens, 0, err);
    if (status == QKV_OK) status = take_rest(whole, length, skip, out, err);
    qkv_text_free(before);
    qkv_text_free(whole);
    free(all);
    return status;
}
