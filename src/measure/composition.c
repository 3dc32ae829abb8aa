/*
 * Two heads: how much of what the earlier one writes the later one reads.
 *
 * With T the triangles of QR decompositions, T_Xᵀ T_X = X Xᵀ for a factor X (head_factors.h), norms of
 * products of D x D matrices are those of d x d matrices:
 *
 *     ‖W_OV‖ = ‖T_V O‖                 O with a row for each channel of z, call T_V O the head's writer
 *     ‖W_QK‖ = ‖T_K Q‖
 *     Q:  ‖W_QKᵀ W_OV‖ = ‖(T_K Q) writerᵀ‖
 *     K:  ‖W_QK W_OV‖ = ‖T_Q (K writerᵀ)‖
 *     V:  ‖W_OV W_OV‖ = ‖T_O (V writerᵀ)‖
 *
 * K and V belong to a group: their products with all writers of an earlier layer are made once for all
 * of its heads. Layers are taken in turn; of those before, the writers are kept.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/forked.h"
#include "base/memory.h"
#include "measure/circuit_job.h"
#include "measure/circuits.h"
#include "measure/head_factors.h"
#include "measure/packed_matrix.h"

struct qkv_composition {
    int32_t *layers, *heads; /* of every chosen head */
    size_t n;
    double *scores; /* kinds x n x n */
    double random;
};

/* What one chosen layer's heads are, all of the chosen ones. */
typedef struct composed_layer {
    qkv_packed_matrix writers; /* D x heads · rank */
    double *written;           /* ‖W_OV‖ */
} composed_layer;

/* And what they read with. */
typedef struct reading_layer {
    float *q, *k, *v, *o;
    float *q_reader;    /* T_K Q of the chosen heads, rank rows each */
    float *inner[2];    /* T_Q and T_O of them, rank x d */
    double *looked_for; /* ‖W_QK‖ */
} reading_layer;

static void reading_layer_release(reading_layer *r) {
    free(r->q);
    free(r->k);
    free(r->v);
    free(r->o);
    free(r->q_reader);
    free(r->inner[0]);
    free(r->inner[1]);
    free(r->looked_for);
}

static double norm_of(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* ---- preparing a layer ---- */

/* out [rank][D] = triangle of `inner`'s rows for `group` · the rows of head `head` of `outer`. */
static int through_triangle(const qkv_circuit_job *job, float *out, const float *inner,
                            int64_t group, const float *outer, int64_t head, qkv_error *err) {
    const int64_t n = job->rank * job->d;
    double *triangle = qkv_calloc((size_t)n, sizeof *triangle);
    float *a = qkv_calloc((size_t)n, sizeof *a);
    qkv_packed_matrix rows = {0};
    int status = triangle && a ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_circuit_triangle(job, inner, group, triangle, err);
    if (status == QKV_OK)
        status = qkv_packed_from_rows(&rows, outer + head * job->d * job->width, job->d, job->width,
                                      job->n_threads, err);
    if (status == QKV_OK) {
        for (int64_t i = 0; i < n; i++) a[i] = (float)triangle[i];
        qkv_packed_multiply(&rows, a, job->rank, out, job->n_threads);
    }
    qkv_packed_release(&rows);
    free(triangle);
    free(a);
    return status;
}

static int keep_triangle(const qkv_circuit_job *job, float *out, const float *factor, int64_t head,
                         qkv_error *err) {
    const int64_t n = job->rank * job->d;
    double *triangle = qkv_calloc((size_t)n, sizeof *triangle);
    int status =
        triangle ? qkv_circuit_triangle(job, factor, head, triangle, err) : qkv_fail_memory(err);
    for (int64_t i = 0; status == QKV_OK && i < n; i++) out[i] = (float)triangle[i];
    free(triangle);
    return status;
}

static int read_factors(const qkv_circuit_job *job, int32_t layer, reading_layer *r,
                        qkv_error *err) {
    float **const factors[] = {[QKV_FACTOR_Q] = &r->q,
                               [QKV_FACTOR_K] = &r->k,
                               [QKV_FACTOR_V] = &r->v,
                               [QKV_FACTOR_O] = &r->o};
    int status = QKV_OK;
    for (int i = 0; status == QKV_OK && i <= QKV_FACTOR_O; i++)
        status = qkv_head_factor(factors[i], job->model, layer, (qkv_factor)i, job->fold, err);
    return status;
}

static int prepare_reading(const qkv_circuit_job *job, reading_layer *r, qkv_error *err) {
    const size_t small = (size_t)(job->rank * job->d), large = (size_t)(job->rank * job->width);
    r->q_reader = qkv_calloc(job->n_heads * large, sizeof *r->q_reader);
    r->inner[0] = qkv_calloc(job->n_heads * small, sizeof *r->inner[0]);
    r->inner[1] = qkv_calloc(job->n_heads * small, sizeof *r->inner[1]);
    r->looked_for = qkv_calloc(job->n_heads, sizeof *r->looked_for);
    int ok = r->q_reader && r->inner[0] && r->inner[1] && r->looked_for;
    int status = ok ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; status == QKV_OK && i < job->n_heads; i++) {
        const int64_t head = job->heads[i];
        float *q_reader = r->q_reader + i * large;
        status = through_triangle(job, q_reader, r->k, head / job->per_group, r->q, head, err);
        if (status == QKV_OK) status = keep_triangle(job, r->inner[0] + i * small, r->q, head, err);
        if (status == QKV_OK) status = keep_triangle(job, r->inner[1] + i * small, r->o, head, err);
        if (status == QKV_OK) r->looked_for[i] = norm_of(q_reader, (int64_t)large);
    }
    return status;
}

static int prepare_writers(const qkv_circuit_job *job, const reading_layer *r, composed_layer *out,
                           qkv_error *err) {
    const int64_t large = job->rank * job->width;
    float *writers = qkv_calloc(job->n_heads * (size_t)large, sizeof *writers);
    out->written = qkv_calloc(job->n_heads, sizeof *out->written);
    int status = writers && out->written ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; status == QKV_OK && i < job->n_heads; i++) {
        const int64_t head = job->heads[i];
        float *writer = writers + (int64_t)i * large;
        status = through_triangle(job, writer, r->v, head / job->per_group, r->o, head, err);
        if (status == QKV_OK) out->written[i] = norm_of(writer, large);
    }
    if (status == QKV_OK)
        status = qkv_packed_from_columns(&out->writers, writers, job->width,
                                         (int64_t)job->n_heads * job->rank, job->n_threads, err);
    free(writers);
    return status;
}

/* ---- two layers ---- */

/* Squares of a [rows][heads · rank] matrix, head by head. */
static void square_heads(const float *x, int64_t rows, size_t n_heads, int64_t rank, double *sums) {
    memset(sums, 0, n_heads * sizeof *sums);
    for (int64_t r = 0; r < rows; r++) {
        for (size_t h = 0; h < n_heads; h++) {
            double sum = 0;
            for (int64_t c = 0; c < rank; c++, x++) sum += (double)*x * (double)*x;
            sums[h] += sum;
        }
    }
}

/* A pair of layers at work. */
typedef struct layer_pair {
    const qkv_circuit_job *job;
    qkv_composition *out;
    const reading_layer *later;
    const composed_layer *earlier;
    const double *own_norms;     /* ‖W_OV‖ of the later layer */
    size_t later_at, earlier_at; /* numbers of their first heads */
} layer_pair;

static void store(const layer_pair *p, qkv_composition_kind kind, size_t later, double norm,
                  const double *squares) {
    const size_t n = p->out->n;
    double *row = p->out->scores + ((size_t)kind * n + p->later_at + later) * n + p->earlier_at;
    for (size_t h = 0; h < p->job->n_heads; h++) {
        const double below = norm * p->earlier->written[h];
        row[h] = below > 0 ? sqrt(squares[h]) / below : (double)NAN;
    }
}

/* What a thread works with: two blocks of d x heads · rank, and sums. */
typedef struct pair_scratch {
    float *block, *inner;
    double *squares;
} pair_scratch;

static void compose_query(const layer_pair *p, size_t head, pair_scratch *at) {
    const qkv_circuit_job *job = p->job;
    qkv_packed_multiply(&p->earlier->writers,
                        p->later->q_reader + (int64_t)head * job->rank * job->width, job->rank,
                        at->block, 1);
    square_heads(at->block, job->rank, job->n_heads, job->rank, at->squares);
    store(p, QKV_COMPOSITION_Q, head, p->later->looked_for[head], at->squares);
}

static int has_group(const qkv_circuit_job *job, int64_t group) {
    for (size_t h = 0; h < job->n_heads; h++) {
        if (job->heads[h] / job->per_group == group) return 1;
    }
    return 0;
}

/* K or V: the product with the group's rows, then with the triangle of each of its heads. */
static int compose_group(const layer_pair *p, qkv_composition_kind kind, int64_t group,
                         pair_scratch *at, qkv_error *err) {
    const qkv_circuit_job *job = p->job;
    const int is_k = kind == QKV_COMPOSITION_K;
    const float *factor = is_k ? p->later->k : p->later->v;
    const int64_t columns = (int64_t)job->n_heads * job->rank;
    qkv_packed_matrix packed = {0};
    if (!has_group(job, group)) return QKV_OK;
    qkv_packed_multiply(&p->earlier->writers, factor + group * job->d * job->width, job->d,
                        at->block, 1);
    int status = qkv_packed_from_rows(&packed, at->block, job->d, columns, 1, err);
    for (size_t h = 0; status == QKV_OK && h < job->n_heads; h++) {
        if (job->heads[h] / job->per_group != group) continue;
        qkv_packed_multiply(&packed, p->later->inner[!is_k] + (int64_t)h * job->rank * job->d,
                            job->rank, at->inner, 1);
        square_heads(at->inner, job->rank, job->n_heads, job->rank, at->squares);
        store(p, kind, h, is_k ? p->later->looked_for[h] : p->own_norms[h], at->squares);
    }
    qkv_packed_release(&packed);
    return status;
}

/* Part [0, heads): Q of a head; then K of the groups, then V of them. */
static int compose_part(const layer_pair *p, int64_t part, pair_scratch *at) {
    const int64_t heads = (int64_t)p->job->n_heads, groups = p->job->n_groups;
    if (part < heads) {
        compose_query(p, (size_t)part, at);
        return QKV_OK;
    }
    const int is_k = part < heads + groups;
    return compose_group(p, is_k ? QKV_COMPOSITION_K : QKV_COMPOSITION_V, (part - heads) % groups,
                         at, NULL);
}

static int compose_layers(const layer_pair *p, qkv_error *err) {
    const qkv_circuit_job *job = p->job;
    const size_t block = (size_t)job->d * job->n_heads * (size_t)job->rank;
    const int64_t n = (int64_t)job->n_heads + 2 * job->n_groups;
    int failed = 0;
#pragma omp parallel if (!qkv_is_forked()) num_threads(job->n_threads) reduction(| : failed)
    {
        pair_scratch at = {qkv_calloc(block, sizeof(float)), qkv_calloc(block, sizeof(float)),
                           qkv_calloc(job->n_heads, sizeof(double))};
        const int ok = at.block && at.inner && at.squares;
        failed = !ok;
#pragma omp for schedule(dynamic)
        for (int64_t part = 0; part < n; part++) {
            if (ok && compose_part(p, part, &at) != QKV_OK) failed = 1;
        }
        free(at.block);
        free(at.inner);
        free(at.squares);
    }
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- all of them ---- */

static int compose_with_earlier(qkv_composition *c, const qkv_circuit_job *job, size_t number,
                                const reading_layer *later, const composed_layer *layers,
                                qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && i < number; i++) {
        const layer_pair pair = {.job = job,
                                 .out = c,
                                 .later = later,
                                 .earlier = &layers[i],
                                 .own_norms = layers[number].written,
                                 .later_at = number * job->n_heads,
                                 .earlier_at = i * job->n_heads};
        const size_t done = number * (number - 1) / 2 + i;
        const size_t total = job->n_layers * (job->n_layers - 1) / 2;
        status = qkv_circuit_job_step(job, 0, done, total, err);
        if (status == QKV_OK) status = compose_layers(&pair, err);
    }
    return status;
}

static int compose_all(qkv_composition *c, const qkv_circuit_job *job, composed_layer *layers,
                       qkv_error *err) {
    const size_t n = job->n_layers;
    int status = qkv_session_begin_work(job->session, "pairs of layers",
                                        (double)n * (double)(n - 1) / 2, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; status == QKV_OK && i < n; i++) {
        reading_layer later = {0};
        status = read_factors(job, job->layers[i], &later, err);
        if (status == QKV_OK) status = prepare_writers(job, &later, &layers[i], err);
        if (status == QKV_OK) status = prepare_reading(job, &later, err);
        if (status == QKV_OK) status = compose_with_earlier(c, job, i, &later, layers, err);
        reading_layer_release(&later);
    }
    return qkv_session_end_work(job->session, status);
}

static int allocate(qkv_composition **out, const qkv_circuit_job *job, qkv_error *err) {
    const size_t n = job->n_layers * job->n_heads;
    const size_t cells = QKV_COMPOSITION_COUNT * n * n;
    const int is_centred = job->fold && qkv_stream_is_centred(job->model);
    qkv_composition *c = *out = qkv_calloc(1, sizeof *c);
    if (!c) return qkv_fail_memory(err);
    c->n = n;
    c->random = 1 / sqrt((double)(job->width - is_centred));
    c->layers = qkv_calloc(n, sizeof *c->layers);
    c->heads = qkv_calloc(n, sizeof *c->heads);
    c->scores = qkv_calloc(cells, sizeof *c->scores);
    if (!c->layers || !c->heads || !c->scores) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        c->layers[i] = job->layers[i / job->n_heads];
        c->heads[i] = job->heads[i % job->n_heads];
    }
    for (size_t i = 0; i < cells; i++) c->scores[i] = (double)NAN;
    return QKV_OK;
}

static int check(const qkv_circuit_job *job, qkv_error *err) {
    if (job->model->layers[0].w[QKV_LAYER_ATTN_OUT_NORM])
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "no composition scores for %s: norms stand in its residual stream, so "
                        "that no head reads what another one wrote",
                        job->model->info.architecture);
    if (job->n_layers < 2)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "composition is between heads of different layers: choose two at least");
    return QKV_OK;
}

int qkv_composition_new(qkv_composition **out, qkv_session *session,
                        const qkv_circuit_options *options, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, session);
    qkv_circuit_job job;
    composed_layer *layers = NULL;
    int status = qkv_circuit_job_open(&job, session, options, err);
    const size_t n = job.n_layers;
    if (status == QKV_OK) status = check(&job, err);
    if (status == QKV_OK) {
        layers = qkv_calloc(n, sizeof *layers);
        status = layers ? allocate(out, &job, err) : qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = compose_all(*out, &job, layers, err);
    for (size_t i = 0; layers && i < n; i++) {
        qkv_packed_release(&layers[i].writers);
        free(layers[i].written);
    }
    free(layers);
    qkv_circuit_job_release(&job);
    if (status != QKV_OK) {
        qkv_composition_free(*out);
        *out = NULL;
    }
    return status;
}

void qkv_composition_free(qkv_composition *composition) {
    if (!composition) return;
    free(composition->layers);
    free(composition->heads);
    free(composition->scores);
    free(composition);
}

int qkv_composition_head(const qkv_composition *composition, size_t index, int32_t *layer,
                         int32_t *head) {
    if (!composition || index >= composition->n) return 0;
    if (layer) *layer = composition->layers[index];
    if (head) *head = composition->heads[index];
    return 1;
}

double qkv_composition_score(const qkv_composition *composition, qkv_composition_kind kind,
                             size_t later, size_t earlier) {
    if (!composition || (int)kind < 0 || kind >= QKV_COMPOSITION_COUNT || later >= composition->n ||
        earlier >= composition->n)
        return (double)NAN;
    return composition->scores[((size_t)kind * composition->n + later) * composition->n + earlier];
}

double qkv_composition_random(const qkv_composition *composition) {
    return composition ? composition->random : (double)NAN;
}
