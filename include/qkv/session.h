/*
 * Sessions run plans; results hold what was captured.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_plan *plan = NULL;
 *     qkv_result *result = NULL;
 *     qkv_tensor t = QKV_TENSOR_INIT; // shape: [heads, queries, keys]
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *         qkv_plan_add_capture(plan, "pattern@3", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_session_run(session, &result, plan, &err) == QKV_OK &&
 *         qkv_result_get(result, 0, QKV_SITE_PATTERN, 3, &t)) {
 *         const int64_t head = 1, query = 2, key = 0;
 *         printf("%g\n", t.data[(head * t.shape[1] + query) * t.shape[2] + key]);
 *     }
 *     qkv_result_free(result);
 *     qkv_session_free(session);
 *     qkv_plan_free(plan);
 *     qkv_model_free(model);
 *
 * A session is mutable and belongs to one thread at a time; several sessions may share a model,
 * which they keep alive. A result is independent of the session and the plan it came from. A session
 * can be used after a run that failed.
 *
 * Sessions may run at the same time, in threads of their own, and each gives the bits that it gives
 * alone. Results do not depend on n_threads. OpenMP's settings of the calling thread are as before
 * when a run ends.
 *
 * A process that was forked after the library was loaded computes with one thread, whatever n_threads
 * says: fork does not copy the other threads. A program that wants them starts the process anew (exec). Fork
 * while no other thread is in a call of the library.
 */
#ifndef QKV_SESSION_H
#define QKV_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/model.h"
#include "qkv/plan.h"
#include "qkv/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_session qkv_session;
typedef struct qkv_result qkv_result;

typedef struct qkv_session_options {
    size_t size;
    /* 0 = all cores. Results do not depend on it. At most OMP_THREAD_LIMIT. */
    int32_t n_threads;
    /* Bytes for attention maps, batches and the kept trunk; 0 = 256 MiB. Results do not depend on
     * it. One variant's pass is the least there is, even where it takes more. */
    size_t memory_budget;
} qkv_session_options;

#define QKV_SESSION_OPTIONS_INIT                                                                   \
    { .size = sizeof(qkv_session_options) }

/* options may be NULL for the defaults. */
QKV_API int qkv_session_new(qkv_session **out, const qkv_model *model,
                            const qkv_session_options *options, qkv_error *err);
QKV_API void qkv_session_free(qkv_session *session);
QKV_API const qkv_model *qkv_session_model(const qkv_session *session);
/* What computes, "CPU AVX2 FMA" with what the processor can do; NULL without a session. */
QKV_API const char *qkv_session_backend(const qkv_session *session);

/* From now on a callback watches what the session computes, and can stop it: qkv/progress.h. NULL:
 * none. The struct is copied, `user` is borrowed until another callback is set. */
QKV_API int qkv_session_set_progress(qkv_session *session, const qkv_progress *progress,
                                     qkv_error *err);

/* Work that takes several runs. From here to qkv_session_end_work the callback is told of `total` of
 * `what`, and no longer of the runs: each of them counts as one. `what` is borrowed until then. Works can
 * lie inside each other: the outermost is told of. */
QKV_API int qkv_session_begin_work(qkv_session *session, const char *what, double total,
                                   qkv_error *err);
/* Where runs do not count as one each: `done` are done, and all runs until the next call are `next` of
 * them. Calls the callback: QKV_OK, or QKV_ERR_CANCELLED. */
QKV_API int qkv_session_reach(qkv_session *session, double done, double next, qkv_error *err);
/* For each work that has begun, also after a failure. Returns `status`. After QKV_OK the callback is told
 * that all of it is done; it is then too late to stop it. */
QKV_API int qkv_session_end_work(qkv_session *session, int status);

/* What a run took. */
typedef struct qkv_run_stats {
    size_t size;
    uint64_t n_passes;
    uint64_t n_matmul;    /* products of a weight with activations */
    uint64_t n_attention; /* products inside attention */
    double flop;          /* of all of them */
    double weight_bytes;  /* bytes of weights read */
} qkv_run_stats;

#define QKV_RUN_STATS_INIT                                                                         \
    { .size = sizeof(qkv_run_stats) }

/* Runs a plan. A captured tensor that holds NaN or Inf is an error that names its variant, site and
 * layer, and so are an edit and a norm on the way whose values become too large for F32. */
QKV_API int qkv_session_run(qkv_session *session, qkv_result **out, const qkv_plan *plan,
                            qkv_error *err);

/* Says in plain text what running the plan on this session would do: one line per pass, with
 * what it starts from, what it keeps, and what it costs. Nothing is computed. Freed with
 * qkv_text_free. */
QKV_API int qkv_session_explain(qkv_session *session, char **text, const qkv_plan *plan,
                                qkv_error *err);

/* What all runs of the session took together, also those that failed. Returns 1, or 0 without a
 * session. */
QKV_API int qkv_session_get_stats(const qkv_session *session, qkv_run_stats *stats);

/* ---- results ---- */

/* One captured tensor, F32, row-major. data and heads belong to the result. */
typedef struct qkv_tensor {
    size_t size;
    const float *data;
    int32_t n_dims;
    int64_t shape[3];     /* as in the table of sites; only the captured heads */
    const int32_t *heads; /* which heads (of the site) they are, NULL for a site without heads */
    int32_t n_heads;
    qkv_reduction reduction; /* NONE unless the capture asked for one */
    char head_kind;          /* 'h': query heads, 'g': key/value heads, 0: the site has none */
    const int64_t *channels; /* which ones, where the capture names some: shape has only them */
    int64_t n_channels;      /* 0: all */
} qkv_tensor;

#define QKV_TENSOR_INIT                                                                            \
    { .size = sizeof(qkv_tensor) }

QKV_API void qkv_result_free(qkv_result *result);
QKV_API size_t qkv_result_n_variants(const qkv_result *result);
/* Returns 1, or 0 without a result. */
QKV_API int qkv_result_get_stats(const qkv_result *result, qkv_run_stats *stats);

/* Fills *tensor and returns 1, or returns 0 when that was not captured. layer is ignored for
 * logits. Where no edit of the variant can reach the tensor, it is the baseline's own: the same
 * pointer. */
QKV_API int qkv_result_get(const qkv_result *result, size_t variant, qkv_site site, int32_t layer,
                           qkv_tensor *tensor);

/* The same for a capture that was reduced. */
QKV_API int qkv_result_get_reduced(const qkv_result *result, size_t variant,
                                   qkv_reduction reduction, int32_t layer, qkv_tensor *tensor);

/* Walks over everything captured: returns 0 when index is past the end. Each of the places to fill
 * may be NULL. */
QKV_API int qkv_result_item(const qkv_result *result, size_t index, size_t *variant, qkv_site *site,
                            int32_t *layer, qkv_tensor *tensor);

/* The edits of a variant, and how many elements each of them changed (wrote a different value to).
 */
QKV_API size_t qkv_result_n_edits(const qkv_result *result, size_t variant);
QKV_API const char *qkv_result_edit_text(const qkv_result *result, size_t variant, size_t edit);
QKV_API uint64_t qkv_result_edit_changed(const qkv_result *result, size_t variant, size_t edit);
/* 0 when nothing that was captured depends on the edit (values edited, their own layer's pattern
 * looked at; another head of the layer; a later token). By itself it was then not computed, and all
 * captures are the baseline's own. */
QKV_API int qkv_result_edit_ran(const qkv_result *result, size_t variant, size_t edit);
/* 1 when the edit shows nowhere: it changed no value, or was not computed. */
QKV_API int qkv_result_edit_is_idle(const qkv_result *result, size_t variant, size_t edit);
/* How many elements the edit's selector covers. */
QKV_API uint64_t qkv_result_edit_selected(const qkv_result *result, size_t variant, size_t edit);

#ifdef __cplusplus
}
#endif

#endif
