/* Fields of CSV, as RFC 4180 has them. */
#ifndef QKV_BASE_CSV_H
#define QKV_BASE_CSV_H

#include "base/fail.h"
#include "base/text.h"

/* A text as one field: in quotes where it has to be. */
void qkv_csv_append(qkv_text *line, const char *field);

/* Reading: rows of fields, quoted or not, whose rows end with LF, CRLF or the text. */
typedef struct qkv_csv {
    const char *at, *end;
    size_t line;      /* of the field that was read last, from 1 on */
    size_t next;      /* of the next one */
    char between;     /* fields */
    const char *name; /* for messages; the caller's */
} qkv_csv;

/* `between` is a comma or a tab. */
void qkv_csv_begin(qkv_csv *csv, const char *text, size_t length, char between, const char *name);
/* 1 while there is another row. */
int qkv_csv_more(const qkv_csv *csv);
/* Continues after lines that are empty. */
void qkv_csv_skip_blank(qkv_csv *csv);
/* Puts the next field in place of what `field` holds; *last is 1 for the last of its row. */
int qkv_csv_field(qkv_csv *csv, qkv_text *field, int *last, qkv_error *err);

#endif
