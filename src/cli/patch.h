/* Pairs of prompts of `qkv patch`, from options or from a file: patch_pairs.c. */
#ifndef QKV_CLI_PATCH_H
#define QKV_CLI_PATCH_H

#include "cli/inputs.h"

typedef struct patch_pairs {
    cli_list prompts; /* clean and corrupt by turns, texts */
    json_t *answers;  /* [[answer, wrong], ...]; NULL: none are given */
    char **texts;     /* what prompts point to */
    size_t n_texts, texts_capacity;
} patch_pairs;

/* Of a .csv, .tsv or .jsonl file with the columns or keys clean, corrupt and, where wanted, answer and
 * wrong; others are left alone. Release it also after a failure. */
int patch_pairs_read(patch_pairs *pairs, const char *path, qkv_error *err);
int patch_pairs_add(patch_pairs *pairs, const char *clean, const char *corrupt, qkv_error *err);
void patch_pairs_release(patch_pairs *pairs);

#endif
