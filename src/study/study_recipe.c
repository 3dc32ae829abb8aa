/* Recipes of studies, written. See study_recipe.h. */
#include "study/study_recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "draw/draw.h"
#include "qkv/version.h"
#include "run/run.h"
#include "study/figure.h"
#include "study/study.h"

/* ---- inputs ---- */

static json_t *describe_tokens(const qkv_own_prompt *prompt) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        qkv_json_push(list, json_integer(prompt->tokens[i]));
    }
    return list;
}

/* Tokens are what counts; the text is for people, and so that what is made of it is the same. */
static json_t *describe_prompt(const qkv_own_prompt *prompt, const char *name) {
    json_t *input = json_pack("{s:o}", "tokens", describe_tokens(prompt));
    if (input && name) qkv_json_put(input, "name", qkv_json_text(name));
    if (!input || !prompt->text) return input;
    qkv_json_put(input, "text", qkv_json_string(prompt->text, prompt->length));
    if (prompt->flags & QKV_TOKENIZE_PARSE_SPECIAL)
        qkv_json_put(input, "parse_special", json_true());
    if (!(prompt->flags & QKV_TOKENIZE_ADD_SPECIAL))
        qkv_json_put(input, "add_special", json_false());
    return input;
}

/* To the recipe's "inputs"; `name` is that of all, NULL: each has its own, or none. */
static void add_inputs(json_t *recipe, const qkv_own_prompts *prompts, const char *name) {
    json_t *list = json_object_get(recipe, "inputs");
    for (size_t i = 0; i < prompts->n; i++) {
        const qkv_own_prompt *prompt = &prompts->items[i];
        qkv_json_push(list, describe_prompt(prompt, name ? name : prompt->name));
    }
}

/* ---- the id ---- */

int qkv_recipe_id(const json_t *recipe, char out[RECIPE_ID_SIZE], qkv_error *err) {
    static const char *const keys[] = {"format",       "kind",  "model_hash", "inputs",
                                       "sources",      "rows",  "options",    "cols",
                                       "results_hash", "study", "other_hash", "set"};
    char digest[QKV_FINGERPRINT_SIZE];
    json_t *work = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(recipe, keys[i]);
        if (value) qkv_json_put(work, keys[i], json_incref(value));
    }
    char *text = qkv_json_dump(work, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(work);
    if (!text) return qkv_fail_memory(err);
    qkv_fingerprint print;
    const int status = qkv_fingerprint_start(&print, err);
    if (status == QKV_OK) {
        qkv_fingerprint_add(&print, text, strlen(text));
        qkv_fingerprint_end(&print, digest);
        memcpy(out, digest, RECIPE_ID_SIZE - 1);
        out[RECIPE_ID_SIZE - 1] = '\0';
    }
    free(text);
    return status;
}

int qkv_recipe_finish(json_t *recipe, char id[RECIPE_ID_SIZE], char **text, qkv_error *err) {
    qkv_text out = {0};
    if (!recipe) return qkv_fail_memory(err);
    const int status = qkv_recipe_id(recipe, id, err);
    if (status != QKV_OK) return status;
    if (qkv_json_put(recipe, "id", json_string(id)) != 0) return qkv_fail_memory(err);
    qkv_json_append_value(&out, recipe);
    if (out.failed) {
        qkv_text_release(&out);
        return qkv_fail_memory(err);
    }
    *text = out.data;
    return QKV_OK;
}

/* ---- what all have ---- */

json_t *qkv_recipe_command(const char *const *words, size_t n) {
    if (n == 0) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, qkv_json_text(words[i]));
    return list;
}

static int add_model(json_t *recipe, const qkv_model *model, const char *name,
                     const char *hash_name, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(model, hash, err);
    if (status != QKV_OK) return status;
    const char *path = qkv_path_model(qkv_model_get_info(model)->path);
    qkv_json_put(recipe, name, qkv_json_text(path));
    qkv_json_put(recipe, hash_name, json_string(hash));
    return QKV_OK;
}

/* All but the options and what came out, with an empty list of inputs. What memory lacks for is told when the recipe is
 * finished: it is spoiled then. */
static int start(json_t **out, const char *kind, const qkv_session *session,
                 const char *const *command, size_t n_command, qkv_error *err) {
    const qkv_model *model = qkv_session_model(session);
    const char *notices = qkv_model_get_info(model)->notices;
    *out = json_pack("{s:i, s:s, s:s, s:s, s:s, s:o}", "format", RECIPE_FORMAT, "kind", kind,
                     "qkv_version", qkv_version(), "ggml_version", qkv_session_ggml(session),
                     "backend", qkv_session_backend(session), "command",
                     qkv_recipe_command(command, n_command));
    if (!*out) return qkv_fail_memory(err);
    const int status = add_model(*out, model, "model", "model_hash", err);
    if (status == QKV_OK && notices[0]) qkv_json_put(*out, "model_notices", qkv_json_text(notices));
    qkv_json_put(*out, "inputs", json_array());
    return status;
}

/* ---- a study ---- */

int qkv_study_make_recipe(qkv_study *study, const study_inputs *in, const void *options,
                          qkv_error *err) {
    const study_kind *kind = study->kind;
    const qkv_model_info *info = qkv_model_get_info(in->model);
    qkv_text_append_model(&study->model, info->label, info->path, info->weights_type);
    int status = start(&study->recipe, kind->name, in->session, (const char *const *)study->command,
                       study->n_command, err);
    json_t *recipe = study->recipe;
    if (status == QKV_OK && in->other)
        status = add_model(recipe, in->other_model, "other_model", "other_hash", err);
    if (status != QKV_OK) return status;
    add_inputs(recipe, &in->prompts, NULL);
    add_inputs(recipe, &in->edits.named, NULL);
    qkv_json_put(recipe, "options", qkv_fields_write(&kind->fields, options));
    status = qkv_recipe_add_numbers(recipe, study, err);
    return status == QKV_OK ? qkv_recipe_finish(recipe, study->id, &study->recipe_text, err)
                            : status;
}

int qkv_study_recipe_with(const qkv_study *study, const study_look *look, char **text,
                          qkv_error *err) {
    qkv_text out = {0};
    if (study->figure) { /* its recipe has the look in it */
        *text = qkv_strdup(study->recipe_text);
        return *text ? QKV_OK : qkv_fail_memory(err);
    }
    json_t *with = qkv_json_copy(study->recipe);
    json_t *fields = qkv_fields_write(&qkv_study_look_table, look);
    if (!with || !fields || qkv_json_put(with, "look", fields) != 0) {
        json_decref(with);
        return qkv_fail_memory(err);
    }
    qkv_json_append_value(&out, with);
    json_decref(with);
    if (!out.failed) return *text = out.data, QKV_OK;
    qkv_text_release(&out);
    return qkv_fail_memory(err);
}

/* ---- a figure ---- */

/* How it is drawn, chosen by the caller or by the figure. */
static json_t *describe_drawn(const qkv_figure *fig) {
    json_t *drawn = json_pack(
        "{s:s, s:s, s:s, s:s}", "scale", qkv_scale_name(fig->scale), "colormap",
        qkv_colormap_name(fig->colormap), "masked", qkv_masked_name(fig->masked), "pooling",
        qkv_pooling_name(fig->is_signed ? QKV_POOLING_MAGNITUDE : QKV_POOLING_LARGEST));
    if (drawn && fig->scale == QKV_SCALE_POWER)
        qkv_json_put(drawn, "gamma", qkv_recipe_number(fig->gamma));
    if (drawn && fig->scale == QKV_SCALE_LOG)
        qkv_json_put(drawn, "log_floor", qkv_recipe_number(qkv_figure_log_floor(fig)));
    return drawn;
}

/* What was asked and what was chosen. */
static int describe_figure(json_t *recipe, const qkv_figure *fig, qkv_error *err) {
    json_t *work = NULL, *look = NULL;
    add_inputs(recipe, &fig->prompts, NULL);
    add_inputs(recipe, &fig->sources, NULL);
    add_inputs(recipe, &fig->set, QKV_SET_PROMPT);
    const int status = qkv_figure_write_fields(fig->kind, &fig->options, &work, &look, err);
    if (status != QKV_OK) return status;
    json_t *rest = json_pack("{s:o, s:o, s:o, s:s, s:i, s:i, s:[o, o]}", "options", work, "look",
                             look, "drawn", describe_drawn(fig), "site", qkv_site_name(fig->site),
                             "layer", (int)fig->layer, "head", (int)fig->head, "range",
                             qkv_recipe_number(fig->low), qkv_recipe_number(fig->high));
    if (rest && fig->options.report) qkv_json_put(rest, "report", json_true());
    const int failed = !rest || qkv_json_put_all(recipe, rest) != 0;
    json_decref(rest);
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

int qkv_figure_make_recipe(qkv_figure *fig, const qkv_session *session, qkv_error *err) {
    const qkv_figure_options *o = &fig->options;
    json_t *recipe = NULL;
    int status =
        start(&recipe, qkv_figure_kind_name(fig->kind), session, o->command, o->n_command, err);
    if (status == QKV_OK) status = describe_figure(recipe, fig, err);
    if (status == QKV_OK) status = qkv_recipe_add_cells(recipe, fig, err);
    if (status == QKV_OK) status = qkv_recipe_finish(recipe, fig->id, &fig->recipe, err);
    json_decref(recipe);
    return status;
}
