/*
 * Random tokens that come twice: BOS, where the model has one, then L different tokens drawn by a seed,
 * then the same again. Nothing but the first time tells what comes the second time, so that a head
 * which looks there was not led by meaning.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "run/run.h"
#include "study/head_labels.h"

enum { USUAL_LENGTH = 50, USUAL_SEQUENCES = 4 };

/* ---- tokens ---- */

/* *is becomes 1 for a token that a text may consist of; without a tokenizer all may. */
static int look_at_token(const qkv_model *model, int32_t token, int *is, qkv_error *err) {
    char *text = NULL;
    size_t length = 0;
    const int status = qkv_detokenize(model, &text, &length, &token, 1, 0, NULL);
    *is = status != QKV_OK || length > 0;
    qkv_text_free(text);
    return status == QKV_ERR_MEMORY ? qkv_fail_memory(err) : QKV_OK;
}

static int list_ordinary(const qkv_model *model, int32_t **out, size_t *n, qkv_error *err) {
    const int32_t n_vocab = qkv_model_get_info(model)->n_vocab;
    int32_t *tokens = *out = qkv_calloc((size_t)n_vocab, sizeof *tokens);
    if (!tokens) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (int32_t i = 0, is; i < n_vocab && status == QKV_OK; i++) {
        status = look_at_token(model, i, &is, err);
        if (is) tokens[(*n)++] = i;
    }
    return status;
}

/* What the tokenizer puts before a text, or -1. */
static int first_token(const qkv_model *model, int32_t *first, qkv_error *err) {
    int32_t *tokens = NULL;
    size_t n = 0;
    int is_ordinary = 1;
    int status = qkv_tokenize(model, &tokens, &n, "a", 1, QKV_TOKENIZE_ADD_SPECIAL, NULL);
    if (status == QKV_OK && n > 1) status = look_at_token(model, tokens[0], &is_ordinary, err);
    *first = is_ordinary ? -1 : tokens[0];
    qkv_tokens_free(tokens);
    return status == QKV_ERR_MEMORY ? qkv_fail_memory(err) : QKV_OK;
}

/* The first `length` of a shuffled list are this sequence's. */
static void draw(int32_t *from, size_t n, size_t length, uint64_t key, int32_t *to) {
    assert(length <= n); /* choose_length() has refused more */
    for (size_t i = 0; i < length; i++) {
        const size_t other = i + (size_t)(qkv_random_mix(key, i) % (n - i));
        const int32_t token = from[other];
        from[other] = from[i];
        from[i] = token;
        to[i] = to[length + i] = token;
    }
}

static int choose_length(head_scores *s, const study_inputs *in, const heads_options *options,
                         size_t n_ordinary, size_t n_first, qkv_error *err) {
    const size_t context = (size_t)qkv_model_get_info(in->model)->n_ctx;
    const size_t most = context > n_first ? (context - n_first) / 2 : 0;
    s->length = options->length ? (size_t)options->length : USUAL_LENGTH;
    if (!options->length && s->length > most) s->length = most;
    if (s->length < 2 || s->length > most)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`length`: %zu random tokens twice; the model's %zu tokens have room for "
                        "2 to %zu",
                        s->length, context, most);
    if (s->length > n_ordinary)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`length`: %zu different random tokens, and the vocabulary has %zu that "
                        "texts consist of",
                        s->length, n_ordinary);
    s->repeat_tokens = n_first + 2 * s->length;
    s->n_sequences = options->sequences ? (size_t)options->sequences : USUAL_SEQUENCES;
    return QKV_OK;
}

int qkv_head_scores_draw(head_scores *s, const study_inputs *in, const heads_options *options,
                         qkv_error *err) {
    int32_t first, *ordinary = NULL;
    size_t n = 0;
    int status = first_token(in->model, &first, err);
    const size_t n_first = first >= 0;
    if (status == QKV_OK) status = list_ordinary(in->model, &ordinary, &n, err);
    if (status == QKV_OK) status = choose_length(s, in, options, n, n_first, err);
    if (status == QKV_OK) {
        s->repeats = qkv_calloc(s->n_sequences * s->repeat_tokens, sizeof *s->repeats);
        if (!s->repeats) status = qkv_fail_memory(err);
    }
    for (size_t i = 0; i < s->n_sequences && status == QKV_OK; i++) {
        int32_t *to = s->repeats + i * s->repeat_tokens;
        if (n_first) to[0] = first;
        draw(ordinary, n, s->length, qkv_random_mix((uint64_t)options->seed, i), to + n_first);
    }
    free(ordinary);
    return status;
}

/* ---- scores ---- */

/* Queries of the second time; heads are added to by one thread at a time each. */
static void add_rows(void *user, const qkv_rows *rows) {
    head_scores *s = user;
    const size_t at = (size_t)rows->layer * s->n_head + (size_t)rows->head;
    const int64_t length = (int64_t)s->length, from = (int64_t)s->repeat_tokens - length;
    const double part = 1 / ((double)s->length * (double)s->n_sequences);
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const int64_t query = rows->first_row + r;
        const float *row = rows->data + r * rows->n_keys;
        if (query < from) continue;
        if (query - length < rows->n_keys)
            s->of[HEAD_DUPLICATE][at] += part * (double)row[query - length];
        if (query - length + 1 < rows->n_keys)
            s->of[HEAD_INDUCTION][at] += part * (double)row[query - length + 1];
    }
}

static int look_at(head_scores *s, const study_inputs *in, size_t sequence, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.rows = add_rows;
    observer.user = s;
    int status = qkv_plan_new(&plan, in->model, s->repeats + sequence * s->repeat_tokens,
                              s->repeat_tokens, err);
    if (status == QKV_OK) status = qkv_plan_observe(plan, "pattern@*", err);
    if (status == QKV_OK) status = qkv_session_observe(in->session, &result, plan, &observer, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* A sequence's own scores: what it has added, times their number. */
static int look_apart(head_scores *s, const study_inputs *in, size_t sequence, double *before,
                      qkv_error *err) {
    static const head_behaviour kinds[] = {HEAD_DUPLICATE, HEAD_INDUCTION};
    const size_t n = s->n_layer * s->n_head;
    for (size_t k = 0; k < 2; k++) memcpy(before + k * n, s->of[kinds[k]], n * sizeof *before);
    const int status = look_at(s, in, sequence, err);
    for (size_t i = 0; i < 2 * n && status == QKV_OK; i++) {
        const double added = s->of[kinds[i / n]][i % n] - before[i];
        qkv_head_scores_note(s, kinds[i / n], i % n, added * (double)s->n_sequences);
    }
    return status;
}

int qkv_head_scores_repeats(head_scores *s, const study_inputs *in, qkv_error *err) {
    double *before = qkv_calloc(2 * s->n_layer * s->n_head, sizeof *before);
    int status = before ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < s->n_sequences && status == QKV_OK; i++)
        status = look_apart(s, in, i, before, err);
    free(before);
    return status;
}
