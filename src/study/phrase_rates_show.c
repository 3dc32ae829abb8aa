/* Phrase rates as tables and pictures. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "draw/draw.h"
#include "study/phrase_rates.h"

enum { MOST_BARS = 20, LABEL_SIZE = 48 };

/* ---- tables ---- */

static int add_rates(const phrase_rates *r, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"silenced", "matched", "texts", "rate",
                                          "low",      "high",    "edits"};
    const size_t n = r->in->prompts.n;
    int status = qkv_study_add_table(
        study, "rates", "Share of texts with a phrase, by heads silenced", columns, 7, err);
    for (size_t v = 0; v < r->n_variants && status == QKV_OK; v++) {
        const size_t matched = qkv_phrase_rates_matched(r, v);
        double low, high;
        qkv_wilson_interval(matched, n, &low, &high);
        const study_value row[] = {STUDY_NUMBER(qkv_phrase_rates_n_silenced(r, v)),
                                   STUDY_NUMBER(matched),
                                   STUDY_NUMBER(n),
                                   STUDY_NUMBER((double)matched / (double)n),
                                   STUDY_NUMBER(low),
                                   STUDY_NUMBER(high),
                                   STUDY_TEXT(v ? r->edits[v - 1] : "unedited")};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static int add_phrases(const phrase_rates *r, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"phrase", "silenced", "texts"};
    int status =
        qkv_study_add_table(study, "phrases", "Texts that have each phrase", columns, 3, err);
    for (size_t i = 0; i < r->phrases.n * r->n_variants && status == QKV_OK; i++) {
        const size_t phrase = i / r->n_variants, v = i % r->n_variants;
        const study_value row[] = {STUDY_TEXT(r->phrases.items[phrase]),
                                   STUDY_NUMBER(qkv_phrase_rates_n_silenced(r, v)),
                                   STUDY_NUMBER(qkv_phrase_rates_with(r, v, phrase))};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static const char *name_of(const phrase_rates *r, size_t found) {
    if (found == PHRASE_NONE) return "none";
    return found == PHRASE_SHORT ? "(short)" : r->phrases.items[found];
}

static int add_texts(const phrase_rates *r, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"prompt", "silenced", "found", "text"};
    const size_t n = r->in->prompts.n;
    int status = qkv_study_add_table(study, "texts", "The texts, each with the first phrase found",
                                     columns, 4, err);
    for (size_t i = 0; i < n * r->n_variants && status == QKV_OK; i++) {
        const size_t prompt = i / r->n_variants, v = i % r->n_variants, at = v * n + prompt;
        const study_value row[] = {STUDY_NUMBER(prompt + 1),
                                   STUDY_NUMBER(qkv_phrase_rates_n_silenced(r, v)),
                                   STUDY_TEXT(name_of(r, r->found[at])), STUDY_TEXT(r->texts[at])};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

/* ---- pictures ---- */

static void label_of(const phrase_rates *r, size_t variant, char label[LABEL_SIZE]) {
    const size_t n = qkv_phrase_rates_n_silenced(r, variant);
    if (variant)
        snprintf(label, LABEL_SIZE, "%zu head%s silenced", n, n == 1 ? "" : "s");
    else
        snprintf(label, LABEL_SIZE, "unedited");
}

static int add_rate_bars(const phrase_rates *r, qkv_study *study, qkv_error *err) {
    const size_t n = r->in->prompts.n;
    qkv_bars chart = QKV_BARS_INIT;
    qkv_bar bars[MOST_BARS];
    char labels[MOST_BARS][LABEL_SIZE];
    for (size_t v = 0; v < r->n_variants && v < MOST_BARS; v++) {
        const size_t matched = qkv_phrase_rates_matched(r, v);
        bars[v] = (qkv_bar)QKV_BAR_INIT;
        label_of(r, v, labels[v]);
        bars[v].label = labels[v];
        bars[v].value = (double)matched / (double)n;
        qkv_wilson_interval(matched, n, &bars[v].lower, &bars[v].upper);
        chart.n_bars = v + 1;
    }
    chart.bars = bars;
    chart.axis.label = "share of texts with a phrase (95 % interval)";
    return qkv_study_add_bars(study, "rates", NULL, &chart, err);
}

/* Of the first phrases, a bar without and one with all heads silenced. */
static int add_phrase_bars(const phrase_rates *r, qkv_study *study, qkv_error *err) {
    static const char *const groups[] = {"unedited", "silenced"};
    const size_t n = r->in->prompts.n;
    qkv_bars chart = QKV_BARS_INIT;
    qkv_bar bars[2 * MOST_BARS];
    for (size_t i = 0; i < 2 * r->phrases.n && i < sizeof bars / sizeof *bars; i++) {
        const size_t variant = i % 2 ? r->n_variants - 1 : 0;
        bars[i] = (qkv_bar)QKV_BAR_INIT;
        bars[i].label = r->phrases.items[i / 2];
        bars[i].group = (int32_t)(i % 2);
        bars[i].value = (double)qkv_phrase_rates_with(r, variant, i / 2) / (double)n;
        chart.n_bars = i + 1;
    }
    chart.bars = bars;
    chart.groups = groups;
    chart.n_groups = 2;
    chart.axis.label = "share of texts with the phrase";
    return qkv_study_add_bars(study, "phrases", "Rates of Single Phrases", &chart, err);
}

/* ---- all of it ---- */

int qkv_phrase_rates_show(const phrase_rates *r, qkv_study *study, qkv_error *err) {
    qkv_study_set_title(study, "Texts with a Phrase, with and without %zu Head%s", r->n_heads,
                        r->n_heads == 1 ? "" : "s");
    qkv_head_ablation_note(study, &r->how);
    qkv_study_note(study, "%zu prompts, %zu new tokens at most, the most likely one each time",
                   r->in->prompts.n, r->n_new);
    qkv_study_note(study, "texts %s one of %zu phrases%s",
                   r->match.how == PHRASE_BEGIN ? "begin with" : "contain", r->phrases.n,
                   r->match.ignore_case ? ", in capitals or not" : "");
    if (r->shorter) qkv_study_note(study, "texts of less than %zu characters count", r->shorter);
    int status = add_rates(r, study, err);
    if (status == QKV_OK) status = add_phrases(r, study, err);
    if (status == QKV_OK) status = add_texts(r, study, err);
    if (status == QKV_OK) status = add_rate_bars(r, study, err);
    if (status == QKV_OK) status = add_phrase_bars(r, study, err);
    return status;
}
