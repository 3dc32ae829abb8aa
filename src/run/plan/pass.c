/*
 * One pass through a part of the network: how large its blocks and batches may be, which heads it
 * has to compute, and what it costs.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "run/graph/head_input.h"
#include "run/graph/reduce.h"
#include "run/plan/planner.h"
#include "run/run.h"

/* Longer prompts are taken in blocks of this many queries, so that memory grows with T and not T²;
 * and a block leaves out the keys that all its queries are too early to see, which made a pass of
 * 512 tokens a tenth faster. Very long prompts have smaller blocks, as far as two maps of a block
 * would take more than BLOCK_BYTES. That does not depend on the memory budget, nor on how many
 * variants are in a batch, because a softmax over another number of keys is rounded otherwise. */
#define LONG_PROMPT 256
#define BLOCK_ROWS 128
#define BLOCK_BYTES ((int64_t)256 << 20)

/* ---- memory ---- */

/* Asked of the whole plan, so that all its passes cut attention alike: blocks round differently. And
 * of the pass, because another prompt's maps are kept for patching. A plan that prepares for whole
 * maps is cut as they will be: its trunk has their bits. */
static int wants_whole_map(const qkv_planner *p) {
    static const qkv_site maps[] = {QKV_SITE_SCORES, QKV_SITE_PATTERN};
    if (p->plan->prepares_maps) return 1;
    for (int32_t il = 0; il < p->plan->model->hp.n_layer; il++) {
        for (int i = 0; i < 2; i++) {
            if (qkv_plan_wanted(p->plan, il, maps[i])->wanted ||
                (p->keep[qkv_place(maps[i], il)] & QKV_KEEP_WHOLE))
                return 1;
        }
    }
    return 0;
}

/* A mean over all queries of a map needs the whole map, and a function is given all it selects. */
static int needs_whole_map(const qkv_planner *p) {
    for (size_t v = 0; v < p->plan->n_variants; v++) {
        const qkv_variant *variant = &p->plan->variants[v];
        for (size_t i = 0; i < variant->n_edits; i++) {
            const qkv_edit *edit = &variant->edits[i];
            if (qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP &&
                (edit->flags & QKV_EDIT_WHOLE_MAP))
                return 1;
        }
    }
    return 0;
}

int64_t qkv_pass_block_rows(const qkv_planner *p) {
    int64_t T = p->plan->n_tokens, H = p->plan->model->hp.largest.n_head;
    if (T <= LONG_PROMPT || wants_whole_map(p) || needs_whole_map(p)) return T;
    int64_t row = 2 * H * T * (int64_t)sizeof(float);
    assert(row > 0);
    int64_t rows = BLOCK_BYTES / row / 16 * 16;
    return rows < 16 ? 16 : rows > BLOCK_ROWS ? BLOCK_ROWS : rows;
}

/* Does a pass of variants take the baseline with it, for an observer that compares rows? */
static int carries_baseline(const qkv_planner *p) {
    if (!p->observer || !p->observer->compare) return 0;
    for (int32_t il = 0; il < p->plan->model->hp.n_layer; il++) {
        if (p->keep[qkv_place(QKV_SITE_PATTERN, il)] & QKV_KEEP_OBSERVED) return 1;
    }
    return 0;
}

size_t qkv_pass_capacity(const qkv_planner *p, qkv_start start) {
    const qkv_hparams *hp = &p->plan->model->hp;
    size_t T = (size_t)p->plan->n_tokens, map_rows = (size_t)qkv_pass_block_rows(p);
    const qkv_layer_shape *shape = &hp->largest;
    size_t heads = (size_t)(shape->n_head + shape->n_kv_head) * (size_t)shape->head_dim +
                   (size_t)shape->n_kv_head * (size_t)shape->value_dim;
    size_t chosen = (size_t)hp->n_expert_used * (size_t)(hp->n_ff_expert + hp->n_embd);
    size_t row = 4 * (size_t)hp->n_embd + 3 * heads + 3 * ((size_t)shape->n_ff + chosen);
    if (p->keep[qkv_place(QKV_SITE_LOGITS, hp->n_layer)]) row += (size_t)hp->n_vocab;
    if (p->keep[qkv_place(QKV_SITE_FINAL_NORM, hp->n_layer)]) row += (size_t)hp->n_embd;
    row += 3 * (size_t)qkv_plan_most_copies(p->plan) * (size_t)hp->n_embd;
    size_t maps = 3 * (size_t)shape->n_head * map_rows * T;
    if (start == QKV_START_HEADS) row += heads;
    size_t fit = p->session->memory_budget / ((T * row + maps) * sizeof(float));
    if (carries_baseline(p) && fit) fit--;
    return fit ? fit : 1;
}

/* ---- heads ---- */

static int keeps_only_maps_of(const qkv_planner *p, int32_t layer) {
    for (size_t i = 0; i < qkv_n_places(p->plan); i++) {
        if (p->keep[i] && i != qkv_place(QKV_SITE_SCORES, layer) &&
            i != qkv_place(QKV_SITE_PATTERN, layer))
            return 0;
    }
    return 1;
}

/* Marks the query heads whose map an edit of the layer can change. */
static void mark_edited(const qkv_edit *edit, const qkv_hparams *hp, int32_t layer,
                        uint8_t *heads) {
    const qkv_selector *where = &edit->where;
    const int spreads = qkv_site_get_axes(where->site) == QKV_AXES_MAP &&
                        (edit->flags & QKV_EDIT_ALL_HEADS); /* so all must be there */
    for (int32_t h = 0; h < hp->layers[layer].n_head; h++) {
        if (spreads || qkv_selector_has_query_head(where, hp, layer, h)) heads[h] = 1;
    }
}

static void mark_wanted(const qkv_planner *p, int32_t layer, uint8_t *heads) {
    static const qkv_site maps[] = {QKV_SITE_SCORES, QKV_SITE_PATTERN};
    const int32_t n_head = p->plan->model->hp.layers[layer].n_head;
    for (int i = 0; i < 2; i++) {
        const qkv_wanted *wanted = qkv_plan_wanted(p->plan, layer, maps[i]);
        for (int32_t h = 0; wanted->wanted && h < wanted->n_heads; h++)
            heads[h] |= wanted->heads[h];
        for (size_t r = 0; r < wanted->n_reductions; r++) {
            for (int32_t h = 0; h < n_head; h++) heads[h] |= wanted->reductions[r].heads[h];
        }
        for (int32_t h = 0; wanted->observed && h < n_head; h++) heads[h] |= wanted->observed[h];
    }
}

/* Does the baseline leave maps of its first layer for edits that freeze? */
static int leaves_maps(const qkv_planner *p, const qkv_pass *pass) {
    return pass->variants[0] == 0 && p->frozen &&
           (p->frozen[qkv_place(QKV_SITE_SCORES, pass->from)] ||
            p->frozen[qkv_place(QKV_SITE_PATTERN, pass->from)]);
}

/* A pass that keeps nothing but maps of its first layer computes the heads concerned only: those
 * edited, or, for the baseline, those wanted. Left at 0 (all) where that is not the case. */
static void choose_heads(const qkv_planner *p, const qkv_pass *pass, qkv_graph *g) {
    const qkv_hparams *hp = &p->plan->model->hp;
    uint8_t heads[4096] = {0}; /* no model has more heads: see hparams.c */
    if (pass->start != QKV_START_HEADS || !keeps_only_maps_of(p, pass->from)) return;
    if (leaves_maps(p, pass)) return; /* of which edits may take any head */
    for (size_t i = 0; i < pass->n_variants; i++) {
        const qkv_variant *variant = &p->plan->variants[pass->variants[i]];
        for (size_t e = 0; e < variant->n_edits; e++) {
            if (qkv_selector_has_layer(&variant->edits[e].where, pass->from))
                mark_edited(&variant->edits[e], hp, pass->from, heads);
        }
        if (variant->n_edits == 0) mark_wanted(p, pass->from, heads);
    }
    const qkv_layer_shape *shape = &hp->layers[pass->from];
    int32_t first = 0, end = shape->n_head, group = qkv_layer_group(shape);
    while (first < end && !heads[first]) first++;
    while (end > first && !heads[end - 1]) end--;
    if (first / group != (end - 1) / group) { /* several groups: whole ones */
        first = first / group * group;
        end = (end + group - 1) / group * group;
    }
    if (end - first < shape->n_head) {
        g->first_head = first;
        g->n_heads = end - first;
    }
}

/* ---- explanation ---- */

static void explain_keeps(qkv_planner *p) {
    int n = 0;
    for (size_t i = 0; i < qkv_n_places(p->plan); i++) {
        if (!p->keep[i]) continue;
        int32_t layer = (int32_t)(i / QKV_SITE_COUNT);
        qkv_text_printf(p->explanation, "%s%s", n++ ? ", " : " ",
                        qkv_site_name((qkv_site)(i % QKV_SITE_COUNT)));
        if (layer < p->plan->model->hp.n_layer) qkv_text_printf(p->explanation, "@%d", layer);
    }
}

static void explain(qkv_planner *p, const qkv_pass *pass, const qkv_graph *g) {
    qkv_text *out = p->explanation;
    qkv_cost cost = qkv_graph_cost(g);
    if (pass->tokens)
        qkv_text_puts(out, "other prompt: ");
    else if (pass->variants[0] == 0)
        qkv_text_puts(out, "baseline: ");
    else {
        qkv_text_printf(out, "variant%s ", pass->n_variants > 1 ? "s" : "");
        for (size_t i = 0; i < pass->n_variants; i++)
            qkv_text_printf(out, "%s%zu", i ? "," : "", pass->variants[i]);
        qkv_text_puts(out, ": ");
    }
    static const char *const starts[] = {[QKV_START_TOKENS] = "from the tokens",
                                         [QKV_START_RESID] = "from the input of layer",
                                         [QKV_START_HEADS] = "from q, k and v of layer"};
    qkv_text_puts(out, starts[pass->start]);
    if (pass->start != QKV_START_TOKENS) qkv_text_printf(out, " %d", pass->from);
    if (g->n_heads)
        qkv_text_printf(out, ", heads %d to %d", g->first_head, g->first_head + g->n_heads - 1);
    const long long copies = (long long)qkv_graph_n_copies(g);
    if (copies)
        qkv_text_printf(out, ", %lld edited cop%s of what heads read", copies,
                        copies == 1 ? "y" : "ies");
    if (g->n_before) qkv_text_printf(out, ", tokens from %lld on", (long long)g->n_before);
    if (g->block_rows < g->n_tokens)
        qkv_text_printf(out, ", blocks of %lld quer%s", (long long)g->block_rows,
                        g->block_rows == 1 ? "y" : "ies");
    qkv_text_puts(out, "; keeps");
    explain_keeps(p);
    qkv_text_printf(
        out, "; %llu product%s with weights, %llu in attention, %.3g GFLOP, %.3g MB of weights\n",
        (unsigned long long)cost.n_matmul, qkv_plural(cost.n_matmul),
        (unsigned long long)cost.n_attention, cost.flop / 1e9, cost.bytes / 1e6);
}

/* ---- reductions ---- */

/* Memory for every reduction that the pass has to compute. */
static int allocate_accumulators(const qkv_planner *p, qkv_graph *g, qkv_error *err) {
    const qkv_plan *plan = p->plan;
    int32_t n_layer = plan->model->hp.n_layer;
    for (int round = 0; round < 2; round++) {
        size_t n = 0;
        for (int32_t il = 0; il < n_layer; il++) {
            if (!(p->keep[qkv_place(QKV_SITE_PATTERN, il)] & QKV_KEEP_REDUCED)) continue;
            const qkv_wanted *wanted = qkv_plan_wanted(plan, il, QKV_SITE_PATTERN);
            for (size_t r = 0; r < wanted->n_reductions; r++, n++) {
                if (round == 0) continue;
                const qkv_wanted_reduction *w = &wanted->reductions[r];
                const int64_t size = qkv_reduction_size(w->kind, w->side, plan->n_tokens);
                const int64_t heads = plan->model->hp.layers[il].n_head * g->n_batch;
                double *data = qkv_calloc((size_t)(size * heads), sizeof *data);
                if (!data) return qkv_fail_memory(err);
                for (int64_t h = 0; h < heads; h++)
                    qkv_reduce_start(w->kind, w->side, plan->n_tokens, data + h * size);
                g->accumulators[g->n_accumulators++] =
                    (qkv_accumulator){.layer = il, .kind = w->kind, .side = w->side, .data = data};
            }
        }
        if (round == 0 && n) g->accumulators = qkv_calloc(n, sizeof *g->accumulators);
        if (round == 0 && n && !g->accumulators) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static void finish_accumulators(const qkv_graph *g) {
    for (size_t i = 0; i < g->n_accumulators; i++) {
        const qkv_accumulator *a = &g->accumulators[i];
        const int64_t heads = g->n_batch * g->model->hp.layers[a->layer].n_head;
        int64_t size = qkv_reduction_size(a->kind, a->side, g->n_tokens);
        for (int64_t h = 0; h < heads; h++)
            qkv_reduce_finish(a->kind, a->side, g->n_tokens, a->data + h * size);
    }
}

/* ---- observation ---- */

/* Which heads of the pass's first layer each variant can change: the others' rows are the
 * baseline's and need not be looked at again. */
static int mark_touched(const qkv_pass *pass, qkv_graph *g, qkv_error *err) {
    const qkv_hparams *hp = &g->model->hp;
    size_t n_head = (size_t)hp->largest.n_head;
    g->watch.touched = qkv_calloc(pass->n_variants * n_head, 1);
    if (!g->watch.touched) return qkv_fail_memory(err);
    for (size_t i = 0; i < pass->n_variants; i++) {
        const qkv_variant *variant = g->members[i].variant;
        uint8_t *heads = g->watch.touched + i * n_head;
        if (pass->start != QKV_START_HEADS || variant->n_edits == 0) memset(heads, 1, n_head);
        for (size_t e = 0; e < variant->n_edits; e++) {
            const qkv_selector *where = &variant->edits[e].where;
            if (qkv_selector_has_layer(where, pass->from) &&
                qkv_site_reaches(hp, where->site, pass->from, QKV_SITE_PATTERN, pass->from))
                mark_edited(&variant->edits[e], hp, pass->from, heads);
        }
    }
    return QKV_OK;
}

static int prepare_watch(const qkv_planner *p, const qkv_pass *pass, qkv_graph *g, qkv_error *err) {
    g->watch = (qkv_watch){.plan = p->plan,
                           .observer = p->observer,
                           .steps = &p->session->steps,
                           .variants = pass->variants,
                           .n_variants = pass->n_variants};
    return p->observer && !pass->tokens ? mark_touched(pass, g, err) : QKV_OK;
}

/* ---- running ---- */

void qkv_stats_add(qkv_run_stats *stats, const qkv_cost *cost) {
    stats->n_passes++;
    stats->n_matmul += cost->n_matmul;
    stats->n_attention += cost->n_attention;
    stats->flop += cost->flop;
    stats->weight_bytes += cost->bytes;
}

static void account(qkv_planner *p, const qkv_graph *g) {
    const qkv_cost cost = qkv_graph_cost(g);
    qkv_stats_add(&p->result->stats, &cost);
    if (!p->explanation) qkv_stats_add(&p->session->stats, &cost);
}

/* Does the baseline leave values for edits after all layers that freeze? */
static int leaves_output(const qkv_planner *p, size_t variant) {
    const int32_t n_layer = p->plan->model->hp.n_layer;
    return variant == 0 && p->frozen &&
           (p->frozen[qkv_place(QKV_SITE_FINAL_NORM, n_layer)] ||
            p->frozen[qkv_place(QKV_SITE_LOGITS, n_layer)]);
}

/* An edit after all layers may read or name any token; and so may one that takes what the baseline
 * has there. */
static int needs_whole_output(const qkv_planner *p, const qkv_pass *pass) {
    if (leaves_output(p, pass->variants[0])) return 1;
    for (size_t i = 0; i < pass->n_variants; i++) {
        const qkv_variant *variant = &p->plan->variants[pass->variants[i]];
        for (size_t e = 0; e < variant->n_edits; e++) {
            if (!qkv_site_has_layer(variant->edits[e].where.site)) return 1;
        }
    }
    return 0;
}

/* The tokens whose rows after all layers are captured; NULL: all of them. */
static const uint8_t *find_output_rows(qkv_planner *p) {
    size_t n = 0, n_tokens = (size_t)p->plan->n_tokens;
    for (size_t t = 0; t < n_tokens; t++) {
        p->output_rows[t] = qkv_plan_wants_token(p->plan, QKV_SITE_LOGITS, t) ||
                            qkv_plan_wants_token(p->plan, QKV_SITE_FINAL_NORM, t);
        n += p->output_rows[t];
    }
    return n > 0 && n < n_tokens ? p->output_rows : NULL;
}

/* Does a variant edit or show anything after the last attention, other than some tokens' logits
 * or normed states? */
static int needs_all_tokens(const qkv_planner *p, size_t variant) {
    const qkv_plan *plan = p->plan;
    const int32_t n_layer = plan->model->hp.n_layer, last = n_layer - 1;
    if (variant == 0 && p->keep[qkv_place(QKV_SITE_RESID_PRE, n_layer)]) return 1;
    if (leaves_output(p, variant)) return 1;
    for (size_t e = 0; e < plan->variants[variant].n_edits; e++) {
        const qkv_selector *where = &plan->variants[variant].edits[e].where;
        if (!qkv_site_has_layer(where->site) ||
            (qkv_site_follows_attention(where->site) && qkv_selector_has_layer(where, last)))
            return 1;
    }
    for (int site = 0; site < QKV_SITE_COUNT; site++) {
        if (qkv_site_follows_attention((qkv_site)site) &&
            qkv_wanted_any(qkv_plan_wanted(plan, last, (qkv_site)site)) &&
            (variant == 0 || qkv_plan_variant_reaches(plan, variant, (qkv_site)site, last)))
            return 1;
    }
    return 0;
}

/* Fails where numbers became too large inside, and what came out would not tell. */
static int check_overflow(const qkv_planner *p, const qkv_pass *pass, const qkv_graph *g,
                          qkv_error *err) {
    int64_t member, token;
    const qkv_check *check = qkv_check_find(g, &member, &token);
    if (!check) return QKV_OK;
    qkv_text text = {0};
    size_t variant = (size_t)member < pass->n_variants ? pass->variants[member] : 0;
    if (pass->tokens)
        qkv_text_puts(&text, "another prompt");
    else if (variant)
        qkv_text_printf(&text, "variant %zu (%s)", variant, p->plan->variants[variant].text);
    else
        qkv_text_puts(&text, "the baseline");
    int status = text.failed ? qkv_fail_memory(err)
                             : qkv_check_fail(check, text.data, token + g->n_before, err);
    qkv_text_release(&text);
    return status;
}

static void skip(const float **rows, int64_t n, int64_t width) {
    if (*rows) *rows += n * width;
}

/* The trunk has all tokens; a pass may leave out the first n. */
static void skip_tokens(qkv_inputs *inputs, const qkv_planner *p, int32_t from, int64_t n) {
    const qkv_hparams *hp = &p->plan->model->hp;
    const qkv_layer_shape *shape = qkv_layer_shape_of(hp, from);
    inputs->tokens += n;
    skip(&inputs->resid, n, hp->n_embd);
    skip(&inputs->q, n, (int64_t)shape->n_head * shape->head_dim);
    skip(&inputs->k, n, (int64_t)shape->n_kv_head * shape->head_dim);
    skip(&inputs->v, n, (int64_t)shape->n_kv_head * shape->value_dim);
    inputs->before = p->session->trunk.layers;
}

int qkv_pass_run(qkv_planner *p, const qkv_pass *pass, qkv_graph *g, qkv_member *members,
                 qkv_error *err) {
    const qkv_plan *plan = p->plan;
    for (size_t i = 0; i < pass->n_variants; i++) {
        members[i].variant = &plan->variants[pass->variants[i]];
        members[i].changed = p->result->variants[pass->variants[i]].changed;
        members[i].needs_all_tokens = needs_all_tokens(p, pass->variants[i]);
    }
    size_t n_batch = pass->n_variants;
    if (pass->variants[0] != 0 && carries_baseline(p))
        members[n_batch++] = (qkv_member){.variant = &plan->variants[0]};
    *g = (qkv_graph){.model = plan->model,
                     .n_tokens = plan->n_tokens - pass->before,
                     .n_before = pass->before,
                     .n_batch = (int64_t)n_batch,
                     .members = members,
                     .patches = &p->patches,
                     .start = pass->start,
                     .from = pass->from,
                     .keep = p->keep,
                     .block_rows = qkv_pass_block_rows(p),
                     .in_order = qkv_plan_has(plan, QKV_EDIT_IN_ORDER),
                     .is_long = p->is_long,
                     .n_threads = p->session->n_threads,
                     .steps = p->explanation ? NULL : &p->session->steps};
    const double done = p->per_flop > 0 ? p->per_flop * p->result->stats.flop : p->done;
    if (g->steps && qkv_steps_reach(g->steps, done, (double)pass->n_variants))
        return qkv_fail_cancelled(err);
    if (!pass->tokens) g->seen_rows = find_output_rows(p);
    if (!needs_whole_output(p, pass)) g->logit_rows = g->seen_rows;
    if (g->n_before) g->seen_rows = g->logit_rows += g->n_before;
    choose_heads(p, pass, g);
    int status = allocate_accumulators(p, g, err);
    if (status == QKV_OK) status = prepare_watch(p, pass, g, err);
    if (status == QKV_OK) status = qkv_graph_build(g, err);
    if (status != QKV_OK) return status;
    account(p, g);
    if (g->steps && p->per_flop > 0)
        qkv_steps_expect(g->steps, p->per_flop * p->result->stats.flop - done);
    if (p->explanation) {
        explain(p, pass, g);
        g->n_kept = 0;
        return p->explanation->failed ? qkv_fail_memory(err) : QKV_OK;
    }
    qkv_inputs inputs = {.tokens = pass->tokens ? pass->tokens : plan->tokens};
    if (pass->start != QKV_START_TOKENS) {
        const qkv_trunk_layer *layer = &p->session->trunk.layers[pass->from];
        inputs.resid = layer->resid;
        inputs.q = layer->q;
        inputs.k = layer->k;
        inputs.v = layer->v;
        if (pass->before) skip_tokens(&inputs, p, pass->from, pass->before);
    }
    status = qkv_session_compute(p->session, g, &inputs, err);
    p->done += (double)pass->n_variants;
    if (status == QKV_OK) finish_accumulators(g);
    if (status == QKV_OK) status = check_overflow(p, pass, g, err);
    return status == QKV_OK ? qkv_watch_check(&g->watch, err) : status;
}
