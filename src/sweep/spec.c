/*
 * Specifications: a JSON object becomes a sweep, or an error that names what is wrong in it.
 *
 * Lists may be written as JSON arrays or, as on the command line, as text: "0,2,5-7", "q,k".
 */
#include "sweep/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "run/run.h"
#include "sweep/patching.h"
#include "sweep/sweep.h"

static const char *const sweep_keys[] = {"at",      "epsilon", "heads", "layers",
                                         "length",  "metrics", "ops",   "parse_special",
                                         "prompts", "targets"};

/* ---- reading ---- */

int qkv_spec_check_keys(const json_t *object, const char *const *known_keys, size_t n,
                        qkv_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t i = 0;
        while (i < n && strcmp(key, known_keys[i]) != 0) i++;
        if (i < n) continue;
        qkv_text known = {0};
        qkv_nearest near = qkv_nearest_of(key, strlen(key));
        for (i = 0; i < n; i++) {
            qkv_text_printf(&known, "%s%s", i ? ", " : "", known_keys[i]);
            qkv_nearest_try(&near, known_keys[i]);
        }
        int status = qkv_fail(err, QKV_ERR_SYNTAX, "a sweep has no '%s'%s; it has %s", key,
                              qkv_nearest_hint(&near), known.data ? known.data : "");
        qkv_text_release(&known);
        return status;
    }
    return QKV_OK;
}

static json_t *split(const char *text) {
    json_t *list = json_array();
    for (const char *at = text; list; at++) {
        size_t n = strcspn(at, ",");
        if (qkv_json_push(list, json_stringn(at, n)) != 0) {
            json_decref(list);
            return NULL;
        }
        at += n;
        if (!*at) break;
    }
    return list;
}

int qkv_spec_list(const qkv_spec *spec, const char *key, json_t **list, qkv_error *err) {
    json_t *value = json_object_get(spec->object, key);
    *list = NULL;
    if (!value) return QKV_OK;
    if (json_is_array(value)) {
        *list = json_incref(value);
    } else if (json_is_string(value)) {
        *list = split(json_string_value(value));
    } else if (json_is_number(value)) {
        *list = json_pack("[O]", value);
    } else {
        return qkv_fail(err, QKV_ERR_SYNTAX, "%s must be a list or a text", key);
    }
    if (!*list) return qkv_fail_memory(err);
    if (json_array_size(*list)) return QKV_OK;
    json_decref(*list);
    *list = NULL;
    return qkv_fail(err, QKV_ERR_SYNTAX, "%s is an empty list", key);
}

/* ---- layers and heads ---- */

/* The list as notation has it, "0,2,5-7"; other characters would mean something else there. */
static int selector_text(const qkv_spec *spec, const char *key, char **text, qkv_error *err) {
    json_t *list;
    *text = NULL;
    int status = qkv_spec_list(spec, key, &list, err);
    if (status != QKV_OK) return status;
    qkv_text all = {0};
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++) {
        const json_t *item = json_array_get(list, i);
        const char *piece = json_string_value(item);
        if (i) qkv_text_puts(&all, ",");
        if (json_is_integer(item)) {
            qkv_text_printf(&all, "%lld", (long long)json_integer_value(item));
        } else if (piece && piece[strspn(piece, "0123456789-*")] == '\0') {
            qkv_text_puts(&all, piece);
        } else {
            status = qkv_fail(err, QKV_ERR_SYNTAX,
                              "%s are written 3, 2-4, 0,2,5-7, * or all; '%s' is not one", key,
                              piece ? piece : "this");
        }
    }
    if (status == QKV_OK && !list) qkv_text_puts(&all, "*");
    json_decref(list);
    if (status == QKV_OK && all.failed) status = qkv_fail_memory(err);
    if (status != QKV_OK) qkv_text_release(&all);
    *text = all.data;
    return status;
}

static int members(const uint8_t *map, size_t n, int32_t **numbers, size_t *count, qkv_error *err) {
    *numbers = qkv_calloc(n, sizeof **numbers);
    if (!*numbers) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (map[i]) (*numbers)[(*count)++] = (int32_t)i;
    }
    return QKV_OK;
}

/* "all": one edit of all of them together. */
static int is_together(const qkv_spec *spec, const char *key) {
    const char *text = json_string_value(json_object_get(spec->object, key));
    return text && strcmp(text, "all") == 0;
}

static int read_numbers(qkv_spec *spec, const char *key, const char *format, int of_heads,
                        qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(spec->sweep->model);
    size_t n_layers = (size_t)info->n_layer, n_heads = (size_t)info->n_head;
    int32_t **numbers = of_heads ? &spec->sweep->heads : &spec->sweep->layers;
    size_t *count = of_heads ? &spec->sweep->n_heads : &spec->sweep->n_layers;
    if (is_together(spec, key)) {
        *numbers = qkv_calloc(1, sizeof **numbers);
        if (!*numbers) return qkv_fail_memory(err);
        (*numbers)[(*count)++] = QKV_TOGETHER;
        return QKV_OK;
    }
    char *list = NULL;
    qkv_text what = {0};
    uint8_t *maps = qkv_calloc(n_layers + n_heads, 1);
    int status = maps ? selector_text(spec, key, &list, err) : qkv_fail_memory(err);
    if (status == QKV_OK) {
        qkv_error problem = {0};
        qkv_text_printf(&what, "%s%s", format, list);
        status = what.failed
                     ? qkv_fail_memory(&problem)
                     : qkv_plan_select(spec->plan, what.data, maps, maps + n_layers, &problem);
        /* The notation names the text it was given, which is not the user's. */
        const char *detail = strstr(problem.message, "': ");
        if (status != QKV_OK)
            qkv_fail(err, status, "%s %s: %s", key, list, detail ? detail + 3 : problem.message);
    }
    if (status == QKV_OK)
        status = members(of_heads ? maps + n_layers : maps, of_heads ? n_heads : n_layers, numbers,
                         count, err);
    qkv_text_release(&what);
    free(list);
    free(maps);
    return status;
}

/* ---- targets ---- */

static int has_heads(qkv_site site) {
    static const qkv_site with[] = {QKV_SITE_Q,       QKV_SITE_K,     QKV_SITE_V,
                                    QKV_SITE_Q_ROT,   QKV_SITE_K_ROT, QKV_SITE_SCORES,
                                    QKV_SITE_PATTERN, QKV_SITE_Z,     QKV_SITE_Q_IN,
                                    QKV_SITE_K_IN,    QKV_SITE_V_IN};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        if (with[i] == site) return 1;
    }
    return 0;
}

static int fail_target(const char *name, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    for (int i = 0; i < QKV_SITE_COUNT; i++) {
        if (has_heads((qkv_site)i)) qkv_nearest_try(&near, qkv_site_name((qkv_site)i));
    }
    return qkv_fail(err, QKV_ERR_SYNTAX,
                    "there is no target '%s'%s; targets are q, k, v, q_rot, k_rot, scores, "
                    "pattern, z, q_in, k_in, v_in, and none for the baseline",
                    name, qkv_nearest_hint(&near));
}

static int add_target(qkv_sweep *sweep, const char *name, qkv_error *err) {
    if (name && strcmp(name, "none") == 0) {
        if (sweep->baseline) return qkv_fail(err, QKV_ERR_SYNTAX, "target 'none' is given twice");
        sweep->baseline = 1;
        return QKV_OK;
    }
    qkv_site site = name ? qkv_site_by_name(name) : QKV_SITE_COUNT;
    if (site == QKV_SITE_COUNT || !has_heads(site)) return fail_target(name ? name : "?", err);
    for (size_t i = 0; i < sweep->n_targets; i++) {
        if (sweep->targets[i] == site)
            return qkv_fail(err, QKV_ERR_SYNTAX, "target '%s' is given twice", name);
    }
    if (!QKV_PUSH(sweep->targets, sweep->targets_capacity, sweep->n_targets, site))
        return qkv_fail_memory(err);
    return QKV_OK;
}

static int read_targets(qkv_spec *spec, qkv_error *err) {
    static const char *const defaults[] = {"q", "k", "v"};
    json_t *list;
    int status = qkv_spec_list(spec, "targets", &list, err);
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++)
        status = add_target(spec->sweep, json_string_value(json_array_get(list, i)), err);
    for (size_t i = 0; i < 3 && !list && status == QKV_OK; i++)
        status = add_target(spec->sweep, defaults[i], err);
    json_decref(list);
    return status;
}

/* ---- metrics ---- */

static int read_metric_list(qkv_spec *spec, const char *defaults, qkv_error *err) {
    json_t *list;
    qkv_text text = {0};
    int status = qkv_spec_list(spec, "metrics", &list, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name)
            status = qkv_fail(err, QKV_ERR_SYNTAX,
                              "metrics must be names; 'qkv metrics' lists "
                              "them");
        qkv_text_printf(&text, "%s%s", i ? "," : "", name ? name : "");
    }
    if (!list) qkv_text_puts(&text, defaults);
    json_decref(list);
    if (status == QKV_OK && text.failed) status = qkv_fail_memory(err);
    if (status != QKV_OK) qkv_text_release(&text);
    spec->sweep->metrics = text.data;
    return status;
}

/* Looks at what the metrics need: where they are measured, and what cells may share. */
static int check_metrics(qkv_spec *spec, int at_given, qkv_error *err) {
    qkv_sweep *s = spec->sweep;
    int looks_at_patterns = 0;
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_measure_info(s->measure, i)); i++, s->n_metrics++) {
        if (info->scope == QKV_SCOPE_SET)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "metric '%s' is of all prompts together, not of a cell", info->name);
        int of_output = info->scope == QKV_SCOPE_VARIANT;
        if (i == 0 && !at_given) s->at_output = of_output;
        if (of_output != s->at_output)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "metric '%s' is measured at the %s; sweep it with at %s", info->name,
                            of_output ? "output" : "edited layer", of_output ? "output" : "layer");
        if (info->scope == QKV_SCOPE_HEAD && s->heads[0] == QKV_TOGETHER)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "metric '%s' is of a head; name the heads rather than all", info->name);
        s->isolated |= info->scope != QKV_SCOPE_HEAD || strcmp(info->needs, "z") == 0;
        looks_at_patterns |= strncmp(info->needs, "pattern", 7) == 0;
    }
    if (!s->at_output && s->layers[0] == QKV_TOGETHER)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "layers edited all together have no layer of their own to measure at; "
                        "sweep with at output");
    int shows = 0;
    for (size_t i = 0; i < s->n_targets; i++) {
        const qkv_site site = s->targets[i];
        shows |= site != QKV_SITE_V && site != QKV_SITE_Z && site != QKV_SITE_V_IN;
        /* Some models normalise queries or keys of all heads together. */
        s->isolated |= site == QKV_SITE_Q_IN || site == QKV_SITE_K_IN;
    }
    s->anchored = !s->isolated && !(shows && looks_at_patterns);
    return QKV_OK;
}

static int read_metrics(qkv_spec *spec, qkv_error *err) {
    const json_t *at = json_object_get(spec->object, "at");
    const char *place = json_string_value(at);
    if (at && (!place || (strcmp(place, "layer") != 0 && strcmp(place, "output") != 0)))
        return qkv_fail(err, QKV_ERR_SYNTAX, "at is layer or output, not '%s'",
                        place ? place : "this");
    spec->sweep->at_output = place && strcmp(place, "output") == 0;
    int status = read_metric_list(
        spec, spec->sweep->at_output ? "output_kl,delta_loss,top1_changed" : "sink,entropy_norm,tv",
        err);
    if (status == QKV_OK)
        status = qkv_measure_new(&spec->sweep->measure, spec->sweep->metrics, NULL, err);
    return status == QKV_OK ? check_metrics(spec, at != NULL, err) : status;
}

/* ---- the whole ---- */

static int make_plan(qkv_spec *spec, qkv_error *err) {
    const qkv_own_prompt *shortest = &spec->sweep->prompts[0];
    for (size_t i = 1; i < spec->sweep->n_prompts; i++) {
        if (spec->sweep->prompts[i].n_tokens < shortest->n_tokens)
            shortest = &spec->sweep->prompts[i];
    }
    return qkv_plan_new(&spec->plan, spec->sweep->model, shortest->tokens, shortest->n_tokens, err);
}

int qkv_spec_numbers(qkv_spec *spec, qkv_error *err) {
    int status = make_plan(spec, err);
    if (status == QKV_OK) status = read_numbers(spec, "layers", "pattern@", 0, err);
    return status == QKV_OK ? read_numbers(spec, "heads", "pattern@*.h", 1, err) : status;
}

static int read_spec(qkv_spec *spec, qkv_error *err) {
    if (qkv_patching_is_meant(spec->object)) return qkv_patching_read(spec, err);
    int status =
        qkv_spec_check_keys(spec->object, sweep_keys, sizeof sweep_keys / sizeof *sweep_keys, err);
    if (status == QKV_OK) status = qkv_spec_prompts(spec, err);
    if (status == QKV_OK) status = qkv_spec_numbers(spec, err);
    if (status == QKV_OK) status = read_targets(spec, err);
    if (status == QKV_OK) status = qkv_spec_settings(spec, err);
    if (status == QKV_OK) status = read_metrics(spec, err);
    if (status == QKV_OK) status = qkv_sweep_count(spec->sweep, err);
    if (status == QKV_OK) status = qkv_spec_canonical(spec->sweep, err);
    return status;
}

int qkv_sweep_make(qkv_sweep **out, const qkv_model *model, const json_t *object,
                   const qkv_own_prompts *prompts, qkv_error *err) {
    qkv_sweep *sweep = qkv_calloc(1, sizeof *sweep);
    qkv_spec spec = {.sweep = sweep, .object = object, .prompts = prompts};
    *out = NULL;
    if (!sweep) return qkv_fail_memory(err);
    atomic_init(&sweep->n_owners, 1);
    sweep->model = qkv_model_retain(model);
    const int status = read_spec(&spec, err);
    qkv_plan_free(spec.plan);
    if (status == QKV_OK)
        *out = sweep;
    else
        qkv_sweep_free(sweep);
    return status;
}

int qkv_sweep_new(qkv_sweep **out, const qkv_model *model, const char *text, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, model);
    if (!text) return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: no spec was given", __func__);
    json_error_t problem;
    json_t *object = qkv_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, &problem);
    if (!object)
        return qkv_fail(err, QKV_ERR_SYNTAX, "line %d of the sweep is not JSON: %s", problem.line,
                        problem.text);
    const int status =
        json_is_object(object)
            ? qkv_sweep_make(out, model, object, NULL, err)
            : qkv_fail(err, QKV_ERR_SYNTAX, "a sweep is a JSON object, {\"prompts\": ...}");
    json_decref(object);
    return status;
}

qkv_sweep *qkv_sweep_retain(const qkv_sweep *sweep) {
    qkv_sweep *counted = (qkv_sweep *)sweep; /* nothing else about it changes */
    atomic_fetch_add_explicit(&counted->n_owners, 1, memory_order_relaxed);
    return counted;
}

void qkv_sweep_free(qkv_sweep *sweep) {
    if (!sweep) return;
    if (atomic_fetch_sub_explicit(&sweep->n_owners, 1, memory_order_acq_rel) > 1) return;
    for (size_t i = 0; i < sweep->n_prompts; i++) qkv_own_prompt_release(&sweep->prompts[i]);
    for (size_t i = 0; i < sweep->n_settings; i++) {
        free(sweep->settings[i].op);
        free(sweep->settings[i].text);
    }
    free(sweep->prompts);
    free(sweep->settings);
    free(sweep->layers);
    free(sweep->heads);
    free(sweep->targets);
    free(sweep->metrics);
    free(sweep->json);
    qkv_patching_free(sweep->patching);
    qkv_measure_free(sweep->measure);
    qkv_model_free(sweep->model);
    free(sweep);
}

int qkv_sweep_patches(const qkv_sweep *sweep) {
    return sweep && sweep->patching;
}

size_t qkv_sweep_n_prompts(const qkv_sweep *sweep) {
    return sweep ? sweep->n_prompts : 0;
}

size_t qkv_sweep_n_metrics(const qkv_sweep *sweep) {
    return sweep ? sweep->n_metrics : 0;
}

const char *qkv_sweep_metric(const qkv_sweep *sweep, size_t index) {
    if (!sweep) return NULL;
    if (!sweep->patching) return qkv_measure_text(sweep->measure, index);
    return index < sweep->n_metrics ? sweep->patching->metrics[index].text : NULL;
}

const char *qkv_sweep_warning(const qkv_sweep *sweep, size_t index) {
    const qkv_patching *p = sweep ? sweep->patching : NULL;
    return p && index < p->n_warnings ? p->warnings[index] : NULL;
}

const char *qkv_sweep_spec(const qkv_sweep *sweep) {
    return sweep ? sweep->json : NULL;
}

const char *qkv_sweep_hash(const qkv_sweep *sweep) {
    return sweep ? sweep->hash : NULL;
}
