/* qkv sweep export: results as CSV or JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/inputs.h"
#include "cli/messages.h"
#include "qkv/sweep.h"

#define EXPORT_FORMATS "csv|json"

typedef struct export_args {
    cli_list outputs;
    const char *format; /* of -o - */
} export_args;

static const export_args defaults = {0};

static const cli_option options[] = {
    CLI_OUTPUT_OPTIONS(export_args, "file to write: .csv or .json", EXPORT_FORMATS),
};

static int print_rows(const char *results, const char *format, qkv_sweep_summary *summary,
                      qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    const int status = qkv_sweep_render(results, format, &bytes, &n_bytes, summary, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

static int run_export(const cli_call *call, qkv_error *err) {
    const export_args *args = call->args;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    if (args->outputs.n == 0) return cli_usage(err, "give a file to write with -o");
    int status = cli_outputs_check(&args->outputs, EXPORT_FORMATS, args->format, "csv", err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    for (size_t i = 0; i < args->outputs.n && status == QKV_OK; i++) {
        const char *path = args->outputs.items[i].value;
        const char *format = args->format ? args->format : "csv";
        status = cli_is_stdout(path) ? print_rows(call->operands[0], format, &summary, err)
                                     : qkv_sweep_export(call->operands[0], path, &summary, err);
    }
    if (status == QKV_OK && summary.n_missing) {
        cli_warn("%" PRId64 " of %" PRId64 " cell%s missing in %s", summary.n_missing,
                 summary.n_cells, summary.n_cells == 1 ? " is" : "s are", call->operands[0]);
    }
    return status;
}

const cli_command cli_command_sweep_export = {
    .name = "sweep export",
    .summary = "write the results of a sweep as CSV or JSON",
    .synopsis = "RESULTS.sqlite -o OUT.csv|OUT.json",
    .description =
        "Writes one row per cell and metric: prompt, layer, head, target, op, epsilon, metric, "
        "value, in the order of the sweep. Prompts, layers and heads count from 0; -1 stands for "
        "all of them together. A value that is undefined is empty (null).\n"
        "\n"
        "The file of results is a SQLite database, so that any other tool can read it too: its "
        "view 'rows' has the same columns.\n"
        "\n"
        "  qkv sweep export results.sqlite -o results.csv\n"
        "  sqlite3 results.sqlite 'SELECT layer, head, avg(value) FROM rows GROUP BY 1, 2'\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_PATH,
    .run = run_export,
};
