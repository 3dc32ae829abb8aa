/* A specification while it is read: the JSON object, the sweep it becomes, and a plan that texts
 * are checked against. */
#ifndef QKV_SWEEP_SPEC_H
#define QKV_SWEEP_SPEC_H

#include <jansson.h>

#include "sweep/sweep.h"

typedef struct qkv_spec {
    qkv_sweep *sweep;
    const json_t *object;
    qkv_plan *plan; /* of the shortest prompt */
} qkv_spec;

/* spec_prompts.c */
int qkv_spec_prompts(qkv_spec *spec, qkv_error *err);

/* spec_settings.c: operations and ε. */
int qkv_spec_settings(qkv_spec *spec, qkv_error *err);

/* spec_canonical.c: the text of the whole, and its hash. */
int qkv_spec_canonical(qkv_sweep *sweep, qkv_error *err);

/* spec.c */

/* The value of a key as a list: an array as it is, a text split at its commas, a number alone.
 * NULL when the key is not there. Release it with json_decref. */
int qkv_spec_list(const qkv_spec *spec, const char *key, json_t **list, qkv_error *err);

#endif
