/* An alarm, and a handler that says what was running. */
#define _POSIX_C_SOURCE 200809L
#include "support/time_limit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char message[128];

/* Only what is safe in a signal handler. */
static void time_is_up(int number) {
    (void)number;
    ssize_t written = write(STDERR_FILENO, message, strlen(message));
    _exit(written < 0 ? 2 : 1);
}

void time_limit_begin(unsigned seconds, const char *what) {
    snprintf(message, sizeof message, "time limit reached: %.100s\n", what);
    signal(SIGALRM, time_is_up);
    alarm(seconds);
}

void time_limit_end(void) {
    alarm(0);
    signal(SIGALRM, SIG_DFL);
}
