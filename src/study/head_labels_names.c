/*
 * Name movers (Wang et al. 2022): heads that look from the last token to the answer and copy it.
 *
 * A pair is a prompt in which the answer stands, and the answer, one token. For each position p of the
 * answer, c(p) is 1 where the answer is among the five highest logits of what the head writes for the
 * value at p, through the model's final norm and output matrix: the paper's copy score, of the value that
 * the prompt has there (the paper's code takes the state after the first layer). The score of a pair is
 * the sum over p of A[last][p] c(p).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logits.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/head_output.h"
#include "qkv/next.h"
#include "qkv/weights.h"
#include "run/run.h"
#include "run/unembed.h"
#include "study/head_labels.h"
#include "study/prompt.h"

enum { COPIED_RANK = 5 };
#define BLOCK_BYTES ((size_t)64 << 20) /* of logits at a time */

typedef struct name_pair {
    int32_t *tokens;
    size_t n_tokens;
    int32_t answer;
    size_t *places; /* where it stands */
    size_t n_places;
} name_pair;

static void pair_release(name_pair *p) {
    free(p->tokens);
    free(p->places);
    *p = (name_pair){0};
}

/* ---- reading ---- */

static int find_places(name_pair *p, size_t number, const char *answer, size_t length,
                       qkv_error *err) {
    p->places = qkv_calloc(p->n_tokens, sizeof *p->places);
    if (!p->places) return qkv_fail_memory(err);
    for (size_t i = 0; i < p->n_tokens; i++) {
        if (p->tokens[i] == p->answer) p->places[p->n_places++] = i;
    }
    if (p->n_places == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`pairs`: the answer '%.*s' of pair %zu is not a token of its prompt",
                        (int)length, answer, number);
    return QKV_OK;
}

/* One line: prompt, tab, answer with the space before it. */
static int read_pair(name_pair *p, const qkv_model *model, size_t number, const char *line,
                     size_t length, qkv_error *err) {
    const char *tab = memchr(line, '\t', length);
    qkv_prompt prompt = QKV_PROMPT_INIT;
    if (!tab || tab == line || tab + 1 == line + length)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`pairs`: pair %zu is not a prompt, a tab and an answer", number);
    const size_t rest = length - (size_t)(tab + 1 - line);
    prompt.text = line;
    prompt.length = (size_t)(tab - line);
    qkv_error why = {0};
    int status = qkv_find_token(model, &p->answer, tab + 1, rest, &why);
    if (status != QKV_OK)
        return qkv_fail(err, status, "`pairs`: the answer of pair %zu: %s", number, why.message);
    status = qkv_prompt_tokenize(&prompt, model, &p->tokens, &p->n_tokens, err);
    return status == QKV_OK ? find_places(p, number, tab + 1, rest, err) : status;
}

/* ---- one pair ---- */

/* The last row of every head. */
typedef struct last_rows {
    float *weights; /* [layer][head][token] */
    size_t n_head, n_tokens;
} last_rows;

static void keep_last(void *user, const qkv_rows *rows) {
    const last_rows *last = user;
    const size_t head = (size_t)rows->layer * last->n_head + (size_t)rows->head;
    if (rows->first_row + rows->n_rows != (int64_t)last->n_tokens) return;
    memcpy(last->weights + head * last->n_tokens, rows->data + (rows->n_rows - 1) * rows->n_keys,
           (size_t)rows->n_keys * sizeof *last->weights);
}

/* Weights of a norm after attention, or NULL: what it divides by changes no rank. */
static int read_post_norm(const qkv_model *model, int32_t layer, float **out, qkv_error *err) {
    qkv_weight found = QKV_WEIGHT_INIT;
    *out = NULL;
    if (qkv_weight_find(model, "post_attn_norm", layer, &found, NULL) != QKV_OK) return QKV_OK;
    *out = qkv_calloc((size_t)found.n_rows, sizeof **out);
    if (!*out) return qkv_fail_memory(err);
    return qkv_weight_read(model, "post_attn_norm", layer, 0, found.n_rows, *out, err);
}

/* What all heads of a layer write for their values at one position: [head][D]. */
static int write_values(const study_inputs *in, int32_t layer, const qkv_tensor *v, size_t place,
                        float *states, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    qkv_layer_info shape = QKV_LAYER_INFO_INIT;
    (void)qkv_model_get_layer(in->model, layer, &shape);
    const int32_t per_group = shape.n_head / shape.n_kv_head;
    float *norm = NULL;
    int status = read_post_norm(in->model, layer, &norm, err);
    for (int32_t h = 0; h < shape.n_head && status == QKV_OK; h++) {
        float *state = states + (size_t)h * (size_t)info->n_embd;
        const size_t row = place * (size_t)shape.n_kv_head + (size_t)(h / per_group);
        status = qkv_head_output(in->model, layer, h, v->data + row * (size_t)shape.value_dim,
                                 state, err);
        for (int32_t i = 0; norm && i < info->n_embd; i++) state[i] *= norm[i];
    }
    free(norm);
    return status;
}

/* copied[h]: is the answer among the first for what head h writes? */
static int find_copies(const study_inputs *in, const float *states, int32_t answer, float *logits,
                       size_t block, uint8_t *copied, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    const size_t n_vocab = (size_t)info->n_vocab, n_head = (size_t)info->n_head;
    int status = QKV_OK;
    for (size_t first = 0; first < n_head && status == QKV_OK; first += block) {
        const size_t n = n_head - first < block ? n_head - first : block;
        status = qkv_unembed(in->session, states + first * (size_t)info->n_embd, n, logits, err);
        for (size_t i = 0; i < n && status == QKV_OK; i++)
            copied[first + i] =
                qkv_logits_rank(logits + i * n_vocab, n_vocab, answer) <= COPIED_RANK;
    }
    return status;
}

typedef struct name_scratch {
    float *states, *logits;
    uint8_t *copied;
    size_t block;
} name_scratch;

static int scratch_open(name_scratch *at, const qkv_model_info *info, qkv_error *err) {
    const size_t n_head = (size_t)info->n_head, row = (size_t)info->n_vocab * sizeof(float);
    at->block = BLOCK_BYTES / row > 0 ? BLOCK_BYTES / row : 1;
    if (at->block > n_head) at->block = n_head;
    at->states = qkv_calloc(n_head * (size_t)info->n_embd, sizeof *at->states);
    at->logits = qkv_calloc(at->block, row);
    at->copied = qkv_calloc(n_head, 1);
    return at->states && at->logits && at->copied ? QKV_OK : qkv_fail_memory(err);
}

static void scratch_release(name_scratch *at) {
    free(at->states);
    free(at->logits);
    free(at->copied);
}

static int add_layer(head_scores *s, const study_inputs *in, const name_pair *p, int32_t layer,
                     const qkv_tensor *v, const last_rows *last, name_scratch *at, qkv_error *err) {
    int status = QKV_OK;
    for (size_t k = 0; k < p->n_places && status == QKV_OK; k++) {
        const size_t place = p->places[k];
        status = write_values(in, layer, v, place, at->states, err);
        if (status == QKV_OK)
            status = find_copies(in, at->states, p->answer, at->logits, at->block, at->copied, err);
        for (size_t h = 0; h < s->n_head && status == QKV_OK; h++) {
            const size_t head = (size_t)layer * s->n_head + h;
            const double weight = (double)last->weights[head * p->n_tokens + place];
            s->name_attention[head] += weight;
            s->name_copying[head] += at->copied[h] / (double)p->n_places;
            s->of[HEAD_NAME_MOVER][head] += at->copied[h] ? weight : 0;
        }
    }
    return status;
}

static int run_pair(const study_inputs *in, const name_pair *p, last_rows *last,
                    qkv_result **result, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.rows = keep_last;
    observer.user = last;
    int status = qkv_plan_new(&plan, in->model, p->tokens, p->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_observe(plan, "pattern@*", err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "v@*", err);
    if (status == QKV_OK) status = qkv_session_observe(in->session, result, plan, &observer, err);
    qkv_plan_free(plan);
    return status;
}

static int add_pair(head_scores *s, const study_inputs *in, const name_pair *p, qkv_error *err) {
    last_rows last = {.n_head = s->n_head, .n_tokens = p->n_tokens};
    name_scratch at = {0};
    qkv_result *result = NULL;
    last.weights = qkv_calloc(s->n_layer * s->n_head * p->n_tokens, sizeof *last.weights);
    int status =
        last.weights ? scratch_open(&at, qkv_model_get_info(in->model), err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = run_pair(in, p, &last, &result, err);
    for (int32_t layer = 0; layer < (int32_t)s->n_layer && status == QKV_OK; layer++) {
        qkv_tensor v = QKV_TENSOR_INIT;
        status = qkv_study_reach(in, (double)s->n_layer + layer, 1, err);
        if (status != QKV_OK) break;
        qkv_layer_info shape = QKV_LAYER_INFO_INIT;
        (void)qkv_model_get_layer(in->model, layer, &shape);
        if (!qkv_result_get(result, 0, QKV_SITE_V, shape.kv_layer, &v))
            status = qkv_fail(err, QKV_ERR_PLAN, "layer %d has no values", (int)layer);
        else
            status = add_layer(s, in, p, layer, &v, &last, &at, err);
    }
    qkv_result_free(result);
    scratch_release(&at);
    free(last.weights);
    return status;
}

/* All layers are run, and then looked at. */
static int watch_pair(head_scores *s, const study_inputs *in, const name_pair *p, qkv_error *err) {
    const size_t n = s->n_layer * s->n_head;
    double *before = qkv_calloc(n, sizeof *before), *sums = s->of[HEAD_NAME_MOVER];
    if (!before) return qkv_fail_memory(err);
    memcpy(before, sums, n * sizeof *before);
    int status = qkv_study_begin(in, "layers", 2 * s->n_layer, err);
    if (status == QKV_OK) {
        status = qkv_study_reach(in, 0, (double)s->n_layer, err);
        if (status == QKV_OK) status = add_pair(s, in, p, err);
        (void)qkv_study_end(in, status);
    }
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        qkv_head_scores_note(s, HEAD_NAME_MOVER, i, sums[i] - before[i]);
    free(before);
    return status;
}

/* ---- all of them ---- */

static void divide(double *x, size_t n, size_t by) {
    for (size_t i = 0; i < n; i++) x[i] /= (double)by;
}

int qkv_head_scores_names(head_scores *s, const study_inputs *in, const char *pairs,
                          qkv_error *err) {
    const size_t n = s->n_layer * s->n_head;
    int status = QKV_OK;
    for (const char *line = pairs; *line && status == QKV_OK;) {
        const size_t length = strcspn(line, "\n");
        const size_t text = length && line[length - 1] == '\r' ? length - 1 : length;
        name_pair p = {0};
        if (text) status = read_pair(&p, in->model, s->n_pairs + 1, line, text, err);
        if (text && status == QKV_OK) status = watch_pair(s, in, &p, err);
        if (text) s->n_pairs++;
        pair_release(&p);
        line += length + (line[length] == '\n');
    }
    if (status == QKV_OK && s->n_pairs == 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`pairs`: there is none");
    if (status != QKV_OK) return status;
    divide(s->of[HEAD_NAME_MOVER], n, s->n_pairs);
    divide(s->name_attention, n, s->n_pairs);
    divide(s->name_copying, n, s->n_pairs);
    return QKV_OK;
}
