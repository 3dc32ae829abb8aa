/* qkv pull: fetches a model by name. */
#include <stdio.h>

#include "cli/inputs.h"
#include "qkv/pull.h"

typedef struct pull_args {
    int dry_run;
} pull_args;

static const pull_args defaults = {0};

static const cli_option options[] = {
    {0, "dry-run", NULL, "say what would be fetched, and fetch nothing", CLI_FLAG,
     offsetof(pull_args, dry_run), 1, 0, 0},
};

static int run_pull(const cli_call *call, qkv_error *err);

const cli_command cli_command_pull = {
    .name = "pull",
    .summary = "fetch a model by name",
    .synopsis = "NAME [--dry-run]",
    .description = "Fetches a model.\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_pull,
};

static void print_note(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "qkv: %s\n", line);
}

static void print_file(void *user, const qkv_pull_file *file) {
    (void)user;
    fprintf(stderr, "%s  %llu bytes\n", file->path, (unsigned long long)file->n_bytes);
}

static int watch(void *user, const qkv_pull_step *step) {
    (void)user;
    (void)step;
    return cli_stop_asked();
}

static void print_end(void *user, const char *path) {
    (void)user;
    puts(path);
}

static int run_pull(const cli_call *call, qkv_error *err) {
    const pull_args *args = call->args;
    qkv_pull_options how = QKV_PULL_OPTIONS_INIT;
    how.dry_run = args->dry_run;
    how.note = print_note;
    how.file = print_file;
    how.step = watch;
    how.end = print_end;
    cli_hear_signals();
    return qkv_pull(call->operands[0], &how, err);
}
