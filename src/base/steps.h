/*
 * The library's side of qkv/progress.h: when the caller's callback is called, and whether it wants
 * the work to end.
 *
 * Work begins with qkv_steps_begin, in the caller's thread. From then on any thread may ask
 * qkv_steps_tick; only the caller's calls the callback, now and then, and all hear when it said stop.
 */
#ifndef QKV_BASE_STEPS_H
#define QKV_BASE_STEPS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/fail.h"
#include "qkv/progress.h"

typedef struct qkv_steps {
    qkv_progress host; /* without a step: nobody listens */
    double interval;   /* seconds between two calls of qkv_steps_tick */
    const char *what;
    double done, total;
    double share; /* of `total` that the part at hand is */
    double parts; /* that it comes in, one with every qkv_steps_part; 0: unknown */
    double part;
    double called; /* when the callback was called last */
    pthread_t owner;
    atomic_int stopped;
} qkv_steps;

/* Takes over a caller's callback; NULL: none. */
int qkv_steps_set(qkv_steps *steps, const qkv_progress *progress, qkv_error *err);

/* New work, of `total` of something. */
void qkv_steps_begin(qkv_steps *steps, const char *what, double total);
/* What is done of it, and calls the callback: 1 when the work is to end. `share` is what the next
 * part is of it. */
int qkv_steps_reach(qkv_steps *steps, double done, double share);
/* One of the parts is done. Returns as qkv_steps_tick. */
int qkv_steps_part(qkv_steps *steps);
/* 1 when the work is to end. steps may be NULL: never. */
int qkv_steps_tick(qkv_steps *steps);

/* Waits for the condition, no longer than somebody who wants to stop
 * the work should wait. The lock is free while the callback is called. */
void qkv_steps_wait(qkv_steps *steps, pthread_cond_t *changed, pthread_mutex_t *lock);

static inline int qkv_steps_stopped(const qkv_steps *steps) {
    return steps && atomic_load_explicit(&steps->stopped, memory_order_relaxed);
}

#define qkv_fail_cancelled(err) qkv_fail(err, QKV_ERR_CANCELLED, "stopped")

#endif
