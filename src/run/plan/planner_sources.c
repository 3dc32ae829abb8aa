/*
 * What edits of a plan take from elsewhere: every prompt that an edit patches from, as far as the patched
 * sites; the prompts of a set whose means edits take, unless the session has them; and, where the
 * baseline does not leave it by itself, what edits freeze.
 */
#include <stdlib.h>
#include <string.h>

#include "run/plan/other_prompt.h"
#include "run/plan/planner.h"

float *qkv_planner_copy(const struct ggml_tensor *tensor) {
    float *copy = malloc(ggml_nbytes(tensor));
    if (copy) ggml_backend_tensor_get(tensor, copy, 0, ggml_nbytes(tensor));
    return copy;
}

int qkv_planner_mark_sources(const qkv_plan *plan, size_t source, uint8_t *places) {
    const int unedited = source == QKV_NO_SOURCE;
    const unsigned flag = unedited ? QKV_EDIT_TAKES_UNEDITED : QKV_EDIT_TAKES_PROMPT;
    int any = 0;
    for (size_t v = 0; v < plan->n_variants; v++) {
        for (size_t i = 0; i < plan->variants[v].n_edits; i++) {
            const qkv_edit *edit = &plan->variants[v].edits[i];
            if (!(edit->flags & flag) || (!unedited && edit->source != source)) continue;
            const qkv_site site = qkv_site_unedited(edit->where.site);
            any = 1;
            if (!edit->where.layers)
                places[qkv_place(site, plan->model->hp.n_layer)] = QKV_KEEP_WHOLE;
            for (int32_t il = 0; edit->where.layers && il < plan->model->hp.n_layer; il++) {
                if (edit->where.layers[il]) places[qkv_place(site, il)] |= QKV_KEEP_WHOLE;
            }
        }
    }
    return any;
}

int qkv_planner_run_other(qkv_planner *p, const int32_t *tokens, size_t n_tokens,
                          int (*take)(void *user, const qkv_graph *g, qkv_error *err), void *user,
                          qkv_error *err) {
    static const size_t baseline = 0;
    qkv_plan *plan = NULL;
    int status = qkv_plan_new(&plan, p->plan->model, tokens, n_tokens, err);
    if (status != QKV_OK) return status;
    qkv_planner other = {.session = p->session,
                         .plan = plan,
                         .result = p->result,
                         .explanation = p->explanation,
                         .done = p->done,
                         .per_flop = p->per_flop,
                         .keep = p->keep};
    const qkv_pass pass = {.variants = &baseline, .n_variants = 1, .tokens = plan->tokens};
    qkv_member member;
    qkv_graph g;
    status = qkv_pass_run(&other, &pass, &g, &member, err);
    if (status == QKV_OK && !p->explanation) status = take(user, &g, err);
    p->done = other.done;
    qkv_graph_release(&g);
    qkv_plan_free(plan);
    return status;
}

/* Copies what a pass kept to an array of places. */
static int take_kept(void *user, const qkv_graph *g, qkv_error *err) {
    float **to = user;
    for (size_t i = 0; i < g->n_kept; i++) {
        float *copy = qkv_planner_copy(g->kept[i].tensor);
        if (!copy) return qkv_fail_memory(err);
        to[qkv_place(g->kept[i].site, g->kept[i].layer)] = copy;
    }
    return QKV_OK;
}

/* A pass over the plan's own prompt or one of the same length, cut as all passes of the plan are. */
static int run_alike(qkv_planner *p, const int32_t *tokens, float **to, qkv_error *err) {
    static const size_t baseline = 0;
    const qkv_pass pass = {.variants = &baseline, .n_variants = 1, .tokens = tokens};
    qkv_member member;
    qkv_graph g;
    int status = qkv_pass_run(p, &pass, &g, &member, err);
    if (status == QKV_OK) status = take_kept(to, &g, err);
    qkv_graph_release(&g);
    return status;
}

int qkv_planner_run_source(qkv_planner *p, size_t source, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    memset(p->keep, 0, qkv_n_places(plan));
    if (!qkv_planner_mark_sources(plan, source, p->keep)) return QKV_OK;
    if (source == QKV_NO_SOURCE) return run_alike(p, plan->tokens, p->patches.frozen, err);
    const qkv_source *from = &plan->sources[source];
    float **to = p->patches.tensors + source * qkv_n_places(plan);
    if (from->n_tokens == plan->n_tokens) return run_alike(p, from->tokens, to, err);
    return qkv_planner_run_other(p, from->tokens, (size_t)from->n_tokens, take_kept, to, err);
}

int qkv_planner_run_sources(qkv_planner *p, qkv_error *err) {
    int status = QKV_OK;
    for (size_t s = 0; status == QKV_OK && s < p->plan->n_sources; s++)
        status = qkv_planner_run_source(p, s, err);
    return status == QKV_OK ? qkv_planner_means(p, err) : status;
}
