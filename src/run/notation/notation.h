/*
 * The notation of edits and captures: text to qkv_edit and qkv_selector. The grammar stands in
 * qkv/plan.h.
 *
 * Everything is checked against the model and the number of tokens, and every message names the
 * text it is about and the range that would have been valid.
 */
#ifndef QKV_RUN_NOTATION_H
#define QKV_RUN_NOTATION_H

#include <stddef.h>

#include "base/fail.h"
#include "model/model.h"
#include "qkv/hooks.h"
#include "run/edit.h"

/* A part of a text, in bytes. */
typedef struct qkv_span {
    size_t at, length;
} qkv_span;

/* What texts are checked against. */
typedef struct qkv_notation {
    const qkv_hparams *hp;
    int64_t n_tokens; /* that selectors may name */
    int64_t n_prompt; /* negative numbers count from here back; 0: from the last one */
    const struct qkv_source *sources; /* prompts that patch may name */
    size_t n_sources;
    struct qkv_custom *const *customs; /* functions that custom may use */
    size_t n_customs;
    const struct qkv_edit_data *data; /* vectors; NULL: none */
    qkv_span *mistake; /* of an edit that is refused, without the spaces around it; may be NULL */
} qkv_notation;

int qkv_notation_edit(const qkv_notation *notation, qkv_edit *edit, const char *text, size_t length,
                      qkv_error *err);

typedef struct qkv_capture {
    const char *text; /* as it was given, borrowed */
    qkv_selector where;
    qkv_reduction reduction;
    int64_t side; /* of a pooled map */
} qkv_capture;

/* Captures keep all tokens, except of the logits, which may name some: logits[-1]. */
int qkv_notation_capture(const qkv_notation *notation, qkv_capture *capture, const char *text,
                         qkv_error *err);

/* The name of a hook at the beginning of a text. */

/* How long it is, and its site and layer ("final_norm" has none); 0 and "" where the text does not
 * begin with a hook that has a site. */
size_t qkv_hook_read(char out[QKV_HOOK_SIZE], const char *text);

/*
 * Other ways to write a place, rewritten: a hook of TransformerLens becomes its site, and layers and
 * heads that are counted from the end get their numbers.
 *
 *     blocks.3.attn.hook_q.h-1=zero    q@3.h11=zero
 *     resid_post@-1[-1]                resid_post@31[-1]
 *
 * So plans, files and figures hold one way of writing, which says the same without the model. Tokens
 * and channels stay as they are: the same edit may be used for a prompt of another length. What cannot
 * be rewritten stays as it is, and the parser says what is wrong.
 */

/* *text is one edit or one capture, allocated, and is replaced. */
int qkv_notation_canonical(const qkv_hparams *hp, char **text, qkv_error *err);

#endif
