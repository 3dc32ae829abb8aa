/*
 * How far a sweep has come: a bar that is drawn over itself on a terminal, a line now and then
 * elsewhere; on standard error.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/sweep.h"

enum { BAR = 24 };

/* Seconds between two looks at it. */
static const double on_terminal_every = 0.1, elsewhere_every = 30;

void sweep_duration(char out[32], double seconds) {
    const int64_t s = (int64_t)(seconds + 0.5);
    if (s < 60) {
        snprintf(out, 32, "%" PRId64 " s", s);
    } else if (s < 3600) {
        snprintf(out, 32, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    } else {
        snprintf(out, 32, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    }
}

void sweep_progress_start(sweep_progress *progress, int64_t done, int64_t wanted) {
    progress->first_done = progress->done = done;
    progress->wanted = wanted;
    progress->started = cli_seconds();
    progress->shown = progress->started - (isatty(STDERR_FILENO) ? 1 : 0);
    progress->on_terminal = isatty(STDERR_FILENO);
}

/* "1234 of 5000 cells, 410 cells/s, 9 s left" */
static void describe(const sweep_progress *p, char *out, size_t size) {
    const double elapsed = cli_seconds() - p->started;
    const double rate = elapsed > 0 ? (double)(p->done - p->first_done) / elapsed : 0;
    char left[32] = "?";
    if (rate > 0) sweep_duration(left, (double)(p->wanted - p->done) / rate);
    const char *unit = p->unit ? p->unit : "cells";
    qkv_format(out, size, "%" PRId64 " of %" PRId64 " %s, %.3g %s/s, %s left", p->done, p->wanted,
               unit, rate, unit, left);
}

static void show(const sweep_progress *p) {
    char text[160], bar[BAR + 1];
    describe(p, text, sizeof text);
    if (!p->on_terminal) {
        fprintf(stderr, "qkv %s: %s\n", p->command ? p->command : "sweep", text);
        return;
    }
    const int64_t filled = p->wanted ? p->done * BAR / p->wanted : BAR;
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)(filled < BAR ? filled : BAR));
    bar[BAR] = '\0';
    fprintf(stderr, "\r[%s] %s\033[K", bar, text);
    fflush(stderr);
}

int sweep_progress_step(void *user, int64_t done, int64_t wanted) {
    sweep_progress *p = user;
    const double time = cli_seconds();
    if (!p->wanted) p->first_done = done; /* what a file had already */
    p->done = done;
    p->wanted = wanted;
    if (!p->quiet && time - p->shown >= (p->on_terminal ? on_terminal_every : elsewhere_every)) {
        p->shown = time;
        show(p);
    }
    return cli_stop_asked() != 0;
}

/* Leaves the terminal's line for what is said next. */
void sweep_progress_end(sweep_progress *progress) {
    if (!progress->on_terminal || progress->quiet) return;
    fprintf(stderr, "\r\033[K");
}
