/*
 * Functions that a caller registered in a plan, for edits that say custom:NAME. Plans that are made of
 * one another (those of a generator's texts) own them together.
 */
#ifndef QKV_RUN_CUSTOM_H
#define QKV_RUN_CUSTOM_H

#include "qkv/custom.h"
#include "run/edit_apply.h"

typedef struct qkv_custom qkv_custom;

const char *qkv_custom_name(const qkv_custom *custom);
int qkv_custom_is_by_token(const qkv_custom *custom);
/* One more plan has the functions of another one. */
int qkv_plan_share_customs(qkv_plan *plan, const qkv_plan *from, qkv_error *err);
/* Gives up the part of one plan. */
void qkv_custom_free(qkv_custom *custom);

/* Calls the function of an edit on what it selects of the view, and writes the result to view->dst.
 * *changed receives how many elements got another value. */
int qkv_custom_apply(const qkv_edit *edit, const qkv_view *view, uint64_t *changed, qkv_error *err);

#endif
