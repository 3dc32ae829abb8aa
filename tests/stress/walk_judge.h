/*
 * Is what the library gives of a step of the random walk what the scalar reference gives, and does all that
 * must be the same to the last bit? What is not ends the program.
 */
#ifndef QKV_TESTS_WALK_JUDGE_H
#define QKV_TESTS_WALK_JUDGE_H

#include "walk_case.h"

/* Runs of the reference: [0] the baseline, then the variants; and of the other prompt. */
typedef struct walk_truth {
    const walk_case *of;
    ref_run *runs[WALK_VARIANTS + 1];
    ref_run *source;
    long tensors; /* that were compared */
    long shaky;   /* that a change in the last digits of the weights changes as much */
} walk_truth;

void walk_truth_open(walk_truth *truth, const walk_case *c);
void walk_truth_close(walk_truth *truth);

/* Prints what is wrong, and ends the program. */
_Noreturn void walk_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All tensors of a result against the reference; what no edit reaches against the baseline. */
void walk_judge_result(walk_truth *truth, const qkv_plan *plan, const qkv_result *result);
/* Variant `a` of one result against `b` of another, of the same captures: bits. */
void walk_judge_same(const walk_case *c, const qkv_result *one, size_t a, const qkv_result *two,
                     size_t b, const char *how);
/* Rows of the pattern of one head, of which those that are left out are 0. */
void walk_judge_rows(walk_truth *truth, size_t variant, int layer, int head, const float *pattern);
/* The logits after a token. */
void walk_judge_logits(walk_truth *truth, size_t variant, int token, const float *logits);

#endif
