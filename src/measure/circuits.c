/*
 * One head at a time: singular values and eigenvalues of W = Lᵀ R, where L and R have d rows of D
 * values each (head_factors.h), through matrices of d x d:
 *
 *     Lᵀ = Q_L T_L, Rᵀ = Q_R T_R     W has the singular values of T_L T_Rᵀ
 *     λ(Lᵀ R) = λ(R Lᵀ)              and zeros
 *
 * The full circuit A Lᵀ R Bᵀ, with A and B of V rows, has the eigenvalues of R (Bᵀ A) Lᵀ: Bᵀ A is the
 * one matrix of D x D, the same for all heads, and summed over blocks of the vocabulary.
 */
#include "measure/circuits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "measure/circuit_job.h"
#include "measure/head_factors.h"
#include "measure/packed_matrix.h"
#include "measure/spectrum.h"
#include "run/run.h"

#define TOKEN_BLOCK ((int64_t)2048)

struct qkv_circuits {
    qkv_circuit *heads;
    size_t n;
    double *numbers; /* of all heads: singular values, real and imaginary parts */
};

/* Which factors a kind is made of, and which ends make its circuit full. */
typedef struct circuit_factors {
    qkv_factor left, right;
    int writes_logits; /* A is the output matrix, not the embedding */
} circuit_factors;

static const circuit_factors factors_of[] = {
    [QKV_CIRCUIT_OV] = {QKV_FACTOR_O, QKV_FACTOR_V, 1},
    [QKV_CIRCUIT_QK] = {QKV_FACTOR_Q, QKV_FACTOR_K, 0},
};

/* ---- the vocabulary ---- */

/* Adds the block's part of Bᵀ A. `turned` has its B with a row for each channel. */
static int add_block(const qkv_circuit_job *job, double *sum, const float *turned, const float *a,
                     int64_t n, float *product, qkv_error *err) {
    const int64_t width = job->width;
    qkv_packed_matrix packed = {0};
    int status = qkv_packed_from_rows(&packed, a, n, width, job->n_threads, err);
    if (status == QKV_OK) {
        qkv_packed_multiply(&packed, turned, width, product, job->n_threads);
        for (int64_t i = 0; i < width * width; i++) sum[i] += (double)product[i];
    }
    qkv_packed_release(&packed);
    return status;
}

static void turn_over(float *to, const float *from, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
    }
}

static int sum_tokens(const qkv_circuit_job *job, int writes_logits, double *sum, float *product,
                      qkv_error *err) {
    const int64_t vocab = job->model->hp.n_vocab, width = job->width;
    const size_t block = (size_t)(TOKEN_BLOCK * width);
    float *a = qkv_calloc(block, sizeof *a), *b = qkv_calloc(block, sizeof *b);
    float *turned = qkv_calloc(block, sizeof *turned);
    int status = a && b && turned ? QKV_OK : qkv_fail_memory(err);
    for (int64_t t = 0; status == QKV_OK && t < vocab; t += TOKEN_BLOCK) {
        const int64_t n = vocab - t < TOKEN_BLOCK ? vocab - t : TOKEN_BLOCK;
        status = qkv_session_report(job->session, "tokens", (double)t, (double)vocab, err);
        if (status == QKV_OK) status = qkv_embedding_rows(b, job->model, t, n, job->fold, err);
        if (status == QKV_OK)
            status = (writes_logits ? qkv_output_rows : qkv_embedding_rows)(a, job->model, t, n,
                                                                            job->fold, err);
        if (status != QKV_OK) break;
        turn_over(turned, b, n, width);
        status = add_block(job, sum, turned, a, n, product, err);
    }
    free(a);
    free(b);
    free(turned);
    return status;
}

/* Bᵀ A, ready to be multiplied with. */
static int pack_ends(qkv_packed_matrix *out, const qkv_circuit_job *job, int writes_logits,
                     qkv_error *err) {
    const size_t n = (size_t)(job->width * job->width);
    double *sum = qkv_calloc(n, sizeof *sum);
    float *product = qkv_calloc(n, sizeof *product);
    int status =
        sum && product ? sum_tokens(job, writes_logits, sum, product, err) : qkv_fail_memory(err);
    if (status == QKV_OK) {
        for (size_t i = 0; i < n; i++) product[i] = (float)sum[i];
        status = qkv_packed_from_rows(out, product, job->width, job->width, job->n_threads, err);
    }
    free(sum);
    free(product);
    return status;
}

/* ---- one head ---- */

/* A layer's factors; `ended` is right · Bᵀ A, or NULL. */
typedef struct layer_factors {
    float *left, *right, *ended;
} layer_factors;

static void layer_factors_release(layer_factors *f) {
    free(f->left);
    free(f->right);
    free(f->ended);
}

static int layer_factors_read(layer_factors *f, const qkv_circuit_job *job, int32_t layer,
                              const circuit_factors *which, const qkv_packed_matrix *ends,
                              qkv_error *err) {
    const int64_t rows = (int64_t)job->n_groups * job->d;
    *f = (layer_factors){0};
    int status = qkv_head_factor(&f->left, job->model, layer, which->left, job->fold, err);
    if (status == QKV_OK)
        status = qkv_head_factor(&f->right, job->model, layer, which->right, job->fold, err);
    if (status != QKV_OK || !ends->data) return status;
    f->ended = qkv_calloc((size_t)(rows * job->width), sizeof *f->ended);
    if (!f->ended) return qkv_fail_memory(err);
    qkv_packed_multiply(ends, f->right, rows, f->ended, job->n_threads);
    return QKV_OK;
}

/* T_L T_Rᵀ, of rank x rank. */
static void multiply_triangles(double *out, const double *left, const double *right, int64_t rank,
                               int64_t d) {
    for (int64_t i = 0; i < rank; i++) {
        for (int64_t k = 0; k < rank; k++) {
            double sum = 0;
            for (int64_t c = i > k ? i : k; c < d; c++) sum += left[i * d + c] * right[k * d + c];
            out[k * rank + i] = sum;
        }
    }
}

static int find_singular(const qkv_circuit_job *job, const layer_factors *f, int64_t head,
                         double *values, qkv_error *err) {
    const size_t n = (size_t)(job->rank * job->d);
    double *left = qkv_calloc(n, sizeof *left), *right = qkv_calloc(n, sizeof *right);
    double *product = qkv_calloc((size_t)(job->rank * job->rank), sizeof *product);
    int status = left && right && product ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_circuit_triangle(job, f->left, head, left, err);
    if (status == QKV_OK)
        status = qkv_circuit_triangle(job, f->right, head / job->per_group, right, err);
    if (status == QKV_OK) {
        multiply_triangles(product, left, right, job->rank, job->d);
        status = qkv_singular_values(values, product, (int)job->rank, (int)job->rank, err);
    }
    free(left);
    free(right);
    free(product);
    return status;
}

typedef struct complex_number {
    double real, imaginary;
} complex_number;

/* The largest first; of a pair of conjugates the one with the positive imaginary part. */
static int by_size(const void *a, const void *b) {
    const complex_number *x = a, *y = b;
    const double p = hypot(x->real, x->imaginary), q = hypot(y->real, y->imaginary);
    if (p != q) return p > q ? -1 : 1;
    if (x->real != y->real) return x->real > y->real ? -1 : 1;
    return (x->imaginary < y->imaginary) - (x->imaginary > y->imaginary);
}

static int sort_eigen(double *real, double *imaginary, size_t n, qkv_error *err) {
    complex_number *all = qkv_calloc(n, sizeof *all);
    if (!all) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) all[i] = (complex_number){real[i], imaginary[i]};
    qsort(all, n, sizeof *all, by_size);
    for (size_t i = 0; i < n; i++) {
        real[i] = all[i].real;
        imaginary[i] = all[i].imaginary;
    }
    free(all);
    return QKV_OK;
}

/* Σλ / Σ|λ|. */
static double score_of(const double *real, const double *imaginary, size_t n) {
    double sum = 0, sizes = 0;
    for (size_t i = 0; i < n; i++) {
        sum += real[i];
        sizes += hypot(real[i], imaginary[i]);
    }
    return sizes > 0 ? sum / sizes : (double)NAN;
}

/* Eigenvalues of right · leftᵀ, where each is the head's d rows. */
static int find_eigen(const qkv_circuit_job *job, const float *right, const float *left,
                      double *real, double *imaginary, qkv_error *err) {
    const size_t d = (size_t)job->d;
    float *product = qkv_calloc(d * d, sizeof *product);
    double *a = qkv_calloc(d * d, sizeof *a);
    qkv_packed_matrix packed = {0};
    int status = product && a ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK)
        status = qkv_packed_from_columns(&packed, left, job->width, job->d, job->n_threads, err);
    if (status == QKV_OK) {
        qkv_packed_multiply(&packed, right, job->d, product, job->n_threads);
        /* Rows for columns: the transpose has the same eigenvalues. */
        for (size_t i = 0; i < d * d; i++) a[i] = (double)product[i];
        status = qkv_eigenvalues(real, imaginary, a, (int)d, err);
    }
    if (status == QKV_OK) status = sort_eigen(real, imaginary, d, err);
    qkv_packed_release(&packed);
    free(product);
    free(a);
    return status;
}

static void describe_spectrum(qkv_circuit *c, const double *values, size_t n) {
    double sum = 0, squares = 0, entropy = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    for (size_t i = 0; i < n; i++) {
        const double p = sum > 0 ? values[i] / sum : 0;
        if (p > 0) entropy -= p * log(p);
    }
    c->norm = sqrt(squares);
    c->effective_rank = sum > 0 ? exp(entropy) : (double)NAN;
    c->singular = values;
    c->n_singular = n;
}

/* `numbers` has room for rank + 2 d of them. */
static int measure_head(qkv_circuit *c, const qkv_circuit_job *job, const layer_factors *f,
                        double *numbers, qkv_error *err) {
    const int64_t size = job->d * job->width, group = c->head / job->per_group;
    double *real = numbers + job->rank, *imaginary = real + job->d;
    int status = find_singular(job, f, c->head, numbers, err);
    if (status == QKV_OK) {
        describe_spectrum(c, numbers, (size_t)job->rank);
        status = find_eigen(job, f->right + group * size, f->left + c->head * size, real, imaginary,
                            err);
    }
    if (status != QKV_OK) return status;
    c->stream_score = score_of(real, imaginary, (size_t)job->d);
    c->score = (double)NAN;
    if (!f->ended) return QKV_OK;
    status =
        find_eigen(job, f->ended + group * size, f->left + c->head * size, real, imaginary, err);
    c->score = score_of(real, imaginary, (size_t)job->d);
    c->real = real;
    c->imaginary = imaginary;
    c->n_eigen = (size_t)job->d;
    return status;
}

/* ---- all of them ---- */

/* `before`: what was done before, in layers. */
static int measure_layers(qkv_circuits *out, const qkv_circuit_job *job,
                          const circuit_factors *which, const qkv_packed_matrix *ends,
                          double before, qkv_error *err) {
    const size_t each = (size_t)(job->rank + 2 * job->d);
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && i < job->n_layers; i++) {
        layer_factors f;
        status = qkv_circuit_job_step(job, before, i, job->n_layers, err);
        if (status != QKV_OK) break;
        status = layer_factors_read(&f, job, job->layers[i], which, ends, err);
        for (size_t h = 0; status == QKV_OK && h < job->n_heads; h++, out->n++) {
            out->heads[out->n] = (qkv_circuit)QKV_CIRCUIT_INIT;
            out->heads[out->n].layer = job->layers[i];
            out->heads[out->n].head = job->heads[h];
            status = measure_head(&out->heads[out->n], job, &f, out->numbers + out->n * each, err);
        }
        layer_factors_release(&f);
    }
    return status;
}

/* The vocabulary takes about as long as so many layers: products of V x D x D and of D x D x D. */
static double vocabulary_layers(const qkv_circuit_job *job) {
    return (double)job->model->hp.n_vocab / (double)job->width;
}

static int compute(qkv_circuits *out, const qkv_circuit_job *job, const circuit_factors *which,
                   qkv_error *err) {
    const int has_ends = job->model->output || !which->writes_logits;
    const double before = has_ends ? vocabulary_layers(job) : 0;
    qkv_packed_matrix ends = {0};
    int status =
        qkv_session_begin_work(job->session, "layers", before + (double)job->n_layers, err);
    if (status != QKV_OK) return status;
    status = qkv_session_reach(job->session, 0, before, err);
    if (status == QKV_OK && has_ends) status = pack_ends(&ends, job, which->writes_logits, err);
    if (status == QKV_OK) status = measure_layers(out, job, which, &ends, before, err);
    qkv_packed_release(&ends);
    return qkv_session_end_work(job->session, status);
}

static int measure_circuits(qkv_circuits **out, const qkv_circuit_job *job,
                            const circuit_factors *which, qkv_error *err) {
    const size_t n = job->n_layers * job->n_heads, each = (size_t)(job->rank + 2 * job->d);
    qkv_circuits *circuits = qkv_calloc(1, sizeof *circuits);
    if (!circuits) return qkv_fail_memory(err);
    circuits->heads = qkv_calloc(n, sizeof *circuits->heads);
    circuits->numbers = qkv_calloc(n * each, sizeof *circuits->numbers);
    int status = circuits->heads && circuits->numbers ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = compute(circuits, job, which, err);
    if (status != QKV_OK) {
        qkv_circuits_free(circuits);
        circuits = NULL;
    }
    *out = circuits;
    return status;
}

int qkv_circuits_new(qkv_circuits **out, qkv_session *session, qkv_circuit_kind kind,
                     const qkv_circuit_options *options, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, session);
    if ((int)kind < 0 || (size_t)kind >= sizeof factors_of / sizeof *factors_of)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no kind of circuit %d", (int)kind);
    qkv_circuit_job job;
    int status = qkv_circuit_job_open(&job, session, options, err);
    if (status == QKV_OK) status = measure_circuits(out, &job, &factors_of[kind], err);
    qkv_circuit_job_release(&job);
    return status;
}

void qkv_circuits_free(qkv_circuits *circuits) {
    if (!circuits) return;
    free(circuits->heads);
    free(circuits->numbers);
    free(circuits);
}

int qkv_circuits_get(const qkv_circuits *circuits, size_t index, qkv_circuit *circuit) {
    if (!circuits || !circuit || index >= circuits->n) return 0;
    return qkv_sized_write(circuit, &circuits->heads[index], sizeof *circuit, "qkv_circuit",
                           NULL) == QKV_OK;
}
