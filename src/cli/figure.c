/* What all figures share: inputs are checked and opened, cells kept, the steps put in order. */
#include "cli/figure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"

const char *const figure_prompts[3] = {
    "The river runs past the old mill and down to the sea.",
    "A good teacher explains the same idea in many ways.",
    "In the morning the children walk to the village school.",
};

const figure_part figure_parts[FIGURE_PARTS] = {{"q", "Query"}, {"k", "Key"}, {"v", "Value"}};

/* ---- before anything is opened ---- */

static int has_png(const cli_list *outputs) {
    for (size_t i = 0; i < outputs->n; i++) {
        if (strcmp(qkv_path_suffix(outputs->items[i].value), "png") == 0) return 1;
    }
    return 0;
}

static int check_outputs(const figure_args *args, qkv_error *err) {
    if (args->outputs.n == 0 && !args->data && args->reports.n == 0) {
        return cli_usage(err, "no output: add for example -o figure.png");
    }
    if (args->data && strcmp(qkv_path_suffix(args->data), "safetensors") != 0) {
        return cli_usage(err, "--data wants a file named .safetensors, not '%s'", args->data);
    }
    if (args->reports.n && args->show == FIGURE_SHOW_SCORES) {
        return cli_usage(err, "--report is about attention weights: leave out --show scores");
    }
    int status = cli_outputs_check_names(&args->outputs, "png|svg|pdf", err);
    if (status == QKV_OK) status = cli_outputs_check_names(&args->reports, "md|html|json", err);
    if (status == QKV_OK && args->dpi > 0 && !has_png(&args->outputs)) {
        return cli_usage(err, "--dpi is the resolution of a PNG, and no output is one");
    }
    return status;
}

static int check_args(const figure_args *args, qkv_error *err) {
    double low, high;
    if (args->diff && args->baseline) {
        return cli_usage(err, "--diff and --baseline exclude each other: differences are taken "
                              "from the baseline");
    }
    if (args->diff && args->scale == QKV_SCALE_LOG) {
        return cli_usage(err, "--scale log cannot show differences, they may be negative");
    }
    if (args->sink_column && args->show == FIGURE_SHOW_SCORES) {
        return cli_usage(err, "--sink-column belongs to the pattern; scores have no sink");
    }
    if (args->gamma > 0 && args->scale != QKV_SCALE_POWER) {
        return cli_usage(err, "--gamma is the exponent of --scale power, which is not given");
    }
    const int status = figure_check_range(args, &low, &high, err);
    return status == QKV_OK ? check_outputs(args, err) : status;
}

static int check_writable(const figure_args *args, qkv_error *err) {
    int status = cli_outputs_check_writable(&args->outputs, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->reports, err);
    return status == QKV_OK && args->data ? qkv_output_check(args->data, err) : status;
}

/* ---- opening ---- */

static int load_sources(figure *fig, qkv_error *err) {
    const cli_list *const edits[] = {&fig->args->rows, &fig->args->cols};
    const int status = cli_sources_load(&fig->sources, &fig->args->sources, err);
    return status == QKV_OK ? cli_sources_check_used(&fig->sources, edits, 2, err) : status;
}

static int load_prompts(figure *fig, const char *const *prompts, size_t n_prompts, qkv_error *err) {
    const cli_list *given = &fig->args->prompts;
    const size_t n = given->n ? given->n : n_prompts;
    fig->prompts = qkv_calloc(n, sizeof *fig->prompts);
    if (!fig->prompts) return qkv_fail_memory(err);
    fig->n_prompts = n;
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const cli_item own = {given->n ? NULL : prompts[i], CLI_PROMPT_TEXT};
        status = cli_prompt_load(&fig->prompts[i], given->n ? &given->items[i] : &own, err);
    }
    return status == QKV_OK ? load_sources(fig, err) : status;
}

static int tokenize_prompts(figure *fig, qkv_error *err) {
    const unsigned flags =
        QKV_TOKENIZE_ADD_SPECIAL | (fig->args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    for (size_t i = 0; i < fig->n_prompts; i++) {
        const int status = cli_prompt_tokenize(&fig->prompts[i], fig->model, flags, err);
        if (status != QKV_OK) return status;
        if ((int64_t)fig->prompts[i].n_tokens <= fig->args->skip_keys) {
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "--skip-keys %lld leaves nothing of a prompt of %zu tokens",
                            (long long)fig->args->skip_keys, fig->prompts[i].n_tokens);
        }
    }
    return cli_sources_tokenize(&fig->sources, fig->model, flags, err);
}

static int check_index(const char *what, int64_t index, int32_t n, qkv_error *err) {
    if (index == CLI_AUTO || index < n) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "%s %lld is out of range: the model has %ss 0 to %d",
                    what, (long long)index, what, (int)n - 1);
}

static int open_model(figure *fig, qkv_error *err) {
    const figure_args *args = fig->args;
    const qkv_session_options session = cli_session_options(args->threads, args->memory);
    int status = cli_model_open(&fig->model, args->model, err);
    if (status != QKV_OK) return status;
    fig->info = qkv_model_get_info(fig->model);
    status = check_index("layer", args->layer, fig->info->n_layer, err);
    if (status == QKV_OK) status = check_index("head", args->head, fig->info->n_head, err);
    if (status == QKV_OK && args->sink_column && !fig->info->has_sink)
        status =
            qkv_fail(err, QKV_ERR_ARGUMENT,
                     "--sink-column: %s has no learned sinks; its rows sum to 1", fig->info->path);
    if (status == QKV_OK) status = tokenize_prompts(fig, err);
    if (status == QKV_OK) status = check_writable(args, err);
    if (status == QKV_OK) status = qkv_session_new(&fig->session, fig->model, &session, err);
    return status;
}

int figure_open(figure *fig, const cli_call *call, const char *const *prompts, size_t n_prompts,
                qkv_error *err) {
    *fig = (figure){.call = call, .args = call->args, .sink = -1};
    fig->site = fig->args->show == FIGURE_SHOW_SCORES ? QKV_SITE_SCORES : QKV_SITE_PATTERN;
    int status = check_args(fig->args, err);
    if (status == QKV_OK) status = load_prompts(fig, prompts, n_prompts, err);
    if (status == QKV_OK) status = open_model(fig, err);
    if (status == QKV_OK) status = figure_choose_head(fig, err);
    return status;
}

void figure_close(figure *fig) {
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        free(fig->cells[i].edits);
        free(fig->cells[i].title);
        free(fig->cells[i].values);
        free(fig->cells[i].pattern);
    }
    free(fig->cells);
    for (size_t i = 0; i < fig->n_prompts; i++) {
        cli_prompt_release(&fig->prompts[i]);
        if (fig->plain) free(fig->plain[i]);
    }
    free(fig->plain);
    free(fig->prompts);
    cli_sources_release(&fig->sources);
    qkv_text_release(&fig->operations);
    qkv_session_free(fig->session);
    qkv_model_free(fig->model);
    *fig = (figure){0};
}

/* ---- cells ---- */

int figure_reserve(figure *fig, size_t rows, size_t cols, qkv_error *err) {
    cols += fig->args->baseline != 0;
    fig->cells = qkv_calloc(rows * cols, sizeof *fig->cells);
    if (!fig->cells) return qkv_fail_memory(err);
    fig->rows = rows;
    fig->cols = cols;
    return QKV_OK;
}

static int fill(figure_cell *cell, size_t prompt, const char *edits, const char *title,
                qkv_error *err) {
    cell->prompt = prompt;
    cell->edits = qkv_strdup(edits);
    cell->title = qkv_strdup(title);
    return cell->edits && cell->title ? QKV_OK : qkv_fail_memory(err);
}

int figure_set(figure *fig, size_t row, size_t col, size_t prompt, const char *edits,
               const char *title, qkv_error *err) {
    if (!edits || !title) return qkv_fail_memory(err);
    col += fig->args->baseline != 0;
    return fill(&fig->cells[row * fig->cols + col], prompt, edits, title, err);
}

void figure_mark(figure *fig, size_t row, size_t col, figure_kind kind, int part, double eps) {
    figure_cell *cell = &fig->cells[row * fig->cols + col + (fig->args->baseline != 0)];
    cell->kind = kind;
    cell->part = part;
    cell->eps = eps;
}

int figure_set_baseline(figure *fig, size_t row, size_t prompt, const char *title, qkv_error *err) {
    if (!fig->args->baseline) return QKV_OK;
    return fill(&fig->cells[row * fig->cols], prompt, "", title, err);
}

int figure_finish(figure *fig, qkv_error *err) {
    const int status = figure_compute(fig, err);
    return status == QKV_OK ? figure_draw(fig, err) : status;
}

/* ---- texts ---- */

char *figure_printf(const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = qkv_vformat(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (!text) return NULL;
    va_start(args, format);
    qkv_vformat(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

char *figure_edit(const figure *fig, const char *site, const char *operation) {
    if (fig->args->edit_heads == FIGURE_EDIT_ALL) {
        return figure_printf("%s@%d=%s", site, (int)fig->layer, operation);
    }
    return figure_printf("%s@%d.h%d=%s", site, (int)fig->layer, (int)fig->head, operation);
}
