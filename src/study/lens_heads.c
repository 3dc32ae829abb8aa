/*
 * Direct logit attribution: which part of the residual stream a logit is made of. The stream in the end
 * is the sum of the embedding and of what heads and feed-forward blocks have added. The final norm
 * divides by a number that depends on all of it; held at the value that it has, the rest is linear, and
 * each part has a share. The shares' sum is the logit before the cap (qkv/unembed.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/unembed.h"
#include "study/lens.h"

/* The sum of the heads must be what attention adds, in parts of the largest share. */
static const double TOLERANCE = 1e-3;
enum { MOST_PRINTED = 20 };

typedef struct head_parts {
    int32_t n_layer, n_head, n_embd;
    size_t position;
    double *direction;
    double embedding, offset;          /* offset: biases of the final norm and of the output */
    double *heads;                     /* [layers, heads] */
    double *attention, *biases, *mlps; /* per layer; attention is heads and bias together */
    double *mixers;                    /* per layer: what a linear mixer adds */
    double logit;                      /* of the final state, before the cap */
} head_parts;

static void release(head_parts *p) {
    free(p->direction);
    free(p->heads);
}

static int allocate(head_parts *p, qkv_error *err) {
    const size_t L = (size_t)p->n_layer, H = (size_t)p->n_head;
    p->direction = qkv_calloc((size_t)p->n_embd, 2 * sizeof *p->direction);
    p->heads = qkv_calloc(L * (H + 4), sizeof *p->heads);
    if (!p->direction || !p->heads) return qkv_fail_memory(err);
    p->attention = p->heads + L * H;
    p->biases = p->attention + L;
    p->mlps = p->biases + L;
    p->mixers = p->mlps + L;
    return QKV_OK;
}

static double dot(const head_parts *p, const float *x) {
    double sum = 0;
    for (int32_t i = 0; i < p->n_embd; i++) sum += p->direction[i] * (double)x[i];
    return sum;
}

/* ---- computing ---- */

static const float *row_of(const qkv_result *result, qkv_site site, int32_t layer,
                           size_t position) {
    qkv_tensor t = QKV_TENSOR_INIT;
    if (!qkv_result_get(result, 0, site, layer, &t)) return NULL;
    const size_t width = t.n_dims == 3 ? (size_t)(t.shape[1] * t.shape[2]) : (size_t)t.shape[1];
    return t.data + position * width;
}

/* The direction of the answer, or of the difference of two. */
static int find_direction(head_parts *p, const lens *l, const qkv_model *model, const float *state,
                          qkv_error *err) {
    double *second = p->direction + p->n_embd, offset = 0;
    int status = qkv_unembed_direction(model, state, l->answer, p->direction, &p->offset, err);
    if (status != QKV_OK || l->against < 0) return status;
    status = qkv_unembed_direction(model, state, l->against, second, &offset, err);
    for (int32_t i = 0; i < p->n_embd; i++) p->direction[i] -= second[i];
    p->offset -= offset;
    return status;
}

/* z as the output matrix gets it: times its gate, where there is one. */
static int unembed_heads(head_parts *p, const qkv_model *model, const qkv_result *result,
                         int32_t layer, qkv_error *err) {
    const float *z = row_of(result, QKV_SITE_Z, layer, p->position);
    const float *gate = row_of(result, QKV_SITE_GATE, layer, p->position);
    qkv_layer_info shape = {.size = sizeof shape};
    qkv_model_get_layer(model, layer, &shape);
    const size_t n = (size_t)shape.n_head * (size_t)shape.value_dim;
    float *passed = qkv_calloc(n, sizeof *passed);
    if (!passed) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) passed[i] = gate ? z[i] * gate[i] : z[i];
    const int status =
        qkv_unembed_heads(model, layer, passed, p->direction,
                          p->heads + (size_t)layer * (size_t)p->n_head, &p->biases[layer], err);
    free(passed);
    return status;
}

static int take_layer(head_parts *p, const qkv_model *model, const qkv_result *result,
                      int32_t layer, qkv_error *err) {
    const float *attn = row_of(result, QKV_SITE_ATTN_OUT, layer, p->position);
    const float *mlp = row_of(result, QKV_SITE_MLP_OUT, layer, p->position);
    double *heads = p->heads + (size_t)layer * (size_t)p->n_head, sum, scale;
    const int has_heads = row_of(result, QKV_SITE_Z, layer, p->position) != NULL;
    if (mlp) p->mlps[layer] = dot(p, mlp);
    if (attn) p->attention[layer] = dot(p, attn);
    if (!has_heads) p->mixers[layer] = p->attention[layer];
    if (!has_heads) return QKV_OK;
    const int status = unembed_heads(p, model, result, layer, err);
    if (status != QKV_OK) return status;
    sum = p->biases[layer];
    scale = fabs(sum) + 1e-6;
    for (int32_t h = 0; h < p->n_head; h++) {
        sum += heads[h];
        scale = fmax(scale, fabs(heads[h]));
    }
    if (fabs(sum - p->attention[layer]) <= TOLERANCE * scale * p->n_head) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "the heads of layer %d do not add up to what its attention adds (%g and %g): "
                    "this model changes their output on the way",
                    (int)layer, sum, p->attention[layer]);
}

static int has_gates(const qkv_model *model) {
    qkv_layer_info layer = QKV_LAYER_INFO_INIT;
    int found = 0;
    for (int32_t i = 0; qkv_model_get_layer(model, i, &layer); i++) found |= layer.has_gate;
    return found;
}

static int compute(head_parts *p, const lens *l, const study_inputs *in, qkv_error *err) {
    static const char *const captures[] = {"resid_pre@0", "z@*", "attn_out@*", "mlp_out@*",
                                           "gate@*"};
    const size_t n_captures = sizeof captures / sizeof *captures - !has_gates(in->model);
    const qkv_own_prompt *prompt = &in->prompts.items[0];
    char last[32];
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    snprintf(last, sizeof last, "resid_post@%d", (int)p->n_layer - 1);
    int status = qkv_plan_new(&plan, in->model, prompt->tokens, prompt->n_tokens, err);
    for (size_t i = 0; i < n_captures && status == QKV_OK; i++)
        status = qkv_plan_add_capture(plan, captures[i], err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, last, err);
    if (status == QKV_OK) status = qkv_session_run(in->session, &result, plan, err);
    if (status == QKV_OK) {
        const float *state = row_of(result, QKV_SITE_RESID_POST, p->n_layer - 1, p->position);
        status = find_direction(p, l, in->model, state, err);
        p->logit = dot(p, state) + p->offset;
        p->embedding = dot(p, row_of(result, QKV_SITE_RESID_PRE, 0, p->position));
    }
    for (int32_t i = 0; i < p->n_layer && status == QKV_OK; i++)
        status = take_layer(p, in->model, result, i, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* ---- tables ---- */

typedef struct part {
    const char *kind;
    int32_t layer, head; /* -1: none */
    double value;
} part;

static size_t list_parts(const head_parts *p, part *to) {
    size_t n = 0;
    to[n++] = (part){"embedding", -1, -1, p->embedding};
    for (int32_t i = 0; i < p->n_layer; i++) {
        for (int32_t h = 0; h < p->n_head; h++)
            to[n++] = (part){"head", i, h, p->heads[(size_t)i * (size_t)p->n_head + (size_t)h]};
        if (p->biases[i] < 0 || p->biases[i] > 0)
            to[n++] = (part){"attention bias", i, -1, p->biases[i]};
        if (p->mixers[i] < 0 || p->mixers[i] > 0) to[n++] = (part){"mixer", i, -1, p->mixers[i]};
        to[n++] = (part){"feed-forward", i, -1, p->mlps[i]};
    }
    to[n++] = (part){"biases of the final norm and the output", -1, -1, p->offset};
    return n;
}

static int by_size(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (fabs(x->value) != fabs(y->value)) return fabs(x->value) < fabs(y->value) ? 1 : -1;
    return x->layer != y->layer ? (x->layer > y->layer) - (x->layer < y->layer)
                                : (x->head > y->head) - (x->head < y->head);
}

static study_value index_value(int32_t index) {
    return STUDY_NUMBER(index < 0 ? (double)NAN : (double)index);
}

static int add_rows(qkv_study *study, const part *parts, size_t n, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const study_value row[] = {STUDY_TEXT(parts[i].kind), index_value(parts[i].layer),
                                   index_value(parts[i].head), STUDY_NUMBER(parts[i].value)};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static int add_tables(const head_parts *p, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"part", "layer", "head", "logit"};
    const size_t most = (size_t)p->n_layer * ((size_t)p->n_head + 3) + 2;
    part *parts = qkv_calloc(most, sizeof *parts);
    if (!parts) return qkv_fail_memory(err);
    const size_t n = list_parts(p, parts), shown = n < MOST_PRINTED ? n : MOST_PRINTED;
    double sum = 0, rest = 0;
    for (size_t i = 0; i < n; i++) sum += parts[i].value;
    qsort(parts, n, sizeof *parts, by_size);
    for (size_t i = shown; i < n; i++) rest += parts[i].value;
    const part ends[] = {
        {"all others", -1, -1, rest}, {"sum", -1, -1, sum}, {"logit", -1, -1, p->logit}};
    int status =
        qkv_study_add_table(study, "largest", "The largest parts of the logit", columns, 4, err);
    if (status == QKV_OK) status = add_rows(study, parts, shown, err);
    if (status == QKV_OK) status = add_rows(study, ends + (n == shown), 3 - (n == shown), err);
    list_parts(p, parts);
    if (status == QKV_OK)
        status = qkv_study_add_table(study, "parts", "All parts of the logit", columns, 4, err);
    if (status == QKV_OK) status = add_rows(study, parts, n, err);
    free(parts);
    return status;
}

/* ---- pictures ---- */

static int add_map(qkv_study *study, const char *name, const char *title, const double *values,
                   int32_t rows, int32_t cols, const char *const *labels, const char *label,
                   qkv_error *err) {
    qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    panel.values = values;
    panel.n_rows = rows;
    panel.n_cols = cols;
    panel.col_labels = labels;
    map.panels = &panel;
    map.n_panels = 1;
    map.row_axis = "Layer";
    map.col_axis = labels ? NULL : "Head";
    map.diverging = 1;
    map.color.label = label;
    return qkv_study_add_heatmap(study, name, title, &map, err);
}

static int add_layers(const head_parts *p, qkv_study *study, const char *title, const char *label,
                      qkv_error *err) {
    static const char *const labels[] = {"attention", "feed-forward"};
    double *values = qkv_calloc((size_t)p->n_layer, 2 * sizeof *values);
    if (!values) return qkv_fail_memory(err);
    for (int64_t i = 0; i < p->n_layer; i++) {
        values[2 * i] = p->attention[i];
        values[2 * i + 1] = p->mlps[i];
    }
    const int status = add_map(study, "blocks", title, values, p->n_layer, 2, labels, label, err);
    free(values);
    return status;
}

static int show(const head_parts *p, const lens *l, qkv_study *study, const study_inputs *in,
                const char *answer, qkv_error *err) {
    const char *label = l->against < 0 ? "logit" : "difference of logits";
    qkv_text title = {0};
    qkv_text_printf(&title, "What the Heads Add to \xe2\x80\x9c%s\xe2\x80\x9d", answer);
    if (title.failed) return qkv_fail_memory(err);
    int status = add_tables(p, study, err);
    if (status == QKV_OK)
        status =
            add_map(study, "heads", title.data, p->heads, p->n_layer, p->n_head, NULL, label, err);
    if (status == QKV_OK) qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    title.length = 0;
    qkv_text_printf(&title, "What the Blocks Add to \xe2\x80\x9c%s\xe2\x80\x9d", answer);
    if (status == QKV_OK) status = add_layers(p, study, title.data, label, err);
    qkv_text_release(&title);
    qkv_study_note(study,
                   "parts: after token %zu (%s), the final norm's division held at its value",
                   p->position, in->prompts.items[0].labels[p->position]);
    if (qkv_unembed_cap(in->model, 1e6) < 1e5)
        qkv_study_note(study, "logits before the model's cap");
    return status;
}

int qkv_lens_heads(const lens *l, qkv_study *study, const study_inputs *in, const char *answer,
                   qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    head_parts p = {.n_layer = info->n_layer,
                    .n_head = info->n_head,
                    .n_embd = info->n_embd,
                    .position = l->n_tokens - 1};
    int status = allocate(&p, err);
    if (status == QKV_OK) status = compute(&p, l, in, err);
    if (status == QKV_OK) status = show(&p, l, study, in, answer, err);
    release(&p);
    return status;
}
