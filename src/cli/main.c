/* The program: finds the command, runs it, reports what went wrong. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/messages.h"
#include "cli/progress.h"
#include "cli/recipe.h"
#include "qkv/error.h"
#include "qkv/study.h"
#include "qkv/version.h"

#define CLI_COMMAND_LIST(X)                                                                        \
    X(pull)                                                                                        \
    X(info)                                                                                        \
    X(models)                                                                                      \
    X(tokens)                                                                                      \
    X(run)                                                                                         \
    X(generate)                                                                                    \
    X(metrics)                                                                                     \
    X(show)                                                                                        \
    X(serve)                                                                                       \
    X(sweep)                                                                                       \
    X(sweep_export)                                                                                \
    X(sweep_merge)                                                                                 \
    X(recipe)                                                                                      \
    X(recipe_extract)                                                                              \
    X(recipe_insert)                                                                               \
    X(recipe_copy)                                                                                 \
    X(plot)                                                                                        \
    X(reproduce)                                                                                   \
    X(convert)                                                                                     \
    X(completion)                                                                                  \
    X(help)

#define CLI_DECLARE(id) extern const cli_command cli_command_##id;
CLI_COMMAND_LIST(CLI_DECLARE)
#undef CLI_DECLARE

#define CLI_ENTRY(id) &cli_command_##id,
static const cli_command *const own_commands[] = {CLI_COMMAND_LIST(CLI_ENTRY)};
#undef CLI_ENTRY
enum { N_OWN = sizeof own_commands / sizeof *own_commands };

/* The program's own commands, and one for each kind of study. */
const cli_command *const *cli_commands = own_commands;
size_t cli_n_commands = N_OWN;

/* Recipes of studies take the options of their look, which the library lists. */
static int add_looks(const cli_command **all, qkv_error *err) {
    static cli_command recipe;
    const size_t settings = offsetof(recipe_args, study) + offsetof(cli_study, settings);
    for (size_t i = 0; i < N_OWN; i++) {
        if (all[i] == &cli_command_recipe) all[i] = &recipe;
    }
    return cli_study_add_look(&recipe, &cli_command_recipe, settings, err);
}

static int list_commands(qkv_error *err) {
    size_t n = 0;
    const cli_command *studies;
    int status = cli_study_commands(&studies, &n, err);
    const cli_command **all = qkv_calloc(N_OWN + n, sizeof *all);
    if (status != QKV_OK || !all)
        return free(all), status == QKV_OK ? qkv_fail_memory(err) : status;
    memcpy(all, own_commands, sizeof own_commands);
    for (size_t i = 0; i < n; i++) all[N_OWN + i] = &studies[i];
    status = add_looks(all, err);
    if (status != QKV_OK) return free(all), status;
    cli_commands = all;
    cli_n_commands = N_OWN + n;
    return status;
}

static int is_word(const char *name, size_t length, const char *word) {
    return strlen(word) == length && memcmp(name, word, length) == 0;
}

/* How many of the words are the command's name; 0 when they name another. */
static size_t named_by(const cli_command *command, const char *const *words, size_t n) {
    const char *name = command->name;
    const size_t first = strcspn(name, " ");
    if (n < 1 || !is_word(name, first, words[0])) return 0;
    if (name[first] == '\0') return 1;
    const char *second = name + first + 1;
    return n >= 2 && is_word(second, strlen(second), words[1]) ? 2 : 0;
}

const cli_command *cli_find(const char *const *words, size_t n, size_t *used) {
    const cli_command *found = NULL;
    *used = 0;
    for (size_t i = 0; i < cli_n_commands; i++) {
        const size_t length = named_by(cli_commands[i], words, n);
        if (length <= *used) continue;
        found = cli_commands[i];
        *used = length;
    }
    return found;
}

int cli_is_group(const char *word) {
    for (size_t i = 0; i < cli_n_commands; i++) {
        const size_t first = strcspn(cli_commands[i]->name, " ");
        if (cli_commands[i]->name[first] && is_word(cli_commands[i]->name, first, word)) return 1;
    }
    return 0;
}

void cli_nearest_command(qkv_nearest *near, const char *group) {
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        const size_t first = strcspn(name, " ");
        char known[QKV_NEAREST_SIZE];
        snprintf(known, sizeof known, "%.*s", (int)first, name);
        if (!group) qkv_nearest_try(near, known);
        if (group && name[first] && strcmp(known, group) == 0)
            qkv_nearest_try(near, name + first + 1);
    }
}

/* The command whose name was `word` in earlier versions, or NULL. */
static const char *renamed(const char *word) {
    const char *name;
    for (size_t i = 0; (name = qkv_study_kind_name(i)); i++) {
        qkv_study_kind kind = {.size = sizeof kind};
        if (qkv_study_get_kind(name, &kind, NULL) == QKV_OK && kind.former &&
            strcmp(kind.former, word) == 0)
            return kind.command;
    }
    return NULL;
}

int cli_fail_command(const char *group, const char *word, qkv_error *err) {
    const char *now = group ? NULL : renamed(word);
    if (now) return cli_usage(err, "there is no command '%s' any more: it is 'qkv %s'", word, now);
    qkv_nearest near = qkv_nearest_of(word, strlen(word));
    cli_nearest_command(&near, group);
    if (!group) qkv_nearest_try(&near, "--version");
    return cli_usage(err, "unknown %s '%s%s%s'%s; see 'qkv%s%s --help'",
                     word[0] == '-' ? "option" : "command", group ? group : "", group ? " " : "",
                     word, qkv_nearest_hint(&near), group ? " " : "", group ? group : "");
}

/* `who` receives what stands before the colon of a usage error. */
static int no_command(int argc, char **argv, const char **who, qkv_error *err) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) return cli_usage(err, "no command given; see 'qkv --help'");
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        cli_print_overview();
        return QKV_OK;
    }
    if (strcmp(word, "--version") == 0) {
        printf("qkv %s\n", qkv_version());
        return QKV_OK;
    }
    if (!cli_is_group(word)) return cli_fail_command(NULL, word, err);
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        cli_print_group(word);
        return QKV_OK;
    }
    if (argc > 2 && argv[2][0] != '-') return cli_fail_command(word, argv[2], err);
    *who = word;
    return cli_usage(err, "no %s given; see 'qkv %s --help'", word, word);
}

static int run_command(const cli_command *command, int argc, char **argv, int skip,
                       qkv_error *err) {
    cli_parsed parsed;
    int status = cli_parse(&parsed, command, argc - skip, argv + skip, err);
    if (status == QKV_OK && parsed.help && command->help && parsed.n_operands) {
        status = command->help(parsed.operands[0], err);
    } else if (status == QKV_OK && parsed.help) {
        cli_print_help(command);
    } else if (status == QKV_OK) {
        const cli_call call = {command, parsed.args, parsed.operands, parsed.n_operands,
                               argc,    argv,        parsed.paths,    parsed.n_paths};
        const double start = cli_seconds();
        cli_set_messages(parsed.common.quiet, parsed.common.verbose);
        cli_progress_name(command->name);
        status = command->run(&call, err);
        cli_progress_clear();
        cli_detail("%s took %.3g s", command->name, cli_seconds() - start);
    }
    cli_parsed_release(&parsed, command);
    return status;
}

/*
 * A standard descriptor that is closed would become the next file or socket that is opened, and
 * messages would be written into it. It is held by a device, opened the wrong way round, so that
 * only a function that uses it gets an error. /dev/full, because /dev/stdout as the name
 * of an output opens it again, the right way round.
 */
static int hold_closed_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        /* It is the lowest one that is free. */
        if (open("/dev/full", mode) != fd && open("/dev/null", mode) != fd) return 0;
    }
    return 1;
}

/* Data that never reached its reader is a failure, also when the last buffer is the one lost. */
static int close_stdout(qkv_error *err) {
    int failed = ferror(stdout);
    /* An earlier write took the reason of its failure with it: another one tells it again. */
    if (failed) putchar('\n');
    errno = 0;
    if (fflush(stdout) != 0) failed = 1;
    const int code = errno ? errno : EIO;
    if (fclose(stdout) != 0) failed = 1;
    if (!failed && cli_is_incomplete())
        return qkv_fail(err, QKV_ERR_MEMORY, "out of memory: what was printed is incomplete");
    if (!failed) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "cannot write standard output: %s", strerror(code));
}

/* Everything is released and in order: shells are to see 130 or 143. */
static void end_early(int signal_number, int status, const qkv_error *err) {
    /* The user who asked for it knows that it stopped; a sweep has more to say. */
    const int is_plain = strcmp(err->message, qkv_status_text(QKV_ERR_CANCELLED)) == 0;
    if (status != QKV_OK && !is_plain) fprintf(stderr, "qkv: %s\n", err->message);
    fflush(stdout);
    cli_end_by_signal(signal_number);
}

int main(int argc, char **argv) {
    if (!hold_closed_descriptors()) return EXIT_FAILURE;
    cli_set_wait_policy(argv);
    cli_catch_signals();
    cli_catch_faults();
    qkv_error err = {0};
    const char *who = NULL;
    size_t used = 0;
    int status = list_commands(&err);
    const size_t n_words = argc > 1 ? (size_t)argc - 1 : 0;
    const cli_command *command =
        status == QKV_OK ? cli_find((const char *const *)argv + 1, n_words, &used) : NULL;
    if (status != QKV_OK) {
        who = NULL;
    } else if (command) {
        who = command->name;
        status = run_command(command, argc, argv, (int)used + 1, &err);
    } else {
        status = no_command(argc, argv, &who, &err);
    }
    const int signal_number = cli_stop_asked();
    if (signal_number) end_early(signal_number, status, &err);
    if (status == QKV_OK) status = close_stdout(&err);
    if (status == QKV_OK) return EXIT_SUCCESS;
    if (status == CLI_USAGE) {
        fprintf(stderr, who ? "qkv %s: %s\n" : "qkv%s: %s\n", who ? who : "", err.message);
        return 2;
    }
    fprintf(stderr, "qkv: %s\n", err.message);
    return EXIT_FAILURE;
}
