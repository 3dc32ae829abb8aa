/* Sessions: backends, threads, and the computation of one graph. */
#include "run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "ggml-cpu.h"

typedef void (*set_threads_fn)(ggml_backend_t backend, int n_threads);

static void set_threads(ggml_backend_t backend, int n_threads) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    void *found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    set_threads_fn set = NULL;
    memcpy(&set, &found, sizeof set); /* ISO C does not convert object to function pointers */
    if (set) set(backend, n_threads);
}

/* Accelerators that compute in the CPU's memory (BLAS) come first, so that the scheduler prefers them. */
static int start_backends(qkv_session *session, qkv_error *err) {
    for (size_t i = 0; i < ggml_backend_dev_count() && session->n_backends < QKV_MAX_BACKENDS - 1;
         i++) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_ACCEL) continue;
        ggml_backend_t backend = ggml_backend_dev_init(device, NULL);
        if (backend) session->backends[session->n_backends++] = backend;
    }
    ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    if (!cpu) return qkv_fail(err, QKV_ERR_BACKEND, "ggml has no CPU backend");
    session->backends[session->n_backends++] = cpu;
    for (int i = 0; i < session->n_backends; i++)
        set_threads(session->backends[i], session->n_threads);
    return QKV_OK;
}

int qkv_session_new(qkv_session **out, const qkv_model *model, const qkv_session_options *options,
                    qkv_error *err) {
    *out = NULL;
    int32_t threads = options ? options->n_threads : 0;
    if (threads < 0 || threads > 1024)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%d threads; give 1 to 1024, or 0 for all cores",
                        threads);
    qkv_session *session = qkv_calloc(1, sizeof *session);
    if (!session) return qkv_fail_memory(err);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    session->model = model;
    session->n_threads = threads ? threads : cores > 0 ? (int)cores : 1;
    int status = start_backends(session, err);
    if (status == QKV_OK) {
        session->scheduler = ggml_backend_sched_new(session->backends, NULL, session->n_backends,
                                                    qkv_graph_max_nodes(model), false, false);
        if (!session->scheduler) status = qkv_fail_memory(err);
    }
    if (status != QKV_OK) {
        qkv_session_free(session);
        return status;
    }
    *out = session;
    return QKV_OK;
}

void qkv_session_free(qkv_session *session) {
    if (!session) return;
    if (session->scheduler) ggml_backend_sched_free(session->scheduler);
    for (int i = 0; i < session->n_backends; i++) ggml_backend_free(session->backends[i]);
    free(session);
}

/* ---- inputs ---- */

/* A tensor that nothing kept depends on is not in the graph and has no memory. */
static void set_input(struct ggml_tensor *tensor, const void *data) {
    if (tensor && tensor->buffer) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
}

/* Query i sees keys j ≤ i, and with a window only the last `window` of them. */
static void fill_mask(float *mask, int64_t n_tokens, int32_t window) {
    for (int64_t i = 0; i < n_tokens; i++) {
        for (int64_t j = 0; j < n_tokens; j++) {
            int visible = j <= i && (window == 0 || i - j < window);
            mask[i * n_tokens + j] = visible ? 0 : -INFINITY;
        }
    }
}

static int set_inputs(const qkv_graph *g, const int32_t *tokens, const float *resid,
                      qkv_error *err) {
    const qkv_hparams *hp = &g->model->hp;
    size_t T = (size_t)g->n_tokens;
    float *mask = malloc(T * T * sizeof *mask);
    int32_t *positions = malloc(T * sizeof *positions);
    if (!mask || !positions) {
        free(mask);
        free(positions);
        return qkv_fail_memory(err);
    }
    fill_mask(mask, g->n_tokens, hp->window);
    for (size_t i = 0; i < T; i++) positions[i] = (int32_t)i;
    set_input(g->in_mask, mask);
    set_input(g->in_position, positions);
    set_input(g->in_tokens, tokens);
    set_input(g->in_resid, resid);
    set_input(g->in_divisors, hp->rope_divisors);
    free(mask);
    free(positions);
    return QKV_OK;
}

int qkv_session_compute(qkv_session *session, qkv_graph *g, const int32_t *tokens,
                        const float *resid, qkv_error *err) {
    ggml_backend_sched_reset(session->scheduler);
    /* The allocator takes a graph for the previous one when the numbers and sizes of their nodes
     * agree, and would then reuse an assignment of memory in which other tensors are alive.
     * Reserving first makes it look. */
    if (!ggml_backend_sched_reserve(session->scheduler, g->cgraph) ||
        !ggml_backend_sched_alloc_graph(session->scheduler, g->cgraph))
        return qkv_fail_memory(err);
    int status = set_inputs(g, tokens, resid, err);
    if (status != QKV_OK) return status;
    if (ggml_backend_sched_graph_compute(session->scheduler, g->cgraph) != GGML_STATUS_SUCCESS)
        return qkv_fail(err, QKV_ERR_BACKEND, "ggml could not compute the graph");
    return QKV_OK;
}
