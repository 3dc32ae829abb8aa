/* qkv run: a prompt through a model, with edits; what was captured goes to files or to a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/run_table.h"
#include "qkv/session.h"
#include "qkv/store.h"

typedef struct run_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_list variants;
    cli_list captures;
    cli_list sources;
    cli_list outputs;
    int64_t threads;
} run_args;

static const run_args defaults = {0};

enum { SOURCE_TEXT, SOURCE_TOKENS };

static const cli_option options[] = {
    CLI_MODEL_OPTION(run_args),
    CLI_PROMPT_OPTIONS(run_args),
    {0, "variant", "EDITS", "one variant to run: edits joined by ' + '; may be repeated", CLI_LIST,
     offsetof(run_args, variants), 0, 0, 0},
    {0, "capture", "WHAT", "what to keep, e.g. pattern@3 or logits; may be repeated", CLI_LIST,
     offsetof(run_args, captures), 0, 0, 0},
    {0, "source", "NAME=TEXT",
     "the prompt that patch:NAME takes its values from; NAME=@FILE reads a file", CLI_LIST,
     offsetof(run_args, sources), SOURCE_TEXT, 0, 0},
    {0, "source-tokens", "NAME=IDS", "the same, as token ids", CLI_LIST,
     offsetof(run_args, sources), SOURCE_TOKENS, 0, 0},
    CLI_THREADS_OPTION(run_args),
    {'o', "output", "OUT",
     "file for the captured tensors: .safetensors, .json or .npy; may be repeated", CLI_LIST,
     offsetof(run_args, outputs), 0, 0, 0},
};

static int run_run(const cli_call *call, qkv_error *err);

const cli_command cli_command_run = {
    .name = "run",
    .summary = "run a prompt with edits and keep what you want to look at",
    .synopsis = "[-m MODEL] (-p TEXT | -f FILE | --tokens IDS) [--variant EDITS]... --capture "
                "WHAT... [-o OUT]...",
    .description =
        "Runs the prompt unedited (v0) and once for every variant (v1, v2, ... in the order "
        "given), and keeps what the captures name. How edits are written: 'qkv help notation'.\n"
        "\n"
        "OUT.safetensors holds tensors named v0/pattern.3 (variant, site, layer; v0/logits has no "
        "layer), F32, row-major, with tokens, the model's hash and the edits in its metadata. "
        "OUT.json is the same for small results, OUT.npy holds a single tensor. Without -o a "
        "short table is printed.\n"
        "\n"
        "  qkv run -p 'The river runs to the sea.' \\\n"
        "      --variant 'q@3.h1=scale:1e-3' --capture pattern@3 -o out.safetensors\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_run,
};

/* Everything a run holds on to. */
typedef struct run_state {
    qkv_model *model;
    qkv_session *session;
    qkv_plan *plan;
    qkv_result *result;
    cli_prompt prompt;
    cli_prompt *sources;
    size_t n_sources;
    unsigned flags;
} run_state;

static int check_args(const run_args *args, qkv_error *err) {
    if (args->prompts.n != 1) {
        return cli_usage(err, "give one prompt with -p, -f or --tokens");
    }
    if (args->captures.n == 0) {
        return cli_usage(err, "nothing to keep: add for example --capture 'pattern@*'");
    }
    return cli_outputs_check_names(&args->outputs, "safetensors|json|npy", err);
}

static int load_source(cli_prompt *source, const cli_item *given, qkv_error *err) {
    const char *equals = strchr(given->value, '=');
    if (!equals || equals == given->value) {
        return cli_usage(err, "a source is written NAME=%s, not '%s'",
                         given->tag == SOURCE_TOKENS ? "IDS" : "TEXT", given->value);
    }
    cli_item item = {equals + 1, CLI_PROMPT_TEXT};
    if (given->tag == SOURCE_TOKENS) {
        item.tag = CLI_PROMPT_TOKENS;
    } else if (equals[1] == '@') {
        item = (cli_item){equals + 2, CLI_PROMPT_FILE};
    }
    return cli_prompt_load(source, &item, err);
}

static int load_prompts(run_state *run, const run_args *args, qkv_error *err) {
    run->flags = QKV_TOKENIZE_ADD_SPECIAL | (args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    run->sources = qkv_calloc(args->sources.n, sizeof *run->sources);
    if (!run->sources) return qkv_fail_memory(err);
    run->n_sources = args->sources.n;
    int status = cli_prompt_load(&run->prompt, &args->prompts.items[0], err);
    for (size_t i = 0; i < run->n_sources && status == QKV_OK; i++) {
        status = load_source(&run->sources[i], &args->sources.items[i], err);
    }
    return status;
}

static int add_sources(run_state *run, const run_args *args, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < run->n_sources && status == QKV_OK; i++) {
        cli_prompt *source = &run->sources[i];
        const char *given = args->sources.items[i].value;
        char *name = qkv_strndup(given, strcspn(given, "="));
        if (!name) return qkv_fail_memory(err);
        status = cli_prompt_tokenize(source, run->model, run->flags, err);
        if (status == QKV_OK) {
            status = qkv_plan_add_source(run->plan, name, source->tokens, source->n_tokens, err);
        }
        free(name);
    }
    return status;
}

static int make_plan(run_state *run, const run_args *args, qkv_error *err) {
    int status = cli_prompt_tokenize(&run->prompt, run->model, run->flags, err);
    if (status == QKV_OK) {
        status =
            qkv_plan_new(&run->plan, run->model, run->prompt.tokens, run->prompt.n_tokens, err);
    }
    if (status == QKV_OK) status = add_sources(run, args, err);
    for (size_t i = 0; i < args->variants.n && status == QKV_OK; i++) {
        status = qkv_plan_add_variant(run->plan, args->variants.items[i].value, NULL, err);
    }
    for (size_t i = 0; i < args->captures.n && status == QKV_OK; i++) {
        status = qkv_plan_add_capture(run->plan, args->captures.items[i].value, err);
    }
    return status;
}

static int compute(run_state *run, const run_args *args, qkv_error *err) {
    const qkv_session_options session = {.n_threads = (int32_t)args->threads};
    int status = cli_model_open(&run->model, args->model, err);
    if (status == QKV_OK) status = make_plan(run, args, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    if (status == QKV_OK) status = qkv_session_new(&run->session, run->model, &session, err);
    if (status == QKV_OK) status = qkv_session_run(run->session, &run->result, run->plan, err);
    return status;
}

static int run_run(const cli_call *call, qkv_error *err) {
    const run_args *args = call->args;
    run_state run = {0};
    int status = check_args(args, err);
    if (status == QKV_OK) status = load_prompts(&run, args, err);
    if (status == QKV_OK) status = compute(&run, args, err);
    if (status == QKV_OK) cli_warn_unchanged(run.result);
    for (size_t i = 0; i < args->outputs.n && status == QKV_OK; i++) {
        const char *path = args->outputs.items[i].value;
        status = qkv_store_write(run.result, run.plan, run.model, path, err);
    }
    if (status == QKV_OK && args->outputs.n == 0) cli_print_result(run.result);

    for (size_t i = 0; i < run.n_sources; i++) cli_prompt_release(&run.sources[i]);
    free(run.sources);
    cli_prompt_release(&run.prompt);
    qkv_result_free(run.result);
    qkv_plan_free(run.plan);
    qkv_session_free(run.session);
    qkv_model_free(run.model);
    return status;
}
