/* qkv help: the overview, one command, the notation of edits, or the manual page. */
#include <assert.h>
#include <string.h>

#include "cli/cli.h"

typedef struct help_args {
    int man, names;
} help_args;

static const help_args defaults = {0};

static const cli_option options[] = {
    {0, "man", NULL, "print the manual page of the command, or of qkv, as roff", CLI_FLAG,
     offsetof(help_args, man), 1, 0, 0},
    {0, "names", NULL, "print the names of all commands, one to a line", CLI_FLAG,
     offsetof(help_args, names), 1, 0, 0},
};

static int run_help(const cli_call *call, qkv_error *err);

const cli_command cli_command_help = {
    .name = "help",
    .summary = "explain a command, or the notation of edits",
    .synopsis = "[COMMAND | notation]\n--man [COMMAND]\n--names",
    .description = "Explains what qkv can do, how one command is used, or how edits are written.\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .max_operands = 2,
    .run = run_help,
};

static int run_help(const cli_call *call, qkv_error *err) {
    const help_args *args = call->args;
    size_t used;
    if (args->names) {
        if (args->man || call->n_operands) return cli_usage(err, "--names takes no other argument");
        cli_print_names();
        return QKV_OK;
    }
    if (call->n_operands == 0) {
        if (args->man)
            cli_print_manual(NULL);
        else
            cli_print_overview();
        return QKV_OK;
    }
    const cli_command *command = cli_find(call->operands, call->n_operands, &used);
    if (command && used == call->n_operands) {
        if (args->man)
            cli_print_manual(command);
        else
            cli_print_help(command);
        return QKV_OK;
    }
    if (args->man) return cli_fail_command(NULL, call->operands[0], err);
    if (call->n_operands == 1 && strcmp(call->operands[0], "notation") == 0) {
        cli_print_notation();
        return QKV_OK;
    }
    const char *group = cli_is_group(call->operands[0]) ? call->operands[0] : NULL;
    if (group && call->n_operands == 1) {
        cli_print_group(group);
        return QKV_OK;
    }
    assert(call->operands[0]);
    qkv_nearest near = qkv_nearest_of(call->operands[0], strlen(call->operands[0]));
    cli_nearest_command(&near, NULL);
    const size_t distance = near.distance;
    qkv_nearest_try(&near, "notation");
    if (near.distance < distance)
        return cli_usage(err, "unknown command '%s'%s", call->operands[0], qkv_nearest_hint(&near));
    return cli_fail_command(group, call->operands[group ? 1 : 0], err);
}
