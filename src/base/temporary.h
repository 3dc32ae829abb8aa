/*
 * Temporary files, and the list of those that there are, so that a program that a signal ends can
 * take them along. The library installs no handlers: a program whose handler calls
 * qkv_temporaries_remove leaves none of them.
 *
 * A name is on the list before its file exists and until the file has its final name, so that there
 * is no moment at which a signal would miss it.
 */
#ifndef QKV_BASE_TEMPORARY_H
#define QKV_BASE_TEMPORARY_H

#include <sys/types.h>

#include "qkv/error.h"

typedef struct qkv_temporary {
    char *name; /* NULL: none */
    int slot;   /* in the list; below 0: not there */
} qkv_temporary;

/* Creates PATH.XXXXXX, XXXXXX being random, and opens it for writing; `mode` as for open, which
 * honours the umask. Returns a descriptor, or -1 and errno. */
int qkv_temporary_create(qkv_temporary *temporary, const char *path, mode_t mode);

/* Gives the file its final name. Returns 0, or -1 and errno; then it is still a temporary one. */
int qkv_temporary_rename(qkv_temporary *temporary, const char *target);

/* Removes the file. Does nothing when there is none. */
void qkv_temporary_remove(qkv_temporary *temporary);

/* Puts the name of a file or directory that others create on the list, and takes it off again. The list has room
 * for a few dozen: -1 when it is full or the name too long. */
int qkv_temporary_note(const char *name);
void qkv_temporary_forget(int slot);

/* A file of SQLite's in TMPDIR or /tmp, which may put two beside it; `name` begins its name. Remove it also after a
 * failure; one that is all 0 is none. */
typedef struct qkv_scratch {
    qkv_temporary file;
    int beside[2];
} qkv_scratch;
int qkv_scratch_make(qkv_scratch *made, const char *name, qkv_error *err);
void qkv_scratch_remove(qkv_scratch *made);

/* Removes all files on the list that this process put there, then directories that are empty.
 * Async-signal-safe. */
void qkv_temporaries_remove(void);

#endif
