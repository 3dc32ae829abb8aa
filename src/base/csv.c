#include "base/csv.h"

#include <string.h>

void qkv_csv_append(qkv_text *line, const char *field) {
    if (!strpbrk(field, ",\"\r\n")) {
        qkv_text_puts(line, field);
        return;
    }
    qkv_text_puts(line, "\"");
    for (; *field; field++) {
        if (*field == '"') qkv_text_puts(line, "\"");
        qkv_text_append(line, field, 1);
    }
    qkv_text_puts(line, "\"");
}

static const char *read_quoted(qkv_text *field, const char *at) {
    for (; *at; at++) {
        if (*at == '"' && at[1] != '"') return at + 1;
        if (*at == '"') at++;
        qkv_text_append(field, at, 1);
    }
    return at;
}

const char *qkv_csv_read(qkv_text *field, const char *at, char between) {
    field->length = 0;
    qkv_text_puts(field, "");
    if (*at == '"') at = read_quoted(field, at + 1);
    for (; *at && *at != between && *at != '\n' && !(*at == '\r' && at[1] == '\n'); at++)
        qkv_text_append(field, at, 1);
    return at;
}
