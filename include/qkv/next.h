/*
 * Unstable: may change in every version.
 *
 * Next tokens: what the model expects after a text, and how edits change that.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     const char *edits[] = {"z@0.h1=zero"};
 *     qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
 *     how.variants = edits;
 *     how.n_variants = 1;
 *     how.top = 3;
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_next *next = NULL;
 *     qkv_next_token t = QKV_NEXT_TOKEN_INIT;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_next_new(&next, session, tokens, 4, &how, &err) == QKV_OK) {
 *         for (size_t v = 0; v < qkv_next_n_variants(next); v++) {
 *             for (size_t i = 0; qkv_next_get(next, v, i, &t); i++) {
 *                 printf("%d: %.3f (%+.3f)\n", (int)t.token, t.probability, t.probability_change);
 *             }
 *             printf("KL %g\n", qkv_next_kl(next, v));
 *         }
 *     }
 *     qkv_next_free(next);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * Probabilities are the softmax of the logits. KL is KL(baseline || variant) in nats, of the whole
 * distribution. A loss is -ln of the probability that a token of the prompt had, given those before it.
 * All changes are the variant's number minus the baseline's; the baseline's are 0.
 *
 * Variant 0 is the baseline. What comes out depends neither on the session nor on the model. Making it
 * uses the session, and so belongs to its thread.
 */
#ifndef QKV_NEXT_H
#define QKV_NEXT_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/custom.h"
#include "qkv/edit_data.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_next qkv_next;

typedef struct qkv_next_options {
    size_t size;
    const char *const *variants; /* edits as of qkv_plan_add_variant */
    size_t n_variants;
    /* Other prompts that edits name, patch:NAME; as long as this one, unless there are lengths below. */
    const char *const *source_names;
    const int32_t *const *source_tokens;
    size_t n_sources;
    int64_t at;        /* the token after which to look; negative: from the end */
    int64_t top;       /* how many of the most likely tokens of every variant; 0: none */
    const int32_t *of; /* tokens that are looked at whatever their rank */
    size_t n_of;
    const int32_t *diff; /* pairs A, B of tokens: the logit of A minus that of B; 2 n_diff ids */
    size_t n_diff;
    int32_t all; /* 1: the losses of all tokens of the prompt instead; without top, of and diff */
    size_t
        memory; /* bytes for logits at a time, 0: the session's; more logits take several passes */
    /* Functions that edits name, custom:NAME, as of qkv_plan_add_customs. */
    const qkv_custom_edit *customs;
    size_t n_customs;
    const qkv_edit_data *data;    /* vectors and the set that edits name; NULL: none */
    const size_t *source_lengths; /* n_sources; NULL: as long as the prompt */
    /* Answers after the prompt, of one token or more, whose log-probability is wanted: answer_lengths[i]
     * tokens each. Each takes a run of its own, as of qkv_plan_new_answer; `at` is then the last token. */
    const int32_t *const *answers;
    const size_t *answer_lengths;
    size_t n_answers;
} qkv_next_options;

#define QKV_NEXT_OPTIONS_INIT                                                                      \
    { .size = sizeof(qkv_next_options), .at = -1, .top = 10 }

/* What is wrong with the options or the prompt, before anything is computed. */
QKV_API int qkv_next_check(const qkv_model *model, const int32_t *tokens, size_t n_tokens,
                           const qkv_next_options *options, qkv_error *err);
/* Runs the prompt. options may be NULL. Logits that are NaN or Inf are an error that names the
 * variant. */
QKV_API int qkv_next_new(qkv_next **out, qkv_session *session, const int32_t *tokens,
                         size_t n_tokens, const qkv_next_options *options, qkv_error *err);
QKV_API void qkv_next_free(qkv_next *next);

QKV_API size_t qkv_next_n_variants(const qkv_next *next); /* with the baseline */
/* The position that was looked at, from 0 on; -1 where losses were. */
QKV_API int64_t qkv_next_position(const qkv_next *next);

/* One token as the one that comes next. */
typedef struct qkv_next_token {
    size_t size;
    int32_t token;
    int64_t
        rank; /* 1: the most likely one; of equally likely tokens the one with the lower id first */
    int64_t rank_change; /* below 0: it has moved up */
    double logit, logit_change;
    double probability, probability_change;
} qkv_next_token;

#define QKV_NEXT_TOKEN_INIT                                                                        \
    { .size = sizeof(qkv_next_token) }

/* A variant's most likely tokens, in order; its tokens of `of`. Return 0 past the end. */
QKV_API int qkv_next_get(const qkv_next *next, size_t variant, size_t index, qkv_next_token *token);
QKV_API int qkv_next_get_of(const qkv_next *next, size_t variant, size_t index,
                            qkv_next_token *token);
/* The difference of the logits of pair number `index`; *change may be NULL. Returns 0 past the end. */
QKV_API int qkv_next_get_diff(const qkv_next *next, size_t variant, size_t index, double *diff,
                              double *change);
/* An answer as what comes next: the sum of the log-probabilities of its tokens, each given the prompt and
 * the tokens of the answer before it, and e to that. */
typedef struct qkv_next_answer {
    size_t size;
    size_t n_tokens;
    double log_probability, log_probability_change;
    double probability, probability_change;
} qkv_next_answer;

#define QKV_NEXT_ANSWER_INIT                                                                       \
    { .size = sizeof(qkv_next_answer) }

/* A variant's answers, in the order of the options. Returns 0 past the end. */
QKV_API int qkv_next_get_answer(const qkv_next *next, size_t variant, size_t index,
                                qkv_next_answer *answer);
/* NaN where there is no such variant, and where losses were looked at. */
QKV_API double qkv_next_kl(const qkv_next *next, size_t variant);

/* One token of the prompt, as those before it predict it. */
typedef struct qkv_next_loss {
    size_t size;
    int64_t position; /* of the token, from 1 on: nothing predicts the first */
    int32_t token;
    double loss, loss_change;
    int64_t rank, rank_change;
    double kl; /* of the distribution that predicts it */
} qkv_next_loss;

#define QKV_NEXT_LOSS_INIT                                                                         \
    { .size = sizeof(qkv_next_loss) }

/* Returns 0 past the end, and where no losses were looked at. */
QKV_API int qkv_next_get_loss(const qkv_next *next, size_t variant, size_t index,
                              qkv_next_loss *loss);
/* The mean of them; NaN where there are none. */
QKV_API double qkv_next_mean_loss(const qkv_next *next, size_t variant);

/* A variant's edits: the text, NULL past the end; whether what was looked at depends on it; how many
 * values it changed. */
QKV_API const char *qkv_next_edit_text(const qkv_next *next, size_t variant, size_t edit);
QKV_API int qkv_next_edit_ran(const qkv_next *next, size_t variant, size_t edit);
QKV_API uint64_t qkv_next_edit_changed(const qkv_next *next, size_t variant, size_t edit);

/* ---- parts of it ---- */

/* The n most likely tokens of one row of logits, in order. Returns how many there are: n, or n_vocab. */
QKV_API size_t qkv_most_likely_tokens(const float *logits, size_t n_vocab, int32_t *tokens,
                                      size_t n);

/* The token whose text this is, with spaces before a word: " Paris"; a control token by its name. Of
 * several the one that the tokenizer makes of the text, or else the first. A text that is not a token is an
 * error that names the tokens it consists of. */
QKV_API int qkv_find_token(const qkv_model *model, int32_t *token, const char *text, size_t length,
                           qkv_error *err);
/* The tokens of an answer: a text that follows a prompt. One token where the text is one, as above; else
 * the token of the same text with a space before it ("sea": " sea"), and then *spaced, which may be NULL,
 * is 1; else the tokens that the tokenizer makes of it after another text. *tokens is freed with
 * qkv_tokens_free. */
QKV_API int qkv_find_answer(const qkv_model *model, int32_t **tokens, size_t *n_tokens, int *spaced,
                            const char *text, size_t length, qkv_error *err);
/* Two answers that are compared. As above, but where one of them is a token only with a space before it, the
 * other gets one too, unless it begins with white space; spaced[i] says which got one. An error where that is
 * not a token. tokens[0] and tokens[1] are freed with qkv_tokens_free. */
QKV_API int qkv_find_answer_pair(const qkv_model *model, int32_t *tokens[2], size_t n_tokens[2],
                                 int spaced[2], const char *const texts[2], const size_t lengths[2],
                                 qkv_error *err);
/* *lacks: does the answer most likely lack a space before it? So it is where it has several tokens and begins
 * with a word, the prompt does not end in white space, and with a space it would be as many tokens or fewer. */
QKV_API int qkv_answer_lacks_space(const qkv_model *model, int *lacks, const int32_t *prompt,
                                   size_t n_prompt, const int32_t *answer, size_t n_answer,
                                   qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
