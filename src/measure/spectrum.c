#include "measure/spectrum.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Fortran's interface: everything by reference, the length of the text after the last argument. */
void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork,
             int *iwork, int *info, size_t job_length);

void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work,
             const int *lwork, int *info);
void dgeev_(const char *left, const char *right, const int *n, double *a, const int *lda,
            double *wr, double *wi, double *vl, const int *ldvl, double *vr, const int *ldvr,
            double *work, const int *lwork, int *info, size_t left_length, size_t right_length);

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* With one thread in every case: OpenBLAS rounds otherwise with more, and how many there are depends
 * on whether the caller is one of a team. One thread also leaves OpenBLAS's own number, which is the
 * process's, alone. Returns the number to put back. */
static int begin(void) {
    int n_threads = omp_get_max_threads();
    omp_set_num_threads(1);
    pthread_mutex_lock(&turn);
    return n_threads;
}

static void end(int n_threads) {
    pthread_mutex_unlock(&turn);
    omp_set_num_threads(n_threads);
}

/* Asks LAPACK how much it needs, and has it work: `call_it` does both. */
typedef int lapack_call(void *problem, double *work, int lwork);

static int work_on(lapack_call *call_it, void *problem, const char *what, int rows, int cols,
                   qkv_error *err) {
    double best = 0, *work = NULL;
    int n_threads = begin(), info = call_it(problem, &best, -1);
    if (info == 0) work = qkv_calloc((size_t)best, sizeof *work);
    if (work) info = call_it(problem, work, (int)best);
    end(n_threads);
    int status = !work && info == 0 ? qkv_fail_memory(err) : QKV_OK;
    if (info != 0)
        status = qkv_fail(err, QKV_ERR_NUMERIC, "no %s of a %d x %d matrix: LAPACK says %d", what,
                          rows, cols, info);
    free(work);
    return status;
}

typedef struct problem {
    double *a, *s, *u, *vt; /* u and vt are NULL when only values are wanted */
    int rows, cols;
    int *iwork;
} problem;

static int call_decompose(void *argument, double *work, int lwork) {
    const problem *p = argument;
    int least = p->rows < p->cols ? p->rows : p->cols, info = 0;
    double none = 0;
    dgesdd_(p->u ? "S" : "N", &p->rows, &p->cols, p->a, &p->rows, p->s, p->u ? p->u : &none,
            &p->rows, p->vt ? p->vt : &none, &least, work, &lwork, p->iwork, &info, 1);
    return info;
}

static int decompose(problem *p, qkv_error *err) {
    int least = p->rows < p->cols ? p->rows : p->cols;
    p->iwork = qkv_calloc(8 * (size_t)least, sizeof *p->iwork);
    int status = p->iwork ? work_on(call_decompose, p, "singular values", p->rows, p->cols, err)
                          : qkv_fail_memory(err);
    free(p->iwork);
    return status;
}

int qkv_singular_values(double *values, double *a, int rows, int cols, qkv_error *err) {
    return decompose(&(problem){.a = a, .s = values, .rows = rows, .cols = cols}, err);
}

int qkv_left_vectors(double *vectors, double *a, int rows, int cols, int rank, qkv_error *err) {
    size_t least = (size_t)(rows < cols ? rows : cols), column = (size_t)rows;
    problem p = {.a = a,
                 .s = qkv_calloc(least, sizeof *p.s),
                 .u = qkv_calloc(column * least, sizeof *p.u),
                 .vt = qkv_calloc(least * (size_t)cols, sizeof *p.vt),
                 .rows = rows,
                 .cols = cols};
    int status = p.s && p.u && p.vt ? decompose(&p, err) : qkv_fail_memory(err);
    if (status == QKV_OK) memcpy(vectors, p.u, column * (size_t)rank * sizeof *vectors);
    free(p.s);
    free(p.u);
    free(p.vt);
    return status;
}

typedef struct triangle {
    double *a, *tau;
    int rows, cols;
} triangle;

static int call_triangle(void *argument, double *work, int lwork) {
    const triangle *p = argument;
    int info = 0;
    dgeqrf_(&p->rows, &p->cols, p->a, &p->rows, p->tau, work, &lwork, &info);
    return info;
}

int qkv_triangle(double *r, double *a, int rows, int cols, qkv_error *err) {
    const int least = rows < cols ? rows : cols;
    triangle p = {
        .a = a, .tau = qkv_calloc((size_t)least, sizeof *p.tau), .rows = rows, .cols = cols};
    int status = p.tau ? work_on(call_triangle, &p, "QR decomposition", rows, cols, err)
                       : qkv_fail_memory(err);
    for (int c = 0; status == QKV_OK && c < cols; c++) {
        for (int i = 0; i < least; i++) r[c * least + i] = i <= c ? a[c * rows + i] : 0;
    }
    free(p.tau);
    return status;
}

typedef struct eigen {
    double *a, *real, *imaginary;
    int n;
} eigen;

static int call_eigen(void *argument, double *work, int lwork) {
    const eigen *p = argument;
    int info = 0, one = 1;
    double none = 0;
    dgeev_("N", "N", &p->n, p->a, &p->n, p->real, p->imaginary, &none, &one, &none, &one, work,
           &lwork, &info, 1, 1);
    return info;
}

int qkv_eigenvalues(double *real, double *imaginary, double *a, int n, qkv_error *err) {
    eigen p = {.a = a, .real = real, .imaginary = imaginary, .n = n};
    return work_on(call_eigen, &p, "eigenvalues", n, n, err);
}

/* products = uᵀ w, and w -= u uᵀ w: the cosines and sines of the angles are their singular
 * values. */
static void project(double *products, double *w, const double *u, int rows, int rank) {
    for (int c = 0; c < rank; c++) {
        for (int r = 0; r < rank; r++) {
            double dot = 0;
            for (int i = 0; i < rows; i++) dot += u[r * rows + i] * w[c * rows + i];
            products[c * rank + r] = dot;
        }
    }
    for (int c = 0; c < rank; c++) {
        for (int r = 0; r < rank; r++) {
            for (int i = 0; i < rows; i++)
                w[c * rows + i] -= products[c * rank + r] * u[r * rows + i];
        }
    }
}

int qkv_subspace_angle(double *angle, const double *u, const double *w, int rows, int rank,
                       qkv_error *err) {
    size_t n = (size_t)rank, size = (size_t)rows * n;
    double *rest = qkv_calloc(size, sizeof *rest), *products = qkv_calloc(n * n, sizeof *products);
    double *cosines = qkv_calloc(n, sizeof *cosines), *sines = qkv_calloc(n, sizeof *sines);
    int status = rest && products && cosines && sines ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) {
        memcpy(rest, w, size * sizeof *rest);
        project(products, rest, u, rows, rank);
        status = qkv_singular_values(cosines, products, rank, rank, err);
    }
    if (status == QKV_OK) status = qkv_singular_values(sines, rest, rows, rank, err);
    /* Largest cosine, smallest sine; atan2 is exact at both ends of the range. */
    *angle = 0;
    for (size_t i = 0; status == QKV_OK && i < n; i++)
        *angle += atan2(sines[n - 1 - i], cosines[i]);
    free(rest);
    free(products);
    free(cosines);
    free(sines);
    return status;
}
