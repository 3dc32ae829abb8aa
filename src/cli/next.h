/* What the files of `qkv next` share: one prompt's outcome, and how it is shown. */
#ifndef QKV_CLI_NEXT_H
#define QKV_CLI_NEXT_H

#include "cli/inputs.h"
#include "qkv/next.h"

/* A prompt, what was found, and the words for it. */
typedef struct cli_next {
    const qkv_model *model;
    size_t number; /* of the prompt, from 0 on */
    const cli_prompt *prompt;
    const qkv_next *next;
    const cli_list *variants; /* behind the baseline */
    const int32_t *diff;      /* pairs */
} cli_next;

/* "baseline", or the edits as they were given. */
const char *cli_next_variant(const cli_next *it, size_t variant);

/* ---- next_tokens.c ---- */

typedef struct cli_token_list {
    int32_t *ids;
    size_t n, capacity;
} cli_token_list;

/* Adds the tokens whose texts are given, with `between` between them; `option` is for messages. */
int cli_token_list_read(cli_token_list *list, const qkv_model *model, const char *option,
                        const char *given, char between, qkv_error *err);

/* ---- next_table.c ---- */

void cli_next_print(const cli_next *it);

/* ---- next_files.c ---- */

/* The line of names, and the rows of a prompt; `all` is about losses. */
void cli_next_csv_head(qkv_text *out, int all);
void cli_next_csv_rows(qkv_text *out, const cli_next *it, int all);
/* NULL without memory. */
json_t *cli_next_json(const cli_next *it, int all);

#endif
