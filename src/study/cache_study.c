#include "study/cache_study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number_list.h"
#include "draw/draw.h"
#include "qkv/next.h"
#include "study/head_tables.h"

enum { MOST_SETTINGS = 48, AT_A_TIME = 64 };

/* Losses, in nats, beyond which one perplexity would hide all others on a linear axis. */
#define FAR_APART 1.5

/* One variant: its edits, and what became of it. */
typedef struct trial {
    qkv_text edits;
    double loss; /* a sum, then the mean */
    int changed; /* some value, on some prompt */
} trial;

typedef struct work {
    const study_inputs *in;
    const cache_question *question;
    int64_t settings[MOST_SETTINGS];
    size_t n_settings, alone;
    size_t n_layer, n_head;
    trial *trials; /* settings; layers × settings; layers × heads */
    size_t n_trials;
    double baseline;
    int64_t n_counted;
} work;

static size_t layer_trial(const work *w, size_t layer, size_t setting) {
    return w->n_settings + layer * w->n_settings + setting;
}

static size_t head_trial(const work *w, size_t layer, size_t head) {
    return layer_trial(w, w->n_layer, 0) + layer * w->n_head + head;
}

/* ---- what is tried ---- */

static int read_settings(work *w, qkv_error *err) {
    const cache_question *q = w->question;
    const char *at = q->settings, *text;
    size_t length;
    double value;
    while (qkv_number_list_next(&at, &text, &length, &value)) {
        if (!(value >= (double)q->least && value <= (double)q->most) || value != floor(value))
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "%s '%.*s' is not a whole number from %lld to %lld", q->setting,
                            (int)length, text, (long long)q->least, (long long)q->most);
        if (w->n_settings == MOST_SETTINGS)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "there are more than %d settings",
                            MOST_SETTINGS);
        w->settings[w->n_settings++] = (int64_t)value;
    }
    if (!w->n_settings) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no %s", q->setting);
    for (size_t i = 0; q->alone && i < w->n_settings; i++) {
        if (w->settings[i] == q->alone) w->alone = i;
    }
    if (q->alone && w->settings[w->alone] != q->alone)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`alone` is not one of the settings: %s",
                        q->settings);
    return QKV_OK;
}

static int write_trials(work *w, qkv_error *err) {
    const cache_question *q = w->question;
    char place[48];
    w->n_trials = q->only_all ? w->n_settings : head_trial(w, w->n_layer, 0);
    w->trials = qkv_calloc(w->n_trials, sizeof *w->trials);
    if (!w->trials) return qkv_fail_memory(err);
    for (size_t s = 0; s < w->n_settings; s++)
        q->write(&w->trials[s].edits, q->options, w->settings[s], "*");
    for (size_t l = 0; l < w->n_layer && !q->only_all; l++) {
        snprintf(place, sizeof place, "%zu", l);
        for (size_t s = 0; s < w->n_settings; s++)
            q->write(&w->trials[layer_trial(w, l, s)].edits, q->options, w->settings[s], place);
        for (size_t h = 0; h < w->n_head; h++) {
            snprintf(place, sizeof place, "%zu.%c%zu", l, q->per_group ? 'g' : 'h', h);
            q->write(&w->trials[head_trial(w, l, h)].edits, q->options, w->settings[w->alone],
                     place);
        }
    }
    for (size_t i = 0; i < w->n_trials; i++) {
        if (w->trials[i].edits.failed) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

/* ---- losses ---- */

static double sum_losses(const work *w, const qkv_next *next, size_t variant, int64_t *n) {
    double sum = 0;
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    *n = 0;
    for (size_t i = 0; qkv_next_get_loss(next, variant, i, &loss); i++) {
        if (loss.position < w->question->from) continue;
        sum += loss.loss;
        (*n)++;
    }
    return sum;
}

static int run_some(work *w, const qkv_own_prompt *prompt, size_t first, size_t n, qkv_error *err) {
    const char *variants[AT_A_TIME];
    qkv_next *next = NULL;
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    for (size_t i = 0; i < n; i++) variants[i] = w->trials[first + i].edits.data;
    how.variants = variants;
    how.n_variants = n;
    how.top = 0;
    how.all = 1;
    size_t n_tokens = prompt->n_tokens;
    if (w->question->length && n_tokens > (size_t)w->question->length)
        n_tokens = (size_t)w->question->length;
    int64_t counted = 0;
    int status = qkv_next_new(&next, w->in->session, prompt->tokens, n_tokens, &how, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        trial *t = &w->trials[first + i];
        t->loss += sum_losses(w, next, i + 1, &counted);
        for (size_t e = 0; qkv_next_edit_text(next, i + 1, e); e++)
            t->changed |= qkv_next_edit_changed(next, i + 1, e) != 0;
    }
    if (status == QKV_OK && first == 0) {
        w->baseline += sum_losses(w, next, 0, &counted);
        w->n_counted += counted;
    }
    qkv_next_free(next);
    return status;
}

static int check_prompts(const work *w, qkv_error *err) {
    for (size_t p = 0; p < w->in->prompts.n; p++) {
        const size_t n = w->in->prompts.items[p].n_tokens;
        if (n > (size_t)w->question->from) continue;
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "prompt %zu has %zu tokens; losses count from token %lld on: give a longer one", p + 1,
            n, (long long)w->question->from);
    }
    return QKV_OK;
}

static int run_all(work *w, qkv_error *err) {
    const size_t rounds = (w->n_trials + AT_A_TIME - 1) / AT_A_TIME;
    const size_t wanted = rounds * w->in->prompts.n;
    int status = check_prompts(w, err);
    if (status == QKV_OK) status = qkv_study_begin(w->in, "runs", wanted, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < wanted && status == QKV_OK; i++) {
        const size_t first = i % rounds * AT_A_TIME, left = w->n_trials - first;
        status = qkv_study_reach(w->in, (double)((int64_t)i), (double)(1), err);
        if (status == QKV_OK)
            status = run_some(w, &w->in->prompts.items[i / rounds], first,
                              left < AT_A_TIME ? left : AT_A_TIME, err);
    }
    if (status == QKV_OK)
        status = qkv_study_reach(w->in, (double)((int64_t)wanted), (double)(0), err);
    status = qkv_study_end(w->in, status);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < w->n_trials; i++) w->trials[i].loss /= (double)w->n_counted;
    w->baseline /= (double)w->n_counted;
    return QKV_OK;
}

/* ---- tables ---- */

static int add_loss_row(const work *w, qkv_study *study, study_value *row, size_t n, double loss,
                        qkv_error *err) {
    row[n] = STUDY_NUMBER(loss);
    row[n + 1] = STUDY_NUMBER(exp(loss));
    row[n + 2] = STUDY_NUMBER(loss - w->baseline);
    return qkv_study_add_row(study, row, err);
}

static int add_settings(const work *w, qkv_study *study, qkv_error *err) {
    const char *const columns[] = {w->question->setting, "loss", "perplexity", "loss_change"};
    study_value row[4] = {STUDY_TEXT("unedited")};
    char title[64];
    snprintf(title, sizeof title, "%s in all layers at once", w->question->name);
    int status = qkv_study_add_table(study, "settings", title, columns, 4, err);
    if (status == QKV_OK) status = add_loss_row(w, study, row, 1, w->baseline, err);
    for (size_t s = 0; s < w->n_settings && status == QKV_OK; s++) {
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)w->settings[s]);
        row[0] = STUDY_TEXT(text);
        status = add_loss_row(w, study, row, 1, w->trials[s].loss, err);
        if (!w->trials[s].changed)
            qkv_study_warn(study, "%s %s changed no value: no prompt is long enough",
                           w->question->setting, text);
    }
    return status;
}

static int add_layers(const work *w, qkv_study *study, qkv_error *err) {
    const char *const columns[] = {"layer", w->question->setting, "loss", "perplexity",
                                   "loss_change"};
    int status = qkv_study_add_table(study, "layers", "Every layer alone", columns, 5, err);
    for (size_t i = 0; i < w->n_layer * w->n_settings && status == QKV_OK; i++) {
        const size_t l = i / w->n_settings, s = i % w->n_settings;
        study_value row[5] = {STUDY_NUMBER(l), STUDY_NUMBER(w->settings[s])};
        status = add_loss_row(w, study, row, 2, w->trials[layer_trial(w, l, s)].loss, err);
    }
    return status;
}

static int add_heads(const work *w, qkv_study *study, qkv_error *err) {
    const char *const columns[] = {"layer", "head", "loss", "perplexity", "loss_change"};
    int status = qkv_study_add_table(study, "heads", "Every head alone", columns, 5, err);
    for (size_t i = 0; i < w->n_layer * w->n_head && status == QKV_OK; i++) {
        const size_t l = i / w->n_head, h = i % w->n_head;
        study_value row[5] = {STUDY_NUMBER(l), STUDY_NUMBER(h)};
        status = add_loss_row(w, study, row, 2, w->trials[head_trial(w, l, h)].loss, err);
    }
    return status;
}

/* ---- pictures ---- */

static int draw_settings(const work *w, qkv_study *study, qkv_error *err) {
    double x[MOST_SETTINGS], y[MOST_SETTINGS];
    double most = w->baseline, least = w->baseline;
    for (size_t s = 0; s < w->n_settings; s++) {
        x[s] = (double)w->settings[s];
        y[s] = exp(w->trials[s].loss);
        most = fmax(most, w->trials[s].loss);
        least = fmin(least, w->trials[s].loss);
    }
    qkv_series series = QKV_SERIES_INIT;
    series.label = "all layers";
    series.x = x;
    series.y = y;
    series.n = w->n_settings;
    qkv_lines lines = QKV_LINES_INIT;
    lines.series = &series;
    lines.n_series = 1;
    lines.x.label = w->question->axis;
    lines.y.label = "Perplexity";
    if (most - least > FAR_APART) lines.y.scale = QKV_SCALE_LOG;
    lines.reference_label = "unedited";
    lines.reference = exp(w->baseline);
    return qkv_study_add_lines(study, "settings", w->question->title, &lines, err);
}

static int draw_layers(const work *w, qkv_study *study, qkv_error *err) {
    double *values = qkv_calloc(w->n_layer * w->n_settings, sizeof *values);
    char texts[MOST_SETTINGS][32];
    const char *labels[MOST_SETTINGS];
    if (!values) return qkv_fail_memory(err);
    for (size_t s = 0; s < w->n_settings; s++) {
        snprintf(texts[s], sizeof texts[s], "%lld", (long long)w->settings[s]);
        labels[s] = texts[s];
        for (size_t l = 0; l < w->n_layer; l++)
            values[l * w->n_settings + s] = w->trials[layer_trial(w, l, s)].loss - w->baseline;
    }
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    panel.values = values;
    panel.n_rows = (int32_t)w->n_layer;
    panel.n_cols = (int32_t)w->n_settings;
    panel.col_labels = labels;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Layer";
    map.col_axis = w->question->axis;
    map.color.label = "change of the loss (nats)";
    map.diverging = 1;
    char title[64];
    snprintf(title, sizeof title, "%s: One Layer Alone", w->question->name);
    const int status = qkv_study_add_heatmap(study, "layers", title, &map, err);
    free(values);
    return status;
}

static int draw_heads(const work *w, qkv_study *study, qkv_error *err) {
    double *values = qkv_calloc(w->n_layer * w->n_head, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    for (size_t i = 0; i < w->n_layer * w->n_head; i++)
        values[i] = w->trials[head_trial(w, 0, i)].loss - w->baseline;
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    panel.values = values;
    panel.n_rows = (int32_t)w->n_layer;
    panel.n_cols = (int32_t)w->n_head;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Layer";
    map.col_axis = w->question->per_group ? "Key/value head" : "Head";
    map.color.label = "change of the loss (nats)";
    map.diverging = 1;
    char title[64];
    snprintf(title, sizeof title, "%s: One Head Alone", w->question->name);
    const int status = qkv_study_add_heatmap(study, "heads", title, &map, err);
    if (status == QKV_OK && !w->question->per_group) qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    free(values);
    return status;
}

/* ---- the whole ---- */

static int show(const work *w, qkv_study *study, qkv_error *err) {
    const cache_question *q = w->question;
    qkv_study_set_title(study, "%s", q->title);
    qkv_study_note(study,
                   "perplexity: exp of the mean loss of %lld tokens of %zu prompt%s, from token "
                   "%lld of each on",
                   (long long)w->n_counted, w->in->prompts.n, qkv_plural(w->in->prompts.n),
                   (long long)q->from);
    qkv_study_note(study, "the first edit: %s", w->trials[0].edits.data);
    int status = add_settings(w, study, err);
    if (status == QKV_OK && !q->only_all) status = add_layers(w, study, err);
    if (status == QKV_OK && !q->only_all) status = add_heads(w, study, err);
    if (status == QKV_OK) status = draw_settings(w, study, err);
    if (status != QKV_OK || q->only_all) return status;
    qkv_study_note(study, "heads alone: %s %lld", q->setting, (long long)w->settings[w->alone]);
    status = draw_layers(w, study, err);
    return status == QKV_OK ? draw_heads(w, study, err) : status;
}

int qkv_cache_study(qkv_study *study, const study_inputs *in, const cache_question *question,
                    qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    work w = {.in = in,
              .question = question,
              .n_layer = (size_t)info->n_layer,
              .n_head = (size_t)(question->per_group ? info->n_kv_head : info->n_head)};
    int status = read_settings(&w, err);
    if (status == QKV_OK) status = write_trials(&w, err);
    if (status == QKV_OK) status = run_all(&w, err);
    if (status == QKV_OK) status = show(&w, study, err);
    for (size_t i = 0; w.trials && i < w.n_trials; i++) qkv_text_release(&w.trials[i].edits);
    free(w.trials);
    return status;
}
