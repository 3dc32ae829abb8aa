#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "run/openmp_threads.h"

#include <omp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

/* Beside the stack of a thread, and for what a new one allocates at once. */
#define GUARD_BYTES ((size_t)1 << 20)

static int allows_stacks(int n_threads) {
    pthread_attr_t attributes;
    size_t size = 0;
    if (n_threads < 2 || pthread_attr_init(&attributes) != 0) return 1;
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    size = (size + GUARD_BYTES) * (size_t)(n_threads - 1);
    void *room_for_all = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room_for_all == MAP_FAILED) return 0;
    munmap(room_for_all, size);
    return 1;
}

int qkv_openmp_enter(qkv_openmp_settings *before, int n_threads) {
    if (!allows_stacks(n_threads)) return 0;
    *before = (qkv_openmp_settings){omp_get_dynamic(), omp_get_max_active_levels()};
    omp_set_dynamic(0);
    if (before->levels < 1) omp_set_max_active_levels(1);
    return 1;
}

void qkv_openmp_leave(qkv_openmp_settings before) {
    omp_set_dynamic(before.dynamic);
    if (before.levels < 1) omp_set_max_active_levels(before.levels);
}
