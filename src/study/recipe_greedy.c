/*
 * The set of heads that together change the output most. Candidates are the heads that are most
 * important alone, as the sweep has found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "qkv/measure.h"
#include "study/greedy.h"
#include "study/recipe.h"
#include "sweep/sweep.h"

/* A head with what it does alone, summed over prompts. */
typedef struct candidate {
    greedy_head at;
    double value;
} candidate;

typedef struct candidate_list {
    candidate *items;
    size_t n, capacity;
} candidate_list;

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

static int add_value(candidate_list *list, const qkv_sweep_row *row) {
    size_t i = 0;
    while (i < list->n &&
           (list->items[i].at.layer != row->layer || list->items[i].at.head != row->head))
        i++;
    const candidate fresh = {.at = {row->layer, row->head}};
    if (i == list->n && !QKV_PUSH(list->items, list->capacity, list->n, fresh)) return 0;
    list->items[i].value += row->value;
    return 1;
}

static int by_value(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return x->at.layer != y->at.layer ? x->at.layer - y->at.layer : x->at.head - y->at.head;
}

static int read_candidates(candidate_list *list, qkv_sweep_reader *file, const char *metric,
                           size_t most, qkv_error *err) {
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    int status = qkv_sweep_reader_rows(file, metric, &rows, err);
    for (size_t i = 0; status == QKV_OK && qkv_sweep_rows_get(rows, i, &row); i++) {
        if (row.head >= 0 && !add_value(list, &row)) status = qkv_fail_memory(err);
    }
    qkv_sweep_rows_free(rows);
    if (status == QKV_OK && list->n) qsort(list->items, list->n, sizeof *list->items, by_value);
    if (list->n > most) list->n = most;
    return status;
}

/* ---- the table ---- */

static int add_table(qkv_study *study, const greedy_task *task, const greedy *found,
                     qkv_error *err) {
    const char *const columns[] = {"step", "layer", "head", task->metric};
    qkv_text title = {0};
    qkv_text_printf(&title,
                    "Heads that together change %s most, chosen one after the other out of %zu",
                    task->metric, task->n_candidates);
    int status = title.failed ? qkv_fail_memory(err)
                              : qkv_study_add_table(study, "heads", title.data, columns, 4, err);
    for (size_t i = 0; i < found->n_steps && status == QKV_OK; i++) {
        const greedy_step *step = &found->steps[i];
        const greedy_head *head = &task->candidates[step->chosen];
        status = qkv_study_add_row(study,
                                   (study_value[]){STUDY_NUMBER(i + 1), STUDY_NUMBER(head->layer),
                                                   STUDY_NUMBER(head->head),
                                                   STUDY_NUMBER(step->values[step->chosen])},
                                   err);
    }
    qkv_text_release(&title);
    return status;
}

/* ---- the whole ---- */

typedef struct told {
    qkv_session *session;
    qkv_error *err; /* says why it stops */
} told;

static int on_progress(void *user, int64_t done, int64_t wanted) {
    const told *to = user;
    (void)wanted;
    return qkv_session_reach(to->session, (double)done, 0, to->err) != QKV_OK;
}

static int run(greedy *found, const greedy_task *task, qkv_error *err) {
    int stopped = 0;
    told to = {task->session, err};
    greedy_task own = *task;
    own.progress = on_progress;
    own.user = &to;
    int status =
        qkv_session_begin_work(task->session, "heads", (double)qkv_greedy_n_tries(task), err);
    if (status != QKV_OK) return status;
    status = qkv_greedy_run(found, &own, &stopped, err);
    if (status == QKV_OK && stopped) status = QKV_ERR_CANCELLED;
    return qkv_session_end_work(task->session, status);
}

static int search(qkv_study *study, greedy_task *task, const candidate_list *list, qkv_error *err) {
    greedy found = {0};
    greedy_head *heads = qkv_calloc(list->n, sizeof *heads);
    if (!heads) return qkv_fail_memory(err);
    for (size_t i = 0; i < list->n; i++) heads[i] = list->items[i].at;
    task->candidates = heads;
    task->n_candidates = list->n;
    if (task->n_steps > list->n) task->n_steps = list->n;
    int status = run(&found, task, err);
    if (status == QKV_OK) status = add_table(study, task, &found, err);
    qkv_greedy_release(&found);
    free(heads);
    return status;
}

int qkv_recipe_add_heads(qkv_study *study, const json_t *wanted, qkv_session *session,
                         const qkv_sweep *sweep, qkv_sweep_reader *file, qkv_error *err) {
    const char *metric = json_string_value(json_object_get(wanted, "metric"));
    const size_t most = (size_t)json_integer_value(json_object_get(wanted, "candidates"));
    candidate_list list = {0};
    json_t *spec = read_spec(sweep);
    if (!spec) return qkv_fail_memory(err);
    greedy_task task = {.session = session,
                        .prompts = sweep->prompts,
                        .n_prompts = sweep->n_prompts,
                        .target = only_text(spec, "targets"),
                        .op = only_text(spec, "ops"),
                        .metric = metric,
                        .n_steps = (size_t)json_integer_value(json_object_get(wanted, "heads"))};
    int status = read_candidates(&list, file, metric, most, err);
    if (status == QKV_OK) status = search(study, &task, &list, err);
    free(list.items);
    json_decref(spec);
    return status;
}
