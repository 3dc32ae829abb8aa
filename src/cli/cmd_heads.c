/* qkv heads: what every head does. */
#include <stdlib.h>

#include "base/file.h"
#include "cli/study.h"

typedef struct heads_args {
    cli_study study;
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    const char *pairs; /* a file */
    double name_mover, induction, duplicate, previous, self, sink;
    int64_t length, sequences, seed, top;
} heads_args;

enum { DEFAULT_PROMPTS = 8 };
#define MOST_PAIRS ((size_t)1 << 20) /* bytes */

static const heads_args defaults = {.study = CLI_STUDY_DEFAULTS};

#define THRESHOLD(option, field, what, usual)                                                      \
    {                                                                                              \
        0, option, "SCORE", "score from which on a head is labelled " what " (default " usual ")", \
            CLI_REAL, offsetof(heads_args, field), 0, 1e-6, 1                                      \
    }

static const cli_option options[] = {
    CLI_MODEL_OPTION(heads_args),
    CLI_PROMPTS_OPTIONS(heads_args),
    {0, "pairs", "FILE",
     "for name movers: lines of a prompt, a tab and an answer, one token that stands in the prompt; "
     "'-' for standard input",
     CLI_PATH, offsetof(heads_args, pairs), 0, 0, 0},
    {0, "length", "N", "random tokens before they come again (default 50)", CLI_INTEGER,
     offsetof(heads_args, length), 0, 2, 1 << 20},
    {0, "sequences", "N", "sequences of random tokens (default 4)", CLI_INTEGER,
     offsetof(heads_args, sequences), 0, 1, 10000},
    {0, "seed", "N", "which random tokens (default 0)", CLI_INTEGER, offsetof(heads_args, seed), 0,
     0, 1e15},
    {0, "top", "N", "heads that are listed for each label (default 10)", CLI_INTEGER,
     offsetof(heads_args, top), 0, 1, 1e9},
    THRESHOLD("name-mover", name_mover, "a name mover", "0.3"),
    THRESHOLD("induction", induction, "induction", "0.4"),
    THRESHOLD("duplicate", duplicate, "duplicate token", "0.4"),
    THRESHOLD("previous", previous, "previous token", "0.4"),
    THRESHOLD("self", self, "self", "0.4"),
    THRESHOLD("sink", sink, "first token", "0.5"),
    CLI_STUDY_OPTIONS(heads_args),
};

static int run_heads(const cli_call *call, qkv_error *err);

const cli_command cli_command_heads = {
    .name = "heads",
    .summary = "what every head does: induction, previous token, sink and others",
    .synopsis = "[-m MODEL] [-p TEXT | -f FILE | --file FILE | --tokens IDS]... [--pairs FILE] "
                "[--length N] [--sequences N] [--seed N] [--induction SCORE]... [--json] "
                "[-o OUT]...",
    .description =
        "Every head gets scores, from 0 to 1, and one label. On random tokens that come twice: "
        "induction, the mean weight from a token's second time to what followed its first time; "
        "duplicate, to the first time itself. On texts (without any: the library's own): previous, "
        "self and sink, the mean weight on the token before, on the token itself and on the first "
        "token. With --pairs, name movers: the weight from the last token to the answer, where "
        "what the head writes for it has the answer among its five highest logits.\n"
        "\n"
        "The label is the first of name mover, induction, duplicate, previous, self and sink whose "
        "threshold the score reaches. Prints the heads of each label; the table 'heads' has all "
        "scores, 'repeats' the random tokens. The pictures are labels and scores.\n"
        "\n"
        "  qkv heads -o heads.png\n"
        "  qkv heads -m tinyllama --picture scores -o scores.pdf   # needs a download\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_heads,
};

static int run_heads(const cli_call *call, qkv_error *err) {
    const heads_args *args = call->args;
    char *pairs = NULL;
    size_t size = 0;
    int status = args->pairs ? qkv_read_file(&pairs, &size, args->pairs, MOST_PAIRS, err) : QKV_OK;
    if (status != QKV_OK) return status;
    cli_study_job job = {.kind = "heads",
                         .how = &args->study,
                         .model = args->model,
                         .prompts = &args->prompts,
                         .default_prompts = DEFAULT_PROMPTS,
                         .parse_special = args->parse_special,
                         .chat = &args->chat,
                         .options = json_object()};
    cli_study_set_text(&job, "pairs", pairs);
    cli_study_set_number(&job, "length", (double)args->length);
    cli_study_set_number(&job, "sequences", (double)args->sequences);
    cli_study_set_number(&job, "seed", (double)args->seed);
    cli_study_set_number(&job, "top", (double)args->top);
    cli_study_set_number(&job, "name_mover", args->name_mover);
    cli_study_set_number(&job, "induction", args->induction);
    cli_study_set_number(&job, "duplicate", args->duplicate);
    cli_study_set_number(&job, "previous", args->previous);
    cli_study_set_number(&job, "self", args->self);
    cli_study_set_number(&job, "sink", args->sink);
    status = cli_study_run(call, &job, err);
    free(pairs);
    return status;
}
