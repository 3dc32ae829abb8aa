#include "study/head_labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/measure.h"

#define HEAD_INFO(id, name, letter, title, threshold) {#name, letter, title, threshold},
const head_behaviour_info qkv_head_behaviours[HEAD_BEHAVIOURS] = {HEAD_BEHAVIOUR_LIST(HEAD_INFO)};
#undef HEAD_INFO

#define THRESHOLD(member, what)                                                                    \
    FIELD(heads_options, member, REAL, "SCORE", 1e-6, 1,                                           \
          "score from which on a head is labelled " what)

static const field fields[] = {
    FIELD(heads_options, pairs, FILE, "FILE", 0, STUDY_MOST_TEXT,
          "for name movers: lines of a prompt, a tab and an answer, one token that stands in the "
          "prompt; '-' for standard input"),
    FIELD(heads_options, length, COUNT, "N", 2, 1 << 20,
          "random tokens before they come again (default 50)"),
    FIELD(heads_options, sequences, COUNT, "N", 1, 10000, "sequences of random tokens (default 4)"),
    FIELD(heads_options, seed, COUNT, "N", 0, 1e15, "which random tokens (default 0)"),
    FIELD(heads_options, top, COUNT, "N", 1, 1e9,
          "heads that are listed for each label (default 10)"),
    THRESHOLD(name_mover, "a name mover (default 0.3)"),
    THRESHOLD(induction, "induction (default 0.4)"),
    THRESHOLD(duplicate, "duplicate token (default 0.4)"),
    THRESHOLD(previous, "previous token (default 0.4)"),
    THRESHOLD(self, "self (default 0.4)"),
    THRESHOLD(sink, "first token (default 0.5)"),
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

void qkv_head_scores_note(head_scores *s, head_behaviour behaviour, size_t index, double value) {
    double *lowest = &s->lowest[behaviour][index], *highest = &s->highest[behaviour][index];
    *lowest = fmin(*lowest, value); /* NaN at first */
    *highest = fmax(*highest, value);
}

/* ---- texts ---- */

/* What is measured on texts: in the order of the metrics below. */
static const head_behaviour of_texts[] = {HEAD_PREVIOUS, HEAD_SELF, HEAD_SINK};
static const char text_metrics[] = "previous,diagonal,first_column";

static int measure_prompt(head_scores *s, qkv_measure *measure, const study_inputs *in,
                          const qkv_own_prompt *prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    int status = qkv_plan_new(&plan, in->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, in->session, plan, err);
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; status == QKV_OK && qkv_table_get(table, i, &row); i++) {
        const size_t at = (size_t)row.layer * s->n_head + (size_t)row.head;
        s->of[of_texts[row.metric]][at] += row.value;
        qkv_head_scores_note(s, of_texts[row.metric], at, row.value);
    }
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
        s->of[i] = qkv_calloc(n, sizeof *s->of[i]);
        s->lowest[i] = qkv_calloc(n, sizeof *s->lowest[i]);
        s->highest[i] = qkv_calloc(n, sizeof *s->highest[i]);
        ok &= s->of[i] && s->lowest[i] && s->highest[i];
        for (size_t k = 0; k < n && ok; k++) s->lowest[i][k] = s->highest[i][k] = (double)NAN;
    }
    if (has_names) {
        s->name_attention = qkv_calloc(n, sizeof *s->name_attention);
        s->name_copying = qkv_calloc(n, sizeof *s->name_copying);
        ok &= s->name_attention && s->name_copying;
    }
    return ok ? QKV_OK : qkv_fail_memory(err);
}

static void release(head_scores *s) {
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) {
        free(s->of[i]);
        free(s->lowest[i]);
        free(s->highest[i]);
    }
    free(s->name_attention);
    free(s->name_copying);
    free(s->repeats);
}

/* Every text is one run. */
static int compute(head_scores *s, const study_inputs *in, const heads_options *options,
                   qkv_error *err) {
    size_t n = s->n_sequences + in->prompts.n + (options->pairs != NULL);
    for (const char *line = options->pairs; line && (line = strchr(line, '\n')); line++) n++;
    int status = qkv_study_begin(in, "texts", n, err);
    if (status != QKV_OK) return status;
    status = qkv_head_scores_repeats(s, in, err);
    if (status == QKV_OK) status = measure_texts(s, in, err);
    if (status == QKV_OK && options->pairs)
        status = qkv_head_scores_names(s, in, options->pairs, err);
    return qkv_study_end(in, status);
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
    if (status == QKV_OK) status = qkv_head_scores_draw(&s, in, options, err);
    if (status == QKV_OK) status = compute(&s, in, options, err);
    if (status == QKV_OK) status = qkv_head_scores_show(&s, study, in, options, err);
    release(&s);
    return status;
}

const study_kind qkv_study_roles = {
    .name = "roles",
    .former = "heads",
    .title = "what every head does: induction, previous token, sink and others",
    .description =
        "Every head gets scores, from 0 to 1, and one label. On random tokens that come twice: "
        "induction, the mean weight from a token's second time to what followed its first time; "
        "duplicate, to the first time itself. On texts (without any: the library's own): previous, "
        "self and sink, the mean weight on the token before, on the token itself and on the first "
        "token. With `pairs`, name movers: the weight from the last token to the answer, where "
        "what the head writes for it has the answer among its five highest logits.\n"
        "\n"
        "The label is the first of name mover, induction, duplicate, previous, self and sink whose "
        "threshold the score reaches. The first table has the first heads of each label, with the "
        "lowest and the highest score of a single text; the table 'heads', which a CSV holds, has all "
        "heads and scores, 'repeats' the random tokens. The pictures are labels and scores.\n",
    .examples = "qkv roles -o roles.png\n"
                "qkv roles -m tinyllama --picture scores -o scores.pdf   # needs a download\n",
    .default_prompts = 8,
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(heads_options),
    .least_prompts = 1,
    .most_prompts = 100000,
    .make = make_heads,
};
