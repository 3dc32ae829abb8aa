/*
 * The study `compare`: two models of one architecture on the same prompts (qkv/compare.h), as tables
 * and pictures. Which heads attend differently, where the residual streams part, what that does to
 * the output.
 */
#include "study/compare.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "measure/compare.h"
#include "study/prompt.h"

enum { USUAL_TOP = 20 };

/* X(word of the option, metric, in words, on an axis) */
/* clang-format off */
#define DISTANCE_LIST(X)                                                                           \
    X("tv", "tv", "total variation", "total variation of attention")                               \
    X("js", "js", "Jensen–Shannon divergence", "Jensen–Shannon divergence of attention (nats)")    \
    X("kl", "kl", "KL divergence", "KL divergence of attention (nats)")                            \
    X("max", "max_change", "largest change of a weight", "largest change of a weight")
/* clang-format on */

static const struct {
    const char *metric, *words, *axis;
} distances[] = {
#define DISTANCE(word, metric, words, axis) {metric, words, axis},
    DISTANCE_LIST(DISTANCE)
#undef DISTANCE
};

static const field fields[] = {
    FIELD_WORDS(
        compare_settings, distance, "tv|js|kl|max",
        "distance of patterns: total variation (default), Jensen-Shannon, KL(first || second), "
        "or the largest change of a weight"),
    FIELD(compare_settings, edit, TEXT, "EDITS", 0, STUDY_MOST_TEXT,
          "edits of the second model, joined by ' + '; without a second model, of the first"),
    FIELD(compare_settings, top, INT, "N", 1, 2000, "heads in the ranking (default 20)"),
};

/* ---- prompts ---- */

/* Both tokenizers must agree about a text. */
static int check_prompt(const compare_work *w, size_t number, qkv_error *err) {
    const qkv_own_prompt *prompt = &w->in->prompts.items[number];
    const qkv_prompt given = {.size = sizeof given,
                              .text = prompt->text,
                              .length = prompt->length,
                              .flags = prompt->flags};
    int32_t *tokens = NULL;
    size_t n = 0, at = 0;
    if (!prompt->text || w->in->model == w->in->other_model) return QKV_OK;
    const int status = qkv_prompt_tokenize(&given, w->in->other_model, &tokens, &n, err);
    if (status != QKV_OK) return status;
    while (at < n && at < prompt->n_tokens && tokens[at] == prompt->tokens[at]) at++;
    qkv_tokens_free(tokens);
    if (at == n && n == prompt->n_tokens) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "prompt %zu: the models' tokenizers differ from token %zu on, so that they "
                    "cannot be compared on this text",
                    number, at);
}

static int run_prompt(const compare_work *w, size_t number, qkv_error *err) {
    const qkv_own_prompt *prompt = &w->in->prompts.items[number];
    qkv_error why = {0};
    w->prompts[number] = (qkv_compared)QKV_COMPARED_INIT;
    const int status = qkv_compare_add(w->compare, w->in->session, w->in->other, prompt->tokens,
                                       prompt->n_tokens, &w->prompts[number], &why);
    if (status == QKV_OK) return QKV_OK;
    if (w->in->prompts.n == 1) return qkv_fail(err, status, "%s", why.message);
    return qkv_fail(err, status, "prompt %zu: %s", number, why.message);
}

static int run_prompts(const compare_work *w, qkv_error *err) {
    const size_t n = w->in->prompts.n;
    int status = qkv_study_begin(w->in, "prompts", n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = qkv_study_reach(w->in, (double)i, 1, err);
        if (status == QKV_OK) status = run_prompt(w, i, err);
    }
    return qkv_study_end(w->in, status);
}

/* ---- what came of it ---- */

static int by_distance(const void *a, const void *b) {
    const compare_head *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? 1 : -1;
    return x->layer != y->layer ? x->layer - y->layer : x->head - y->head;
}

/* Undefined ones (kl of rows that are all left out) have no rank. */
static int rank_heads(compare_work *w, qkv_error *err) {
    const size_t n = (size_t)w->n_layer * (size_t)w->n_head;
    w->heads = qkv_calloc(n, sizeof *w->heads);
    w->ranking = qkv_calloc(n, sizeof *w->ranking);
    if (!w->heads || !w->ranking) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const int32_t layer = (int32_t)i / w->n_head, head = (int32_t)i % w->n_head;
        w->heads[i] = qkv_compare_head(w->compare, layer, head);
        if (isnan(w->heads[i])) continue;
        w->ranking[w->n_ranking++] = (compare_head){layer, head, w->heads[i]};
    }
    qsort(w->ranking, w->n_ranking, sizeof *w->ranking, by_distance);
    const size_t top = w->how->top ? (size_t)w->how->top : USUAL_TOP;
    w->n_top = top < w->n_ranking ? top : w->n_ranking;
    return QKV_OK;
}

static void warn_unchanged(const compare_work *w) {
    if (w->how->edit && w->how->edit[0] && w->all.changed == 0)
        qkv_study_warn(w->study, "%s changed no value", w->how->edit);
}

/* ---- the study ---- */

static int begin(compare_work *w, qkv_error *err) {
    const qkv_model *const models[2] = {w->in->model, w->in->other_model};
    qkv_compare_options options = QKV_COMPARE_OPTIONS_INIT;
    options.distance = distances[w->how->distance].metric;
    options.edits = w->how->edit;
    w->distance = distances[w->how->distance].words;
    w->axis = distances[w->how->distance].axis;
    w->n_layer = qkv_model_get_info(models[0])->n_layer;
    w->n_head = qkv_model_get_info(models[0])->n_head;
    for (int m = 0; m < 2; m++)
        qkv_text_puts(&w->names[m], qkv_path_model(qkv_model_get_info(models[m])->path));
    if (w->how->edit && w->how->edit[0]) qkv_text_printf(&w->names[1], " + %s", w->how->edit);
    w->prompts = qkv_calloc(w->in->prompts.n, sizeof *w->prompts);
    if (!w->prompts || w->names[0].failed || w->names[1].failed) return qkv_fail_memory(err);
    return qkv_compare_new(&w->compare, models[0], models[1], &options, err);
}

static void note(const compare_work *w) {
    qkv_study_note(w->study, "first: %s, second: %s; %zu prompt%s, %zu tokens", w->names[0].data,
                   w->names[1].data, w->in->prompts.n, qkv_plural(w->in->prompts.n),
                   (size_t)w->all.n_tokens);
    qkv_study_note(w->study, "distance of a head: %s of its rows, %s over all of them", w->distance,
                   w->how->distance == 3 ? "the largest" : "mean");
}

/* The edits stay out of it: an asterisk would begin italics. */
static void set_title(const compare_work *w) {
    const char *first = qkv_path_model(qkv_model_get_info(w->in->model)->path);
    const char *second = qkv_path_model(qkv_model_get_info(w->in->other_model)->path);
    const int is_edited = w->how->edit && w->how->edit[0];
    qkv_study_set_title(w->study, "Where %s%s Differs from %s", is_edited ? "the Edited " : "",
                        second, first);
}

static int make_compare(qkv_study *study, const study_inputs *in, const void *options,
                        qkv_error *err) {
    compare_work w = {.study = study, .in = in, .how = options};
    int status = begin(&w, err);
    for (size_t i = 0; i < in->prompts.n && status == QKV_OK; i++)
        status = check_prompt(&w, i, err);
    if (status == QKV_OK) status = run_prompts(&w, err);
    w.all = (qkv_compared)QKV_COMPARED_INIT;
    (void)qkv_compare_get(w.compare, &w.all);
    if (status == QKV_OK) status = rank_heads(&w, err);
    if (status == QKV_OK) {
        set_title(&w);
        note(&w);
        warn_unchanged(&w);
        status = qkv_compare_tables(&w, err);
    }
    if (status == QKV_OK) status = qkv_compare_pictures(&w, err);
    qkv_compare_free(w.compare);
    qkv_text_release(&w.names[0]);
    qkv_text_release(&w.names[1]);
    free(w.prompts);
    free(w.heads);
    free(w.ranking);
    return status;
}

const study_kind qkv_study_compare = {
    .name = "compare",
    .title = "two models of one architecture: heads, residual streams and outputs that differ",
    .description =
        "Runs both models on every prompt and compares them: for each head the distance of the "
        "attention patterns, after each layer the angle of the residual streams and the error "
        "relative to their length, and of the output the KL divergence, the share of positions "
        "whose most likely next token is another, and both losses. For a model and its quantised "
        "copy, a base model and a model trained from it, or (with `edit`) a model and its edited "
        "self.\n"
        "\n"
        "Every token of every prompt weighs the same. The models must have the same architecture, "
        "shape and vocabulary, and cut each text into the same tokens.\n"
        "\n"
        "The picture is a heatmap of layers and heads; 'ranking', 'angles', 'errors' and 'positions' "
        "are the others. Tables: summary, ranking, heads, layers, prompts, positions, flips.\n"
        "\n"
        "Rows of attention are compared as they are computed. Memory does not grow with the "
        "number of prompts; work that does not fit into the session's memory takes more passes.\n",
    .examples = "qkv compare -m model-f16.gguf -m model-q4.gguf -f prompts.txt -o heads.png\n"
                "qkv compare --edit 'q@3.h1=zero' -p 'The river runs to the sea.'\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(compare_settings),
    .least_prompts = 1,
    .most_prompts = SIZE_MAX,
    .needs_other = 1,
    .n_printed = 2,
    .make = make_compare,
};
