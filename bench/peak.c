/*
 * What the processor can do at the very most, in F32: fused multiply-adds on registers, nothing else.
 * And what OpenBLAS reaches on the shapes of the two models.
 *
 *     gcc -O3 -march=native -fopenmp bench/peak.c -o peak $(pkg-config --libs openblas) && ./peak
 */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { LANES = 8, CHAINS = 12, ROUNDS = 9 };
typedef float vec __attribute__((vector_size(LANES * sizeof(float))));

/* Enough independent chains to hide the latency of one addition. */
static float multiply_add(long n) {
    vec a[CHAINS], x, y;
    for (int i = 0; i < LANES; i++) x[i] = 0.999f, y[i] = 0.001f;
    for (int j = 0; j < CHAINS; j++) a[j] = x * (float)j;
    for (long i = 0; i < n; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < CHAINS; j++) a[j] = a[j] * x + y;
    }
    float sum = 0;
    for (int j = 0; j < CHAINS; j++) sum += a[j][0];
    return sum;
}

static double best_peak(int threads) {
    const long n = 10000000;
    double best = 0, sum = 0;
    for (int r = 0; r < ROUNDS; r++) {
        const double start = omp_get_wtime();
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
        for (int t = 0; t < threads; t++) sum += multiply_add(n);
        const double rate = 2e-9 * LANES * CHAINS * (double)n * threads / (omp_get_wtime() - start);
        if (rate > best) best = rate;
    }
    return sum != 0 ? best : 0;
}

/* Different weights every time, as in a forward pass: they come from memory. */
static double best_product(int K, int M, int N) {
    enum { COPIES = 24 };
    float *w = calloc((size_t)K * (size_t)M * COPIES, sizeof *w);
    float *x = calloc((size_t)K * (size_t)N, sizeof *x),
          *y = calloc((size_t)M * (size_t)N, sizeof *y);
    double best = 0;
    if (!w || !x || !y) abort();
    for (size_t i = 0; i < (size_t)K * (size_t)M * COPIES; i++) w[i] = (float)(i % 7);
    for (int r = 0; r < ROUNDS; r++) {
        const double start = omp_get_wtime();
        for (size_t c = 0; c < COPIES; c++)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, M, K, 1, x, K,
                        w + c * (size_t)K * (size_t)M, K, 0, y, M);
        const double rate = 2e-9 * K * M * N * COPIES / (omp_get_wtime() - start);
        if (rate > best) best = rate;
    }
    free(w);
    free(x);
    free(y);
    return best;
}

int main(void) {
    static const int shapes[][2] = {{768, 2304}, {768, 768},  {768, 3072}, {3072, 768},
                                    {576, 576},  {576, 1536}, {1536, 576}};
    const int threads = omp_get_max_threads();
    printf("registers, 1 thread: %.0f GFLOP/s; %d threads: %.0f GFLOP/s\n", best_peak(1), threads,
           best_peak(threads));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        printf("OpenBLAS %4d x %4d: %.0f GFLOP/s at 128 columns, %.0f at 512\n", shapes[i][0],
               shapes[i][1], best_product(shapes[i][0], shapes[i][1], 128),
               best_product(shapes[i][0], shapes[i][1], 512));
    return 0;
}
