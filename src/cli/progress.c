/*
 * How far a command is, on standard error: a line that is drawn over itself on a terminal, once the work
 * has taken a second; elsewhere a line at the start and one at the end of work that takes long, and nothing
 * for what does not. All of it comes through the callback of sessions (qkv/progress.h), so that every
 * command that computes has it.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/inputs.h"
#include "cli/messages.h"

enum { BAR = 24 };

/* Seconds: before anything is shown, between two looks at it. */
static const double terminal_after = 1, terminal_every = 0.1;
/* Elsewhere: when it can be told how long it will take, and how long is worth a line. */
static const double elsewhere_after = 2, elsewhere_long = 10;

typedef struct progress {
    const char *command;
    int is_off;     /* nothing is shown any more */
    int ends_told;  /* the command says itself that it is done */
    int is_running; /* work has begun and is not over */
    double first;   /* its share that was done when it began: results of an earlier time */
    double started, shown;
    int is_drawn; /* a line of the terminal is taken */
    int is_told;  /* the line at the start was written */
} progress;

static progress now_shown = {.command = ""};

void cli_duration(char out[CLI_DURATION_SIZE], double seconds) {
    const int64_t s = seconds < 1e15 ? (int64_t)(seconds + 0.5) : 0;
    if (s < 60) {
        snprintf(out, CLI_DURATION_SIZE, "%" PRId64 " s", s);
    } else if (s < 3600) {
        snprintf(out, CLI_DURATION_SIZE, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    } else {
        snprintf(out, CLI_DURATION_SIZE, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    }
}

void cli_progress_name(const char *command) {
    now_shown.command = command;
}

void cli_progress_end_is_told(void) {
    now_shown.ends_told = 1;
}

void cli_progress_clear(void) {
    if (!now_shown.is_drawn) return;
    now_shown.is_drawn = 0;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

void cli_progress_off(void) {
    cli_progress_clear();
    now_shown.is_off = 1;
}

/* The share of the work from which on it can be told how long the rest takes. */
static const double telling = 0.01;

/* How long the rest takes, if it continues as it did; NaN: not known. */
static double seconds_left(const progress *p, double share, double elapsed) {
    return share - p->first < telling ? (double)NAN : elapsed * (1 - share) / (share - p->first);
}

/* Rounded down: 100 % is all of it. */
static int percent_of(double share) {
    return (int)(100 * share);
}

/* ", 12 of 40 prompts", where these are things that one can count. */
static void describe_count(char *out, size_t size, const char *what, double done, double total) {
    out[0] = '\0';
    if (total < 2 || total > floor(total) || strcmp(what, "parts") == 0) return;
    if (strcmp(what, "bytes") == 0)
        qkv_format(out, size, ", %.1f of %.1f MB", done / 1e6, total / 1e6);
    else
        qkv_format(out, size, ", %.0f of %.0f %s", floor(done), total, what);
}

static void draw(progress *p, const char *what, double done, double total, double left) {
    char bar[BAR + 1], count[80], time[CLI_DURATION_SIZE];
    const int filled = (int)(BAR * done / total);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)(filled < BAR ? filled : BAR));
    bar[BAR] = '\0';
    describe_count(count, sizeof count, what, done, total);
    cli_duration(time, left);
    fprintf(stderr, "\r[%s] %d %%%s%s%s%s\033[K", bar, percent_of(done / total), count,
            isnan(left) ? "" : ", ", isnan(left) ? "" : time, isnan(left) ? "" : " left");
    fflush(stderr);
    p->is_drawn = 1;
}

static void show_on_terminal(progress *p, const char *what, double done, double total) {
    const double time = cli_seconds(), elapsed = time - p->started;
    if (elapsed < terminal_after || time - p->shown < terminal_every) return;
    p->shown = time;
    draw(p, what, done, total, seconds_left(p, done / total, elapsed));
}

static void show_elsewhere(progress *p, const char *what, double done, double total) {
    const double elapsed = cli_seconds() - p->started;
    if (p->is_told || elapsed < elsewhere_after) return;
    const double left = seconds_left(p, done / total, elapsed);
    if (!(elapsed + left >= elsewhere_long) && elapsed < elsewhere_long) return;
    char count[80], after[CLI_DURATION_SIZE], time[CLI_DURATION_SIZE];
    describe_count(count, sizeof count, what, done, total);
    cli_duration(after, elapsed);
    cli_duration(time, left);
    cli_notice("qkv %s: %d %%%s after %s%s%s%s", p->command, percent_of(done / total), count, after,
               isnan(left) ? "" : ", about ", isnan(left) ? "" : time, isnan(left) ? "" : " left");
    p->is_told = 1;
}

static void end(progress *p) {
    char time[CLI_DURATION_SIZE];
    cli_progress_clear();
    cli_duration(time, cli_seconds() - p->started);
    if (p->is_told && !p->ends_told) cli_notice("qkv %s: computed in %s", p->command, time);
    p->is_running = p->is_told = 0;
}

void cli_progress_show(const char *what, double done, double total) {
    progress *p = &now_shown;
    const int is_over = done >= total;
    if (cli_is_quiet() || p->is_off || !(total > 0) || (is_over && !p->is_running)) return;
    if (is_over) {
        end(p);
        return;
    }
    if (!p->is_running) {
        p->is_running = 1;
        p->first = done / total;
        p->started = cli_seconds();
        p->shown = 0;
    }
    (isatty(STDERR_FILENO) ? show_on_terminal : show_elsewhere)(p, what, done, total);
}

/* ---- the callback ---- */

static int step(void *user, const char *what, double done, double total) {
    (void)user;
    const int asked = cli_stop_asked();
    if (!asked) cli_progress_show(what, done, total);
    return asked;
}

const qkv_progress *cli_progress(void) {
    static const qkv_progress watch = {sizeof watch, step, NULL};
    cli_hear_signals();
    return &watch;
}
