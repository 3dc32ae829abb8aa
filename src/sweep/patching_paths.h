/* Path patching from the inside: patching_paths.c. */
#ifndef QKV_SWEEP_PATCHING_PATHS_H
#define QKV_SWEEP_PATCHING_PATHS_H

#include "base/fail.h"
#include "base/text.h"
#include "sweep/patching.h"
#include "sweep/sweep.h"

/* Reads `receivers` and `freeze_mlps`, once layers and heads are known, which are those of senders. */
int qkv_patching_receivers(qkv_spec *spec, qkv_error *err);
void qkv_patching_receivers_free(qkv_patching *patching);

/* What is frozen while a sender of this layer is patched, after its own edit. */
void qkv_patching_append_freezes(const qkv_sweep *sweep, int32_t sender, qkv_text *out);

/* What receivers read when senders are patched: edits for each cell, which name vectors in `data`. NULL:
 * nothing changes. */
typedef struct qkv_path_inputs {
    struct qkv_edit_data *data;
    char **edits;
    size_t n;
} qkv_path_inputs;

/* Fills a plan that has nothing but a prompt, n_more tokens of an answer after it and the other prompt. */
int qkv_path_plan(const qkv_sweep *sweep, qkv_plan *plan, int64_t first, size_t n, size_t n_more,
                  qkv_error *err);
/* Runs it. Release the inputs also after a failure. */
int qkv_path_collect(const qkv_sweep *sweep, qkv_session *session, qkv_plan *plan, int64_t first,
                     size_t n, qkv_path_inputs *out, qkv_error *err);
void qkv_path_inputs_release(qkv_path_inputs *inputs);
/* How many cells' inputs are in memory at a time. */
size_t qkv_path_most_cells(const qkv_sweep *sweep, size_t n_tokens);
/* The same edits with zeros, to estimate what they take; *out is the caller's to free. */
int qkv_path_zero_edit(const qkv_sweep *sweep, const qkv_cell *cell, char **out, qkv_error *err);

#endif
