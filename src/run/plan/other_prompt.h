/*
 * Prompts besides the plan's own that edits take values from: those with a name (patch:NAME), and those
 * of the plan's set (patch:resample, mean:set).
 */
#ifndef QKV_RUN_OTHER_PROMPT_H
#define QKV_RUN_OTHER_PROMPT_H

#include "run/plan/plan.h"

typedef struct qkv_source {
    char *name;
    int32_t *tokens;
    int64_t n_tokens;
    int64_t n_prompt; /* that edits may name; what follows was generated */
    int is_drawn;     /* from the set; edits do not name it */
} qkv_source;

/* Tokens that the model has, as many as it can take. `what` is what they are, for messages. */
int qkv_tokens_check(const qkv_model *model, const int32_t *tokens, size_t n_tokens,
                     const char *what, qkv_error *err);
int32_t *qkv_tokens_copy(const int32_t *tokens, size_t n_tokens);

/* Once the tokens are known that an edit acts on: what it takes is there. Draws the prompt of
 * patch:resample, which becomes a source of the plan. */
int qkv_other_prompt_check(qkv_plan *plan, qkv_edit *edit, qkv_error *err);

/* Leaves the first n sources. */
void qkv_plan_drop_sources(qkv_plan *plan, size_t n);

#endif
