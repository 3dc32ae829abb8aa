/*
 * Edits: what to do to a tensor at a site.
 *
 * An edit is parsed once, for one model and one number of tokens, into membership maps (one byte
 * per layer, head, row, column), so that every later question (does it touch this row, do two edits
 * overlap) is a look-up.
 */
#ifndef QKV_RUN_EDIT_H
#define QKV_RUN_EDIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "model/model.h"
#include "qkv/plan.h"
#include "run/ops/op_keep.h"
#include "run/ops/op_mask.h"
#include "run/ops/op_quant.h"
#include "run/ops/operation.h"

typedef enum qkv_mean_axis {
    QKV_MEAN_HEAD,
    QKV_MEAN_TOKEN,
    QKV_MEAN_DIM,
    QKV_MEAN_SET,         /* over all tokens of all prompts of the set */
    QKV_MEAN_SET_POSITION /* over the prompts of the set that have the token, for each */
} qkv_mean_axis;

/* Which elements of a site: of layers, heads, rows (tokens or queries), and columns (keys) or
 * channels. NULL = all of them. */
typedef struct qkv_selector {
    qkv_site site;
    uint8_t *layers; /* n_layer; NULL for logits */
    char letter;     /* 'h' or 'g' as written, 0 when no heads were named */
    uint8_t *heads;  /* n_heads of them */
    int32_t n_heads; /* H for 'h', G for 'g': the most of all layers; in some fewer of them count */
    uint8_t *rows;
    uint8_t *cols;
    uint8_t *channels; /* in the order of captures; of sites other than maps */
} qkv_selector;

typedef struct qkv_edit {
    char *text;
    qkv_selector where;
    qkv_op op;
    unsigned flags;     /* QKV_EDIT_... */
    qkv_mean_axis axis; /* of mean */
    int others;         /* of mean over heads: the head itself is left out */
    float a, b;         /* factor, value, deviation; bounds of clamp */
    uint64_t seed;
    qkv_mask_rule mask;
    qkv_keep_rule keep;
    qkv_quant_rule quant;
    size_t source;                   /* of patch: index into the plan's sources */
    int64_t *from;                   /* of patch: the source's token for each; NULL: the same one */
    int resample;                    /* of patch: the source is drawn from the set */
    const struct qkv_custom *custom; /* of custom: the plan's */
    const struct qkv_vector *vector; /* of add, remove and set: the plan's; NULL: a number */
    int64_t vector_heads;            /* heads that it has rows for; 1: all have the same */
    int64_t vector_heads_named;      /* that the selector counts, where it has several */
    int64_t vector_tokens;           /* likewise tokens; 0: all have the same */
    char *note;                      /* what it has taken, for qkv_result_edit_note; may be NULL */
    uint64_t selected;               /* elements that the selector covers, over all layers */
} qkv_edit;

/* Means over the plan's set of prompts are of so many kinds. */
enum { QKV_SET_MEANS = 2 };

/* Which of them it is. */
static inline size_t qkv_edit_mean_kind(const qkv_edit *edit) {
    return edit->axis == QKV_MEAN_SET_POSITION;
}

void qkv_selector_release(qkv_selector *where);
void qkv_edit_release(qkv_edit *edit);

int qkv_selector_has_layer(const qkv_selector *where, int32_t layer);
/* The first of them; n_layer for a site without layers. */
int32_t qkv_selector_first_layer(const qkv_selector *where, const qkv_hparams *hp);
/* Is query head h of a layer covered? A key/value head covers all the query heads that share it. */
int qkv_selector_has_query_head(const qkv_selector *where, const qkv_hparams *hp, int32_t layer,
                                int32_t h);
/* Does it name query heads on a site whose heads are shared in the layer, so that a group must be split? */
int qkv_selector_splits(const qkv_selector *where, const qkv_hparams *hp, int32_t layer);
/* Does it in any of its layers? */
int qkv_selector_splits_any(const qkv_selector *where, const qkv_hparams *hp);
/* Do the two cover a common element? */
int qkv_selector_overlap(const qkv_selector *a, const qkv_selector *b, const qkv_hparams *hp,
                         int64_t n_tokens);
uint64_t qkv_selector_count(const qkv_selector *where, const qkv_hparams *hp, int64_t n_tokens);

#endif
