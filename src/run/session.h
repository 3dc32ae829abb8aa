/*
 * What a session owns: the backends that compute, and the scheduler that spreads a graph over them.
 */
#ifndef QKV_RUN_SESSION_H
#define QKV_RUN_SESSION_H

#include "ggml-backend.h"
#include "qkv/session.h"
#include "run/graph.h"

#define QKV_MAX_BACKENDS 8

struct qkv_session {
    const qkv_model *model;
    int n_threads;
    ggml_backend_t backends[QKV_MAX_BACKENDS]; /* BLAS and the like first, the CPU last */
    int n_backends;
    ggml_backend_sched_t scheduler;
};

/* Allocates, fills the inputs and computes. `resid` is the residual stream [D, T] that a pass from a later layer starts
 * with; NULL from layer 0. What the graph keeps is valid until the next call. */
int qkv_session_compute(qkv_session *session, qkv_graph *g, const int32_t *tokens,
                        const float *resid, qkv_error *err);

#endif
