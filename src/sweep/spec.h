/* A specification while it is read: the JSON object, the sweep it becomes, and a plan that texts
 * are checked against. */
#ifndef QKV_SWEEP_SPEC_H
#define QKV_SWEEP_SPEC_H

#include <jansson.h>

#include "sweep/sweep.h"

typedef struct qkv_spec {
    qkv_sweep *sweep;
    const json_t *object;
    const qkv_own_prompts *prompts; /* tokenized already; NULL: the object has them */
    qkv_plan *plan;                 /* of the shortest prompt */
} qkv_spec;

/* spec_prompts.c */
int qkv_spec_prompts(qkv_spec *spec, qkv_error *err);
/* One prompt more, a text or a list of token ids; messages call it `name`. */
int qkv_spec_prompt(qkv_sweep *sweep, const json_t *value, const char *name, qkv_error *err);
/* One that is tokenized already. */
int qkv_spec_add_prompt(qkv_sweep *sweep, const qkv_own_prompt *prompt, qkv_error *err);
/* Whether the model takes it. */
int qkv_spec_prompt_check(const qkv_sweep *sweep, size_t number, const char *name, qkv_error *err);
int qkv_spec_parse_special(qkv_spec *spec, qkv_error *err);

/* spec_settings.c: operations and ε. */
int qkv_spec_settings(qkv_spec *spec, qkv_error *err);

/* spec_canonical.c: the text of the whole, and its hash. */
int qkv_spec_canonical(qkv_sweep *sweep, qkv_error *err);

/* spec.c */

/* The value of a key as a list: an array as it is, a text split at its commas, a number alone.
 * NULL when the key is not there. Release it with json_decref. */
int qkv_spec_list(const qkv_spec *spec, const char *key, json_t **list, qkv_error *err);

/* The keys that a specification may have. */
int qkv_spec_check_keys(const json_t *object, const char *const *known, size_t n, qkv_error *err);
/* Layers and heads: those that are named, each by itself. */
int qkv_spec_numbers(qkv_spec *spec, qkv_error *err);

#endif
