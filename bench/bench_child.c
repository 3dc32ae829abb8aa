/*
 * A process of its own: `qkv run` with the grid, timed from start to end.
 *
 * posix_spawn rather than fork, which would copy the tables of all that is mapped here into the
 * time that is measured.
 */
#define _DEFAULT_SOURCE /* wait4 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/file.h"
#include "base/text.h"
#include "bench.h"

extern char **environ;

/* Everything a child is given: texts first, then the list of words that points to them. */
typedef struct child {
    qkv_text output, log, tokens, threads, capture;
    char edits[BENCH_EDITS][BENCH_EDIT_SIZE];
    const char *words[40];
    size_t n;
} child;

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add_words(child *k, const char *option, const char *value) {
    k->words[k->n++] = option;
    if (value) k->words[k->n++] = value;
}

static int make_child(child *k, const bench_case *c, qkv_error *err) {
    qkv_text_printf(&k->output, "%s/out.safetensors", c->setting->scratch);
    qkv_text_printf(&k->log, "%s/log", c->setting->scratch);
    for (size_t i = 0; i < c->setting->n_tokens; i++) {
        qkv_text_printf(&k->tokens, "%s%d", i ? "," : "", (int)c->tokens[i]);
    }
    qkv_text_printf(&k->threads, "%d", (int)c->setting->n_threads);
    qkv_text_printf(&k->capture, "pattern@%d", (int)c->layer);
    if (k->output.failed || k->log.failed || k->tokens.failed || k->threads.failed ||
        k->capture.failed) {
        return qkv_fail_memory(err);
    }
    add_words(k, "qkv", "run");
    add_words(k, "-m", c->path);
    add_words(k, "--tokens", k->tokens.data);
    add_words(k, "-t", k->threads.data);
    add_words(k, "--capture", k->capture.data);
    for (int i = 0; i < BENCH_EDITS; i++) {
        bench_edit_text(k->edits[i], i, c->layer);
        add_words(k, "--variant", k->edits[i]);
    }
    add_words(k, "-o", k->output.data);
    return QKV_OK;
}

static void release_child(child *k) {
    qkv_text_release(&k->output);
    qkv_text_release(&k->log);
    qkv_text_release(&k->tokens);
    qkv_text_release(&k->threads);
    qkv_text_release(&k->capture);
}

/* Whatever it says goes to a file: it is of interest only when the child fails. */
static int spawn(const child *k, const char *program, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    code = posix_spawn_file_actions_addopen(&actions, 1, k->log.data, O_WRONLY | O_CREAT | O_TRUNC,
                                            0600);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!code) {
        code = posix_spawn(pid, program, &actions, NULL, (char *const *)(void *)k->words, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int fail_child(const child *k, qkv_error *err) {
    char *log = NULL;
    size_t size = 0;
    if (qkv_read_file(&log, &size, k->log.data, 1 << 20, NULL) != QKV_OK) size = 0;
    while (size && log[size - 1] == '\n') log[--size] = '\0';
    const char *last = size ? strrchr(log, '\n') : NULL;
    const int status =
        qkv_fail(err, QKV_ERR_BACKEND, "a process with the grid failed; its last words: %s",
                 last ? last + 1 : (size ? log : "none"));
    free(log);
    return status;
}

static int run_child(const child *k, const char *program, double *seconds, double *peak_bytes,
                     qkv_error *err) {
    pid_t pid;
    int status = 0;
    struct rusage usage = {0};
    const double start = bench_now();
    const int code = spawn(k, program, &pid);
    if (code) return qkv_fail(err, QKV_ERR_IO, "cannot start %s: %s", program, strerror(code));
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR)
            return qkv_fail(err, QKV_ERR_IO, "cannot wait for a process: %s", strerror(errno));
    }
    *seconds = bench_now() - start;
    *peak_bytes = 1024.0 * (double)usage.ru_maxrss;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? QKV_OK : fail_child(k, err);
}

int bench_child(const bench_case *c, double *seconds, double *peak_bytes, qkv_error *err) {
    child k = {0};
    int status = make_child(&k, c, err);
    if (status == QKV_OK) status = run_child(&k, c->setting->program, seconds, peak_bytes, err);
    release_child(&k);
    return status;
}
