/* The logit lens as tables and a picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/lens.h"

/* ---- tables ---- */

/* The tokens of a cell as one text: "the 31 %, a 12 %". */
static int list_tokens(const lens *l, const lens_cell *cell, const qkv_model *model, qkv_text *out,
                       qkv_error *err) {
    int status = QKV_OK;
    for (int32_t k = 0; k < l->n_top && status == QKV_OK; k++) {
        char *label = NULL;
        status = qkv_token_label(model, cell->top[k], &label, err);
        if (status == QKV_OK)
            qkv_text_printf(out, "%s%s %.3g %%", k ? ", " : "", label, 100 * cell->p[k]);
        free(label);
    }
    return status == QKV_OK && out->failed ? qkv_fail_memory(err) : status;
}

static const char *logit_name(const lens *l) {
    return l->against < 0 ? "logit" : "logit_difference";
}

/* The last position, a line for each layer: what is printed. */
static int add_layers(const lens *l, qkv_study *study, const study_inputs *in, qkv_error *err) {
    const char *const columns[] = {"layer", "top", "rank", "probability", logit_name(l)};
    int status = qkv_study_add_table(study, "layers", "After the last token, layer by layer",
                                     columns, l->answer < 0 ? 2 : 5, err);
    for (int32_t i = 0; i < l->n_layer && status == QKV_OK; i++) {
        const lens_cell *cell = qkv_lens_at(l, i, l->n_tokens - 1);
        qkv_text top = {0};
        status = list_tokens(l, cell, in->model, &top, err);
        const study_value row[] = {STUDY_NUMBER(i), STUDY_TEXT(top.data),
                                   STUDY_NUMBER(cell->answer_rank), STUDY_NUMBER(cell->answer_p),
                                   STUDY_NUMBER(cell->answer_logit)};
        if (status == QKV_OK) status = qkv_study_add_row(study, row, err);
        qkv_text_release(&top);
    }
    return status;
}

static int add_tokens(const lens *l, qkv_study *study, const study_inputs *in, int32_t layer,
                      size_t position, qkv_error *err) {
    const lens_cell *cell = qkv_lens_at(l, layer, position);
    const char *at = in->prompts.items[0].labels[position];
    int status = QKV_OK;
    for (int32_t k = 0; k < l->n_top && status == QKV_OK; k++) {
        char *label = NULL;
        status = qkv_token_label(in->model, cell->top[k], &label, err);
        const study_value row[] = {
            STUDY_NUMBER(layer),     STUDY_NUMBER(position),     STUDY_TEXT(at),
            STUDY_NUMBER(k + 1),     STUDY_NUMBER(cell->top[k]), STUDY_TEXT(label),
            STUDY_NUMBER(cell->p[k])};
        if (status == QKV_OK) status = qkv_study_add_row(study, row, err);
        free(label);
    }
    return status;
}

static int add_top(const lens *l, qkv_study *study, const study_inputs *in, qkv_error *err) {
    static const char *const columns[] = {"layer", "position",   "after",      "rank",
                                          "token", "prediction", "probability"};
    int status = qkv_study_add_table(study, "top", "The most likely tokens of every cell", columns,
                                     sizeof columns / sizeof *columns, err);
    for (int32_t i = 0; i < l->n_layer && status == QKV_OK; i++) {
        for (size_t p = 0; p < l->n_tokens && status == QKV_OK; p++)
            status = add_tokens(l, study, in, i, p, err);
    }
    return status;
}

static int add_answer(const lens *l, qkv_study *study, const study_inputs *in, qkv_error *err) {
    const char *const columns[] = {"layer", "position",    "after",
                                   "rank",  "probability", logit_name(l)};
    if (l->answer < 0) return QKV_OK;
    int status = qkv_study_add_table(study, "answer", "The answer in every cell", columns,
                                     sizeof columns / sizeof *columns, err);
    for (int32_t i = 0; i < l->n_layer && status == QKV_OK; i++) {
        for (size_t p = 0; p < l->n_tokens && status == QKV_OK; p++) {
            const lens_cell *cell = qkv_lens_at(l, i, p);
            const study_value row[] = {STUDY_NUMBER(i),
                                       STUDY_NUMBER(p),
                                       STUDY_TEXT(in->prompts.items[0].labels[p]),
                                       STUDY_NUMBER(cell->answer_rank),
                                       STUDY_NUMBER(cell->answer_p),
                                       STUDY_NUMBER(cell->answer_logit)};
            status = qkv_study_add_row(study, row, err);
        }
    }
    return status;
}

/* ---- pictures ---- */

/* What the colour of a cell says. */
typedef struct lens_quantity {
    const char *name, *title, *label;
    double (*of)(const lens_cell *cell);
    int of_answer;
    qkv_scale scale;
    double high; /* of the range from 0 on; 0: as far as the values reach */
} lens_quantity;

static double top_probability(const lens_cell *cell) {
    return cell->p[0];
}
static double answer_probability(const lens_cell *cell) {
    return cell->answer_p;
}
static double answer_rank(const lens_cell *cell) {
    return (double)cell->answer_rank;
}
static double answer_logit(const lens_cell *cell) {
    return cell->answer_logit;
}

static const lens_quantity quantities[] = {
    {"answer", "Logit Lens: Probability of \xe2\x80\x9c%s\xe2\x80\x9d", "probability",
     answer_probability, 1, QKV_SCALE_LINEAR, 0},
    {"top", "Logit Lens: What Every Layer Would Predict", "probability", top_probability, 0,
     QKV_SCALE_LINEAR, 1},
    {"rank", "Logit Lens: Rank of \xe2\x80\x9c%s\xe2\x80\x9d", "rank", answer_rank, 1,
     QKV_SCALE_LOG, 0},
    {"logit", "Logit Lens: Logit of \xe2\x80\x9c%s\xe2\x80\x9d", "logit", answer_logit, 1,
     QKV_SCALE_LINEAR, 0},
};

static int fill_texts(const lens *l, const study_inputs *in, char **texts, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < (size_t)l->n_layer * l->n_tokens && status == QKV_OK; i++)
        status = qkv_token_label(in->model, l->cells[i].top[0], &texts[i], err);
    return status;
}

static int add_map(const lens *l, const lens_quantity *q, qkv_study *study, const study_inputs *in,
                   char **texts, double *values, const char *answer, qkv_error *err) {
    const size_t n = (size_t)l->n_layer * l->n_tokens;
    double most = 0;
    qkv_text title = {0};
    for (size_t i = 0; i < n; i++) {
        values[i] = q->of(&l->cells[i]);
        most = fmax(most, values[i]);
    }
    const char *gap = strstr(q->title, "%s");
    qkv_text_append(&title, q->title, gap ? (size_t)(gap - q->title) : strlen(q->title));
    if (gap) qkv_text_printf(&title, "%s%s", answer, gap + 2);
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    panel.values = values;
    panel.n_rows = l->n_layer;
    panel.n_cols = (int32_t)l->n_tokens;
    panel.col_labels = (const char *const *)in->prompts.items[0].labels;
    panel.cell_texts = (const char *const *)texts;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Layer";
    map.col_axis = "Token";
    map.color.label = q->of == answer_logit && l->against >= 0 ? "difference of logits" : q->label;
    map.color.scale = q->scale;
    map.diverging = q->of == answer_logit && l->against >= 0;
    map.color.high = q->of == answer_probability ? most : q->high;
    int status = title.failed ? qkv_fail_memory(err)
                              : qkv_study_add_heatmap(study, q->name, title.data, &map, err);
    if (status == QKV_OK) qkv_study_link(study, STUDY_LAYERS_TOKENS, 0);
    qkv_text_release(&title);
    return status;
}

static int add_maps(const lens *l, qkv_study *study, const study_inputs *in, const char *answer,
                    qkv_error *err) {
    const size_t n = (size_t)l->n_layer * l->n_tokens;
    double *values = qkv_calloc(n, sizeof *values);
    char **texts = qkv_calloc(n, sizeof *texts);
    int status = values && texts ? fill_texts(l, in, texts, err) : qkv_fail_memory(err);
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities && status == QKV_OK; i++) {
        if (answer || !quantities[i].of_answer)
            status = add_map(l, &quantities[i], study, in, texts, values, answer, err);
    }
    for (size_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
    free(values);
    return status;
}

/* ---- all of it ---- */

int qkv_lens_show(const lens *l, qkv_study *study, const study_inputs *in, const char *answer,
                  qkv_error *err) {
    if (answer)
        qkv_study_set_title(study, "Logit Lens: \xe2\x80\x9c%s\xe2\x80\x9d at Every Layer", answer);
    else
        qkv_study_set_title(study, "Logit Lens: What Every Layer Would Predict");
    qkv_study_note(study, "through the model's final norm and output matrix");
    qkv_study_note(study,
                   "in maps of tokens, texts in cells, where there is room for them, are the "
                   "most likely next token");
    int status = add_layers(l, study, in, err);
    if (status == QKV_OK) status = add_answer(l, study, in, err);
    if (status == QKV_OK) status = add_top(l, study, in, err);
    if (status == QKV_OK) status = add_maps(l, study, in, answer, err);
    return status;
}
