/*
 * The set of heads that together change the output most, built greedily: the most important one,
 * then the one that adds most to those chosen, and so on. Candidates are the heads that are most
 * important alone, as the sweep has found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/recipe.h"
#include "qkv/measure.h"

typedef struct candidate {
    int32_t layer, head;
    double value; /* alone; then with those chosen, summed over prompts */
    size_t n;
    int chosen;
} candidate;

typedef struct greedy {
    const json_t *prompts;
    unsigned flags;
    size_t length; /* tokens that prompts are cut to, 0 = as they are */
    const char *target, *op, *metric;
    qkv_model *model;
    qkv_session *session;
    candidate *items;
    size_t n, capacity;
    qkv_text chosen; /* edits, joined */
} greedy;

int recipe_greedy_check(const json_t *wanted, qkv_error *err) {
    const json_t *metric = json_object_get(wanted, "metric");
    const qkv_metric_info *info =
        json_is_string(metric) ? qkv_metric_find(json_string_value(metric)) : NULL;
    if (!info || info->scope != QKV_SCOPE_VARIANT || !info->compares) {
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "greedy needs a metric that compares outputs, e.g. output_kl");
    }
    if (json_integer_value(json_object_get(wanted, "heads")) < 1 ||
        json_integer_value(json_object_get(wanted, "candidates")) < 1) {
        return qkv_fail(err, QKV_ERR_FORMAT, "greedy needs heads and candidates, numbers from 1");
    }
    return QKV_OK;
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

static int read_candidates(greedy *g, const char *results, size_t most, qkv_error *err) {
    qkv_sweep_reader *file = NULL;
    qkv_sweep_row *rows = NULL;
    size_t n = 0;
    int status = qkv_sweep_reader_open(&file, results, err);
    if (status == QKV_OK) status = qkv_sweep_reader_rows(file, g->metric, &rows, &n, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        if (rows[i].head >= 0 && !add_value(g, &rows[i])) status = qkv_fail_memory(err);
    }
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
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
            const qkv_measurement m = qkv_table_get(table, r);
            if (m.variant == variant) g->items[i].value += m.value;
        }
    }
}

static int try_prompt(greedy *g, const json_t *prompt, qkv_error *err) {
    int32_t *tokens = NULL;
    size_t n = 0;
    qkv_plan *plan = NULL;
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    int status = qkv_tokenize(g->model, &tokens, &n, json_string_value(prompt),
                              json_string_length(prompt), g->flags, err);
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

/* Chooses the candidate that makes the largest change with those chosen before. */
static int step(greedy *g, size_t number, qkv_error *err) {
    candidate *best = NULL;
    int status = QKV_OK;
    for (size_t i = 0; i < g->n; i++) g->items[i].value = 0;
    for (size_t i = 0; i < json_array_size(g->prompts) && status == QKV_OK; i++) {
        status = try_prompt(g, json_array_get(g->prompts, i), err);
    }
    for (size_t i = 0; i < g->n && status == QKV_OK; i++) {
        candidate *c = &g->items[i];
        if (!c->chosen && (!best || c->value > best->value)) best = c;
    }
    if (status != QKV_OK || !best) return status;
    best->chosen = 1;
    qkv_text_printf(&g->chosen, "%s@%d.h%d=%s + ", g->target, (int)best->layer, (int)best->head,
                    g->op);
    qkv_print(stdout, "  %2zu. layer %d, head %d: %s %.4g\n", number, (int)best->layer,
              (int)best->head, g->metric, best->value / (double)json_array_size(g->prompts));
    return g->chosen.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- the whole ---- */

/* "z" or ["z"]. */
static const char *only_text(const json_t *spec, const char *key) {
    const json_t *value = json_object_get(spec, key);
    if (json_is_array(value) && json_array_size(value) == 1) value = json_array_get(value, 0);
    return json_string_value(value);
}

static int begin(greedy *g, const json_t *spec, const char *model, int64_t memory, qkv_error *err) {
    const qkv_session_options options = cli_session_options(1, memory);
    g->prompts = json_object_get(spec, "prompts");
    g->flags = QKV_TOKENIZE_ADD_SPECIAL;
    if (json_is_true(json_object_get(spec, "parse_special"))) {
        g->flags |= QKV_TOKENIZE_PARSE_SPECIAL;
    }
    g->length = (size_t)json_integer_value(json_object_get(spec, "length"));
    g->target = only_text(spec, "targets");
    g->op = only_text(spec, "ops");
    for (size_t i = 0; i < json_array_size(g->prompts); i++) {
        if (!json_is_string(json_array_get(g->prompts, i))) {
            return qkv_fail(err, QKV_ERR_FORMAT, "greedy needs prompts that are texts");
        }
    }
    if (!g->target || !g->op) {
        return qkv_fail(err, QKV_ERR_FORMAT, "greedy needs one target and one operation");
    }
    int status = cli_model_open(&g->model, model, err);
    if (status == QKV_OK) status = cli_session_new(&g->session, g->model, &options, err);
    return status;
}

int recipe_greedy_print(const json_t *wanted, const json_t *spec, const char *results,
                        const char *model, int64_t memory, qkv_error *err) {
    greedy g = {.metric = json_string_value(json_object_get(wanted, "metric"))};
    const size_t heads = (size_t)json_integer_value(json_object_get(wanted, "heads"));
    const size_t most = (size_t)json_integer_value(json_object_get(wanted, "candidates"));
    int status = begin(&g, spec, model, memory, err);
    if (status == QKV_OK) status = read_candidates(&g, results, most, err);
    if (status == QKV_OK) {
        printf("\nHeads that together change %s most, chosen one after the other out of %zu\n",
               g.metric, g.n);
    }
    for (size_t i = 1; i <= heads && i <= g.n && status == QKV_OK; i++) {
        status = step(&g, i, err);
    }
    qkv_text_release(&g.chosen);
    free(g.items);
    qkv_session_free(g.session);
    qkv_model_free(g.model);
    return status;
}
