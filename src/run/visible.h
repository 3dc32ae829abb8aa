/*
 * What the mask leaves of a map: edits of scores that it hides would be lost.
 */
#ifndef QKV_RUN_VISIBLE_H
#define QKV_RUN_VISIBLE_H

#include "run/edit.h"

/* Fails where the mask hides all that an edit of a map selects, unless the edit itself gives the
 * cells a weight. */
int qkv_visible_check(const qkv_model *model, const qkv_edit *edit, int64_t n_tokens,
                      qkv_error *err);

/* Does the operation leave a weight of 0, which is what the mask gives, as it is? */
int qkv_edit_keeps_zero(const qkv_edit *edit);

#endif
