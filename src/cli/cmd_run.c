/* qkv run: a prompt through a model, with edits; what was captured goes to files or to a table. */
#include <stdio.h>
#include <string.h>

#include "cli/inputs.h"
#include "cli/run_changes.h"
#include "qkv/session.h"
#include "qkv/store.h"

typedef struct run_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    cli_list variants;
    cli_list captures;
    cli_list sources;
    cli_list outputs;
    const char *format; /* of -o - */
    int explain;
    int json;
    int64_t threads;
    int64_t memory;
} run_args;

#define RUN_FORMATS "safetensors|json|npz|npy"

static const run_args defaults = {0};

static const cli_option options[] = {
    CLI_MODEL_OPTION(run_args),
    CLI_PROMPT_OPTIONS(run_args),
    {0, "variant", "EDITS", "one variant to run: edits joined by ' + '; may be repeated", CLI_LIST,
     offsetof(run_args, variants), 0, 0, 0},
    {0, "capture", "WHAT",
     "what to keep, e.g. pattern@3 or logits; may be repeated (default pattern: the attention "
     "weights of every layer)",
     CLI_LIST, offsetof(run_args, captures), 0, 0, 0},
    CLI_SOURCE_OPTIONS(run_args),
    {0, "explain", NULL, "print what a run would compute, and compute nothing", CLI_FLAG,
     offsetof(run_args, explain), 1, 0, 0},
    CLI_THREADS_OPTION(run_args),
    CLI_MEMORY_OPTION(run_args),
    CLI_JSON_OPTION(run_args),
    CLI_OUTPUT_OPTIONS(run_args, "file for the captured tensors: .safetensors, .json, .npz or .npy",
                       RUN_FORMATS),
};

static int run_run(const cli_call *call, qkv_error *err);

const cli_command cli_command_run = {
    .name = "run",
    .summary = "run a prompt with edits and keep what you want to look at",
    .synopsis = "[-m MODEL] (-p TEXT | -f FILE | --file FILE | --tokens IDS) [--variant EDITS]... "
                "[--capture WHAT]... [--json] [--explain | -o OUT...]",
    .description =
        "Runs the prompt unedited (v0) and once for every variant (v1, v2, ... in the order "
        "given), and keeps the tensors that the captures name. How edits are written: 'qkv help "
        "notation'.\n"
        "\n"
        "OUT.safetensors holds tensors named v0/pattern.3 (variant, site, layer; v0/logits has "
        "no layer; a reduction follows the layer: v0/pattern.3.first), F32, row-major, with the "
        "prompt, its tokens, the model's hash, captures, edits and what every tensor is in its "
        "metadata; 'qkv show' prints it. OUT.json is the same for small results, OUT.npz the same "
        "for numpy.load, with the metadata as JSON in __metadata__; OUT.npy holds a single "
        "tensor. '-o - --format json' writes to standard output. Without -o a short table is "
        "printed, and with --json the same as JSON: what edits changed, the range of every tensor, "
        "the total variation of attention weights and the weight that changed most, a small map of "
        "the head that changed most, and the most likely tokens where logits are captured. "
        "Each output is written whole or not at all; when one of several fails, those written "
        "before it stay.\n"
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
    qkv_own_prompts prompts; /* one */
    cli_sources sources;
    unsigned flags;
} run_state;

static int check_args(const run_args *args, qkv_error *err) {
    if (args->prompts.n != 1) {
        return cli_usage(err, "give one prompt with -p, -f, --file or --tokens");
    }
    if (args->explain && args->outputs.n) {
        return cli_usage(err, "--explain computes nothing: leave out -o");
    }
    if (args->explain && args->json)
        return cli_usage(err, "--explain prints text: leave out --json");
    if (args->json && cli_outputs_have_stdout(&args->outputs)) {
        return cli_usage(err, "--json and -o - both write to standard output: give one of them");
    }
    return cli_outputs_check(&args->outputs, RUN_FORMATS, args->format, NULL, err);
}

static int load_prompts(run_state *run, const run_args *args, qkv_error *err) {
    const cli_list *const edits[] = {&args->variants};
    run->flags = QKV_TOKENIZE_ADD_SPECIAL | (args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    int status = cli_prompts_load(&run->prompts, &args->prompts, &args->chat, err);
    if (status == QKV_OK) status = cli_prompts_check_one(&run->prompts, &args->prompts, err);
    if (status == QKV_OK)
        status = cli_sources_load(&run->sources, &args->sources, &args->chat, err);
    if (status == QKV_OK) status = cli_sources_take_edits(&run->sources, edits, 1, err);
    return status;
}

static int make_plan(run_state *run, const run_args *args, qkv_error *err) {
    int status = cli_prompts_tokenize(&run->prompts, &args->chat, run->model, run->flags, err);
    const qkv_own_prompt *prompt = &run->prompts.items[0];
    if (status == QKV_OK) {
        status = qkv_plan_new(&run->plan, run->model, prompt->tokens, prompt->n_tokens, err);
    }
    if (status == QKV_OK && prompt->text) {
        status = qkv_plan_set_prompt(run->plan, prompt->text, prompt->length, err);
    }
    if (status == QKV_OK) {
        status = cli_sources_tokenize(&run->sources, &args->chat, run->model, run->flags, err);
    }
    if (status == QKV_OK) status = cli_sources_add(&run->sources, run->plan, err);
    for (size_t i = 0; i < args->variants.n && status == QKV_OK; i++) {
        status = qkv_plan_add_variant(run->plan, args->variants.items[i].value, NULL, err);
    }
    for (size_t i = 0; i < args->captures.n && status == QKV_OK; i++) {
        status = qkv_plan_add_capture(run->plan, args->captures.items[i].value, err);
    }
    if (status == QKV_OK && args->captures.n == 0) {
        status = qkv_plan_add_capture(run->plan, "pattern", err);
    }
    return status;
}

/* Known before anything is computed: every variant has its own tensor. */
static int check_count(const run_state *run, const run_args *args, qkv_error *err) {
    const size_t n = qkv_plan_n_variants(run->plan);
    if (n == 1 || !cli_outputs_have(&args->outputs, args->format, "npy")) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "a .npy can hold one tensor, and there are %zu variants, the baseline among "
                    "them; write .npz or .safetensors instead",
                    n);
}

static int prepare(run_state *run, const run_args *args, qkv_error *err) {
    const qkv_session_options session = cli_session_options(args->threads, args->memory);
    int status = cli_model_open(&run->model, args->model, err);
    if (status == QKV_OK) status = make_plan(run, args, err);
    if (status == QKV_OK) status = check_count(run, args, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    if (status == QKV_OK) status = cli_session_new(&run->session, run->model, &session, err);
    return status;
}

static int explain(const run_state *run, qkv_error *err) {
    char *text = NULL;
    const int status = qkv_session_explain(run->session, &text, run->plan, err);
    if (status == QKV_OK) printf("%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    qkv_text_free(text);
    return status;
}

/* What standard output is called where a name with a suffix is wanted. */
static void name_stdout(char out[32], const char *format) {
    snprintf(out, 32, "output.%s", format ? format : "");
}

static int print_output(const run_state *run, const char *format, qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    const int status =
        qkv_store_render(run->result, run->plan, run->model, format, &bytes, &n_bytes, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

/* What cannot be written is told before anything is. */
static int write_outputs(const run_state *run, const run_args *args, qkv_error *err) {
    const cli_list *outputs = &args->outputs;
    char printed[32];
    name_stdout(printed, args->format);
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        const char *path = outputs->items[i].value;
        status = qkv_store_check(run->result, cli_is_stdout(path) ? printed : path, err);
    }
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        const char *path = outputs->items[i].value;
        status = cli_is_stdout(path)
                     ? print_output(run, args->format, err)
                     : qkv_store_write(run->result, run->plan, run->model, path, err);
    }
    return status;
}

static int compute(run_state *run, const run_args *args, qkv_error *err) {
    const int status = qkv_session_run(run->session, &run->result, run->plan, err);
    if (status != QKV_OK) return status;
    cli_warn_unchanged(run->result);
    const int written = write_outputs(run, args, err);
    if (written != QKV_OK || (args->outputs.n && !args->json)) return written;
    const cli_outcome outcome = {run->result, run->plan, run->model};
    if (args->json) return cli_print_json(cli_result_json(&outcome), err);
    return cli_print_result(&outcome, err);
}

static int run_run(const cli_call *call, qkv_error *err) {
    const run_args *args = call->args;
    run_state run = {0};
    int status = check_args(args, err);
    if (status == QKV_OK) status = load_prompts(&run, args, err);
    if (status == QKV_OK) status = prepare(&run, args, err);
    if (status == QKV_OK) status = args->explain ? explain(&run, err) : compute(&run, args, err);

    cli_sources_release(&run.sources);
    qkv_own_prompts_release(&run.prompts);
    qkv_result_free(run.result);
    qkv_plan_free(run.plan);
    cli_session_free(run.session);
    qkv_model_free(run.model);
    return status;
}
