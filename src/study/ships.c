/*
 * Ships (Zhou et al., arXiv 2410.13708): how far the distribution of the next token moves when one head
 * is silenced, for every head and every prompt. A sweep with one target and one operation computes it, so
 * that it is batched, and resumes from its file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "qkv/sweep_reader.h"
#include "study/head_ablation.h"
#include "study/head_tables.h"
#include "sweep/sweep.h"

enum { USUAL_TOP = 10 };

typedef struct ships_options {
    ablation_options ablation;
    int32_t top; /* heads of a prompt that are listed; 0: 10, as in the paper's code */
} ships_options;

static const field fields[] = {ABLATION_FIELDS(ships_options),
                               FIELD(ships_options, top, INT, "N", 1, 1000,
                                     "heads of the ranking on every prompt (default 10)")};

typedef struct ships {
    const study_inputs *in;
    head_ablation how;
    size_t n_layer, n_head, n_heads; /* of a layer; of all layers */
    size_t top;
    double *values; /* prompts × layers × heads */
} ships;

/* ---- computing ---- */

static json_t *tokens_json(const qkv_own_prompt *prompt) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++)
        qkv_json_push(list, json_integer(prompt->tokens[i]));
    return list;
}

static int make_sweep(const ships *s, qkv_sweep **sweep, qkv_error *err) {
    json_t *prompts = json_array();
    for (size_t i = 0; i < s->in->prompts.n; i++)
        qkv_json_push(prompts, tokens_json(&s->in->prompts.items[i]));
    json_t *spec = json_pack("{s:o, s:s, s:[s], s:[s], s:[s]}", "prompts", prompts, "at", "output",
                             "targets", s->how.target, "ops", s->how.op, "metrics", "ships");
    char *text = spec ? qkv_json_dump(spec, 0) : NULL;
    json_decref(spec);
    const int status = text ? qkv_sweep_new(sweep, s->in->model, text, err) : qkv_fail_memory(err);
    free(text);
    return status;
}

static size_t place(const ships *s, size_t prompt, int32_t layer, int32_t head) {
    return prompt * s->n_heads + (size_t)layer * s->n_head + (size_t)head;
}

/* Cells of a block have their values one after the other: there is one metric. */
static void take_block(ships *s, const qkv_sweep *sweep, int64_t first, int64_t n,
                       const double *values) {
    qkv_cell cell = QKV_CELL_INIT;
    for (int64_t i = 0; i < n; i++) {
        (void)qkv_sweep_get_cell(sweep, first + i, &cell); /* its place is there, if not its edit */
        s->values[place(s, cell.prompt, cell.layer, cell.head)] = values[i];
    }
}

static int compute(ships *s, const qkv_sweep *sweep, qkv_error *err) {
    const int64_t wanted = qkv_sweep_n_cells(sweep);
    double *values = qkv_calloc(s->n_head, sizeof *values); /* a block is a layer of a prompt */
    if (!values) return qkv_fail_memory(err);
    int status = qkv_study_begin(s->in, "cells", (size_t)wanted, err);
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep) && status == QKV_OK; b++) {
        int64_t n = 0;
        const int64_t first = qkv_sweep_block(sweep, b, &n);
        status = qkv_study_reach(s->in, (double)(first), (double)(n), err);
        if (status == QKV_OK) status = qkv_sweep_compute(sweep, s->in->session, b, values, err);
        if (status == QKV_OK) take_block(s, sweep, first, n, values);
    }
    if (status == QKV_OK) status = qkv_study_reach(s->in, (double)(wanted), (double)(0), err);
    free(values);
    return qkv_study_end(s->in, status);
}

/* ---- in a file ---- */

typedef struct watch {
    const study_inputs *in;
    qkv_error *err;
} watch;

static int on_progress(void *user, int64_t done, int64_t wanted) {
    (void)wanted;
    const watch *w = user;
    return qkv_study_reach(w->in, (double)(done), (double)(0), w->err) != QKV_OK;
}

static int read_file(ships *s, qkv_error *err) {
    qkv_sweep_reader *file = NULL;
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    int status = qkv_sweep_reader_open(&file, s->in->results, err);
    if (status == QKV_OK) status = qkv_sweep_reader_rows(file, "ships", &rows, err);
    for (size_t i = 0; status == QKV_OK && qkv_sweep_rows_get(rows, i, &row); i++)
        s->values[place(s, (size_t)row.prompt, row.layer, row.head)] = row.value;
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
    return status;
}

static int compute_in_file(ships *s, const qkv_sweep *sweep, qkv_error *err) {
    qkv_sweep_writer *results = NULL;
    watch w = {s->in, err};
    int stopped = 0;
    qkv_sweep_options options = QKV_SWEEP_OPTIONS_INIT;
    options.progress = on_progress;
    options.user = &w;
    const int64_t wanted = qkv_sweep_n_cells(sweep);
    int64_t done = 0;
    int status = qkv_sweep_writer_open(&results, sweep, s->in->results, NULL, err);
    if (status == QKV_OK) status = qkv_sweep_writer_n_done(results, &done, err);
    if (status == QKV_OK) status = qkv_study_begin(s->in, "cells", (size_t)wanted, err);
    if (status == QKV_OK) {
        status = qkv_study_reach(s->in, (double)(done), (double)(wanted - done), err);
        status = qkv_study_end(s->in, status);
    }
    if (status == QKV_OK)
        status = qkv_sweep_run(sweep, s->in->session, results, &options, &stopped, err);
    if (status == QKV_OK && stopped) status = QKV_ERR_CANCELLED; /* with the message of progress */
    const int closed = qkv_sweep_writer_close(results, status == QKV_OK ? err : NULL);
    if (status == QKV_OK) status = closed;
    return status == QKV_OK ? read_file(s, err) : status;
}

static int compute_all(ships *s, qkv_error *err) {
    qkv_sweep *sweep = NULL;
    s->values = qkv_calloc(s->in->prompts.n * s->n_heads, sizeof *s->values);
    int status = s->values ? make_sweep(s, &sweep, err) : qkv_fail_memory(err);
    if (status == QKV_OK)
        status = s->in->results ? compute_in_file(s, sweep, err) : compute(s, sweep, err);
    qkv_sweep_free(sweep);
    return status;
}

/* ---- heads over all prompts ---- */

/* Means over prompts, and how far they reach; in the order of layers and heads. */
static void take_means(const ships *s, head_value *all) {
    const size_t n = s->in->prompts.n;
    for (size_t h = 0; h < s->n_heads; h++) {
        double sum = 0;
        for (size_t p = 0; p < n; p++) {
            const double value = s->values[p * s->n_heads + h];
            sum += value;
            all[h].lowest = fmin(all[h].lowest, value);
            all[h].highest = fmax(all[h].highest, value);
        }
        all[h].value = sum / (double)n;
    }
}

/* The heads of one prompt, the largest first; NULL: no memory. */
static head_value *rank_prompt(const ships *s, size_t prompt) {
    head_value *heads = qkv_head_values(s->n_layer, s->n_head, s->values + prompt * s->n_heads);
    if (heads) qkv_head_values_sort(heads, s->n_heads);
    return heads;
}

/* As the paper's code ranks over prompts: by how often a head is among the first of a prompt. */
static int count_tops(const ships *s, head_value *all, qkv_error *err) {
    for (size_t p = 0; p < s->in->prompts.n; p++) {
        head_value *own = rank_prompt(s, p);
        if (!own) return qkv_fail_memory(err);
        for (size_t i = 0; i < s->top; i++) {
            head_value *head = &all[(size_t)own[i].layer * s->n_head + (size_t)own[i].head];
            head->n_tops++;
            head->top_sum += own[i].value;
        }
        free(own);
    }
    return QKV_OK;
}

/* ---- tables ---- */

static int add_ranking(const ships *s, qkv_study *study, const head_value *heads, qkv_error *err) {
    static const char *const columns[] = {"rank",   "layer",   "head",     "ships",
                                          "lowest", "highest", "in_first", "sum_in_first"};
    int status = qkv_study_add_table(study, "ranking", "Heads by Ships, mean over the prompts",
                                     columns, 8, err);
    for (size_t i = 0; i < s->n_heads && status == QKV_OK; i++) {
        const head_value *h = &heads[i];
        const study_value row[] = {
            STUDY_NUMBER(i + 1),     STUDY_NUMBER(h->layer),   STUDY_NUMBER(h->head),
            STUDY_NUMBER(h->value),  STUDY_NUMBER(h->lowest),  STUDY_NUMBER(h->highest),
            STUDY_NUMBER(h->n_tops), STUDY_NUMBER(h->top_sum),
        };
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static int add_prompt(const ships *s, qkv_study *study, size_t prompt, qkv_error *err) {
    head_value *own = rank_prompt(s, prompt);
    int status = own ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < s->top && status == QKV_OK; i++) {
        const study_value row[] = {STUDY_NUMBER(prompt + 1), STUDY_NUMBER(i + 1),
                                   STUDY_NUMBER(own[i].layer), STUDY_NUMBER(own[i].head),
                                   STUDY_NUMBER(own[i].value)};
        status = qkv_study_add_row(study, row, err);
    }
    free(own);
    return status;
}

static int add_prompts(const ships *s, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"prompt", "rank", "layer", "head", "ships"};
    int status =
        qkv_study_add_table(study, "prompts", "The first heads of every prompt", columns, 5, err);
    for (size_t p = 0; p < s->in->prompts.n && status == QKV_OK; p++)
        status = add_prompt(s, study, p, err);
    return status;
}

static int add_scores(const ships *s, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"prompt", "layer", "head", "ships"};
    int status =
        qkv_study_add_table(study, "scores", "Every head on every prompt", columns, 4, err);
    for (size_t i = 0; i < s->in->prompts.n * s->n_heads && status == QKV_OK; i++) {
        const size_t prompt = i / s->n_heads, at = i % s->n_heads;
        const size_t layer = at / s->n_head, head = at % s->n_head;
        const study_value row[] = {STUDY_NUMBER(prompt + 1), STUDY_NUMBER(layer),
                                   STUDY_NUMBER(head), STUDY_NUMBER(s->values[i])};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

/* ---- the study ---- */

static int show(const ships *s, qkv_study *study, qkv_error *err) {
    head_value *all = qkv_head_values(s->n_layer, s->n_head, s->values);
    const head_panel panel = {all, NULL};
    if (!all) return qkv_fail_memory(err);
    take_means(s, all);
    int status = count_tops(s, all, err);
    qkv_study_set_title(study, "Ships: What Each Head Means for the Next Token");
    qkv_head_ablation_note(study, &s->how);
    qkv_study_note(study,
                   "Ships: KL(base ‖ edited) of the next token in nats, 1e-12 added to both");
    if (status == QKV_OK)
        status = qkv_head_map(study, "heads", &panel, 1, s->n_layer, s->n_head,
                              "Ships: KL of the next token (nats)", err);
    if (status == QKV_OK) qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    qkv_head_values_sort(all, s->n_heads);
    if (status == QKV_OK) status = add_ranking(s, study, all, err);
    if (status == QKV_OK) status = add_prompts(s, study, err);
    if (status == QKV_OK) status = add_scores(s, study, err);
    if (status == QKV_OK)
        status = qkv_head_bars(study, "ranking", all, s->n_heads,
                               "Ships: KL of the next token (nats)", err);
    free(all);
    return status;
}

static int make_ships(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const ships_options *options = given;
    const qkv_model_info *info = qkv_model_get_info(in->model);
    ships s = {.in = in,
               .n_layer = (size_t)info->n_layer,
               .n_head = (size_t)info->n_head,
               .n_heads = (size_t)info->n_layer * (size_t)info->n_head,
               .top = options->top ? (size_t)options->top : USUAL_TOP};
    if (s.top > s.n_heads) s.top = s.n_heads;
    int status = qkv_head_ablation_of(&s.how, &options->ablation, in->model, err);
    if (status == QKV_OK) status = compute_all(&s, err);
    if (status == QKV_OK) status = show(&s, study, err);
    free(s.values);
    return status;
}

const study_kind qkv_study_ships = {
    .name = "ships",
    .title = "Ships: what silencing each head does to the next token (Zhou et al.)",
    .description =
        "Ships (Zhou et al., arXiv 2410.13708): each head is silenced, and the distribution of the next "
        "token after the last one is compared with the unedited one: KL, with 1e-12 added to both. Heads are "
        "ranked by the mean over prompts, and on every prompt.\n",
    .examples = "qkv ships -f prompts.txt -o ships.png\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(ships_options),
    .least_prompts = 1,
    .most_prompts = 100000,
    .keeps_results = 1,
    .make = make_ships,
};
