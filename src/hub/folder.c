#define _XOPEN_SOURCE 700 /* nftw */
#include "hub/folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/memory.h"

enum { MOST_OPEN = 16 };

static int make(const char *path) {
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

int qkv_folder_make(const char *path, qkv_error *err) {
    char *part = qkv_strdup(path);
    if (!part) return qkv_fail_memory(err);
    /* What is above may be there and forbid mkdir: only the last one counts. */
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        make(part);
        *slash = '/';
    }
    struct stat facts;
    int code = make(part) ? 0 : errno;
    if (!code && stat(part, &facts) != 0) code = errno;
    if (!code && !S_ISDIR(facts.st_mode)) code = ENOTDIR;
    free(part);
    if (!code) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "cannot make the folder %s: %s", path, strerror(code));
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where) {
    (void)facts;
    (void)kind;
    (void)where;
    remove(path);
    return 0;
}

void qkv_folder_remove(const char *path) {
    nftw(path, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
}

int qkv_folder_check_space(const char *path, uint64_t needed, qkv_error *err) {
    struct statvfs disk;
    if (statvfs(path, &disk) != 0)
        return qkv_fail(err, QKV_ERR_IO, "%s: %s", path, strerror(errno));
    const double has = (double)disk.f_bavail * (double)disk.f_frsize;
    if (has >= (double)needed) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "%s: %.1f MB are needed, but only %.1f MB are free", path,
                    (double)needed / 1e6, has / 1e6);
}
