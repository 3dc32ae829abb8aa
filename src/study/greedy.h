/*
 * Sets of heads, built greedily: the head whose edit changes a metric most; then, with that one edited,
 * the head that does so; and so on. Every step tries all candidates that are not chosen yet.
 *
 *     greedy_task task = {.session = session, .prompts = prompts, .n_prompts = 2, .target = "q",
 *                         .op = "scale:1e-05", .metric = "subspace_angle", .candidates = heads,
 *                         .n_candidates = n, .n_steps = 3};
 *     greedy found;
 *     status = qkv_greedy_run(&found, &task, &stopped, err);
 *     ... found.steps[0].values[i] belongs to heads[i]; found.steps[0].chosen is the largest ...
 *     qkv_greedy_release(&found);
 *
 * A metric of a variant counts as its mean over the prompts; one of a set of prompts as it is. Of equal
 * values the first candidate's wins. With a file, what is computed is kept there, and the same task, also
 * with more steps, resumes from it however the process before ended.
 */
#ifndef QKV_STUDY_GREEDY_H
#define QKV_STUDY_GREEDY_H

#include "base/fail.h"
#include "qkv/session.h"

typedef struct greedy_head {
    int32_t layer, head; /* query head */
} greedy_head;

typedef struct greedy_prompt {
    const int32_t *tokens;
    size_t n_tokens;
} greedy_prompt;

typedef struct greedy_task {
    qkv_session *session;
    const greedy_prompt *prompts;
    size_t n_prompts;
    const char *target, *op, *metric; /* "q", "scale:1e-05", "subspace_angle" */
    const greedy_head *candidates;
    size_t n_candidates, n_steps;
    const char *file; /* NULL: nothing is kept */
    /* Called at the start and after every prompt with variants, times prompts, that are done and wanted;
     * anything but 0 stops the search. May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
} greedy_task;

typedef struct greedy_step {
    size_t chosen;  /* of the candidates */
    double *values; /* by candidate; NaN: chosen before */
} greedy_step;

typedef struct greedy {
    greedy_step *steps;
    size_t n_steps;
} greedy;

/* Checks everything first. Release it also after a failure. *stopped is 1 when progress ended it; the
 * steps are those that were complete. */
int qkv_greedy_run(greedy *found, const greedy_task *task, int *stopped, qkv_error *err);
void qkv_greedy_release(greedy *found);

/* Passes of a variant over a prompt that all steps take together: the number that progress counts. */
int64_t qkv_greedy_n_tries(const greedy_task *task);

/* ---- greedy_file.c: SQLite, a row a value ---- */

typedef struct greedy_file greedy_file;

/* Makes the file, or takes one that was made for the same task but for the number of steps. */
int qkv_greedy_file_open(greedy_file **out, const greedy_task *task, qkv_error *err);
/* How many values of the task's steps are there. */
int qkv_greedy_file_count(greedy_file *file, int64_t *n, qkv_error *err);
/* Reads the values of a step that are there; the others stay as they are. */
int qkv_greedy_file_read(greedy_file *file, size_t step, double *values, qkv_error *err);
/* Adds the values of some candidates in one transaction. */
int qkv_greedy_file_put(greedy_file *file, size_t step, const size_t *candidates, size_t n,
                        const double *values, qkv_error *err);
/* Leaves one file, without a log beside it. */
int qkv_greedy_file_close(greedy_file *file, qkv_error *err);

#endif
