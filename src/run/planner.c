/*
 * Runs a plan: what is computed, in which passes, and what is shared.
 *
 *     sources   every prompt that an edit patches from, as far as the patched sites
 *     trunk     the baseline: its own captures, and the residual stream at the layers where variants fork
 *     variants  each from its first edited layer, up to the last capture that it can change
 *
 * A capture that no edit of a variant can reach is the baseline's own tensor. Each variant is a pass of its own here; the
 * graph takes a batch of them, so that this file alone decides how they are grouped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/result.h"
#include "run/session.h"

typedef struct planner {
    qkv_session *session;
    const qkv_plan *plan;
    qkv_result *result;
    qkv_patches patches;
    uint8_t *forks; /* n_layer + 1: layers at which some variant starts */
    float **trunk;  /* n_layer + 1: the residual stream there, [D, T] */
    uint8_t *keep;  /* scratch: (n_layer + 1) × sites */
} planner;

static size_t n_places(const planner *p) {
    return (size_t)(p->plan->model->hp.n_layer + 1) * QKV_SITE_COUNT;
}

static size_t place(qkv_site site, int32_t layer) {
    return (size_t)layer * QKV_SITE_COUNT + (size_t)site;
}

static qkv_site place_site(size_t place) {
    return (qkv_site)(place % QKV_SITE_COUNT);
}

static int32_t place_layer(size_t place) {
    return (int32_t)(place / QKV_SITE_COUNT);
}

/* First layer that a variant has to compute: that of its first edit that shows in a capture. -1 when none does. */
static int32_t first_layer(const qkv_plan *plan, const qkv_variant *variant) {
    int32_t n_layer = plan->model->hp.n_layer, first = -1;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i];
        for (int32_t il = edit->where.layers ? 0 : n_layer; il <= n_layer; il++) {
            if (il < n_layer && !edit->where.layers[il]) continue;
            if (il == n_layer && edit->where.layers) break;
            if (!qkv_plan_edit_shows(plan, edit, il)) continue;
            if (first < 0 || il < first) first = il;
            break;
        }
    }
    return first;
}

static int edit_ran(const qkv_plan *plan, const qkv_edit *edit) {
    qkv_variant alone = {.edits = (qkv_edit *)edit, .n_edits = 1};
    return first_layer(plan, &alone) >= 0;
}

/* Builds and computes one graph. The caller reads g->kept and releases g, whatever is returned. */
static int run_pass(planner *p, qkv_graph *g, const qkv_member *member, int32_t from,
                    const int32_t *tokens, qkv_error *err) {
    *g = (qkv_graph){.model = p->plan->model,
                     .n_tokens = p->plan->n_tokens,
                     .n_batch = 1,
                     .members = member,
                     .patches = &p->patches,
                     .from = from,
                     .keep = p->keep,
                     .n_threads = p->session->n_threads};
    int status = qkv_graph_build(g, err);
    if (status != QKV_OK) return status;
    return qkv_session_compute(p->session, g, tokens, from > 0 ? p->trunk[from] : NULL, err);
}

static float *copy_kept(const qkv_kept *kept) {
    float *copy = malloc(ggml_nbytes(kept->tensor));
    if (copy) ggml_backend_tensor_get(kept->tensor, copy, 0, ggml_nbytes(kept->tensor));
    return copy;
}

/* ---- sources ---- */

static int mark_patched_sites(planner *p, size_t source) {
    const qkv_plan *plan = p->plan;
    int any = 0;
    memset(p->keep, 0, n_places(p));
    for (size_t v = 0; v < plan->n_variants; v++) {
        for (size_t i = 0; i < plan->variants[v].n_edits; i++) {
            const qkv_edit *edit = &plan->variants[v].edits[i];
            if (edit->op != QKV_OP_PATCH || edit->source != source) continue;
            any = 1;
            if (!edit->where.layers) p->keep[place(edit->where.site, plan->model->hp.n_layer)] = 1;
            for (int32_t il = 0; edit->where.layers && il < plan->model->hp.n_layer; il++)
                p->keep[place(edit->where.site, il)] |= edit->where.layers[il];
        }
    }
    return any;
}

static int run_source(planner *p, size_t source, qkv_error *err) {
    if (!mark_patched_sites(p, source)) return QKV_OK;
    qkv_member baseline = {.variant = &p->plan->variants[0]};
    qkv_graph g;
    int status = run_pass(p, &g, &baseline, 0, p->plan->sources[source].tokens, err);
    for (size_t i = 0; status == QKV_OK && i < g.n_kept; i++) {
        float *copy = copy_kept(&g.kept[i]);
        if (!copy) status = qkv_fail_memory(err);
        p->patches.tensors[source * n_places(p) + place(g.kept[i].site, g.kept[i].layer)] = copy;
    }
    qkv_graph_release(&g);
    return status;
}

/* ---- trunk and variants ---- */

static int add_kept(planner *p, size_t variant, const qkv_kept *kept, qkv_error *err) {
    int32_t heads = 0;
    qkv_site_axes axes = qkv_site_get_axes(kept->site);
    if (axes == QKV_AXES_QUERY || axes == QKV_AXES_KEYVALUE) heads = (int32_t)kept->tensor->ne[1];
    if (axes == QKV_AXES_MAP) heads = (int32_t)kept->tensor->ne[2];
    float *copy = copy_kept(kept);
    if (!copy) return qkv_fail_memory(err);
    int status =
        qkv_result_add(p->result, p->plan, variant, kept->site, kept->layer, copy, heads, err);
    free(copy);
    return status;
}

static int run_trunk(planner *p, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    for (size_t i = 0; i < n_places(p); i++) p->keep[i] = plan->wanted[i].wanted;
    for (int32_t il = 1; il <= plan->model->hp.n_layer; il++)
        p->keep[place(QKV_SITE_RESID_PRE, il)] |= p->forks[il];

    qkv_member baseline = {.variant = &plan->variants[0]};
    qkv_graph g;
    int status = run_pass(p, &g, &baseline, 0, plan->tokens, err);
    for (size_t i = 0; status == QKV_OK && i < g.n_kept; i++) {
        const qkv_kept *kept = &g.kept[i];
        if (kept->site == QKV_SITE_RESID_PRE && p->forks[kept->layer]) {
            p->trunk[kept->layer] = copy_kept(kept);
            if (!p->trunk[kept->layer]) status = qkv_fail_memory(err);
        }
        if (status == QKV_OK && plan->wanted[place(kept->site, kept->layer)].wanted)
            status = add_kept(p, 0, kept, err);
    }
    qkv_graph_release(&g);
    return status;
}

static int share_unreached(planner *p, size_t variant, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && i < n_places(p); i++) {
        if (p->plan->wanted[i].wanted && !p->keep[i])
            status = qkv_result_share(p->result, variant, place_site(i), place_layer(i), err);
    }
    return status;
}

static int run_variant(planner *p, size_t variant, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    const qkv_variant *v = &plan->variants[variant];
    for (size_t i = 0; i < n_places(p); i++)
        p->keep[i] = plan->wanted[i].wanted &&
                     qkv_plan_variant_reaches(plan, variant, place_site(i), place_layer(i));
    int status = share_unreached(p, variant, err);
    int32_t from = first_layer(plan, v);
    if (status != QKV_OK || from < 0) return status;

    qkv_member member = {.variant = v, .changed = p->result->variants[variant].changed};
    qkv_graph g;
    status = run_pass(p, &g, &member, from, plan->tokens, err);
    for (size_t i = 0; status == QKV_OK && i < g.n_kept; i++)
        status = add_kept(p, variant, &g.kept[i], err);
    qkv_graph_release(&g);
    return status;
}

/* ---- the whole ---- */

static int prepare(planner *p, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    size_t layers = (size_t)plan->model->hp.n_layer + 1;
    p->patches.n_tensors = plan->n_sources * n_places(p);
    p->patches.tensors = qkv_calloc(p->patches.n_tensors, sizeof *p->patches.tensors);
    p->forks = qkv_calloc(layers, 1);
    p->trunk = qkv_calloc(layers, sizeof *p->trunk);
    p->keep = qkv_calloc(n_places(p), 1);
    if (!p->patches.tensors || !p->forks || !p->trunk || !p->keep) return qkv_fail_memory(err);
    for (size_t v = 1; v < plan->n_variants; v++) {
        int32_t from = first_layer(plan, &plan->variants[v]);
        if (from > 0) p->forks[from] = 1;
        for (size_t i = 0; i < plan->variants[v].n_edits; i++)
            p->result->variants[v].edits[i].ran = edit_ran(plan, &plan->variants[v].edits[i]);
    }
    return QKV_OK;
}

static void release(planner *p) {
    for (size_t i = 0; p->patches.tensors && i < p->patches.n_tensors; i++)
        free(p->patches.tensors[i]);
    for (int32_t il = 0; p->trunk && il <= p->plan->model->hp.n_layer; il++) free(p->trunk[il]);
    free(p->patches.tensors);
    free(p->forks);
    free(p->trunk);
    free(p->keep);
}

int qkv_session_run(qkv_session *session, qkv_result **out, const qkv_plan *plan, qkv_error *err) {
    *out = NULL;
    if (plan->model != session->model)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the plan was made for another model than the session's");
    int status = qkv_plan_check(plan, err);
    if (status != QKV_OK) return status;
    planner p = {.session = session, .plan = plan};
    status = qkv_result_new(&p.result, plan, err);
    if (status != QKV_OK) return status;

    status = prepare(&p, err);
    for (size_t s = 0; status == QKV_OK && s < plan->n_sources; s++)
        status = run_source(&p, s, err);
    if (status == QKV_OK) status = run_trunk(&p, err);
    for (size_t v = 1; status == QKV_OK && v < plan->n_variants; v++)
        status = run_variant(&p, v, err);
    release(&p);
    if (status != QKV_OK) {
        qkv_result_free(p.result);
        return status;
    }
    qkv_result_sort(p.result);
    *out = p.result;
    return QKV_OK;
}
