/* Recipes of sweeps, read and checked. See recipe.h. */
#include "study/recipe.h"

#include <string.h>

#include "base/json.h"

static int check_keys(const json_t *recipe, qkv_error *err) {
    static const char *const known[] = {"title", "about", "sweep", "tables", "greedy"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)recipe, key, value) {
        size_t i = 0, n = sizeof known / sizeof *known;
        while (i < n && strcmp(key, known[i]) != 0) i++;
        if (i == n)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "the recipe of a sweep has no '%.80s'; it has title, about, sweep, "
                            "tables, greedy",
                            key);
    }
    if (json_is_object(json_object_get(recipe, "sweep"))) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "'sweep' of the recipe is not an object");
}

static int check(const json_t *recipe, qkv_error *err) {
    const json_t *greedy = json_object_get(recipe, "greedy");
    int status = check_keys(recipe, err);
    if (status == QKV_OK) status = qkv_recipe_tables_check(json_object_get(recipe, "tables"), err);
    return status == QKV_OK && greedy ? qkv_recipe_greedy_check(greedy, err) : status;
}

int qkv_recipe_read(json_t **out, const char *text, qkv_error *err) {
    json_error_t where;
    *out = qkv_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, &where);
    if (qkv_json_lacked_memory(*out, &where)) return qkv_fail_memory(err);
    if (!*out)
        return qkv_fail(err, QKV_ERR_FORMAT, "`spec` is not JSON, line %d: %s", where.line,
                        where.text);
    if (!json_is_object(*out))
        return qkv_fail(err, QKV_ERR_FORMAT, "`spec` is not a JSON object, {\"targets\": ...}");
    if (!json_object_get(*out, "sweep")) {
        json_t *recipe = json_pack("{s:o}", "sweep", *out);
        *out = recipe;
        if (!recipe) return qkv_fail_memory(err);
    }
    return check(*out, err);
}

int qkv_recipe_is_measured(const qkv_sweep *sweep, const char *metric) {
    const char *name;
    for (size_t i = 0; (name = qkv_sweep_metric(sweep, i)); i++) {
        if (strcmp(name, metric) == 0) return 1;
    }
    return 0;
}

int qkv_recipe_check_sweep(const json_t *recipe, const qkv_sweep *sweep, qkv_error *err) {
    const json_t *tables = json_object_get(recipe, "tables");
    const json_t *greedy = json_object_get(recipe, "greedy");
    for (size_t i = 0; i < json_array_size(tables); i++) {
        const json_t *table = json_array_get(tables, i);
        const char *metric = json_string_value(json_object_get(table, "metric"));
        if (qkv_recipe_is_measured(sweep, metric)) continue;
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "table '%s' of the recipe shows %s, which is not among the sweep's metrics",
                        json_string_value(json_object_get(table, "title")), metric);
    }
    return greedy ? qkv_recipe_greedy_check_sweep(greedy, sweep, err) : QKV_OK;
}
