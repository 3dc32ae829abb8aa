/* A recipe from its text to its tables: loaded, checked, run, evaluated. */
#include "study/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/sized.h"
#include "sweep/sweep.h"

struct qkv_recipe {
    json_t *json;
    char *spec; /* of its sweep */
};

/* ---- loading ---- */

static int check_keys(const json_t *json, const char *name, qkv_error *err) {
    static const char *const known[] = {"title", "about", "sweep", "tables", "greedy"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value) {
        size_t i = 0, n = sizeof known / sizeof *known;
        while (i < n && strcmp(key, known[i]) != 0) i++;
        if (i == n) {
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: a recipe has no '%s'; it has title, about, sweep, tables, greedy",
                            name, key);
        }
    }
    if (!json_is_object(json_object_get(json, "sweep"))) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the recipe has no sweep", name);
    }
    return QKV_OK;
}

static int check_parts(const json_t *json, qkv_error *err) {
    const json_t *greedy = json_object_get(json, "greedy");
    const int status = qkv_recipe_tables_check(json_object_get(json, "tables"), err);
    return status == QKV_OK && greedy ? qkv_recipe_greedy_check(greedy, err) : status;
}

static char *dump(const json_t *json) {
    return qkv_json_dump(json, JSON_REAL_PRECISION(17));
}

static int write_spec(qkv_recipe *recipe, qkv_error *err) {
    char *spec = dump(json_object_get(recipe->json, "sweep"));
    if (!spec) return qkv_fail_memory(err);
    free(recipe->spec);
    recipe->spec = spec;
    return QKV_OK;
}

static int read_json(json_t **out, const char *text, size_t length, const char *name,
                     qkv_error *err) {
    json_error_t problem;
    *out = qkv_json_parse(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (!*out) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %d: %s", name, problem.line, problem.text);
    }
    return json_is_object(*out)
               ? check_keys(*out, name, err)
               : qkv_fail(err, QKV_ERR_FORMAT, "%s: a sweep is a JSON object, {\"prompts\": ...}",
                          name);
}

int qkv_recipe_load(qkv_recipe **out, const char *json, size_t length, const char *name,
                    qkv_error *err) {
    if (out) *out = NULL;
    if (!out || !json) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no recipe to load");
    qkv_recipe *recipe = qkv_calloc(1, sizeof *recipe);
    if (!recipe) return qkv_fail_memory(err);
    int status = read_json(&recipe->json, json, length, name ? name : "recipe", err);
    if (status == QKV_OK) status = check_parts(recipe->json, err);
    if (status == QKV_OK) status = write_spec(recipe, err);
    if (status == QKV_OK) {
        *out = recipe;
    } else {
        qkv_recipe_free(recipe);
    }
    return status;
}

void qkv_recipe_free(qkv_recipe *recipe) {
    if (!recipe) return;
    json_decref(recipe->json);
    free(recipe->spec);
    free(recipe);
}

int qkv_recipe_get_info(const qkv_recipe *recipe, qkv_recipe_info *info, qkv_error *err) {
    if (!recipe || !info) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no recipe, or no place");
    const json_t *json = recipe->json;
    const qkv_recipe_info own = {
        .title = json_string_value(json_object_get(json, "title")),
        .about = json_string_value(json_object_get(json, "about")),
        .spec = recipe->spec,
        .has_prompts = json_object_get(json_object_get(json, "sweep"), "prompts") != NULL,
        .has_greedy = json_object_get(json, "greedy") != NULL,
        .n_tables = json_array_size(json_object_get(json, "tables"))};
    return qkv_sized_write(info, &own, sizeof own, "qkv_recipe_info", err);
}

static int list_prompts(json_t *list, const char *const *texts, size_t n, qkv_error *err) {
    for (size_t i = 0; i < n; i++) {
        json_t *text = texts[i] ? json_string(texts[i]) : NULL;
        if (!text) return qkv_fail(err, QKV_ERR_ARGUMENT, "prompt %zu is not UTF-8 text", i);
        if (qkv_json_push(list, text) != 0) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

int qkv_recipe_set_prompts(qkv_recipe *recipe, const char *const *texts, size_t n, qkv_error *err) {
    if (!recipe || !texts || !n) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no recipe, or there are no prompts");
    }
    json_t *list = json_array();
    const int status = list ? list_prompts(list, texts, n, err) : qkv_fail_memory(err);
    if (status != QKV_OK) {
        json_decref(list);
        return status;
    }
    if (qkv_json_put(json_object_get(recipe->json, "sweep"), "prompts", list) != 0) {
        return qkv_fail_memory(err);
    }
    return write_spec(recipe, err);
}

/* ---- the sweep ---- */

int qkv_recipe_check(const qkv_recipe *recipe, const qkv_sweep *sweep, qkv_error *err) {
    if (!recipe || !sweep) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no recipe or no sweep");
    if (qkv_sweep_patches(sweep))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "the tables of a recipe are of sweeps that edit one prompt; 'qkv patch' "
                        "runs pairs of them");
    const json_t *greedy = json_object_get(recipe->json, "greedy");
    const int status =
        qkv_recipe_tables_check_sweep(json_object_get(recipe->json, "tables"), sweep, err);
    return status == QKV_OK && greedy ? qkv_recipe_greedy_check_sweep(greedy, sweep, err) : status;
}

/* Which model it is has been decided: the specification may name one too. */
static int make_sweep(const qkv_recipe *recipe, qkv_sweep **out, const qkv_model *model,
                      qkv_error *err) {
    json_t *spec = qkv_json_copy(json_object_get(recipe->json, "sweep"));
    json_object_del(spec, "model");
    char *text = dump(spec);
    json_decref(spec);
    const int status = text ? qkv_sweep_new(out, model, text, err) : qkv_fail_memory(err);
    free(text);
    return status;
}

int qkv_recipe_sweep(const qkv_recipe *recipe, qkv_sweep **out, const qkv_model *model,
                     qkv_error *err) {
    if (out) *out = NULL;
    if (!recipe || !out || !model) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "making the sweep needs a recipe, a place for it and a model");
    }
    int status = make_sweep(recipe, out, model, err);
    if (status == QKV_OK) status = qkv_recipe_check(recipe, *out, err);
    if (status == QKV_OK) return QKV_OK;
    qkv_sweep_free(*out);
    *out = NULL;
    return status;
}

/* ---- evaluating ---- */

typedef struct evaluation {
    const qkv_recipe *recipe;
    const qkv_model *model;
    const qkv_sweep *sweep;
    qkv_recipe_options options;
    int stopped;
} evaluation;

static int fill(const evaluation *e, qkv_recipe_result *result, qkv_sweep_reader *file,
                int *stopped, qkv_error *err) {
    const json_t *tables = json_object_get(e->recipe->json, "tables");
    const json_t *greedy = json_object_get(e->recipe->json, "greedy");
    const size_t n = json_array_size(tables);
    int status = QKV_OK;
    result->tables = qkv_calloc(n + 1, sizeof *result->tables);
    if (!result->tables) return qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = qkv_recipe_table_fill(&result->tables[result->n++], json_array_get(tables, i),
                                       file, err);
    }
    if (status != QKV_OK || !greedy) return status;
    return qkv_recipe_greedy_fill(&result->tables[result->n++], greedy, e->model, e->sweep, file,
                                  &e->options, stopped, err);
}

static int evaluate(evaluation *e, qkv_recipe_result **out, const char *results, qkv_error *err) {
    qkv_recipe_result *result = qkv_calloc(1, sizeof *result);
    qkv_sweep_reader *file = NULL;
    if (!result) return qkv_fail_memory(err);
    int status = qkv_recipe_check(e->recipe, e->sweep, err);
    if (status == QKV_OK) status = qkv_sweep_reader_open(&file, results, err);
    if (status == QKV_OK) status = fill(e, result, file, &e->stopped, err);
    qkv_sweep_reader_close(file);
    if (status == QKV_OK && !e->stopped) {
        *out = result;
    } else {
        qkv_recipe_result_free(result);
    }
    return status;
}

int qkv_recipe_evaluate(const qkv_recipe *recipe, qkv_recipe_result **out, const qkv_model *model,
                        const qkv_sweep *sweep, const char *results,
                        const qkv_recipe_options *options, int *stopped, qkv_error *err) {
    evaluation e = {.recipe = recipe, .model = model, .sweep = sweep};
    if (out) *out = NULL;
    if (stopped) *stopped = 0;
    if (!recipe || !out || !model || !sweep || !results) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "evaluating needs a recipe, a model, a sweep and its results");
    }
    e.options = (qkv_recipe_options)QKV_RECIPE_OPTIONS_INIT;
    int status = qkv_sized_read(&e.options, sizeof e.options, options, "qkv_recipe_options", err);
    if (status == QKV_OK) status = evaluate(&e, out, results, err);
    if (stopped) *stopped = e.stopped;
    return status;
}

/* ---- all of it ---- */

static int run(const qkv_recipe *recipe, qkv_recipe_result **out, const qkv_model *model,
               const qkv_sweep *sweep, const char *results, const qkv_sweep_share_options *share,
               int *stopped, qkv_error *err) {
    const int status = qkv_sweep_share(sweep, results, share, stopped, err);
    if (status != QKV_OK || *stopped) return status;
    qkv_recipe_options options = QKV_RECIPE_OPTIONS_INIT;
    options.memory_budget = share->memory_budget;
    options.progress = share->progress;
    options.user = share->user;
    options.session_progress = share->session_progress;
    return qkv_recipe_evaluate(recipe, out, model, sweep, results, &options, stopped, err);
}

int qkv_recipe_run(const qkv_recipe *recipe, qkv_recipe_result **out, const qkv_model *model,
                   const char *results, const qkv_sweep_share_options *options, int *stopped,
                   qkv_error *err) {
    qkv_sweep_share_options share = QKV_SWEEP_SHARE_OPTIONS_INIT;
    qkv_sweep *sweep = NULL;
    int ended = 0;
    if (out) *out = NULL;
    if (stopped) *stopped = 0;
    if (!out || !results) return qkv_fail(err, QKV_ERR_ARGUMENT, "no place for what comes out");
    int status = qkv_sized_read(&share, sizeof share, options, "qkv_sweep_share_options", err);
    if (status == QKV_OK && share.transport) {
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "with a transport, share the sweep first and evaluate it then");
    }
    if (status == QKV_OK) status = qkv_recipe_sweep(recipe, &sweep, model, err);
    if (status == QKV_OK) {
        status = run(recipe, out, model, sweep, results, &share, &ended, err);
    }
    qkv_sweep_free(sweep);
    if (stopped) *stopped = ended;
    return status;
}

/* ---- tables ---- */

void qkv_recipe_result_free(qkv_recipe_result *result) {
    if (!result) return;
    for (size_t i = 0; i < result->n; i++) {
        recipe_table *table = &result->tables[i];
        free(table->title);
        free(table->metric);
        free(table->rows.texts);
        free(table->columns.texts);
        free(table->values);
    }
    free(result->tables);
    free(result);
}

size_t qkv_recipe_result_n_tables(const qkv_recipe_result *result) {
    return result ? result->n : 0;
}

static const recipe_table *find_table(const qkv_recipe_result *result, size_t table) {
    return result && table < result->n ? &result->tables[table] : NULL;
}

int qkv_recipe_result_table(const qkv_recipe_result *result, size_t table, qkv_recipe_table *out,
                            qkv_error *err) {
    const recipe_table *found = find_table(result, table);
    if (!found || !out) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no table %zu", table);
    const qkv_recipe_table own = {.kind = found->kind,
                                  .title = found->title,
                                  .metric = found->metric,
                                  .n_rows = found->rows.n,
                                  .n_columns = found->columns.n};
    return qkv_sized_write(out, &own, sizeof own, "qkv_recipe_table", err);
}

const char *qkv_recipe_result_row(const qkv_recipe_result *result, size_t table, size_t row) {
    const recipe_table *found = find_table(result, table);
    return found && row < found->rows.n ? found->rows.texts[row] : NULL;
}

const char *qkv_recipe_result_column(const qkv_recipe_result *result, size_t table, size_t column) {
    const recipe_table *found = find_table(result, table);
    return found && column < found->columns.n ? found->columns.texts[column] : NULL;
}

int qkv_recipe_result_value(const qkv_recipe_result *result, size_t table, size_t row,
                            size_t column, double *value, qkv_error *err) {
    const recipe_table *found = find_table(result, table);
    if (!found || !value || row >= found->rows.n || column >= found->columns.n) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no row %zu, column %zu in table %zu", row,
                        column, table);
    }
    *value = found->values[row * found->columns.n + column];
    return QKV_OK;
}
