/*
 * Makes threads give up a core soon when they wait for each other. libgomp reads how long they spin
 * before main begins, so the program sets it and starts itself anew. Its default of spinning for
 * milliseconds at every barrier makes a run many times slower when another process needs a core,
 * and waking from a short spin costs microseconds.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

void cli_set_wait_policy(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    /* The variable also says that this was done: nothing is started a second time. */
    if (n <= 0 || setenv("GOMP_SPINCOUNT", "1000", 1) != 0) return;
    program[n] = '\0';
    execv(program, argv); /* by its own name, which process listings show; if it fails, continue */
}
