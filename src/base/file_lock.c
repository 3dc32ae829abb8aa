#define _XOPEN_SOURCE 700 /* realpath */
#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/temporary.h"
#include "base/text.h"

enum { MOST_TRIES = 100 };

static int fail_lock(qkv_error *err, const char *path, int code) {
    return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path, strerror(code));
}

/* Where the path leads to. A link to a file that is not there yet makes it, or its name would
 * depend on who comes first. */
static int resolve(const char *path, char **target, qkv_error *err) {
    struct stat facts;
    *target = realpath(path, NULL);
    if (!*target && errno == ENOENT && lstat(path, &facts) == 0) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) return fail_lock(err, path, errno);
        close(fd);
        *target = realpath(path, NULL);
    }
    if (!*target) *target = qkv_strdup(path);
    return *target ? QKV_OK : qkv_fail_memory(err);
}

static int name_lock(qkv_file_lock *lock, const char *path, qkv_error *err) {
    int status = resolve(path, &lock->target, err);
    if (status != QKV_OK) return status;
    qkv_text name = {0};
    qkv_text_printf(&name, "%s-lock", lock->target);
    if (name.failed) status = qkv_fail_memory(err);
    if (status != QKV_OK) qkv_text_release(&name);
    lock->name = name.data;
    return status;
}

/* Whether the locked file is still the one of that name: who had it before may have removed it. */
static int is_current(const qkv_file_lock *lock, const char *path) {
    qkv_file_lock now = {0};
    struct stat held, named;
    const int same = name_lock(&now, path, NULL) == QKV_OK && fstat(lock->fd, &held) == 0 &&
                     stat(now.name, &named) == 0 && held.st_dev == named.st_dev &&
                     held.st_ino == named.st_ino;
    free(now.target);
    free(now.name);
    return same;
}

static void forget(qkv_file_lock *lock) {
    if (lock->name && lock->fd >= 0) close(lock->fd);
    free(lock->target);
    free(lock->name);
    *lock = (qkv_file_lock){.fd = -1, .slot = -1};
}

/* *current is 0 when another name has to be locked now. */
static int try_lock(qkv_file_lock *lock, const char *path, int *current, qkv_error *err) {
    int status = name_lock(lock, path, err);
    lock->fd = -1;
    if (status != QKV_OK) return status;
    lock->fd = open(lock->name, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (lock->fd < 0) {
        const int code = errno;
        if (access(lock->target, W_OK) != 0) return fail_lock(err, path, code);
        return qkv_fail(err, QKV_ERR_IO, "cannot write beside %s: %s", path, strerror(code));
    }
    if (flock(lock->fd, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? qkv_fail(
                         err, QKV_ERR_IO,
                         "%s is being written by another process; wait for it, or give another "
                         "name",
                         path)
                   : fail_lock(err, path, errno);
    }
    *current = is_current(lock, path);
    if (*current) lock->slot = qkv_temporary_note(lock->name);
    return QKV_OK;
}

int qkv_file_lock_take(qkv_file_lock *lock, const char *path, qkv_error *err) {
    struct stat facts;
    *lock = (qkv_file_lock){.fd = -1, .slot = -1};
    if (!path || !path[0]) return qkv_fail(err, QKV_ERR_ARGUMENT, "the name of a file is empty");
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        return qkv_fail(err, QKV_ERR_IO, "cannot write %s: it is not a regular file", path);
    }
    for (int i = 0; i < MOST_TRIES; i++) {
        int current = 0;
        const int status = try_lock(lock, path, &current, err);
        if (status == QKV_OK && current) return QKV_OK;
        forget(lock);
        if (status != QKV_OK) return status;
    }
    return fail_lock(err, path, EAGAIN);
}

void qkv_file_lock_release(qkv_file_lock *lock) {
    if (lock->name) unlink(lock->name);
    qkv_temporary_forget(lock->slot);
    forget(lock);
}
