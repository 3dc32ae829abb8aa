/* Answers and single tokens: fields of studies to token ids. See answers.h. */
#include "study/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/escapes.h"
#include "base/memory.h"
#include "qkv/next.h"

/* ---- without a model ---- */

static int check_line(const char *option, const char *line, char between, qkv_error *err) {
    qkv_text text = {0};
    size_t n = 0;
    int status = QKV_OK;
    for (const char *at = line; status == QKV_OK; at++) {
        at = qkv_read_escaped(&text, at, between);
        n++;
        if (text.failed)
            status = qkv_fail_memory(err);
        else if (text.length == 0)
            status = qkv_fail(err, QKV_ERR_ARGUMENT, "`%s`: the text of a token is empty", option);
        if (!*at) break;
    }
    qkv_text_release(&text);
    if (status == QKV_OK && between == '/' && n != 2)
        status =
            qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` wants two tokens, A/B, not '%s'", option, line);
    return status;
}

int qkv_answer_texts_check(const char *option, const char *lines, char between, qkv_error *err) {
    size_t n = 0;
    char **texts = qkv_field_texts(lines, &n);
    int status = texts ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        status = check_line(option, texts[i], between, err);
    free(texts);
    return status;
}

/* ---- one text, or two that are compared ---- */

static int fail_text(int status, const char *option, const qkv_error *why, qkv_error *err) {
    qkv_fail_with(err, status, "`%s`: %s", option, why->message);
    return status;
}

static int find_answer(qkv_study *study, const qkv_model *model, const char *option, qkv_text *text,
                       int32_t **tokens, size_t *n_tokens, qkv_error *err) {
    qkv_error why = {0};
    qkv_text shown = {0}, taken = {0};
    int spaced = 0;
    const int status =
        qkv_find_answer(model, tokens, n_tokens, &spaced, text->data, text->length, &why);
    if (status != QKV_OK) return fail_text(status, option, &why, err);
    if (!spaced) return QKV_OK;
    qkv_text_append_visible(&shown, text->data, text->length);
    qkv_text_puts(&taken, " ");
    qkv_text_append(&taken, text->data, text->length);
    const int failed = shown.failed || taken.failed;
    if (!failed)
        qkv_study_warn(study, "`%s`: \"%s\" is not a token of the model: \" %s\" is taken", option,
                       shown.data, shown.data);
    qkv_text_release(&shown);
    if (failed) return qkv_text_release(&taken), qkv_fail_memory(err);
    qkv_text_release(text);
    *text = taken;
    return QKV_OK;
}

/* "A/B" as it was given, and as it is taken. */
static int warn_pair(qkv_study *study, const char *option, const qkv_text texts[2],
                     const int spaced[2], qkv_error *err) {
    qkv_text given = {0}, taken = {0};
    for (int i = 0; i < 2; i++) {
        qkv_text_puts(&given, i ? "/" : "");
        qkv_text_append_visible(&given, texts[i].data, texts[i].length);
        qkv_text_puts(&taken, i ? "/" : "");
        qkv_text_puts(&taken, spaced[i] ? " " : "");
        qkv_text_append_visible(&taken, texts[i].data, texts[i].length);
    }
    const int status = given.failed || taken.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK)
        qkv_study_warn(study, "`%s`: '%s' is taken as '%s': spaces belong to tokens", option,
                       given.data, taken.data);
    qkv_text_release(&given);
    qkv_text_release(&taken);
    return status;
}

static int find_pair(qkv_study *study, const qkv_model *model, const char *option,
                     const qkv_text texts[2], int32_t *tokens[2], size_t n_tokens[2],
                     qkv_error *err) {
    const char *const given[2] = {texts[0].data, texts[1].data};
    const size_t lengths[2] = {texts[0].length, texts[1].length};
    int spaced[2] = {0};
    qkv_error why = {0};
    if (texts[0].failed || texts[1].failed) return qkv_fail_memory(err);
    const int status = qkv_find_answer_pair(model, tokens, n_tokens, spaced, given, lengths, &why);
    if (status != QKV_OK) return fail_text(status, option, &why, err);
    return spaced[0] || spaced[1] ? warn_pair(study, option, texts, spaced, err) : QKV_OK;
}

/* ---- answers ---- */

int qkv_answers_read(study_answers *answers, qkv_study *study, const qkv_model *model,
                     const char *list, qkv_error *err) {
    size_t n = 0;
    char **lines = qkv_field_texts(list, &n);
    answers->tokens = qkv_calloc(n, sizeof *answers->tokens);
    answers->lengths = qkv_calloc(n, sizeof *answers->lengths);
    answers->texts = qkv_calloc(n, sizeof *answers->texts);
    int status = lines && answers->tokens && answers->lengths && answers->texts
                     ? QKV_OK
                     : qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_text *text = &answers->texts[i];
        answers->n = i + 1;
        (void)qkv_read_escaped(text, lines[i], 0);
        status = text->failed ? qkv_fail_memory(err)
                              : find_answer(study, model, "answer", text, &answers->tokens[i],
                                            &answers->lengths[i], err);
    }
    free(lines);
    return status;
}

int qkv_answers_check_spaces(const study_answers *answers, qkv_study *study, const study_inputs *in,
                             qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < answers->n && status == QKV_OK; i++) {
        int lacks = 0;
        for (size_t k = 0; k < in->prompts.n && !lacks && status == QKV_OK; k++)
            status = qkv_answer_lacks_space(in->model, &lacks, in->prompts.items[k].tokens,
                                            in->prompts.items[k].n_tokens, answers->tokens[i],
                                            answers->lengths[i], err);
        qkv_text shown = {0};
        if (lacks) {
            qkv_text_append_visible(&shown, answers->texts[i].data, answers->texts[i].length);
            if (shown.failed)
                status = qkv_fail_memory(err);
            else
                qkv_study_warn(
                    study,
                    "`answer`: \"%s\" follows the prompt without a space; with one it is written \" %s\"",
                    shown.data, shown.data);
        }
        qkv_text_release(&shown);
    }
    return status;
}

void qkv_answers_release(study_answers *answers) {
    for (size_t i = 0; i < answers->n; i++) {
        qkv_tokens_free(answers->tokens[i]);
        qkv_text_release(&answers->texts[i]);
    }
    free((void *)answers->tokens);
    free(answers->lengths);
    free(answers->texts);
    *answers = (study_answers){0};
}

/* ---- single tokens ---- */

/* Puts the token of a text into the list; the text has n of them, and should have one. */
static int add_token(token_list *list, const qkv_model *model, const char *option,
                     const qkv_text *text, const int32_t *tokens, size_t n, qkv_error *err) {
    int32_t ignored;
    qkv_error why = {0};
    if (n > 1) {
        const int status = qkv_find_token(model, &ignored, text->data, text->length, &why);
        qkv_fail_with(err, status, "`%s`: %s; `answer` takes several", option, why.message);
        return status;
    }
    return QKV_PUSH(list->ids, list->capacity, list->n, tokens[0]) ? QKV_OK : qkv_fail_memory(err);
}

static int read_tokens(token_list *list, qkv_study *study, const qkv_model *model,
                       const char *option, const char *line, qkv_error *err) {
    qkv_text text = {0};
    int status = QKV_OK;
    for (const char *at = line; status == QKV_OK; at++) {
        at = qkv_read_escaped(&text, at, ',');
        int32_t *tokens = NULL;
        size_t n = 0;
        status = text.failed ? qkv_fail_memory(err)
                             : find_answer(study, model, option, &text, &tokens, &n, err);
        if (status == QKV_OK) status = add_token(list, model, option, &text, tokens, n, err);
        qkv_tokens_free(tokens);
        if (!*at) break;
    }
    qkv_text_release(&text);
    return status;
}

static int read_pair(token_list *list, qkv_study *study, const qkv_model *model, const char *option,
                     const char *line, qkv_error *err) {
    qkv_text texts[2] = {0};
    int32_t *tokens[2] = {0};
    size_t n[2] = {0};
    const char *at = qkv_read_escaped(&texts[0], line, '/');
    (void)qkv_read_escaped(&texts[1], *at ? at + 1 : at, '/');
    int status = find_pair(study, model, option, texts, tokens, n, err);
    for (int i = 0; i < 2 && status == QKV_OK; i++)
        status = add_token(list, model, option, &texts[i], tokens[i], n[i], err);
    for (int i = 0; i < 2; i++) {
        qkv_tokens_free(tokens[i]);
        qkv_text_release(&texts[i]);
    }
    return status;
}

typedef int read_line(token_list *list, qkv_study *study, const qkv_model *model,
                      const char *option, const char *line, qkv_error *err);

static int read_lines(token_list *list, qkv_study *study, const qkv_model *model,
                      const char *option, const char *lines, read_line *read, qkv_error *err) {
    size_t n = 0;
    char **texts = qkv_field_texts(lines, &n);
    int status = texts ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        status = read(list, study, model, option, texts[i], err);
    free(texts);
    return status;
}

int qkv_token_list_read(token_list *list, qkv_study *study, const qkv_model *model,
                        const char *option, const char *lines, qkv_error *err) {
    return read_lines(list, study, model, option, lines, read_tokens, err);
}

int qkv_token_pairs_read(token_list *list, qkv_study *study, const qkv_model *model,
                         const char *option, const char *lines, qkv_error *err) {
    return read_lines(list, study, model, option, lines, read_pair, err);
}
