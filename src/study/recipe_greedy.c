/*
 * The set of heads that together change the output most, built greedily: the most important one,
 * then the one that adds most to those chosen, and so on. Candidates are the heads that are most
 * important alone, as the sweep has found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "qkv/measure.h"
#include "study/recipe.h"

typedef struct candidate {
    int32_t layer, head;
    double value; /* alone; then with those chosen, summed over prompts */
    size_t n;
    int chosen;
} candidate;

typedef struct greedy {
    const json_t *spec;    /* of the sweep, whole */
    const json_t *prompts; /* texts, and lists of ids */
    unsigned flags;
    size_t length; /* tokens that prompts are cut to, 0 = as they are */
    const char *target, *op, *metric;
    const qkv_model *model;
    qkv_session *session;
    const qkv_recipe_options *options;
    int64_t done, wanted; /* prompts that were tried */
    int *stopped;
    candidate *items;
    size_t n, capacity;
    qkv_text chosen; /* edits, joined */
} greedy;

/* ---- checks ---- */

int qkv_recipe_greedy_check(const json_t *wanted, qkv_error *err) {
    const json_t *metric = json_object_get(wanted, "metric");
    const qkv_metric_info *info =
        json_is_string(metric) ? qkv_metric_find(json_string_value(metric)) : NULL;
    if (!info || info->scope != QKV_SCOPE_VARIANT || !info->compares) {
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "greedy needs a metric that compares outputs, e.g. output_kl");
    }
    const int64_t heads = json_integer_value(json_object_get(wanted, "heads"));
    const int64_t candidates = json_integer_value(json_object_get(wanted, "candidates"));
    if (heads < 1 || candidates < 1) {
        return qkv_fail(err, QKV_ERR_FORMAT, "greedy needs heads and candidates, numbers from 1");
    }
    if (heads > candidates) {
        return qkv_fail(err, QKV_ERR_FORMAT, "greedy cannot choose %lld heads out of %lld",
                        (long long)heads, (long long)candidates);
    }
    return QKV_OK;
}

/* The only text of a list; NULL where there are more or none. */
static const char *only_text(const json_t *spec, const char *key) {
    const json_t *list = json_object_get(spec, key);
    return json_array_size(list) == 1 ? json_string_value(json_array_get(list, 0)) : NULL;
}

static int check_spec(const json_t *spec, qkv_error *err) {
    const char *target = only_text(spec, "targets");
    if (!target || strcmp(target, "none") == 0 || !only_text(spec, "ops")) {
        return qkv_fail(err, QKV_ERR_FORMAT, "greedy needs one target and one operation");
    }
    if (!json_is_array(json_object_get(spec, "layers")) ||
        !json_is_array(json_object_get(spec, "heads"))) {
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "greedy needs layers and heads one by one, not all together");
    }
    return QKV_OK;
}

static json_t *read_spec(const qkv_sweep *sweep) {
    const char *text = qkv_sweep_spec(sweep);
    return qkv_json_parse(text, strlen(text), 0, NULL);
}

int qkv_recipe_greedy_check_sweep(const json_t *wanted, const qkv_sweep *sweep, qkv_error *err) {
    const char *metric = json_string_value(json_object_get(wanted, "metric"));
    if (!qkv_recipe_is_measured(sweep, metric)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "greedy goes by %s, which is not among the sweep's metrics", metric);
    }
    json_t *spec = read_spec(sweep);
    const int status = spec ? check_spec(spec, err) : qkv_fail_memory(err);
    json_decref(spec);
    return status;
}

/* ---- candidates ---- */

static int add_value(greedy *g, const qkv_sweep_row *row) {
    size_t i = 0;
    while (i < g->n && (g->items[i].layer != row->layer || g->items[i].head != row->head)) i++;
    const candidate fresh = {.layer = row->layer, .head = row->head};
    if (i == g->n && !QKV_PUSH(g->items, g->capacity, g->n, fresh)) return 0;
    g->items[i].value += row->value;
    g->items[i].n++;
    return 1;
}

static int by_value(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return x->layer != y->layer ? x->layer - y->layer : x->head - y->head;
}

static int read_candidates(greedy *g, qkv_sweep_reader *file, size_t most, qkv_error *err) {
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    int status = qkv_sweep_reader_rows(file, g->metric, &rows, err);
    for (size_t i = 0; status == QKV_OK && qkv_sweep_rows_get(rows, i, &row); i++) {
        if (row.head >= 0 && !add_value(g, &row)) status = qkv_fail_memory(err);
    }
    qkv_sweep_rows_free(rows);
    if (status == QKV_OK && g->n) qsort(g->items, g->n, sizeof *g->items, by_value);
    if (g->n > most) g->n = most;
    return status;
}

/* ---- one step ---- */

static int add_variants(const greedy *g, qkv_plan *plan, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < g->n && status == QKV_OK; i++) {
        qkv_text edits = {0};
        if (g->items[i].chosen) continue;
        qkv_text_printf(&edits, "%s%s@%d.h%d=%s", g->chosen.length ? g->chosen.data : "", g->target,
                        (int)g->items[i].layer, (int)g->items[i].head, g->op);
        status =
            edits.failed ? qkv_fail_memory(err) : qkv_plan_add_variant(plan, edits.data, NULL, err);
        qkv_text_release(&edits);
    }
    return status;
}

static void add_table(greedy *g, const qkv_table *table) {
    size_t variant = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (g->items[i].chosen) continue;
        variant++;
        for (size_t r = 0; r < qkv_table_size(table); r++) {
            qkv_measurement m = QKV_MEASUREMENT_INIT;
            qkv_table_get(table, r, &m);
            if (m.variant == variant) g->items[i].value += m.value;
        }
    }
}

/* The sweep has checked the prompts. */
static int take_tokens(const greedy *g, const json_t *prompt, int32_t **tokens, size_t *n,
                       qkv_error *err) {
    if (json_is_string(prompt)) {
        return qkv_tokenize(g->model, tokens, n, json_string_value(prompt),
                            json_string_length(prompt), g->flags, err);
    }
    *n = json_array_size(prompt);
    *tokens = qkv_calloc(*n, sizeof **tokens);
    if (!*tokens) return qkv_fail_memory(err);
    for (size_t i = 0; i < *n; i++) {
        (*tokens)[i] = (int32_t)json_integer_value(json_array_get(prompt, i));
    }
    return QKV_OK;
}

static int try_prompt(greedy *g, const json_t *prompt, qkv_error *err) {
    int32_t *tokens = NULL;
    size_t n = 0;
    qkv_plan *plan = NULL;
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    int status = take_tokens(g, prompt, &tokens, &n, err);
    if (g->length && g->length < n) n = g->length;
    if (status == QKV_OK) status = qkv_plan_new(&plan, g->model, tokens, n, err);
    if (status == QKV_OK) status = add_variants(g, plan, err);
    if (status == QKV_OK) status = qkv_measure_new(&measure, g->metric, NULL, err);
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, g->session, plan, err);
    if (status == QKV_OK) add_table(g, table);
    qkv_table_free(table);
    qkv_measure_free(measure);
    qkv_plan_free(plan);
    qkv_tokens_free(tokens);
    return status;
}

/* After each prompt; 1 when nobody wants to go on. */
static int report(greedy *g) {
    const qkv_recipe_options *o = g->options;
    g->done++;
    if (o->progress && o->progress(o->user, g->done, g->wanted) != 0) {
        *g->stopped = g->done < g->wanted;
    }
    return *g->stopped;
}

/* Chooses the candidate that makes the largest change with those chosen before; NULL: none. */
static int step(greedy *g, candidate **best, qkv_error *err) {
    int status = QKV_OK;
    *best = NULL;
    for (size_t i = 0; i < g->n; i++) g->items[i].value = 0;
    for (size_t i = 0; i < json_array_size(g->prompts) && status == QKV_OK; i++) {
        status = try_prompt(g, json_array_get(g->prompts, i), err);
        if (status == QKV_OK && report(g)) return QKV_OK;
    }
    for (size_t i = 0; i < g->n && status == QKV_OK; i++) {
        candidate *c = &g->items[i];
        if (!c->chosen && (!*best || c->value > (*best)->value)) *best = c;
    }
    if (status != QKV_OK || !*best) return status;
    (*best)->chosen = 1;
    qkv_text_printf(&g->chosen, "%s@%d.h%d=%s + ", g->target, (int)(*best)->layer,
                    (int)(*best)->head, g->op);
    return g->chosen.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- the whole ---- */

static int begin(greedy *g, qkv_error *err) {
    const qkv_session_options options = {
        .size = sizeof options, .n_threads = 1, .memory_budget = g->options->memory_budget};
    g->prompts = json_object_get(g->spec, "prompts");
    g->flags = QKV_TOKENIZE_ADD_SPECIAL;
    if (json_is_true(json_object_get(g->spec, "parse_special"))) {
        g->flags |= QKV_TOKENIZE_PARSE_SPECIAL;
    }
    g->length = (size_t)json_integer_value(json_object_get(g->spec, "length"));
    g->target = only_text(g->spec, "targets");
    g->op = only_text(g->spec, "ops");
    const int status = qkv_session_new(&g->session, g->model, &options, err);
    if (status != QKV_OK || !g->options->session_progress) return status;
    return qkv_session_set_progress(g->session, g->options->session_progress, err);
}

static int make_table(const greedy *g, recipe_table *out, size_t heads, qkv_error *err) {
    qkv_text title = {0};
    size_t at;
    out->kind = QKV_RECIPE_HEADS;
    qkv_text_printf(&title,
                    "Heads that together change %s most, chosen one after the other out of %zu",
                    g->metric, g->n);
    out->title = title.failed ? NULL : title.data;
    if (title.failed) qkv_text_release(&title);
    out->metric = qkv_strdup(g->metric);
    out->values = qkv_calloc(3 * heads, sizeof *out->values);
    const int there = out->title && out->metric && out->values &&
                      qkv_recipe_find_key(&out->columns, "layer", &at) &&
                      qkv_recipe_find_key(&out->columns, "head", &at) &&
                      qkv_recipe_find_key(&out->columns, g->metric, &at);
    return there ? QKV_OK : qkv_fail_memory(err);
}

static int add_head(const greedy *g, recipe_table *out, const candidate *best, qkv_error *err) {
    char number[RECIPE_KEY_SIZE];
    double *row = out->values + 3 * out->rows.n;
    size_t at;
    row[0] = best->layer;
    row[1] = best->head;
    row[2] = best->value / (double)json_array_size(g->prompts);
    snprintf(number, sizeof number, "%zu", out->rows.n + 1);
    return qkv_recipe_find_key(&out->rows, number, &at) ? QKV_OK : qkv_fail_memory(err);
}

static int choose(greedy *g, recipe_table *out, size_t heads, qkv_error *err) {
    if (heads > g->n) heads = g->n;
    int status = make_table(g, out, heads, err);
    g->wanted = (int64_t)(heads * json_array_size(g->prompts));
    for (size_t i = 0; i < heads && status == QKV_OK && !*g->stopped; i++) {
        candidate *best = NULL;
        status = step(g, &best, err);
        if (status == QKV_OK && best) status = add_head(g, out, best, err);
    }
    return status;
}

int qkv_recipe_greedy_fill(recipe_table *out, const json_t *wanted, const qkv_model *model,
                           const qkv_sweep *sweep, qkv_sweep_reader *file,
                           const qkv_recipe_options *options, int *stopped, qkv_error *err) {
    json_t *spec = read_spec(sweep);
    if (!spec) return qkv_fail_memory(err);
    greedy g = {.spec = spec,
                .metric = json_string_value(json_object_get(wanted, "metric")),
                .model = model,
                .options = options,
                .stopped = stopped};
    const size_t heads = (size_t)json_integer_value(json_object_get(wanted, "heads"));
    const size_t most = (size_t)json_integer_value(json_object_get(wanted, "candidates"));
    int status = begin(&g, err);
    if (status == QKV_OK) status = read_candidates(&g, file, most, err);
    if (status == QKV_OK) status = choose(&g, out, heads, err);
    qkv_text_release(&g.chosen);
    free(g.items);
    qkv_session_free(g.session);
    json_decref(spec);
    return status;
}
