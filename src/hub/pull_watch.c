#define _POSIX_C_SOURCE 200809L
#include "hub/pull_watch.h"

#include <stdarg.h>
#include <time.h>

#include "base/number.h"
#include "base/sized.h"

/* Seconds. */
static const double show_every = 0.1, sample_every = 0.5, sleep_for = 0.05;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int qkv_pull_watch_start(qkv_pull_watch *watch, const qkv_pull_options *options, qkv_error *err) {
    *watch = (qkv_pull_watch){.options = QKV_PULL_OPTIONS_INIT};
    watch->step = (qkv_pull_step){.size = sizeof watch->step, .file = "", .seconds_left = -1};
    return qkv_sized_read(&watch->options, sizeof watch->options, options, "qkv_pull_options", err);
}

/* Of the last few seconds: from the oldest sample to now. */
static void measure(qkv_pull_watch *watch, double time) {
    const size_t n = watch->n_samples;
    const size_t last = (n + QKV_PULL_SAMPLES - 1) % QKV_PULL_SAMPLES;
    if (n == 0 || time - watch->samples[last].time >= sample_every) {
        watch->samples[n % QKV_PULL_SAMPLES].time = time;
        watch->samples[n % QKV_PULL_SAMPLES].fetched = watch->fetched;
        watch->n_samples++;
    }
    const size_t oldest =
        watch->n_samples > QKV_PULL_SAMPLES ? watch->n_samples % QKV_PULL_SAMPLES : 0;
    const double elapsed = time - watch->samples[oldest].time;
    if (elapsed < sample_every) return;
    qkv_pull_step *step = &watch->step;
    step->speed = (double)(watch->fetched - watch->samples[oldest].fetched) / elapsed;
    step->seconds_left = step->speed > 0 ? (double)(step->total - step->done) / step->speed : -1;
}

int qkv_pull_watch_show(qkv_pull_watch *watch) {
    if (!watch->options.step || watch->stopped) return watch->stopped;
    watch->called = now();
    measure(watch, watch->called);
    watch->stopped = watch->options.step(watch->options.user, &watch->step) != 0;
    return watch->stopped;
}

int qkv_pull_watch_tick(void *user) {
    qkv_pull_watch *watch = user;
    const qkv_pull_step *step = &watch->step;
    /* That a file is complete is told once, when it has its name. */
    if (step->file_size && step->file_done == step->file_size) return watch->stopped;
    return now() - watch->called >= show_every ? qkv_pull_watch_show(watch) : watch->stopped;
}

void qkv_pull_watch_file(qkv_pull_watch *watch, const char *path, uint64_t size) {
    watch->step.file = path;
    watch->step.file_done = 0;
    watch->step.file_size = size;
}

void qkv_pull_watch_skip(qkv_pull_watch *watch, uint64_t size) {
    watch->step.done += size;
}

int qkv_pull_watch_reach(qkv_pull_watch *watch, uint64_t done, uint64_t fetched) {
    watch->step.done = watch->step.done - watch->step.file_done + done;
    watch->step.file_done = done;
    watch->fetched += fetched;
    return qkv_pull_watch_tick(watch);
}

void qkv_pull_watch_note(qkv_pull_watch *watch, const char *format, ...) {
    char line[1024];
    va_list args;
    if (!watch->options.note) return;
    va_start(args, format);
    qkv_vformat(line, sizeof line, format, args);
    va_end(args);
    watch->options.note(watch->options.user, line);
}

int qkv_pull_watch_sleep(qkv_pull_watch *watch, double seconds) {
    const struct timespec nap = {0, (long)(sleep_for * 1e9)};
    for (const double end = now() + seconds; now() < end;) {
        if (qkv_pull_watch_tick(watch)) return 1;
        nanosleep(&nap, NULL);
    }
    return watch->stopped;
}
