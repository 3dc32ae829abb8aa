/*
 * Faults that no function can return: they end the program with one line and status 1.
 *
 *   SIGBUS    a mapped model was cut off or cannot be read any more
 *   SIGABRT   a library gave up; ggml through its callback, which has the reason
 *   no room   OpenBLAS allocates buffers when it is loaded, and tries for ever when it cannot
 *
 * Nothing that is written is lost: files appear under their names when they are complete.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/temporary.h"
#include "cli/cli.h"
#include "qkv/host.h"

/* As much as a signal handler may do. */
static void say(const char *text) {
    for (size_t left = strlen(text); left;) {
        const ssize_t n = write(STDERR_FILENO, text, left);
        if (n <= 0) return;
        text += n;
        left -= (size_t)n;
    }
}

/* The first thread that comes here speaks for all. */
static _Noreturn void end(const char *text) {
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&taken)) pause();
    qkv_temporaries_remove();
    say("qkv: ");
    say(text);
    say("\n");
    _exit(EXIT_FAILURE);
}

static void on_fault(int number) {
    end(number == SIGBUS ? "the model's file was changed or became unreadable while it was in use"
                         : "out of memory, or a fault in a library");
}

static void on_ggml_abort(const char *message) {
    const char *colon = strstr(message, ": "); /* after file and line */
    char text[512] = "ggml gave up, out of memory or at a fault of its own: ";
    strncat(text, colon ? colon + 2 : message, sizeof text - strlen(text) - 1);
    end(text);
}

void cli_catch_faults(void) {
    struct sigaction action = {.sa_handler = on_fault};
    sigfillset(&action.sa_mask); /* or a thread could come to wait for itself */
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    qkv_host_on_abort(on_ggml_abort);
}

/* ---- before any library starts ---- */

/* The address sanitizer has its own order of starting, and reserves more than any limit allows. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED
#endif
#endif

#ifndef IS_SANITIZED
/* OpenBLAS's own, on x86-64. */
#define BUFFER_BYTES ((size_t)128 << 20)

/* As many as OpenBLAS will take. */
static int n_buffers(char **environment) {
    static const char *const names[] = {
        "OPENBLAS_NUM_THREADS=", "GOTO_NUM_THREADS=", "OMP_NUM_THREADS="};
    cpu_set_t cores;
    int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (char **entry = environment; *entry; entry++) {
            if (strncmp(*entry, names[i], strlen(names[i])) != 0) continue;
            int asked = atoi(*entry + strlen(names[i]));
            if (asked > 0 && asked < n) n = asked;
        }
    }
    return n;
}

static void check_room(int argc, char **argv, char **environment) {
    (void)argc;
    (void)argv;
    enum { MOST = 1024 };
    void *buffers[MOST];
    int n = n_buffers(environment), got = 0;
    for (; got < n && got < MOST; got++) {
        buffers[got] =
            mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (buffers[got] == MAP_FAILED) break;
    }
    for (int i = 0; i < got; i++) munmap(buffers[i], BUFFER_BYTES);
    if (got < n && got < MOST)
        end("out of memory: OpenBLAS needs 128 MiB of address space per core (see 'ulimit -v'); "
            "OPENBLAS_NUM_THREADS=1 makes it one core");
}

/* Runs before the libraries' constructors. */
__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **,
                                                                            char **) = check_room;
#endif
