/* qkv weights: the circuits of heads, from weights alone. */
#include <string.h>

#include "cli/study.h"

typedef struct weights_args {
    cli_study study;
    const char *model;
    const char *layers, *heads;
    int raw, minus_random;
    int64_t top;
} weights_args;

#define CIRCUITS "ov|qk|composition"

static const weights_args defaults = {.study = CLI_STUDY_DEFAULTS};

static const cli_option options[] = {
    CLI_MODEL_OPTION(weights_args),
    {0, "layers", "LAYERS", "layers to look at, e.g. 3 or 0-5,7 (default all)", CLI_TEXT,
     offsetof(weights_args, layers), 0, 0, 0},
    {0, "heads", "HEADS", "query heads to look at, in the same notation", CLI_TEXT,
     offsetof(weights_args, heads), 0, 0, 0},
    {0, "raw", NULL, "weights as they are: without those of norms folded in", CLI_FLAG,
     offsetof(weights_args, raw), 1, 0, 0},
    {0, "minus-random", NULL, "composition: subtract what random matrices of the shape have",
     CLI_FLAG, offsetof(weights_args, minus_random), 1, 0, 0},
    {0, "top", "N", "lines of a ranking (default 20)", CLI_INTEGER, offsetof(weights_args, top), 0,
     1, 1e9},
    CLI_STUDY_OPTIONS(weights_args),
};

static int run_weights(const cli_call *call, qkv_error *err);

const cli_command cli_command_weights = {
    .name = "weights",
    .summary = "spectra, copying and composition of heads, from weights alone",
    .synopsis = "ov|qk|composition [-m MODEL] [--layers LAYERS] [--heads HEADS] [--raw] "
                "[--minus-random] [--top N] [--json] [-o OUT]...",
    .description =
        "The circuits of heads after Elhage et al. 2021 (A Mathematical Framework for Transformer "
        "Circuits); no prompt is run.\n"
        "\n"
        "ov: what a head copies, W_O W_V. The copying score is the sum of the eigenvalues of the "
        "full circuit W_U W_O W_V W_E, divided by the sum of their sizes: 1 where the head raises "
        "the tokens that it attends to. qk: what a head looks for, W_Q^T W_K, and the matching "
        "score of W_E^T W_Q^T W_K W_E. Both have norms, effective ranks and spectra.\n"
        "\n"
        "composition: how much of what a head writes the queries (Q), keys (K) or values (V) of a "
        "later head read, as the norm of the product divided by the norms of both. The time grows "
        "with the square of the number of layers: --layers takes some of them.\n"
        "\n"
        "The weights of norms are folded into the matrices unless --raw is given; their division, "
        "biases and RoPE are left out. The tables are top, heads, singular and eigen, and pairs; "
        "the pictures copying or matching, norm, effective_rank, stream_copying or "
        "stream_matching and spectrum, and heads and layers.\n"
        "\n"
        "  qkv weights ov -o copying.png\n"
        "  qkv weights qk --picture spectrum -o spectrum.svg\n"
        "  qkv weights composition --layers 0-3 -o composition.png\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_CHOICE,
    .operand_words = CIRCUITS,
    .run = run_weights,
};

static int is_circuit(const char *word) {
    static const char *const circuits[] = {"ov", "qk", "composition"};
    for (size_t i = 0; i < sizeof circuits / sizeof *circuits; i++) {
        if (strcmp(word, circuits[i]) == 0) return 1;
    }
    return 0;
}

static int run_weights(const cli_call *call, qkv_error *err) {
    const weights_args *args = call->args;
    const char *circuit = call->operands[0];
    if (!is_circuit(circuit))
        return cli_usage(err, "there is no circuit '%s': give ov, qk or composition", circuit);
    if (args->minus_random && strcmp(circuit, "composition") != 0)
        return cli_usage(err, "--minus-random belongs to composition");
    cli_study_job job = {
        .kind = "weights", .how = &args->study, .model = args->model, .options = json_object()};
    cli_study_set_text(&job, "circuit", circuit);
    cli_study_set_text(&job, "layers", args->layers);
    cli_study_set_text(&job, "heads", args->heads);
    cli_study_set_flag(&job, "raw", args->raw);
    cli_study_set_flag(&job, "minus_random", args->minus_random);
    cli_study_set_number(&job, "top", (double)args->top);
    return cli_study_run(call, &job, err);
}
