/*
 * The study `measure`: metrics of every head (qkv/measure.h), for any number of prompts and variants: all values, and
 * for each variant and metric the mean and the extremes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/generate.h"
#include "qkv/measure.h"
#include "study/answers.h"
#include "study/table.h"

typedef struct measure_options {
    const char *variant; /* edits, a line for each variant */
    const char *metrics, *answer, *layers, *heads;
    int32_t generate; /* 0: not given */
} measure_options;

/* clang-format off: a field to two or three lines */
static const field fields[] = {
    FIELD(measure_options, variant, LIST, "EDITS", 0, STUDY_MOST_TEXT,
          "one variant to measure: edits joined by ' + '; may be repeated"),
    FIELD(
        measure_options, metrics, TEXT, "NAMES", 0, STUDY_MOST_TEXT,
        "what to measure, e.g. sink,entropy,output_kl, or all (default: all that need nothing but patterns); "
        "see 'qkv metrics'"),
    FIELD(
        measure_options, answer, LIST, "TEXT", 0, STUDY_MOST_TEXT,
        "put this text, of one token or more, after each prompt, and measure its log-probability; the only "
        "metric unless `metrics` are given"),
    FIELD(measure_options, layers, TEXT, "LAYERS", 0, 4000,
          "layers to measure, e.g. 3, 0-5,7 or -1 (default all)"),
    FIELD(measure_options, heads, TEXT, "HEADS", 0, 4000,
          "query heads to measure, in the same notation"),
    FIELD(
        measure_options, generate, INT, "N", 1, 1 << 24,
        "first let the unedited model continue each prompt, by up to N tokens, the most likely one each time; "
        "then look at the whole text"),
};
/* clang-format on */

/* A prompt with what follows it. */
typedef struct measure_text {
    int32_t *tokens;
    size_t n_tokens, n_new;
} measure_text;

/* What is known of the values of a metric in a variant. */
typedef struct measure_line {
    size_t n, n_undefined;
    double sum, min, max;
    int32_t prompt, layer, head; /* of the largest value */
} measure_line;

typedef struct measure_study {
    qkv_study *study;
    const study_inputs *in;
    const measure_options *how;
    char **variants; /* without the baseline */
    size_t n_variants;
    study_answers answers;
    measure_text *texts; /* of each prompt */
    qkv_measure *measure;
    size_t n_metrics;
    qkv_table **tables;  /* of each prompt, and of all */
    measure_line *lines; /* variants with the baseline × metrics */
} measure_study;

/* ---- metrics ---- */

/* Adds a name to the list; that of the answer, of n tokens, has its number. Returns whether it is that metric. */
static int add_name(qkv_text *names, const char *name, size_t length, size_t n) {
    qkv_text own = {0};
    qkv_text_printf(&own, "answer:%zu", n);
    const int is_plain = length == strlen("answer") && memcmp(name, "answer", length) == 0;
    const int is_own = length == own.length && memcmp(name, own.data, length) == 0;
    if (names->length) qkv_text_puts(names, ",");
    qkv_text_append(names, is_plain ? own.data : name, is_plain ? own.length : length);
    names->failed |= own.failed;
    qkv_text_release(&own);
    return is_plain || is_own;
}

/* The metrics that were asked for, and the answer's once. */
static void name_metrics(qkv_text *names, const char *given, size_t n) {
    int has_answer = 0;
    for (const char *at = given; at; at = *at ? at + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        const qkv_metric_info *info;
        if (length == strlen("all") && memcmp(at, "all", length) == 0) {
            for (size_t i = 0; (info = qkv_metric_get(i)); i++)
                has_answer |= add_name(names, info->name, strlen(info->name), n);
        } else {
            has_answer |= add_name(names, at, length, n);
        }
        at += length;
    }
    if (!has_answer) add_name(names, "answer", strlen("answer"), n);
}

/* `n_answer`: the tokens of the answer; 0: there is none. */
static int new_measure(qkv_measure **out, const measure_options *o, size_t n_answer,
                       qkv_error *err) {
    const qkv_measure_options where = {
        .size = sizeof where, .layers = o->layers, .heads = o->heads};
    qkv_text names = {0};
    if (n_answer) name_metrics(&names, o->metrics, n_answer);
    const int status = names.failed
                           ? qkv_fail_memory(err)
                           : qkv_measure_new(out, n_answer ? names.data : o->metrics, &where, err);
    qkv_text_release(&names);
    return status;
}

/* Where to look must matter to some metric. */
static int check_where(const qkv_measure *measure, const measure_options *o, qkv_error *err) {
    int by_layer = 0, by_head = 0;
    const qkv_metric_info *info;
    for (size_t i = 0; (info = qkv_measure_info(measure, i)) != NULL; i++) {
        const int of_patterns = strstr(info->needs, "pattern") != NULL;
        by_head |= info->scope == QKV_SCOPE_HEAD || of_patterns;
        by_layer |= info->scope <= QKV_SCOPE_LAYER || of_patterns;
    }
    if (o->layers && !by_layer)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`layers`: none of these metrics is measured in a layer");
    if (o->heads && !by_head)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`heads`: none of these metrics is measured in a head");
    return QKV_OK;
}

/* A name that is not a metric's is told when the study is made. */
static int check_measure(qkv_study *study, const void *given, qkv_error *err) {
    const measure_options *o = given;
    qkv_measure *measure = NULL;
    (void)study;
    if (o->answer && strchr(o->answer, '\n'))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "measure takes one `answer`");
    if (o->answer && o->generate)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "give `answer` or `generate`, not both");
    int status = qkv_answer_texts_check("answer", o->answer, 0, err);
    if (status == QKV_OK && new_measure(&measure, o, o->answer ? 1 : 0, NULL) == QKV_OK)
        status = check_where(measure, o, err);
    qkv_measure_free(measure);
    return status;
}

/* ---- prompts, and what follows them ---- */

static int follow(measure_text *to, const qkv_own_prompt *prompt, const int32_t *more,
                  size_t n_more, qkv_error *err) {
    to->n_tokens = prompt->n_tokens + n_more;
    to->n_new = n_more;
    to->tokens = qkv_calloc(to->n_tokens, sizeof *to->tokens);
    if (!to->tokens) return qkv_fail_memory(err);
    memcpy(to->tokens, prompt->tokens, prompt->n_tokens * sizeof *to->tokens);
    if (n_more) memcpy(to->tokens + prompt->n_tokens, more, n_more * sizeof *to->tokens);
    return QKV_OK;
}

static int generate(const measure_study *m, measure_text *to, const qkv_own_prompt *prompt,
                    qkv_error *err) {
    int32_t *tokens = NULL;
    size_t n = 0;
    char *text = NULL;
    int status = qkv_session_continue(m->in->session, prompt->tokens, prompt->n_tokens,
                                      (size_t)m->how->generate, &tokens, &n, err);
    if (status == QKV_OK)
        status = follow(to, prompt, tokens + prompt->n_tokens, n - prompt->n_tokens, err);
    if (status == QKV_OK)
        status = qkv_prompt_new_text(m->in->model, prompt->tokens, prompt->n_tokens,
                                     tokens + prompt->n_tokens, to->n_new, &text, err);
    if (status == QKV_OK)
        qkv_study_note(m->study, "%zu token%s generated: %s", to->n_new, qkv_plural(to->n_new),
                       text);
    free(text);
    qkv_tokens_free(tokens);
    return status;
}

static int make_texts(measure_study *m, qkv_error *err) {
    const qkv_own_prompts *prompts = &m->in->prompts;
    const study_answers *answers = &m->answers;
    int status = QKV_OK;
    for (size_t i = 0; i < prompts->n && status == QKV_OK; i++) {
        if (m->how->generate)
            status = generate(m, &m->texts[i], &prompts->items[i], err);
        else
            status =
                follow(&m->texts[i], &prompts->items[i], answers->n ? answers->tokens[0] : NULL,
                       answers->n ? answers->lengths[0] : 0, err);
    }
    return status;
}

/* ---- plans ---- */

/* Sources are followed by what was generated; by an answer the plan lets them be followed. */
static int add_sources(const measure_study *m, const measure_text *text, qkv_plan *plan,
                       qkv_error *err) {
    const edit_inputs *edits = &m->in->edits;
    if (!m->how->generate) return qkv_edit_inputs_add(edits, plan, err);
    int status = qkv_plan_set_edit_data(plan, edits->data, err);
    for (size_t i = 0; i < edits->n && status == QKV_OK; i++) {
        const qkv_own_prompt source = {.tokens = (int32_t *)edits->tokens[i],
                                       .n_tokens = edits->lengths[i]};
        measure_text whole = {0};
        status =
            follow(&whole, &source, text->tokens + text->n_tokens - text->n_new, text->n_new, err);
        if (status == QKV_OK)
            status = qkv_plan_add_source(plan, edits->names[i], whole.tokens, whole.n_tokens, err);
        free(whole.tokens);
    }
    return status;
}

static int make_plan(const measure_study *m, size_t prompt, qkv_plan **plan, qkv_error *err) {
    const measure_text *text = &m->texts[prompt];
    const size_t n_answer = m->answers.n ? text->n_new : 0;
    int status = qkv_plan_new_answer(plan, m->in->model, text->tokens, text->n_tokens,
                                     text->n_tokens - n_answer, err);
    if (status == QKV_OK) status = add_sources(m, text, *plan, err);
    for (size_t i = 0; i < m->n_variants && status == QKV_OK; i++)
        status = qkv_plan_add_variant(*plan, m->variants[i], NULL, err);
    return status;
}

/* A mistake in a later prompt or an edit shows before anything is computed. */
static int check_plans(const measure_study *m, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < m->in->prompts.n && status == QKV_OK; i++) {
        qkv_plan *plan = NULL;
        qkv_error why = {0};
        status = make_plan(m, i, &plan, &why);
        if (status != QKV_OK && i > 0)
            qkv_fail_with(err, status, "prompt %zu: %s", i, why.message);
        else if (status != QKV_OK)
            *err = why;
        qkv_plan_free(plan);
    }
    return status;
}

/* ---- measuring ---- */

static void warn_unchanged(const measure_study *m, const qkv_result *result) {
    for (size_t v = 1; v < qkv_result_n_variants(result); v++) {
        for (size_t e = 0; e < qkv_result_n_edits(result, v); e++) {
            const char *edit = qkv_result_edit_text(result, v, e);
            if (!qkv_result_edit_ran(result, v, e))
                qkv_study_warn(
                    m->study, "%s (v%zu) was not computed: nothing that is looked at depends on it",
                    edit, v);
            else if (qkv_result_edit_is_idle(result, v, e))
                qkv_study_warn(m->study, "%s (v%zu) changed no value", edit, v);
        }
    }
}

static void summarize(const measure_study *m, int32_t prompt, const qkv_table *table) {
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; qkv_table_get(table, i, &row); i++) {
        measure_line *line = &m->lines[row.variant * m->n_metrics + row.metric];
        if (isnan(row.value)) {
            line->n_undefined++;
            continue;
        }
        if (line->n == 0 || row.value < line->min) line->min = row.value;
        if (line->n == 0 || row.value > line->max) {
            line->max = row.value;
            line->prompt = prompt;
            line->layer = row.layer;
            line->head = row.head;
        }
        line->sum += row.value;
        line->n++;
    }
}

static int measure_prompts(const measure_study *m, qkv_error *err) {
    const size_t n = m->in->prompts.n;
    int status = qkv_study_begin(m->in, "prompts", n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_plan *plan = NULL;
        status = qkv_study_reach(m->in, (double)i, 1, err);
        if (status == QKV_OK) status = make_plan(m, i, &plan, err);
        if (status == QKV_OK)
            status = qkv_measure_run(m->measure, &m->tables[i], m->in->session, plan, err);
        if (status == QKV_OK && i == 0) warn_unchanged(m, qkv_table_result(m->tables[0]));
        if (status == QKV_OK) summarize(m, (int32_t)i, m->tables[i]);
        qkv_plan_free(plan);
    }
    status = qkv_study_end(m->in, status);
    if (status == QKV_OK) status = qkv_measure_finish(m->measure, &m->tables[n], err);
    if (status == QKV_OK) summarize(m, QKV_ALL_PROMPTS, m->tables[n]);
    return status;
}

/* ---- tables ---- */

static const char *variant_name(const measure_study *m, size_t variant) {
    return variant ? m->variants[variant - 1] : "baseline";
}

/* A number from 0 on; below, there is none. */
static study_value place(int32_t index) {
    return STUDY_NUMBER(index >= 0 ? (double)index : (double)NAN);
}

static int add_summary(const measure_study *m, qkv_error *err) {
    static const char *const columns[] = {"variant", "metric",     "mean",      "min",
                                          "max",     "max_prompt", "max_layer", "max_head",
                                          "n",       "undefined"};
    int status =
        qkv_study_add_table(m->study, "summary", "Means, extremes, and where the largest value is",
                            columns, sizeof columns / sizeof *columns, err);
    for (size_t i = 0; i < (m->n_variants + 1) * m->n_metrics && status == QKV_OK; i++) {
        const measure_line *line = &m->lines[i];
        const int has = line->n > 0, differ = has && line->max > line->min;
        const study_value row[] = {STUDY_TEXT(variant_name(m, i / m->n_metrics)),
                                   STUDY_TEXT(qkv_measure_text(m->measure, i % m->n_metrics)),
                                   STUDY_NUMBER(has ? line->sum / (double)line->n : (double)NAN),
                                   STUDY_NUMBER(has ? line->min : (double)NAN),
                                   STUDY_NUMBER(has ? line->max : (double)NAN),
                                   place(differ ? line->prompt : -1),
                                   place(differ ? line->layer : -1),
                                   place(differ ? line->head : -1),
                                   STUDY_NUMBER(line->n),
                                   STUDY_NUMBER(line->n_undefined)};
        status = qkv_study_add_row(m->study, row, err);
    }
    return status;
}

static int add_values(const measure_study *m, qkv_error *err) {
    static const char *const columns[] = {"prompt", "variant", "layer", "head", "metric", "value"};
    const size_t n = m->in->prompts.n;
    int status = qkv_study_add_table(m->study, "values", "All values", columns,
                                     sizeof columns / sizeof *columns, err);
    for (size_t p = 0; p <= n; p++) {
        qkv_measurement value = QKV_MEASUREMENT_INIT;
        for (size_t i = 0; status == QKV_OK && qkv_table_get(m->tables[p], i, &value); i++) {
            const study_value row[] = {place(p < n ? (int32_t)p : -1),
                                       STUDY_TEXT(variant_name(m, value.variant)),
                                       place(value.layer),
                                       place(value.head),
                                       STUDY_TEXT(qkv_measure_text(m->measure, value.metric)),
                                       STUDY_NUMBER(value.value)};
            status = qkv_study_add_row(m->study, row, err);
        }
        qkv_table_free(m->tables[p]); /* of many prompts, nothing is held twice */
        m->tables[p] = NULL;
    }
    return status;
}

/* ---- the study ---- */

static int prepare(measure_study *m, qkv_error *err) {
    const size_t n = m->in->prompts.n;
    m->variants = qkv_field_texts(m->how->variant, &m->n_variants);
    m->texts = qkv_calloc(n, sizeof *m->texts);
    m->tables = qkv_calloc(n + 1, sizeof *m->tables);
    if (!m->variants || !m->texts || !m->tables) return qkv_fail_memory(err);
    int status = qkv_answers_read(&m->answers, m->study, m->in->model, m->how->answer, err);
    if (status == QKV_OK)
        status = new_measure(&m->measure, m->how, m->answers.n ? m->answers.lengths[0] : 0, err);
    if (status == QKV_OK) status = qkv_answers_check_spaces(&m->answers, m->study, m->in, err);
    if (status == QKV_OK) status = make_texts(m, err);
    if (status != QKV_OK) return status;
    while (qkv_measure_text(m->measure, m->n_metrics)) m->n_metrics++;
    m->lines = qkv_calloc((m->n_variants + 1) * m->n_metrics, sizeof *m->lines);
    return m->lines ? check_plans(m, err) : qkv_fail_memory(err);
}

static void release(measure_study *m) {
    for (size_t i = 0; m->texts && i < m->in->prompts.n; i++) free(m->texts[i].tokens);
    for (size_t i = 0; m->tables && i <= m->in->prompts.n; i++) qkv_table_free(m->tables[i]);
    free(m->texts);
    free((void *)m->tables);
    free(m->variants);
    free(m->lines);
    qkv_answers_release(&m->answers);
    qkv_measure_free(m->measure);
}

static int make_measure(qkv_study *study, const study_inputs *in, const void *given,
                        qkv_error *err) {
    measure_study m = {.study = study, .in = in, .how = given};
    int status = prepare(&m, err);
    if (status == QKV_OK) status = measure_prompts(&m, err);
    if (status == QKV_OK) {
        qkv_study_set_title(study, "Metrics of Heads, Layers and Outputs");
        status = add_summary(&m, err);
    }
    if (status == QKV_OK) status = add_values(&m, err);
    study->numbers_table = 1;
    release(&m);
    return status;
}

const study_kind qkv_study_measure = {
    .name = "measure",
    .title = "measure every head: sinks, entropy, changes under edits",
    .description =
        "Measures the unedited model (baseline) and every variant on every prompt. The table 'summary' has for each "
        "metric its mean, its extremes and where it is largest. Without prompts it uses three built-in sentences. How "
        "edits are written: 'qkv help notation'.\n"
        "\n"
        "The table 'values', that of a CSV, has the columns prompt, variant, layer, head, metric, value; prompts, "
        "layers and heads count from 0. A metric of a whole layer has no head, one of the output neither layer nor "
        "head, one over all prompts no prompt. There is no value where it is undefined; 'qkv metrics' says when.\n"
        "\n"
        "Patterns are measured row by row while they are computed, and none is kept. To measure an edit in its own "
        "layer only, name that layer with `layers`: then no later layer is run.\n"
        "\n"
        "With `answer`, everything is measured on the prompt and the answer together, and the metric "
        "'answer', shown as 'answer:N', is the sum of the log-probabilities of its N tokens. Negative "
        "token numbers of edits count from the end of the prompt, and other prompts are followed by the same answer.\n",
    .examples =
        "qkv measure --variant 'q@3=scale:1e-3' --layers 3 -o heads.csv\n"
        "qkv measure -f prompts.txt --metrics sink_rate,loss\n"
        "qkv measure -p 'The river runs to the' --answer ' wide sea' --variant 'z@3.h1=zero'\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(measure_options),
    .least_prompts = 1,
    .most_prompts = SIZE_MAX,
    .default_prompts = 3,
    .no_pictures = 1,
    .edits = "variant",
    .check = check_measure,
    .make = make_measure,
};
