/* The specification of a sweep that patches: what patching.h describes, out of a JSON object. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "sweep/patching_paths.h"

static const char *const keys[] = {
    "align",  "by",      "clean", "corrupt",       "direction", "freeze_mlps", "heads",
    "layers", "metrics", "pairs", "parse_special", "positions", "receivers",   "targets"};

int qkv_patching_is_meant(const json_t *object) {
    return json_object_get(object, "clean") || json_object_get(object, "corrupt") ||
           json_object_get(object, "pairs");
}

/* ---- maps ---- */

static const struct {
    qkv_site site;
    int has_heads;
} sites[] = {{QKV_SITE_RESID_PRE, 0},  {QKV_SITE_ATTN_OUT, 0}, {QKV_SITE_MLP_OUT, 0},
             {QKV_SITE_RESID_POST, 0}, {QKV_SITE_Z, 1},        {QKV_SITE_Q, 1},
             {QKV_SITE_K, 1},          {QKV_SITE_V, 1},        {QKV_SITE_Q_IN, 1},
             {QKV_SITE_K_IN, 1},       {QKV_SITE_V_IN, 1}};
enum { N_SITES = sizeof sites / sizeof *sites };

static int fail_site(const char *name, qkv_error *err) {
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    for (size_t i = 0; i < N_SITES; i++) {
        qkv_nearest_try(&near, qkv_site_name(sites[i].site));
        qkv_text_printf(&known, "%s%s", i ? ", " : "", qkv_site_name(sites[i].site));
    }
    const int status =
        qkv_fail(err, QKV_ERR_SYNTAX, "'%s' is not a site that can be patched%s; these are: %s",
                 name, qkv_nearest_hint(&near), known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

static int add_map(qkv_patching *p, qkv_site site, int by_head, qkv_error *err) {
    const qkv_patch_map map = {site, by_head};
    for (size_t i = 0; i < p->n_maps; i++) {
        if (p->maps[i].site == site && p->maps[i].by_head == by_head)
            return qkv_fail(err, QKV_ERR_SYNTAX, "target '%s' is given twice", qkv_site_name(site));
    }
    return QKV_PUSH(p->maps, p->maps_capacity, p->n_maps, map) ? QKV_OK : qkv_fail_memory(err);
}

static int add_target(qkv_patching *p, const char *name, qkv_error *err) {
    size_t i = 0;
    while (i < N_SITES && strcmp(qkv_site_name(sites[i].site), name) != 0) i++;
    if (i == N_SITES) return fail_site(name, err);
    const int as_site = !p->by_position && !p->by_head;
    int status = QKV_OK;
    if (p->by_head && !p->by_position && !sites[i].has_heads)
        return qkv_fail(err, QKV_ERR_SYNTAX, "%s has no heads; patch it by position", name);
    if (p->by_position || (as_site && !sites[i].has_heads))
        status = add_map(p, sites[i].site, 0, err);
    if (status == QKV_OK && sites[i].has_heads && (p->by_head || as_site))
        status = add_map(p, sites[i].site, 1, err);
    return status;
}

static int read_by(qkv_spec *spec, qkv_error *err) {
    qkv_patching *p = spec->sweep->patching;
    json_t *list;
    int status = qkv_spec_list(spec, "by", &list, err);
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name && strcmp(name, "position") == 0)
            p->by_position = 1;
        else if (name && strcmp(name, "head") == 0)
            p->by_head = 1;
        else
            status = qkv_fail(err, QKV_ERR_SYNTAX, "by is position, head or both, not '%s'",
                              name ? name : "this");
    }
    json_decref(list);
    return status;
}

static int read_maps(qkv_spec *spec, qkv_error *err) {
    qkv_patching *p = spec->sweep->patching;
    json_t *list = NULL;
    int status = read_by(spec, err);
    if (status == QKV_OK) status = qkv_spec_list(spec, "targets", &list, err);
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        status = add_target(p, name ? name : "?", err);
    }
    if (status == QKV_OK && !list && !p->n_receivers && !(p->by_head && !p->by_position))
        status = add_target(p, "resid_pre", err);
    if (status == QKV_OK && !list) status = add_target(p, "z", err);
    json_decref(list);
    int has_positions = 0, has_heads = 0;
    for (size_t i = 0; i < p->n_maps; i++) {
        has_positions |= !p->maps[i].by_head;
        has_heads |= p->maps[i].by_head;
    }
    if (status != QKV_OK) return status;
    if (!has_heads && json_object_get(spec->object, "heads"))
        return qkv_fail(err, QKV_ERR_SYNTAX, "nothing is patched by head: leave out heads");
    if (has_positions) return qkv_patching_columns(spec, err);
    if (json_object_get(spec->object, "positions"))
        return qkv_fail(err, QKV_ERR_SYNTAX, "nothing is patched by position: leave out positions");
    return QKV_OK;
}

/* ---- the rest ---- */

static int read_directions(qkv_spec *spec, qkv_error *err) {
    qkv_patching *p = spec->sweep->patching;
    const json_t *given = json_object_get(spec->object, "direction");
    /* Of paths, as in the paper: the clean prompt is run. */
    const char *name = given ? json_string_value(given) : p->n_receivers ? "noise" : "denoise";
    const int both = name && strcmp(name, "both") == 0;
    if (both || (name && strcmp(name, "denoise") == 0))
        p->directions[p->n_directions++] = QKV_PATCH_CORRUPT;
    if (both || (name && strcmp(name, "noise") == 0))
        p->directions[p->n_directions++] = QKV_PATCH_CLEAN;
    if (p->n_directions) return QKV_OK;
    return qkv_fail(err, QKV_ERR_SYNTAX, "direction is denoise, noise or both, not '%s'",
                    name ? name : "this");
}

static int check_numbers(const qkv_sweep *s, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(s->model);
    if (!info->has_logits || !info->causal)
        return qkv_fail(err, QKV_ERR_PLAN, "%s is an encoder, which has no next token", info->path);
    if (s->layers[0] == QKV_TOGETHER || s->heads[0] == QKV_TOGETHER)
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "patching takes layers and heads one by one, not all together");
    return QKV_OK;
}

/* ---- the canonical text ---- */

static json_t *numbers_of(const int32_t *numbers, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n && list; i++) qkv_json_push(list, json_integer(numbers[i]));
    return list;
}

static json_t *prompt_of(const qkv_own_prompt *prompt) {
    return prompt->text ? json_string(prompt->text) : numbers_of(prompt->tokens, prompt->n_tokens);
}

static json_t *pairs_of(const qkv_sweep *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->patching->n_pairs && list; i++) {
        const qkv_patch_pair *pair = &s->patching->pairs[i];
        json_t *object = json_pack("{s:o, s:o}", "clean", prompt_of(&s->prompts[2 * i]), "corrupt",
                                   prompt_of(&s->prompts[2 * i + 1]));
        if (object && pair->texts[0]) qkv_json_put(object, "answer", json_string(pair->texts[0]));
        if (object && pair->texts[1]) qkv_json_put(object, "wrong", json_string(pair->texts[1]));
        qkv_json_push(list, object);
    }
    return list;
}

static json_t *targets_of(const qkv_patching *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_maps && list; i++) {
        if (i && p->maps[i].site == p->maps[i - 1].site) continue;
        qkv_json_push(list, json_string(qkv_site_name(p->maps[i].site)));
    }
    return list;
}

static json_t *receivers_of(const qkv_patching *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_receivers && list; i++)
        qkv_json_push(list, json_string(p->receivers[i].text));
    return list;
}

static json_t *metrics_of(const qkv_patching *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_metrics && list; i++)
        qkv_json_push(list, json_string(p->metrics[i].text));
    return list;
}

json_t *qkv_patching_json(const qkv_sweep *s) {
    const qkv_patching *p = s->patching;
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "direction",
                               p->n_directions == 2                    ? "both"
                               : p->directions[0] == QKV_PATCH_CORRUPT ? "denoise"
                                                                       : "noise",
                               "heads", numbers_of(s->heads, s->n_heads), "layers",
                               numbers_of(s->layers, s->n_layers), "metrics", metrics_of(p),
                               "pairs", pairs_of(s), "targets", targets_of(p));
    if (object && (p->by_position || p->by_head))
        qkv_json_put(object, "by",
                     json_string(!p->by_head       ? "position"
                                 : !p->by_position ? "head"
                                                   : "position,head"));
    if (object && p->n_positions)
        qkv_json_put(object, "positions", numbers_of(p->positions, p->n_positions));
    if (object && p->n_receivers) qkv_json_put(object, "receivers", receivers_of(p));
    if (object && p->freeze_mlps) qkv_json_put(object, "freeze_mlps", json_true());
    if (object && p->align) qkv_json_put(object, "align", json_string(p->align));
    if (object && s->parse_special) qkv_json_put(object, "parse_special", json_true());
    return object;
}

/* ---- the whole ---- */

int qkv_patching_read(qkv_spec *spec, qkv_error *err) {
    qkv_sweep *s = spec->sweep;
    s->patching = qkv_calloc(1, sizeof *s->patching);
    if (!s->patching) return qkv_fail_memory(err);
    s->at_output = s->isolated = 1;
    int status = qkv_spec_check_keys(spec->object, keys, sizeof keys / sizeof *keys, err);
    if (status == QKV_OK) status = qkv_spec_parse_special(spec, err);
    if (status == QKV_OK) status = qkv_patching_pairs(spec, err);
    if (status == QKV_OK) status = qkv_spec_numbers(spec, err);
    if (status == QKV_OK) status = check_numbers(s, err);
    if (status == QKV_OK) status = qkv_patching_receivers(spec, err);
    if (status == QKV_OK) status = read_maps(spec, err);
    if (status == QKV_OK) status = read_directions(spec, err);
    if (status == QKV_OK) status = qkv_patching_metrics(spec, err);
    if (status == QKV_OK) status = qkv_patching_count(s, err);
    return status == QKV_OK ? qkv_spec_canonical(s, err) : status;
}

void qkv_patching_free(qkv_patching *p) {
    if (!p) return;
    for (size_t i = 0; p->pairs && i < p->n_pairs; i++) {
        for (size_t k = 0; k < QKV_PATCH_PARTS; k++) {
            free(p->pairs[i].texts[k]);
            qkv_tokens_free(p->pairs[i].answers[k].tokens);
        }
        free(p->pairs[i].clean);
        free(p->pairs[i].corrupt);
    }
    for (size_t i = 0; i < p->n_metrics; i++) qkv_patching_metric_free(&p->metrics[i]);
    for (size_t i = 0; i < p->n_warnings; i++) free(p->warnings[i]);
    qkv_patching_receivers_free(p);
    free(p->pairs);
    free(p->align);
    free(p->maps);
    free(p->positions);
    free(p->metrics);
    free((void *)p->warnings);
    free(p);
}
