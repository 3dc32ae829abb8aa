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
#include "run/op_keep.h"
#include "run/op_mask.h"
#include "run/op_quant.h"

/* X(enumerator, name, what stands behind the colon, what it does) */
#define QKV_OP_LIST(X)                                                                              \
    X(SCALE, "scale", "a factor", "multiplies by the factor")                                       \
    X(SET, "set", "a value, or a vector @FILE#NAME", "replaces by the value")                       \
    X(ZERO, "zero", "nothing", "replaces by 0")                                                     \
    X(ADD, "add", "a value, or a vector @FILE#NAME and optionally ,by=FACTOR", "adds the value")    \
    X(REMOVE, "remove", "a vector @FILE#NAME", "takes out what points in the vector's direction")   \
    X(MEAN, "mean", "head, others, token or dim; set, and optionally ,per=position",                \
      "replaces by the mean over heads, other heads, tokens or channels, or over a set of prompts") \
    X(NOISE, "noise", "a standard deviation, and optionally ,seed=N", "adds normal noise")          \
    X(CLAMP, "clamp", "a lower and an upper bound", "limits to the bounds")                         \
    X(PATCH, "patch", "the name of another prompt; or resample, and optionally ,seed=N",            \
      "takes the values of the other prompt, or of one drawn from a set")                           \
    X(MASK, "mask", "what to leave: sink=N,recent=N or band=N; or nothing",                         \
      "scores become -inf, but for what the arguments leave")                                       \
    X(KEEP, "keep", "h2o,budget=N,recent=N or snapkv,budget=N",                                     \
      "scores of keys that a small cache would have dropped become -inf")                           \
    X(QUANT, "quant", "bits=N,axis=channel or axis=token; optionally group=N,keep=N",               \
      "rounds to 2^bits levels between the ends of each group")                                     \
    X(FREEZE, "freeze", "nothing", "keeps the values of the unedited run")                          \
    X(CUSTOM, "custom", "the name of a function that the program has registered",                   \
      "takes what the function makes of them")

#define QKV_OP_ENUM(id, name, arguments, what) QKV_OP_##id,
typedef enum qkv_op { QKV_OP_LIST(QKV_OP_ENUM) QKV_OP_COUNT } qkv_op;
#undef QKV_OP_ENUM

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
    int32_t n_heads; /* H for 'h', G for 'g' */
    uint8_t *rows;
    uint8_t *cols;
    uint8_t *channels; /* in the order of captures; of sites other than maps */
} qkv_selector;

typedef struct qkv_edit {
    char *text;
    qkv_selector where;
    qkv_op op;
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
    int64_t vector_tokens;           /* likewise tokens; 0: all have the same */
    char *note;                      /* what it has taken, for qkv_result_edit_note; may be NULL */
    uint64_t selected;               /* elements that the selector covers, over all layers */
} qkv_edit;

enum { QKV_SET_MEANS = 2 };

/* Which of these kinds it is. */
static inline size_t qkv_edit_mean_kind(const qkv_edit *edit) {
    return edit->axis == QKV_MEAN_SET_POSITION;
}

/* Is it a mean over the plan's set of prompts? */
static inline int qkv_edit_takes_mean(const qkv_edit *edit) {
    return edit->op == QKV_OP_MEAN &&
           (edit->axis == QKV_MEAN_SET || edit->axis == QKV_MEAN_SET_POSITION);
}

void qkv_selector_release(qkv_selector *where);
void qkv_edit_release(qkv_edit *edit);

int qkv_selector_has_layer(const qkv_selector *where, int32_t layer);
/* Is query head h covered? A key/value head covers all the query heads that share it. */
int qkv_selector_has_query_head(const qkv_selector *where, const qkv_hparams *hp, int32_t h);
/* Does it name query heads on a site whose heads are shared, so that a group must be split? */
int qkv_selector_splits(const qkv_selector *where, const qkv_hparams *hp);
/* Do the two cover a common element? */
int qkv_selector_overlap(const qkv_selector *a, const qkv_selector *b, const qkv_hparams *hp,
                         int64_t n_tokens);
uint64_t qkv_selector_count(const qkv_selector *where, const qkv_hparams *hp, int64_t n_tokens);

#endif
