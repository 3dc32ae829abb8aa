/* qkv metrics: the list of metrics, for a terminal, a program, or docs/metrics.md. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "cli/inputs.h"
#include "qkv/measure.h"

typedef struct metrics_args {
    int json;
    int markdown;
} metrics_args;

static const metrics_args defaults = {0};

static const cli_option options[] = {
    CLI_JSON_OPTION(metrics_args),
    {0, "markdown", NULL, "print the page docs/metrics.md", CLI_FLAG,
     offsetof(metrics_args, markdown), 1, 0, 0},
};

static int run_metrics(const cli_call *call, qkv_error *err);

const cli_command cli_command_metrics = {
    .name = "metrics",
    .summary = "list the metrics with their formulas and sources",
    .synopsis = "[--json | --markdown] [NAME]...",
    .description = "Lists what 'qkv measure' can measure, or only the metrics that are named.\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .max_operands = 64,
    .run = run_metrics,
};

/* In the words of METRICS.md; the letters that formulas use. */
static const char letters[] =
    "A is one head's attention weights after the softmax, T x T; i counts queries (rows) and j "
    "keys (columns), from 0. Means over rows leave out row 0 where the quantity is trivial there. "
    "Logarithms are natural.";

static const char conventions[] =
    "In a model with a sliding window or a bidirectional one, the keys that a query sees are those "
    "its mask lets it see. Where a row leaves weight outside the keys (a model with attention "
    "sinks, an edited pattern), weights are taken as they are; in uniformity, tv, js and kl the "
    "rest counts as one more key.";

static const char writing[] =
    "Parameters other than the default ones follow the name after a colon, separated by slashes: "
    "sink:4, massive:50/500. A parameter may be named: massive:ratio=500, subspace_angle:space=feature.";

static const char uses[] =
    "`qkv measure` prints them for every head of a model, `qkv figure ... --report` for the panels "
    "of a figure, and `qkv/measure.h` offers them to programs. All but two are summed row by row "
    "while a pattern is computed, so that no map is kept.";

/* The metrics asked for, or all. */
static int is_listed(const cli_call *call, const qkv_metric_info *info) {
    int listed = call->n_operands == 0;
    for (size_t i = 0; i < call->n_operands; i++) {
        listed |= strcmp(call->operands[i], info->name) == 0;
    }
    return listed;
}

static void print_text(const cli_call *call) {
    if (call->n_operands == 0) {
        cli_print_paragraph(letters, 0);
        cli_print_paragraph(conventions, 0);
        cli_print_paragraph(writing, 0);
        putchar('\n');
    }
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_metric_get(i)); i++) {
        if (!is_listed(call, info)) continue;
        printf("%s%s%s%s\n", info->name, info->parameters[0] ? " (" : "", info->parameters,
               info->parameters[0] ? ")" : "");
        printf("    %s%s%s%s\n", info->title, info->unit[0] ? " (" : "", info->unit,
               info->unit[0] ? ")" : "");
        cli_print_paragraph(info->formula, 4);
        printf("    %s; per %s; from %s", info->range, qkv_metric_scope_name(info->scope),
               info->needs);
        printf("%s%s\n", info->undefined[0] ? "; NaN " : "", info->undefined);
        printf("    %s\n", info->source);
    }
}

static json_t *describe(const qkv_metric_info *info) {
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:s, s:b}", "name", info->name,
                     "title", info->title, "unit", info->unit, "formula", info->formula,
                     "parameters", qkv_json_words(info->parameters), "range", info->range,
                     "undefined", info->undefined, "scope", qkv_metric_scope_name(info->scope),
                     "needs", qkv_json_words(info->needs), "source", info->source, "compares",
                     (int)info->compares);
}

static int print_json(const cli_call *call, qkv_error *err) {
    json_t *list = json_array();
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_metric_get(i)); i++) {
        if (is_listed(call, info)) qkv_json_push(list, describe(info));
    }
    return cli_print_json(json_pack("{s:o}", "metrics", list), err);
}

/* A bar would end the cell. */
static void print_cell(const char *text) {
    for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_row(const qkv_metric_info *info) {
    printf("| `%s` | %s%s%s%s | ", info->name, info->title, info->unit[0] ? " (" : "", info->unit,
           info->unit[0] ? ")" : "");
    print_cell(info->formula);
    if (info->undefined[0]) printf(". NaN %s", info->undefined);
    printf(" | %s | %s | %s | %s | %s |\n", info->parameters[0] ? info->parameters : "–",
           info->range, qkv_metric_scope_name(info->scope), info->needs, info->source);
}

static void print_markdown(const cli_call *call) {
    printf("# Metrics\n\n<!-- printed by `qkv metrics --markdown` -->\n\n");
    const char *const paragraphs[] = {letters, conventions, writing, uses};
    for (size_t i = 0; i < sizeof paragraphs / sizeof *paragraphs; i++) {
        cli_print_paragraph(paragraphs[i], 0);
        putchar('\n');
    }
    printf("| name | in words (unit) | formula | parameters | range | per | from | source |\n");
    printf("|---|---|---|---|---|---|---|---|\n");
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_metric_get(i)); i++) {
        if (is_listed(call, info)) print_row(info);
    }
}

static int fail_name(const char *name, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_metric_get(i)); i++) qkv_nearest_try(&near, info->name);
    return cli_usage(err, "there is no metric '%s'%s; 'qkv metrics' lists them", name,
                     qkv_nearest_hint(&near));
}

static int run_metrics(const cli_call *call, qkv_error *err) {
    const metrics_args *args = call->args;
    for (size_t i = 0; i < call->n_operands; i++) {
        if (!qkv_metric_find(call->operands[i])) {
            return fail_name(call->operands[i], err);
        }
    }
    if (args->json && args->markdown) return cli_usage(err, "give --json or --markdown, not both");
    if (args->json) return print_json(call, err);
    if (args->markdown) {
        print_markdown(call);
    } else {
        print_text(call);
    }
    return QKV_OK;
}
