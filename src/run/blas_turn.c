#include "run/blas_turn.h"

#include <omp.h>
#include <pthread.h>
#include <stdint.h>

/* Not from cblas.h, which other implementations of BLAS have too. */
void openblas_set_num_threads(int n_threads);
int openblas_get_num_threads(void);

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t next_ticket, serving; /* whose ticket is served may enter next */
    int n_inside;
    int n_threads;      /* that those inside have asked for */
    int n_threads_host; /* what was set before the first of them came */
} room = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

qkv_blas_turn qkv_blas_enter(int n_threads) {
    qkv_blas_turn turn = {.openmp_threads = omp_get_max_threads()};
    pthread_mutex_lock(&room.lock);
    uint64_t ticket = room.next_ticket++;
    while (ticket != room.serving || (room.n_inside && room.n_threads != n_threads))
        pthread_cond_wait(&room.changed, &room.lock);
    if (room.n_inside++ == 0) {
        room.n_threads = n_threads;
        room.n_threads_host = openblas_get_num_threads();
        openblas_set_num_threads(n_threads);
    }
    room.serving++;
    pthread_cond_broadcast(&room.changed);
    pthread_mutex_unlock(&room.lock);
    return turn;
}

void qkv_blas_leave(qkv_blas_turn turn) {
    pthread_mutex_lock(&room.lock);
    if (--room.n_inside == 0) openblas_set_num_threads(room.n_threads_host);
    pthread_cond_broadcast(&room.changed);
    pthread_mutex_unlock(&room.lock);
    omp_set_num_threads(turn.openmp_threads);
}
