/*
 * What ends the program from outside takes the temporary files along.
 *
 * Work that can be stopped hears of the first SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal is
 * closed) through cli_progress (progress.c), ends in order, and the program ends by that signal, so that shells see
 * 130 or 143. A second one ends it at once; so does the first where the work does not listen within a
 * second, or nothing listens at all.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "base/temporary.h"
#include "cli/inputs.h"

/* Not SIGSEGV and its like: after those nothing can be relied upon. SIGXFSZ is a full quota. */
static const int ENDING[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ};

static volatile sig_atomic_t listens; /* work that can be stopped has begun */
static volatile sig_atomic_t asked;   /* the signal that asks it to stop, or 0 */
static struct timespec asked_at;

/* The signal comes a second time, so that the exit status tells of it. */
void cli_end_by_signal(int number) {
    qkv_temporaries_remove(); // NOLINT(bugprone-signal-handler): made to be called here
    signal(number, SIG_DFL);
    raise(number);
}

static void on_alarm(int number) {
    (void)number;
    cli_end_by_signal(asked);
}

/* timeout(1) and the like send a signal twice, to the process and to its group. */
static int is_echo(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double since =
        (double)(now.tv_sec - asked_at.tv_sec) + (double)(now.tv_nsec - asked_at.tv_nsec) * 1e-9;
    return since < 0.25;
}

static void on_signal(int number) {
    const int asks = number == SIGINT || number == SIGTERM || number == SIGHUP;
    if (asks && asked && is_echo()) return;
    if (!asks || !listens || asked) {
        cli_end_by_signal(number);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &asked_at);
    asked = number;
    signal(SIGALRM, on_alarm);
    alarm(1);
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ENDING / sizeof *ENDING; i++)
        sigaddset(&action.sa_mask, ENDING[i]);
    for (size_t i = 0; i < sizeof ENDING / sizeof *ENDING; i++) {
        /* Signals that the parent process has set to be ignored (nohup) stay ignored. */
        if (sigaction(ENDING[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ENDING[i], &action, NULL);
    }
}

void cli_hear_signals(void) {
    listens = 1;
}

int cli_stop_asked(void) {
    alarm(0); /* it was heard */
    return asked;
}

void cli_end_soon(void) {
    if (asked) alarm(2);
}
