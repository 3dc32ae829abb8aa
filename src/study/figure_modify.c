/* The figure modify: query, key and value scaled by factors, kept as they were written. */
#include <stdlib.h>

#include "base/number_list.h"
#include "study/figure.h"

#define DEFAULT_EPS "5e-1,1e-3,1e-10"

/* One factor, in words and as a number. */
typedef struct factor {
    const char *text;
    size_t length;
    double value;
} factor;

static int set_cell(qkv_figure *fig, size_t row, size_t col, const factor *eps, qkv_error *err) {
    figure_cell cell = {.change = FIGURE_SCALED, .part = (int)row, .eps = eps->value};
    char *operation = qkv_figure_printf("scale:%.*s", (int)eps->length, eps->text);
    cell.edits = qkv_figure_edit(fig, qkv_figure_parts[row].site, operation);
    cell.title = qkv_figure_printf("Modifying *%s* with \xce\xb5 = %.*s",
                                   qkv_figure_parts[row].name, (int)eps->length, eps->text);
    free(operation);
    return qkv_figure_set(fig, row, col, cell, err);
}

static int set_row(qkv_figure *fig, size_t row, const char *list, qkv_error *err) {
    char *operation = qkv_figure_edit(fig, qkv_figure_parts[row].site, "scale:\xce\xb5");
    if (!operation) return qkv_fail_memory(err);
    qkv_text_printf(&fig->operations, "%s%s", row ? ", " : "", operation);
    free(operation);
    int status = qkv_figure_set_baseline(fig, row, 0, 0, qkv_figure_printf("Unmodified"), err);
    factor eps;
    for (size_t col = 0;
         status == QKV_OK && qkv_number_list_next(&list, &eps.text, &eps.length, &eps.value);
         col++) {
        status = set_cell(fig, row, col, &eps, err);
    }
    return status;
}

static size_t count(const char *list) {
    size_t n = 0;
    factor eps;
    while (qkv_number_list_next(&list, &eps.text, &eps.length, &eps.value)) n++;
    return n;
}

int qkv_figure_modify_cells(qkv_figure *fig, qkv_error *err) {
    char *list = NULL;
    if (!fig->options.eps) fig->options.eps = DEFAULT_EPS; /* which the recipe then holds */
    fig->title = "The Attention Weight after Modifying Query, Key and Value";
    int status = qkv_number_list_expand(&list, fig->options.eps, err);
    if (status == QKV_OK) status = qkv_figure_reserve(fig, FIGURE_PARTS, 1, count(list), err);
    for (size_t row = 0; row < FIGURE_PARTS && status == QKV_OK; row++) {
        status = set_row(fig, row, list, err);
    }
    free(list);
    return status;
}
