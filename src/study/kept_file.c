#include "study/kept_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int make_tables(kept_file *f, qkv_error *err) {
    qkv_text sql = {0};
    qkv_text_printf(&sql,
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE;"
                    "CREATE TABLE %s (task TEXT NOT NULL); CREATE TABLE %s (%s) WITHOUT ROWID",
                    f->kind->header, f->kind->table, f->kind->columns);
    const int status = sql.failed ? qkv_fail_memory(err) : qkv_database_run(&f->db, sql.data, err);
    qkv_text_release(&sql);
    return status;
}

static int fill_new(kept_file *f, const char *task, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    qkv_text sql = {0};
    int row;
    int status = make_tables(f, err);
    qkv_text_printf(&sql, "INSERT INTO %s VALUES (?1)", f->kind->header);
    if (status == QKV_OK)
        status = sql.failed ? qkv_fail_memory(err)
                            : qkv_database_prepare(&f->db, &insert, sql.data, err);
    if (status == QKV_OK) {
        sqlite3_bind_text(insert, 1, task, -1, SQLITE_STATIC);
        status = qkv_database_step(&f->db, insert, &row, err);
    }
    sqlite3_finalize(insert);
    qkv_text_release(&sql);
    return status == QKV_OK ? qkv_database_run(&f->db, "COMMIT", err) : status;
}

static int check_old(kept_file *f, const char *task, qkv_error *err) {
    char *found = NULL;
    int64_t is_one = 0;
    qkv_text count = {0}, select = {0};
    qkv_text_printf(&count, "SELECT count(*) FROM sqlite_master WHERE name IN ('%s', '%s')",
                    f->kind->header, f->kind->table);
    qkv_text_printf(&select, "SELECT task FROM %s", f->kind->header);
    int status = count.failed || select.failed
                     ? qkv_fail_memory(err)
                     : qkv_database_number(&f->db, count.data, &is_one, err);
    if (status == QKV_OK && is_one != 2)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is not a file of %s", f->db.path, f->kind->what);
    if (status == QKV_OK) status = qkv_database_text(&f->db, select.data, NULL, &found, err);
    if (status == QKV_OK && strcmp(found ? found : "", task) != 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s holds %s; give another name, or remove it",
                          f->db.path, f->kind->other);
    qkv_text_release(&count);
    qkv_text_release(&select);
    free(found);
    return status;
}

static int make_or_check(kept_file *f, const char *task, qkv_error *err) {
    int64_t n_tables = 0;
    int status = qkv_database_number(&f->db, "SELECT count(*) FROM sqlite_master", &n_tables, err);
    if (status == QKV_OK) status = n_tables ? check_old(f, task, err) : fill_new(f, task, err);
    f->is_ours = status == QKV_OK;
    qkv_database_trust(&f->db);
    if (status == QKV_OK)
        status =
            qkv_database_run(&f->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", err);
    return status;
}

int qkv_kept_file_open(kept_file *f, const kept_kind *kind, const char *path, const char *task,
                       qkv_error *err) {
    *f = (kept_file){.kind = kind};
    int status = qkv_file_lock_take(&f->lock, path, err);
    if (status == QKV_OK) status = qkv_database_open(&f->db, path, QKV_DATABASE_WRITE, err);
    return status == QKV_OK ? make_or_check(f, task, err) : status;
}

int qkv_kept_file_close(kept_file *f, qkv_error *err) {
    int status = QKV_OK;
    if (f->db.handle && f->is_ours) status = qkv_database_fold_log(&f->db, err);
    qkv_database_close(&f->db);
    qkv_file_lock_release(&f->lock);
    return status;
}
