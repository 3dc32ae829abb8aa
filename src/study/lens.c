/*
 * The logit lens: what the model would predict if it ended behind a layer. The residual stream of every
 * layer and position goes through the model's own final norm and output matrix.
 *
 * States are taken as the pass computes them, layer by layer, and logits are looked at in blocks that
 * fit into memory, so that none of layers x positions x vocabulary exists as a whole.
 */
#include "study/lens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logits.h"
#include "base/memory.h"
#include "qkv/next.h"
#include "qkv/unembed.h"

enum { USUAL_TOP = 5, MOST_TOP = 100 };
#define BLOCK_BYTES ((size_t)64 << 20) /* of logits at a time */

/* ---- options ---- */

const field qkv_lens_fields[] = {
    STUDY_FIELD(lens_options, top, INT, 0, MOST_TOP),
    STUDY_FIELD(lens_options, answer, TEXT, 0, 400),
    STUDY_FIELD(lens_options, heads, FLAG, 0, 0),
};

/* ---- one cell ---- */

static void take_cell(const lens *l, lens_cell *cell, const float *row) {
    const size_t n = (size_t)l->n_vocab;
    const qkv_log_sum sum = qkv_log_sum_exp(row, n);
    qkv_most_likely_tokens(row, n, cell->top, (size_t)l->n_top);
    for (int32_t k = 0; k < l->n_top; k++)
        cell->p[k] = exp(qkv_logit_log_p(row[cell->top[k]], sum));
    if (l->answer < 0) return;
    cell->answer_logit = (double)row[l->answer] - (l->against < 0 ? 0 : (double)row[l->against]);
    cell->answer_p = exp(qkv_logit_log_p(row[l->answer], sum));
    cell->answer_rank = qkv_logits_rank(row, n, l->answer);
}

lens_cell *qkv_lens_at(const lens *l, int32_t layer, size_t position) {
    return &l->cells[(size_t)layer * l->n_tokens + position];
}

/* ---- all of them ---- */

static int look(lens *l, qkv_session *session, int32_t layer, const float *states, qkv_error *err) {
    const size_t row = (size_t)l->n_vocab * sizeof(float);
    const size_t most = BLOCK_BYTES / row > 0 ? BLOCK_BYTES / row : 1;
    const size_t block = most < l->n_tokens ? most : l->n_tokens;
    float *logits = qkv_calloc(block, row);
    int status = logits ? QKV_OK : qkv_fail_memory(err);
    for (size_t first = 0; first < l->n_tokens && status == QKV_OK; first += block) {
        const size_t n = l->n_tokens - first < block ? l->n_tokens - first : block;
        status = qkv_unembed(session, states + first * (size_t)l->n_embd, n, logits, err);
        for (size_t i = 0; i < n && status == QKV_OK; i++)
            take_cell(l, qkv_lens_at(l, layer, first + i), logits + i * (size_t)l->n_vocab);
    }
    free(logits);
    return status;
}

static int allocate(lens *l, qkv_error *err) {
    const size_t n = (size_t)l->n_layer * l->n_tokens, top = (size_t)l->n_top;
    l->cells = qkv_calloc(n, sizeof *l->cells);
    l->tokens = qkv_calloc(n * top, sizeof *l->tokens);
    l->probabilities = qkv_calloc(n * top, sizeof *l->probabilities);
    if (!l->cells || !l->tokens || !l->probabilities) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        l->cells[i].top = l->tokens + i * top;
        l->cells[i].p = l->probabilities + i * top;
    }
    return QKV_OK;
}

void qkv_lens_release(lens *l) {
    free(l->cells);
    free(l->tokens);
    free(l->probabilities);
    *l = (lens){0};
}

int qkv_lens_compute(lens *l, qkv_session *session, const study_prompt *prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int status = allocate(l, err);
    if (status == QKV_OK)
        status =
            qkv_plan_new(&plan, qkv_session_model(session), prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "resid_post@*", err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    for (int32_t i = 0; i < l->n_layer && status == QKV_OK; i++) {
        qkv_tensor t = QKV_TENSOR_INIT;
        if (!qkv_result_get(result, 0, QKV_SITE_RESID_POST, i, &t))
            status = qkv_fail(err, QKV_ERR_PLAN, "layer %d has no residual stream", (int)i);
        else
            status = look(l, session, i, t.data, err);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* ---- the study ---- */

/* One token, or two with a slash between them; a token may have one itself. */
static int find_answer(lens *l, const qkv_model *model, const char *text, qkv_error *err) {
    const char *slash = strchr(text, '/');
    if (qkv_find_token(model, &l->answer, text, strlen(text), NULL) == QKV_OK) return QKV_OK;
    l->answer = -1;
    if (!slash || slash == text || !slash[1])
        return qkv_find_token(model, &l->answer, text, strlen(text), err);
    const int status = qkv_find_token(model, &l->answer, text, (size_t)(slash - text), err);
    if (status != QKV_OK) return status;
    return qkv_find_token(model, &l->against, slash + 1, strlen(slash + 1), err);
}

/* "sea", or "sea - land". */
static int name_answer(const lens *l, const qkv_model *model, char **out, qkv_error *err) {
    char *second = NULL;
    qkv_text both = {0};
    int status = l->answer < 0 ? QKV_OK : qkv_token_label(model, l->answer, out, err);
    if (status != QKV_OK || l->against < 0) return status;
    status = qkv_token_label(model, l->against, &second, err);
    if (status == QKV_OK) qkv_text_printf(&both, "%s \xe2\x88\x92 %s", *out, second);
    free(second);
    if (status != QKV_OK || both.failed) {
        qkv_text_release(&both);
        return status != QKV_OK ? status : qkv_fail_memory(err);
    }
    free(*out);
    *out = both.data;
    return QKV_OK;
}

static int make_lens(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const lens_options *options = given;
    const qkv_model_info *info = qkv_model_get_info(in->model);
    const study_prompt *prompt = &in->prompts.items[0];
    lens l = {.n_layer = info->n_layer,
              .n_embd = info->n_embd,
              .n_vocab = info->n_vocab,
              .n_tokens = prompt->n_tokens,
              .n_top = options->top ? options->top : USUAL_TOP,
              .answer = -1,
              .against = -1};
    char *answer = NULL;
    if (!info->has_logits || !info->causal)
        return qkv_fail(err, QKV_ERR_PLAN, "%s is an encoder, which has no next token", info->path);
    if (l.n_top > info->n_vocab) l.n_top = info->n_vocab;
    if (options->heads && !options->answer)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`heads` wants an `answer`: whose logit?");
    int status = options->answer ? find_answer(&l, in->model, options->answer, err) : QKV_OK;
    if (status == QKV_OK) status = name_answer(&l, in->model, &answer, err);
    if (status == QKV_OK && options->heads) status = qkv_lens_heads(&l, study, in, answer, err);
    if (status == QKV_OK) status = qkv_lens_compute(&l, in->session, prompt, err);
    if (status == QKV_OK) status = qkv_lens_show(&l, study, in, answer, err);
    free(answer);
    qkv_lens_release(&l);
    return status;
}

const study_kind qkv_study_lens = {
    .name = "lens",
    .title = "the tokens that every layer would predict, at every position",
    .fields = qkv_lens_fields,
    .n_fields = sizeof qkv_lens_fields / sizeof *qkv_lens_fields,
    .options_size = sizeof(lens_options),
    .least_prompts = 1,
    .most_prompts = 1,
    .make = make_lens,
};
