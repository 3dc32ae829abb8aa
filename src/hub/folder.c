#define _XOPEN_SOURCE 700 /* nftw */
#include "hub/folder.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/memory.h"
#include "base/text.h"

enum { MOST_OPEN = 16 };

static int visit_entry(const char *root, const char *below, const char *entry,
                       qkv_folder_visitor *visitor, void *user, qkv_error *err) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s%s%s", root, below, below[0] ? "/" : "", entry);
    const int status = path.failed ? qkv_fail_memory(err)
                                   : visitor(user, path.data, path.data + strlen(root) + 1, err);
    qkv_text_release(&path);
    return status;
}

int qkv_folder_visit(const char *root, const char *below, qkv_folder_visitor *visitor, void *user,
                     qkv_error *err) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s", root, below);
    if (path.failed) return qkv_fail_memory(err);
    DIR *directory = opendir(path.data);
    int status = QKV_OK;
    if (!directory && errno != ENOENT && errno != ENOTDIR)
        status = qkv_fail(err, QKV_ERR_IO, "cannot read %s: %s", path.data, strerror(errno));
    const struct dirent *entry;
    while (status == QKV_OK && directory && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.')
            status = visit_entry(root, below, entry->d_name, visitor, user, err);
    }
    if (directory) closedir(directory);
    qkv_text_release(&path);
    return status;
}

int qkv_folder_depth(const char *name) {
    int depth = 0;
    for (; *name; name++) depth += *name == '/';
    return depth;
}

static int make(const char *path) {
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

int qkv_folder_make(const char *path, qkv_error *err) {
    char *part = qkv_strdup(path);
    if (!part) return qkv_fail_memory(err);
    /* What is above may be there and forbid mkdir: only the last one counts. If it fails because one
     * above it is not there, the reason is why that one could not be made. */
    int above = 0;
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (make(part))
            above = 0;
        else if (errno != ENOENT)
            above = errno;
        *slash = '/';
    }
    struct stat facts;
    int code = make(part) ? 0 : errno;
    if (code == ENOENT && above) code = above;
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
