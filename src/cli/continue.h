/*
 * --generate: prompts that the unedited model continues, before anything is looked at. What comes of
 * it is the prompt from then on.
 */
#ifndef QKV_CLI_CONTINUE_H
#define QKV_CLI_CONTINUE_H

#include "base/text.h"
#include "cli/inputs.h"

/* The type needs the field `int64_t generate`. */
#define CLI_GENERATE_OPTION(type)                                                                  \
    {                                                                                              \
        0, "generate", "N",                                                                        \
            "first let the unedited model continue each prompt by up to N tokens, the most "       \
            "likely one each time; then look at the whole text",                                   \
            CLI_INTEGER, offsetof(type, generate), 0, 1, 1 << 24                                   \
    }

/* Tokens after another one, as text; added to `out`. Without a tokenizer that is their ids. */
int cli_decode_after(const qkv_model *model, int32_t last, const int32_t *tokens, size_t n_tokens,
                     qkv_text *out, qkv_error *err);

/* Prompts that have tokens get up to max_new more (0: none), and a notice says which text they are. */
int cli_prompts_continue(qkv_own_prompts *prompts, qkv_session *session, int64_t max_new,
                         qkv_error *err);
/* Sources of patches are followed by the tokens that the prompt has got; again for another prompt. */
int cli_sources_follow(cli_sources *sources, const qkv_own_prompt *prompt, qkv_error *err);

#endif
