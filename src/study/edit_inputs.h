/*
 * What edits name beside the prompt: other prompts (patch:NAME), a set of prompts (mean:set, patch:resample) and
 * vectors of files (@FILE#NAME).
 *
 * A kind that says which of its fields hold edits (study_kind.edits) has the fields `source`, `set_prompts` and
 * `read_vectors` for them. The frame turns the first two into prompts that have a name, which callers may as well
 * add themselves, and reads the vectors; makers find all of it in their inputs.
 */
#ifndef QKV_STUDY_EDIT_INPUTS_H
#define QKV_STUDY_EDIT_INPUTS_H

#include "base/fail.h"
#include "qkv/edit_data.h"
#include "qkv/session.h"
#include "study/prompt.h"

typedef struct edit_inputs {
    qkv_own_prompts named; /* all prompts with a name, for the recipe */
    /* Those that edits say patch:NAME of, as options take them. */
    const char **names;
    const int32_t **tokens;
    size_t *lengths;
    size_t n;
    const qkv_edit_data *data; /* vectors and the set; the study's; NULL: none */
} edit_inputs;

struct qkv_study;

/* How many of the study's prompts have no name. */
size_t qkv_edit_inputs_count_plain(const struct qkv_study *study);

/* Fields become prompts and vectors. A prompt with a name that no edit uses is an error. */
int qkv_edit_inputs_take(struct qkv_study *study, qkv_error *err);

/* The prompts with a name, tokenized. Release it also after a failure. */
int qkv_edit_inputs_make(edit_inputs *to, struct qkv_study *study, const qkv_model *model,
                         qkv_error *err);
void qkv_edit_inputs_release(edit_inputs *edits);

/* Names all of it in a plan, before edits are added. */
int qkv_edit_inputs_add(const edit_inputs *edits, qkv_plan *plan, qkv_error *err);

/* A LIST field as an array of its texts, which belong to it. Freed with free, both at once. NULL: memory is short. */
char **qkv_field_texts(const char *list, size_t *n);

#endif
