/*
 * What a plan holds: the prompt, other prompts to patch from, variants and captures, all checked.
 */
#ifndef QKV_RUN_PLAN_H
#define QKV_RUN_PLAN_H

#include "run/edit.h"
#include "run/notation/notation.h"
#include "run/site.h"

typedef struct qkv_variant {
    char *text;
    qkv_edit *edits;
    size_t n_edits;
} qkv_variant;

/* A reduction of the patterns of one layer. */
typedef struct qkv_wanted_reduction {
    qkv_reduction kind;
    int64_t side;   /* of a pooled picture */
    uint8_t *heads; /* H bytes, of the layer */
} qkv_wanted_reduction;

/* One captured site of one layer. */
typedef struct qkv_wanted {
    uint8_t wanted;
    /* 'h': heads counts query heads, also on k and v; 'g': key/value heads; 0: the site has none */
    char letter;
    uint8_t *heads; /* n_heads bytes */
    int32_t n_heads;
    qkv_wanted_reduction *reductions;
    size_t n_reductions;
    uint8_t *rows;     /* of sites without a layer: T bytes, the tokens wanted; NULL = all */
    uint8_t *channels; /* width bytes, the channels wanted; NULL = all */
    int64_t width;     /* of the site */
    uint8_t *observed; /* of patterns: H bytes, heads whose rows an observer gets; NULL = none */
} qkv_wanted;

/* What token selectors of edits mean in a text that is a prompt and what was, or will be, generated
 * after it. */
typedef struct qkv_edit_range {
    int64_t n_prompt;    /* negative numbers count from the end of the prompt */
    int64_t n_positions; /* tokens that may be named: at least as many as the plan has */
    int64_t first, end;  /* edits act on tokens [first, end) */
} qkv_edit_range;

struct qkv_plan {
    qkv_model *model; /* kept alive */
    int32_t *tokens;
    int64_t n_tokens;
    char *prompt; /* the text of the tokens; NULL: unknown */
    size_t prompt_length;
    qkv_edit_range text;
    struct qkv_source *sources; /* prompts to patch from: other_prompt.h */
    size_t n_sources;
    struct qkv_custom **customs; /* functions that edits may use */
    size_t n_customs, customs_capacity;
    struct qkv_edit_data *data; /* vectors that edits may name, and others own too; may be NULL */
    qkv_variant *variants;      /* variants[0] is the baseline, without edits */
    size_t n_variants, variants_capacity;
    char **captures; /* as they were given */
    size_t n_captures, captures_capacity;
    int observed;       /* some patterns are: the plan needs an observer */
    qkv_wanted *wanted; /* (n_layer + 1) × QKV_SITE_COUNT; that of sites without one is n_layer */
    uint8_t *prepared;  /* n_layer + 1: plans to come fork there */
    int prepares_maps;  /* and capture whole maps */
    int has_mistake;    /* the last variant was refused */
    qkv_span mistake;   /* where in its text */
};

/* As qkv_plan_new, for a text with other selectors than those of a prompt of its own. */
int qkv_plan_new_text(qkv_plan **out, const qkv_model *model, const int32_t *tokens,
                      size_t n_tokens, const qkv_edit_range *text, qkv_error *err);

/* Does an edit of some variant have one of the flags (QKV_EDIT_...)? */
int qkv_plan_has(const qkv_plan *plan, unsigned flags);

/* Is anything of the site captured, whole or reduced, or observed? */
int qkv_wanted_any(const qkv_wanted *wanted);

/* The capture of (layer, site); ->wanted says whether there is one. */
qkv_wanted *qkv_plan_wanted(const qkv_plan *plan, int32_t layer, qkv_site site);

/* Layer at which an edit or capture of the site counts: n_layer for sites without one. */
int32_t qkv_plan_layer(const qkv_plan *plan, qkv_site site, int32_t layer);

/* reach.c. Does the edit, in this layer, show in anything that is captured? */
int qkv_plan_edit_shows(const qkv_plan *plan, const qkv_variant *variant, const qkv_edit *edit,
                        int32_t layer);
/* Can another edit, which itself freezes nothing, change what this one selects in the layer? */
int qkv_plan_is_disturbed(const qkv_plan *plan, const qkv_variant *variant, const qkv_edit *edit,
                          int32_t layer);
/* Can any edit of the variant show at (site, layer)? */
int qkv_plan_variant_reaches(const qkv_plan *plan, size_t variant, qkv_site site, int32_t layer);

/* What only the whole plan can tell: there is a capture, captures of k and v say which heads where
 * a group is split. */
int qkv_plan_check(const qkv_plan *plan, qkv_error *err);

/*
 * What is wanted of one site of one layer, and adding to it. A capture that covers several layers is
 * added to all of them or, when one of them refuses it, to none.
 */

/* Adds `what` to what is wanted of one layer. It may leave `wanted` half changed when it fails. */
typedef int (*qkv_wanted_merge)(const qkv_plan *plan, int32_t layer, qkv_wanted *wanted,
                                const void *what, qkv_error *err);

/* The same for all layers that `where` selects; the plan is unchanged when one of them fails. */
int qkv_wanted_merge_layers(qkv_plan *plan, const qkv_selector *where, qkv_wanted_merge merge,
                            const void *what, qkv_error *err);

/* `what` is a qkv_capture. */
int qkv_wanted_merge_capture(const qkv_plan *plan, int32_t layer, qkv_wanted *wanted,
                             const void *what, qkv_error *err);

void qkv_wanted_release(qkv_wanted *wanted);

/*
 * What the mask leaves of a map: edits of scores that it hides would be lost.
 */

/* Fails where the mask hides all that an edit of a map selects, unless the edit itself gives the
 * cells a weight. */
int qkv_visible_check(const qkv_model *model, const qkv_edit *edit, int64_t n_tokens,
                      qkv_error *err);

/* Can it give weight to keys that the mask hides? */
int qkv_edit_gives_weight(const qkv_edit *edit);

#endif
