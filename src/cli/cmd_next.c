/* qkv next: what the model expects behind a text, and how edits change that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/messages.h"
#include "cli/next.h"

typedef struct next_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    cli_list variants;
    cli_list sources;
    int64_t top;
    cli_list of, diff;
    int64_t at;
    int all;
    int json;
    int64_t threads;
    int64_t memory;
    cli_list outputs;
    const char *format; /* of -o - */
} next_args;

enum { NOT_GIVEN = -1, USUAL_TOP = 10 };
#define AT_NOT_GIVEN INT64_MIN
#define FARTHEST 9007199254740992.0

#define NEXT_FORMATS "csv|json"

static const next_args defaults = {.top = NOT_GIVEN, .at = AT_NOT_GIVEN};

#define AT(field) offsetof(next_args, field)

static const cli_option options[] = {
    CLI_MODEL_OPTION(next_args),
    CLI_PROMPTS_OPTIONS(next_args),
    {0, "variant", "EDITS", "one variant: edits joined by ' + '; may be repeated", CLI_LIST,
     AT(variants), 0, 0, 0},
    CLI_SOURCE_OPTIONS(next_args),
    {0, "top", "N", "how many of the most likely tokens (default 10; none with --of or --diff)",
     CLI_INTEGER, AT(top), 0, 1, 1 << 24},
    {0, "of", "TEXTS",
     "follow these tokens, e.g. ' Paris, Rome': commas between them, blanks count; may be repeated",
     CLI_LIST, AT(of), 0, 0, 0},
    {0, "diff", "A/B", "the logit of token A minus that of token B; may be repeated", CLI_LIST,
     AT(diff), 0, 0, 0},
    {0, "at", "N", "look behind token N, from 0 on; negative: from the end (default -1)",
     CLI_INTEGER, AT(at), 0, -FARTHEST, FARTHEST},
    {0, "all", NULL, "the loss of each token of the prompt instead, a line for each", CLI_FLAG,
     AT(all), 1, 0, 0},
    CLI_THREADS_OPTION(next_args),
    CLI_MEMORY_OPTION(next_args),
    CLI_JSON_OPTION(next_args),
    CLI_OUTPUT_OPTIONS(next_args, "file for the numbers: .csv or .json", NEXT_FORMATS),
};

static int run_next(const cli_call *call, qkv_error *err);

const cli_command cli_command_next = {
    .name = "next",
    .summary = "which tokens come next, and how edits change that",
    .synopsis =
        "[-m MODEL] (-p TEXT | -f FILE | --file FILE | --tokens IDS)... [--variant EDITS]... "
        "[--top N] [--of TEXTS]... [--diff A/B]... [--at N | --all] [--json] [-o OUT]...",
    .description =
        "Prints the most likely next tokens of the unedited model (baseline) and of every variant: "
        "rank, text, probability, and for variants the change of the probability, how many ranks "
        "the token has moved, and KL(baseline || variant) of the whole distribution in nats. How "
        "edits are written: 'qkv help notation'.\n"
        "\n"
        "Each text of --of and --diff must be one token. Blanks before a word belong to it: ' "
        "Paris' and 'Paris' are different tokens. \\n, \\t, \\xNN and \\\\ are what they are "
        "elsewhere, '\\,' is a comma in --of and '\\/' a slash in --diff.\n"
        "\n"
        "With --all every token of the prompt has a line with its loss, the negative logarithm of "
        "the probability that it had given the tokens before it, in nats; its change under each "
        "variant; and the KL of the distribution that predicts it. Logits that do not fit into "
        "--memory are computed in several passes.\n"
        "\n"
        "OUT.csv has a row for each token of each list (top, of, diff) and variant; the row of a "
        "pair has the difference as its logit. OUT.json is what --json prints. All changes are "
        "the variant's number minus the baseline's: a rank that becomes smaller is a token that "
        "moves up.\n"
        "\n"
        "  qkv next -p 'The river runs to the' --variant 'z@3.h1=zero' --top 5\n"
        "  qkv next -p 'The river runs to the' --of ' sea, land' --variant 'v@*=scale:0.5'\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_next,
};

/* Everything a run holds on to. */
typedef struct next_state {
    const next_args *args;
    qkv_model *model;
    qkv_session *session;
    cli_prompts prompts;
    cli_sources sources;
    const char **variants;
    cli_token_list of, diff;
    json_t *all; /* an object for each prompt */
    qkv_text csv;
    const char *format; /* of standard output */
} next_state;

/* ---- options ---- */

static int check_args(const next_args *args, qkv_error *err) {
    if (args->prompts.n == 0)
        return cli_usage(err, "give a prompt with -p, -f, --file or --tokens");
    if (args->all &&
        (args->top != NOT_GIVEN || args->of.n || args->diff.n || args->at != AT_NOT_GIVEN))
        return cli_usage(err, "--all gives the losses of the prompt's tokens: leave out --top, "
                              "--of, --diff and --at");
    if (args->json && cli_outputs_have_stdout(&args->outputs))
        return cli_usage(err, "--json and -o - both write to standard output: give one of them");
    return cli_outputs_check(&args->outputs, NEXT_FORMATS, args->format, "csv", err);
}

static int load(next_state *run, qkv_error *err) {
    const next_args *args = run->args;
    const cli_list *const edits[] = {&args->variants};
    int status = cli_prompts_load(&run->prompts, &args->prompts, &args->chat, err);
    if (status == QKV_OK)
        status = cli_sources_load(&run->sources, &args->sources, &args->chat, err);
    return status == QKV_OK ? cli_sources_take_edits(&run->sources, edits, 1, err) : status;
}

static int tokenize(next_state *run, qkv_error *err) {
    const unsigned flags =
        QKV_TOKENIZE_ADD_SPECIAL | (run->args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    const cli_chat *chat = &run->args->chat;
    const int status = cli_prompts_tokenize(&run->prompts, chat, run->model, flags, err);
    if (status != QKV_OK) return status;
    return cli_sources_tokenize(&run->sources, chat, run->model, flags, err);
}

static int find_tokens(next_state *run, qkv_error *err) {
    const next_args *args = run->args;
    int status = QKV_OK;
    for (size_t i = 0; i < args->of.n && status == QKV_OK; i++)
        status =
            cli_token_list_read(&run->of, run->model, "--of", args->of.items[i].value, ',', err);
    for (size_t i = 0; i < args->diff.n && status == QKV_OK; i++) {
        const char *pair = args->diff.items[i].value;
        const size_t before = run->diff.n;
        status = cli_token_list_read(&run->diff, run->model, "--diff", pair, '/', err);
        if (status == QKV_OK && run->diff.n != before + 2)
            status = cli_usage(err, "--diff wants two tokens, A/B, not '%s'", pair);
    }
    return status;
}

/* ---- one prompt ---- */

typedef int use_options(next_state *run, const cli_prompt *prompt, const qkv_next_options *how,
                        qkv_next **next, qkv_error *err);

static int check_prompt(next_state *run, const cli_prompt *prompt, const qkv_next_options *how,
                        qkv_next **next, qkv_error *err) {
    (void)next;
    return qkv_next_check(run->model, prompt->tokens, prompt->n_tokens, how, err);
}

static int compute_prompt(next_state *run, const cli_prompt *prompt, const qkv_next_options *how,
                          qkv_next **next, qkv_error *err) {
    return qkv_next_new(next, run->session, prompt->tokens, prompt->n_tokens, how, err);
}

static int64_t top_of(const next_args *args) {
    if (args->top != NOT_GIVEN) return args->top;
    return args->of.n || args->diff.n ? 0 : USUAL_TOP;
}

/* Checks or computes a prompt as the options say. */
static int with_options(next_state *run, size_t number, use_options *use, qkv_next **next,
                        qkv_error *err) {
    const next_args *args = run->args;
    const cli_prompt *prompt = &run->prompts.items[number];
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    cli_source_lists sources = {0};
    qkv_error why = {0};
    how.variants = run->variants;
    how.n_variants = args->variants.n;
    how.n_sources = run->sources.n;
    how.data = run->sources.data;
    how.top = top_of(args);
    how.of = run->of.ids;
    how.n_of = run->of.n;
    how.diff = run->diff.ids;
    how.n_diff = run->diff.n / 2;
    how.all = args->all;
    how.memory = (size_t)args->memory << 20;
    if (args->at != AT_NOT_GIVEN) how.at = args->at;
    int status = cli_source_lists_make(&sources, &run->sources, &why);
    how.source_names = sources.names;
    how.source_tokens = sources.tokens;
    how.source_lengths = sources.lengths;
    if (status == QKV_OK) status = cli_name_fields(use(run, prompt, &how, next, &why), &why);
    cli_source_lists_release(&sources);
    if (status != QKV_OK && run->prompts.n > 1)
        qkv_fail_with(err, status, "prompt %zu: %s", number, why.message);
    else if (status != QKV_OK)
        *err = why;
    return status;
}

static void warn_unchanged(const qkv_next *next) {
    for (size_t v = 1; v < qkv_next_n_variants(next); v++) {
        const char *edit;
        for (size_t i = 0; (edit = qkv_next_edit_text(next, v, i)); i++) {
            if (!qkv_next_edit_ran(next, v, i))
                cli_warn("%s (v%zu) was not computed: nothing that is looked at depends on it",
                         edit, v);
            else if (qkv_next_edit_changed(next, v, i) == 0)
                cli_warn("%s (v%zu) changed no value", edit, v);
        }
    }
}

static void print(const next_state *run, const cli_next *it) {
    if (run->prompts.n > 1) {
        printf(it->number ? "\n> " : "> ");
        cli_print_line(it->prompt->text ? it->prompt->text : "(token ids)");
    }
    cli_next_print(it);
}

static int show(next_state *run, const cli_next *it, qkv_error *err) {
    const next_args *args = run->args;
    const int all = args->all;
    if (!args->json && !cli_outputs_have_stdout(&args->outputs)) print(run, it);
    if (cli_outputs_have(&args->outputs, run->format, "csv")) cli_next_csv_rows(&run->csv, it, all);
    if (args->json || cli_outputs_have(&args->outputs, run->format, "json")) {
        json_t *object = cli_next_json(it, all);
        if (!object || json_array_append_new(run->all, object) != 0) return qkv_fail_memory(err);
    }
    return run->csv.failed ? qkv_fail_memory(err) : QKV_OK;
}

static int run_prompt(next_state *run, size_t number, qkv_error *err) {
    qkv_next *next = NULL;
    int status = with_options(run, number, compute_prompt, &next, err);
    const cli_next it = {.model = run->model,
                         .number = number,
                         .prompt = &run->prompts.items[number],
                         .next = next,
                         .variants = &run->args->variants,
                         .diff = run->diff.ids};
    if (status == QKV_OK) {
        if (number == 0) warn_unchanged(next);
        status = show(run, &it, err);
    }
    qkv_next_free(next);
    return status;
}

/* ---- all of them ---- */

static json_t *make_json(const next_state *run) {
    return json_pack("{s:s, s:O}", "model", qkv_path_model(qkv_model_get_info(run->model)->path),
                     "prompts", run->all);
}

static int write_json(const next_state *run, const char *path, qkv_error *err) {
    json_t *json = make_json(run);
    char *bytes = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    qkv_text text = {0};
    if (bytes) qkv_text_printf(&text, "%s\n", bytes);
    const int failed = !bytes || text.failed;
    const int status =
        failed ? qkv_fail_memory(err) : qkv_output_write(path, text.data, text.length, err);
    qkv_text_release(&text);
    free(bytes);
    json_decref(json);
    return status;
}

static int write_output(const next_state *run, const char *path, qkv_error *err) {
    const int printed = cli_is_stdout(path);
    const char *format = printed ? run->format : qkv_path_suffix(path);
    if (strcmp(format, "json") == 0)
        return printed ? cli_print_json(make_json(run), err) : write_json(run, path, err);
    if (!printed) return qkv_output_write(path, run->csv.data, run->csv.length, err);
    fwrite(run->csv.data, 1, run->csv.length, stdout);
    return QKV_OK;
}

static int run_prompts(next_state *run, qkv_error *err) {
    const next_args *args = run->args;
    int status = QKV_OK;
    cli_next_csv_head(&run->csv, args->all);
    for (size_t i = 0; i < run->prompts.n && status == QKV_OK; i++)
        status = run_prompt(run, i, err);
    for (size_t i = 0; i < args->outputs.n && status == QKV_OK; i++)
        status = write_output(run, args->outputs.items[i].value, err);
    if (status == QKV_OK && args->json) status = cli_print_json(make_json(run), err);
    return status;
}

static int prepare(next_state *run, qkv_error *err) {
    const next_args *args = run->args;
    const qkv_session_options session = cli_session_options(args->threads, args->memory);
    run->format = args->format ? args->format : "csv";
    run->variants = qkv_calloc(args->variants.n, sizeof *run->variants);
    run->all = json_array();
    if (!run->variants || !run->all) return qkv_fail_memory(err);
    for (size_t i = 0; i < args->variants.n; i++) run->variants[i] = args->variants.items[i].value;
    int status = cli_model_open(&run->model, args->model, err);
    if (status == QKV_OK) status = tokenize(run, err);
    if (status == QKV_OK) status = find_tokens(run, err);
    /* A mistake in a later prompt shows before anything is computed. */
    for (size_t i = 0; i < run->prompts.n && status == QKV_OK; i++)
        status = with_options(run, i, check_prompt, NULL, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    return status == QKV_OK ? cli_session_new(&run->session, run->model, &session, err) : status;
}

static int run_next(const cli_call *call, qkv_error *err) {
    next_state run = {.args = call->args};
    int status = check_args(run.args, err);
    if (status == QKV_OK) status = load(&run, err);
    if (status == QKV_OK) status = prepare(&run, err);
    if (status == QKV_OK) status = run_prompts(&run, err);
    cli_sources_release(&run.sources);
    cli_prompts_release(&run.prompts);
    qkv_text_release(&run.csv);
    json_decref(run.all);
    free(run.of.ids);
    free(run.diff.ids);
    free((void *)run.variants);
    cli_session_free(run.session);
    qkv_model_free(run.model);
    return status;
}
