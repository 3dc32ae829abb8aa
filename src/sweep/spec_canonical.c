/* The canonical text of a specification: two that mean the same cells in the same order are the
 * same text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "sweep/patching.h"
#include "sweep/sweep.h"

static json_t *numbers_of(const int32_t *numbers, size_t n) {
    if (n == 1 && numbers[0] == QKV_TOGETHER) return json_string("all");
    json_t *list = json_array();
    for (size_t i = 0; i < n && list; i++) qkv_json_push(list, json_integer(numbers[i]));
    return list;
}

static json_t *prompts_of(const qkv_sweep *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_prompts && list; i++) {
        const qkv_own_prompt *p = &s->prompts[i];
        qkv_json_push(list, p->text ? json_string(p->text) : numbers_of(p->tokens, p->n_tokens));
    }
    return list;
}

static json_t *targets_of(const qkv_sweep *s) {
    json_t *list = json_array();
    if (list && s->baseline) qkv_json_push(list, json_string("none"));
    for (size_t i = 0; i < s->n_targets && list; i++)
        qkv_json_push(list, json_string(qkv_site_name(s->targets[i])));
    return list;
}

static json_t *ops_of(const qkv_sweep *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_settings && list; i++)
        qkv_json_push(list, json_string(s->settings[i].text));
    return list;
}

static json_t *metrics_of(const qkv_sweep *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_metrics && list; i++)
        qkv_json_push(list, json_string(qkv_sweep_metric(s, i)));
    return list;
}

static json_t *sweep_json(const qkv_sweep *sweep) {
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "at", sweep->at_output ? "output" : "layer",
                  "heads", numbers_of(sweep->heads, sweep->n_heads), "layers",
                  numbers_of(sweep->layers, sweep->n_layers), "metrics", metrics_of(sweep),
                  "prompts", prompts_of(sweep), "targets", targets_of(sweep));
    /* Of the baseline alone there are none, and a specification with an empty list is refused. */
    if (object && sweep->n_settings) qkv_json_put(object, "ops", ops_of(sweep));
    if (object && sweep->length) qkv_json_put(object, "length", json_integer(sweep->length));
    if (object && sweep->parse_special) qkv_json_put(object, "parse_special", json_true());
    return object;
}

int qkv_spec_canonical(qkv_sweep *sweep, qkv_error *err) {
    json_t *object = sweep->patching ? qkv_patching_json(sweep) : sweep_json(sweep);
    sweep->json = object ? qkv_json_dump(object, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(object);
    if (!sweep->json) return qkv_fail_memory(err);
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits(sweep->json, strlen(sweep->json)));
    for (size_t i = 0; i < sizeof bytes.digest; i++)
        snprintf(sweep->hash + 2 * i, 3, "%02x", bytes.digest[i]);
    return QKV_OK;
}
