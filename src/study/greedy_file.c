/* The values of a greedy search on disk. A block of candidates is one transaction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "study/greedy.h"

static const qkv_journal_kind kind = {
    .noun = "search for heads", .formats = {"qkv greedy 2"}, .former = "tried"};

static json_t *numbers_of(const int32_t *numbers, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, json_integer(numbers[i]));
    return list;
}

/* All that values depend on, besides the model. */
static char *describe(const greedy_task *task) {
    json_t *prompts = json_array(), *heads = json_array();
    for (size_t i = 0; i < task->n_prompts; i++)
        qkv_json_push(prompts, numbers_of(task->prompts[i].tokens, task->prompts[i].n_tokens));
    for (size_t i = 0; i < task->n_candidates; i++)
        qkv_json_push(heads, json_pack("[i,i]", (int)task->candidates[i].layer,
                                       (int)task->candidates[i].head));
    json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:o}", "target", task->target, "op", task->op,
                            "metric", task->metric, "prompts", prompts, "candidates", heads);
    char *text = all ? qkv_json_dump(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    return text;
}

int qkv_greedy_file_open(qkv_journal *file, const greedy_task *task, qkv_error *err) {
    char *spec = describe(task);
    if (!spec) return qkv_fail_memory(err);
    const qkv_journal_work work = {
        .kind = &kind, .model = qkv_session_model(task->session), .spec = spec};
    const int status = qkv_journal_open(file, task->file, &work, err);
    free(spec);
    return status;
}

enum { KEY_SIZE = 64 };

/* "step 0 layer 3 head 5" */
static void name_value(char key[KEY_SIZE], size_t step, const greedy_head *head) {
    qkv_format(key, KEY_SIZE, "step %zu layer %d head %d", step, (int)head->layer, (int)head->head);
}

/* What is not a number counts for nothing: it is computed again. */
int qkv_greedy_file_read(qkv_journal *file, const greedy_task *task, size_t step, double *values,
                         int64_t *n, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < task->n_candidates && status == QKV_OK; i++) {
        char key[KEY_SIZE], *text = NULL;
        double value;
        name_value(key, step, &task->candidates[i]);
        status = qkv_journal_get(file, key, &text, err);
        if (text && !(values && isnan(values[i])) && qkv_parse_double(text, strlen(text), &value)) {
            if (values) values[i] = value;
            ++*n;
        }
        free(text);
    }
    return status;
}

int qkv_greedy_file_put(qkv_journal *file, const greedy_task *task, size_t step,
                        const size_t *candidates, size_t n, const double *values, qkv_error *err) {
    int status = qkv_journal_begin(file, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        char key[KEY_SIZE], text[32];
        name_value(key, step, &task->candidates[candidates[i]]);
        qkv_format(text, sizeof text, "%.17g", values[i]);
        status = qkv_journal_put(file, key, text, err);
    }
    return qkv_journal_end(file, status, err);
}
