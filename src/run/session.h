/*
 * What a session owns: the backend that computes, and the memory of graphs.
 */
#ifndef QKV_RUN_SESSION_H
#define QKV_RUN_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "base/fingerprint.h"
#include "base/steps.h"
#include "ggml-backend.h"
#include "qkv/session.h"
#include "run/graph/graph.h"
#include "run/plan/trunk.h"

/*
 * Means of sites over a set of prompts, of the unedited model.
 *
 * A session keeps them from one plan to the next, as long as plans have the same set. Prompts go through
 * one by one, each as if it were alone, and are added up in their order in double precision: no bit of a
 * mean depends on threads, memory, or on what else a plan computes.
 */

/* Kinds of means × (n_layer + 1) × sites. */
typedef struct qkv_set_means {
    char hash[QKV_FINGERPRINT_SIZE]; /* of the set */
    float **tensors;                 /* NULL where not computed yet */
    int64_t *n_rows;                 /* that they have: 1, or positions */
    size_t n;
} qkv_set_means;

void qkv_set_means_release(qkv_set_means *means);

struct qkv_session {
    qkv_model *model; /* kept alive */
    int n_threads;
    size_t memory_budget; /* bytes for attention maps and batches in one pass, and for the trunk */
    ggml_backend_t backend;
    char backend_name[256];
    ggml_backend_sched_t scheduler; /* has the memory of graphs */
    size_t scheduler_nodes;         /* graphs of so many nodes fit */
    uint64_t allocation;            /* whose graph it is: qkv_graph.allocation */
    qkv_trunk trunk;
    qkv_set_means means;
    qkv_steps steps;     /* who watches, and can stop it */
    qkv_run_stats stats; /* of all runs */
};

/* What a pass starts with; NULL where its kind of start does not need it. */
typedef struct qkv_inputs {
    const int32_t *tokens;
    const float *resid;
    const float *q, *k, *v;
    const qkv_trunk_layer *before; /* n_layer: whose k and v tokens that are left out have */
} qkv_inputs;

/* Allocates, fills the inputs and computes. What the graph keeps is valid until the next call. A graph
 * that is given again right away has its memory already. */
int qkv_session_compute(qkv_session *session, qkv_graph *g, const qkv_inputs *inputs,
                        qkv_error *err);

/* One more pass. */
void qkv_stats_add(qkv_run_stats *stats, const qkv_cost *cost);

/* Bytes that the tensors of graphs have taken so far, at most. */
size_t qkv_session_buffer_size(const qkv_session *session);

#endif
