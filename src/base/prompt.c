#include "base/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int qkv_own_prompt_copy(qkv_own_prompt *to, const qkv_own_prompt *from, qkv_error *err) {
    to->flags = from->flags;
    to->n_new = from->n_new;
    to->is_written = from->is_written;
    to->tokens = qkv_calloc(from->n_tokens, sizeof *to->tokens);
    if (!to->tokens) return qkv_fail_memory(err);
    if (from->n_tokens) memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
    to->n_tokens = from->n_tokens;
    if (!from->text) return QKV_OK;
    to->text = qkv_strndup(from->text, from->length);
    to->length = from->length;
    return to->text ? QKV_OK : qkv_fail_memory(err);
}

void qkv_own_prompt_release(qkv_own_prompt *prompt) {
    for (size_t i = 0; prompt->labels && i < prompt->n_tokens; i++) free(prompt->labels[i]);
    free(prompt->labels);
    free(prompt->text);
    free(prompt->name);
    free(prompt->tokens);
    *prompt = (qkv_own_prompt){0};
}

void qkv_own_prompts_release(qkv_own_prompts *prompts) {
    for (size_t i = 0; i < prompts->n; i++) qkv_own_prompt_release(&prompts->items[i]);
    free(prompts->items);
    *prompts = (qkv_own_prompts){0};
}
