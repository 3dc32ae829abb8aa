/*
 * Answers to the tests of retrieval heads, and what every head has copied. The text is generated first;
 * then one pass over prompt and answer shows each head's weights row by row, of which nothing is kept but
 * where the largest of the answer's queries lies.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "qkv/generate.h"
#include "run/run.h"
#include "study/retrieval.h"

/* ---- decoding ---- */

/* The paper's code ends an answer at the token <0x0A>, which byte-level tokenizers do not have, and at
 * number 144, whatever that is. */
enum { CODES_END = 144 };

static int ends_for_code(const qkv_model *model, int32_t token, const char *text) {
    return token == CODES_END || (strcmp(text, "\n") == 0 &&
                                  strncmp(qkv_model_get_info(model)->tokenizer, "bpe", 3) != 0);
}

/* Whether an answer ends with its last token: at a line break after some text. */
static int is_last(const retrieval *r, const retrieval_test *test, int *ends, qkv_error *err) {
    *ends = 0;
    for (size_t i = 0, has_text = 0; i < test->n_answer; i++) {
        char *text = NULL;
        size_t length = 0;
        const int status = qkv_token_text(r->in->model, &text, &length, test->answer[i], err);
        if (status != QKV_OK) return status;
        has_text |= strspn(text, " \t\r\n") < length;
        *ends = r->how->parity ? ends_for_code(r->in->model, test->answer[i], text)
                               : has_text && memchr(text, '\n', length);
        qkv_text_free(text);
    }
    return QKV_OK;
}

/* One more token of the answer, the most likely one. *ends: it is the last, or there is none. */
static int choose(const retrieval *r, const qkv_generator *generator, retrieval_test *test,
                  int *ends, qkv_error *err) {
    const size_t n_vocab = (size_t)qkv_model_get_info(r->in->model)->n_vocab;
    const int32_t token = qkv_sample_greedy(qkv_generator_logits(generator, 0), n_vocab);
    *ends = !r->how->parity && qkv_is_end_token(r->in->model, token);
    if (*ends) return QKV_OK;
    test->answer[test->n_answer++] = token;
    const int status = is_last(r, test, ends, err);
    *ends |= test->n_answer == r->n_new;
    return status;
}

static int decode(const retrieval *r, retrieval_test *test, qkv_error *err) {
    qkv_generator *generator = NULL;
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    int ends = 0;
    how.max_new = r->n_new;
    int status =
        qkv_generator_new(&generator, r->in->model, test->tokens, test->n_tokens, &how, err);
    if (status == QKV_OK) status = qkv_session_feed(r->in->session, generator, NULL, err);
    while (status == QKV_OK && !ends) {
        status = choose(r, generator, test, &ends, err);
        if (status == QKV_OK && !ends)
            status =
                qkv_session_feed(r->in->session, generator, &test->answer[test->n_answer - 1], err);
    }
    qkv_generator_free(generator);
    return status;
}

/* ---- where heads look ---- */

typedef struct gaze {
    int64_t first, end; /* queries that predict the answer */
    size_t n_head;
    int32_t *at; /* heads × these queries: the key with the largest weight, the first of equals */
} gaze;

static int32_t largest_of(const float *weights, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        if (weights[i] > weights[best]) best = i;
    }
    return (int32_t)best;
}

static void look(void *user, const qkv_rows *rows) {
    const gaze *g = user;
    const size_t head = (size_t)rows->layer * g->n_head + (size_t)rows->head;
    int32_t *at = g->at + head * (size_t)(g->end - g->first);
    for (int64_t i = 0; i < rows->n_rows; i++) {
        const int64_t query = rows->first_row + i;
        if (query >= g->first && query < g->end)
            at[query - g->first] = largest_of(rows->data + i * rows->n_keys, rows->n_keys);
    }
}

static uint32_t count_copies(const retrieval *r, const retrieval_test *test, const int32_t *at,
                             uint8_t *is_copied) {
    uint32_t n = 0;
    memset(is_copied, 0, test->end - test->start);
    for (size_t i = 0; i < test->n_answer; i++) {
        const size_t key = (size_t)at[i];
        if (key < test->start || key >= test->end || test->tokens[key] != test->answer[i]) continue;
        n += r->how->parity || !is_copied[key - test->start];
        is_copied[key - test->start] = 1;
    }
    return n;
}

/* The share of the answer's tokens that the model would have chosen itself. */
static double share_of_first(const qkv_result *result, const retrieval_test *test) {
    qkv_tensor logits = QKV_TENSOR_INIT;
    size_t n = 0;
    if (!qkv_result_get(result, 0, QKV_SITE_LOGITS, -1, &logits)) return (double)NAN;
    for (size_t i = 0; i < test->n_answer; i++) {
        const size_t n_vocab = (size_t)logits.shape[1];
        n += qkv_sample_greedy(logits.data + i * n_vocab, n_vocab) == test->answer[i];
    }
    return (double)n / (double)test->n_answer;
}

static int make_plan(const retrieval *r, const retrieval_test *test, qkv_plan **plan,
                     qkv_error *err) {
    const size_t n = test->n_tokens + test->n_answer - 1;
    int32_t *tokens = qkv_calloc(n, sizeof *tokens);
    char capture[64];
    if (!tokens) return qkv_fail_memory(err);
    memcpy(tokens, test->tokens, test->n_tokens * sizeof *tokens);
    memcpy(tokens + test->n_tokens, test->answer, (test->n_answer - 1) * sizeof *tokens);
    int status = qkv_plan_new(plan, r->in->model, tokens, n, err);
    if (status == QKV_OK) status = qkv_plan_observe(*plan, "pattern@*", err);
    snprintf(capture, sizeof capture, "logits[%zu:]", test->n_tokens - 1);
    if (status == QKV_OK && r->how->decode == RETRIEVAL_FORCED)
        status = qkv_plan_add_capture(*plan, capture, err);
    free(tokens);
    return status;
}

static int read_heads(const retrieval *r, retrieval_test *test, qkv_error *err) {
    gaze g = {.first = (int64_t)test->n_tokens - 1,
              .end = (int64_t)(test->n_tokens + test->n_answer) - 1,
              .n_head = r->n_head,
              .at = qkv_calloc(r->n_heads * test->n_answer, sizeof *g.at)};
    uint8_t *is_copied = qkv_calloc(test->end - test->start, 1);
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.rows = look;
    observer.user = &g;
    int status = g.at && is_copied ? make_plan(r, test, &plan, err) : qkv_fail_memory(err);
    if (status == QKV_OK)
        status = qkv_session_observe(r->in->session, &result, plan, &observer, err);
    for (size_t i = 0; i < r->n_heads && status == QKV_OK; i++)
        test->copied[i] = count_copies(r, test, g.at + i * test->n_answer, is_copied);
    if (status == QKV_OK && r->how->decode == RETRIEVAL_FORCED)
        test->recall = share_of_first(result, test);
    qkv_result_free(result);
    qkv_plan_free(plan);
    free(is_copied);
    free(g.at);
    return status;
}

/* ---- one test ---- */

int qkv_retrieval_read_answer(const retrieval *r, retrieval_test *test, qkv_error *err) {
    int status = qkv_prompt_new_text(r->in->model, test->tokens, test->n_tokens, test->answer,
                                     test->n_answer, &test->text, err);
    if (status == QKV_OK && r->how->decode == RETRIEVAL_GREEDY)
        test->recall = qkv_retrieval_recall(r->needles[test->needle].answer, test->text);
    return status;
}

int qkv_retrieval_answer(const retrieval *r, retrieval_test *test, qkv_error *err) {
    const int is_forced = r->how->decode == RETRIEVAL_FORCED;
    const size_t most = is_forced ? test->end - test->start : r->n_new;
    test->answer = qkv_calloc(most, sizeof *test->answer);
    test->copied = qkv_calloc(r->n_heads, sizeof *test->copied);
    if (!test->answer || !test->copied) return qkv_fail_memory(err);
    int status = QKV_OK;
    if (is_forced) {
        memcpy(test->answer, test->tokens + test->start, most * sizeof *test->answer);
        test->n_answer = most;
    } else {
        status = decode(r, test, err);
    }
    if (status == QKV_OK && test->n_answer) status = read_heads(r, test, err);
    if (status == QKV_OK) status = qkv_retrieval_read_answer(r, test, err);
    return status;
}
