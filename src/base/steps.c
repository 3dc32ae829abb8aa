#define _POSIX_C_SOURCE 200809L
#include "base/steps.h"

#include <time.h>

#include "base/sized.h"

static const double usual_interval = 0.02;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int qkv_steps_set(qkv_steps *steps, const qkv_progress *progress, qkv_error *err) {
    qkv_progress host = QKV_PROGRESS_INIT;
    const int status = qkv_sized_read(&host, sizeof host, progress, "qkv_progress", err);
    if (status != QKV_OK) return status;
    steps->host = host;
    steps->interval = usual_interval;
    return QKV_OK;
}

void qkv_steps_begin(qkv_steps *steps, const char *what, double total) {
    steps->what = what;
    steps->total = total;
    steps->done = steps->share = steps->parts = steps->part = 0;
    steps->owner = pthread_self();
    atomic_store(&steps->stopped, 0);
}

static int call(qkv_steps *steps) {
    const double inside = steps->parts > 0 ? steps->share * steps->part / steps->parts : 0;
    const double done = steps->done + inside;
    steps->called = now();
    if (steps->host.step(steps->host.user, steps->what, done, steps->total) != 0)
        atomic_store(&steps->stopped, 1);
    return qkv_steps_stopped(steps);
}

int qkv_steps_reach(qkv_steps *steps, double done, double share) {
    steps->done = done;
    steps->share = share;
    steps->parts = steps->part = 0;
    if (!steps->host.step || qkv_steps_stopped(steps)) return qkv_steps_stopped(steps);
    return call(steps);
}

int qkv_steps_tick(qkv_steps *steps) {
    if (!steps || !steps->host.step) return 0;
    if (qkv_steps_stopped(steps)) return 1;
    if (!pthread_equal(steps->owner, pthread_self())) return 0;
    return now() - steps->called >= steps->interval ? call(steps) : 0;
}

int qkv_steps_part(qkv_steps *steps) {
    if (pthread_equal(steps->owner, pthread_self()) && steps->part < steps->parts) steps->part++;
    return qkv_steps_tick(steps);
}

void qkv_steps_wait(qkv_steps *steps, pthread_cond_t *changed, pthread_mutex_t *lock) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(changed, lock, &until);
    pthread_mutex_unlock(lock);
    qkv_steps_tick(steps);
    pthread_mutex_lock(lock);
}
