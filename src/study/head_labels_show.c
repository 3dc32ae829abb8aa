/* Scores and labels of heads as tables and pictures. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "study/head_labels.h"
#include "study/head_tables.h"

enum { USUAL_TOP = 10 };

/* ---- tables ---- */

/* The heads of one label, the highest score first. */
static int add_label(const head_scores *s, qkv_study *study, int behaviour, size_t most,
                     qkv_error *err) {
    const size_t n = s->n_layer * s->n_head;
    if (!s->of[behaviour]) return QKV_OK;
    head_value *heads = qkv_head_values(s->n_layer, s->n_head, s->of[behaviour]);
    if (!heads) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (qkv_head_scores_label(s, i) != behaviour) heads[i].value = (double)NAN;
    }
    qkv_head_values_sort(heads, n);
    int status = QKV_OK;
    for (size_t i = 0; i < n && i < most && !isnan(heads[i].value) && status == QKV_OK; i++) {
        const size_t at = (size_t)heads[i].layer * s->n_head + (size_t)heads[i].head;
        const study_value row[] = {STUDY_TEXT(qkv_head_behaviours[behaviour].name),
                                   STUDY_NUMBER(heads[i].layer),
                                   STUDY_NUMBER(heads[i].head),
                                   STUDY_NUMBER(heads[i].value),
                                   STUDY_NUMBER(s->lowest[behaviour][at]),
                                   STUDY_NUMBER(s->highest[behaviour][at])};
        status = qkv_study_add_row(study, row, err);
    }
    free(heads);
    return status;
}

static size_t count_label(const head_scores *s, int behaviour) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_layer * s->n_head; i++)
        n += qkv_head_scores_label(s, i) == behaviour;
    return n;
}

/* "Heads by their labels, the clearest first; sink: 588 heads, the first 10". */
static void name_top(const head_scores *s, size_t most, qkv_text *title) {
    qkv_text_puts(title, "Heads by their labels, the clearest first");
    for (int k = 0; k < HEAD_BEHAVIOURS; k++) {
        const size_t n = s->of[k] ? count_label(s, k) : 0;
        if (n > most)
            qkv_text_printf(title, "; %s: %zu heads, the first %zu", qkv_head_behaviours[k].name, n,
                            most);
    }
}

static int add_top(const head_scores *s, qkv_study *study, const heads_options *options,
                   qkv_error *err) {
    static const char *const columns[] = {"label", "layer", "head", "score", "lowest", "highest"};
    const size_t most = options->top ? (size_t)options->top : USUAL_TOP;
    qkv_text title = {0};
    name_top(s, most, &title);
    int status = title.failed ? qkv_fail_memory(err)
                              : qkv_study_add_table(study, "top", title.data, columns, 6, err);
    qkv_text_release(&title);
    for (int i = 0; i < HEAD_BEHAVIOURS && status == QKV_OK; i++)
        status = add_label(s, study, i, most, err);
    return status;
}

enum { MOST_COLUMNS = 3 + HEAD_BEHAVIOURS + 2 };

static int add_heads(const head_scores *s, qkv_study *study, qkv_error *err) {
    const char *columns[MOST_COLUMNS] = {"layer", "head", "label"};
    size_t n = 3;
    for (int k = 0; k < HEAD_BEHAVIOURS; k++) {
        if (s->of[k]) columns[n++] = qkv_head_behaviours[k].name;
    }
    if (s->name_attention) {
        columns[n++] = "name_attention";
        columns[n++] = "name_copying";
    }
    int status = qkv_study_add_table(study, "heads", "Every head", columns, n, err);
    for (size_t i = 0; i < s->n_layer * s->n_head && status == QKV_OK; i++) {
        const size_t layer = i / s->n_head, head = i % s->n_head;
        const int label = qkv_head_scores_label(s, i);
        study_value row[MOST_COLUMNS] = {
            STUDY_NUMBER(layer), STUDY_NUMBER(head),
            STUDY_TEXT(label < 0 ? "none" : qkv_head_behaviours[label].name)};
        size_t at = 3;
        for (int k = 0; k < HEAD_BEHAVIOURS; k++) {
            if (s->of[k]) row[at++] = STUDY_NUMBER(s->of[k][i]);
        }
        if (s->name_attention) {
            row[at++] = STUDY_NUMBER(s->name_attention[i]);
            row[at++] = STUDY_NUMBER(s->name_copying[i]);
        }
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

/* The random tokens, so that scores can be computed elsewhere. */
static int add_repeats(const head_scores *s, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"sequence", "position", "token"};
    int status = qkv_study_add_table(study, "repeats", "The random tokens", columns, 3, err);
    for (size_t i = 0; i < s->n_sequences * s->repeat_tokens && status == QKV_OK; i++) {
        const size_t sequence = i / s->repeat_tokens, position = i % s->repeat_tokens;
        const study_value row[] = {STUDY_NUMBER(sequence), STUDY_NUMBER(position),
                                   STUDY_NUMBER(s->repeats[i])};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

/* ---- pictures ---- */

/* A letter in each labelled cell, and a hue: the stronger, the higher the score of that label. */
static int add_labels(const head_scores *s, qkv_study *study, qkv_error *err) {
    const size_t n = s->n_layer * s->n_head;
    double *values = qkv_calloc(n, sizeof *values);
    const char **texts = qkv_calloc(n, sizeof *texts);
    int32_t *labels = qkv_calloc(n, sizeof *labels);
    const char *names[HEAD_BEHAVIOURS];
    int32_t n_names = 0, category[HEAD_BEHAVIOURS]; /* of those that were looked at */
    int status = values && texts && labels ? QKV_OK : qkv_fail_memory(err);
    for (int k = HEAD_BEHAVIOURS - 1; k >= 0; k--) {
        if (!s->of[k]) continue;
        names[n_names] = qkv_head_behaviours[k].title;
        category[k] = n_names++;
    }
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const int label = qkv_head_scores_label(s, i);
        labels[i] = label < 0 ? -1 : category[label];
        values[i] = label < 0 ? 0 : s->of[label][i];
        texts[i] = label < 0 ? "" : qkv_head_behaviours[label].letter;
    }
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    panel.values = values;
    panel.n_rows = (int32_t)s->n_layer;
    panel.n_cols = (int32_t)s->n_head;
    panel.cell_texts = texts;
    panel.cell_categories = labels;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Layer";
    map.col_axis = "Head";
    map.color.label = "score";
    map.color.high = 1;
    map.categories = names;
    map.n_categories = (size_t)n_names;
    if (status == QKV_OK) status = qkv_study_add_heatmap(study, "labels", NULL, &map, err);
    if (status == QKV_OK) qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    free(values);
    free(texts);
    free(labels);
    return status;
}

/* One panel for each behaviour, one scale for all. */
static int add_scores(const head_scores *s, qkv_study *study, qkv_error *err) {
    qkv_heatmap_panel panels[HEAD_BEHAVIOURS];
    size_t n = 0;
    for (int k = 0; k < HEAD_BEHAVIOURS; k++) {
        if (!s->of[k]) continue;
        panels[n] = (qkv_heatmap_panel)QKV_HEATMAP_PANEL_INIT;
        panels[n].values = s->of[k];
        panels[n].n_rows = (int32_t)s->n_layer;
        panels[n].n_cols = (int32_t)s->n_head;
        panels[n++].title = qkv_head_behaviours[k].title;
    }
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = panels;
    map.n_panels = n;
    map.row_axis = "Layer";
    map.col_axis = "Head";
    map.color.label = "score";
    map.color.high = 1;
    const int status = qkv_study_add_heatmap(study, "scores", "What Heads Attend To", &map, err);
    if (status == QKV_OK) qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    return status;
}

/* ---- all of it ---- */

static void add_notes(const head_scores *s, qkv_study *study, const study_inputs *in) {
    qkv_text labels = {0};
    for (int k = 0; k < HEAD_BEHAVIOURS; k++) {
        if (s->of[k])
            qkv_text_printf(&labels, "%s%s %s ≥ %g", labels.length ? ", " : "",
                            qkv_head_behaviours[k].letter, qkv_head_behaviours[k].title,
                            s->thresholds[k]);
    }
    study->failed |= labels.failed;
    qkv_study_note(study, "%s; the first that holds", labels.length ? labels.data : "");
    qkv_study_note(study, "induction and duplicates on %zu × %zu random tokens twice",
                   s->n_sequences, s->length);
    qkv_study_note(study, "the others on %zu text%s", in->prompts.n, in->prompts.n == 1 ? "" : "s");
    qkv_study_note(study, "scores are means over these; lowest and highest: of a single one");
    if (s->n_pairs) qkv_study_note(study, "name movers on %zu pairs", s->n_pairs);
    qkv_text_release(&labels);
}

int qkv_head_scores_show(const head_scores *s, qkv_study *study, const study_inputs *in,
                         const heads_options *options, qkv_error *err) {
    qkv_study_set_title(study, "What Every Head Does");
    add_notes(s, study, in);
    int status = add_top(s, study, options, err);
    if (status == QKV_OK) status = add_heads(s, study, err);
    study->numbers_table = study->n_tables - 1; /* all heads */
    if (status == QKV_OK) status = add_repeats(s, study, err);
    if (status == QKV_OK) status = add_labels(s, study, err);
    if (status == QKV_OK) status = add_scores(s, study, err);
    return status;
}
