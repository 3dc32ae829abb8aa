/* qkv figure modify: query, key and value scaled by a list of factors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS, .eps = "5e-1,1e-3,1e-10"};

static const cli_option options[] = {
    FIGURE_INPUT_OPTIONS,
    FIGURE_OPTION("eps", "LIST", CLI_TEXT, eps,
                  "factors, one column each (default 5e-1,1e-3,1e-10)"),
    FIGURE_EDIT_HEADS_OPTION,
    FIGURE_DRAWING_OPTIONS,
};

static int run_modify(const cli_call *call, qkv_error *err);

const cli_command cli_command_figure_modify = {
    .name = "figure modify",
    .summary = "draw a head's attention with query, key or value scaled",
    .synopsis = "[-m MODEL] [-p TEXT] [--layer L] [--head H] [--eps LIST] -o OUT...",
    .description =
        "Draws the attention weights of one head: rows Query, Key and Value, columns the factors "
        "that they are multiplied with, before RoPE, at all tokens.\n"
        "\n"
        "  qkv figure modify -p 'The river runs to the sea.' -o modify.png\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_modify,
};

/* ---- the factors: kept as they were written ---- */

typedef struct eps_list {
    char **items;
    size_t n, capacity;
} eps_list;

static void eps_release(eps_list *list) {
    for (size_t i = 0; i < list->n; i++) free(list->items[i]);
    free(list->items);
}

static int eps_parse(eps_list *list, const char *text, qkv_error *err) {
    for (const char *at = text;; at++) {
        double value;
        const size_t n = strcspn(at, ",");
        if (!qkv_parse_double(at, n, &value) || !isfinite(value)) {
            return cli_usage(err, "--eps wants numbers such as 5e-1,1e-3; '%.*s' is none", (int)n,
                             at);
        }
        char *copy = qkv_strndup(at, n);
        if (!copy || !QKV_PUSH(list->items, list->capacity, list->n, copy)) {
            free(copy);
            return qkv_fail_memory(err);
        }
        at += n;
        if (*at == '\0') return QKV_OK;
    }
}

/* ---- cells ---- */

static int set_cell(figure *fig, size_t row, size_t col, const char *eps, qkv_error *err) {
    char *operation = figure_printf("scale:%s", eps);
    char *edit = operation ? figure_edit(fig, figure_parts[row].site, operation) : NULL;
    char *title = figure_printf("Modifying *%s* with \xce\xb5 = %s", figure_parts[row].name, eps);
    const int status = figure_set(fig, row, col, 0, edit, title, err);
    double factor = 0;
    qkv_parse_double(eps, strlen(eps), &factor); /* was read before */
    figure_mark(fig, row, col, FIGURE_SCALED, (int)row, factor);
    free(operation);
    free(edit);
    free(title);
    return status;
}

static int set_row(figure *fig, size_t row, const eps_list *eps, qkv_error *err) {
    char *operation = figure_edit(fig, figure_parts[row].site, "scale:\xce\xb5");
    if (!operation) return qkv_fail_memory(err);
    qkv_text_printf(&fig->operations, "%s%s", row ? ", " : "", operation);
    free(operation);
    int status = figure_set_baseline(fig, row, 0, "Unmodified", err);
    for (size_t col = 0; col < eps->n && status == QKV_OK; col++) {
        status = set_cell(fig, row, col, eps->items[col], err);
    }
    return status;
}

static int run_modify(const cli_call *call, qkv_error *err) {
    const figure_args *args = call->args;
    if (args->prompts.n > 1) return cli_usage(err, "this figure shows one prompt");
    figure fig = {0};
    eps_list eps = {0};
    int status = eps_parse(&eps, args->eps, err);
    if (status == QKV_OK) status = figure_open(&fig, call, figure_prompts, 1, err);
    if (status == QKV_OK) status = figure_reserve(&fig, FIGURE_PARTS, eps.n, err);
    fig.title = "The Attention Weight after Modifying Query, Key and Value";
    for (size_t row = 0; row < FIGURE_PARTS && status == QKV_OK; row++) {
        status = set_row(&fig, row, &eps, err);
    }
    if (status == QKV_OK) status = figure_finish(&fig, err);
    figure_close(&fig);
    eps_release(&eps);
    return status;
}
