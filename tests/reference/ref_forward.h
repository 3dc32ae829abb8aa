/*
 * The forward pass in plain loops, in double precision, with every site readable and every edit
 * possible. It is slow and meant to be read: what the library computes must agree with this.
 */
#ifndef QKV_TESTS_REF_FORWARD_H
#define QKV_TESTS_REF_FORWARD_H

#include <stddef.h>
#include <stdint.h>

#include "reference/ref_edit.h"
#include "reference/ref_model.h"

enum { REF_MAX_LAYERS = 16, REF_MAX_EDITS = 16 };

/* Tensors of a run, laid out as the table of sites in qkv/plan.h says (row-major). k, v and k_rot
 * are kept twice: what the groups hold [T][G][d], where an edit of a single query head's view (`h`)
 * does not show, and what each query head sees of it [T][H][d]. */
typedef struct ref_run {
    const ref_model *model;
    int T;
    double *site[QKV_SITE_COUNT][REF_MAX_LAYERS]; /* what has no layer under 0 */
    double *seen[QKV_SITE_COUNT][REF_MAX_LAYERS]; /* of k, v and k_rot */
    double *early[2][REF_MAX_LAYERS]; /* of k_rot and v: seen without edits by query, or NULL */
    uint64_t selected[REF_MAX_EDITS]; /* per edit: elements its selector covers */
    uint64_t changed[REF_MAX_EDITS];  /* of which got another value (as floats) */
    uint64_t rounded[REF_MAX_EDITS];  /* within rounding of the old value */
} ref_run;

/* source: the run that patch takes values from, or NULL. */
ref_run *ref_forward(const ref_model *model, const int32_t *tokens, int n_tokens,
                     const ref_edit *edits, size_t n_edits, const ref_run *source);
/* frozen: the unedited run of the same tokens, which freeze takes values from. */
ref_run *ref_forward_frozen(const ref_model *model, const int32_t *tokens, int n_tokens,
                            const ref_edit *edits, size_t n_edits, const ref_run *source,
                            const ref_run *frozen);
void ref_run_free(ref_run *run);

/* How many elements a site has. */
size_t ref_site_count(const ref_model *model, qkv_site site, int n_tokens);

#endif
