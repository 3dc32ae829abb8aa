/*
 * The arithmetic of edits, on plain float arrays.
 *
 * Every site is seen the same way: heads × rows × a contiguous innermost axis, with strides. Flat
 * sites have one head.
 */
#ifndef QKV_RUN_EDIT_APPLY_H
#define QKV_RUN_EDIT_APPLY_H

#include <stdatomic.h>
#include <stdint.h>

#include "qkv/custom.h"
#include "run/edit.h"

struct qkv_keep_state;

/* Heads that share a copy of what they read: how many, and how many first ones of groups among them. */
typedef struct qkv_alike {
    int32_t heads, groups;
} qkv_alike;

typedef struct qkv_view {
    const float *src; /* unedited */
    float *dst;       /* edited */
    const float
        *moved; /* of scores: those of queries as they stand in a small cache; may be NULL */
    qkv_site site;
    int32_t layer;
    int32_t n_heads;
    int64_t n_rows;
    int64_t width;
    int64_t head_stride, row_stride; /* in elements */
    int64_t src_head_stride;         /* 0: all heads have one source, of which dst has copies */
    int32_t
        group; /* how many consecutive heads are one key/value head; 1 unless a group was split */
    int32_t first_head; /* number of the first head and row, where the tensor is a part of a map */
    const int32_t *heads;   /* numbers of the heads, where there are some only; NULL: one by one */
    int32_t all_heads;      /* among which they are counted */
    const qkv_alike *alike; /* for how many each stands; NULL: for itself */
    int64_t first_row;
    int64_t first_col,
        n_cols;          /* of a map: number of the first key, and how many of `width` count */
    int64_t patch_width; /* keys in a map that is patched from */
    const qkv_model *model;
    const struct qkv_keep_state *keep; /* of scores: what heads remember of earlier rows */
    _Atomic int *failed;               /* set where memory ran out */
    int permuted; /* channels are in the file's order, see qkv_channel_original */
} qkv_view;

/* Strides and sizes of a site's tensor with n_heads heads and n_rows rows (as it is in the graph);
 * src and dst stay NULL. */
qkv_view qkv_view_of(qkv_site site, int32_t layer, const qkv_model *model, int32_t n_heads,
                     int64_t n_rows, int64_t n_tokens);

/* The number of one of its heads. */
int32_t qkv_view_head(const qkv_view *view, int32_t head);

/* Elements of one variant's tensor. */
int64_t qkv_view_size(const qkv_view *view);

/* Applies an edit to rows [first, end) of dst, reading src. `patch` is the other prompt's tensor, or the
 * mean over a set, in the same layout with the site's own number of heads; `scratch` has room for 2 ×
 * `width` floats. Returns how many elements got another value. Scores that the mask hides are left alone:
 * nothing depends on them. The first row in which a finite value becomes one that is not is written to
 * *overflow, which is -1 before. */
uint64_t qkv_edit_apply(const qkv_edit *edit, const qkv_view *view, int64_t first, int64_t end,
                        const float *patch, float *scratch, int64_t *overflow);

/* Everything that the edit of one row needs. */
typedef struct qkv_edit_row {
    const qkv_edit *edit;
    const qkv_view *view;
    int32_t head;
    int64_t index;
    const float *src;
    float *dst;
    const float *moved;   /* of scores: cache_positions.c */
    const float *patch;   /* that row of what is taken from elsewhere; NULL: nothing is */
    const float *scratch; /* what begin_head has written */
    const float *vector;  /* that row of the edit's vector, in the original order of channels */
    double number;        /* what begin_row has computed */
} qkv_edit_row;

/* The element of the edit's vector that belongs to place c of the row. */
float qkv_row_vector(const qkv_edit_row *row, int64_t c);

/* The head's number as the selector counts: a split group is one head to edits that name key/value heads. */
int32_t qkv_counted_head(const qkv_edit *edit, const qkv_view *view, int32_t head);

/* Where the file reorders the channels of q and k for RoPE (pairs side by side), the channel c of a
 * head of width d in the order of the original model (halves). */
int64_t qkv_channel_original(int64_t c, int64_t d);
/* The channel that stands at place c of the view's innermost axis, in that order. */
int64_t qkv_view_channel(const qkv_view *view, int64_t c);
/* The place of a channel. */
int64_t qkv_view_place(const qkv_view *view, int64_t channel);

/*
 * Edits with a vector: add:@NAME,by=F, remove:@NAME and set:@NAME.
 */

struct qkv_cursor;

/* Reads @NAME and gives the edit that vector. */
int qkv_vector_read(struct qkv_cursor *c, qkv_edit *edit);

/* Once the tokens are known that the edit acts on: the vector has a row for each, and a direction. */
int qkv_vector_check(const qkv_edit *edit, int64_t n_positions, qkv_error *err);

/* The row of the edit's vector that belongs to a row of the view, its channels in the original order;
 * NULL where the edit has none. */
const float *qkv_vector_row(const qkv_edit *edit, const qkv_view *view, int32_t head, int64_t t);

/*
 * Functions that a caller registered in a plan, for edits that say custom:NAME. Plans that are made of
 * one another (those of a generator's texts) own them together.
 */

typedef struct qkv_custom qkv_custom;

/* One more plan has the functions of another one. */
int qkv_plan_share_customs(qkv_plan *plan, const qkv_plan *from, qkv_error *err);
/* Gives up the part of one plan. */
void qkv_custom_free(qkv_custom *custom);

/* Calls the function of an edit on what it selects of the view, and writes the result to view->dst.
 * *changed receives how many elements got another value. */
int qkv_custom_apply(const qkv_edit *edit, const qkv_view *view, uint64_t *changed, qkv_error *err);

#endif
