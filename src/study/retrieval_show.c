/* Retrieval heads as tables and pictures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "study/head_tables.h"
#include "study/retrieval.h"

#define COLUMNS(...) ((const char *const[]){__VA_ARGS__})
#define ROW(...) ((study_value[]){__VA_ARGS__})
#define N STUDY_NUMBER
#define T STUDY_TEXT

enum { USUAL_TOP = 20, LABEL_SIZE = 32, MOST_TOKENS = 1 << 16 };

/* ---- classes of scores ---- */

enum { NO_COPY, RARE, RETRIEVAL, STRONG, N_CLASSES };
static const char *const class_names[N_CLASSES] = {"0", "below 0.1", "0.1 to 0.5", "above 0.5"};

static int class_of(double score) {
    return score > 0.5 ? STRONG : score >= 0.1 ? RETRIEVAL : score > 0 ? RARE : NO_COPY;
}

static size_t count_class(const retrieval *r, int class) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_heads; i++) n += class_of(r->scores[i]) == class;
    return n;
}

static size_t count_retrieval_heads(const retrieval *r) {
    return count_class(r, RETRIEVAL) + count_class(r, STRONG);
}

/* ---- tables ---- */

static int add_ranking(const retrieval *r, qkv_study *study, const head_value *ranked,
                       qkv_error *err) {
    const size_t top = r->how->top ? (size_t)r->how->top : USUAL_TOP;
    int status = qkv_study_add_table(study, "ranking", "Heads by their retrieval score",
                                     COLUMNS("rank", "layer", "head", "score", "tests"), 5, err);
    for (size_t i = 0; i < r->n_heads && i < top && ranked[i].value > 0 && status == QKV_OK; i++) {
        const size_t at = (size_t)ranked[i].layer * r->n_head + (size_t)ranked[i].head;
        status = qkv_study_add_row(study,
                                   ROW(N(i + 1), N(ranked[i].layer), N(ranked[i].head),
                                       N(ranked[i].value), N(r->n_copies[at])),
                                   err);
    }
    return status;
}

static int add_classes(const retrieval *r, qkv_study *study, qkv_error *err) {
    char title[96];
    snprintf(title, sizeof title, "Heads by the class of their score, over %zu of %zu tests",
             r->n_counted, r->n_tests);
    int status =
        qkv_study_add_table(study, "classes", title, COLUMNS("score", "heads", "share"), 3, err);
    for (int c = 0; c < N_CLASSES && r->n_counted && status == QKV_OK; c++) {
        const size_t n = count_class(r, c);
        status = qkv_study_add_row(
            study, ROW(T(class_names[c]), N(n), N((double)n / (double)r->n_heads)), err);
    }
    return status;
}

static int add_tests(const retrieval *r, qkv_study *study, qkv_error *err) {
    const char *share = r->how->decode == RETRIEVAL_FORCED ? "predicted" : "recall";
    int status = qkv_study_add_table(study, "tests", "Every test",
                                     COLUMNS("test", "needle", "length", "depth", "tokens", "start",
                                             "end", share, "counts", "heads", "answer"),
                                     11, err);
    for (size_t i = 0; i < r->n_tests && status == QKV_OK; i++) {
        const retrieval_test *test = &r->tests[i];
        const int is_found = test->end > test->start;
        size_t n_heads = 0;
        for (size_t h = 0; h < r->n_heads; h++) n_heads += test->copied[h] > 0;
        status = qkv_study_add_row(study,
                                   ROW(N(i), N(test->needle + 1), N(test->length), N(test->depth),
                                       N(test->n_tokens),
                                       N(is_found ? (double)test->start : (double)NAN),
                                       N(is_found ? (double)test->end : (double)NAN),
                                       N(test->recall), N(test->counts), N(n_heads), T(test->text)),
                                   err);
    }
    return status;
}

static int add_heads(const retrieval *r, qkv_study *study, qkv_error *err) {
    int status = qkv_study_add_table(study, "heads", "Every head",
                                     COLUMNS("layer", "head", "score", "tests"), 4, err);
    for (size_t i = 0; i < r->n_heads && status == QKV_OK; i++) {
        const size_t layer = i / r->n_head, head = i % r->n_head;
        status = qkv_study_add_row(study,
                                   ROW(N(layer), N(head), N(r->scores[i]), N(r->n_copies[i])), err);
    }
    return status;
}

/* Of the tests that do not count too. */
static int add_copies(const retrieval *r, qkv_study *study, qkv_error *err) {
    int status = qkv_study_add_table(study, "copies",
                                     r->how->parity ? "Steps at which a head has copied a token"
                                                    : "Tokens of the needle that a head has copied",
                                     COLUMNS("test", "layer", "head", "copied", "score"), 5, err);
    for (size_t i = 0; i < r->n_tests * r->n_heads && status == QKV_OK; i++) {
        const size_t number = i / r->n_heads, at = i % r->n_heads;
        const size_t layer = at / r->n_head, head = at % r->n_head;
        const retrieval_test *test = &r->tests[number];
        const double copied = test->copied[at];
        if (copied > 0)
            status = qkv_study_add_row(study,
                                       ROW(N(number), N(layer), N(head), N(copied),
                                           N(copied / (double)(test->end - test->start))),
                                       err);
    }
    return status;
}

static size_t count_tokens(const retrieval *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_tests; i++) n += r->tests[i].n_tokens + r->tests[i].n_answer;
    return n;
}

/* So that prompts can be run elsewhere. */
static int add_tokens(const retrieval *r, qkv_study *study, qkv_error *err) {
    if (count_tokens(r) > MOST_TOKENS) return QKV_OK;
    int status = qkv_study_add_table(study, "tokens", "Tokens of prompts and answers",
                                     COLUMNS("test", "position", "token", "is_answer"), 4, err);
    for (size_t i = 0; i < r->n_tests; i++) {
        const retrieval_test *test = &r->tests[i];
        for (size_t k = 0; k < test->n_tokens + test->n_answer && status == QKV_OK; k++) {
            const int is_answer = k >= test->n_tokens;
            const int32_t token = is_answer ? test->answer[k - test->n_tokens] : test->tokens[k];
            status = qkv_study_add_row(study, ROW(N(i), N(k), N(token), N(is_answer)), err);
        }
    }
    return status;
}

/* ---- pictures ---- */

/* Cells open the first test that counts: its prompt, and the answer up to the last token that is asked. */
static int link_test(const retrieval *r, qkv_study *study, qkv_error *err) {
    const retrieval_test *test = r->tests;
    while (!test->counts) test++;
    if (!test->n_answer) return QKV_OK;
    const size_t n = test->n_tokens + test->n_answer - 1;
    int32_t *tokens = qkv_calloc(n, sizeof *tokens);
    if (!tokens) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        tokens[i] = i < test->n_tokens ? test->tokens[i] : test->answer[i - test->n_tokens];
    const int status = qkv_study_link_tokens(study, r->in->model, tokens, n, err);
    if (status == QKV_OK) qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    free(tokens);
    return status;
}

static int draw_heads(const retrieval *r, qkv_study *study, const head_value *ranked,
                      qkv_error *err) {
    head_value *heads = qkv_head_values(r->n_layer, r->n_head, r->scores);
    if (!heads) return qkv_fail_memory(err);
    const head_panel panel = {heads, NULL};
    int status =
        qkv_head_map(study, "heads", &panel, 1, r->n_layer, r->n_head, "retrieval score", err);
    if (status == QKV_OK) status = link_test(r, study, err);
    size_t n = 0;
    while (n < r->n_heads && ranked[n].value > 0) n++;
    if (status == QKV_OK && n)
        status = qkv_head_bars(study, "ranking", ranked, n, "retrieval score", err);
    free(heads);
    return status;
}

/* The mean over needles: depths down, lengths across. */
static void mean_recall(const retrieval *r, double *values) {
    const size_t n = r->n_lengths * r->n_depths;
    for (size_t i = 0; i < r->n_tests; i++) {
        const size_t length = i % n / r->n_depths, depth = i % r->n_depths;
        values[depth * r->n_lengths + length] += r->tests[i].recall / (double)r->n_needles;
    }
}

static char *write_labels(const double *numbers, size_t n, const char **labels) {
    char *texts = qkv_calloc(n, LABEL_SIZE);
    for (size_t i = 0; texts && i < n; i++) {
        qkv_format(texts + i * LABEL_SIZE, LABEL_SIZE, "%.6g", numbers[i]);
        labels[i] = texts + i * LABEL_SIZE;
    }
    return texts;
}

static int draw_recall(const retrieval *r, qkv_study *study, qkv_error *err) {
    const int is_forced = r->how->decode == RETRIEVAL_FORCED;
    double *values = qkv_calloc(r->n_lengths * r->n_depths, sizeof *values);
    const char **labels = qkv_calloc(r->n_lengths + r->n_depths, sizeof *labels);
    char *lengths = labels ? write_labels(r->lengths, r->n_lengths, labels) : NULL;
    char *depths = labels ? write_labels(r->depths, r->n_depths, labels + r->n_lengths) : NULL;
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    int status = values && lengths && depths ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) mean_recall(r, values);
    panel.values = values;
    panel.n_rows = (int32_t)r->n_depths;
    panel.n_cols = (int32_t)r->n_lengths;
    panel.col_labels = labels;
    panel.row_labels = labels + r->n_lengths;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Depth";
    map.col_axis = "Length (tokens)";
    map.color.label =
        is_forced ? "answer's tokens that are the most likely" : "recall of the answer";
    map.color.high = 1;
    if (status == QKV_OK)
        status = qkv_study_add_heatmap(study, is_forced ? "predicted" : "recall",
                                       is_forced ? "How Much of the Answer the Model Would Choose"
                                                 : "How Much of the Needle Is Found",
                                       &map, err);
    free(values);
    free(labels);
    free(lengths);
    free(depths);
    return status;
}

/* ---- all of it ---- */

static void add_notes(const retrieval *r, qkv_study *study) {
    qkv_study_note(study, r->how->parity
                              ? "score: steps at which a head's largest weight lies on the token "
                                "that is decoded, inside the answer's window, over its tokens"
                              : "score: tokens of the answer in the needle that a head has "
                                "copied, over all of them");
    qkv_study_note(study, "%zu needle%s × %zu length%s × %zu depth%s in filler of %zu tokens%s",
                   r->n_needles, qkv_plural(r->n_needles), r->n_lengths, qkv_plural(r->n_lengths),
                   r->n_depths, qkv_plural(r->n_depths), r->n_filler,
                   r->n_filler < (size_t)r->lengths[0] ? ", repeated" : "");
    if (r->how->decode == RETRIEVAL_FORCED)
        qkv_study_note(study, "the answer is fed, not decoded: a variant of qkv's own");
    else if (r->how->all)
        qkv_study_note(study, "all tests count, right or wrong");
    else
        qkv_study_note(study, "mean over the %zu of %zu tests that have a recall above 0.5",
                       r->n_counted, r->n_tests);
}

/* What a reader would otherwise take for a result. */
static void add_warnings(const retrieval *r, qkv_study *study) {
    double best = 0, most = 0;
    for (size_t i = 0; i < r->n_tests; i++) best = fmax(best, r->tests[i].recall);
    for (size_t i = 0; i < r->n_heads; i++) most = fmax(most, r->scores[i]);
    if (!r->n_counted)
        qkv_study_warn(
            study,
            "the model answers 0 of %zu test%s right (best recall %.2f, wanted above 0.5), "
            "so no head has a score: --set all=true counts wrong answers too, --set "
            "decode=forced feeds the right one",
            r->n_tests, qkv_plural(r->n_tests), best);
    else if (most <= 0)
        qkv_study_warn(study, "no head has copied a token of the needle in any test that counts");
    else if (!count_retrieval_heads(r))
        qkv_study_warn(study, "no head has a score of 0.1 or more, as retrieval heads have");
    for (size_t i = 0; r->how->parity && i < r->n_tests; i++) {
        if (r->tests[i].end > r->tests[i].start) continue;
        qkv_study_warn(study, "test %zu: no window of the prompt has 0.9 of the answer's tokens",
                       i);
        break;
    }
}

int qkv_retrieval_show(const retrieval *r, qkv_study *study, qkv_error *err) {
    head_value *ranked = qkv_head_values(r->n_layer, r->n_head, r->scores);
    if (!ranked) return qkv_fail_memory(err);
    qkv_head_values_sort(ranked, r->n_heads);
    qkv_study_set_title(study, "Retrieval Heads: Who Copies the Needle");
    add_notes(r, study);
    add_warnings(r, study);
    int status = add_ranking(r, study, ranked, err);
    if (status == QKV_OK) status = add_classes(r, study, err);
    if (status == QKV_OK) status = add_tests(r, study, err);
    if (status == QKV_OK) status = add_heads(r, study, err);
    if (status == QKV_OK) status = add_copies(r, study, err);
    if (status == QKV_OK) status = add_tokens(r, study, err);
    if (status == QKV_OK && r->n_counted) status = draw_heads(r, study, ranked, err);
    if (status == QKV_OK) status = draw_recall(r, study, err);
    free(ranked);
    return status;
}
