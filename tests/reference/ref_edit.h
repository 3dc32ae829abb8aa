/*
 * Edits as the scalar reference knows them: a struct, never parsed from text. The text for the
 * library is written from the struct, so that the two readings of an edit are independent.
 */
#ifndef QKV_TESTS_REF_EDIT_H
#define QKV_TESTS_REF_EDIT_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/plan.h"

/* X(enumerator, notation, numbers after the colon; with names where they stand in the notation) */
#define REF_OP_LIST(X)                                                                             \
    X(SCALE, "scale", 1)                                                                           \
    X(SET, "set", 1)                                                                               \
    X(ZERO, "zero", 0)                                                                             \
    X(ADD, "add", 1)                                                                               \
    X(MEAN_HEAD, "mean:head", 0)                                                                   \
    X(MEAN_OTHERS, "mean:others", 0)                                                               \
    X(MEAN_TOKEN, "mean:token", 0)                                                                 \
    X(MEAN_DIM, "mean:dim", 0)                                                                     \
    X(NOISE, "noise", 1)                                                                           \
    X(CLAMP, "clamp", 2)                                                                           \
    X(PATCH, "patch:src", 0)                                                                       \
    X(MEAN_SET, "mean:set", 0)                                                                     \
    X(MEAN_POSITION, "mean:set,per=position", 0)                                                   \
    X(RESAMPLE, "patch:resample", 0)                                                               \
    X(PATCH_FAR, "patch:far", 0)                                                                   \
    X(ADD_VECTOR, "add:@", 1)                                                                      \
    X(REMOVE_VECTOR, "remove:@", 0)                                                                \
    X(SET_VECTOR, "set:@", 0)                                                                      \
    X(MASK, "mask", 0)                                                                             \
    X(MASK_RULE, "mask:sink=%d,recent=%d", 2)                                                      \
    X(MASK_CACHE, "mask:sink=%d,recent=%d,positions=cache", 2)                                     \
    X(MASK_BAND, "mask:band=%d", 1)                                                                \
    X(H2O, "keep:h2o,budget=%d,recent=%d", 2)                                                      \
    X(H2O_EVAL, "keep:h2o,budget=%d,recent=%d,rule=lm_eval", 2)                                    \
    X(SNAPKV, "keep:snapkv,budget=%d,window=%d,kernel=3,prompt=6", 2)                              \
    X(QUANT_CHANNEL, "quant:bits=%d,axis=channel,group=%d,keep=2", 2)                              \
    X(QUANT_TOKEN, "quant:bits=%d,axis=token,group=%d,keep=2", 2)                                  \
    X(QUANT_EVERY, "quant:bits=%d,axis=token,group=%d", 2)                                         \
    X(LATE_CHANNEL, "quant:bits=%d,axis=channel,group=%d,keep=4,per=query,prompt=5", 2)            \
    X(LATE_TOKEN, "quant:bits=%d,axis=token,group=%d,keep=4,per=query,prompt=5", 2)

/* REF_FREEZE stands beside the list: alone it can have no effect. */
#define REF_OP_ENUM(id, text, n) REF_##id,
typedef enum ref_op { REF_OP_LIST(REF_OP_ENUM) REF_OP_COUNT, REF_FREEZE } ref_op;
#undef REF_OP_ENUM

enum { REF_PROMPT = 6 }; /* that snapkv is told of */

/* Indices begin <= i < end; end 0 means all. */
typedef struct ref_range {
    int begin, end;
} ref_range;

/* Rows for tokens and for heads, 0: the same for all; and the width. */
typedef struct ref_shape {
    int tokens, heads, width;
} ref_shape;

typedef struct ref_edit {
    qkv_site site;
    uint64_t layers;    /* bit set; 0 means all */
    char head_kind;     /* 'h', 'g', or 0: no head part */
    uint64_t heads;     /* bit set; 0 means all */
    ref_range rows;     /* tokens; on scores and pattern the queries */
    ref_range cols;     /* keys, on scores and pattern only */
    ref_range channels; /* on all other sites, in the model's own order */
    ref_op op;
    double a, b;
    int seed;         /* of noise and of drawing */
    ref_shape vector; /* of the vector that is added, removed or set */
} ref_edit;

/* quant with per=query: queries see the first tokens so, and the others as they are. */
int ref_is_late(ref_op op);
/* How many tokens query i sees so. */
int ref_late_seen(ref_op op, int i);
/* keep and quant: an element depends on many others. */
int ref_is_compression(ref_op op);
/* Is it one with a vector? */
int ref_takes_vector(ref_op op);
/* A vector has its shape for a name, t9h4w8, and a number of its own for every element, so that each
 * test has the same one. */
void ref_vector_name(const ref_shape *shape, char *out, size_t size);
ref_shape ref_vector_named(const char *name);
double ref_vector_value(const ref_shape *shape, int head, int row, int col);

/* Can an edit of the site have the operation? */
int ref_allows(qkv_site site, ref_op op);

/* Writes the edit in the project's notation. */
void ref_edit_text(const ref_edit *edit, char *out, size_t size);

int ref_has(uint64_t set, int index);
int ref_in(ref_range range, int index);

/* A tensor seen as heads x rows x columns, whatever order it lies in. Sites without heads have
 * one. */
typedef struct ref_view {
    double *data;
    int n_head, n_row, n_col;
    size_t head_stride, row_stride;
    int n_alike; /* consecutive heads that see one key/value head; 0: 1 */
} ref_view;

double *ref_at(const ref_view *view, int head, int row, int col);

/* Noise of deviation 1, as every element of every site has its own: by seed, site, layer (of
 * logits: the number of layers), head as the edit counts heads, row, and channel in the model's own
 * order. */
double ref_noise(const ref_edit *edit, int layer, int head, int row, int col);

/* The value that the edit (not noise) gives to one element. `own` is the unedited tensor, `source` the other
 * prompt's, which may have one head per group. */
double ref_edit_value(const ref_edit *edit, const ref_view *own, const ref_view *source, int head,
                      int row, int col);

#endif
