/*
 * Unstable: may change in every version.
 *
 * Generation: a text that grows token by token, with and without edits at once.
 *
 *     const int32_t prompt[] = {1, 20, 30, 40};
 *     const char *edits[] = {"z@0.h1=zero"};
 *     qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
 *     how.max_new = 5;
 *     how.variants = edits;
 *     how.n_variants = 1;
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_generator *generator = NULL;
 *     int32_t next[2]; // of the baseline, and of the variant
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_generator_new(&generator, model, prompt, 4, &how, &err) == QKV_OK &&
 *         qkv_session_feed(session, generator, NULL, &err) == QKV_OK) { // the prompt
 *         const size_t n_vocab = (size_t)qkv_model_get_info(model)->n_vocab;
 *         for (int i = 0; i < 5; i++) {
 *             for (size_t v = 0; v < 2; v++) {
 *                 const float *logits = qkv_generator_logits(generator, v);
 *                 if (qkv_sample(NULL, logits, n_vocab, 0, &next[v], &err) != QKV_OK) break; // greedy
 *                 printf("%d%c", (int)next[v], v ? '\n' : ' ');
 *             }
 *             if (qkv_session_feed(session, generator, next, &err) != QKV_OK) break;
 *         }
 *     }
 *     qkv_generator_free(generator);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * A generator keeps the keys and values of all tokens so far, for every variant, and computes new
 * tokens only. The logits are those of a pass over the whole text with the same edits. It keeps its
 * model alive, not the session, and belongs to one thread at a time; a feed that fails leaves it as it
 * was.
 *
 * Edits are those of qkv/plan.h. Token numbers count through prompt and new tokens; negative ones
 * count back from the end of the prompt. An edit that needs tokens which are not there yet (a mean over
 * tokens, weights on later keys) is refused, unless `recompute` is set.
 */
#ifndef QKV_GENERATE_H
#define QKV_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/custom.h"
#include "qkv/edit_data.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_generator qkv_generator;

/* On which tokens edits act. */
enum qkv_edit_tokens { QKV_EDIT_ALL, QKV_EDIT_PROMPT, QKV_EDIT_NEW };

typedef struct qkv_generator_options {
    size_t size;
    size_t max_new;              /* tokens that may follow the prompt */
    const char *const *variants; /* edits as of qkv_plan_add_variant */
    size_t n_variants;
    /* Other prompts that edits name, patch:NAME; as long as this one, unless there are lengths below. */
    const char *const *source_names;
    const int32_t *const *source_tokens;
    size_t n_sources;
    int32_t edit_tokens; /* enum qkv_edit_tokens */
    int32_t recompute;   /* 1: a pass over the whole text for every token; nothing is cached */
    /* Functions that edits name, custom:NAME, as of qkv_plan_add_customs. Without `recompute` they must
     * work `by_token`. */
    const qkv_custom_edit *customs;
    size_t n_customs;
    const qkv_edit_data *data;    /* vectors and the set that edits name; NULL: none */
    const size_t *source_lengths; /* n_sources; NULL: as long as the prompt */
} qkv_generator_options;

#define QKV_GENERATOR_OPTIONS_INIT                                                                 \
    { .size = sizeof(qkv_generator_options) }

/* Checks everything and computes nothing. options may be NULL. */
QKV_API int qkv_generator_new(qkv_generator **out, const qkv_model *model, const int32_t *tokens,
                              size_t n_tokens, const qkv_generator_options *options,
                              qkv_error *err);
QKV_API void qkv_generator_free(qkv_generator *generator);

QKV_API size_t qkv_generator_n_variants(const qkv_generator *generator); /* with the baseline */
/* Bytes that keys and values will take at most. */
QKV_API size_t qkv_generator_memory(const qkv_generator *generator);
/* Says in plain text what is kept, and what variants share. Freed with qkv_text_free. */
QKV_API int qkv_generator_explain(const qkv_generator *generator, char **text, qkv_error *err);

/* In place of a token: the variant ends here. */
enum { QKV_NO_NEXT = -1 };

/* Computes the prompt (the first time; next is NULL), or one more token for every variant: next[v], or
 * QKV_NO_NEXT. A variant that has ended stays so. */
QKV_API int qkv_session_feed(qkv_session *session, qkv_generator *generator, const int32_t *next,
                             qkv_error *err);

/* The logits after a variant's last token, one for each token of the vocabulary, until the next feed;
 * NULL before the prompt was fed, and for a variant that has ended. */
QKV_API const float *qkv_generator_logits(const qkv_generator *generator, size_t variant);
/* A variant's edits: the text, NULL past the end; how many elements it has changed so far. */
QKV_API const char *qkv_generator_edit_text(const qkv_generator *generator, size_t variant,
                                            size_t edit);
QKV_API uint64_t qkv_generator_edit_changed(const qkv_generator *generator, size_t variant,
                                            size_t edit);

/* A plan of the text that a variant has now: variant 1 of it has the edits, on the same tokens as here
 * (the baseline's plan has none). For captures and metrics of prompt and new text in one pass. Prompts
 * to patch from are followed by the same new tokens there. */
QKV_API int qkv_generator_plan(const qkv_generator *generator, qkv_plan **out, size_t variant,
                               qkv_error *err);

/* The text that the unedited model makes of the tokens, with the most likely one each time: they and
 * up to max_new more, fewer where a token ends the text, which is left out. For programs that look at a text
 * as a whole later. *out is freed with qkv_tokens_free. */
QKV_API int qkv_session_continue(qkv_session *session, const int32_t *tokens, size_t n_tokens,
                                 size_t max_new, int32_t **out, size_t *n_out, qkv_error *err);

/* ---- choosing the next token ---- */

/* How tokens are drawn. What is cut off is cut off in this order: top_k, top_p, min_p; and before
 * that, logits are divided by the temperature. */
typedef struct qkv_sampler_options {
    size_t size;
    double temperature; /* 0: greedy */
    int64_t top_k;      /* the k most likely; 0: all */
    double top_p;       /* the fewest that have this share of the probability; 0 or 1: all */
    double min_p;       /* those at least this likely in relation to the most likely one; 0: all */
    uint64_t seed;
} qkv_sampler_options;

#define QKV_SAMPLER_OPTIONS_INIT                                                                   \
    { .size = sizeof(qkv_sampler_options) }

/* Refuses numbers that cannot be meant. */
QKV_API int qkv_sampler_check(const qkv_sampler_options *options, qkv_error *err);
/* Draws a token. The same logits, options and step give the same token on every machine: the draw is
 * keyed by seed and step, and all arithmetic is that of IEEE 754. */
QKV_API int qkv_sample(const qkv_sampler_options *options, const float *logits, size_t n_vocab,
                       uint64_t step, int32_t *token, qkv_error *err);
/* The logarithm of a token's probability, as the model gives it (temperature 1, nothing cut off). NaN
 * for a token outside the vocabulary. */
QKV_API double qkv_log_probability(const float *logits, size_t n_vocab, int32_t token);

#ifdef __cplusplus
}
#endif

#endif
