#include "measure/circuit_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "measure/circuits.h"
#include "measure/spectrum.h"
#include "run/run.h"
#include "run/session.h"

static size_t list(const uint8_t *set, size_t n, int32_t *numbers) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (set[i]) numbers[count++] = (int32_t)i;
    }
    return count;
}

/* Layers and heads are read as observed patterns are, for a prompt of one token. */
static int select_heads(qkv_circuit_job *job, const char *layers, const char *heads,
                        qkv_error *err) {
    const int32_t token = 0;
    const size_t n_layer = (size_t)job->model->hp.n_layer,
                 n_head = (size_t)job->model->hp.largest.n_head;
    uint8_t *chosen = qkv_calloc(n_layer + n_head, 1);
    qkv_text what = {0};
    qkv_plan *plan = NULL;
    job->layers = qkv_calloc(n_layer, sizeof *job->layers);
    job->heads = qkv_calloc(n_head, sizeof *job->heads);
    qkv_text_printf(&what, "pattern@%s.h%s", layers ? layers : "*", heads ? heads : "*");
    int status = chosen && job->layers && job->heads && what.data ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_plan_new(&plan, job->model, &token, 1, err);
    if (status == QKV_OK) {
        qkv_error why = {0};
        status = qkv_plan_select(plan, what.data, chosen, chosen + n_layer, &why);
        const char *reason = strstr(why.message, "': ");
        if (status != QKV_OK)
            status = qkv_fail(err, status, "%s", reason ? reason + 3 : why.message);
    }
    if (status == QKV_OK) {
        job->n_layers = list(chosen, n_layer, job->layers);
        job->n_heads = list(chosen + n_layer, n_head, job->heads);
    }
    qkv_plan_free(plan);
    qkv_text_release(&what);
    free(chosen);
    return status;
}

/* Circuits are matrices of heads, which are compared with each other: all have one shape. */
static int choose_shape(qkv_circuit_job *job, qkv_error *err) {
    const qkv_layer_shape *first = &job->model->hp.layers[job->layers[0]];
    for (size_t i = 0; i < job->n_layers; i++) {
        const qkv_layer_shape *shape = &job->model->hp.layers[job->layers[i]];
        if (shape->kv_layer != job->layers[i])
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "layer %d has no keys and values of its own to compute circuits of; "
                            "choose others with `layers`",
                            (int)job->layers[i]);
        if (shape->value_dim != shape->head_dim)
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "circuits are computed of heads whose values are as wide as their "
                            "keys; in layer %d they have %d and %d numbers",
                            (int)job->layers[i], shape->value_dim, shape->head_dim);
        if (shape->n_head != first->n_head || shape->n_kv_head != first->n_kv_head ||
            shape->head_dim != first->head_dim)
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "circuits are computed of layers whose heads have one shape; those of "
                            "layers %d and %d differ: choose others with `layers`",
                            (int)job->layers[0], (int)job->layers[i]);
    }
    job->d = first->head_dim;
    job->rank = job->d < job->width ? job->d : job->width;
    job->n_groups = first->n_kv_head;
    job->per_group = qkv_layer_group(first);
    return QKV_OK;
}

int qkv_circuit_job_open(qkv_circuit_job *job, qkv_session *session,
                         const qkv_circuit_options *options, qkv_error *err) {
    const qkv_model *model = session->model;
    const qkv_hparams *hp = &model->hp;
    qkv_circuit_options how = QKV_CIRCUIT_OPTIONS_INIT;
    *job = (qkv_circuit_job){
        .session = session, .model = model, .n_threads = session->n_threads, .width = hp->n_embd};
    int status = qkv_sized_read(&how, sizeof how, options, "qkv_circuit_options", err);
    if (status != QKV_OK) return status;
    job->fold = !how.raw;
    job->progress = how.progress;
    job->user = how.user;
    status = select_heads(job, how.layers, how.heads, err);
    if (status == QKV_OK) status = choose_shape(job, err);
    for (size_t i = 0; status == QKV_OK && i < job->n_layers; i++)
        status = qkv_weights_prepare(model, job->layers[i], err);
    return status;
}

void qkv_circuit_job_release(qkv_circuit_job *job) {
    free(job->layers);
    free(job->heads);
    *job = (qkv_circuit_job){0};
}

int qkv_circuit_job_step(const qkv_circuit_job *job, double before, size_t done, size_t total,
                         qkv_error *err) {
    int status = qkv_session_reach(job->session, before + (double)done, 1, err);
    if (status == QKV_OK && job->progress &&
        job->progress(job->user, (int64_t)done, (int64_t)total) != 0)
        status = qkv_fail_cancelled(err);
    return status;
}

int qkv_circuit_triangle(const qkv_circuit_job *job, const float *factor, int64_t head, double *r,
                         qkv_error *err) {
    const int64_t n = job->d * job->width;
    /* A factor's rows are the columns of its transpose, as LAPACK wants them. */
    double *a = qkv_calloc((size_t)n, sizeof *a);
    double *columns = qkv_calloc((size_t)(job->rank * job->d), sizeof *columns);
    int status = a && columns ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) {
        for (int64_t i = 0; i < n; i++) a[i] = (double)factor[head * n + i];
        status = qkv_triangle(columns, a, (int)job->width, (int)job->d, err);
    }
    for (int64_t i = 0; status == QKV_OK && i < job->rank; i++) {
        for (int64_t c = 0; c < job->d; c++) r[i * job->d + c] = columns[c * job->rank + i];
    }
    free(a);
    free(columns);
    return status;
}
