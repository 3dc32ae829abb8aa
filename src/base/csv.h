/* Fields of CSV, as RFC 4180 has them. */
#ifndef QKV_BASE_CSV_H
#define QKV_BASE_CSV_H

#include "base/text.h"

/* A text as one field: in quotes where it has to be. */
void qkv_csv_append(qkv_text *line, const char *field);

/* Reads one field up to `between` (a comma, a tab) or the end of its line, without the quotes around it.
 * Replaces what `field` holds. Returns where it ended: at `between`, at the line's end ("\n" or "\r\n"),
 * or at the NUL behind the last one. */
const char *qkv_csv_read(qkv_text *field, const char *at, char between);

#endif
