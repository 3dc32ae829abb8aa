/*
 * The prompt of a dropped figure, as the page writes prompts: a text, a conversation, or token ids.
 */
#ifndef QKV_SERVER_DROPPED_PROMPT_H
#define QKV_SERVER_DROPPED_PROMPT_H

#include "server/model_pool.h"

/* The first prompt of a recipe. A text or a conversation is given where it makes the very tokens of
 * the figure, else the tokens. model: NULL where the figure's is not here; tokens would say nothing
 * then, and the text is given. *lost_chat: it was a conversation, and is none any more. */
json_t *qkv_dropped_prompt(const json_t *recipe, const qkv_model *model, int *lost_chat);

#endif
