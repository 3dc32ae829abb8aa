/* The prompts of a request that takes several, and the options of a command line that mean the same. */
#ifndef QKV_SERVER_PROMPT_LIST_H
#define QKV_SERVER_PROMPT_LIST_H

#include "qkv/prompt.h"
#include "server/command_words.h"
#include "server/model_pool.h"

enum { QKV_PROMPT_LIST_MOST = 64 };

typedef struct qkv_prompt_list {
    const json_t *given[QKV_PROMPT_LIST_MOST]; /* part of the request */
    qkv_request_prompt wanted[QKV_PROMPT_LIST_MOST];
    qkv_own_prompt pooled[QKV_PROMPT_LIST_MOST]; /* once they are tokenized */
    qkv_prompt prompts[QKV_PROMPT_LIST_MOST];
    size_t n;
} qkv_prompt_list;

/* Adds one, which must not be the last of too many. Release the list also after a failure. */
int qkv_prompt_list_add(qkv_prompt_list *list, const json_t *given, qkv_error *err);
/* All of `prompts`, a list of at most so many; NULL and null: none. */
int qkv_prompt_list_read(qkv_prompt_list *list, const json_t *prompts, size_t most, qkv_error *err);
/* What a command line cannot say: chats beside other prompts, `parse_special` of some prompts only. */
int qkv_prompt_list_check(const qkv_prompt_list *list, qkv_error *err);
/* Counts the tokens of each; prompts that are chats become tokens. */
int qkv_prompt_list_tokenize(qkv_prompt_list *list, qkv_model_pool *pool, const qkv_model *model,
                             qkv_error *err);
/* As options. With `names`, "clean|corrupt", those of the names interleaved. */
void qkv_prompt_list_add_words(const qkv_prompt_list *list, const char *names, qkv_words *words);
void qkv_prompt_list_release(qkv_prompt_list *list);

#endif
