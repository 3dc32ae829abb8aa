/*
 * Generators: options to a plan with caches, and the texts of all variants.
 *
 * What is computed when is in generator_step.c. Edits that look at tokens which are not there yet are
 * refused here, by name.
 */
#include "qkv/generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "run/generate/generator.h"
#include "run/ops/edit_apply.h"
#include "run/plan/edit_data.h"
#include "run/plan/plan.h"
#include "run/run.h"

/* ---- edits ---- */

static int64_t first_selected(const uint8_t *map, int64_t n) {
    for (int64_t i = 0; map && i < n; i++) {
        if (map[i]) return i;
    }
    return 0;
}

static int64_t last_selected(const uint8_t *map, int64_t n) {
    int64_t last = n - 1;
    while (map && last > 0 && !map[last]) last--;
    return last;
}

/* Does the edit give a query weight on keys that come later? */
static int reaches_later_keys(const qkv_edit *edit, int64_t n) {
    return qkv_edit_gives_weight(edit) &&
           last_selected(edit->where.cols, n) > first_selected(edit->where.rows, n);
}

/* Why an edit cannot be had token by token; NULL: it can. */
static const char *why_not(const qkv_plan *plan, const qkv_edit *edit) {
    const qkv_operation *code = qkv_op_get(edit->op);
    const char *reason = code->needs_text ? code->needs_text(edit) : NULL;
    if (reason) return reason;
    return reaches_later_keys(edit, plan->text.n_positions)
               ? "gives queries weight on keys that come later"
               : NULL;
}

static int check_edit(const qkv_generator *gen, const qkv_edit *edit, qkv_error *err) {
    const qkv_plan *plan = gen->plan;
    const char *reason = gen->recompute ? NULL : why_not(plan, edit);
    if (reason)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s' %s; it can only be had with `recompute`, a pass over the whole "
                        "text for every token",
                        edit->text, reason);
    if (!(edit->flags & (QKV_EDIT_TAKES_PROMPT | QKV_EDIT_TAKES_UNEDITED))) return QKV_OK;
    const int unedited = (edit->flags & QKV_EDIT_TAKES_UNEDITED) != 0;
    if (edit->from && !gen->recompute) return QKV_OK; /* names tokens that the other prompt has */
    if (gen->recompute && unedited) return QKV_OK;    /* of the text as it is */
    if (gen->recompute)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s': the other prompt does not grow with the text; patching needs "
                        "no `recompute`",
                        edit->text);
    if (last_selected(edit->where.rows, plan->text.n_positions) < plan->text.n_prompt)
        return QKV_OK;
    return qkv_fail(
        err, QKV_ERR_PLAN,
        "edit '%s' acts on new tokens, which the %s does not have; name tokens of the prompt, "
        "e.g. [:%lld], or let edits act on the prompt (`edit_tokens`)",
        edit->text, unedited ? "unedited run of the prompt" : "other prompt",
        (long long)plan->text.n_prompt);
}

static int check_edits(const qkv_generator *gen, qkv_error *err) {
    for (size_t v = 0; v < gen->plan->n_variants; v++) {
        const qkv_variant *variant = &gen->plan->variants[v];
        for (size_t i = 0; i < variant->n_edits; i++) {
            int status = check_edit(gen, &variant->edits[i], err);
            if (status != QKV_OK) return status;
        }
    }
    return QKV_OK;
}

/* ---- caches ---- */

/* The first layer that a variant edits; n_layer: the logits alone. */
static int32_t first_layer(const qkv_plan *plan, const qkv_variant *variant) {
    int32_t first = plan->model->hp.n_layer;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_selector *where = &variant->edits[i].where;
        /* it holds what another edit changes */
        if (variant->edits[i].flags & QKV_EDIT_TAKES_UNEDITED) continue;
        for (int32_t il = 0; where->layers && il < first; il++) {
            if (where->layers[il]) first = il;
        }
    }
    return qkv_layer_fork(&plan->model->hp, first);
}

/* Is a layer selected whose queries see the keys of this one? */
static int sees_keys_of(const qkv_hparams *hp, const qkv_selector *where, int32_t il) {
    for (int32_t seen = 0; seen < hp->n_layer; seen++) {
        if (where->layers[seen] && hp->layers[seen].kv_layer == il) return 1;
    }
    return 0;
}

/* Weight on keys outside the window needs the values there. */
static int needs_all_keys(const qkv_plan *plan, int32_t il) {
    for (size_t v = 0; v < plan->n_variants; v++) {
        for (size_t i = 0; i < plan->variants[v].n_edits; i++) {
            const qkv_edit *edit = &plan->variants[v].edits[i];
            if (qkv_edit_gives_weight(edit) && sees_keys_of(&plan->model->hp, &edit->where, il))
                return 1;
        }
    }
    return 0;
}

/* Heads of the cache that holds what is seen at `site`: does the variant split groups before it? */
static int32_t heads_of(const qkv_plan *plan, const qkv_variant *variant, int32_t il,
                        qkv_site site) {
    const qkv_hparams *hp = &plan->model->hp;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_selector *where = &variant->edits[i].where;
        if (where->layers && where->layers[il] && qkv_selector_splits(where, hp, il) &&
            qkv_site_reaches(hp, where->site, il, site, il))
            return hp->layers[il].n_head;
    }
    return hp->layers[il].n_kv_head;
}

/* Does the variant drop keys in the layer by what it remembers of earlier rows? */
static int keeps_keys(const qkv_variant *variant, int32_t il) {
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i];
        if ((edit->flags & QKV_EDIT_IN_ORDER) && edit->where.layers[il]) return 1;
    }
    return 0;
}

static void measure_layer(const qkv_generator *gen, size_t variant, int32_t il,
                          qkv_kv_layer *layer) {
    const qkv_plan *plan = gen->plan;
    const qkv_variant *of = &plan->variants[variant];
    int64_t n = plan->text.n_positions, window = qkv_layer_window(plan->model, il);
    const int32_t held = plan->model->hp.layers[il].kv_layer;
    if (needs_all_keys(plan, held)) window = 0;
    layer->k_heads = held == il ? heads_of(plan, of, il, QKV_SITE_K_ROT) : 0;
    layer->v_heads = held == il ? heads_of(plan, of, il, QKV_SITE_V) : 0;
    layer->k_width = plan->model->hp.layers[il].head_dim;
    layer->v_width = plan->model->hp.layers[il].value_dim;
    layer->q_heads = plan->model->hp.layers[il].n_head;
    layer->keep_tokens = keeps_keys(of, il) ? n : 0;
    layer->capacity = qkv_kv_capacity(n, window, QKV_GENERATOR_CHUNK);
    layer->bounded = layer->capacity < qkv_kv_capacity(n, 0, 0);
}

/* ---- making ---- */

static int start_branch(qkv_generator *gen, size_t variant, qkv_error *err) {
    const qkv_plan *plan = gen->plan;
    const qkv_hparams *hp = &plan->model->hp;
    qkv_branch *branch = &gen->branches[variant];
    branch->tokens = qkv_calloc((size_t)plan->text.n_positions, sizeof *branch->tokens);
    branch->logits = qkv_calloc((size_t)hp->n_vocab, sizeof *branch->logits);
    branch->cache.layers = qkv_calloc((size_t)hp->n_layer, sizeof *branch->cache.layers);
    branch->changed = qkv_calloc(plan->variants[variant].n_edits, sizeof *branch->changed);
    if (!branch->tokens || !branch->logits || !branch->cache.layers || !branch->changed)
        return qkv_fail_memory(err);
    memcpy(branch->tokens, plan->tokens, (size_t)plan->n_tokens * sizeof *branch->tokens);
    branch->join = first_layer(plan, &plan->variants[variant]);
    branch->shares = variant > 0;
    for (int32_t il = 0; il < hp->n_layer; il++)
        measure_layer(gen, variant, il, &branch->cache.layers[il]);
    return QKV_OK;
}

static int allocate_lists(qkv_generator *gen, qkv_error *err) {
    const size_t n = gen->plan->n_variants, n_layer = (size_t)gen->plan->model->hp.n_layer;
    gen->members = qkv_calloc(n, sizeof *gen->members);
    gen->variants = qkv_calloc(n, sizeof *gen->variants);
    gen->graph_variants = qkv_calloc(n, sizeof *gen->graph_variants);
    gen->joins = qkv_calloc(n, sizeof *gen->joins);
    gen->caches = qkv_calloc(n * n_layer, sizeof *gen->caches);
    gen->keep = qkv_calloc(qkv_n_places(gen->plan), 1);
    gen->logit_rows = qkv_calloc(QKV_GENERATOR_CHUNK, 1);
    gen->in_tokens = qkv_calloc(n * QKV_GENERATOR_CHUNK, sizeof *gen->in_tokens);
    if (!gen->members || !gen->variants || !gen->graph_variants || !gen->joins || !gen->caches ||
        !gen->keep || !gen->logit_rows || !gen->in_tokens)
        return qkv_fail_memory(err);
    return QKV_OK;
}

/* Prompt and new tokens must fit into the context before anything is computed. */
static int check_length(const qkv_model *model, size_t n_tokens, size_t max_new, qkv_error *err) {
    const size_t n_ctx = (size_t)model->hp.n_ctx;
    if (!model->hp.has_logits || !model->hp.causal)
        return qkv_fail(err, QKV_ERR_PLAN, "%s is an encoder, which has no next token",
                        model->info.path);
    if (n_tokens <= n_ctx && max_new > n_ctx - n_tokens)
        return qkv_fail(
            err, QKV_ERR_PLAN,
            "%zu tokens of the prompt and %zu new ones are more than the model's context "
            "of %zu",
            n_tokens, max_new, n_ctx);
    return QKV_OK;
}

static qkv_edit_range range_of(const qkv_generator_options *options, int64_t n_prompt) {
    const int64_t n = n_prompt + (int64_t)options->max_new;
    qkv_edit_range range = {.n_prompt = n_prompt, .n_positions = n, .end = n};
    if (options->edit_tokens == QKV_EDIT_PROMPT) range.end = n_prompt;
    if (options->edit_tokens == QKV_EDIT_NEW) range.first = n_prompt;
    return range;
}

static int fill_plan(qkv_plan *plan, const qkv_generator_options *options, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && i < options->n_sources; i++) {
        const size_t length =
            options->source_lengths ? options->source_lengths[i] : (size_t)plan->n_tokens;
        status = qkv_plan_add_source(plan, options->source_names[i], options->source_tokens[i],
                                     length, err);
    }
    if (status == QKV_OK)
        status = qkv_plan_add_customs(plan, options->customs, options->n_customs, err);
    if (status == QKV_OK) status = qkv_plan_set_edit_data(plan, options->data, err);
    for (size_t i = 0; status == QKV_OK && i < options->n_variants; i++) {
        status = qkv_plan_add_variant(plan, options->variants[i], NULL, err);
    }
    return status;
}

static int fill(qkv_generator *gen, const qkv_model *model, const int32_t *tokens, size_t n_tokens,
                const qkv_generator_options *options, qkv_error *err) {
    const qkv_edit_range range = range_of(options, (int64_t)n_tokens);
    gen->recompute = options->recompute != 0;
    int status = qkv_plan_new_text(&gen->plan, model, tokens, n_tokens, &range, err);
    if (status == QKV_OK) status = fill_plan(gen->plan, options, err);
    if (status == QKV_OK) status = check_edits(gen, err);
    if (status != QKV_OK) return status;
    gen->branches = qkv_calloc(gen->plan->n_variants, sizeof *gen->branches);
    if (!gen->branches) return qkv_fail_memory(err);
    for (size_t v = 0; status == QKV_OK && v < gen->plan->n_variants; v++)
        status = start_branch(gen, v, err);
    return status == QKV_OK ? allocate_lists(gen, err) : status;
}

static int check_lists(const qkv_generator_options *options, qkv_error *err) {
    for (size_t i = 0; i < options->n_variants; i++) {
        if (!options->variants || !options->variants[i])
            return qkv_fail(err, QKV_ERR_ARGUMENT, "variant %zu has no edits", i + 1);
    }
    for (size_t i = 0; i < options->n_sources; i++) {
        if (!options->source_names || !options->source_names[i] || !options->source_tokens ||
            !options->source_tokens[i])
            return qkv_fail(err, QKV_ERR_ARGUMENT, "source %zu has no name or no tokens", i);
    }
    return QKV_OK;
}

int qkv_generator_new(qkv_generator **out, const qkv_model *model, const int32_t *tokens,
                      size_t n_tokens, const qkv_generator_options *options, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, model);
    if (n_tokens) QKV_NEED(err, tokens);
    qkv_generator_options own = QKV_GENERATOR_OPTIONS_INIT;
    int status = qkv_sized_read(&own, sizeof own, options, "qkv_generator_options", err);
    if (status == QKV_OK && (own.edit_tokens < QKV_EDIT_ALL || own.edit_tokens > QKV_EDIT_NEW))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "there is no `edit_tokens` %d", own.edit_tokens);
    if (status == QKV_OK) status = check_lists(&own, err);
    if (status == QKV_OK) status = check_length(model, n_tokens, own.max_new, err);
    if (status != QKV_OK) return status;
    qkv_generator *gen = qkv_calloc(1, sizeof *gen);
    if (!gen) return qkv_fail_memory(err);
    status = fill(gen, model, tokens, n_tokens, &own, err);
    if (status == QKV_OK)
        *out = gen;
    else
        qkv_generator_free(gen);
    return status;
}

static void release_branch(const qkv_generator *gen, qkv_branch *branch) {
    qkv_generator_release_cache(gen, branch);
    free(branch->cache.layers);
    free(branch->tokens);
    free(branch->logits);
    free((void *)branch->changed);
}

void qkv_generator_free(qkv_generator *gen) {
    if (!gen) return;
    if (gen->has_graph) qkv_graph_release(&gen->graph);
    for (size_t v = 0; gen->branches && v < gen->plan->n_variants; v++)
        release_branch(gen, &gen->branches[v]);
    qkv_patches_release(&gen->patches);
    free(gen->branches);
    free(gen->members);
    free(gen->variants);
    free(gen->graph_variants);
    free(gen->joins);
    free((void *)gen->caches);
    free(gen->keep);
    free(gen->logit_rows);
    free(gen->in_tokens);
    qkv_plan_free(gen->plan);
    free(gen);
}

/* ---- feeding ---- */

/* Tokens that were fed so far. */
static int64_t text_length(const qkv_generator *gen) {
    int64_t n = 0;
    for (size_t v = 0; v < gen->plan->n_variants; v++) {
        if (gen->branches[v].n_tokens > n) n = gen->branches[v].n_tokens;
    }
    return n;
}

static int check_next(const qkv_generator *gen, const int32_t *next, qkv_error *err) {
    const int32_t n_vocab = gen->plan->model->hp.n_vocab;
    size_t going = 0;
    if ((text_length(gen) == 0) == (next != NULL))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        next ? "the prompt has not been fed yet: it comes first, without tokens"
                             : "the prompt has been fed; give the next tokens");
    for (size_t v = 0; v < gen->plan->n_variants; v++) {
        if (gen->branches[v].ended || (next && next[v] == QKV_NO_NEXT)) continue;
        going++;
        if (next && (next[v] < 0 || next[v] >= n_vocab))
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "variant %zu: token id %d is out of range; the vocabulary has ids 0 to "
                            "%d",
                            v, next[v], n_vocab - 1);
    }
    if (!going) return qkv_fail(err, QKV_ERR_ARGUMENT, "all variants have ended");
    if (next && text_length(gen) >= gen->plan->text.n_positions)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the text has its %lld new tokens (`max_new`)",
                        (long long)(gen->plan->text.n_positions - gen->plan->text.n_prompt));
    return QKV_OK;
}

/* ---- a pass over the whole text ---- */

static int same_text(const qkv_branch *a, const qkv_branch *b, int64_t n) {
    return memcmp(a->tokens, b->tokens, (size_t)n * sizeof *a->tokens) == 0;
}

/* All variants from `first` on that have its text and are not done. */
static int recompute_text(qkv_generator *gen, qkv_session *session, size_t first, int64_t n,
                          uint8_t *done, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor t = QKV_TENSOR_INIT;
    const size_t size = (size_t)gen->plan->model->hp.n_vocab * sizeof(float);
    size_t *numbers = qkv_calloc(gen->plan->n_variants, sizeof *numbers);
    int status = numbers ? qkv_plan_new_text(&plan, gen->plan->model, gen->branches[first].tokens,
                                             (size_t)n, &gen->plan->text, err)
                         : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_plan_share_customs(plan, gen->plan, err);
    if (status == QKV_OK) status = qkv_plan_set_edit_data(plan, gen->plan->data, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "logits[-1]", err);
    for (size_t v = first; status == QKV_OK && v < gen->plan->n_variants; v++) {
        if (done[v] || !same_text(&gen->branches[first], &gen->branches[v], n)) continue;
        if (v > 0)
            status = qkv_plan_add_variant(plan, gen->plan->variants[v].text, &numbers[v], err);
    }
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    for (size_t v = first; status == QKV_OK && v < gen->plan->n_variants; v++) {
        if ((v > 0 && !numbers[v]) || done[v]) continue;
        qkv_branch *branch = &gen->branches[v];
        done[v] = 1;
        if (qkv_result_get(result, numbers[v], QKV_SITE_LOGITS, 0, &t))
            memcpy(branch->logits, t.data, size);
        for (size_t i = 0; i < gen->plan->variants[v].n_edits; i++)
            atomic_store(&branch->changed[i], qkv_result_edit_changed(result, numbers[v], i));
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    free(numbers);
    return status;
}

static int recompute(qkv_generator *gen, qkv_session *session, int64_t n, qkv_error *err) {
    const size_t n_variants = gen->plan->n_variants;
    uint8_t *done = qkv_calloc(n_variants, 1);
    int status = done ? QKV_OK : qkv_fail_memory(err);
    for (size_t v = 0; done && v < n_variants; v++) done[v] = gen->branches[v].ended != 0;
    for (size_t v = 0; status == QKV_OK && v < n_variants; v++) {
        if (!done[v]) status = recompute_text(gen, session, v, n, done, err);
    }
    free(done);
    if (status == QKV_OK) gen->n_computed = n;
    return status;
}

/* ---- the next tokens ---- */

/* What edits take of other runs; anew where the text has become a long one, whose keys are turned by other
 * angles. */
static int take_other_values(qkv_generator *gen, qkv_session *session, int64_t n, qkv_error *err) {
    const int is_long = qkv_generator_is_long(gen, n);
    if (!qkv_plan_has(gen->plan, QKV_EDIT_TAKES)) return QKV_OK;
    if (gen->has_patches && gen->patches_are_long == is_long) return QKV_OK;
    qkv_patches patches = {0};
    const int status = qkv_planner_sources(session, gen->plan, is_long, &patches, err);
    if (status != QKV_OK) return status;
    qkv_patches_release(&gen->patches);
    gen->patches = patches;
    gen->patches_are_long = is_long;
    gen->has_patches = 1;
    return QKV_OK;
}

static int prepare(qkv_generator *gen, qkv_session *session, int64_t n, qkv_error *err) {
    int status = QKV_OK;
    for (size_t v = 0; status == QKV_OK && v < gen->plan->n_variants; v++) {
        if (!gen->branches[v].ended) status = qkv_generator_allocate(gen, v, err);
    }
    return status == QKV_OK ? take_other_values(gen, session, n, err) : status;
}

static int compute(qkv_generator *gen, qkv_session *session, int64_t n, qkv_error *err) {
    if (gen->recompute) return recompute(gen, session, n, err);
    qkv_ggml_log_enter();
    int status = prepare(gen, session, n, err);
    if (status == QKV_OK) status = qkv_generator_compute(gen, session, n, err);
    qkv_ggml_log_leave();
    return status;
}

/* Writes the next tokens after the texts; their lengths stay until they have been computed. */
static void write_next(qkv_generator *gen, const int32_t *next, int64_t at, uint8_t *was_going) {
    for (size_t v = 0; v < gen->plan->n_variants; v++) {
        qkv_branch *branch = &gen->branches[v];
        was_going[v] = !branch->ended;
        if (next && next[v] == QKV_NO_NEXT) branch->ended = 1;
        if (next && !branch->ended) branch->tokens[at] = next[v];
    }
}

static void finish(qkv_generator *gen, int status, int64_t n, const uint8_t *was_going) {
    for (size_t v = 0; v < gen->plan->n_variants; v++) {
        qkv_branch *branch = &gen->branches[v];
        if (status != QKV_OK)
            branch->ended = !was_going[v];
        else if (!branch->ended)
            branch->n_tokens = n;
        else
            qkv_generator_release_cache(gen, branch);
    }
}

int qkv_session_feed(qkv_session *session, qkv_generator *generator, const int32_t *next,
                     qkv_error *err) {
    QKV_NEED(err, session);
    QKV_NEED(err, generator);
    if (session->model != generator->plan->model)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the generator was made for another model than the session's");
    int status = check_next(generator, next, err);
    if (status != QKV_OK) return status;
    uint8_t *was_going = qkv_calloc(generator->plan->n_variants, 1);
    if (!was_going) return qkv_fail_memory(err);
    const int64_t at = next ? text_length(generator) : generator->plan->n_tokens;
    write_next(generator, next, at, was_going);
    const int64_t n = next ? at + 1 : at;
    status = compute(generator, session, n, err);
    finish(generator, status, n, was_going);
    free(was_going);
    return status;
}

/* ---- questions ---- */

static const qkv_branch *branch_of(const qkv_generator *gen, size_t variant) {
    return gen && variant < gen->plan->n_variants ? &gen->branches[variant] : NULL;
}

size_t qkv_generator_n_variants(const qkv_generator *generator) {
    return generator ? generator->plan->n_variants : 0;
}

const float *qkv_generator_logits(const qkv_generator *generator, size_t variant) {
    const qkv_branch *branch = branch_of(generator, variant);
    return branch && branch->n_tokens && !branch->ended ? branch->logits : NULL;
}

const int32_t *qkv_generator_tokens(const qkv_generator *generator, size_t variant,
                                    size_t *n_tokens) {
    const qkv_branch *branch = branch_of(generator, variant);
    if (n_tokens) *n_tokens = branch ? (size_t)branch->n_tokens : 0;
    return branch ? branch->tokens : NULL;
}

const char *qkv_generator_edit_text(const qkv_generator *generator, size_t variant, size_t edit) {
    if (!branch_of(generator, variant)) return NULL;
    const qkv_variant *of = &generator->plan->variants[variant];
    return edit < of->n_edits ? of->edits[edit].text : NULL;
}

uint64_t qkv_generator_edit_changed(const qkv_generator *generator, size_t variant, size_t edit) {
    if (!qkv_generator_edit_text(generator, variant, edit)) return 0;
    return atomic_load(&generator->branches[variant].changed[edit]);
}

static size_t cache_size(const qkv_generator *gen, size_t variant, int32_t from) {
    const qkv_hparams *hp = &gen->plan->model->hp;
    size_t size = 0;
    for (int32_t il = from; il < hp->n_layer && !gen->recompute; il++)
        size += qkv_kv_layer_size(&gen->branches[variant].cache.layers[il]);
    return size;
}

size_t qkv_generator_memory(const qkv_generator *generator) {
    size_t size = 0;
    for (size_t v = 0; v < qkv_generator_n_variants(generator); v++)
        size += cache_size(generator, v, 0);
    return size;
}

static void explain_variant(const qkv_generator *gen, size_t variant, qkv_text *out) {
    const qkv_hparams *hp = &gen->plan->model->hp;
    const qkv_branch *branch = &gen->branches[variant];
    const double all = (double)cache_size(gen, variant, 0) / 1e6;
    if (variant == 0) {
        qkv_text_printf(out, "baseline: %.3g MB of keys and values\n", all);
        return;
    }
    qkv_text_printf(out, "variant %zu (%s): ", variant, gen->plan->variants[variant].text);
    if (branch->join == hp->n_layer)
        qkv_text_puts(out, "all layers are the baseline's");
    else if (branch->join)
        qkv_text_printf(out, "layers 0 to %d are the baseline's", branch->join - 1);
    else
        qkv_text_puts(out, "shares no layer with the baseline");
    qkv_text_printf(out, "; %.3g MB of keys and values",
                    (double)cache_size(gen, variant, branch->join) / 1e6);
    if (branch->join) qkv_text_printf(out, ", %.3g MB once the texts differ", all);
    qkv_text_puts(out, "\n");
}

int qkv_generator_explain(const qkv_generator *generator, char **text, qkv_error *err) {
    QKV_NEED(err, text);
    *text = NULL;
    QKV_NEED(err, generator);
    const qkv_plan *plan = generator->plan;
    qkv_text out = {0};
    qkv_text_printf(&out, "%lld tokens of the prompt, up to %lld new ones, %zu variant%s\n",
                    (long long)plan->n_tokens, (long long)(plan->text.n_positions - plan->n_tokens),
                    plan->n_variants - 1, plan->n_variants == 2 ? "" : "s");
    for (size_t v = 0; v < plan->n_variants && !generator->recompute; v++)
        explain_variant(generator, v, &out);
    if (generator->recompute)
        qkv_text_puts(&out, "a pass over the whole text for every token; nothing is kept\n");
    else
        qkv_text_printf(&out, "total: at most %.3g MB\n",
                        (double)qkv_generator_memory(generator) / 1e6);
    if (out.failed) {
        qkv_text_release(&out);
        return qkv_fail_memory(err);
    }
    *text = out.data;
    return QKV_OK;
}
