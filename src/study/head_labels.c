#include "study/head_labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/measure.h"

#define HEAD_INFO(id, name, letter, title, threshold) {#name, letter, title, threshold},
const head_behaviour_info qkv_head_behaviours[HEAD_BEHAVIOURS] = {HEAD_BEHAVIOUR_LIST(HEAD_INFO)};
#undef HEAD_INFO

static const field fields[] = {
#define HEAD_OPTION(id, name, letter, title, threshold)                                            \
    STUDY_FIELD(heads_options, name, REAL, 0, 1),
    HEAD_BEHAVIOUR_LIST(HEAD_OPTION)
#undef HEAD_OPTION
        STUDY_FIELD(heads_options, length, COUNT, 0, 1 << 20),
    STUDY_FIELD(heads_options, sequences, COUNT, 0, 10000),
    STUDY_FIELD(heads_options, seed, COUNT, 0, 1e15),
    STUDY_FIELD(heads_options, top, COUNT, 0, 1e9),
    STUDY_FIELD(heads_options, pairs, TEXT, 0, STUDY_MOST_TEXT),
};

/* ---- labels ---- */

int qkv_head_label(const double scores[HEAD_BEHAVIOURS], const double thresholds[HEAD_BEHAVIOURS]) {
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) {
        if (scores[i] >= thresholds[i]) return i;
    }
    return -1;
}

int qkv_head_scores_label(const head_scores *s, size_t index) {
    double scores[HEAD_BEHAVIOURS];
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) scores[i] = s->of[i] ? s->of[i][index] : (double)NAN;
    return qkv_head_label(scores, s->thresholds);
}

static void choose_thresholds(head_scores *s, const heads_options *options) {
    const double given[HEAD_BEHAVIOURS] = {
#define HEAD_GIVEN(id, name, letter, title, threshold) options->name,
        HEAD_BEHAVIOUR_LIST(HEAD_GIVEN)
#undef HEAD_GIVEN
    };
    for (int i = 0; i < HEAD_BEHAVIOURS; i++)
        s->thresholds[i] = given[i] > 0 ? given[i] : qkv_head_behaviours[i].threshold;
}

/* ---- texts ---- */

/* What is measured on texts: in the order of the metrics below. */
static const head_behaviour of_texts[] = {HEAD_PREVIOUS, HEAD_SELF, HEAD_SINK};
static const char text_metrics[] = "previous,diagonal,first_column";

static int measure_prompt(head_scores *s, qkv_measure *measure, const study_inputs *in,
                          const study_prompt *prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    int status = qkv_plan_new(&plan, in->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, in->session, plan, err);
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; status == QKV_OK && qkv_table_get(table, i, &row); i++)
        s->of[of_texts[row.metric]][(size_t)row.layer * s->n_head + (size_t)row.head] += row.value;
    qkv_table_free(table);
    qkv_plan_free(plan);
    return status;
}

/* The mean over prompts: all count the same. One of a single token has no such weights. */
static int measure_texts(head_scores *s, const study_inputs *in, qkv_error *err) {
    qkv_measure *measure = NULL;
    size_t n = 0;
    int status = qkv_measure_new(&measure, text_metrics, NULL, err);
    for (size_t i = 0; i < in->prompts.n && status == QKV_OK; i++) {
        if (in->prompts.items[i].n_tokens < 2) continue;
        status = measure_prompt(s, measure, in, &in->prompts.items[i], err);
        n++;
    }
    if (status == QKV_OK && n == 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "no prompt has two tokens or more");
    for (size_t k = 0; k < sizeof of_texts / sizeof *of_texts; k++) {
        for (size_t i = 0; i < s->n_layer * s->n_head; i++) s->of[of_texts[k]][i] /= (double)n;
    }
    qkv_measure_free(measure);
    return status;
}

/* ---- the study ---- */

static int allocate(head_scores *s, int has_names, qkv_error *err) {
    const size_t n = s->n_layer * s->n_head;
    int ok = 1;
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) {
        if (i == HEAD_NAME_MOVER && !has_names) continue;
        ok &= (s->of[i] = qkv_calloc(n, sizeof *s->of[i])) != NULL;
    }
    if (has_names) {
        s->name_attention = qkv_calloc(n, sizeof *s->name_attention);
        s->name_copying = qkv_calloc(n, sizeof *s->name_copying);
        ok &= s->name_attention && s->name_copying;
    }
    return ok ? QKV_OK : qkv_fail_memory(err);
}

static void release(head_scores *s) {
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) free(s->of[i]);
    free(s->name_attention);
    free(s->name_copying);
    free(s->repeats);
}

static int make_heads(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const heads_options *options = given;
    const qkv_model_info *info = qkv_model_get_info(in->model);
    head_scores s = {.n_layer = (size_t)info->n_layer, .n_head = (size_t)info->n_head};
    if (!info->has_logits || !info->causal)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s is an encoder: heads are labelled by what they look back to",
                        info->path);
    choose_thresholds(&s, options);
    int status = allocate(&s, options->pairs != NULL, err);
    if (status == QKV_OK) status = qkv_head_scores_repeats(&s, in, options, err);
    if (status == QKV_OK) status = measure_texts(&s, in, err);
    if (status == QKV_OK && options->pairs)
        status = qkv_head_scores_names(&s, in, options->pairs, err);
    if (status == QKV_OK) status = qkv_head_scores_show(&s, study, in, options, err);
    release(&s);
    return status;
}

const study_kind qkv_study_heads = {
    .name = "heads",
    .title = "what every head does: induction, previous token, sink and others",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .options_size = sizeof(heads_options),
    .least_prompts = 1,
    .most_prompts = 100000,
    .make = make_heads,
};
