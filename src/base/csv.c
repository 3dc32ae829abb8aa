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
