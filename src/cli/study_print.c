/* Tables of studies as text: columns of numbers to the right, of texts to the left. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/columns.h"
#include "cli/study.h"

static void append_value(qkv_text *to, const qkv_study *study, size_t table, size_t row,
                         size_t column) {
    double number = NAN;
    const char *text = NULL;
    (void)qkv_study_get_value(study, table, row, column, &number, &text, NULL);
    if (text) {
        qkv_text_append_visible(to, text, strlen(text));
    } else if (isnan(number)) {
        qkv_text_puts(to, "-");
    } else if (number == floor(number) && fabs(number) < 1e9) {
        qkv_text_printf(to, "%.0f", number);
    } else {
        qkv_text_append_number(to, qkv_round_digits(number, 4));
    }
}

typedef struct printed {
    const qkv_study *study;
    size_t table;
    qkv_study_table size;
    size_t *widths;
    uint8_t *is_text; /* columns: to the left */
} printed;

static void measure(printed *p) {
    for (size_t c = 0; c < p->size.n_columns; c++) {
        p->widths[c] = cli_columns(qkv_study_column(p->study, p->table, c));
        for (size_t r = 0; r < p->size.n_rows; r++) {
            double number;
            const char *text = NULL;
            qkv_text cell = {0};
            (void)qkv_study_get_value(p->study, p->table, r, c, &number, &text, NULL);
            append_value(&cell, p->study, p->table, r, c);
            const size_t width = cli_columns(cli_shown(&cell));
            if (width > p->widths[c]) p->widths[c] = width;
            p->is_text[c] |= text != NULL;
            qkv_text_release(&cell);
        }
    }
}

static void print_cell(const printed *p, size_t column, const char *text) {
    const int pad = (int)(p->widths[column] - cli_columns(text));
    const int last = column + 1 == p->size.n_columns;
    if (column) fputs("  ", stdout);
    if (p->is_text[column]) {
        printf("%s%*s", text, last ? 0 : pad, "");
    } else {
        printf("%*s%s", pad, "", text);
    }
    if (last) putchar('\n');
}

static int print_table(const qkv_study *study, size_t table, qkv_error *err) {
    printed p = {.study = study, .table = table, .size = QKV_STUDY_TABLE_INIT};
    int status = qkv_study_get_table(study, table, &p.size, err);
    if (status != QKV_OK) return status;
    p.widths = qkv_calloc(p.size.n_columns, sizeof *p.widths);
    p.is_text = qkv_calloc(p.size.n_columns, 1);
    if (p.widths && p.is_text) {
        measure(&p);
        cli_print_line(p.size.title);
        for (size_t c = 0; c < p.size.n_columns; c++)
            print_cell(&p, c, qkv_study_column(study, table, c));
        for (size_t i = 0; i < p.size.n_rows * p.size.n_columns; i++) {
            qkv_text cell = {0};
            append_value(&cell, study, table, i / p.size.n_columns, i % p.size.n_columns);
            print_cell(&p, i % p.size.n_columns, cli_shown(&cell));
            qkv_text_release(&cell);
        }
    } else {
        status = qkv_fail_memory(err);
    }
    free(p.widths);
    free(p.is_text);
    return status;
}

int cli_study_print(const qkv_study *study, const char *name, qkv_error *err) {
    qkv_study_table table = QKV_STUDY_TABLE_INIT;
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    for (size_t i = 0; name && qkv_study_get_table(study, i, &table, NULL) == QKV_OK; i++) {
        if (strcmp(table.name, name) == 0) return print_table(study, i, err);
    }
    int status = qkv_study_get_info(study, &info, err);
    for (size_t i = 0; i < info.n_printed && status == QKV_OK; i++) {
        if (i) putchar('\n');
        status = print_table(study, i, err);
    }
    return status;
}
