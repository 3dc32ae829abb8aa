/*
 * Runs a plan: what is computed, in which passes, and what is shared.
 *
 *     sources   what edits take from elsewhere (planner_sources.c)
 *     trunk     the baseline: its own captures, and what variants start with at the layers where
 *               they, or plans to come, fork; from the nearest layer that an earlier plan on the
 *               same tokens has left in the session
 *     variants  from their first edited layer, up to the last capture that they can change; those
 *               that fork at the same place run as one batch, as far as the memory budget goes
 *
 * A capture that no edit of a variant can reach is the baseline's own tensor, and so is every
 * capture of a variant whose edits turned out to change no value.
 */
#include "run/plan/planner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "run/graph/head_input.h"
#include "run/graph/reduce.h"
#include "run/plan/other_prompt.h"
#include "run/run.h"

size_t qkv_place(qkv_site site, int32_t layer) {
    return (size_t)layer * QKV_SITE_COUNT + (size_t)site;
}

size_t qkv_n_places(const qkv_plan *plan) {
    return (size_t)(plan->model->hp.n_layer + 1) * QKV_SITE_COUNT;
}

static qkv_site place_site(size_t place) {
    return (qkv_site)(place % QKV_SITE_COUNT);
}

static int32_t place_layer(size_t place) {
    return (int32_t)(place / QKV_SITE_COUNT);
}

/* What a plan wants of a place, as QKV_KEEP_*. */
static uint8_t kept_for(const qkv_wanted *wanted) {
    return (uint8_t)((wanted->wanted ? QKV_KEEP_WHOLE : 0) |
                     (wanted->n_reductions ? QKV_KEEP_REDUCED : 0) |
                     (wanted->observed ? QKV_KEEP_OBSERVED : 0));
}

/* A freeze does nothing where everything is as in the unedited run anyway. */
static int is_active(const qkv_plan *plan, const qkv_variant *variant, const qkv_edit *edit,
                     int32_t layer) {
    return !(edit->flags & QKV_EDIT_TAKES_UNEDITED) ||
           qkv_plan_is_disturbed(plan, variant, edit, layer);
}

/* First layer in which the edit shows in a capture; -1 when it never does. */
static int32_t first_shown(const qkv_plan *plan, const qkv_variant *variant, const qkv_edit *edit) {
    int32_t n_layer = plan->model->hp.n_layer;
    if (!edit->where.layers)
        return qkv_plan_edit_shows(plan, variant, edit, n_layer) ? n_layer : -1;
    for (int32_t il = 0; il < n_layer; il++) {
        if (edit->where.layers[il] && is_active(plan, variant, edit, il) &&
            qkv_plan_edit_shows(plan, variant, edit, il))
            return il;
    }
    return -1;
}

int32_t qkv_planner_first_layer(const qkv_plan *plan, const qkv_variant *variant) {
    int32_t first = -1;
    for (size_t i = 0; i < variant->n_edits; i++) {
        int32_t il = first_shown(plan, variant, &variant->edits[i]);
        if (il >= 0 && (first < 0 || il < first)) first = il;
    }
    return first < 0 ? first : qkv_layer_fork(&plan->model->hp, first);
}

/* What a variant has to start with at its first layer: its heads, unless the input of all of them is
 * edited, or of some that a norm joins with the others. */
static qkv_start first_start(const qkv_plan *plan, const qkv_variant *variant, int32_t from) {
    if (from == plan->model->hp.n_layer) return QKV_START_RESID;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_selector *where = &variant->edits[i].where;
        if (!where->layers || !where->layers[from]) continue;
        if (qkv_site_is_layer_input(where->site) ||
            qkv_heads_are_normed_together(plan->model, where->site, from))
            return QKV_START_RESID;
    }
    return QKV_START_HEADS;
}

/* ---- trunk ---- */

/* The first layer that the baseline has to compute something in. */
static int32_t first_needed(const qkv_planner *p) {
    for (size_t i = 0; i < qkv_n_places(p->plan); i++) {
        if (p->keep[i]) return place_layer(i);
    }
    return 0;
}

static void mark_trunk(qkv_planner *p) {
    int32_t n_layer = p->plan->model->hp.n_layer;
    for (size_t i = 0; i < qkv_n_places(p->plan); i++) p->keep[i] = kept_for(&p->plan->wanted[i]);
    for (size_t i = 0; i < qkv_n_places(p->plan); i++) p->keep[i] |= p->frozen[i];
    for (int32_t il = 0; il <= n_layer; il++) {
        if (!p->needs_trunk[il]) continue;
        if (!p->has_resid[il]) p->keep[qkv_place(QKV_SITE_RESID_PRE, il)] = QKV_KEEP_WHOLE;
        if (il == n_layer || p->has_heads[il]) continue;
        p->keep[qkv_place(QKV_SITE_Q, il)] = QKV_KEEP_WHOLE;
        p->keep[qkv_place(QKV_SITE_K, il)] = QKV_KEEP_WHOLE;
        p->keep[qkv_place(QKV_SITE_V, il)] = QKV_KEEP_WHOLE;
    }
}

/* Where the baseline can start: at the nearest layer that the trunk has, with its heads if those
 * are there too. */
static qkv_pass baseline_pass(const qkv_planner *p) {
    static const size_t baseline = 0;
    qkv_pass pass = {.variants = &baseline, .n_variants = 1, .start = QKV_START_TOKENS};
    for (int32_t il = first_needed(p); il >= 0; il--) {
        if (!p->has_resid[il] || qkv_layer_fork(&p->plan->model->hp, il) != il) continue;
        pass.from = il;
        pass.start = p->has_heads[il] ? QKV_START_HEADS : QKV_START_RESID;
        break;
    }
    return pass;
}

static int store_trunk(qkv_planner *p, const qkv_kept *kept, qkv_error *err) {
    if (!p->needs_trunk[kept->layer]) return QKV_OK;
    qkv_trunk_layer *layer = &p->session->trunk.layers[kept->layer];
    float **slot = kept->site == QKV_SITE_RESID_PRE ? &layer->resid
                   : kept->site == QKV_SITE_Q       ? &layer->q
                   : kept->site == QKV_SITE_K       ? &layer->k
                   : kept->site == QKV_SITE_V       ? &layer->v
                                                    : NULL;
    if (!slot || *slot) return QKV_OK;
    *slot = qkv_planner_copy(kept->tensor);
    return *slot ? QKV_OK : qkv_fail_memory(err);
}

/* What variants will freeze. */
static int store_frozen(qkv_planner *p, const qkv_kept *kept, qkv_error *err) {
    const size_t place = qkv_place(kept->site, kept->layer);
    if (!p->frozen[place]) return QKV_OK;
    /* Edits find rows and heads by their numbers: all are there. */
    assert(qkv_site_has_layer(kept->site) || kept->tensor->ne[1] == p->plan->n_tokens);
    assert(qkv_site_get_axes(kept->site) != QKV_AXES_MAP ||
           kept->tensor->ne[2] == p->plan->model->hp.layers[kept->layer].n_head);
    p->patches.frozen[place] = qkv_planner_copy(kept->tensor);
    return p->patches.frozen[place] ? QKV_OK : qkv_fail_memory(err);
}

/* Shows the tensor added last to the observer. Of variants, the result then keeps none. */
static int hand_over(qkv_planner *p, size_t variant, qkv_error *err) {
    if (!p->observer || !p->observer->tensor) return QKV_OK;
    qkv_item *item = &p->result->items[p->result->n_items - 1];
    int status = p->observer->tensor(p->observer->user, variant, item->site, item->layer,
                                     &item->tensor, err);
    if (variant == 0) return status;
    qkv_item_release(item);
    p->result->n_items--;
    return status;
}

/* The copies that heads of a member read, NULL where they read the layer's input. */
static int list_copies(const qkv_kept *kept, size_t member, qkv_computed *computed,
                       const float ***list, qkv_error *err) {
    computed->n_heads = kept->copies->n_heads;
    *list = (const float **)qkv_calloc((size_t)computed->n_heads, sizeof **list);
    if (!*list) return qkv_fail_memory(err);
    for (int32_t h = 0; h < computed->n_heads; h++)
        (*list)[h] = qkv_head_copy(kept->copies, (int64_t)member, h);
    computed->copies = *list;
    return QKV_OK;
}

static int add_computed(qkv_planner *p, size_t variant, const qkv_graph *g, const qkv_kept *kept,
                        size_t member, qkv_error *err) {
    const struct ggml_tensor *t = kept->tensor;
    const float **copies = NULL;
    int64_t size = ggml_nelements(t) / g->n_batch;
    int is_map = qkv_site_get_axes(kept->site) == QKV_AXES_MAP;
    qkv_computed computed = {.site = kept->site,
                             .layer = kept->layer,
                             .data = (const float *)t->data + (int64_t)member * size,
                             .first_head = is_map ? g->first_head : 0,
                             .n_heads = qkv_kept_heads(kept->site, t),
                             .n_rows = p->plan->n_tokens};
    if (!qkv_site_has_layer(kept->site)) {
        computed.n_rows = t->ne[1];
        if (t->ne[1] < g->n_tokens || g->n_before) computed.rows = g->logit_rows - g->n_before;
    }
    if (qkv_site_is_input(kept->site))
        computed.n_heads = qkv_site_n_heads(kept->site, &g->model->hp, kept->layer);
    int status = kept->copies ? list_copies(kept, member, &computed, &copies, err) : QKV_OK;
    if (status == QKV_OK) status = qkv_result_add(p->result, p->plan, variant, &computed, err);
    free((void *)copies);
    return status == QKV_OK ? hand_over(p, variant, err) : status;
}

/* Adds the reductions that a pass computed of one layer for one of its variants. */
static int add_reduced(qkv_planner *p, size_t variant, const qkv_graph *g, const qkv_accumulator *a,
                       size_t member, qkv_error *err) {
    const int32_t n_head = g->model->hp.layers[a->layer].n_head;
    int64_t size = qkv_reduction_size(a->kind, a->side, g->n_tokens) * n_head;
    qkv_computed computed = {.site = QKV_SITE_PATTERN,
                             .layer = a->layer,
                             .sums = a->data + (int64_t)member * size,
                             .first_head = g->first_head,
                             .n_heads = g->n_heads ? g->n_heads : n_head};
    return qkv_result_add_reduced(p->result, p->plan, variant, &computed, a->kind, err);
}

static int run_trunk(qkv_planner *p, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    mark_trunk(p);
    qkv_pass pass = baseline_pass(p);
    qkv_member member;
    qkv_graph g;
    int status = qkv_pass_run(p, &pass, &g, &member, err);
    for (size_t i = 0; status == QKV_OK && i < g.n_kept; i++) {
        const qkv_kept *kept = &g.kept[i];
        status = store_trunk(p, kept, err);
        if (status == QKV_OK) status = store_frozen(p, kept, err);
        if (status == QKV_OK && plan->wanted[qkv_place(kept->site, kept->layer)].wanted)
            status = add_computed(p, 0, &g, kept, 0, err);
    }
    for (size_t i = 0; status == QKV_OK && !p->explanation && i < g.n_accumulators; i++)
        status = add_reduced(p, 0, &g, &g.accumulators[i], 0, err);
    qkv_graph_release(&g);
    for (int32_t il = 0; il <= plan->model->hp.n_layer; il++) {
        if (!p->needs_trunk[il]) continue;
        p->has_resid[il] = 1;
        p->has_heads[il] = il < plan->model->hp.n_layer;
        if (!p->explanation) p->session->trunk.layers[il].last_use = p->session->trunk.clock;
    }
    return status;
}

/* ---- variants ---- */

static int is_unchanged(const qkv_planner *p, size_t variant) {
    const qkv_variant_report *report = &p->result->variants[variant];
    for (size_t i = 0; i < report->n_edits; i++) {
        if (report->changed[i]) return 0;
    }
    return 1;
}

/* Fills in one variant's captures: those that a pass kept for it, the baseline's for the rest. */
static int collect(qkv_planner *p, size_t variant, const qkv_graph *g, size_t member,
                   qkv_error *err) {
    const qkv_plan *plan = p->plan;
    int status = QKV_OK, unchanged = is_unchanged(p, variant);
    int kept = !p->observer || !p->observer->tensor; /* by the result */
    assert(g || unchanged);                          /* what was not run has changed nothing */
    for (size_t i = 0; status == QKV_OK && kept && i < qkv_n_places(plan); i++) {
        if (!qkv_wanted_any(&plan->wanted[i])) continue;
        if (unchanged || !qkv_plan_variant_reaches(plan, variant, place_site(i), place_layer(i)))
            status = qkv_result_share(p->result, variant, place_site(i), place_layer(i), err);
    }
    for (size_t i = 0; status == QKV_OK && !unchanged && i < g->n_kept; i++) {
        const qkv_kept *k = &g->kept[i];
        if (qkv_plan_variant_reaches(plan, variant, k->site, k->layer))
            status = add_computed(p, variant, g, k, member, err);
    }
    for (size_t i = 0; status == QKV_OK && !unchanged && i < g->n_accumulators; i++) {
        const qkv_accumulator *a = &g->accumulators[i];
        if (qkv_plan_variant_reaches(plan, variant, QKV_SITE_PATTERN, a->layer))
            status = add_reduced(p, variant, g, a, member, err);
    }
    return status;
}

static void mark_reached(qkv_planner *p, const size_t *variants, size_t n) {
    for (size_t i = 0; i < qkv_n_places(p->plan); i++) {
        p->keep[i] = 0;
        for (size_t v = 0; v < n && qkv_wanted_any(&p->plan->wanted[i]); v++) {
            if (qkv_plan_variant_reaches(p->plan, variants[v], place_site(i), place_layer(i)))
                p->keep[i] = kept_for(&p->plan->wanted[i]);
        }
    }
}

static int run_batch(qkv_planner *p, const qkv_pass *pass, qkv_error *err) {
    qkv_member *members = qkv_calloc(pass->n_variants + 1, sizeof *members);
    if (!members) return qkv_fail_memory(err);
    mark_reached(p, pass->variants, pass->n_variants);
    qkv_graph g;
    int status = qkv_pass_run(p, pass, &g, members, err);
    for (size_t i = 0; status == QKV_OK && !p->explanation && i < pass->n_variants; i++)
        status = collect(p, pass->variants[i], &g, i, err);
    qkv_graph_release(&g);
    free(members);
    return status;
}

/* Batches of a group whose variants leave the beginning of the prompt as it is: smaller ones leave out
 * more tokens, larger ones have faster products. Measured at 32 tokens: see docs/performance.md. */
enum { CUT_ROWS = 192 };

/* So many variants of `n_tokens` tokens each. */
static size_t cut_batch(int64_t n_tokens) {
    return (size_t)((CUT_ROWS + n_tokens - 1) / n_tokens);
}

static int run_group(qkv_planner *p, qkv_pass pass, size_t *variants, qkv_error *err) {
    size_t left = pass.n_variants;
    int status = QKV_OK;
    mark_reached(p, pass.variants, left);
    size_t capacity = qkv_pass_capacity(p, pass.start);
    const int cut = qkv_untouched_sort(p, pass.from, variants, left);
    while (status == QKV_OK && left) {
        pass.n_variants = left < capacity ? left : capacity;
        pass.before = cut ? qkv_untouched_tokens(p->plan, pass.variants[0]) : 0;
        const size_t most = cut_batch(p->plan->n_tokens - pass.before);
        if (cut && pass.n_variants > most) pass.n_variants = most;
        status = run_batch(p, &pass, err);
        pass.variants += pass.n_variants;
        left -= pass.n_variants;
    }
    return status;
}

static int run_variants(qkv_planner *p, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    size_t *group = qkv_calloc(plan->n_variants, sizeof *group);
    uint8_t *done = qkv_calloc(plan->n_variants, 1);
    int status = group && done ? QKV_OK : qkv_fail_memory(err);
    for (size_t v = 1; status == QKV_OK && v < plan->n_variants; v++) {
        if (done[v]) continue;
        int32_t from = qkv_planner_first_layer(plan, &plan->variants[v]);
        if (from < 0) {
            if (p->explanation)
                qkv_text_printf(p->explanation, "variant %zu: shared with the baseline\n", v);
            else
                status = collect(p, v, NULL, 0, err);
            p->done++;
            continue;
        }
        qkv_pass pass = {
            .variants = group, .from = from, .start = first_start(plan, &plan->variants[v], from)};
        for (size_t w = v; w < plan->n_variants; w++) {
            const qkv_variant *other = &plan->variants[w];
            if (done[w] || qkv_planner_first_layer(plan, other) != from ||
                first_start(plan, other, from) != pass.start)
                continue;
            group[pass.n_variants++] = w;
            done[w] = 1;
        }
        status = run_group(p, pass, group, err);
    }
    free(group);
    free(done);
    return status;
}

/* ---- the whole ---- */

/* Layers from which no pass can start are prepared for where one can. */
static void move_to_forks(const qkv_hparams *hp, uint8_t *layers) {
    for (int32_t il = hp->n_layer - 1; il >= 0; il--) {
        const int32_t fork = qkv_layer_fork(hp, il);
        if (!layers[il] || fork == il) continue;
        layers[il] = 0;
        layers[fork] = 1;
    }
}

static int prepare(qkv_planner *p, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    size_t layers = (size_t)plan->model->hp.n_layer + 1;
    int status = qkv_result_new(&p->result, plan, err);
    if (status != QKV_OK) return status;
    p->patches.n_tensors = plan->n_sources * qkv_n_places(plan);
    p->patches.tensors = qkv_calloc(p->patches.n_tensors, sizeof *p->patches.tensors);
    p->patches.n_frozen = qkv_n_places(plan);
    p->patches.frozen = qkv_calloc(p->patches.n_frozen, sizeof *p->patches.frozen);
    p->frozen = qkv_calloc(qkv_n_places(plan), 1);
    p->keep = qkv_calloc(qkv_n_places(plan), 1);
    p->has_resid = qkv_calloc(layers, 1);
    p->has_heads = qkv_calloc(layers, 1);
    p->needs_trunk = qkv_calloc(layers, 1);
    p->output_rows = qkv_calloc((size_t)plan->n_tokens, 1);
    if (!p->patches.tensors || !p->patches.frozen || !p->frozen || !p->keep || !p->has_resid ||
        !p->has_heads || !p->needs_trunk || !p->output_rows)
        return qkv_fail_memory(err);
    qkv_planner_mark_sources(plan, QKV_NO_SOURCE, p->frozen);
    qkv_trunk *trunk = &p->session->trunk;
    int64_t block_rows = qkv_pass_block_rows(p);
    if (!p->explanation)
        status =
            qkv_trunk_select(trunk, plan->model, plan->tokens, plan->n_tokens, block_rows, err);
    if (status != QKV_OK) return status;
    int warm = qkv_trunk_holds(trunk, plan->tokens, plan->n_tokens, block_rows);
    for (size_t il = 0; il < layers && warm; il++) {
        p->has_resid[il] = trunk->layers[il].resid != NULL;
        p->has_heads[il] = trunk->layers[il].v != NULL;
    }
    for (size_t v = 1; v < plan->n_variants; v++) {
        int32_t from = qkv_planner_first_layer(plan, &plan->variants[v]);
        if (from >= 0) p->needs_trunk[from] = 1;
        for (size_t i = 0; i < plan->variants[v].n_edits; i++)
            p->result->variants[v].edits[i].ran =
                first_shown(plan, &plan->variants[v], &plan->variants[v].edits[i]) >= 0;
    }
    qkv_trunk_mark(plan->model, plan->n_tokens, plan->prepared, p->session->memory_budget,
                   p->needs_trunk);
    move_to_forks(&plan->model->hp, p->needs_trunk);
    return QKV_OK;
}

static void release(qkv_planner *p) {
    qkv_patches_release(&p->patches);
    free(p->frozen);
    free(p->keep);
    free(p->has_resid);
    free(p->has_heads);
    free(p->needs_trunk);
    free(p->output_rows);
}

int qkv_planner_sources(qkv_session *session, const qkv_plan *plan, int is_long,
                        qkv_patches *patches, qkv_error *err) {
    qkv_planner p = {.session = session, .plan = plan, .is_long = is_long};
    qkv_steps_begin(&session->steps, "prompts",
                    (double)(plan->n_sources + qkv_planner_n_set_prompts(&p)) + 1);
    int status = prepare(&p, err);
    if (status == QKV_OK) status = qkv_planner_run_sources(&p, err);
    if (status == QKV_OK) status = qkv_planner_run_source(&p, QKV_NO_SOURCE, err);
    qkv_steps_end(&session->steps, 0); /* what it is for comes now */
    if (status == QKV_OK) {
        *patches = p.patches;
        p.patches = (qkv_patches){0};
    }
    release(&p);
    qkv_result_free(p.result);
    return status;
}

static int run_passes(qkv_planner *p, qkv_error *err) {
    int status = prepare(p, err);
    if (status == QKV_OK) status = qkv_planner_run_sources(p, err);
    if (status == QKV_OK) status = run_trunk(p, err);
    if (status == QKV_OK) status = run_variants(p, err);
    release(p);
    return status;
}

/* Fewer operations take less than a tenth of a second, and counting them is not worth it. */
#define FLOP_WORTH_COUNTING 1e10

/* A variant that starts in the last layer is less work than the baseline: a caller who watches progress sees
 * operations counted, where there are many. What goes wrong here goes wrong again in the run itself. */
static double count_per_flop(const qkv_planner *p, double n_runs) {
    const qkv_plan *plan = p->plan;
    const double most = 2 * (double)plan->model->info.n_params * (double)plan->n_tokens * n_runs;
    if (n_runs < 2 || most < FLOP_WORTH_COUNTING || !p->session->steps.host.step) return 0;
    qkv_text passes = {0};
    qkv_planner counted = {
        .session = p->session, .plan = plan, .observer = p->observer, .explanation = &passes};
    const int status = run_passes(&counted, NULL);
    const double flop = status == QKV_OK ? counted.result->stats.flop : 0;
    qkv_result_free(counted.result);
    qkv_text_release(&passes);
    return flop > 0 ? n_runs / flop : 0;
}

static int run_quietly(qkv_planner *p, qkv_error *err) {
    if (p->plan->model != p->session->model)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the plan was made for another model than the session's");
    int status = qkv_plan_check(p->plan, err);
    if (status == QKV_OK && p->plan->observed && !p->observer && !p->explanation)
        status =
            qkv_fail(err, QKV_ERR_PLAN, "the plan has patterns observed; run it with an observer");
    if (status != QKV_OK) return status;
    if (p->explanation) return run_passes(p, err); /* the session stays as it was */
    const double n_runs =
        (double)(p->plan->n_sources + qkv_planner_n_set_prompts(p) + p->plan->n_variants);
    p->per_flop = count_per_flop(p, n_runs);
    qkv_steps_begin(&p->session->steps, "variants", n_runs);
    status = run_passes(p, err);
    qkv_steps_end(&p->session->steps, status == QKV_OK);
    /* What a failed run left half-kept must not be started from. */
    if (status != QKV_OK)
        qkv_trunk_release(&p->session->trunk);
    else
        qkv_trunk_trim(&p->session->trunk, p->plan->model, p->session->memory_budget);
    return status;
}

static int run(qkv_planner *p, qkv_error *err) {
    qkv_ggml_log_enter();
    const int status = run_quietly(p, err);
    qkv_ggml_log_leave();
    return status;
}

int qkv_session_run(qkv_session *session, qkv_result **out, const qkv_plan *plan, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, session);
    QKV_NEED(err, plan);
    return qkv_session_observe(session, out, plan, NULL, err);
}

int qkv_session_observe(qkv_session *session, qkv_result **out, const qkv_plan *plan,
                        const qkv_observer *observer, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, session);
    QKV_NEED(err, plan);
    qkv_observer own = QKV_OBSERVER_INIT;
    int status = qkv_sized_read(&own, sizeof own, observer, "qkv_observer", err);
    if (status == QKV_OK && observer && plan->observed && !own.rows)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "the observer has no function for rows");
    if (status != QKV_OK) return status;
    qkv_planner p = {.session = session, .plan = plan, .observer = observer ? &own : NULL};
    status = run(&p, err);
    if (status != QKV_OK) {
        qkv_result_free(p.result);
        return status;
    }
    qkv_result_sort(p.result);
    *out = p.result;
    return QKV_OK;
}

int qkv_session_estimate(qkv_session *session, qkv_run_stats *stats, const qkv_plan *plan,
                         qkv_error *err) {
    const qkv_run_stats none = QKV_RUN_STATS_INIT;
    QKV_NEED(err, stats);
    int status = qkv_sized_write(stats, &none, sizeof none, "qkv_run_stats", err);
    if (status != QKV_OK) return status;
    QKV_NEED(err, session);
    QKV_NEED(err, plan);
    qkv_text passes = {0};
    qkv_planner p = {.session = session, .plan = plan, .explanation = &passes};
    status = run(&p, err);
    if (status == QKV_OK) qkv_result_get_stats(p.result, stats);
    qkv_result_free(p.result);
    qkv_text_release(&passes);
    return status;
}

int qkv_session_explain(qkv_session *session, char **text, const qkv_plan *plan, qkv_error *err) {
    QKV_NEED(err, text);
    *text = NULL;
    QKV_NEED(err, session);
    QKV_NEED(err, plan);
    qkv_text explanation = {0};
    qkv_planner p = {.session = session, .plan = plan, .explanation = &explanation};
    int status = run(&p, err);
    if (status == QKV_OK) {
        const qkv_run_stats *stats = &p.result->stats;
        qkv_text_printf(
            &explanation,
            "total: %llu pass%s, %llu product%s with weights, %llu in attention, %.3g GFLOP\n",
            (unsigned long long)stats->n_passes, stats->n_passes == 1 ? "" : "es",
            (unsigned long long)stats->n_matmul, qkv_plural(stats->n_matmul),
            (unsigned long long)stats->n_attention, stats->flop / 1e9);
    }
    qkv_result_free(p.result);
    if (status == QKV_OK && explanation.failed) status = qkv_fail_memory(err);
    if (status != QKV_OK) qkv_text_release(&explanation);
    *text = explanation.data;
    return status;
}
