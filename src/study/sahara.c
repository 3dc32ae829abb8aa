/*
 * Generalised Ships and Sahara (Zhou et al., arXiv 2410.13708): how far silencing a head turns the last
 * hidden states of a set of prompts; and the set of heads that turn them most together, built greedily
 * out of all heads of the model.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "draw/draw.h"
#include "study/greedy.h"
#include "study/head_ablation.h"
#include "study/head_tables.h"

enum { USUAL_STEPS = 3, MOST_STEPS = 1000, MOST_PANELS = 6 };
enum { SPACE_PROMPT, SPACE_FEATURE };

typedef struct sahara_options {
    ablation_options ablation;
    int32_t steps; /* 0: 3 */
    int32_t rank;  /* 0: 1, as in the paper's code */
    int space;
} sahara_options;

static const field fields[] = {ABLATION_FIELDS(sahara_options),
                               FIELD(sahara_options, steps, INT, "N", 1, MOST_STEPS,
                                     "heads that are silenced, one after the other (default 3)"),
                               FIELD(sahara_options, rank, INT, "N", 1, 1024,
                                     "singular vectors that are compared (default 1)"),
                               FIELD_WORDS(sahara_options, space, "prompt|feature",
                                           "singular vectors of prompts (default) or of features")};

typedef struct sahara {
    const study_inputs *in;
    head_ablation how;
    char metric[64];
    size_t n_layer, n_head, n_heads;
    greedy_head *heads;
    greedy_task task;
    greedy found;
    qkv_error *err;
} sahara;

/* ---- computing ---- */

static int on_progress(void *user, int64_t done, int64_t wanted) {
    (void)wanted;
    const sahara *s = user;
    return qkv_study_reach(s->in, (double)done, 0, s->err) != QKV_OK;
}

static int prepare(sahara *s, qkv_error *err) {
    s->heads = qkv_calloc(s->n_heads, sizeof *s->heads);
    if (!s->heads) return qkv_fail_memory(err);
    for (size_t i = 0; i < s->n_heads; i++)
        s->heads[i] = (greedy_head){(int32_t)(i / s->n_head), (int32_t)(i % s->n_head)};
    return QKV_OK;
}

static int search(sahara *s, size_t n_steps, qkv_error *err) {
    int stopped = 0;
    s->err = err;
    s->task = (greedy_task){.session = s->in->session,
                            .prompts = s->in->prompts.items,
                            .n_prompts = s->in->prompts.n,
                            .target = s->how.target,
                            .op = s->how.op,
                            .metric = s->metric,
                            .candidates = s->heads,
                            .n_candidates = s->n_heads,
                            .n_steps = n_steps,
                            .file = s->in->results,
                            .progress = on_progress,
                            .user = s};
    const int status = qkv_greedy_run(&s->found, &s->task, &stopped, err);
    return status == QKV_OK && stopped ? QKV_ERR_CANCELLED : status; /* progress has said why */
}

/* ---- tables ---- */

static int add_steps(const sahara *s, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"step", "layer", "head", "angle", "added"};
    double before = 0;
    int status = qkv_study_add_table(
        study, "steps", "Heads that together turn the states most, in degrees", columns, 5, err);
    for (size_t i = 0; i < s->found.n_steps && status == QKV_OK; i++) {
        const greedy_step *step = &s->found.steps[i];
        const double angle = step->values[step->chosen];
        const study_value row[] = {STUDY_NUMBER(i + 1), STUDY_NUMBER(s->heads[step->chosen].layer),
                                   STUDY_NUMBER(s->heads[step->chosen].head), STUDY_NUMBER(angle),
                                   STUDY_NUMBER(angle - before)};
        before = angle;
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static int add_ranking(const sahara *s, qkv_study *study, const head_value *ranked,
                       qkv_error *err) {
    static const char *const columns[] = {"rank", "layer", "head", "angle"};
    int status = qkv_study_add_table(study, "ranking",
                                     "Heads by generalised Ships: the angle of each alone, in "
                                     "degrees",
                                     columns, 4, err);
    for (size_t i = 0; i < s->n_heads && status == QKV_OK; i++) {
        const study_value row[] = {STUDY_NUMBER(i + 1), STUDY_NUMBER(ranked[i].layer),
                                   STUDY_NUMBER(ranked[i].head), STUDY_NUMBER(ranked[i].value)};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static int add_scores(const sahara *s, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"step", "layer", "head", "angle"};
    int status =
        qkv_study_add_table(study, "scores", "Every head that a step tried", columns, 4, err);
    for (size_t i = 0; i < s->found.n_steps * s->n_heads && status == QKV_OK; i++) {
        const size_t step = i / s->n_heads, at = i % s->n_heads;
        const double angle = s->found.steps[step].values[at];
        const study_value row[] = {STUDY_NUMBER(step + 1), STUDY_NUMBER(s->heads[at].layer),
                                   STUDY_NUMBER(s->heads[at].head), STUDY_NUMBER(angle)};
        if (!isnan(angle)) status = qkv_study_add_row(study, row, err);
    }
    return status;
}

/* ---- pictures ---- */

/* A panel for each of the first steps; those chosen before have no value there. */
static int add_maps(const sahara *s, qkv_study *study, qkv_error *err) {
    head_panel panels[MOST_PANELS];
    head_value *values[MOST_PANELS] = {0};
    char titles[MOST_PANELS][32];
    size_t n = s->found.n_steps < MOST_PANELS ? s->found.n_steps : MOST_PANELS;
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        values[i] = qkv_head_values(s->n_layer, s->n_head, s->found.steps[i].values);
        snprintf(titles[i], sizeof titles[i], "Step %zu", i + 1);
        panels[i] = (head_panel){values[i], n > 1 ? titles[i] : NULL};
        if (!values[i]) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK)
        status =
            qkv_head_map(study, "heads", panels, n, s->n_layer, s->n_head, "angle (degrees)", err);
    if (status == QKV_OK) qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    for (size_t i = 0; i < n; i++) free(values[i]);
    return status;
}

/* From no head at all on. */
static int add_line(const sahara *s, qkv_study *study, qkv_error *err) {
    const size_t n = s->found.n_steps + 1;
    double *x = qkv_calloc(2 * n, sizeof *x);
    if (!x) return qkv_fail_memory(err);
    for (size_t i = 1; i < n; i++) {
        const greedy_step *step = &s->found.steps[i - 1];
        x[i] = (double)i;
        x[n + i] = step->values[step->chosen];
    }
    qkv_series series = QKV_SERIES_INIT;
    series.label = "angle";
    series.x = x;
    series.y = x + n;
    series.n = n;
    qkv_lines lines = QKV_LINES_INIT;
    lines.series = &series;
    lines.n_series = 1;
    lines.x.label = "heads silenced";
    lines.y.label = "angle (degrees)";
    const int status =
        qkv_study_add_lines(study, "steps", "Angle as More Heads Are Silenced", &lines, err);
    free(x);
    return status;
}

/* ---- the study ---- */

static int show(const sahara *s, qkv_study *study, qkv_error *err) {
    const int alone = s->found.n_steps == 1;
    head_value *ranked = qkv_head_values(s->n_layer, s->n_head, s->found.steps[0].values);
    if (!ranked) return qkv_fail_memory(err);
    qkv_head_values_sort(ranked, s->n_heads);
    qkv_study_set_title(study, alone ? "Generalised Ships: How Far Each Head Turns the Last States"
                                     : "Sahara: Heads That Together Turn the Last States");
    qkv_head_ablation_note(study, &s->how);
    qkv_study_note(study, "%s of the last tokens' states after the final norm, %zu prompts",
                   s->metric, s->in->prompts.n);
    int status = alone ? add_ranking(s, study, ranked, err) : add_steps(s, study, err);
    if (status == QKV_OK)
        status = alone ? add_steps(s, study, err) : add_ranking(s, study, ranked, err);
    if (status == QKV_OK) status = add_scores(s, study, err);
    if (status == QKV_OK) status = add_maps(s, study, err);
    if (status == QKV_OK)
        status = qkv_head_bars(study, "ranking", ranked, s->n_heads, "angle (degrees)", err);
    if (status == QKV_OK && !alone) status = add_line(s, study, err);
    free(ranked);
    return status;
}

static int make_sahara(qkv_study *study, const study_inputs *in, const void *given,
                       qkv_error *err) {
    const sahara_options *options = given;
    const qkv_model_info *info = qkv_model_get_info(in->model);
    const size_t n_steps = options->steps ? (size_t)options->steps : USUAL_STEPS;
    sahara s = {.in = in,
                .n_layer = (size_t)info->n_layer,
                .n_head = (size_t)info->n_head,
                .n_heads = (size_t)info->n_layer * (size_t)info->n_head};
    snprintf(s.metric, sizeof s.metric, "subspace_angle:%d/%s",
             options->rank ? (int)options->rank : 1,
             options->space == SPACE_FEATURE ? "feature" : "prompt");
    int status = qkv_head_ablation_of(&s.how, &options->ablation, in->model, err);
    if (status == QKV_OK) status = prepare(&s, err);
    if (status == QKV_OK) status = search(&s, n_steps, err);
    if (status == QKV_OK) status = show(&s, study, err);
    qkv_greedy_release(&s.found);
    free(s.heads);
    return status;
}

const study_kind qkv_study_sahara = {
    .name = "sahara",
    .title = "Sahara: the heads that together turn the last states of prompts most (Zhou et al.)",
    .description =
        "Sahara (Zhou et al., arXiv 2410.13708): the last tokens' states after the final norm make a matrix "
        "with a row per prompt. Each head is silenced, and the first singular vectors with and without it are "
        "compared: their angle, in degrees. The head with the largest angle stays silenced, then every "
        "other head is tried beside it, and so on. With one step this is Generalised Ships.\n",
    .examples = "qkv sahara -f prompts.txt --steps 1 -o sahara.png\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(sahara_options),
    .least_prompts = 2,
    .most_prompts = 100000,
    .keeps_results = 1,
    .make = make_sahara,
};
