/*
 * The passes of a generator: new tokens of all variants in one batch.
 *
 * Members of the batch are first the variants that have a text of their own, the baseline before all
 * others; then those that share the baseline's text, by the layer at which their edits begin. A graph is
 * used again for the next token as long as nothing but the position changes: attention looks at a whole
 * number of pieces of keys, of which the mask hides those that are not there yet.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/product.h"
#include "run/generate/generator.h"
#include "run/graph/head_input.h"

/* Queries that attention takes at a time. */
#define BLOCK_ROWS 128

static const qkv_hparams *hp_of(const qkv_generator *gen) {
    return &gen->plan->model->hp;
}

/* ---- caches ---- */

void qkv_generator_release_cache(const qkv_generator *gen, qkv_branch *branch) {
    for (int32_t il = 0; branch->cache.layers && il < hp_of(gen)->n_layer; il++)
        qkv_kv_layer_release(&branch->cache.layers[il]);
}

int qkv_generator_allocate(qkv_generator *gen, size_t variant, qkv_error *err) {
    qkv_branch *branch = &gen->branches[variant];
    int status = QKV_OK;
    for (int32_t il = branch->shares ? branch->join : 0; il < hp_of(gen)->n_layer; il++) {
        qkv_kv_layer *layer = &branch->cache.layers[il];
        if (status == QKV_OK && !layer->k) status = qkv_kv_layer_allocate(layer, err);
    }
    return status;
}

/* The text of a variant goes its own way: what it had in common with the baseline is copied. */
static int part_from_baseline(qkv_generator *gen, size_t variant, qkv_error *err) {
    qkv_branch *branch = &gen->branches[variant];
    branch->shares = 0;
    int status = qkv_generator_allocate(gen, variant, err);
    if (status != QKV_OK) {
        branch->shares = 1;
        return status;
    }
    for (int32_t il = 0; il < branch->join && il < hp_of(gen)->n_layer; il++)
        qkv_kv_layer_copy(&branch->cache.layers[il], &gen->branches[0].cache.layers[il]);
    return QKV_OK;
}

static int part_texts(qkv_generator *gen, int64_t n_tokens, qkv_error *err) {
    const qkv_branch *baseline = &gen->branches[0];
    int status = QKV_OK;
    for (size_t v = 1; status == QKV_OK && v < gen->plan->n_variants; v++) {
        const qkv_branch *branch = &gen->branches[v];
        if (branch->ended || !branch->shares) continue;
        if (baseline->ended || memcmp(branch->tokens, baseline->tokens,
                                      (size_t)n_tokens * sizeof *branch->tokens) != 0)
            status = part_from_baseline(gen, v, err);
    }
    return status;
}

static void forget_all(qkv_generator *gen) {
    for (size_t v = 0; v < gen->plan->n_variants; v++) {
        for (int32_t il = 0; il < hp_of(gen)->n_layer; il++)
            gen->branches[v].cache.layers[il].first = 0;
        for (size_t i = 0; i < gen->plan->variants[v].n_edits; i++)
            atomic_store(&gen->branches[v].changed[i], 0);
    }
    gen->n_computed = 0;
}

/* ---- the batch ---- */

static int by_join(const qkv_generator *gen, size_t a, size_t b) {
    return gen->branches[a].join < gen->branches[b].join;
}

/* Lists the members; returns how many have texts of their own. */
static int64_t list_members(qkv_generator *gen, int64_t *n_members) {
    size_t n = 0, texts = 0;
    for (int sharing = 0; sharing < 2; sharing++) {
        for (size_t v = 0; v < gen->plan->n_variants; v++) {
            const qkv_branch *branch = &gen->branches[v];
            /* A variant with edits in the first layer has nothing to share. */
            const int shares = branch->shares && branch->join > 0;
            if (branch->ended || shares != sharing) continue;
            size_t at = n++;
            for (; sharing && at > texts && by_join(gen, v, gen->variants[at - 1]); at--)
                gen->variants[at] = gen->variants[at - 1];
            gen->variants[at] = v;
        }
        if (!sharing) texts = n;
    }
    for (size_t i = 0; i < n; i++) {
        const qkv_branch *branch = &gen->branches[gen->variants[i]];
        gen->joins[i] = i < texts ? 0 : branch->join;
        gen->members[i] = (qkv_member){.variant = &gen->plan->variants[gen->variants[i]],
                                       .changed = branch->changed};
    }
    *n_members = (int64_t)n;
    return (int64_t)texts;
}

/* Bytes that a pass takes: so many tokens of so many members, in blocks of queries. */
static double pass_bytes(const qkv_generator *gen, int64_t tokens, int64_t members, int64_t rows,
                         int64_t keys) {
    const qkv_hparams *hp = hp_of(gen);
    const qkv_layer_shape *shape = &hp->largest;
    const double heads = (double)(shape->n_head + shape->n_kv_head) * shape->head_dim +
                         (double)shape->n_kv_head * shape->value_dim;
    const double chosen = (double)hp->n_expert_used * (hp->n_ff_expert + hp->n_embd);
    const double copies = 3.0 * (double)qkv_plan_most_copies(gen->plan) * hp->n_embd;
    const double row = 4.0 * hp->n_embd + 3 * heads + 3 * (shape->n_ff + chosen) + copies;
    return ((double)(tokens * members) * row +
            3.0 * shape->n_head * (double)(rows * keys * members)) *
           (double)sizeof(float);
}

/* How many of the n tokens to come go through one pass, and in which blocks. Results do not depend on
 * it: attention looks at whole pieces of keys. */
static int64_t choose_chunk(const qkv_generator *gen, const qkv_session *session, int64_t n,
                            int64_t members, int64_t *block_rows) {
    const double budget = (double)session->memory_budget;
    int64_t chunk = n < QKV_GENERATOR_CHUNK ? n : QKV_GENERATOR_CHUNK;
    for (;; chunk = (chunk + 1) / 2) {
        const int64_t keys = gen->n_computed + chunk;
        for (int64_t rows = chunk < BLOCK_ROWS ? chunk : BLOCK_ROWS;; rows = (rows + 1) / 2) {
            *block_rows = rows;
            if (pass_bytes(gen, chunk, members, rows, keys) <= budget || chunk == 1) return chunk;
            if (rows <= 16) break;
        }
    }
}

static int mask_of_layer(const qkv_generator *gen, const qkv_kv_layer *layer, int32_t il) {
    if (!qkv_layer_window(gen->plan->model, il)) return QKV_MASK_FULL;
    return layer->bounded ? QKV_MASK_WINDOW : QKV_MASK_WINDOW_WIDE;
}

/* Makes room in all caches, and notes where attention finds its keys. */
static void place_step(qkv_generator *gen, int64_t chunk, int64_t n_members, int64_t n_texts) {
    const qkv_hparams *hp = hp_of(gen);
    qkv_step *step = &gen->step;
    *step = (qkv_step){.position = gen->n_computed,
                       .n_texts = n_texts,
                       .joins = gen->joins,
                       .caches = gen->caches,
                       .n_prompt = gen->plan->text.n_prompt,
                       .is_long = gen->is_long,
                       .one_new = chunk == 1 && gen->n_computed >= gen->plan->text.n_prompt};
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const int64_t window = qkv_layer_window(gen->plan->model, il);
        const int64_t seen = window && step->position >= window ? step->position - window + 1 : 0;
        for (int64_t b = 0; b < n_members; b++) {
            qkv_kv_layer *layer = &gen->branches[gen->variants[b]].cache.layers[il];
            gen->caches[il * n_members + b] = gen->joins[b] <= il ? layer : NULL;
            if (gen->joins[b] > il) continue;
            if (layer->bounded) qkv_kv_layer_advance(layer, seen, step->position, chunk);
            step->first[mask_of_layer(gen, layer, il)] = layer->first;
        }
    }
    for (int i = 0; i < QKV_MASK_COUNT; i++) {
        const int64_t keys = step->position + chunk - step->first[i];
        step->keys[i] = (keys + QKV_PIECE - 1) / QKV_PIECE * QKV_PIECE;
    }
}

/* ---- one pass ---- */

static int graph_fits(const qkv_generator *gen, const qkv_session *session, int64_t chunk,
                      int64_t n_members, int with_logits) {
    return gen->has_graph && gen->graph.allocation &&
           gen->graph.allocation == session->allocation && gen->graph_tokens == chunk &&
           gen->graph_batch == n_members && gen->graph_texts == gen->step.n_texts &&
           gen->graph_logits == with_logits && gen->graph_one_new == gen->step.one_new &&
           memcmp(gen->graph_keys, gen->step.keys, sizeof gen->graph_keys) == 0 &&
           memcmp(gen->graph_variants, gen->variants, (size_t)n_members * sizeof *gen->variants) ==
               0;
}

static int build(qkv_generator *gen, qkv_session *session, int64_t chunk, int64_t block_rows,
                 int64_t n_members, int with_logits, qkv_error *err) {
    if (graph_fits(gen, session, chunk, n_members, with_logits)) return QKV_OK;
    if (gen->has_graph) qkv_graph_release(&gen->graph);
    gen->keep[qkv_place(QKV_SITE_LOGITS, hp_of(gen)->n_layer)] = with_logits ? QKV_KEEP_WHOLE : 0;
    memset(gen->logit_rows, 0, QKV_GENERATOR_CHUNK);
    gen->logit_rows[chunk - 1] = 1;
    gen->graph = (qkv_graph){.model = gen->plan->model,
                             .n_tokens = chunk,
                             .n_batch = n_members,
                             .members = gen->members,
                             .step = &gen->step,
                             .patches = &gen->patches,
                             .keep = gen->keep,
                             .logit_rows = gen->logit_rows,
                             .block_rows = block_rows,
                             .in_order = qkv_plan_has(gen->plan, QKV_EDIT_IN_ORDER),
                             .n_threads = session->n_threads,
                             .steps = &session->steps};
    gen->has_graph = 1;
    gen->graph_tokens = chunk;
    gen->graph_batch = n_members;
    gen->graph_texts = gen->step.n_texts;
    gen->graph_logits = with_logits;
    gen->graph_one_new = gen->step.one_new;
    memcpy(gen->graph_keys, gen->step.keys, sizeof gen->graph_keys);
    memcpy(gen->graph_variants, gen->variants, (size_t)n_members * sizeof *gen->variants);
    int status = qkv_graph_build(&gen->graph, err);
    if (status == QKV_OK) gen->cost = qkv_graph_cost(&gen->graph);
    return status;
}

static void name_variant(const qkv_generator *gen, size_t variant, qkv_text *out) {
    if (variant == 0)
        qkv_text_puts(out, "the baseline");
    else
        qkv_text_printf(out, "variant %zu (%s)", variant, gen->plan->variants[variant].text);
}

static int check_overflow(const qkv_generator *gen, qkv_error *err) {
    int64_t member, token;
    const qkv_check *check = qkv_check_find(&gen->graph, &member, &token);
    if (!check) return QKV_OK;
    qkv_text who = {0};
    name_variant(gen, gen->variants[member], &who);
    int status = who.failed ? qkv_fail_memory(err)
                            : qkv_check_fail(check, who.data, gen->step.position + token, err);
    qkv_text_release(&who);
    return status;
}

static int fail_not_finite(const qkv_generator *gen, size_t variant, int32_t token, float value,
                           qkv_error *err) {
    const int64_t last = gen->step.position + gen->graph_tokens - 1;
    const int64_t n_prompt = gen->plan->text.n_prompt;
    qkv_text who = {0};
    name_variant(gen, variant, &who);
    if (last < n_prompt)
        qkv_text_puts(&who, ", after the prompt");
    else
        qkv_text_printf(&who, ", after new token %" PRId64, last - n_prompt + 1);
    int status = who.failed ? qkv_fail_memory(err)
                            : qkv_fail(err, QKV_ERR_NUMERIC, "%s: the logit of token %d is %s",
                                       who.data, (int)token, isnan(value) ? "NaN" : "Inf");
    qkv_text_release(&who);
    return status;
}

static int take_logits(qkv_generator *gen, qkv_error *err) {
    const int64_t n_vocab = hp_of(gen)->n_vocab;
    const size_t bytes = (size_t)n_vocab * sizeof(float);
    const struct ggml_tensor *logits = gen->graph.kept[0].tensor; // [V, 1, B]
    for (int64_t b = 0; b < gen->graph_batch; b++) {
        float *to = gen->branches[gen->variants[b]].logits;
        ggml_backend_tensor_get(logits, to, (size_t)b * bytes, bytes);
        for (int64_t i = 0; i < n_vocab; i++) {
            if (!isfinite(to[i]))
                return fail_not_finite(gen, gen->variants[b], (int32_t)i, to[i], err);
        }
    }
    return QKV_OK;
}

static void fill_tokens(const qkv_generator *gen, int64_t chunk) {
    for (int64_t b = 0; b < gen->step.n_texts; b++)
        memcpy(gen->in_tokens + b * chunk, gen->branches[gen->variants[b]].tokens + gen->n_computed,
               (size_t)chunk * sizeof *gen->in_tokens);
}

static int run_chunk(qkv_generator *gen, qkv_session *session, int64_t n_tokens, qkv_error *err) {
    int64_t n_members, block_rows;
    const int64_t n_texts = list_members(gen, &n_members);
    const int64_t left = n_tokens - gen->n_computed;
    const int64_t chunk = choose_chunk(gen, session, left, n_members, &block_rows);
    const int with_logits = chunk == left;
    qkv_steps_expect(&session->steps, (double)chunk);
    place_step(gen, chunk, n_members, n_texts);
    int status = build(gen, session, chunk, block_rows, n_members, with_logits, err);
    if (status != QKV_OK) return status;
    fill_tokens(gen, chunk);
    qkv_stats_add(&session->stats, &gen->cost);
    status =
        qkv_session_compute(session, &gen->graph, &(qkv_inputs){.tokens = gen->in_tokens}, err);
    if (status == QKV_OK) status = check_overflow(gen, err);
    if (status == QKV_OK && with_logits) status = take_logits(gen, err);
    if (status == QKV_OK) gen->n_computed += chunk;
    /* Rows that were computed in vain must not count twice. */
    if (status != QKV_OK && qkv_plan_has(gen->plan, QKV_EDIT_IN_ORDER)) forget_all(gen);
    return status;
}

int qkv_generator_is_long(const qkv_generator *gen, int64_t n_tokens) {
    int is_long = 0;
    for (int i = 0; i < QKV_ROPE_COUNT; i++) {
        const qkv_rope *rope = &hp_of(gen)->rope[i];
        is_long |= rope->long_divisors && n_tokens > rope->long_from;
    }
    return is_long;
}

/* Beyond a length some models turn keys by other angles, those of earlier tokens too. */
static void choose_rope(qkv_generator *gen, int64_t n_tokens) {
    const int is_long = qkv_generator_is_long(gen, n_tokens);
    if (is_long == gen->is_long) return;
    gen->is_long = is_long;
    forget_all(gen);
}

int qkv_generator_compute(qkv_generator *gen, qkv_session *session, int64_t n_tokens,
                          qkv_error *err) {
    int status = part_texts(gen, n_tokens, err);
    if (status != QKV_OK) return status;
    choose_rope(gen, n_tokens);
    qkv_steps_begin(&session->steps, "tokens", (double)(n_tokens - gen->n_computed));
    const int64_t before = gen->n_computed;
    while (status == QKV_OK && gen->n_computed < n_tokens) {
        status = qkv_steps_reach(&session->steps, (double)(gen->n_computed - before), 1)
                     ? qkv_fail_cancelled(err)
                     : run_chunk(gen, session, n_tokens, err);
    }
    qkv_steps_end(&session->steps, status == QKV_OK);
    return status;
}
