/*
 * Texts that generators made, looked at as a whole: plans of them, and the plain text of the unedited
 * model.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/generate/generator.h"
#include "run/ops/edit_apply.h"
#include "run/plan/edit_data.h"
#include "run/plan/other_prompt.h"

/* ---- plans ---- */

/* A prompt to patch from, followed by the new tokens of the text (qkv_plan_add_source). */
static int add_source(const qkv_source *source, qkv_plan *plan, qkv_error *err) {
    if (source->is_drawn) return QKV_OK; /* the edit draws it again */
    return qkv_plan_add_source(plan, source->name, source->tokens, (size_t)source->n_tokens, err);
}

int qkv_generator_plan(const qkv_generator *generator, qkv_plan **out, size_t variant,
                       qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, generator);
    const qkv_plan *from = generator->plan;
    if (variant >= from->n_variants)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no variant %zu", variant);
    const qkv_branch *branch = &generator->branches[variant];
    const int64_t n = branch->n_tokens ? branch->n_tokens : from->n_tokens;
    qkv_plan *plan = NULL;
    int status = qkv_plan_new_text(&plan, from->model, branch->tokens, (size_t)n, &from->text, err);
    for (size_t i = 0; variant > 0 && i < from->n_sources && status == QKV_OK; i++)
        status = add_source(&from->sources[i], plan, err);
    if (status == QKV_OK && variant > 0) status = qkv_plan_share_customs(plan, from, err);
    if (status == QKV_OK && variant > 0) status = qkv_plan_set_edit_data(plan, from->data, err);
    if (status == QKV_OK && variant > 0)
        status = qkv_plan_add_variant(plan, from->variants[variant].text, NULL, err);
    if (status == QKV_OK)
        *out = plan;
    else
        qkv_plan_free(plan);
    return status;
}

/* ---- the unedited model ---- */

/* Writes the next tokens to `text`: *n is the length before, and then after. */
static int go_on(qkv_session *session, qkv_generator *generator, int32_t *text, size_t *n,
                 size_t max_new, qkv_error *err) {
    const qkv_model *model = generator->plan->model;
    const size_t n_vocab = (size_t)model->hp.n_vocab;
    int status = qkv_session_feed(session, generator, NULL, err);
    for (size_t i = 0; i < max_new && status == QKV_OK; i++) {
        int32_t next;
        status = qkv_sample(NULL, qkv_generator_logits(generator, 0), n_vocab, i, &next, err);
        if (status != QKV_OK || qkv_is_end_token(model, next)) return status;
        text[(*n)++] = next;
        if (i + 1 < max_new) status = qkv_session_feed(session, generator, &next, err);
    }
    return status;
}

int qkv_session_continue(qkv_session *session, const int32_t *tokens, size_t n_tokens,
                         size_t max_new, int32_t **out, size_t *n_out, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, n_out);
    *n_out = 0;
    QKV_NEED(err, session);
    if (n_tokens) QKV_NEED(err, tokens);
    qkv_generator *generator = NULL;
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = max_new;
    int status = qkv_generator_new(&generator, session->model, tokens, n_tokens, &how, err);
    if (status != QKV_OK) return status;
    size_t n = n_tokens;
    int32_t *text = qkv_calloc(n_tokens + max_new, sizeof *text);
    if (text) {
        memcpy(text, tokens, n_tokens * sizeof *text);
        qkv_steps_begin(&session->steps, "tokens", (double)max_new);
        status = go_on(session, generator, text, &n, max_new, err);
        qkv_steps_end(&session->steps, status == QKV_OK);
    } else {
        status = qkv_fail_memory(err);
    }
    qkv_generator_free(generator);
    if (status != QKV_OK) {
        free(text);
        return status;
    }
    *out = text;
    *n_out = n;
    return QKV_OK;
}
