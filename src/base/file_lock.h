/*
 * One writer to a file, among processes and inside one: a lock that ends with its process, however
 * that ends.
 *
 *     qkv_file_lock lock;
 *     status = qkv_file_lock_take(&lock, path, err); // QKV_ERR_IO: another one has it
 *     ... make, change, replace or remove path ...
 *     qkv_file_lock_release(&lock);
 *
 * The lock is on NAME-lock beside the file, which is removed with it. Not on the file itself: when
 * a process closes any descriptor of a file, SQLite's locks on it end too. A signal that takes the
 * temporary files along (base/temporary.h) takes NAME-lock too; a process that is killed leaves it,
 * empty and free, to the next one.
 */
#ifndef QKV_BASE_FILE_LOCK_H
#define QKV_BASE_FILE_LOCK_H

#include "base/fail.h"

typedef struct qkv_file_lock {
    char *target; /* where the path leads to, through links */
    char *name;
    int fd;   /* counts while there is a name */
    int slot; /* in the list of temporary files */
} qkv_file_lock;

/* The path must name a regular file, or nothing yet. Never waits. Release it also after a failure.
 */
int qkv_file_lock_take(qkv_file_lock *lock, const char *path, qkv_error *err);
void qkv_file_lock_release(qkv_file_lock *lock);

#endif
