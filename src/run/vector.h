/*
 * Edits with a vector: add:@NAME,by=F, remove:@NAME and set:@NAME.
 */
#ifndef QKV_RUN_VECTOR_H
#define QKV_RUN_VECTOR_H

#include "base/text.h"
#include "run/edit_apply.h"
#include "run/notation.h"

/* Gives the edit the vector of this name. *why receives what is wrong, to be put behind the edit's
 * text. */
int qkv_vector_take(const qkv_notation *notation, qkv_edit *edit, const char *name, size_t length,
                    qkv_text *why);

/* Once the tokens are known that the edit acts on: the vector has a row for each, and a direction. */
int qkv_vector_check(const qkv_edit *edit, int64_t n_positions, qkv_error *err);

/* The row of the edit's vector that belongs to a row of the view, its channels in the original order;
 * NULL where the edit has none. */
const float *qkv_vector_row(const qkv_edit *edit, const qkv_view *view, int32_t head, int64_t t);

/* (x·v) / (v·v): how much of v is in x. */
double qkv_vector_share(const float *vector, const float *x, const qkv_view *view);

#endif
