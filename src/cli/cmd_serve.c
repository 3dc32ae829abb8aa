/* qkv serve: the explorer, a page in the browser. Which models there are, and how long it runs. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/messages.h"
#include "qkv/server.h"

extern char **environ;

typedef struct serve_args {
    const char *model;
    const char *prompt;
    int64_t port;
    int open;
    const char *bind, *token;
    int64_t max_tokens;
    int64_t threads;
    int64_t memory;
} serve_args;

enum { USUAL_PORT = 8471 };

static const serve_args defaults = {.port = USUAL_PORT};

#define AT(field) offsetof(serve_args, field)

static const cli_option options[] = {
    CLI_MODEL_OPTION(serve_args),
    {'p', "prompt", "TEXT", "the prompt that the page begins with", CLI_TEXT, AT(prompt), 0, 0, 0},
    {0, "port", "N", "port to listen at; 0: any that is free (default 8471)", CLI_INTEGER, AT(port),
     0, 0, 65535},
    {0, "open", NULL, "open the page in a browser", CLI_FLAG, AT(open), 1, 0, 0},
    {0, "bind", "ADDRESS",
     "listen at this address, such as 0.0.0.0, and not at 127.0.0.1 and ::1 alone: other machines "
     "can then reach it; wants --token",
     CLI_TEXT, AT(bind), 0, 0, 0},
    {0, "token", "TEXT",
     "the token that every request needs, 16 characters or more (default: a "
     "random one)",
     CLI_TEXT, AT(token), 0, 0, 0},
    {0, "max-tokens", "N", "longest prompt, in tokens (default 16384)", CLI_INTEGER, AT(max_tokens),
     0, 1, 1 << 20},
    CLI_THREADS_OPTION(serve_args),
    CLI_MEMORY_OPTION(serve_args),
};

static int run_serve(const cli_call *call, qkv_error *err);

const cli_command cli_command_serve = {
    .name = "serve",
    .summary = "explore a model in the browser",
    .synopsis = "[-m MODEL] [-p TEXT] [--port N] [--open] [--bind ADDRESS --token TEXT] "
                "[--max-tokens N]",
    .description =
        "Prints the address of a page and serves it until Ctrl-C: attention maps that follow the "
        "edits while a slider is moved, all heads at a glance, what comes next and why. The models "
        "that can be chosen there are the one of -m, the one that comes with qkv, and those that "
        "'qkv models' lists. The page makes no request to any other server.\n"
        "\n"
        "The address holds a token, and requests without it are refused. The server listens on this "
        "machine alone. With --bind ADDRESS it can be reached from others: anyone who knows the token "
        "can then use the models and the processor, and as nothing is encrypted, anyone who listens on "
        "the way can read the token and the prompts. An SSH tunnel (ssh -L 8471:localhost:8471) "
        "needs no --bind.\n"
        "\n"
        "The JSON interface of the page: docs/explorer.md.\n"
        "\n"
        "  qkv serve --open\n"
        "  qkv serve -m tinyllama -p 'The river runs to the sea.' --port 9000\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_serve,
};

/* ---- models ---- */

typedef struct model_choice {
    qkv_server_model *items;
    size_t n, capacity;
    qkv_model_place *named, *shipped;
    qkv_model_list *list;
} model_choice;

static int has_name(const model_choice *choice, const char *name) {
    for (size_t i = 0; i < choice->n; i++) {
        if (strcmp(choice->items[i].name, name) == 0) return 1;
    }
    return 0;
}

static int add_model(model_choice *choice, const char *name, const char *argument, const char *path,
                     uint64_t size, qkv_error *err) {
    qkv_server_model model = QKV_SERVER_MODEL_INIT;
    if (!path[0] || has_name(choice, name)) return QKV_OK;
    model.name = name;
    model.path = path;
    model.argument = argument;
    model.file_size = size;
    return QKV_PUSH(choice->items, choice->capacity, choice->n, model) ? QKV_OK
                                                                       : qkv_fail_memory(err);
}

/* A path is not shown: the page needs none, and pictures of it are handed on. */
static const char *shown_name(const char *argument) {
    return qkv_model_is_name(argument) ? argument : qkv_path_base(argument);
}

static int add_named(model_choice *choice, const char *given, qkv_error *err) {
    const char *argument = given ? given : getenv("QKV_MODEL");
    if (given && !given[0]) return qkv_fail(err, QKV_ERR_ARGUMENT, "no model file was named");
    if (!argument || !argument[0]) return QKV_OK;
    const int status = cli_model_find(&choice->named, argument, err);
    if (status != QKV_OK) return status;
    const qkv_model_place_info *place = qkv_model_place_get_info(choice->named);
    return add_model(choice, shown_name(argument), argument, place->path, place->size, err);
}

/* The one that is used without -m, unless QKV_MODEL says otherwise. */
static int add_shipped(model_choice *choice, qkv_error *err) {
    char *path = NULL;
    const char *other = getenv("QKV_MODEL");
    int status = cli_default_model(&path, err);
    if (status != QKV_OK) return choice->n ? QKV_OK : status;
    status = qkv_model_find(&choice->shipped, path, err);
    free(path);
    if (status != QKV_OK) return status;
    const qkv_model_place_info *place = qkv_model_place_get_info(choice->shipped);
    return add_model(choice, "default", other && other[0] ? place->path : NULL, place->path,
                     place->size, err);
}

static int choose_models(model_choice *choice, const char *given, qkv_error *err) {
    int status = add_named(choice, given, err);
    if (status == QKV_OK) status = add_shipped(choice, err);
    if (status == QKV_OK) status = qkv_model_list_new(&choice->list, err);
    for (size_t i = 0; status == QKV_OK && i < qkv_model_list_count(choice->list); i++) {
        const qkv_model_place_info *place = qkv_model_list_get(choice->list, i);
        if (place->problem[0]) continue;
        status = add_model(choice, place->name, place->name, place->path, place->size, err);
    }
    return status;
}

static void release_models(model_choice *choice) {
    free(choice->items);
    qkv_model_place_free(choice->named);
    qkv_model_place_free(choice->shipped);
    qkv_model_list_free(choice->list);
}

/* ---- running ---- */

static void open_browser(const char *url) {
    char *const words[] = {(char *)"xdg-open", (char *)url, NULL};
    pid_t child;
    const int why = posix_spawnp(&child, words[0], NULL, NULL, words, environ);
    if (why) cli_warn("no browser was opened: xdg-open: %s", strerror(why));
}

static int serve(qkv_server *server, const serve_args *args, qkv_error *err) {
    if (printf("%s\n", qkv_server_url(server)) < 0 || fflush(stdout) != 0)
        return qkv_fail(err, QKV_ERR_IO, "cannot write standard output: %s", strerror(errno));
    if (args->bind)
        cli_warn(
            "other machines can reach this server; nothing is encrypted, and anyone who knows the "
            "token can use it");
    cli_notice("qkv: open the address in a browser; Ctrl-C ends the server");
    if (args->open) open_browser(qkv_server_url(server));
    cli_hear_signals();
    while (!cli_stop_asked() && !qkv_server_wait(server, 0.1)) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
    }
    cli_end_soon(); /* drawing a figure, say, cannot be stopped */
    qkv_server_stop(server);
    return QKV_OK;
}

static int run_serve(const cli_call *call, qkv_error *err) {
    const serve_args *args = call->args;
    model_choice choice = {0};
    qkv_server *server = NULL;
    qkv_server_options how = QKV_SERVER_OPTIONS_INIT;
    if (args->bind && !args->token)
        return cli_usage(err, "--bind lets other machines in: choose a token with --token");
    int status = choose_models(&choice, args->model, err);
    how.models = choice.items;
    how.n_models = choice.n;
    how.prompt = args->prompt;
    how.port = (int32_t)args->port;
    how.bind = args->bind;
    how.token = args->token;
    how.n_threads = (int32_t)args->threads;
    how.memory_budget = (size_t)args->memory << 20;
    how.max_tokens = args->max_tokens;
    if (status == QKV_OK) status = cli_name_fields(qkv_server_new(&server, &how, err), err);
    if (status == QKV_OK) status = serve(server, args, err);
    qkv_server_free(server);
    release_models(&choice);
    return status;
}
