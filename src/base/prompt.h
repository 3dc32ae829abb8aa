/*
 * A prompt with all that belongs to it: the one struct in which commands, studies, sweeps and the server hold prompts.
 * Unlike qkv_prompt (qkv/prompt.h), in which callers show theirs, it owns what it points to.
 */
#ifndef QKV_BASE_PROMPT_H
#define QKV_BASE_PROMPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct qkv_own_prompt {
    char *text; /* NULL: given as token ids; of a chat, what the template made of it */
    size_t length;
    int32_t *tokens; /* NULL: not tokenized yet */
    size_t n_tokens;
    size_t n_new;   /* how many of them were generated: the last ones */
    uint32_t flags; /* of qkv_tokenize_flags, with which the text became tokens */
    int is_written; /* it did not: the tokens were given, and the text is for records */
    char *name;     /* of a source; else NULL */
    char **labels;  /* n_tokens texts for axes; NULL: none */
} qkv_own_prompt;

typedef struct qkv_own_prompts {
    qkv_own_prompt *items;
    size_t n, capacity;
} qkv_own_prompts;

/* Its text and tokens; neither name nor labels. `to` is empty; release it also after a failure. */
int qkv_own_prompt_copy(qkv_own_prompt *to, const qkv_own_prompt *from, qkv_error *err);
void qkv_own_prompt_release(qkv_own_prompt *prompt);
void qkv_own_prompts_release(qkv_own_prompts *prompts);

#endif
