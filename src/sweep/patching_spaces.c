/* Answers of several tokens that most likely lack a space: they are taken as they are written, and warned of. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "qkv/next.h"
#include "sweep/patching.h"

#define LACKS "follows the prompt without a space; with one it is written"

static int add_warning(qkv_patching *p, qkv_text *text, qkv_error *err) {
    if (!text->failed && QKV_PUSH(p->warnings, p->warnings_capacity, p->n_warnings, text->data))
        return QKV_OK;
    qkv_text_release(text);
    return qkv_fail_memory(err);
}

/* The text of tokens, as people see it. */
static int append_answer(const qkv_model *model, const qkv_patch_answer *answer, qkv_text *out,
                         qkv_error *err) {
    for (size_t i = 0; i < answer->n; i++) {
        char *bytes = NULL;
        size_t length = 0;
        const int status = qkv_token_text(model, &bytes, &length, answer->tokens[i], err);
        if (status != QKV_OK) return status;
        qkv_text_append_visible(out, bytes, length);
        qkv_text_free(bytes);
    }
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

static int lacks_space(const qkv_sweep *s, size_t pair, const qkv_patch_answer *answer, int *lacks,
                       qkv_error *err) {
    const qkv_own_prompt *clean = &s->prompts[2 * pair];
    *lacks = 0;
    if (answer->n < 2) return QKV_OK;
    return qkv_answer_lacks_space(s->model, lacks, clean->tokens, clean->n_tokens, answer->tokens,
                                  answer->n, err);
}

/* Of a metric's own answers. */
static int check_metric(const qkv_sweep *s, const qkv_patch_metric *metric, qkv_error *err) {
    int status = QKV_OK;
    for (size_t k = 0; k < QKV_PATCH_PARTS && status == QKV_OK; k++) {
        int lacks = 0;
        qkv_text answer = {0}, text = {0};
        status = lacks_space(s, 0, &metric->answers[k], &lacks, err);
        if (status == QKV_OK && lacks) {
            status = append_answer(s->model, &metric->answers[k], &answer, err);
            if (status == QKV_OK) {
                qkv_text_printf(&text, "metric '%s': \"%s\" " LACKS " \" %s\"", metric->text,
                                answer.data, answer.data);
                status = add_warning(s->patching, &text, err);
            }
        }
        qkv_text_release(&answer);
    }
    return status;
}

/* Of the pairs' answers: how many, and the first. */
static int check_pairs(const qkv_sweep *s, qkv_error *err) {
    qkv_patching *p = s->patching;
    const qkv_patch_answer *first = NULL;
    size_t n = 0;
    int status = QKV_OK;
    for (size_t i = 0; i < QKV_PATCH_PARTS * p->n_pairs && status == QKV_OK; i++) {
        const size_t pair = i / QKV_PATCH_PARTS;
        const qkv_patch_answer *answer = &p->pairs[pair].answers[i % QKV_PATCH_PARTS];
        int lacks = 0;
        status = lacks_space(s, pair, answer, &lacks, err);
        if (lacks && !first) first = answer;
        n += lacks != 0;
    }
    if (status != QKV_OK || !first) return status;
    qkv_text answer = {0}, text = {0};
    status = append_answer(s->model, first, &answer, err);
    if (status == QKV_OK) {
        qkv_text_printf(&text, "pairs: \"%s\" " LACKS " \" %s\"", answer.data, answer.data);
        if (n > 1) qkv_text_printf(&text, " (and %zu more)", n - 1);
        status = add_warning(p, &text, err);
    }
    qkv_text_release(&answer);
    return status;
}

int qkv_patching_check_spaces(qkv_spec *spec, qkv_error *err) {
    const qkv_patching *p = spec->sweep->patching;
    int status = check_pairs(spec->sweep, err);
    for (size_t i = 0; i < p->n_metrics && status == QKV_OK; i++)
        status = check_metric(spec->sweep, &p->metrics[i], err);
    return status;
}
