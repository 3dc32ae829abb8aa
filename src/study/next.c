/*
 * Next tokens: a run whose logits are looked at as they come, and dropped.
 *
 * Of one position all tokens are ranked. Of all positions each token of the prompt has its loss; their
 * logits (tokens x vocabulary) are had in blocks that fit into the memory allowed, with a run for each. So
 * are those of an answer, which is run after the prompt.
 */
#include "study/next.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logits.h"
#include "base/memory.h"
#include "base/sized.h"
#include "run/run.h"

/* What runs need beside the options. */
typedef struct next_work {
    const qkv_next_options *how;
    const qkv_model *model;
    const int32_t *tokens; /* of the prompt */
    size_t n_tokens, n_vocab;
    /* The text that is run: the prompt, or with an answer after it. */
    const int32_t *text;
    size_t n_text;
    size_t answer;     /* its number; NO_ANSWER: none */
    double base_log_p; /* of these rows of the answer, the baseline's */
    qkv_next *next;
    next_order base_order, order;
    /* Of the rows [first, ...) that are being computed. */
    int64_t first;
    const float *base;      /* the baseline's */
    qkv_log_sum *base_sums; /* log Σ exp of each of them */
    uint8_t *arrived;       /* of each variant */
} next_work;

#define NO_ANSWER SIZE_MAX

/* ---- the plan ---- */

static int check_lists(const qkv_next_options *how, qkv_error *err) {
    for (size_t i = 0; i < how->n_variants; i++) {
        if (!how->variants || !how->variants[i])
            return qkv_fail(err, QKV_ERR_ARGUMENT, "variant %zu has no edits", i + 1);
    }
    for (size_t i = 0; i < how->n_sources; i++) {
        if (!how->source_names || !how->source_names[i] || !how->source_tokens ||
            !how->source_tokens[i])
            return qkv_fail(err, QKV_ERR_ARGUMENT, "source %zu has no name or no tokens", i);
    }
    for (size_t i = 0; i < how->n_answers; i++) {
        if (!how->answers || !how->answers[i] || !how->answer_lengths || !how->answer_lengths[i])
            return qkv_fail(err, QKV_ERR_ARGUMENT, "answer %zu has no tokens", i);
    }
    return QKV_OK;
}

static int check_ids(const int32_t *ids, size_t n, const char *name, const qkv_model *model,
                     qkv_error *err) {
    const int32_t n_vocab = qkv_model_get_info(model)->n_vocab;
    if (n && !ids) return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has no tokens", name);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= n_vocab)
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "`%s`: token %" PRId32
                            " is out of range: the vocabulary has 0 to %" PRId32,
                            name, ids[i], n_vocab - 1);
    }
    return QKV_OK;
}

static int check_where(const qkv_next_options *how, size_t n_tokens, qkv_error *err) {
    const int64_t n = (int64_t)n_tokens;
    if (how->top < 0) return qkv_fail(err, QKV_ERR_ARGUMENT, "`top` must be 0 or above");
    if (how->all && (how->n_of || how->n_diff || how->n_answers))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`all` gives losses of the prompt's tokens: leave out `of`, `diff` and "
                        "`answer`");
    if (how->all && n_tokens < 2)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a prompt of one token has no losses: nothing stands before it");
    if (!how->all && (how->at >= n || how->at < -n))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`at`: position %" PRId64 " is out of range; the prompt has 0 to %" PRId64
                        ", or -%" PRId64 " to -1 from its end",
                        how->at, n - 1, n);
    if (how->n_answers && how->at != -1 && how->at != n - 1)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "an `answer` stands after the last token of the prompt: leave out `at`");
    return QKV_OK;
}

/* Of a text that begins with a prompt of n_tokens. */
static int make_plan(qkv_plan **plan, const qkv_next_options *how, const qkv_model *model,
                     const int32_t *text, size_t n_text, size_t n_tokens, qkv_error *err) {
    int status = n_text == n_tokens ? qkv_plan_new(plan, model, text, n_text, err)
                                    : qkv_plan_new_answer(plan, model, text, n_text, n_tokens, err);
    for (size_t i = 0; i < how->n_sources && status == QKV_OK; i++) {
        const size_t length = how->source_lengths ? how->source_lengths[i] : n_tokens;
        status =
            qkv_plan_add_source(*plan, how->source_names[i], how->source_tokens[i], length, err);
    }
    if (status == QKV_OK) status = qkv_plan_add_customs(*plan, how->customs, how->n_customs, err);
    if (status == QKV_OK) status = qkv_plan_set_edit_data(*plan, how->data, err);
    for (size_t i = 0; i < how->n_variants && status == QKV_OK; i++)
        status = qkv_plan_add_variant(*plan, how->variants[i], NULL, err);
    return status;
}

/* The prompt and an answer, whose last token nothing has to read. */
static int32_t *join_answer(const qkv_next_options *how, size_t answer, const int32_t *tokens,
                            size_t n_tokens, size_t *n_text) {
    *n_text = n_tokens + how->answer_lengths[answer] - 1;
    int32_t *text = qkv_calloc(*n_text, sizeof *text);
    if (!text) return NULL;
    memcpy(text, tokens, n_tokens * sizeof *text);
    memcpy(text + n_tokens, how->answers[answer], (*n_text - n_tokens) * sizeof *text);
    return text;
}

static int check_answer(const qkv_next_options *how, size_t answer, const qkv_model *model,
                        const int32_t *tokens, size_t n_tokens, qkv_error *err) {
    qkv_plan *plan = NULL;
    size_t n_text = 0;
    int status = check_ids(how->answers[answer], how->answer_lengths[answer], "answer", model, err);
    if (status != QKV_OK) return status;
    int32_t *text = join_answer(how, answer, tokens, n_tokens, &n_text);
    status =
        text ? make_plan(&plan, how, model, text, n_text, n_tokens, err) : qkv_fail_memory(err);
    qkv_plan_free(plan);
    free(text);
    return status;
}

static int check(const qkv_next_options *how, const qkv_model *model, const int32_t *tokens,
                 size_t n_tokens, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(model);
    qkv_plan *plan = NULL;
    if (!info->has_logits || !info->causal)
        return qkv_fail(err, QKV_ERR_PLAN, "%s is an encoder, which has no next token", info->path);
    int status = check_lists(how, err);
    if (status == QKV_OK) status = check_ids(how->of, how->n_of, "of", model, err);
    if (status == QKV_OK) status = check_ids(how->diff, 2 * how->n_diff, "diff", model, err);
    if (status == QKV_OK) status = make_plan(&plan, how, model, tokens, n_tokens, n_tokens, err);
    if (status == QKV_OK) status = check_where(how, n_tokens, err);
    for (size_t i = 0; i < how->n_answers && status == QKV_OK; i++)
        status = check_answer(how, i, model, tokens, n_tokens, err);
    qkv_plan_free(plan);
    return status;
}

int qkv_next_check(const qkv_model *model, const int32_t *tokens, size_t n_tokens,
                   const qkv_next_options *options, qkv_error *err) {
    qkv_next_options own = QKV_NEXT_OPTIONS_INIT;
    QKV_NEED(err, model);
    if (n_tokens) QKV_NEED(err, tokens);
    const int status = qkv_sized_read(&own, sizeof own, options, "qkv_next_options", err);
    return status == QKV_OK ? check(&own, model, tokens, n_tokens, err) : status;
}

/* ---- one position ---- */

/* The distributions that are compared: the variant's and the baseline's. */
typedef struct next_rows {
    const float *row, *base;
    qkv_log_sum sum, base_sum;
} next_rows;

static qkv_next_token token_of(const next_work *w, const next_rows *at, int32_t token) {
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    t.token = token;
    t.rank = w->order.ranks[token] + 1;
    t.rank_change = w->order.ranks[token] - w->base_order.ranks[token];
    t.logit = (double)at->row[token];
    t.logit_change = (double)at->row[token] - (double)at->base[token];
    t.probability = exp(qkv_logit_log_p(at->row[token], at->sum));
    t.probability_change = t.probability - exp(qkv_logit_log_p(at->base[token], at->base_sum));
    return t;
}

static void take_position(next_work *w, size_t variant, const next_rows *at) {
    const qkv_next_options *how = w->how;
    next_variant *to = &w->next->variants[variant];
    if (variant == 0) qkv_next_order_fill(&w->base_order, at->row, w->n_vocab);
    qkv_next_order_fill(&w->order, at->row, w->n_vocab);
    for (size_t i = 0; i < w->next->n_top; i++)
        to->top[i] = token_of(w, at, w->order.sorted[i].token);
    for (size_t i = 0; i < how->n_of; i++) to->of[i] = token_of(w, at, how->of[i]);
    for (size_t i = 0; i < how->n_diff; i++) {
        const int32_t a = how->diff[2 * i], b = how->diff[2 * i + 1];
        to->diffs[i].value = (double)at->row[a] - (double)at->row[b];
        to->diffs[i].change = to->diffs[i].value - ((double)at->base[a] - (double)at->base[b]);
    }
    to->kl = variant ? qkv_logits_kl(at->base, at->base_sum, at->row, at->sum, w->n_vocab) : 0;
}

/* ---- all positions ---- */

static void take_loss(const next_work *w, size_t variant, int64_t position, const next_rows *at) {
    const int32_t token = w->tokens[position + 1];
    const qkv_next_loss *base = &w->next->variants[0].losses[position];
    qkv_next_loss *to = &w->next->variants[variant].losses[position];
    *to = (qkv_next_loss)QKV_NEXT_LOSS_INIT;
    to->position = position + 1;
    to->token = token;
    to->loss = -qkv_logit_log_p(at->row[token], at->sum);
    to->rank = qkv_logits_rank(at->row, w->n_vocab, token);
    if (variant == 0) return;
    to->loss_change = to->loss - base->loss;
    to->rank_change = to->rank - base->rank;
    to->kl = qkv_logits_kl(at->base, at->base_sum, at->row, at->sum, w->n_vocab);
}

/* ---- answers ---- */

/* Row `at` of the prompt and the answer predicts one of the answer's tokens. */
static void take_answer(next_work *w, size_t variant, int64_t position, const next_rows *at) {
    const size_t index = (size_t)position + 1 - w->n_tokens;
    const double log_p = qkv_logit_log_p(at->row[w->how->answers[w->answer][index]], at->sum);
    w->next->variants[variant].answers[w->answer].log_probability += log_p;
    if (variant == 0) w->base_log_p += log_p;
}

static void finish_answer(next_work *w) {
    const qkv_next_answer *base = &w->next->variants[0].answers[w->answer];
    for (size_t v = 0; v < w->next->n_variants; v++) {
        qkv_next_answer *to = &w->next->variants[v].answers[w->answer];
        to->n_tokens = w->how->answer_lengths[w->answer];
        to->log_probability_change = to->log_probability - base->log_probability;
        to->probability = exp(to->log_probability);
        to->probability_change = to->probability - exp(base->log_probability);
    }
}

/* ---- runs ---- */

static int take_logits(void *user, size_t variant, qkv_site site, int32_t layer,
                       const qkv_tensor *tensor, qkv_error *err) {
    next_work *w = user;
    (void)site, (void)layer, (void)err;
    if (variant == 0) w->base = tensor->data;
    w->arrived[variant] = 1;
    for (int64_t r = 0; r < tensor->shape[0]; r++) {
        next_rows at = {.row = tensor->data + (size_t)r * w->n_vocab,
                        .base = w->base + (size_t)r * w->n_vocab};
        at.sum = qkv_log_sum_exp(at.row, w->n_vocab);
        if (variant == 0) w->base_sums[r] = at.sum;
        at.base_sum = w->base_sums[r];
        if (w->answer != NO_ANSWER)
            take_answer(w, variant, w->first + r, &at);
        else if (w->how->all)
            take_loss(w, variant, w->first + r, &at);
        else
            take_position(w, variant, &at);
    }
    return QKV_OK;
}

/* Rows [first, end) of a variant that no edit reaches are the baseline's. */
static void take_baseline(const next_work *w, size_t variant, int64_t end) {
    const qkv_next *next = w->next;
    const next_variant *from = &next->variants[0];
    next_variant *to = &next->variants[variant];
    if (w->answer != NO_ANSWER) {
        to->answers[w->answer].log_probability += w->base_log_p;
        return;
    }
    for (int64_t i = w->first; i < end && w->how->all; i++) to->losses[i] = from->losses[i];
    for (size_t i = 0; i < next->n_top; i++) to->top[i] = from->top[i];
    for (size_t i = 0; i < next->n_of; i++) to->of[i] = from->of[i];
    for (size_t i = 0; i < next->n_diffs; i++) to->diffs[i] = from->diffs[i];
    if (!w->how->all) to->kl = 0;
}

/* An edit counts where any of the blocks depends on it; what it changes is counted in the prompt. */
static int take_edits(const next_work *w, const qkv_result *result, qkv_error *err) {
    const qkv_next *next = w->next;
    for (size_t v = 0; v < next->n_variants; v++) {
        next_variant *to = &next->variants[v];
        const size_t n = qkv_result_n_edits(result, v);
        if (!to->edits) to->edits = qkv_calloc(n, sizeof *to->edits);
        if (!to->edits) return qkv_fail_memory(err);
        to->n_edits = n;
        for (size_t i = 0; i < n; i++) {
            next_edit *edit = &to->edits[i];
            const uint64_t changed = qkv_result_edit_changed(result, v, i);
            if (!edit->text) edit->text = qkv_strdup(qkv_result_edit_text(result, v, i));
            if (!edit->text) return qkv_fail_memory(err);
            edit->ran |= qkv_result_edit_ran(result, v, i);
            if (w->answer == NO_ANSWER && changed > edit->changed) edit->changed = changed;
        }
    }
    return QKV_OK;
}

static int run_rows(next_work *w, qkv_session *session, int64_t first, int64_t end,
                    qkv_error *err) {
    char capture[64];
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.tensor = take_logits;
    observer.user = w;
    w->first = first;
    w->base_log_p = 0;
    snprintf(capture, sizeof capture, "logits[%" PRId64 ":%" PRId64 "]", first, end);
    for (size_t v = 0; v < w->next->n_variants; v++) w->arrived[v] = 0;
    int status = make_plan(&plan, w->how, w->model, w->text, w->n_text, w->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, err);
    if (status == QKV_OK) status = qkv_session_observe(session, &result, plan, &observer, err);
    for (size_t v = 1; v < w->next->n_variants && status == QKV_OK; v++) {
        if (!w->arrived[v]) take_baseline(w, v, end);
    }
    if (status == QKV_OK) status = take_edits(w, result, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* Rows [first, end) in blocks that fit. */
static int run_blocks(next_work *w, qkv_session *session, int64_t first, int64_t end,
                      qkv_error *err) {
    const size_t memory = w->how->memory ? w->how->memory : qkv_session_memory(session);
    const size_t fit = memory / (w->n_vocab * sizeof(float));
    const int64_t block = fit < 1 ? 1 : fit < w->n_text ? (int64_t)fit : (int64_t)w->n_text;
    const int64_t n_blocks = (end - first + block - 1) / block;
    int status = qkv_session_begin_work(session, "blocks", (double)n_blocks, err);
    if (status != QKV_OK) return status;
    for (; first < end && status == QKV_OK; first += block)
        status = run_rows(w, session, first, first + block < end ? first + block : end, err);
    return qkv_session_end_work(session, status);
}

static int run_answer(next_work *w, qkv_session *session, size_t answer, qkv_error *err) {
    int32_t *text = join_answer(w->how, answer, w->tokens, w->n_tokens, &w->n_text);
    if (!text) return qkv_fail_memory(err);
    w->text = text;
    w->answer = answer;
    const int status = run_blocks(w, session, (int64_t)w->n_tokens - 1, (int64_t)w->n_text, err);
    if (status == QKV_OK) finish_answer(w);
    free(text);
    return status;
}

static int run(next_work *w, qkv_session *session, qkv_error *err) {
    const int64_t at = w->next->position;
    w->text = w->tokens;
    w->n_text = w->n_tokens;
    w->answer = NO_ANSWER;
    int status = w->how->all ? run_blocks(w, session, 0, (int64_t)w->next->n_losses, err)
                             : run_rows(w, session, at, at + 1, err);
    for (size_t i = 0; i < w->how->n_answers && status == QKV_OK; i++)
        status = run_answer(w, session, i, err);
    return status;
}

/* ---- the object ---- */

static int allocate_variant(const qkv_next *next, next_variant *v) {
    v->kl = NAN;
    v->top = qkv_calloc(next->n_top, sizeof *v->top);
    v->of = qkv_calloc(next->n_of, sizeof *v->of);
    v->diffs = qkv_calloc(next->n_diffs, sizeof *v->diffs);
    v->losses = qkv_calloc(next->n_losses, sizeof *v->losses);
    v->answers = qkv_calloc(next->n_answers, sizeof *v->answers);
    for (size_t i = 0; v->answers && i < next->n_answers; i++)
        v->answers[i] = (qkv_next_answer)QKV_NEXT_ANSWER_INIT;
    return v->top && v->of && v->diffs && v->losses && v->answers;
}

static int allocate(next_work *w, qkv_error *err) {
    const qkv_next_options *how = w->how;
    qkv_next *next = w->next = qkv_calloc(1, sizeof *next);
    if (!next) return qkv_fail_memory(err);
    const size_t n_variants = how->n_variants + 1;
    const size_t top = (size_t)how->top;
    next->position = how->all ? -1 : how->at < 0 ? how->at + (int64_t)w->n_tokens : how->at;
    next->n_top = how->all ? 0 : top < w->n_vocab ? top : w->n_vocab;
    next->n_of = how->n_of;
    next->n_diffs = how->n_diff;
    next->n_answers = how->n_answers;
    next->n_losses = how->all ? w->n_tokens - 1 : 0;
    next->variants = qkv_calloc(n_variants, sizeof *next->variants);
    size_t longest = 0;
    for (size_t i = 0; i < how->n_answers; i++)
        longest = how->answer_lengths[i] > longest ? how->answer_lengths[i] : longest;
    w->base_sums = qkv_calloc(w->n_tokens + longest, sizeof *w->base_sums);
    w->arrived = qkv_calloc(n_variants, 1);
    if (!next->variants || !w->base_sums || !w->arrived) return qkv_fail_memory(err);
    next->n_variants = n_variants;
    for (size_t v = 0; v < n_variants; v++) {
        if (!allocate_variant(next, &next->variants[v])) return qkv_fail_memory(err);
    }
    const int status = qkv_next_order_new(&w->base_order, w->n_vocab, err);
    return status == QKV_OK ? qkv_next_order_new(&w->order, w->n_vocab, err) : status;
}

int qkv_next_new(qkv_next **out, qkv_session *session, const int32_t *tokens, size_t n_tokens,
                 const qkv_next_options *options, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, session);
    if (n_tokens) QKV_NEED(err, tokens);
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    const qkv_model *model = qkv_session_model(session);
    next_work w = {.how = &how,
                   .model = model,
                   .tokens = tokens,
                   .n_tokens = n_tokens,
                   .n_vocab = (size_t)qkv_model_get_info(model)->n_vocab};
    int status = qkv_sized_read(&how, sizeof how, options, "qkv_next_options", err);
    if (status == QKV_OK) status = check(&how, model, tokens, n_tokens, err);
    if (status == QKV_OK) status = allocate(&w, err);
    if (status == QKV_OK) status = run(&w, session, err);
    if (status == QKV_OK)
        *out = w.next;
    else
        qkv_next_free(w.next);
    qkv_next_order_release(&w.base_order);
    qkv_next_order_release(&w.order);
    free(w.base_sums);
    free(w.arrived);
    return status;
}
