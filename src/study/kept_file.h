/*
 * What a long study has computed so far, on disk: SQLite, one table of results, and one of a single row that
 * says what they are for. Transactions go to a write-ahead log: whatever ends the process leaves whole ones,
 * and the next run computes what is missing.
 */
#ifndef QKV_STUDY_KEPT_FILE_H
#define QKV_STUDY_KEPT_FILE_H

#include "base/file_lock.h"
#include "store/database.h"

typedef struct kept_kind {
    const char *what;    /* "a search for heads" */
    const char *other;   /* "the steps of another search" */
    const char *header;  /* the table of the single row */
    const char *table;   /* that of the results */
    const char *columns; /* as SQL has them, with a primary key */
} kept_kind;

typedef struct kept_file {
    qkv_file_lock lock;
    qkv_database db;
    const kept_kind *kind;
    int is_ours;
} kept_file;

/* Makes the file, or takes one that was made for the same task. Close it also after a failure; it must stay
 * where it is while it is open. */
int qkv_kept_file_open(kept_file *file, const kept_kind *kind, const char *path, const char *task,
                       qkv_error *err);
/* Leaves one file, without a log beside it. */
int qkv_kept_file_close(kept_file *file, qkv_error *err);

#endif
