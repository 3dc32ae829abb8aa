/* What circuits are computed of: the options of qkv/circuits.h, checked and written out. */
#ifndef QKV_MEASURE_CIRCUIT_JOB_H
#define QKV_MEASURE_CIRCUIT_JOB_H

#include "measure/circuits.h"
#include "model/model.h"

typedef struct qkv_circuit_job {
    qkv_session *session;
    const qkv_model *model;
    int32_t *layers, *heads; /* the chosen ones */
    size_t n_layers, n_heads;
    int64_t width, d;            /* D, d */
    int64_t rank;                /* min(D, d) */
    int64_t n_groups, per_group; /* key/value heads; query heads that share one */
    int fold;
    int n_threads;
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
} qkv_circuit_job;

/* Released also after a failure. */
int qkv_circuit_job_open(qkv_circuit_job *job, qkv_session *session,
                         const qkv_circuit_options *options, qkv_error *err);
void qkv_circuit_job_release(qkv_circuit_job *job);

/* Tells how far the work is, to the session's callback, for which `before` was done before, and to the
 * caller's own. */
int qkv_circuit_job_step(const qkv_circuit_job *job, double before, size_t done, size_t total,
                         qkv_error *err);

/* R of the QR decomposition of the transposed factor, of which head number `head` has d rows:
 * rank x d, row-major. */
int qkv_circuit_triangle(const qkv_circuit_job *job, const float *factor, int64_t head, double *r,
                         qkv_error *err);

#endif
