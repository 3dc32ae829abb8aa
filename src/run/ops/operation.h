/*
 * Operations of edits: one line each in the list below, one file each for what they do (op_NAME.c; the short
 * ones share op_number.c).
 *
 * What the planner, the graph and generation have to know about an operation is a flag here, never its name.
 * Arguments can make a difference (mean:head reads all heads, mean:token does not): `read` then changes the
 * flags of its edit.
 */
#ifndef QKV_RUN_OPERATION_H
#define QKV_RUN_OPERATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

struct qkv_cursor;
struct qkv_edit;
struct qkv_edit_row;
struct qkv_plan;
struct qkv_variant;
struct qkv_view;

enum qkv_edit_flag {
    /* where values come from: another prompt, the unedited run, means over the plan's set of prompts */
    QKV_EDIT_TAKES_PROMPT = 1 << 0,
    QKV_EDIT_TAKES_UNEDITED = 1 << 1, /* and so does nothing where no other edit changes anything */
    QKV_EDIT_TAKES_SET = 1 << 2,
    QKV_EDIT_TAKES = QKV_EDIT_TAKES_PROMPT | QKV_EDIT_TAKES_UNEDITED | QKV_EDIT_TAKES_SET,

    /* what a value depends on */
    QKV_EDIT_BY_TOKEN = 1 << 3, /* on its own token alone, among those of the prompt */
    QKV_EDIT_BY_QUERY = 1 << 4, /* on which query sees it: run/ops/by_query.h */
    QKV_EDIT_BY_HEAD =
        1 << 5, /* on the head's number: heads with equal inputs come out different */
    QKV_EDIT_SPREADS =
        1 << 6, /* on other heads and tokens, and so on what other edits change there */

    /* how it must be computed */
    QKV_EDIT_ALL_HEADS = 1 << 7, /* reads all heads of a token or a cell */
    QKV_EDIT_WHOLE_MAP = 1 << 8, /* of maps: reads all of a head's */
    QKV_EDIT_IN_ORDER = 1 << 9,  /* remembers earlier rows */
    QKV_EDIT_CALLS = 1 << 10,    /* calls a function of the caller's, from one thread */

    /* what it does to values */
    QKV_EDIT_HIDES = 1 << 11,      /* gives -inf on purpose; for scores only */
    QKV_EDIT_KEEPS_ZERO = 1 << 12, /* a weight of 0, which is what the mask gives, stays 0 */

    /* what it is written with */
    QKV_EDIT_HAS_NUMBER = 1 << 13,     /* edit->a is its factor, value or deviation */
    QKV_EDIT_MAY_BE_BARE = 1 << 14,    /* arguments may be left out */
    QKV_EDIT_NEEDS_CHANNELS = 1 << 15, /* not for maps */
};

/* X(enumerator, name, what is written after the colon, what it does, flags without QKV_EDIT_) */
#define QKV_OP_LIST(X)                                                                              \
    X(SCALE, scale, "a factor", "multiplies by the factor",                                         \
      F(BY_TOKEN) | F(KEEPS_ZERO) | F(HAS_NUMBER))                                                  \
    X(SET, set, "a value, or a vector @FILE#NAME", "replaces by the value",                         \
      F(BY_TOKEN) | F(HAS_NUMBER))                                                                  \
    X(ZERO, zero, "nothing", "replaces by 0", F(BY_TOKEN) | F(KEEPS_ZERO))                          \
    X(ADD, add, "a value, or a vector @FILE#NAME and optionally ,by=FACTOR", "adds the value",      \
      F(BY_TOKEN) | F(HAS_NUMBER))                                                                  \
    X(REMOVE, remove, "a vector @FILE#NAME", "takes out what points in the vector's direction", 0)  \
    X(MEAN, mean, "head, others, token or dim; set, and optionally ,per=position",                  \
      "replaces by the mean over heads, other heads, tokens or channels, or over a set of prompts", \
      F(SPREADS))                                                                                   \
    X(NOISE, noise, "a standard deviation, and optionally ,seed=N", "adds normal noise",            \
      F(BY_TOKEN) | F(BY_HEAD) | F(HAS_NUMBER))                                                     \
    X(CLAMP, clamp, "a lower and an upper bound", "limits to the bounds", F(BY_TOKEN))              \
    X(PATCH, patch, "the name of another prompt; or resample, and optionally ,seed=N",              \
      "takes the values of the other prompt, or of one drawn from a set",                           \
      F(TAKES_PROMPT) | F(BY_TOKEN) | F(KEEPS_ZERO))                                                \
    X(MASK, mask, "what to leave: sink=N,recent=N or band=N; or nothing",                           \
      "scores become -inf, but for what the arguments leave", F(HIDES) | F(MAY_BE_BARE))            \
    X(KEEP, keep, "h2o,budget=N,recent=N or snapkv,budget=N",                                       \
      "scores of keys that a small cache would have dropped become -inf",                           \
      F(HIDES) | F(SPREADS) | F(IN_ORDER))                                                          \
    X(QUANT, quant, "bits=N,axis=channel or axis=token; optionally group=N,keep=N",                 \
      "rounds to 2^bits levels between the ends of each group", F(SPREADS) | F(NEEDS_CHANNELS))     \
    X(FREEZE, freeze, "nothing", "keeps the values of the unedited run",                            \
      F(TAKES_UNEDITED) | F(WHOLE_MAP) | F(KEEPS_ZERO))                                             \
    X(CUSTOM, custom, "the name of a function that the program has registered",                     \
      "takes what the function makes of them", F(CALLS) | F(SPREADS) | F(BY_HEAD) | F(WHOLE_MAP))

#define QKV_OP_ENUM(id, name, arguments, what, flags) QKV_OP_##id,
typedef enum qkv_op { QKV_OP_LIST(QKV_OP_ENUM) QKV_OP_COUNT } qkv_op;
#undef QKV_OP_ENUM

/* What an operation does. Functions may be NULL where nothing is said. */
typedef struct qkv_operation {
    /* Reads the arguments, after the colon. NULL: it has none. */
    int (*read)(struct qkv_cursor *c, struct qkv_edit *edit);
    /* Checks a variant that has such edits among others, once they are all known. */
    int (*check)(const struct qkv_plan *plan, struct qkv_variant *variant, qkv_error *err);
    /* Why the edit cannot be applied token by token, to a text that grows; NULL: it can. */
    const char *(*needs_text)(const struct qkv_edit *edit);
    /* The new value of element c of a row, from the row as it was. NULL: apply_head does all. */
    float (*value)(const struct qkv_edit_row *row, int64_t c);
    /* Before the values of a head, and of a row: what is computed once for all of them. `scratch` has room for
     * 2 × width and is the row's too. */
    void (*begin_head)(const struct qkv_edit *edit, const struct qkv_view *view, int32_t head,
                       float *scratch);
    void (*begin_row)(struct qkv_edit_row *row);
    /* Rows [first, end) of one head. Returns how many elements got another value. */
    uint64_t (*apply_head)(const struct qkv_edit *edit, const struct qkv_view *view, int32_t head,
                           int64_t first, int64_t end, float *scratch);
} qkv_operation;

#define QKV_OP_EXTERN(id, name, arguments, what, flags)                                            \
    extern const qkv_operation qkv_operation_##name;
QKV_OP_LIST(QKV_OP_EXTERN)
#undef QKV_OP_EXTERN

const qkv_operation *qkv_op_get(qkv_op op);
/* Those of the list, which arguments may change: edits have their own. */
unsigned qkv_op_flags(qkv_op op);
/* Gives the edit its operation and the operation's flags. */
void qkv_edit_set_op(struct qkv_edit *edit, qkv_op op);

#endif
