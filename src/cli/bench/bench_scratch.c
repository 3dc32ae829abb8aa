/*
 * The temporary directory. It may hold gigabytes, so it goes away also when somebody presses
 * Ctrl-C: signals set a mark, measuring ends with an error at the next one, and the ordinary end of
 * the program cleans up.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/bench/bench.h"
#include "cli/cli.h"

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

static void set_signals(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int bench_check_stopped(qkv_error *err) {
    return stopped ? qkv_fail(err, QKV_ERR_BACKEND, "stopped by a signal") : QKV_OK;
}

int bench_scratch_make(char **out, qkv_error *err) {
    const char *parent = getenv("TMPDIR");
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/qkv-bench.XXXXXX", parent && *parent ? parent : "/tmp");
    if (path.failed) return qkv_fail_memory(err);
    set_signals(on_signal);
    if (mkdtemp(path.data)) {
        *out = path.data;
        return QKV_OK;
    }
    const int status =
        qkv_fail(err, QKV_ERR_IO, "cannot make a directory %s: %s", path.data, strerror(errno));
    qkv_text_release(&path);
    return status;
}

void bench_scratch_remove(char *path) {
    if (!path) return;
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL) {
        unlinkat(dirfd(directory), entry->d_name, 0); /* fails on . and .., as it should */
    }
    if (directory) closedir(directory);
    rmdir(path);
    free(path);
    set_signals(cli_end_by_signal);
}
