/* qkv generate: continues a text, unedited and under edits at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escapes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/generate.h"
#include "cli/messages.h"
#include "cli/run_changes.h"
#include "qkv/store.h"

typedef struct generate_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    int64_t n_new;
    cli_list variants;
    cli_list sources;
    int edit_tokens;
    int recompute;
    cli_chat chat;
    double temperature;
    int64_t top_k;
    double top_p, min_p;
    int64_t seed;
    cli_list stops;
    cli_list captures;
    int explain;
    int json;
    int64_t threads;
    int64_t memory;
    cli_list outputs;
    const char *format; /* of -o - */
    int context_shift;
} generate_args;

#define GENERATE_FORMATS "jsonl|safetensors|json|npz|npy"

enum { NOT_GIVEN = -1 };

static const generate_args defaults = {.n_new = 64,
                                       .temperature = NOT_GIVEN,
                                       .top_k = NOT_GIVEN,
                                       .top_p = NOT_GIVEN,
                                       .min_p = NOT_GIVEN,
                                       .seed = NOT_GIVEN};

#define AT(field) offsetof(generate_args, field)

static const cli_option options[] = {
    CLI_MODEL_OPTION(generate_args),
    CLI_PROMPTS_OPTIONS(generate_args),
    {'n', "new", "N", "new tokens, at most (default 64)", CLI_INTEGER, AT(n_new), 0, 1, 1 << 24},
    {0, "variant", "EDITS", "one more text, with these edits; may be repeated", CLI_LIST,
     AT(variants), 0, 0, 0},
    {0, "edit-tokens", "all|prompt|new", "the tokens that edits act on (default all)", CLI_CHOICE,
     AT(edit_tokens), 0, 0, 0},
    CLI_SOURCE_OPTIONS(generate_args),
    {0, "recompute", NULL,
     "a pass over the whole text for every token: slow, for edits that need all tokens (mean:token)",
     CLI_FLAG, AT(recompute), 1, 0, 0},
    {0, "temperature", "X",
     "draw tokens, at this temperature (1 where another option of drawing is given); 0: always the most likely one",
     CLI_REAL, AT(temperature), 0, 0, 1000},
    {0, "top-k", "K", "draw from the K most likely tokens", CLI_INTEGER, AT(top_k), 0, 1, 1 << 24},
    {0, "top-p", "P", "draw from the fewest tokens that have this share of the probability",
     CLI_REAL, AT(top_p), 0, 0, 1},
    {0, "min-p", "P", "draw from tokens at least this likely, in relation to the most likely one",
     CLI_REAL, AT(min_p), 0, 0, 1},
    {0, "seed", "N", "of the draws (default 0): the same seed gives the same text", CLI_INTEGER,
     AT(seed), 0, 0, 9007199254740992.0},
    {0, "stop", "TEXT", "end where this text comes, e.g. '\\n\\n'; may be repeated", CLI_LIST,
     AT(stops), 0, 0, 0},
    {0, "capture", "WHAT",
     "what to keep of a pass over prompt and new text of the variant, as of qkv run; may be repeated",
     CLI_LIST, AT(captures), 0, 0, 0},
    {0, "explain", NULL, "print what would be kept in memory, and compute nothing", CLI_FLAG,
     AT(explain), 1, 0, 0},
    CLI_JSON_OPTION(generate_args),
    CLI_THREADS_OPTION(generate_args),
    CLI_MEMORY_OPTION(generate_args),
    {0, "context-shift", NULL, "refused: prompt and new tokens must fit into the model's context",
     CLI_FLAG, AT(context_shift), 1, 0, 0},
    CLI_OUTPUT_OPTIONS(generate_args,
                       "file: .jsonl (the default of '-') for the texts, a line for each; "
                       ".safetensors, .json, .npz or .npy for what was captured",
                       GENERATE_FORMATS),
};

static int run_generate(const cli_call *call, qkv_error *err);

const cli_command cli_command_generate = {
    .name = "generate",
    .summary = "continue a text with the model, also under edits",
    .synopsis =
        "[-m MODEL] (-p TEXT | -f FILE | --file FILE | --tokens IDS)... [-n N] [--variant EDITS]... "
        "[--temperature X] [--explain | --json | -o OUT...]",
    .description =
        "Prints new text, token by token: the most likely one each time, unless options of drawing "
        "are given. Variants have their edits on (see 'qkv help notation') and continue with texts of "
        "their own; side by side where the terminal is wide enough. The first token that is not the "
        "baseline's stands between « and ».\n"
        "\n"
        "Edits act on the prompt and on new tokens. Token numbers count through both; negative ones "
        "count back from the end of the prompt: [0], [5:], [-1]. A text ends at the model's end "
        "tokens, at a stop text, or after N tokens. Prompt and new tokens together must fit into "
        "the model's context.\n"
        "\n"
        "  qkv generate -p 'The river runs to the sea.' -n 20 --variant 'z@3.h1=zero'\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_generate,
};

/* Everything a run holds on to. */
typedef struct generate_state {
    const generate_args *args;
    qkv_model *model;
    qkv_session *session;
    qkv_own_prompts prompts;
    cli_sources sources;
    qkv_sampler_options sampler;
    unsigned flags;
    const char **variants;
    char **stops;     /* without escapes; NULL after the last */
    qkv_output lines; /* .jsonl */
    int has_lines;
    json_t *all; /* of --json */
} generate_state;

/* ---- options ---- */

/* What -o - writes. */
static const char *stdout_format(const generate_args *args) {
    return args->format ? args->format : "jsonl";
}

static int is_lines(const generate_args *args, const char *path) {
    const char *format = cli_is_stdout(path) ? stdout_format(args) : qkv_path_suffix(path);
    return strcmp(format, "jsonl") == 0;
}

/* Something else than the texts as they grow is on standard output. */
static int is_quiet(const generate_args *args) {
    return args->json || cli_outputs_have_stdout(&args->outputs);
}

static int read_sampler(const generate_args *args, qkv_sampler_options *how, qkv_error *err) {
    const int drawn = args->top_k > 0 || args->top_p >= 0 || args->min_p >= 0 || args->seed >= 0;
    *how = (qkv_sampler_options)QKV_SAMPLER_OPTIONS_INIT;
    how->temperature = args->temperature >= 0 ? args->temperature : drawn ? 1 : 0;
    if (args->top_k > 0) how->top_k = args->top_k;
    if (args->top_p >= 0) how->top_p = args->top_p;
    if (args->min_p >= 0) how->min_p = args->min_p;
    if (args->seed >= 0) how->seed = (uint64_t)args->seed;
    if (drawn && how->temperature == 0)
        return cli_usage(err, "at temperature 0 nothing is drawn: leave out --top-k, --top-p, "
                              "--min-p and --seed");
    return cli_name_fields(qkv_sampler_check(how, err), err);
}

static int check_outputs(const generate_args *args, qkv_error *err) {
    size_t lines = 0, tensors = 0;
    int status = cli_outputs_check(&args->outputs, GENERATE_FORMATS, args->format, "jsonl", err);
    if (status != QKV_OK) return status;
    if (args->json && cli_outputs_have_stdout(&args->outputs))
        return cli_usage(err, "--json and -o - both write to standard output: give one of them");
    for (size_t i = 0; i < args->outputs.n; i++)
        *(is_lines(args, args->outputs.items[i].value) ? &lines : &tensors) += 1;
    if (lines > 1) return cli_usage(err, "one .jsonl output is enough");
    if (tensors && !args->captures.n) return cli_usage(err, "a file of tensors needs --capture");
    if (tensors && args->variants.n > 1)
        return cli_usage(err,
                         "a file holds what was captured of one text: give one variant, or none");
    return QKV_OK;
}

static int check_args(const generate_args *args, qkv_error *err) {
    if (args->prompts.n == 0)
        return cli_usage(err, "give a prompt with -p, -f, --file or --tokens");
    if (args->context_shift)
        return cli_usage(err, "--context-shift: forgetting the first tokens would change which "
                              "tokens edits name, and the text would no longer be the model's "
                              "for this prompt; prompt and new tokens must fit into its context");
    if (args->top_p == 0) return cli_usage(err, "--top-p 0 leaves no token to draw");
    if (args->explain && (args->outputs.n || args->json || args->captures.n))
        return cli_usage(err, "--explain computes nothing: leave out -o, --json and --capture");
    if (args->edit_tokens && !args->variants.n)
        return cli_usage(err, "--edit-tokens is about edits: give a variant");
    return check_outputs(args, err);
}

static int read_stops(generate_state *run, qkv_error *err) {
    const cli_list *given = &run->args->stops;
    qkv_text text = {0};
    int status = QKV_OK;
    run->stops = qkv_calloc(given->n + 1, sizeof *run->stops);
    if (!run->stops) return qkv_fail_memory(err);
    for (size_t i = 0; i < given->n && status == QKV_OK; i++) {
        qkv_read_escaped(&text, given->items[i].value, '\0');
        if (text.failed || !(run->stops[i] = qkv_strdup(text.data)))
            status = qkv_fail_memory(err);
        else if (text.length == 0)
            status = cli_usage(err, "a stop text is empty");
        else if (strlen(text.data) != text.length)
            status = cli_usage(err, "--stop: a text cannot have \\x00 in it");
    }
    qkv_text_release(&text);
    return status;
}

static void free_stops(char **stops) {
    for (size_t i = 0; stops && stops[i]; i++) free(stops[i]);
    free(stops);
}

/* ---- one prompt ---- */

static int make_generator(generate_state *run, const cli_generation *it, qkv_generator **out,
                          qkv_error *err) {
    const generate_args *args = run->args;
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    cli_source_lists sources = {0};
    int status = cli_source_lists_make(&sources, &run->sources, err);
    how.max_new = (size_t)args->n_new;
    how.variants = run->variants;
    how.n_variants = args->variants.n;
    how.source_names = sources.names;
    how.source_tokens = sources.tokens;
    how.source_lengths = sources.lengths;
    how.n_sources = run->sources.n;
    how.data = run->sources.data;
    how.edit_tokens = args->edit_tokens;
    how.recompute = args->recompute;
    if (status == QKV_OK)
        status = cli_name_fields(
            qkv_generator_new(out, run->model, it->prompt_ids, it->n_prompt, &how, err), err);
    cli_source_lists_release(&sources);
    return status;
}

static int explain(const qkv_generator *generator, qkv_error *err) {
    char *text = NULL;
    const int status = qkv_generator_explain(generator, &text, err);
    if (status == QKV_OK) fputs(text, stdout);
    qkv_text_free(text);
    return status;
}

/* What every object says: the prompt, how it was drawn, the model. */
static json_t *describe(const generate_state *run, const cli_generation *it) {
    json_t *ids = json_array();
    for (size_t i = 0; i < it->n_prompt; i++) qkv_json_push(ids, json_integer(it->prompt_ids[i]));
    static const char *const edited[] = {"all", "prompt", "new"};
    return json_pack("{s:o, s:o, s:s, s:f, s:I, s:f, s:f, s:I, s:s, s:I}", "prompt",
                     it->prompt ? qkv_json_text(it->prompt) : json_null(), "prompt_ids", ids,
                     "model", qkv_path_model(qkv_model_get_info(run->model)->path), "temperature",
                     run->sampler.temperature, "top_k", (json_int_t)run->sampler.top_k, "top_p",
                     run->sampler.top_p, "min_p", run->sampler.min_p, "seed",
                     (json_int_t)run->sampler.seed, "edit_tokens", edited[run->args->edit_tokens],
                     "max_new", (json_int_t)run->args->n_new);
}

static int write_lines(generate_state *run, const cli_generation *it, qkv_error *err) {
    for (size_t v = 0; v < it->n_branches; v++) {
        json_t *line = describe(run, it), *branch = cli_branch_json(it, v);
        qkv_json_put_all(line, branch);
        char *text = qkv_json_dump(line, JSON_COMPACT);
        json_decref(line);
        json_decref(branch);
        if (!text) return qkv_fail_memory(err);
        fprintf(run->lines.stream, "%s\n", text);
        free(text);
    }
    return QKV_OK;
}

static int add_json(generate_state *run, const cli_generation *it, qkv_error *err) {
    json_t *object = describe(run, it), *list = json_array();
    for (size_t v = 0; v < it->n_branches; v++) qkv_json_push(list, cli_branch_json(it, v));
    qkv_json_put(object, "variants", list);
    return qkv_json_push(run->all, object) == 0 ? QKV_OK : qkv_fail_memory(err);
}

static void warn_unchanged(const qkv_generator *generator) {
    for (size_t v = 1; v < qkv_generator_n_variants(generator); v++) {
        const char *edit;
        for (size_t i = 0; (edit = qkv_generator_edit_text(generator, v, i)); i++) {
            if (qkv_generator_edit_changed(generator, v, i) == 0)
                cli_warn("edit '%s' of variant %zu changed no value", edit, v);
        }
    }
}

static int print_tensors(const generate_state *run, const qkv_result *result, const qkv_plan *plan,
                         qkv_error *err) {
    char *bytes = NULL;
    size_t n = 0;
    const int status =
        qkv_store_render(result, plan, run->model, stdout_format(run->args), &bytes, &n, err);
    return cli_print_bytes(status, bytes, n);
}

/* The pass over prompt and new text of a variant, for captures. */
static int capture(generate_state *run, const qkv_generator *generator, size_t variant,
                   qkv_error *err) {
    const generate_args *args = run->args;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    size_t written = 0;
    int status = qkv_generator_plan(generator, &plan, variant, err);
    for (size_t i = 0; i < args->captures.n && status == QKV_OK; i++)
        status = qkv_plan_add_capture(plan, args->captures.items[i].value, err);
    if (status == QKV_OK) status = qkv_session_run(run->session, &result, plan, err);
    for (size_t i = 0; i < args->outputs.n && status == QKV_OK; i++) {
        const char *path = args->outputs.items[i].value;
        if (is_lines(args, path)) continue;
        status = cli_is_stdout(path) ? print_tensors(run, result, plan, err)
                                     : qkv_store_write(result, plan, run->model, path, err);
        written++;
    }
    if (status == QKV_OK && !written && !is_quiet(args)) {
        const cli_outcome outcome = {result, plan, run->model};
        putchar('\n');
        if (args->variants.n > 1) printf("text of %s\n", run->variants[variant - 1]);
        status = cli_print_result(&outcome, err);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* Every variant has a text of its own; the baseline's is looked at where it is the only one. */
static int capture_all(generate_state *run, const qkv_generator *generator, qkv_error *err) {
    const size_t last = run->args->variants.n;
    int status = QKV_OK;
    for (size_t v = last ? 1 : 0; v <= last && status == QKV_OK; v++)
        status = capture(run, generator, v, err);
    return status;
}

static int go_on(generate_state *run, cli_generation *it, qkv_generator *generator,
                 qkv_error *err) {
    cli_show show = {0};
    const int quiet = is_quiet(run->args);
    int status =
        cli_generation_run(it, run->session, generator, quiet ? NULL : cli_show_token, &show, err);
    /* What there is stays, also when the user has seen enough. */
    qkv_error later = {0};
    int kept = run->has_lines ? write_lines(run, it, &later) : QKV_OK;
    if (kept == QKV_OK && run->args->json) kept = add_json(run, it, &later);
    if (status == QKV_OK && kept != QKV_OK) {
        *err = later;
        return kept;
    }
    if (status == QKV_OK) warn_unchanged(generator);
    return status;
}

static int run_prompt(generate_state *run, const qkv_own_prompt *prompt, qkv_error *err) {
    const generate_args *args = run->args;
    qkv_generator *generator = NULL;
    cli_generation it = {.model = run->model,
                         .prompt = prompt->text,
                         .prompt_ids = prompt->tokens,
                         .n_prompt = prompt->n_tokens,
                         .variants = &args->variants,
                         .stops = run->stops,
                         .max_new = (size_t)args->n_new,
                         .feed_last = args->captures.n > 0,
                         .sampler = run->sampler};
    int status = make_generator(run, &it, &generator, err);
    if (status == QKV_OK && args->explain) {
        status = explain(generator, err);
    } else if (status == QKV_OK) {
        status = cli_generation_open(&it, err);
        if (status == QKV_OK) status = go_on(run, &it, generator, err);
        if (status == QKV_OK && args->captures.n) status = capture_all(run, generator, err);
    }
    cli_generation_release(&it);
    qkv_generator_free(generator);
    return status;
}

/* ---- all prompts ---- */

/* What can be said of every prompt before the first of them is continued. */
static int check_prompt(generate_state *run, const qkv_own_prompt *prompt, qkv_error *err) {
    const cli_list *captures = &run->args->captures;
    const cli_generation it = {.prompt_ids = prompt->tokens, .n_prompt = prompt->n_tokens};
    qkv_generator *generator = NULL;
    qkv_plan *plan = NULL;
    int status = make_generator(run, &it, &generator, err);
    if (status == QKV_OK && captures->n)
        status = qkv_plan_new(&plan, run->model, prompt->tokens, prompt->n_tokens, err);
    for (size_t i = 0; i < captures->n && status == QKV_OK; i++)
        status = qkv_plan_add_capture(plan, captures->items[i].value, err);
    qkv_plan_free(plan);
    qkv_generator_free(generator);
    return status;
}

static int check_prompts(generate_state *run, qkv_error *err) {
    for (size_t i = 0; i < run->prompts.n; i++) {
        qkv_error own = {0};
        const int status = check_prompt(run, &run->prompts.items[i], &own);
        if (status == QKV_OK) continue;
        if (run->prompts.n == 1) return qkv_fail(err, status, "%s", own.message);
        return qkv_fail(err, status, "prompt %zu: %s", i + 1, own.message);
    }
    return QKV_OK;
}

static int run_prompts(generate_state *run, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < run->prompts.n && status == QKV_OK; i++) {
        const qkv_own_prompt *prompt = &run->prompts.items[i];
        if (run->prompts.n > 1 && !is_quiet(run->args)) {
            printf(i ? "\n> " : "> ");
            cli_print_line(prompt->text ? prompt->text : "(token ids)");
        }
        status = run_prompt(run, prompt, err);
    }
    return status;
}

static int prepare(generate_state *run, qkv_error *err) {
    const generate_args *args = run->args;
    const qkv_session_options session = cli_session_options(args->threads, args->memory);
    run->flags = QKV_TOKENIZE_ADD_SPECIAL | (args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    run->variants = calloc(args->variants.n + 1, sizeof *run->variants);
    run->all = json_array();
    if (!run->variants || !run->all) return qkv_fail_memory(err);
    for (size_t i = 0; i < args->variants.n; i++) run->variants[i] = args->variants.items[i].value;
    int status = cli_model_open(&run->model, args->model, err);
    if (status == QKV_OK)
        status = cli_prompts_tokenize(&run->prompts, &args->chat, run->model, run->flags, err);
    if (status == QKV_OK)
        status = cli_sources_tokenize(&run->sources, &args->chat, run->model, run->flags, err);
    if (status == QKV_OK) status = check_prompts(run, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    if (status == QKV_OK) status = cli_session_new(&run->session, run->model, &session, err);
    for (size_t i = 0; i < args->outputs.n && status == QKV_OK; i++) {
        const char *path = args->outputs.items[i].value;
        if (!is_lines(args, path)) continue;
        if (cli_is_stdout(path))
            run->lines.stream = stdout;
        else
            status = qkv_output_open(&run->lines, path, err);
        run->has_lines = status == QKV_OK;
    }
    return status;
}

/* Texts that were generated before something went wrong are written nevertheless, unless it was memory: then the
 * last of them may be missing. */
static int finish(generate_state *run, int status, qkv_error *err) {
    qkv_error later = {0};
    int kept = QKV_OK;
    if (run->has_lines && run->lines.stream != stdout) {
        if (status == QKV_ERR_MEMORY)
            qkv_output_abandon(&run->lines);
        else
            kept = qkv_output_finish(&run->lines, &later);
    }
    if (run->args->json && json_array_size(run->all) && !run->args->explain && kept == QKV_OK)
        kept = cli_print_json(json_incref(run->all), &later);
    if (status == QKV_OK && kept != QKV_OK) *err = later;
    return status == QKV_OK ? kept : status;
}

static int run_generate(const cli_call *call, qkv_error *err) {
    generate_state run = {.args = call->args};
    const cli_list *const edits[] = {&run.args->variants};
    int status = check_args(run.args, err);
    if (status == QKV_OK) status = read_stops(&run, err);
    if (status == QKV_OK) status = read_sampler(run.args, &run.sampler, err);
    if (status == QKV_OK)
        status = cli_prompts_load(&run.prompts, &run.args->prompts, &run.args->chat, err);
    if (status == QKV_OK && run.args->captures.n)
        status = cli_prompts_check_one(&run.prompts, &run.args->prompts, err);
    if (status == QKV_OK)
        status = cli_sources_load(&run.sources, &run.args->sources, &run.args->chat, err);
    if (status == QKV_OK) status = cli_sources_take_edits(&run.sources, edits, 1, err);
    if (status == QKV_OK) status = prepare(&run, err);
    if (status == QKV_OK) {
        status = run_prompts(&run, err);
        status = finish(&run, status, err);
    }
    cli_sources_release(&run.sources);
    qkv_own_prompts_release(&run.prompts);
    json_decref(run.all);
    free((void *)run.variants);
    free_stops(run.stops);
    cli_session_free(run.session);
    qkv_model_free(run.model);
    return status;
}
