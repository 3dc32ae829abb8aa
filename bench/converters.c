/*
 * How many weights a second are turned into F32, by ggml's converters and by ours, for each type: rows
 * that stay in cache, on one thread and on all of them. The best few of many short runs, in CPU time, so
 * that other programs count little.
 *
 *     gcc -O2 -fopenmp -Isrc -I.deps/ggml-native/include bench/converters.c -o converters build/libqkv.a \
 *         .deps/ggml-native/lib/libggml-cpu.a .deps/ggml-native/lib/libggml-base.a -lstdc++ -lm && ./converters
 */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "kernel/convert.h"

enum { ROWS = 4, WIDTH = 2048, PASSES = 16, ROUNDS = 1000 };

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Billions of weights a second of this thread. Not the very best run: clocks err now and then. */
static double best_rate(qkv_convert_fn convert, const char *rows, size_t row_size, float *to) {
    double seconds[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        const double start = cpu_seconds();
        for (int p = 0; p < PASSES; p++) {
            for (size_t i = 0; i < ROWS; i++) convert(rows + i * row_size, to + i * WIDTH, WIDTH);
        }
        seconds[r] = cpu_seconds() - start;
    }
    qsort(seconds, ROUNDS, sizeof *seconds, by_size);
    return 1e-9 * ROWS * WIDTH * PASSES / seconds[ROUNDS / 50];
}

/* Any bytes will do: what takes time does not depend on them. */
static char *make_rows(enum ggml_type type, size_t row_size) {
    char *rows = malloc(ROWS * row_size);
    if (!rows) abort();
    for (size_t i = 0; i < ROWS * row_size; i++) rows[i] = (char)qkv_random_mix((uint64_t)type, i);
    return rows;
}

static double rate(qkv_convert_fn convert, enum ggml_type type, int threads) {
    const size_t row_size = ggml_row_size(type, WIDTH);
    double sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        char *rows = make_rows(type, row_size);
        float *to = aligned_alloc(64, ROWS * WIDTH * sizeof *to);
        if (!to) abort();
        memset(to, 0, ROWS * WIDTH * sizeof *to);
#pragma omp barrier
        sum += best_rate(convert, rows, row_size, to);
        free(rows);
        free(to);
    }
    return sum;
}

int main(void) {
    const int threads = omp_get_max_threads();
    printf("billions of weights a second        1 thread       %2d threads\n", threads);
    printf("                                  ggml    qkv     ggml    qkv\n");
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const enum ggml_type type = (enum ggml_type)t;
        qkv_convert_fn ggml = ggml_get_type_traits(type)->to_float, ours = qkv_converter(type);
        if (!ggml) continue;
        printf("%-30s %7.2f%7.2f  %7.2f%7.2f%s\n", ggml_type_name(type), rate(ggml, type, 1),
               rate(ours, type, 1), rate(ggml, type, threads), rate(ours, type, threads),
               ggml == ours ? "  ggml's" : "");
    }
    return 0;
}
