/*
 * The temporary directory. It may hold gigabytes, so it goes away also when a signal ends the
 * program: all that is in it is on the list of temporary files.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/temporary.h"
#include "base/text.h"
#include "bench.h"

/* The list may be full: then what is not on it stays after a signal. */
static void note_files(const char *directory) {
    static const char *const names[] = {"out.safetensors", "log"}; /* bench_child.c */
    (void)qkv_temporary_note(directory);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        qkv_text path = {0};
        qkv_text_printf(&path, "%s/%s", directory, names[i]);
        if (!path.failed) (void)qkv_temporary_note(path.data);
        qkv_text_release(&path);
    }
}

int bench_scratch_make(char **out, qkv_error *err) {
    const char *parent = getenv("TMPDIR");
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/qkv-bench.XXXXXX", parent && *parent ? parent : "/tmp");
    if (path.failed) return qkv_fail_memory(err);
    if (mkdtemp(path.data)) {
        note_files(path.data);
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
}
