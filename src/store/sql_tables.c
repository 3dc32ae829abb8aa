/* See sql_tables.h. */
#include "store/sql_tables.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static int fail(sqlite3 *db, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_IO, "cannot make the SQLite file: %s",
                    db ? sqlite3_errmsg(db) : "out of memory");
}

/* A name in double quotes, those in it doubled. */
static void append_name(qkv_text *sql, const char *name) {
    qkv_text_puts(sql, "\"");
    for (; *name; name++) {
        if (*name == '"') qkv_text_puts(sql, "\"");
        qkv_text_append(sql, name, 1);
    }
    qkv_text_puts(sql, "\"");
}

static int run(sqlite3 *db, qkv_text *sql, qkv_error *err) {
    if (sql->failed) return qkv_fail_memory(err);
    return sqlite3_exec(db, sql->data, NULL, NULL, NULL) == SQLITE_OK ? QKV_OK : fail(db, err);
}

static int create(sqlite3 *db, const sql_table *table, qkv_error *err) {
    qkv_text sql = {0};
    qkv_text_puts(&sql, "CREATE TABLE ");
    append_name(&sql, table->name);
    for (size_t i = 0; i < table->n_columns; i++) {
        qkv_text_puts(&sql, i ? ", " : " (");
        append_name(&sql, table->columns[i]);
    }
    qkv_text_puts(&sql, ")");
    const int status = run(db, &sql, err);
    qkv_text_release(&sql);
    return status;
}

static int prepare(sqlite3 *db, sqlite3_stmt **insert, const sql_table *table, qkv_error *err) {
    qkv_text sql = {0};
    qkv_text_puts(&sql, "INSERT INTO ");
    append_name(&sql, table->name);
    for (size_t i = 0; i < table->n_columns; i++) qkv_text_puts(&sql, i ? ", ?" : " VALUES (?");
    qkv_text_puts(&sql, ")");
    const int failed =
        sql.failed || sqlite3_prepare_v2(db, sql.data, -1, insert, NULL) != SQLITE_OK;
    qkv_text_release(&sql);
    return failed ? fail(db, err) : QKV_OK;
}

static int bind(sqlite3_stmt *insert, int at, const sql_cell *cell) {
    const double whole = 9007199254740992.0;
    if (cell->text) return sqlite3_bind_text(insert, at, cell->text, -1, SQLITE_STATIC);
    if (isnan(cell->number)) return sqlite3_bind_null(insert, at);
    if (fabs(cell->number) < whole && cell->number == floor(cell->number))
        return sqlite3_bind_int64(insert, at, (sqlite3_int64)cell->number);
    return sqlite3_bind_double(insert, at, cell->number);
}

static int fill(sqlite3 *db, const sql_table *table, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    int status = create(db, table, err);
    if (status == QKV_OK) status = prepare(db, &insert, table, err);
    for (size_t r = 0; r < table->n_rows && status == QKV_OK; r++) {
        int code = SQLITE_OK;
        for (size_t c = 0; c < table->n_columns && code == SQLITE_OK; c++)
            code = bind(insert, (int)c + 1, &table->cells[r * table->n_columns + c]);
        if (code == SQLITE_OK) code = sqlite3_step(insert);
        if (code != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK) status = fail(db, err);
    }
    sqlite3_finalize(insert);
    return status;
}

static int serialize(sqlite3 *db, char **bytes, size_t *n_bytes, qkv_error *err) {
    sqlite3_int64 size = 0;
    unsigned char *made = sqlite3_serialize(db, "main", &size, 0);
    *bytes = made ? malloc((size_t)size + 1) : NULL;
    if (*bytes) memcpy(*bytes, made, (size_t)size);
    *n_bytes = *bytes ? (size_t)size : 0;
    sqlite3_free(made);
    return *bytes ? QKV_OK : qkv_fail_memory(err);
}

int qkv_sql_tables_render(const sql_table *tables, size_t n, char **bytes, size_t *n_bytes,
                          qkv_error *err) {
    sqlite3 *db = NULL;
    *bytes = NULL;
    *n_bytes = 0;
    int status = sqlite3_open(":memory:", &db) == SQLITE_OK ? QKV_OK : fail(db, err);
    if (status == QKV_OK && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        status = fail(db, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) status = fill(db, &tables[i], err);
    if (status == QKV_OK && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = fail(db, err);
    if (status == QKV_OK) status = serialize(db, bytes, n_bytes, err);
    sqlite3_close(db);
    return status;
}
