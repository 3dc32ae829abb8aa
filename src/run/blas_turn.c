#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "run/blas_turn.h"

#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* OpenBLAS's own, on x86-64. */
#define BUFFER_BYTES ((size_t)128 << 20)

/* Beside the stack of a thread, and for what a new one allocates at once. */
#define GUARD_BYTES ((size_t)1 << 20)

/* Not from cblas.h, which other implementations of BLAS have too. */
void openblas_set_num_threads(int n_threads);
int openblas_get_num_threads(void);
/* Its pool of buffers. Weak: not every build shows it. */
__attribute__((weak)) void *blas_memory_alloc(int place);
__attribute__((weak)) void blas_memory_free(void *buffer);

/* Who has asked for a turn, in the order of asking; each on the stack of its thread. */
struct waiter {
    struct waiter *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct waiter *first; /* who may enter next */
    int n_inside;
    int n_threads;      /* that those inside have asked for */
    int n_threads_host; /* what was set before the first of them came */
    int n_buffers;      /* that OpenBLAS can be sure of: it never gives memory back */
} room = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* In pieces, as OpenBLAS asks for them: the system may refuse in one what it gives in many. */
static int allows_more(int n_buffers) {
    void **chain = NULL;
    int n = 0;
    for (; n < n_buffers; n++) {
        void **piece = malloc(BUFFER_BYTES);
        if (!piece) break;
        *piece = chain;
        chain = piece;
    }
    while (chain) {
        void **next = *chain;
        free(chain);
        chain = next;
    }
    return n == n_buffers;
}

/* One for each thread, allocated when the library is loaded or told their number, and one
 * for each product under way. */
static int allows_buffers(int n_threads) {
    int n = n_threads + room.n_inside + 1;
    if (room.n_buffers == 0) room.n_buffers = openblas_get_num_threads();
    if (n > room.n_buffers && !allows_more(n - room.n_buffers)) return 0;
    if (n > room.n_buffers) room.n_buffers = n;
    return 1;
}

static void set_threads(int n_threads) {
    room.n_threads = n_threads;
    room.n_threads_host = openblas_get_num_threads();
    openblas_set_num_threads(n_threads);
}

/* A product's buffer is taken now, while there is room for it, and stays in the pool. Later the
 * stacks and the heaps of new threads may have used it up. */
static void fill_pool(void) {
    if (blas_memory_alloc && blas_memory_free) blas_memory_free(blas_memory_alloc(0));
}

/* OpenMP ends the process when it cannot start a thread. */
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

static void allow_whole_teams(qkv_blas_turn *turn) {
    *turn = (qkv_blas_turn){.openmp_threads = omp_get_max_threads(),
                            .openmp_dynamic = omp_get_dynamic(),
                            .openmp_levels = omp_get_max_active_levels()};
    omp_set_dynamic(0);
    if (turn->openmp_levels < 1) omp_set_max_active_levels(1);
}

static void put_back(const qkv_blas_turn *turn) {
    omp_set_num_threads(turn->openmp_threads);
    omp_set_dynamic(turn->openmp_dynamic);
    if (turn->openmp_levels < 1) omp_set_max_active_levels(turn->openmp_levels);
}

static void line_up(struct waiter *waiter) {
    struct waiter **end = &room.first;
    while (*end) end = &(*end)->next;
    *end = waiter;
}

static void step_out(const struct waiter *waiter) {
    struct waiter **at = &room.first;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
}

int qkv_blas_enter(qkv_blas_turn *turn, int n_threads, qkv_steps *steps) {
    allow_whole_teams(turn);
    struct waiter self = {NULL};
    pthread_mutex_lock(&room.lock);
    line_up(&self);
    while ((room.first != &self || (room.n_inside && room.n_threads != n_threads)) &&
           !qkv_steps_stopped(steps))
        qkv_steps_wait(steps, &room.changed, &room.lock);
    step_out(&self);
    int allowed = !qkv_steps_stopped(steps) && allows_buffers(n_threads);
    if (allowed && room.n_inside++ == 0) set_threads(n_threads);
    if (allowed) fill_pool();
    pthread_cond_broadcast(&room.changed);
    pthread_mutex_unlock(&room.lock);
    if (!allowed) put_back(turn);
    if (!allowed || allows_stacks(n_threads)) return allowed;
    qkv_blas_leave(*turn);
    return 0;
}

void qkv_blas_leave(qkv_blas_turn turn) {
    pthread_mutex_lock(&room.lock);
    if (--room.n_inside == 0) openblas_set_num_threads(room.n_threads_host);
    pthread_cond_broadcast(&room.changed);
    pthread_mutex_unlock(&room.lock);
    put_back(&turn);
}
