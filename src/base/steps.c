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

/* The work at hand; NULL: none, or one too far inside to be counted. */
static qkv_steps_level *innermost(qkv_steps *steps) {
    const int n = steps->n_levels;
    return n > 0 && n <= QKV_STEPS_LEVELS ? &steps->levels[n - 1] : NULL;
}

void qkv_steps_begin(qkv_steps *steps, const char *what, double total) {
    if (steps->n_levels == 0) {
        steps->shown = 0;
        steps->owner = pthread_self();
        atomic_store(&steps->stopped, 0);
    }
    steps->n_levels++;
    steps->parts = steps->part = 0;
    qkv_steps_level *level = innermost(steps);
    if (level)
        *level =
            (qkv_steps_level){.what = what, .total = total, .next = total > 0, .counts_itself = 1};
}

/* What the outermost work has done, with all inside it. */
static double done_by_now(const qkv_steps *steps) {
    const int n = steps->n_levels < QKV_STEPS_LEVELS ? steps->n_levels : QKV_STEPS_LEVELS;
    double inside = steps->parts > 0 ? steps->part / steps->parts : 0;
    for (int i = n - 1; i >= 0; i--) {
        const qkv_steps_level *level = &steps->levels[i];
        double done = level->done + level->next * inside;
        if (level->total > 0 && done > level->total) done = level->total;
        if (i == 0) return done;
        inside = level->total > 0 ? done / level->total : 0;
    }
    return 0;
}

static int call(qkv_steps *steps) {
    const double done = done_by_now(steps);
    if (done > steps->shown) steps->shown = done;
    steps->called = now();
    if (steps->host.step(steps->host.user, steps->levels[0].what, steps->shown,
                         steps->levels[0].total) != 0)
        atomic_store(&steps->stopped, 1);
    return qkv_steps_stopped(steps);
}

static int call_unless_stopped(qkv_steps *steps) {
    if (!steps->host.step || !steps->n_levels || qkv_steps_stopped(steps))
        return qkv_steps_stopped(steps);
    return call(steps);
}

int qkv_steps_reach(qkv_steps *steps, double done, double next) {
    qkv_steps_level *level = innermost(steps);
    steps->parts = steps->part = 0;
    if (level) {
        level->done = done;
        level->next = next;
        level->counts_itself = 0;
    }
    return call_unless_stopped(steps);
}

int qkv_steps_inside(qkv_steps *steps, double done, double total) {
    steps->part = done;
    steps->parts = total;
    return call_unless_stopped(steps);
}

void qkv_steps_expect(qkv_steps *steps, double next) {
    qkv_steps_level *level = innermost(steps);
    if (level) level->next = next;
}

void qkv_steps_end(qkv_steps *steps, int went_well) {
    qkv_steps_level *level = innermost(steps);
    if (steps->n_levels == 1 && went_well) (void)qkv_steps_reach(steps, level->total, 0);
    steps->parts = steps->part = 0;
    if (steps->n_levels > 0) steps->n_levels--;
    level = innermost(steps);
    if (level && level->counts_itself && went_well) level->done += level->next;
}

int qkv_steps_tick(qkv_steps *steps) {
    if (!steps || !steps->host.step) return 0;
    if (qkv_steps_stopped(steps)) return 1;
    if (!pthread_equal(steps->owner, pthread_self())) return 0;
    if (steps->n_levels == 0) return 0;
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
