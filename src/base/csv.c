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

/* ---- reading ---- */

void qkv_csv_begin(qkv_csv *csv, const char *text, size_t length, char between, const char *name) {
    static const char mark[] = "\xef\xbb\xbf"; /* that some programs begin a file with */
    if (length >= 3 && memcmp(text, mark, 3) == 0) text += 3, length -= 3;
    *csv = (qkv_csv){text, text + length, 1, 1, between, name};
}

int qkv_csv_more(const qkv_csv *csv) {
    return csv->at < csv->end;
}

void qkv_csv_skip_blank(qkv_csv *csv) {
    for (; csv->at < csv->end && (*csv->at == '\n' || *csv->at == '\r'); csv->at++)
        csv->next += *csv->at == '\n';
}

/* After a field: what stands between fields, the end of the row, or of the text. */
static int end_field(qkv_csv *csv, int *last, qkv_error *err) {
    if (csv->at < csv->end && *csv->at == csv->between) {
        csv->at++;
        *last = 0;
        return QKV_OK;
    }
    if (csv->at < csv->end && *csv->at == '\r') csv->at++;
    if (csv->at < csv->end && *csv->at != '\n')
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s, line %zu: a quoted field continues after its quote", csv->name,
                        csv->next);
    if (csv->at < csv->end) csv->at++, csv->next++;
    *last = 1;
    return QKV_OK;
}

static int read_quoted(qkv_csv *csv, qkv_text *field, qkv_error *err) {
    for (csv->at++; csv->at < csv->end; csv->at++) {
        if (*csv->at == '\n') csv->next++;
        if (*csv->at == '"') {
            csv->at++;
            if (csv->at == csv->end || *csv->at != '"') return QKV_OK;
        }
        qkv_text_append(field, csv->at, 1);
    }
    return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu: a quote is not closed", csv->name,
                    csv->line);
}

int qkv_csv_field(qkv_csv *csv, qkv_text *field, int *last, qkv_error *err) {
    int status = QKV_OK;
    field->length = 0;
    qkv_text_puts(field, "");
    csv->line = csv->next;
    if (csv->at < csv->end && *csv->at == '"') {
        status = read_quoted(csv, field, err);
    } else {
        const char *from = csv->at;
        while (csv->at < csv->end && *csv->at != csv->between && *csv->at != '\n') csv->at++;
        size_t length = (size_t)(csv->at - from);
        if (length && from[length - 1] == '\r' && (csv->at == csv->end || *csv->at == '\n'))
            length--;
        qkv_text_append(field, from, length);
    }
    if (status == QKV_OK) status = end_field(csv, last, err);
    return status == QKV_OK && field->failed ? qkv_fail_memory(err) : status;
}
