/* qkv sweep merge: the shards of a sweep as one file. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/messages.h"
#include "cli/sweep.h"

typedef struct merge_args {
    const char *output;
    int partial;
} merge_args;

static const merge_args defaults = {0};

static const cli_option options[] = {
    {0, "partial", NULL, "merge also when cells are missing", CLI_FLAG,
     offsetof(merge_args, partial), 1, 0, 0},
    {'o', "output", "ALL", "file of results to write, SQLite", CLI_TEXT,
     offsetof(merge_args, output), 0, 0, 0},
};

static int run_merge(const cli_call *call, qkv_error *err) {
    const merge_args *args = call->args;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    if (!args->output) return cli_usage(err, "give a file to write with -o");
    int status = sweep_output_check(args->output, err);
    if (status != QKV_OK) return status;
    status = qkv_sweep_merge(args->output, call->operands, call->n_operands, args->partial,
                             &summary, err);
    cli_name_fields(status, err);
    if (status == QKV_OK && summary.n_missing) {
        cli_warn("%" PRId64 " of %" PRId64 " cell%s missing in %s", summary.n_missing,
                 summary.n_cells, summary.n_cells == 1 ? " is" : "s are", args->output);
    }
    return status;
}

const cli_command cli_command_sweep_merge = {
    .name = "sweep merge",
    .summary = "join the shards of a sweep",
    .synopsis = "-o ALL.sqlite [--partial] RESULTS.sqlite...",
    .description =
        "Joins files that 'qkv sweep --shard' has written into one with the same rows as a sweep "
        "in one piece. They must have the same specification and model, and together have every "
        "cell. A results file that has the name ALL is replaced; any other file, a part, and a "
        "file that is being written are refused.\n"
        "\n"
        "A file merged with --partial can be completed: give it to 'qkv sweep' with the same "
        "specification, without --shard.\n"
        "\n"
        "  qkv sweep merge -o all.sqlite part1.sqlite part2.sqlite part3.sqlite\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 100000,
    .operand = CLI_PATH,
    .run = run_merge,
};
