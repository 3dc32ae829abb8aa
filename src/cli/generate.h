/*
 * What the files of `qkv generate` share: the text of each variant as it grows, and how it is shown.
 */
#ifndef QKV_CLI_GENERATE_H
#define QKV_CLI_GENERATE_H

#include "cli/inputs.h"
#include "qkv/generate.h"

/* Why a variant's text ended. */
typedef enum cli_finish {
    CLI_FINISH_LENGTH,
    CLI_FINISH_END, /* a token that ends texts */
    CLI_FINISH_STOP,
    CLI_FINISH_INTERRUPTED
} cli_finish;

/* One variant's new text. */
typedef struct cli_branch {
    int32_t *ids;
    double *log_probabilities;
    size_t n;
    qkv_text text;         /* of all ids; a character that is not whole yet is at its end */
    size_t shown;          /* bytes of it that no later token can take back */
    size_t differs;        /* the first new token that is not the baseline's; n: none so far */
    size_t mark, mark_end; /* where that token's text is */
    int going;
    cli_finish finish;
} cli_branch;

typedef struct cli_generation {
    const qkv_model *model;
    const char *prompt; /* NULL: given as ids */
    const int32_t *prompt_ids;
    size_t n_prompt;
    const cli_list *variants;
    char *const *stops; /* what ends a text, NULL after the last */
    size_t max_new;
    int feed_last; /* also the last token, which no other follows: to look at the whole text */
    qkv_sampler_options sampler;
    cli_branch *branches; /* the baseline's first */
    size_t n_branches;
} cli_generation;

/* generate_loop.c: called after every token. */
typedef void cli_on_token(void *user, const cli_generation *it, int is_last);

int cli_generation_open(cli_generation *it, qkv_error *err);
void cli_generation_release(cli_generation *it);
/* Feeds the prompt, then token by token. What there is so far stays also after a failure. */
int cli_generation_run(cli_generation *it, qkv_session *session, qkv_generator *generator,
                       cli_on_token *on_token, void *user, qkv_error *err);

/* generate_show.c */

/* How texts are shown while they grow: streamed, in columns side by side, or one below the other. */
typedef struct cli_show {
    int begun;
    size_t width;   /* of each column; 0: one below the other */
    size_t printed; /* bytes of the baseline's text that are out */
    size_t rows;    /* lines of the columns that are out */
} cli_show;

void cli_show_token(void *show, const cli_generation *it, int is_last);
/* One variant as an object: ids, text, logarithms of probabilities. NULL when memory is short. */
json_t *cli_branch_json(const cli_generation *it, size_t variant);

#endif
