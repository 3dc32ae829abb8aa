/*
 * Unstable: may change in every version.
 *
 * Observers: looking at what a run computes while it is computed, without keeping it.
 *
 *     static void look(void *user, const qkv_rows *rows) {
 *         double *sums = user; // one head: called by one thread at a time
 *         for (int64_t r = 0; r < rows->n_rows; r++) {
 *             sums[rows->variant] += rows->data[r * rows->n_keys];
 *         }
 *     }
 *
 *     int main(void) {
 *         const int32_t tokens[] = {1, 20, 30, 40};
 *         double sums[2] = {0};
 *         qkv_error err = {0};
 *         qkv_model *model = NULL;
 *         qkv_session *session = NULL;
 *         qkv_plan *plan = NULL;
 *         qkv_result *result = NULL;
 *         qkv_observer observer = QKV_OBSERVER_INIT;
 *         observer.rows = look;
 *         observer.user = sums;
 *         if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *             qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *             qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *             qkv_plan_add_variant(plan, "q@0.h2=zero", NULL, &err) == QKV_OK &&
 *             qkv_plan_observe(plan, "pattern@0.h2", &err) == QKV_OK &&
 *             qkv_session_observe(session, &result, plan, &observer, &err) == QKV_OK) {
 *             printf("weight on the first key: %g, edited %g\n", sums[0], sums[1]);
 *         }
 *         qkv_result_free(result);
 *         qkv_plan_free(plan);
 *         qkv_session_free(session);
 *         qkv_model_free(model);
 *         return err.status ? 1 : 0;
 *     }
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
#ifndef QKV_OBSERVE_H
#define QKV_OBSERVE_H

#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

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
QKV_API int qkv_plan_observe(qkv_plan *plan, const char *what, qkv_error *err);

/* Which layers and heads such a text names, without observing them: n_layer and H bytes, 0 or 1. */
QKV_API int qkv_plan_select(const qkv_plan *plan, const char *what, uint8_t *layers, uint8_t *heads,
                            qkv_error *err);

/* qkv_session_run with an observer. A plan with observed patterns cannot be run without one. A row
 * that holds NaN or Inf is an error when its pass is done; the observer may have seen it. */
QKV_API int qkv_session_observe(qkv_session *session, qkv_result **out, const qkv_plan *plan,
                                const qkv_observer *observer, qkv_error *err);

/* Keys that a query may see in a layer: from *first on, before *end; 0 and 0 where there is no such
 * layer or query. */
QKV_API void qkv_visible_keys(const qkv_model *model, int32_t layer, int64_t n_tokens,
                              int64_t query, int64_t *first, int64_t *end);

#ifdef __cplusplus
}
#endif

#endif
