/* Tables of numbers and texts as a SQLite file, made in memory. */
#ifndef QKV_STORE_SQL_TABLES_H
#define QKV_STORE_SQL_TABLES_H

#include <stddef.h>

#include "base/fail.h"

typedef struct sql_cell {
    double number; /* NaN: NULL in SQL */
    const char *text;
} sql_cell;

typedef struct sql_table {
    const char *name;
    const char *const *columns;
    size_t n_columns, n_rows;
    const sql_cell *cells; /* row by row */
} sql_table;

/* The bytes of a database with these tables, freed with free. Numbers that are whole are INTEGER. */
int qkv_sql_tables_render(const sql_table *tables, size_t n, char **bytes, size_t *n_bytes,
                          qkv_error *err);

#endif
