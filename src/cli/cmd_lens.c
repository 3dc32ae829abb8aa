/* qkv lens: what every layer would predict, at every position. */
#include "cli/study.h"

typedef struct lens_args {
    cli_study study;
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    const char *answer;
    int64_t top;
    int heads;
} lens_args;

static const lens_args defaults = {.study = CLI_STUDY_DEFAULTS};

static const cli_option options[] = {
    CLI_MODEL_OPTION(lens_args),
    CLI_PROMPT_OPTIONS(lens_args),
    {0, "answer", "TOKEN",
     "follow this token: its rank, probability and logit; blanks before a word belong to it; A/B: "
     "the logit of A minus that of B",
     CLI_TEXT, offsetof(lens_args, answer), 0, 0, 0},
    {0, "top", "N", "how many of the most likely tokens (default 5)", CLI_INTEGER,
     offsetof(lens_args, top), 0, 1, 100},
    {0, "heads", NULL, "what each head, feed-forward and the embedding add to the answer's logit",
     CLI_FLAG, offsetof(lens_args, heads), 1, 0, 0},
    CLI_STUDY_OPTIONS(lens_args),
};

static int run_lens(const cli_call *call, qkv_error *err);

const cli_command cli_command_lens = {
    .name = "lens",
    .summary = "what every layer would predict, at every position",
    .synopsis = "[-m MODEL] (-p TEXT | -f FILE | --file FILE | --tokens IDS) [--answer TOKEN] "
                "[--top N] [--heads] [--json] [-o OUT]...",
    .description =
        "The logit lens: the residual stream behind every layer goes through the model's own final "
        "norm and output matrix, as if the model ended there. Prints the most likely tokens behind "
        "the last token, layer by layer; with --answer, the rank, probability and logit of that "
        "token, too. The table 'top' has them for every position, 'answer' those of the answer.\n"
        "\n"
        "The picture has layers down and tokens across. In each cell stands the most likely token; "
        "its colour is that token's probability, or that of the answer.\n"
        "\n"
        "With --heads, direct logit attribution: the residual stream in the end is the sum of the "
        "embedding and of what all heads and feed-forward blocks added to it. The number that the "
        "final norm divides by is held at its value; what is left is linear, and the parts add up "
        "to the answer's logit behind the last token (before the model's cap, where it has one). "
        "The pictures are 'heads', layers down and heads across, and 'blocks'.\n"
        "\n"
        "  qkv lens -p 'The river runs to the' --answer ' sea' -o lens.png\n"
        "  qkv lens -p 'The river runs to the' --answer ' sea/ land' --heads -o heads.png\n"
        "  qkv lens -p 'The river runs to the' --table top -o lens.csv\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_lens,
};

static int run_lens(const cli_call *call, qkv_error *err) {
    const lens_args *args = call->args;
    cli_study_job job = {.kind = "lens",
                         .how = &args->study,
                         .model = args->model,
                         .prompts = &args->prompts,
                         .parse_special = args->parse_special,
                         .chat = &args->chat,
                         .options = json_object()};
    cli_study_set_text(&job, "answer", args->answer);
    cli_study_set_number(&job, "top", (double)args->top);
    cli_study_set_flag(&job, "heads", args->heads);
    return cli_study_run(call, &job, err);
}
