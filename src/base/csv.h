/* Fields of CSV, as RFC 4180 has them. */
#ifndef QKV_BASE_CSV_H
#define QKV_BASE_CSV_H

#include "base/text.h"

/* A text as one field: in quotes where it has to be. */
void qkv_csv_append(qkv_text *line, const char *field);

#endif
