/* qkv sweep: every combination of a specification, measured, into one SQLite file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/sweep.h"

typedef struct sweep_args {
    const char *model;
    sweep_flags flags;
    const char *output, *shard;
    int explain;
    int json;
    int64_t threads, memory;
} sweep_args;

static const sweep_args defaults = {0};

static const cli_option options[] = {
    CLI_MODEL_OPTION(sweep_args),
    SWEEP_PROMPT_OPTIONS(sweep_args),
    {0, "length", "N", "cut prompts to their first N tokens; a shorter one is an error",
     CLI_INTEGER, offsetof(sweep_args, flags.length), 0, 1, 1 << 30},
    {0, "layers", "LAYERS",
     "layers to edit, e.g. 3, 0-5,7 or -1 (default *: each of them); all: "
     "together in one edit",
     CLI_TEXT, offsetof(sweep_args, flags.layers), 0, 0, 0},
    {0, "heads", "HEADS", "query heads to edit, in the same notation", CLI_TEXT,
     offsetof(sweep_args, flags.heads), 0, 0, 0},
    {0, "targets", "SITES", "what to edit, e.g. q,k (default q,k,v); none is the unedited model",
     CLI_TEXT, offsetof(sweep_args, flags.targets), 0, 0, 0},
    {0, "ops", "OPS", "what to do to it, e.g. scale,mean:head,zero (default scale)", CLI_TEXT,
     offsetof(sweep_args, flags.ops), 0, 0, 0},
    {0, "epsilon", "LIST",
     "numbers for scale, set, add and noise, e.g. 0.5,1e-3 or logspace:1e-10,1,13, also linspace:",
     CLI_TEXT, offsetof(sweep_args, flags.epsilon), 0, 0, 0},
    {0, "metrics", "NAMES",
     "what to measure (default sink,entropy_norm,tv; at the output "
     "output_kl,delta_loss,top1_changed); see 'qkv metrics'",
     CLI_TEXT, offsetof(sweep_args, flags.metrics), 0, 0, 0},
    {0, "at", "layer|output",
     "where to measure: in the edited layer and head, or at the model's output (default: where "
     "the metrics belong)",
     CLI_TEXT, offsetof(sweep_args, flags.at), 0, 0, 0},
    {0, "shard", "I/N", "compute only part I of N, into a file of its own", CLI_TEXT,
     offsetof(sweep_args, shard), 0, 0, 0},
    {0, "explain", NULL, "check everything, print the estimate, and compute nothing", CLI_FLAG,
     offsetof(sweep_args, explain), 1, 0, 0},
    {0, "json", NULL, "print what there is to do, and how long it took, as JSON", CLI_FLAG,
     offsetof(sweep_args, json), 1, 0, 0},
    {'t', "threads", "N", "processes to share the work (default 0: one for every core)",
     CLI_INTEGER, offsetof(sweep_args, threads), 0, 0, 1024},
    CLI_MEMORY_OPTION(sweep_args),
    {'o', "output", "RESULTS", "file of results, SQLite; an existing file is resumed", CLI_TEXT,
     offsetof(sweep_args, output), 0, 0, 0},
};

static int run_sweep(const cli_call *call, qkv_error *err);

const cli_command cli_command_sweep = {
    .name = "sweep",
    .summary = "measure every combination of prompts, layers, heads, targets and edits",
    .synopsis =
        "[SPEC.json] [-m MODEL] [-p TEXT | -f FILE | --file FILE]... [--layers LAYERS] [--heads HEADS] "
        "[--targets SITES] [--ops OPS] [--epsilon LIST] [--metrics NAMES] "
        "[--json] (-o RESULTS.sqlite [--shard I/N] | --explain)",
    .description =
        "Edits one target of one head at a time, for every combination, and measures what "
        "changes. A sweep is specified by options, by a JSON file with keys of the same names "
        "(prompts is a list of texts), or by both: options override the file. Everything is "
        "checked before the first computation.\n"
        "\n"
        "Measured in the edited layer, one small attention gives the values of all heads of a "
        "layer: a sweep costs little more than one forward pass per prompt. Measured at the "
        "output, every cell needs the layers above it.\n"
        "\n"
        "Results are stored as they are computed. After any interruption the same command "
        "resumes the sweep, and the finished file holds the same rows. 'qkv sweep export' "
        "writes them as CSV or JSON, 'qkv sweep merge' joins shards. Under mpirun the processes "
        "share the work and the first one writes the file.\n"
        "\n"
        "  qkv sweep -f prompts.txt --epsilon logspace:1e-10,1,13 --metrics sink,tv \\\n"
        "      -o results.sqlite\n"
        "  qkv sweep -f prompts.txt --targets z --ops zero --at output -o heads.sqlite\n"
        "  qkv sweep study.json -o study.sqlite --shard 2/8\n"
        "  mpirun -n 8 qkv sweep study.json -o study.sqlite\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .max_operands = 1,
    .operand = CLI_PATH,
    .run = run_sweep,
};

static int run_sweep(const cli_call *call, qkv_error *err) {
    const sweep_args *args = call->args;
    sweep_job job = {.model = args->model,
                     .output = args->output,
                     .threads = args->threads,
                     .memory = args->memory,
                     .flags = &args->flags,
                     .explain = args->explain,
                     .json = args->json};
    /* 'qkv sweep exprt': a command, and not a file. */
    if (call->n_operands && access(call->operands[0], F_OK) != 0) {
        qkv_nearest near = qkv_nearest_of(call->operands[0], strlen(call->operands[0]));
        cli_nearest_command(&near, "sweep");
        if (near.best[0]) return cli_fail_command("sweep", call->operands[0], err);
    }
    if (!args->output && !args->explain) return cli_usage(err, "give a file of results with -o");
    if (args->output && args->explain) {
        return cli_usage(err, "--explain computes nothing: leave out -o");
    }
    json_t *spec = NULL;
    int status = sweep_shard_read(args->shard, &job.shard, &job.n_shards, err);
    if (status == QKV_OK && call->n_operands) {
        status = sweep_spec_read(&spec, call->operands[0], err);
    } else if (status == QKV_OK) {
        spec = json_object();
    }
    if (status == QKV_OK && !spec) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = sweep_spec_override(spec, &args->flags, err);
    sweep_work work = {0};
    if (status == QKV_OK) status = sweep_work_begin(&work, &job, spec, err);
    if (status == QKV_OK) status = sweep_work_run(&work, err);
    if (status == QKV_OK && job.json && sweep_work_leads(&work)) {
        status = sweep_work_print_json(&work, err);
    }
    sweep_work_release(&work);
    json_decref(spec);
    return status;
}
