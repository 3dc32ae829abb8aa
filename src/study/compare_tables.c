/* The tables of a comparison. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "measure/compare.h"
#include "study/compare.h"

#define COLUMNS(...) ((const char *const[]){__VA_ARGS__})
#define ROW(...) ((study_value[]){__VA_ARGS__})
#define N STUDY_NUMBER
#define T STUDY_TEXT

/* ---- summary ---- */

static int add_both(const compare_work *w, const char *what, double first, double second,
                    qkv_error *err) {
    return qkv_study_add_row(w->study, ROW(T(what), N(first), N(second), N(second - first)), err);
}

static int add_one(const compare_work *w, const char *what, double value, qkv_error *err) {
    return qkv_study_add_row(w->study, ROW(T(what), N(NAN), N(NAN), N(value)), err);
}

static double mean_of_heads(const compare_work *w) {
    double sum = 0;
    for (size_t i = 0; i < w->n_ranking; i++) sum += w->ranking[i].distance;
    return w->n_ranking ? sum / (double)w->n_ranking : (double)NAN;
}

static int add_outputs(const compare_work *w, qkv_error *err) {
    const qkv_compared *all = &w->all;
    int status = add_both(w, "loss (nats per token)", all->loss[0], all->loss[1], err);
    if (status == QKV_OK)
        status = add_both(w, "perplexity", exp(all->loss[0]), exp(all->loss[1]), err);
    if (status == QKV_OK) status = add_one(w, "output, KL, mean (nats)", all->kl, err);
    if (status == QKV_OK) status = add_one(w, "output, KL, last token (nats)", all->kl_last, err);
    if (status == QKV_OK)
        status = add_one(w, "share of positions with another top token", all->flips, err);
    return status;
}

static int add_summary(const compare_work *w, int has_logits, qkv_error *err) {
    double angle = NAN;
    qkv_text heads = {0};
    qkv_text_printf(&heads, "attention, %s, mean over heads", w->distance);
    (void)qkv_compare_layer(w->compare, w->n_layer - 1, &angle, NULL);
    int status = heads.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK)
        status = qkv_study_add_table(w->study, "summary", "In all",
                                     COLUMNS("what", "first", "second", "difference"), 4, err);
    if (status == QKV_OK && has_logits) status = add_outputs(w, err);
    if (status == QKV_OK) status = add_one(w, heads.data, mean_of_heads(w), err);
    if (status == QKV_OK)
        status = add_one(w, "residual stream, angle behind the last layer (degrees)", angle, err);
    qkv_text_release(&heads);
    return status;
}

/* ---- heads ---- */

static int add_ranking(const compare_work *w, qkv_error *err) {
    int status = qkv_study_add_table(
        w->study, "ranking", "Heads that differ most",
        COLUMNS("rank", "layer", "head", "distance", "lowest", "highest"), 6, err);
    for (size_t i = 0; i < w->n_top && status == QKV_OK; i++) {
        const compare_head *h = &w->ranking[i];
        double lowest = NAN, highest = NAN; /* of a single prompt */
        (void)qkv_compare_head_range(w->compare, h->layer, h->head, &lowest, &highest);
        status = qkv_study_add_row(
            w->study, ROW(N(i + 1), N(h->layer), N(h->head), N(h->distance), N(lowest), N(highest)),
            err);
    }
    return status;
}

static int add_heads(const compare_work *w, qkv_error *err) {
    int status = qkv_study_add_table(w->study, "heads", "Every head",
                                     COLUMNS("layer", "head", "distance"), 3, err);
    const size_t n_head = (size_t)w->n_head;
    for (size_t i = 0; i < (size_t)w->n_layer * n_head && status == QKV_OK; i++) {
        const size_t layer = i / n_head, head = i % n_head;
        status = qkv_study_add_row(w->study, ROW(N(layer), N(head), N(w->heads[i])), err);
    }
    return status;
}

/* ---- layers, positions, prompts ---- */

static double mean_of_layer(const compare_work *w, int32_t layer) {
    double sum = 0;
    for (int32_t h = 0; h < w->n_head; h++) sum += w->heads[layer * w->n_head + h];
    return sum / (double)w->n_head;
}

static int add_layers(const compare_work *w, qkv_error *err) {
    int status = qkv_study_add_table(w->study, "layers", "Every layer",
                                     COLUMNS("layer", "angle", "error", "distance"), 4, err);
    for (int32_t l = 0; l < w->n_layer && status == QKV_OK; l++) {
        double angle = NAN, error = NAN;
        (void)qkv_compare_layer(w->compare, l, &angle, &error);
        status =
            qkv_study_add_row(w->study, ROW(N(l), N(angle), N(error), N(mean_of_layer(w, l))), err);
    }
    return status;
}

static int add_positions(const compare_work *w, qkv_error *err) {
    double kl = NAN;
    uint64_t n = 0;
    int status = qkv_study_add_table(w->study, "positions", "Every position",
                                     COLUMNS("position", "kl", "prompts"), 3, err);
    for (size_t t = 0; status == QKV_OK && qkv_compare_position(w->compare, t, &kl, &n); t++)
        status = qkv_study_add_row(w->study, ROW(N(t), N(kl), N(n)), err);
    return status;
}

static int add_prompts(const compare_work *w, qkv_error *err) {
    int status = qkv_study_add_table(
        w->study, "prompts", "Every prompt",
        COLUMNS("prompt", "tokens", "kl", "kl_last", "flips", "loss_first", "loss_second"), 7, err);
    for (size_t i = 0; i < w->in->prompts.n && status == QKV_OK; i++) {
        const qkv_compared *c = &w->prompts[i];
        status = qkv_study_add_row(w->study,
                                   ROW(N(i), N(c->n_tokens), N(c->kl), N(c->kl_last), N(c->flips),
                                       N(c->loss[0]), N(c->loss[1])),
                                   err);
    }
    return status;
}

/* ---- flips ---- */

/* The text of a token as a table shows it. */
static int token_text(const compare_work *w, int32_t token, qkv_text *out, qkv_error *err) {
    char *text = NULL;
    size_t length = 0;
    const int status = qkv_token_text(w->in->model, &text, &length, token, err);
    if (status == QKV_OK) qkv_text_append_visible(out, text, length);
    qkv_text_free(text);
    return status == QKV_OK && out->failed ? qkv_fail_memory(err) : status;
}

static int add_flip(const compare_work *w, const qkv_compare_flip *flip, qkv_error *err) {
    const qkv_own_prompt *prompt = &w->in->prompts.items[flip->prompt];
    const int has_words = strcmp(qkv_model_get_info(w->in->model)->tokenizer, "none") != 0;
    qkv_text texts[3] = {{0}, {0}, {0}};
    const int32_t tokens[3] = {prompt->tokens[flip->position], flip->tokens[0], flip->tokens[1]};
    int status = QKV_OK;
    for (int i = 0; i < 3 && status == QKV_OK; i++) {
        qkv_text_puts(&texts[i], "");
        if (has_words)
            status = token_text(w, tokens[i], &texts[i], err);
        else
            qkv_text_printf(&texts[i], "%d", (int)tokens[i]);
    }
    if (status == QKV_OK)
        status = qkv_study_add_row(w->study,
                                   ROW(N(flip->prompt), N(flip->position), T(texts[0].data),
                                       T(texts[1].data), N(flip->probabilities[0]),
                                       T(texts[2].data), N(flip->probabilities[1]), N(flip->kl)),
                                   err);
    for (int i = 0; i < 3; i++) qkv_text_release(&texts[i]);
    return status;
}

static int add_flips(const compare_work *w, qkv_error *err) {
    qkv_compare_flip flip = QKV_COMPARE_FLIP_INIT;
    int status = qkv_study_add_table(
        w->study, "flips", "Positions whose top token is another, those with most KL",
        COLUMNS("prompt", "position", "after", "first", "p_first", "second", "p_second", "kl"), 8,
        err);
    for (size_t i = 0; status == QKV_OK && qkv_compare_get_flip(w->compare, i, &flip); i++)
        status = add_flip(w, &flip, err);
    return status;
}

/* An encoder has no output to compare. */
int qkv_compare_tables(const compare_work *w, qkv_error *err) {
    const int has_logits = qkv_model_get_info(w->in->model)->has_logits;
    int status = add_summary(w, has_logits, err);
    if (status == QKV_OK) status = add_ranking(w, err);
    if (status == QKV_OK) status = add_heads(w, err);
    if (status == QKV_OK) status = add_layers(w, err);
    if (status == QKV_OK) status = add_prompts(w, err);
    if (status == QKV_OK && has_logits) status = add_positions(w, err);
    return status == QKV_OK && has_logits ? add_flips(w, err) : status;
}
