/*
 * What the rooms above use of run/ beside the public headers.
 *
 * Observers: looking at what a run computes while it is computed, without keeping it.
 *
 * Rows of patterns arrive in blocks of consecutive queries, each row of each head exactly once, in
 * any order of blocks. Rows that a variant cannot change (an untouched head of the edited layer, a
 * layer below, values edited and their own layer's pattern looked at) are not computed and do not
 * arrive: they are the baseline's.
 *
 * Threads: `rows` is called from several threads at once, for one variant, layer and head by one at
 * a time; the blocks of a head happen one after the other. `tensor` is called from the thread
 * that runs the plan, while no `rows` call is under way. `rows` must not run a session: the pass that
 * calls it would wait for itself.
 */
#ifndef QKV_RUN_RUN_H
#define QKV_RUN_RUN_H

#include "qkv/custom.h"
#include "qkv/edit_data.h"
#include "qkv/generate.h"
#include "qkv/session.h"

/* A block of rows of one head's attention weights. Valid during the call. */
typedef struct qkv_rows {
    size_t size; /* of the library's struct: fields beyond it are not there */
    size_t variant;
    int32_t layer, head;
    int64_t first_row, n_rows; /* queries */
    int64_t n_keys;            /* keys from 0 on; the weights of those beyond are 0 */
    const float *data;         /* n_rows x n_keys */
    const float *baseline;     /* the unedited run's; NULL unless the observer compares */
} qkv_rows;

typedef struct qkv_observer {
    size_t size;
    void *user;
    /* Blocks of the patterns that qkv_plan_observe names. */
    void (*rows)(void *user, const qkv_rows *rows);
    /* Every captured tensor, as soon as its pass is done; may be NULL: then results hold them as
     * ever. Otherwise the result keeps those of the baseline only, which stay valid until the run
     * returns, and a tensor that a variant cannot change does not arrive for it. A status other
     * than QKV_OK ends the run. */
    int (*tensor)(void *user, size_t variant, qkv_site site, int32_t layer,
                  const qkv_tensor *tensor, qkv_error *err);
    /* 1: rows of variants come with the baseline's, which each pass then carries */
    int32_t compare;
} qkv_observer;

#define QKV_OBSERVER_INIT                                                                          \
    { .size = sizeof(qkv_observer) }

/* Names patterns whose rows an observer gets: SITE[@LAYERS[.HEADS]] as in a capture; the site must
 * be pattern. */
int qkv_plan_observe(qkv_plan *plan, const char *what, qkv_error *err);

/* Which layers and heads such a text names, without observing them: n_layer and H bytes, 0 or 1. */
int qkv_plan_select(const qkv_plan *plan, const char *what, uint8_t *layers, uint8_t *heads,
                    qkv_error *err);

/* qkv_session_run with an observer. A plan with observed patterns cannot be run without one. A row
 * that holds NaN or Inf is an error when its pass is done; the observer may have seen it. */
int qkv_session_observe(qkv_session *session, qkv_result **out, const qkv_plan *plan,
                        const qkv_observer *observer, qkv_error *err);

/* Keys that a query may see in a layer: from *first on, before *end; 0 and 0 where there is no such
 * layer or query. */
void qkv_visible_keys(const qkv_model *model, int32_t layer, int64_t n_tokens, int64_t query,
                      int64_t *first, int64_t *end);
/* ---- what a plan holds ---- */

/* QKV_SITE_COUNT when there is no such site. */
qkv_site qkv_site_by_name(const char *name);

/* Where in the text of the last variant, when qkv_plan_add_variant refused it, the mistake is: in
 * bytes, both may be NULL. The wrong word or number where one edit is wrong by itself, the whole text
 * where several do not go together. Returns 1, or 0 when it was not refused or the place is not
 * known. */
int qkv_plan_mistake(const qkv_plan *plan, size_t *at, size_t *length);

/* One edit of a variant as it was understood. Everything belongs to the plan. Lists have a byte for
 * each layer, head, token or channel, 0 or 1; NULL: all of them. */
typedef struct qkv_edit_info {
    size_t size;
    const char *text; /* "q@3.h1=scale:1e-3" */
    qkv_site site;
    const char *op;    /* "scale" */
    double number;     /* factor, value or deviation; 0 where the operation has none */
    uint64_t selected; /* elements that the selector covers */
    const uint8_t *layers;
    char head_kind; /* as it was written: 'h' query heads, 'g' key/value heads, 0: none named */
    const uint8_t *heads;
    int32_t n_heads;
    const uint8_t *rows; /* tokens; of scores and pattern: queries */
    const uint8_t *cols; /* of scores and pattern: keys */
    const uint8_t *channels;
    int64_t n_channels; /* that the site has; 0 for scores and pattern */
} qkv_edit_info;

#define QKV_EDIT_INFO_INIT                                                                         \
    { .size = sizeof(qkv_edit_info) }

/* Fills *info and returns 1, or returns 0 where there is no such variant or edit. */
int qkv_plan_get_edit(const qkv_plan *plan, size_t variant, size_t edit, qkv_edit_info *info);

/* 1 when the edit covers something of this layer that this query head reads or is: on k and v, a
 * key/value head counts for all query heads that share it. */
int qkv_plan_edit_covers(const qkv_plan *plan, size_t variant, size_t edit, int32_t layer,
                         int32_t head);

/* The same of any site without a layer. */
int qkv_plan_wants_token(const qkv_plan *plan, qkv_site site, size_t token);

const char *qkv_plan_source(const qkv_plan *plan, size_t index, const int32_t **tokens);

/* The name of a source, NULL past the end; *tokens receives qkv_plan_source_length tokens. A prompt that
 * patch:resample has drawn is called set:NUMBER. */
size_t qkv_plan_source_length(const qkv_plan *plan, size_t index); /* 0 past the end */

/* Several at once, an array, all of one size. They stay the caller's, who keeps what they need until the
 * plan is freed: `release` must be NULL. */
int qkv_plan_add_customs(qkv_plan *plan, const qkv_custom_edit *customs, size_t n, qkv_error *err);

/* The names of a plan's functions; NULL past the end. */
const char *qkv_plan_custom(const qkv_plan *plan, size_t index);

/* ---- what edits name ---- */

/* One vector; everything belongs to the object. */
typedef struct qkv_vector_info {
    size_t size;
    const char *name;
    const float *values;
    int32_t n_dims;
    int64_t shape[QKV_VECTOR_MAX_DIMS];
    const char *hash; /* XXH3-128 of shape and values, 32 hexadecimal digits */
} qkv_vector_info;

#define QKV_VECTOR_INFO_INIT                                                                       \
    { .size = sizeof(qkv_vector_info) }

/* Fills *info and returns 1, or returns 0 past the end. */
int qkv_edit_data_vector(const qkv_edit_data *data, size_t index, qkv_vector_info *info);

/* A prompt of the set, NULL past the end; *n_tokens may be NULL. */
const int32_t *qkv_edit_data_prompt(const qkv_edit_data *data, size_t index, size_t *n_tokens);

/* XXH3-128 of the set's tokens, 32 hexadecimal digits; NULL: there is no set. */
const char *qkv_edit_data_prompts_hash(const qkv_edit_data *data);

/* ---- sessions ---- */

const char *qkv_session_ggml(const qkv_session *session);

/* The bytes of its memory_budget; 0 without a session. */
size_t qkv_session_memory(const qkv_session *session);

/* Calls the callback, for work of the caller's own around the session's: QKV_OK, or
 * QKV_ERR_CANCELLED when it says stop. Inside a work it tells how much is done of what is at hand. */
int qkv_session_report(qkv_session *session, const char *what, double done, double total,
                       qkv_error *err);

/* The numbers of that alone. */
int qkv_session_estimate(qkv_session *session, qkv_run_stats *stats, const qkv_plan *plan,
                         qkv_error *err);

/* ---- generating ---- */

/* The tokens that a variant was fed, the prompt's first. */
const int32_t *qkv_generator_tokens(const qkv_generator *generator, size_t variant,
                                    size_t *n_tokens);

/* The most likely token; of several the first. -1 where there is none to choose from. */
int32_t qkv_sample_greedy(const float *logits, size_t n_vocab);

#endif
