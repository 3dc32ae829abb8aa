/* A study from a recipe that people write: {"study": KIND, "options": {...}}, or {"sweep": {...}, "tables": [...]}. */
#include <string.h>

#include "base/json.h"
#include "study/recipe.h"
#include "study/study.h"

static int check_keys(const json_t *recipe, qkv_error *err) {
    static const char *const known[] = {"title", "about", "study", "options", "prompts"};
    const char *key;
    json_t *value;
    if (!json_object_get(recipe, "study"))
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "a recipe has 'study' or 'sweep', and this one has neither");
    json_object_foreach((json_t *)recipe, key, value) {
        size_t i = 0, n = sizeof known / sizeof *known;
        while (i < n && strcmp(key, known[i]) != 0) i++;
        if (i == n)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "the recipe of a study has no '%.80s'; it has title, about, study, "
                            "options, prompts",
                            key);
    }
    const json_t *options = json_object_get(recipe, "options");
    if (!json_is_string(json_object_get(recipe, "study")) || (options && !json_is_object(options)))
        return qkv_fail(err, QKV_ERR_FORMAT, "'study' must be a name, and 'options' an object");
    return QKV_OK;
}

static int make_kind(qkv_study **out, const json_t *recipe, qkv_error *err) {
    int status = check_keys(recipe, err);
    if (status != QKV_OK) return status;
    const char *name = json_string_value(json_object_get(recipe, "study"));
    const study_kind *kind = qkv_study_find_recorded(name);
    status = qkv_study_new(out, kind ? kind->name : name, err);
    const json_t *options = json_object_get(recipe, "options");
    return status == QKV_OK && options ? qkv_study_set_options(*out, options, err) : status;
}

/* All of the recipe is the study's specification. */
static int make_effects(qkv_study **out, const char *text, qkv_error *err) {
    json_t *recipe = NULL;
    int status = qkv_recipe_read(&recipe, text, err);
    json_decref(recipe);
    if (status == QKV_OK) status = qkv_study_new(out, "effects", err);
    return status == QKV_OK ? qkv_study_set(*out, "spec", text, err) : status;
}

static int make(qkv_study **out, const json_t *tree, const char *text, qkv_error *err) {
    const int is_sweep = json_object_get(tree, "sweep") && !json_object_get(tree, "study");
    return is_sweep ? make_effects(out, text, err) : make_kind(out, tree, err);
}

int qkv_study_load(qkv_study **out, const char *recipe, qkv_error *err) {
    json_error_t where;
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, recipe);
    json_t *tree =
        qkv_json_parse(recipe, strlen(recipe), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (qkv_json_lacked_memory(tree, &where)) return qkv_fail_memory(err);
    if (!json_is_object(tree)) {
        json_decref(tree);
        return qkv_fail(err, QKV_ERR_FORMAT, "it is not a JSON object");
    }
    const int status = make(out, tree, recipe, err);
    json_decref(tree);
    if (status == QKV_OK) return QKV_OK;
    qkv_study_free(*out);
    *out = NULL;
    return status;
}
