/* Reproductions: from a file to an object, and from that to a study or chart. */
#include "study/reproduce.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sized.h"
#include "study/figure.h"
#include "study/plot.h"
#include "study/prompt.h"
#include "study/recipe_file.h"

/* ---- reading ---- */

static json_t *parse(const char *text, size_t n) {
    return qkv_json_parse(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
}

static int fill(qkv_reproduction *r, const char *bytes, size_t n, const char *name,
                qkv_error *err) {
    qkv_text recipe = {0};
    int status = qkv_recipe_file_read(bytes, n, name, &recipe, &r->format, err);
    if (status != QKV_OK) {
        qkv_text_release(&recipe);
        return status;
    }
    r->text = recipe.data;
    /* In a recipe by itself these bytes could not stand: quotes in its strings are escaped. */
    if (strcmp(r->format, "json") == 0 && !qkv_find_first(bytes, n, "\"recipe\": {")) {
        r->format = "recipe";
    }
    r->tree = parse(recipe.data, recipe.length);
    if (!json_is_object(r->tree)) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: its recipe is not a JSON object", name);
    }
    status = qkv_reproduction_take(r, err);
    if (status == QKV_OK || status == QKV_ERR_MEMORY) return status;
    const qkv_error inner = err ? *err : (qkv_error){0};
    return qkv_fail(err, QKV_ERR_FORMAT, "the recipe of %s cannot be used: %s", name,
                    inner.message);
}

int qkv_reproduction_read(qkv_reproduction **out, const char *bytes, size_t n_bytes,
                          const char *name, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, bytes);
    QKV_NEED(err, name);
    qkv_reproduction *r = qkv_calloc(1, sizeof *r);
    if (!r) return qkv_fail_memory(err);
    const int status = fill(r, bytes, n_bytes, name, err);
    if (status == QKV_OK)
        *out = r;
    else
        qkv_reproduction_free(r);
    return status;
}

int qkv_reproduction_open(qkv_reproduction **out, const char *path, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, path);
    qkv_mapping map;
    int status = qkv_mapping_open(&map, path, err);
    if (status != QKV_OK) return status;
    status = qkv_reproduction_read(out, (const char *)map.data, map.size, path, err);
    qkv_mapping_close(&map);
    return status;
}

void qkv_reproduction_free(qkv_reproduction *r) {
    if (!r) return;
    for (size_t i = 0; i < r->n_prompts; i++) free((int32_t *)r->prompts[i].tokens);
    free(r->prompts);
    free(r->command);
    free(r->text);
    json_decref(r->tree);
    free(r);
}

int qkv_reproduction_get_info(const qkv_reproduction *r, qkv_reproduction_info *info,
                              qkv_error *err) {
    QKV_NEED(err, r);
    QKV_NEED(err, info);
    const qkv_reproduction_info own = {
        .is_plot = !r->study,
        .format = r->format,
        .kind = r->study ? r->study->name : json_string_value(json_object_get(r->tree, "kind")),
        .id = json_string_value(json_object_get(r->tree, "id")),
        .model = r->names[0],
        .model_hash = r->hashes[0],
        .results = r->names[1],
        .results_hash = r->hashes[1],
        .recipe = r->text,
        .is_study = r->study && !r->study->figure,
        .other_model = r->other_name,
        .other_hash = r->other_hash,
    };
    return qkv_sized_write(info, &own, sizeof own, "qkv_reproduction_info", err);
}

/* ---- making ---- */

/* A prompt is its text where that still gives these tokens, so that all that shows the text is the
 * same; else the tokens. */
static qkv_prompt choose_form(const qkv_prompt *from, const qkv_model *model) {
    qkv_prompt text = *from, tokens = *from;
    int32_t *made = NULL;
    size_t n = 0;
    text.tokens = NULL;
    text.n_tokens = 0;
    tokens.text = NULL;
    tokens.written = from->text;
    tokens.length = 0;
    if (!from->text) return tokens;
    const int same = qkv_prompt_tokenize(&text, model, &made, &n, NULL) == QKV_OK &&
                     n == from->n_tokens && memcmp(made, from->tokens, n * sizeof *made) == 0;
    qkv_tokens_free(made);
    return same ? text : tokens;
}

/* Everything but the run. */
static int set_up(qkv_study *study, const qkv_reproduction *r, const qkv_model *model,
                  qkv_error *err) {
    const json_t *look = json_object_get(r->tree, "look");
    int status = qkv_study_set_options(study, json_object_get(r->tree, "options"), err);
    if (status == QKV_OK && look) status = qkv_study_set_options(study, look, err);
    if (status == QKV_OK && r->study->figure && json_is_true(json_object_get(r->tree, "report")))
        status = qkv_study_set(study, "report", "true", err);
    /* It may be written as any kind of file. */
    if (status == QKV_OK) status = qkv_study_set(study, "page", "true", err);
    if (status == QKV_OK) status = qkv_study_set_command(study, r->command, r->n_command, err);
    for (size_t i = 0; i < r->n_prompts && status == QKV_OK; i++) {
        const qkv_prompt prompt = choose_form(&r->prompts[i], model);
        status = qkv_study_add_prompt(study, &prompt, err);
    }
    return status;
}

int qkv_reproduction_study(const qkv_reproduction *r, qkv_study **out, qkv_session *session,
                           qkv_session *other, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, r);
    QKV_NEED(err, session);
    if (!r->study) return qkv_fail(err, QKV_ERR_ARGUMENT, "it is a chart of a sweep");
    qkv_study *study = NULL;
    int status = qkv_study_new(&study, r->study->name, err);
    if (status == QKV_OK) status = set_up(study, r, qkv_session_model(session), err);
    if (status == QKV_OK) status = qkv_study_run(study, session, other, err);
    if (status == QKV_OK)
        *out = study;
    else
        qkv_study_free(study);
    return status;
}

int qkv_reproduction_plot(const qkv_reproduction *r, qkv_plot **out, qkv_sweep_reader *results,
                          qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, r);
    QKV_NEED(err, results);
    if (r->study) return qkv_fail(err, QKV_ERR_ARGUMENT, "it is not a chart of a sweep");
    qkv_plot_options o = r->plot;
    o.page = 1; /* it may be written as any kind of file */
    o.command = r->command;
    o.n_command = r->n_command;
    return qkv_plot_new(out, results, &o, err);
}

/* ---- files ---- */

int qkv_reproduction_insert(char **out, size_t *n_out, const char *bytes, size_t n_bytes,
                            const char *name, const char *recipe, qkv_error *err) {
    QKV_NEED(err, out);
    QKV_NEED(err, n_out);
    *out = NULL;
    *n_out = 0;
    QKV_NEED(err, bytes);
    QKV_NEED(err, name);
    QKV_NEED(err, recipe);
    qkv_text made = {0}, ascii = {0};
    qkv_reproduction *r = NULL;
    int status = qkv_reproduction_read(&r, recipe, strlen(recipe), "the recipe", err);
    /* As it is: the reproduction's own is in the format of this version. */
    json_t *tree = status == QKV_OK ? parse(r->text, strlen(r->text)) : NULL;
    if (tree) qkv_json_append_value(&ascii, tree);
    if (status == QKV_OK)
        status = !tree || ascii.failed
                     ? qkv_fail_memory(err)
                     : qkv_recipe_file_write(bytes, n_bytes, name, ascii.data, &made, err);
    json_decref(tree);
    qkv_reproduction_free(r);
    qkv_text_release(&ascii);
    if (status != QKV_OK) {
        qkv_text_release(&made);
        return status;
    }
    *out = made.data;
    *n_out = made.length;
    return QKV_OK;
}
