/* qkv sweep export: results as CSV or JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/inputs.h"
#include "qkv/sweep.h"

typedef struct export_args {
    cli_list outputs;
} export_args;

static const export_args defaults = {0};

static const cli_option options[] = {
    {'o', "output", "OUT", "file to write: .csv or .json; may be repeated", CLI_PATHS,
     offsetof(export_args, outputs), 0, 0, 0},
};

static int run_export(const cli_call *call, qkv_error *err) {
    const export_args *args = call->args;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    if (args->outputs.n == 0) return cli_usage(err, "give a file to write with -o");
    int status = cli_outputs_check_names(&args->outputs, "csv|json", err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    for (size_t i = 0; i < args->outputs.n && status == QKV_OK; i++) {
        status = qkv_sweep_export(call->operands[0], args->outputs.items[i].value, &summary, err);
    }
    if (status == QKV_OK && summary.n_missing) {
        fprintf(stderr, "qkv: warning: %" PRId64 " of %" PRId64 " cell%s missing in %s\n",
                summary.n_missing, summary.n_cells, summary.n_cells == 1 ? " is" : "s are",
                call->operands[0]);
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
