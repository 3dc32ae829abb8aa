/* Notices, warnings and details on standard error: one line each, or none. */
#define _POSIX_C_SOURCE 200809L
#include "cli/messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/progress.h"

static int is_quiet, is_verbose;

void cli_set_messages(int quiet, int verbose) {
    is_quiet = quiet;
    is_verbose = verbose;
}

int cli_is_quiet(void) {
    return is_quiet;
}

/* Written at once: lines of several processes stay whole. */
static void say(const char *lead, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    const int length = qkv_vformat(NULL, 0, format, again);
    va_end(again);
    char *line = length < 0 ? NULL : qkv_calloc((size_t)length + 1, 1);
    if (!line) return; /* no memory even for a notice: the work's own error tells */
    qkv_vformat(line, (size_t)length + 1, format, args);
    cli_progress_clear();
    fprintf(stderr, "%s%s\n", lead, line);
    free(line);
}

void cli_notice(const char *format, ...) {
    va_list args;
    if (is_quiet) return;
    va_start(args, format);
    say("", format, args);
    va_end(args);
}

void cli_warn(const char *format, ...) {
    va_list args;
    if (is_quiet) return;
    va_start(args, format);
    say("qkv: warning: ", format, args);
    va_end(args);
}

void cli_detail(const char *format, ...) {
    va_list args;
    if (!is_verbose) return;
    va_start(args, format);
    say("qkv: ", format, args);
    va_end(args);
}

double cli_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
