/* The figure modify: query, key and value scaled by factors, kept as they were written. */
#include <stdlib.h>

#include "study/figure.h"

#define DEFAULT_EPS "5e-1,1e-3,1e-10"

static const char *eps_list(const qkv_figure *fig) {
    return fig->options.eps;
}

static int set_cell(qkv_figure *fig, size_t row, size_t col, qkv_error *err) {
    size_t length;
    figure_cell cell = {.change = FIGURE_SCALED, .part = (int)row};
    const char *eps = qkv_figure_eps(eps_list(fig), col, &length, &cell.eps);
    char *operation = qkv_figure_printf("scale:%.*s", (int)length, eps);
    cell.edits = qkv_figure_edit(fig, qkv_figure_parts[row].site, operation);
    cell.title = qkv_figure_printf("Modifying *%s* with \xce\xb5 = %.*s",
                                   qkv_figure_parts[row].name, (int)length, eps);
    free(operation);
    return qkv_figure_set(fig, row, col, cell, err);
}

static int set_row(qkv_figure *fig, size_t row, size_t n_eps, qkv_error *err) {
    char *operation = qkv_figure_edit(fig, qkv_figure_parts[row].site, "scale:\xce\xb5");
    if (!operation) return qkv_fail_memory(err);
    qkv_text_printf(&fig->operations, "%s%s", row ? ", " : "", operation);
    free(operation);
    int status = qkv_figure_set_baseline(fig, row, 0, 0, qkv_figure_printf("Unmodified"), err);
    for (size_t col = 0; col < n_eps && status == QKV_OK; col++) {
        status = set_cell(fig, row, col, err);
    }
    return status;
}

int qkv_figure_modify_cells(qkv_figure *fig, qkv_error *err) {
    size_t n_eps = 0, length;
    double value;
    if (!fig->options.eps) fig->options.eps = DEFAULT_EPS; /* which the recipe then holds */
    while (qkv_figure_eps(eps_list(fig), n_eps, &length, &value)) n_eps++;
    fig->title = "The Attention Weight after Modifying Query, Key and Value";
    int status = qkv_figure_reserve(fig, FIGURE_PARTS, 1, n_eps, err);
    for (size_t row = 0; row < FIGURE_PARTS && status == QKV_OK; row++) {
        status = set_row(fig, row, n_eps, err);
    }
    return status;
}
