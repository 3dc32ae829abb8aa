/*
 * What a pull tells its caller: how far it is, how fast, and lines about what takes time; and whether
 * the caller wants it to end.
 */
#ifndef QKV_HUB_PULL_WATCH_H
#define QKV_HUB_PULL_WATCH_H

#include "base/fail.h"
#include "qkv/pull.h"

enum { QKV_PULL_SAMPLES = 10 };

typedef struct qkv_pull_watch {
    qkv_pull_options options;
    qkv_pull_step step;
    uint64_t fetched; /* over the network */
    struct {
        double time;
        uint64_t fetched;
    } samples[QKV_PULL_SAMPLES]; /* now and then, the oldest overwritten: for the speed */
    size_t n_samples;
    double called;
    int stopped;
} qkv_pull_watch;

int qkv_pull_watch_start(qkv_pull_watch *watch, const qkv_pull_options *options, qkv_error *err);

/* The next file. */
void qkv_pull_watch_file(qkv_pull_watch *watch, const char *path, uint64_t size);
/* One that needs no work. */
void qkv_pull_watch_skip(qkv_pull_watch *watch, uint64_t size);
/* So many bytes of it are done, `fetched` of them new from the network since the last time. Returns
 * as qkv_pull_watch_tick. */
int qkv_pull_watch_reach(qkv_pull_watch *watch, uint64_t done, uint64_t fetched);
/* Calls the caller's `step`, unless that was just now: 1 when the work is to end. */
int qkv_pull_watch_tick(void *watch);
/* Calls it in any case. */
int qkv_pull_watch_show(qkv_pull_watch *watch);

void qkv_pull_watch_note(qkv_pull_watch *watch, const char *format, ...) QKV_PRINTF(2, 3);
/* 1 when the work is to end. */
int qkv_pull_watch_sleep(qkv_pull_watch *watch, double seconds);

#endif
