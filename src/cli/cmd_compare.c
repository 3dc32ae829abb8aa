/* qkv compare: two models of one architecture, and where they differ. */
#include <string.h>

#include "cli/study.h"

typedef struct compare_args {
    cli_study study;
    cli_list models;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    int distance; /* CLI_AUTO: not given */
    const char *edit;
    int64_t top;
} compare_args;

#define DISTANCES "tv|js|kl|max"

static const compare_args defaults = {.study = CLI_STUDY_DEFAULTS, .distance = CLI_AUTO};

static const cli_option options[] = {
    {'m', "model", "MODEL",
     "a model: a GGUF file, a Hugging Face directory or a name; twice, the first and the second",
     CLI_MODELS, offsetof(compare_args, models), 0, 0, 0},
    CLI_PROMPTS_OPTIONS(compare_args),
    {0, "distance", DISTANCES,
     "distance of patterns: total variation (default), Jensen-Shannon, KL(first || second), or the "
     "largest change of a weight",
     CLI_CHOICE, offsetof(compare_args, distance), 0, 0, 0},
    {0, "edit", "EDITS",
     "edits of the second model, joined by ' + '; without a second model, of the first", CLI_TEXT,
     offsetof(compare_args, edit), 0, 0, 0},
    {0, "top", "N", "heads in the ranking (default 20)", CLI_INTEGER, offsetof(compare_args, top),
     0, 1, 2000},
    CLI_STUDY_OPTIONS(compare_args),
};

static int run_compare(const cli_call *call, qkv_error *err);

const cli_command cli_command_compare = {
    .name = "compare",
    .summary = "two models of one architecture: which heads, layers and outputs differ",
    .synopsis = "-m FIRST -m SECOND (-p TEXT | -f FILE | --file FILE | --tokens IDS)... "
                "[--distance tv|js|kl|max] [--edit EDITS] [--top N] [-o OUT]...",
    .description =
        "Runs both models on every prompt and compares them: for each head the distance of the "
        "attention patterns, behind each layer the angle of the residual streams and the error "
        "relative to their length, and of the output the KL divergence, the share of positions "
        "whose most likely next token is another, and both losses. For a model and its quantised "
        "copy, a base model and what was trained from it, or (with --edit) a model and its edited "
        "self.\n"
        "\n"
        "Every token of every prompt weighs the same. The models must have the same architecture, "
        "shape and vocabulary, and cut each text into the same tokens.\n"
        "\n"
        "The picture is a heatmap of layers and heads; --picture ranking, angles, errors and "
        "positions are the others. Tables: summary, ranking, heads, layers, prompts, positions, "
        "flips.\n"
        "\n"
        "Rows of attention are compared as they are computed. Memory does not grow with the "
        "number of prompts; what does not fit into --memory takes more passes.\n"
        "\n"
        "  qkv compare -m model-f16.gguf -m model-q4.gguf -f prompts.txt -o heads.png\n"
        "  qkv compare --edit 'q@3.h1=zero' -p 'The river runs to the sea.'\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_compare,
};

static int check_models(const compare_args *args, qkv_error *err) {
    if (args->models.n > 2)
        return cli_usage(err, "compare takes two models, and %zu are given", args->models.n);
    if (args->models.n < 2 && !args->edit)
        return cli_usage(err, "give two models, -m FIRST -m SECOND; or one and --edit, to compare "
                              "it with its edited self");
    return QKV_OK;
}

static int run_compare(const cli_call *call, qkv_error *err) {
    const compare_args *args = call->args;
    const cli_list *models = &args->models;
    const int status = check_models(args, err);
    if (status != QKV_OK) return status;
    cli_study_job job = {.kind = "compare",
                         .how = &args->study,
                         .model = models->n ? models->items[0].value : NULL,
                         .prompts = &args->prompts,
                         .parse_special = args->parse_special,
                         .chat = &args->chat,
                         .options = json_object()};
    job.other = models->n == 2 ? models->items[1].value : job.model;
    job.two_models = 1;
    if (args->distance != CLI_AUTO) cli_study_set_word(&job, "distance", DISTANCES, args->distance);
    cli_study_set_text(&job, "edit", args->edit);
    cli_study_set_number(&job, "top", (double)args->top);
    return cli_study_run(call, &job, err);
}
