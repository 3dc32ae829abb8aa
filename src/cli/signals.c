/*
 * What ends the program from outside takes the temporary files along. Commands that want to hear of
 * Ctrl-C themselves (a sweep, a benchmark) put their own handler in place for that time.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stddef.h>

#include "base/temporary.h"
#include "cli/cli.h"

/* Not SIGSEGV and its like: after those nothing can be relied upon. SIGXFSZ is a full quota. */
static const int ENDING[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ};

/* The signal comes a second time, so that the exit status tells of it. */
void cli_end_by_signal(int number) {
    qkv_temporaries_remove();
    signal(number, SIG_DFL);
    raise(number);
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = cli_end_by_signal}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ENDING / sizeof *ENDING; i++) {
        /* What whoever started the program wants ignored (nohup) stays ignored. */
        if (sigaction(ENDING[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ENDING[i], &action, NULL);
    }
}
