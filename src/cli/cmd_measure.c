/* qkv measure: metrics of every head, for any number of prompts and variants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/continue.h"
#include "cli/measure.h"
#include "cli/run_table.h"

typedef struct measure_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    int64_t generate; /* 0: not given */
    cli_list variants;
    cli_list sources;
    const char *metrics;
    const char *layers, *heads;
    cli_list outputs;
    const char *format; /* of -o - */
    int json;
    int64_t threads;
    int64_t memory;
} measure_args;

#define MEASURE_FORMATS "csv|json"

static const measure_args defaults = {0};

static const cli_option options[] = {
    CLI_MODEL_OPTION(measure_args),
    CLI_PROMPTS_OPTIONS(measure_args),
    {0, "variant", "EDITS", "one variant to measure: edits joined by ' + '; may be repeated",
     CLI_LIST, offsetof(measure_args, variants), 0, 0, 0},
    CLI_SOURCE_OPTIONS(measure_args),
    {0, "metrics", "NAMES",
     "what to measure, e.g. sink,entropy,output_kl, or all (default: all that need nothing but "
     "patterns); see 'qkv metrics'",
     CLI_TEXT, offsetof(measure_args, metrics), 0, 0, 0},
    {0, "layers", "LAYERS", "layers to measure, e.g. 3 or 0-5,7 (default all)", CLI_TEXT,
     offsetof(measure_args, layers), 0, 0, 0},
    {0, "heads", "HEADS", "query heads to measure, in the same notation", CLI_TEXT,
     offsetof(measure_args, heads), 0, 0, 0},
    CLI_GENERATE_OPTION(measure_args),
    CLI_THREADS_OPTION(measure_args),
    CLI_MEMORY_OPTION(measure_args),
    {0, "json", NULL, "print the summary as JSON", CLI_FLAG, offsetof(measure_args, json), 1, 0, 0},
    CLI_OUTPUT_OPTIONS(measure_args, "file for all values, one per row: .csv or .json",
                       MEASURE_FORMATS),
};

static int run_measure(const cli_call *call, qkv_error *err);

const cli_command cli_command_measure = {
    .name = "measure",
    .summary = "measure every head: sinks, entropy, changes under edits",
    .synopsis =
        "[-m MODEL] [-p TEXT | -f FILE | --file FILE | --tokens IDS]... [--variant EDITS]... "
        "[--metrics NAMES] [--layers LAYERS] [--heads HEADS] [--json] [-o OUT]...",
    .description =
        "Measures the unedited model (baseline) and every variant on every prompt, and prints for "
        "each metric its mean, its extremes and where it is largest. Without prompts it uses "
        "three built-in sentences. How edits are written: 'qkv help notation'.\n"
        "\n"
        "OUT.csv has the columns prompt, variant, layer, head, metric, value; prompts, layers and "
        "heads count from 0. A metric of a whole layer has no head, one of the output neither "
        "layer nor head, one over all prompts no prompt. OUT.json holds the same rows, and the "
        "prompts, variants and formulas. A value is nan (null) where it is undefined; 'qkv "
        "metrics' says when. '-o -' writes the rows to standard output, as CSV or with '--format "
        "json', and leaves out the summary.\n"
        "\n"
        "Patterns are measured row by row while they are computed, and none is kept. To measure "
        "an edit in its own layer only, name that layer with --layers: then no later layer is "
        "run.\n"
        "\n"
        "  qkv measure --variant 'q@3=scale:1e-3' --layers 3 -o heads.csv\n"
        "  qkv measure -f prompts.txt --metrics sink_rate,loss\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_measure,
};

typedef struct measure_state {
    const measure_args *args;
    qkv_model *model;
    qkv_session *session;
    qkv_measure *measure;
    cli_prompts prompts;
    cli_sources sources;
    measure_files files;
    measure_summary summary;
} measure_state;

/* ---- prompts ---- */

static int load_prompts(measure_state *state, qkv_error *err) {
    const cli_list *given = &state->args->prompts;
    const cli_list *const edits[] = {&state->args->variants};
    int status = cli_prompts_load(&state->prompts, given, &state->args->chat, err);
    if (status == QKV_OK && given->n == 0)
        status = cli_prompts_add_default(&state->prompts, SIZE_MAX, err);
    if (status == QKV_OK)
        status = cli_sources_load(&state->sources, &state->args->sources, &state->args->chat, err);
    return status == QKV_OK ? cli_sources_take_edits(&state->sources, edits, 1, err) : status;
}

static int tokenize(measure_state *state, qkv_error *err) {
    const unsigned flags =
        QKV_TOKENIZE_ADD_SPECIAL | (state->args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    const int status =
        cli_prompts_tokenize(&state->prompts, &state->args->chat, state->model, flags, err);
    if (status != QKV_OK) return status;
    return cli_sources_tokenize(&state->sources, &state->args->chat, state->model, flags, err);
}

/* ---- measuring ---- */

static int make_plan(measure_state *state, size_t prompt, qkv_plan **plan, qkv_error *err) {
    const cli_prompt *input = &state->prompts.items[prompt];
    int status = qkv_plan_new(plan, state->model, input->tokens, input->n_tokens, err);
    if (status == QKV_OK && state->args->generate)
        status = cli_sources_follow(&state->sources, input, err);
    if (status == QKV_OK) status = cli_sources_add(&state->sources, *plan, err);
    for (size_t i = 0; i < state->args->variants.n && status == QKV_OK; i++) {
        status = qkv_plan_add_variant(*plan, state->args->variants.items[i].value, NULL, err);
    }
    return status;
}

static int take_table(measure_state *state, int prompt, const qkv_table *table, qkv_error *err) {
    measure_summary_add(&state->summary, prompt, table);
    return measure_files_add(&state->files, prompt, table, err);
}

static int measure_prompt(measure_state *state, size_t prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    int status = make_plan(state, prompt, &plan, err);
    if (status == QKV_OK) {
        status = qkv_measure_run(state->measure, &table, state->session, plan, err);
    }
    if (status == QKV_OK && prompt == 0) cli_warn_unchanged(qkv_table_result(table));
    if (status == QKV_OK) status = take_table(state, (int)prompt, table, err);
    qkv_table_free(table);
    qkv_plan_free(plan);
    return status;
}

static int measure_set(measure_state *state, qkv_error *err) {
    qkv_table *table = NULL;
    int status = qkv_measure_finish(state->measure, &table, err);
    if (status == QKV_OK) status = take_table(state, QKV_ALL_PROMPTS, table, err);
    qkv_table_free(table);
    return status;
}

/* A mistake in a later prompt or an edit shows before anything is computed. */
static int check_plans(measure_state *state, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < state->prompts.n && status == QKV_OK; i++) {
        qkv_plan *plan = NULL;
        qkv_error why = {0};
        status = make_plan(state, i, &plan, &why);
        if (status != QKV_OK && i > 0) {
            qkv_fail_with(err, status, "prompt %zu: %s", i, why.message);
        } else if (status != QKV_OK) {
            *err = why;
        }
        qkv_plan_free(plan);
    }
    return status;
}

static int measure_all(measure_state *state, qkv_error *err) {
    const measure_names names = {.measure = state->measure,
                                 .variants = &state->args->variants,
                                 .prompts = state->prompts.items,
                                 .n_prompts = state->prompts.n,
                                 .model = state->model};
    int status = measure_summary_new(&state->summary, &names, err);
    if (status == QKV_OK) {
        const char *format = state->args->format ? state->args->format : "csv";
        status = measure_files_open(&state->files, &state->args->outputs, format, &names, err);
    }
    for (size_t i = 0; i < state->prompts.n && status == QKV_OK; i++) {
        status = measure_prompt(state, i, err);
    }
    if (status == QKV_OK) status = measure_set(state, err);
    if (status == QKV_OK) status = measure_files_finish(&state->files, err);
    if (status != QKV_OK || cli_outputs_have_stdout(&state->args->outputs)) return status;
    if (state->args->json)
        return cli_print_json(measure_summary_json(&state->summary, &names), err);
    measure_summary_print(&state->summary, &names);
    return QKV_OK;
}

/* Where to look must matter to some metric. */
static int check_where(const measure_state *state, qkv_error *err) {
    int by_layer = 0, by_head = 0;
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_measure_info(state->measure, i)) != NULL; i++) {
        const int of_patterns = strstr(info->needs, "pattern") != NULL;
        by_head |= info->scope == QKV_SCOPE_HEAD || of_patterns;
        by_layer |= info->scope <= QKV_SCOPE_LAYER || of_patterns;
    }
    if (state->args->layers && !by_layer) {
        return cli_usage(err, "--layers: none of these metrics is measured in a layer");
    }
    if (state->args->heads && !by_head) {
        return cli_usage(err, "--heads: none of these metrics is measured in a head");
    }
    return QKV_OK;
}

static int check_outputs(const measure_args *args, qkv_error *err) {
    if (args->json && cli_outputs_have_stdout(&args->outputs)) {
        return cli_usage(err, "--json and -o - both write to standard output: give one of them");
    }
    return cli_outputs_check(&args->outputs, MEASURE_FORMATS, args->format, "csv", err);
}

static int prepare(measure_state *state, qkv_error *err) {
    const measure_args *args = state->args;
    const qkv_measure_options where = {
        .size = sizeof where, .layers = args->layers, .heads = args->heads};
    const qkv_session_options session = cli_session_options(args->threads, args->memory);
    int status = check_outputs(args, err);
    if (status == QKV_OK) status = qkv_measure_new(&state->measure, args->metrics, &where, err);
    if (status == QKV_OK) status = check_where(state, err);
    if (status == QKV_OK) status = load_prompts(state, err);
    if (status == QKV_OK) status = cli_model_open(&state->model, args->model, err);
    if (status == QKV_OK) status = tokenize(state, err);
    if (status == QKV_OK && !args->generate) status = check_plans(state, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    if (status == QKV_OK) status = cli_session_new(&state->session, state->model, &session, err);
    if (status != QKV_OK || !args->generate) return status;
    status = cli_prompts_continue(&state->prompts, state->session, args->generate, err);
    return status == QKV_OK ? check_plans(state, err) : status;
}

static int run_measure(const cli_call *call, qkv_error *err) {
    measure_state state = {.args = call->args};
    int status = prepare(&state, err);
    if (status == QKV_OK) status = measure_all(&state, err);

    measure_files_release(&state.files);
    measure_summary_release(&state.summary);
    cli_sources_release(&state.sources);
    cli_prompts_release(&state.prompts);
    qkv_measure_free(state.measure);
    cli_session_free(state.session);
    qkv_model_free(state.model);
    return status;
}
