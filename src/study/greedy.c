#include "study/greedy.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "qkv/measure.h"

/* Candidates that are tried in one plan, and kept together. */
enum { LARGEST_BLOCK = 64 };

/* Not computed yet; NaN stands where the candidate is chosen. */
#define UNKNOWN (-INFINITY)

typedef struct search {
    const greedy_task *task;
    const qkv_model *model;
    int of_set; /* the metric is one of all prompts together */
    greedy *found;
    qkv_journal file; /* where the task has one */
    qkv_text chosen;  /* their edits, joined */
    int64_t done, wanted;
    int *stopped;
} search;

/* Some candidates of a step. */
typedef struct block {
    size_t candidates[LARGEST_BLOCK];
    double values[LARGEST_BLOCK];
    size_t n;
} block;

/* ---- checks ---- */

int64_t qkv_greedy_n_tries(const greedy_task *task) {
    const int64_t steps = (int64_t)task->n_steps, heads = (int64_t)task->n_candidates;
    return (steps * heads - steps * (steps - 1) / 2) * (int64_t)task->n_prompts;
}

static int check_metric(const greedy_task *task, qkv_metric_scope *scope, qkv_error *err) {
    qkv_measure *measure = NULL;
    int status = qkv_measure_new(&measure, task->metric, NULL, err);
    if (status != QKV_OK) return status;
    const qkv_metric_info *info = qkv_measure_info(measure, 0);
    *scope = info->scope;
    if (qkv_measure_info(measure, 1) || info->scope < QKV_SCOPE_VARIANT || !info->compares)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "heads are chosen by one metric that compares outputs, e.g. output_kl, "
                          "not by %s",
                          task->metric);
    qkv_measure_free(measure);
    return status;
}

static int check(search *s, qkv_error *err) {
    const greedy_task *task = s->task;
    qkv_metric_scope scope;
    const int status = check_metric(task, &scope, err);
    if (status != QKV_OK) return status;
    s->of_set = scope == QKV_SCOPE_SET;
    if (s->of_set && task->n_prompts < 2)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%s is about how prompts lie to each other; give at least two",
                        task->metric);
    if (!task->n_prompts || !task->n_steps || task->n_steps > task->n_candidates)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%zu heads cannot be chosen out of %zu",
                        task->n_steps, task->n_candidates);
    return QKV_OK;
}

/* ---- one block ---- */

static void add_edit(const search *s, qkv_text *edits, size_t candidate) {
    const greedy_head *head = &s->task->candidates[candidate];
    qkv_text_printf(edits, "%s@%d.h%d=%s", s->task->target, (int)head->layer, (int)head->head,
                    s->task->op);
}

static int add_variants(const search *s, qkv_plan *plan, const block *some, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < some->n && status == QKV_OK; i++) {
        qkv_text edits = {0};
        qkv_text_puts(&edits, s->chosen.length ? s->chosen.data : "");
        add_edit(s, &edits, some->candidates[i]);
        status =
            edits.failed ? qkv_fail_memory(err) : qkv_plan_add_variant(plan, edits.data, NULL, err);
        qkv_text_release(&edits);
    }
    return status;
}

static void add_values(block *some, const qkv_table *table, size_t n_tables) {
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; qkv_table_get(table, i, &row); i++) {
        if (row.variant) some->values[row.variant - 1] += row.value / (double)n_tables;
    }
}

static int try_prompt(const search *s, qkv_measure *measure, const qkv_own_prompt *prompt,
                      block *some, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    int status = qkv_plan_new(&plan, s->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = add_variants(s, plan, some, err);
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, s->task->session, plan, err);
    if (status == QKV_OK && !s->of_set) add_values(some, table, s->task->n_prompts);
    qkv_table_free(table);
    qkv_plan_free(plan);
    return status;
}

static void report(search *s, size_t n) {
    const greedy_task *task = s->task;
    s->done += (int64_t)n;
    if (task->progress && task->progress(task->user, s->done, s->wanted) != 0)
        *s->stopped = s->done < s->wanted;
}

static int finish_set(const search *s, qkv_measure *measure, block *some, qkv_error *err) {
    qkv_table *table = NULL;
    if (!s->of_set) return QKV_OK;
    const int status = qkv_measure_finish(measure, &table, err);
    if (status == QKV_OK) add_values(some, table, 1);
    qkv_table_free(table);
    return status;
}

static int check_values(const search *s, const block *some, qkv_error *err) {
    for (size_t i = 0; i < some->n; i++) {
        if (isnan(some->values[i]))
            return qkv_fail(err, QKV_ERR_ARGUMENT, "%s has no value with %zu prompts",
                            s->task->metric, s->task->n_prompts);
    }
    return QKV_OK;
}

/* *complete is 0 where it was stopped in the middle. */
static int try_block(search *s, block *some, int *complete, qkv_error *err) {
    const greedy_task *task = s->task;
    qkv_measure *measure = NULL;
    size_t tried = 0;
    int status = qkv_measure_new(&measure, task->metric, NULL, err);
    for (size_t i = 0; i < some->n; i++) some->values[i] = 0;
    while (tried < task->n_prompts && status == QKV_OK && !*s->stopped) {
        status = qkv_session_reach(task->session, (double)s->done, (double)some->n, err);
        if (status == QKV_OK) status = try_prompt(s, measure, &task->prompts[tried], some, err);
        tried++;
        if (status == QKV_OK) report(s, some->n);
    }
    *complete = status == QKV_OK && tried == task->n_prompts;
    if (*complete) status = finish_set(s, measure, some, err);
    if (*complete && status == QKV_OK) status = check_values(s, some, err);
    qkv_measure_free(measure);
    return status;
}

/* ---- one step ---- */

/* The next candidates, from `from` on, that are not computed. */
static void next_block(const search *s, const double *values, size_t *from, block *some) {
    some->n = 0;
    while (*from < s->task->n_candidates && some->n < LARGEST_BLOCK) {
        if (values[*from] == UNKNOWN) some->candidates[some->n++] = *from;
        ++*from;
    }
}

static int try_all(search *s, size_t step, double *values, qkv_error *err) {
    int status = QKV_OK, complete = 0;
    for (size_t from = 0; from < s->task->n_candidates && status == QKV_OK && !*s->stopped;) {
        block some;
        next_block(s, values, &from, &some);
        if (!some.n) break;
        status = try_block(s, &some, &complete, err);
        if (status != QKV_OK || !complete) return status;
        for (size_t i = 0; i < some.n; i++) values[some.candidates[i]] = some.values[i];
        if (s->task->file)
            status = qkv_greedy_file_put(&s->file, s->task, step, some.candidates, some.n,
                                         some.values, err);
    }
    return status;
}

static int begin_step(search *s, size_t step, double **values, qkv_error *err) {
    const size_t n = s->task->n_candidates;
    *values = qkv_calloc(n, sizeof **values);
    if (!*values) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) (*values)[i] = UNKNOWN;
    for (size_t i = 0; i < step; i++) (*values)[s->found->steps[i].chosen] = NAN;
    int64_t n_read = 0;
    return s->task->file ? qkv_greedy_file_read(&s->file, s->task, step, *values, &n_read, err)
                         : QKV_OK;
}

static int choose(search *s, greedy_step *step, qkv_error *err) {
    size_t best = s->task->n_candidates;
    for (size_t i = 0; i < s->task->n_candidates; i++) {
        if (isnan(step->values[i])) continue;
        if (best == s->task->n_candidates || step->values[i] > step->values[best]) best = i;
    }
    step->chosen = best;
    add_edit(s, &s->chosen, best);
    qkv_text_puts(&s->chosen, " + ");
    return s->chosen.failed ? qkv_fail_memory(err) : QKV_OK;
}

static int run_step(search *s, size_t at, qkv_error *err) {
    greedy_step *step = &s->found->steps[at];
    int status = begin_step(s, at, &step->values, err);
    if (status == QKV_OK) status = try_all(s, at, step->values, err);
    if (status == QKV_OK && !*s->stopped) status = choose(s, step, err);
    if (status == QKV_OK && !*s->stopped) s->found->n_steps++;
    return status;
}

/* ---- all steps ---- */

static int run_steps(search *s, qkv_error *err) {
    const greedy_task *task = s->task;
    int status = qkv_session_begin_work(task->session, "runs", (double)s->wanted, err);
    if (status != QKV_OK) return status;
    report(s, 0);
    for (size_t i = 0; i < task->n_steps && status == QKV_OK && !*s->stopped; i++)
        status = run_step(s, i, err);
    (void)qkv_session_end_work(task->session, *s->stopped ? QKV_ERR_CANCELLED : status);
    return status;
}

static int open_file(search *s, qkv_error *err) {
    int status = qkv_greedy_file_open(&s->file, s->task, err);
    for (size_t i = 0; i < s->task->n_steps && status == QKV_OK; i++)
        status = qkv_greedy_file_read(&s->file, s->task, i, NULL, &s->done, err);
    s->done *= (int64_t)s->task->n_prompts;
    return status;
}

int qkv_greedy_run(greedy *found, const greedy_task *task, int *stopped, qkv_error *err) {
    search s = {.task = task,
                .model = qkv_session_model(task->session),
                .found = found,
                .wanted = qkv_greedy_n_tries(task),
                .stopped = stopped};
    *found = (greedy){0};
    *stopped = 0;
    int status = check(&s, err);
    if (status != QKV_OK) return status;
    found->steps = qkv_calloc(task->n_steps + 1, sizeof *found->steps);
    if (!found->steps) return qkv_fail_memory(err);
    if (task->file) status = open_file(&s, err);
    if (status == QKV_OK) status = run_steps(&s, err);
    const int closed = qkv_journal_close(&s.file, status == QKV_OK ? err : NULL);
    qkv_text_release(&s.chosen);
    return status == QKV_OK ? closed : status;
}

void qkv_greedy_release(greedy *found) {
    /* A step that was broken off lies after the complete ones. */
    for (size_t i = 0; found->steps && i <= found->n_steps; i++) free(found->steps[i].values);
    free(found->steps);
    *found = (greedy){0};
}
