/*
 * A file of results that long work fills, and from which it resumes: SQLite, one writer at a time.
 *
 *     qkv_journal file = {0};
 *     const qkv_journal_work work = {.kind = &kind, .model = model, .spec = "{...}"};
 *     status = qkv_journal_open(&file, path, &work, err); // made, or one for the same work
 *     status = qkv_journal_get(&file, "cell 7", &text, err); // NULL: it is still to be computed
 *     status = qkv_journal_begin(&file, err);
 *     if (status == QKV_OK)
 *         status = qkv_journal_end(&file, qkv_journal_put(&file, "cell 7", "0.25", err), err);
 *     status = qkv_journal_close(&file, err);
 *
 * The table `meta` says what the file is for: format, specification, model, version. A file that holds other work is
 * refused. The results are in the tables of its kind, or in `cells`, a key and a value to the row.
 *
 * Transactions go to a write-ahead log, so that whatever ends the process leaves whole ones; the next process computes
 * what is missing. A finished file has no log.
 */
#ifndef QKV_STORE_JOURNAL_H
#define QKV_STORE_JOURNAL_H

#include "base/file_lock.h"
#include "qkv/model.h"
#include "store/database.h"

/* A table, view or index, as sqlite_schema lists it. */
typedef struct qkv_journal_object {
    const char *type, *name, *table;
    const char *sql;  /* NULL: SQLite makes it */
    unsigned formats; /* that have it: a bit for each */
} qkv_journal_object;

enum { QKV_JOURNAL_FORMATS = 2 };

typedef struct qkv_journal_kind {
    const char *noun;      /* "sweep" */
    const char *spec_noun; /* what differs with the specification; NULL: the noun */
    const char *formats[QKV_JOURNAL_FORMATS]; /* "qkv sweep 1"; NULL: there are no more */
    const qkv_journal_object *objects;        /* besides `meta`; NULL: `cells` */
    size_t n_objects;
    const char *former; /* a table of files that can no longer be resumed; may be NULL */
} qkv_journal_kind;

typedef struct qkv_journal {
    qkv_file_lock lock;
    qkv_database db;
    int is_ours; /* checked, or made: its log may be folded in */
    sqlite3_stmt *insert, *select;
} qkv_journal;

/* What is to be computed. */
typedef struct qkv_journal_work {
    const qkv_journal_kind *kind;
    int format; /* which one of its formats */
    const qkv_model *model;
    const char *spec;      /* all that results depend on, besides the model */
    const char *spec_hash; /* NULL: the text itself is compared */
    const char *shard;     /* "2/3"; NULL: all of it is in one file */
    /* Adds the rows that a new file begins with, and checks those of an old one. Both may be NULL. */
    int (*fill)(qkv_journal *file, const void *user, qkv_error *err);
    int (*check)(qkv_journal *file, const void *user, qkv_error *err);
    const void *user;
} qkv_journal_work;

/* Takes the lock; makes the file, or checks the one that is there. Nothing is open after a failure. It must stay where
 * it is while it is open. */
int qkv_journal_open(qkv_journal *file, const char *path, const qkv_journal_work *work,
                     qkv_error *err);
/* Leaves one file, without a log beside it. Does nothing to a journal of zeros. */
int qkv_journal_close(qkv_journal *file, qkv_error *err);

/* What is written between the two is stored whole or not at all. `status` is how it went, and is returned. */
int qkv_journal_begin(qkv_journal *file, qkv_error *err);
int qkv_journal_end(qkv_journal *file, int status, qkv_error *err);

/* Rows of `cells`. The value is freed with free; NULL: there is none. */
int qkv_journal_get(qkv_journal *file, const char *key, char **value, qkv_error *err);
int qkv_journal_put(qkv_journal *file, const char *key, const char *value, qkv_error *err);

/* ---- for files that are read, merged or made elsewhere ---- */

int qkv_journal_make_tables(qkv_database *db, const qkv_journal_kind *kind, int format,
                            qkv_error *err);
/* Fails where the database is anything else: its tables, and the format that it names. */
int qkv_journal_check(qkv_database *db, const qkv_journal_kind *kind, int *format, qkv_error *err);
/* Whether it holds nothing of anybody's: a new file, or one whose making was cut off. */
int qkv_journal_is_blank(qkv_database *db, int *blank, qkv_error *err);
/* An entry of the table meta as UTF-8, freed with free; NULL when there is none. */
int qkv_journal_meta(qkv_database *db, const char *key, char **value, qkv_error *err);

#endif
