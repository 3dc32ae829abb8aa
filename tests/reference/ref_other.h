/*
 * Prompts besides the own one that edits take values from: a set of them, for means and for drawing, and
 * one of another length. They follow from the prompt and the vocabulary, so that each test has the same.
 */
#ifndef QKV_TESTS_REF_OTHER_H
#define QKV_TESTS_REF_OTHER_H

#include "reference/ref_pass.h"

/* The set has the own prompt in it, shorter and longer ones. One of them is also patch:far, of which token
 * t + REF_SHIFT is taken for token t. */
enum { REF_SET_SIZE = 5, REF_OWN = 2, REF_FAR = 1, REF_SHIFT = 3 };

/* Tokens of a prompt of the set that goes with a prompt of n_tokens; freed with free. All begin with its
 * first token, so that nothing can be drawn for a prompt of one. */
int32_t *ref_set_prompt(int index, const int32_t *tokens, int n_tokens, int n_vocab, int *length);

/* Does the operation take values from there? */
int ref_takes_other(ref_op op);

/* Runs of other prompts, which a model keeps from one run to the next of the same prompt. */
typedef struct ref_others ref_others;

ref_others *ref_others_new(void);
void ref_others_free(ref_others *others);
/* Before a run with these edits. */
void ref_others_need(const ref_model *m, const int32_t *tokens, int n_tokens, const ref_edit *edits,
                     size_t n_edits);

/* The value that the edit gives to an element of a tensor with n_head heads. */
double ref_other_value(const ref_pass *p, const ref_edit *edit, int layer, int n_head, int head,
                       int row, int col);

#endif
