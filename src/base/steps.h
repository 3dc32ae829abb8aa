/*
 * The library's side of qkv/progress.h: when the caller's callback is called, and whether it wants
 * the work to end.
 *
 * Work begins with qkv_steps_begin and ends with qkv_steps_end, in the caller's thread. In between any
 * thread may ask qkv_steps_tick; only the caller's calls the callback, now and then, and all hear when it
 * said stop. Works can lie inside each other: the callback is told of the outermost, by what it and those
 * inside have done, and never of less than before.
 */
#ifndef QKV_BASE_STEPS_H
#define QKV_BASE_STEPS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/fail.h"
#include "qkv/progress.h"

/* One work. */
typedef struct qkv_steps_level {
    const char *what;
    double total, done;
    double next;       /* of `total`: what is at hand */
    int counts_itself; /* `next` is done when a work inside it ends */
} qkv_steps_level;

enum { QKV_STEPS_LEVELS = 8 }; /* works inside each other; further ones are not counted */

typedef struct qkv_steps {
    qkv_progress host; /* without a step: progress is not reported */
    double interval;   /* seconds between two calls of qkv_steps_tick */
    qkv_steps_level levels[QKV_STEPS_LEVELS];
    int n_levels;
    double parts;  /* that the innermost work's `next` comes in; 0: unknown */
    double part;   /* one more with every qkv_steps_part */
    double shown;  /* what the callback was told last */
    double called; /* when */
    pthread_t owner;
    atomic_int stopped;
} qkv_steps;

/* Takes over a caller's callback; NULL: none. */
int qkv_steps_set(qkv_steps *steps, const qkv_progress *progress, qkv_error *err);

/* New work, of `total` of something; 0: not known how much. */
void qkv_steps_begin(qkv_steps *steps, const char *what, double total);
/* What is done of it, and calls the callback: 1 when the work is to end. `next` is what is done next. */
int qkv_steps_reach(qkv_steps *steps, double done, double next);
/* How much is done of what is at hand, of parts that are not counted here. Returns as qkv_steps_reach. */
int qkv_steps_inside(qkv_steps *steps, double done, double total);
/* Says how much is done next, where that was not known when it was reached. */
void qkv_steps_expect(qkv_steps *steps, double next);
/* The work is over, all of it where it went well: the callback hears so, too late to stop it. */
void qkv_steps_end(qkv_steps *steps, int went_well);
/* One of the parts is done. Returns as qkv_steps_tick. */
int qkv_steps_part(qkv_steps *steps);
/* 1 when the work is to end. steps may be NULL: never. */
int qkv_steps_tick(qkv_steps *steps);

/* Waits for the condition, no longer than a caller who wants to stop
 * the work should wait. The lock is free while the callback is called. */
void qkv_steps_wait(qkv_steps *steps, pthread_cond_t *changed, pthread_mutex_t *lock);

static inline int qkv_steps_stopped(const qkv_steps *steps) {
    return steps && atomic_load_explicit(&steps->stopped, memory_order_relaxed);
}

#define qkv_fail_cancelled(err) qkv_fail(err, QKV_ERR_CANCELLED, "stopped")

#endif
