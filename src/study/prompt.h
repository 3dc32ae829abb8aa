/* Prompts of callers become prompts of a study: checked, copied, with tokens and labels. */
#ifndef QKV_STUDY_PROMPT_H
#define QKV_STUDY_PROMPT_H

#include "base/prompt.h"
#include "qkv/prompt.h"

/* What is wrong with a list without looking at a model; `name` is the field's. */
int qkv_prompts_check(const qkv_prompt *given, size_t n, const char *name, qkv_error *err);
/* Copies and tokenizes; NULL: the first n of the default prompts. Release also after a failure. */
int qkv_prompts_take(qkv_own_prompts *list, const qkv_prompt *given, size_t n,
                     const qkv_model *model, qkv_error *err);
/* A token as a label of an axis or a cell, freed with free: its text without the space before a word, what
 * cannot be seen as escapes; its number, where the model has no tokenizer. */
int qkv_token_label(const qkv_model *model, int32_t token, char **out, qkv_error *err);
/* The texts of its tokens as labels. */
int qkv_prompt_make_labels(qkv_own_prompt *prompt, const qkv_model *model, qkv_error *err);
/* The text of tokens that follow a prompt, freed with free: what the text of all of them has more than the
 * prompt's. As UTF-8, whatever the tokens. */
int qkv_prompt_new_text(const qkv_model *model, const int32_t *prompt, size_t n_prompt,
                        const int32_t *tokens, size_t n_tokens, char **out, qkv_error *err);

/* The tokens of a prompt, freed with qkv_tokens_free. An empty prompt is an error. */
int qkv_prompt_tokenize(const qkv_prompt *prompt, const qkv_model *model, int32_t **tokens,
                        size_t *n_tokens, qkv_error *err);

#endif
