#include "run/plan/other_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "run/plan/edit_data.h"
#include "run/run.h"

/* ---- tokens ---- */

int qkv_tokens_check(const qkv_model *model, const int32_t *tokens, size_t n_tokens,
                     const char *what, qkv_error *err) {
    const qkv_hparams *hp = &model->hp;
    if (n_tokens == 0) return qkv_fail(err, QKV_ERR_PLAN, "%s is empty", what);
    if (n_tokens > (size_t)hp->n_ctx)
        return qkv_fail(err, QKV_ERR_PLAN, "%s has %zu token%s; the model's context is %d", what,
                        n_tokens, qkv_plural(n_tokens), hp->n_ctx);
    for (size_t i = 0; i < n_tokens; i++) {
        if (tokens[i] < 0 || tokens[i] >= hp->n_vocab)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "%s: token id %d at position %zu is out of range; the vocabulary has "
                            "ids 0 to %d",
                            what, tokens[i], i, hp->n_vocab - 1);
    }
    return QKV_OK;
}

int32_t *qkv_tokens_copy(const int32_t *tokens, size_t n_tokens) {
    int32_t *copy = qkv_calloc(n_tokens, sizeof *copy);
    if (copy) memcpy(copy, tokens, n_tokens * sizeof *copy);
    return copy;
}

/* ---- prompts with a name ---- */

/* A prompt, followed by what follows the plan's own prompt, so that edits can patch all tokens. In a
 * causal model these change nothing before them. */
static int32_t *followed(const qkv_plan *plan, const int32_t *tokens, size_t *n) {
    const size_t n_prompt = (size_t)plan->text.n_prompt, own = *n;
    const size_t more = (size_t)plan->n_tokens > n_prompt ? (size_t)plan->n_tokens - n_prompt : 0;
    int32_t *all = qkv_calloc(own + more, sizeof *all);
    if (!all) return NULL;
    memcpy(all, tokens, own * sizeof *all);
    if (more) memcpy(all + own, plan->tokens + n_prompt, more * sizeof *all);
    *n = own + more;
    return all;
}

/* Takes over `tokens`: n_prompt of them, and those that follow. */
static int push_source(qkv_plan *plan, const char *name, int32_t *tokens, size_t n_tokens,
                       size_t n_prompt, int is_drawn, qkv_error *err) {
    const qkv_source source = {.name = qkv_strdup(name),
                               .tokens = tokens,
                               .n_tokens = (int64_t)n_tokens,
                               .n_prompt = (int64_t)n_prompt,
                               .is_drawn = is_drawn};
    qkv_source *moved = realloc(plan->sources, (plan->n_sources + 1) * sizeof *moved);
    if (moved) plan->sources = moved;
    if (!source.name || !source.tokens || !moved) {
        free(source.name);
        free(source.tokens);
        return qkv_fail_memory(err);
    }
    plan->sources[plan->n_sources++] = source;
    return QKV_OK;
}

int qkv_plan_add_source(qkv_plan *plan, const char *name, const int32_t *tokens, size_t n_tokens,
                        qkv_error *err) {
    QKV_NEED(err, plan);
    QKV_NEED(err, name);
    if (n_tokens) QKV_NEED(err, tokens);
    char what[128];
    snprintf(what, sizeof what, "the prompt named '%s'", name);
    if (!*name || strpbrk(name, "+=: \t\n"))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%s' cannot name a prompt: no spaces, '+', '=' or ':'", name);
    if (strncmp(name, "resample", 8) == 0 && (!name[8] || name[8] == ','))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%s' cannot name a prompt: patch:resample draws one from a set", name);
    int status = qkv_tokens_check(plan->model, tokens, n_tokens, what, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < plan->n_sources; i++) {
        if (strcmp(plan->sources[i].name, name) == 0)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "there are two prompts named '%s'", name);
    }
    size_t n = n_tokens;
    int32_t *all = followed(plan, tokens, &n);
    status = all ? qkv_tokens_check(plan->model, all, n, what, err) : qkv_fail_memory(err);
    if (status == QKV_OK) return push_source(plan, name, all, n, n_tokens, 0, err);
    free(all);
    return status;
}

void qkv_plan_drop_sources(qkv_plan *plan, size_t n) {
    while (plan->n_sources > n) {
        qkv_source *last = &plan->sources[--plan->n_sources];
        free(last->name);
        free(last->tokens);
    }
}

const char *qkv_plan_source(const qkv_plan *plan, size_t index, const int32_t **tokens) {
    if (!plan || index >= plan->n_sources) return NULL;
    if (tokens) *tokens = plan->sources[index].tokens;
    return plan->sources[index].name;
}

size_t qkv_plan_source_length(const qkv_plan *plan, size_t index) {
    return plan && index < plan->n_sources ? (size_t)plan->sources[index].n_tokens : 0;
}

/* Without '<-' a token takes the one at its own place. */
static int check_length(const qkv_plan *plan, const qkv_edit *edit, qkv_error *err) {
    const qkv_source *source = &plan->sources[edit->source];
    if (edit->from || source->n_tokens == plan->n_tokens) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edit '%s': the prompt named '%s' has %lld token%s but the plan's prompt %lld; "
                    "patching needs equal lengths, or tokens of both: [5<-7]",
                    edit->text, source->name, (long long)source->n_tokens,
                    qkv_plural((size_t)source->n_tokens), (long long)plan->n_tokens);
}

/* ---- the set ---- */

static int fail_edit(const qkv_edit *edit, const char *what, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_PLAN, "edit '%s': %s", edit->text, what);
}

/* The set is there, has more than one prompt, and the model takes them. */
static int find_set(const qkv_plan *plan, const qkv_edit *edit, const qkv_prompt_set **set,
                    qkv_error *err) {
    *set = plan->data ? plan->data->set : NULL;
    if (!*set) return fail_edit(edit, "there is no set of prompts here (--set-prompts FILE)", err);
    if ((*set)->n < 2)
        return fail_edit(edit,
                         edit->resample
                             ? "a set of one prompt has nothing to draw from; patch:NAME "
                               "takes a given prompt"
                             : "a set of one prompt has no mean; give at least two",
                         err);
    int status = QKV_OK;
    for (size_t i = 0; i < (*set)->n && status == QKV_OK; i++) {
        char what[64];
        snprintf(what, sizeof what, "prompt %zu of the set", i);
        status = qkv_tokens_check(plan->model, (*set)->tokens[i], (*set)->lengths[i], what, err);
    }
    return status;
}

static int write_note(qkv_edit *edit, qkv_text *note, qkv_error *err) {
    if (note->failed) {
        qkv_text_release(note);
        return qkv_fail_memory(err);
    }
    free(edit->note);
    edit->note = note->data;
    return QKV_OK;
}

/* ---- means ---- */

static int check_positions(const qkv_plan *plan, const qkv_edit *edit, const qkv_prompt_set *set,
                           qkv_error *err) {
    if (edit->axis != QKV_MEAN_SET_POSITION) return QKV_OK;
    for (int64_t t = (int64_t)set->longest; t < plan->text.n_positions; t++) {
        if (edit->where.rows && !edit->where.rows[t]) continue;
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s': no prompt of the set has token %lld; the longest has tokens 0 "
                        "to %zu",
                        edit->text, (long long)t, set->longest - 1);
    }
    return QKV_OK;
}

static int check_mean(const qkv_plan *plan, qkv_edit *edit, qkv_error *err) {
    const qkv_prompt_set *set;
    int status = find_set(plan, edit, &set, err);
    if (status != QKV_OK) return status;
    if (qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s': %s has a value for each pair of tokens, and no mean over "
                        "prompts of different lengths",
                        edit->text, qkv_site_name(edit->where.site));
    status = check_positions(plan, edit, set, err);
    if (status != QKV_OK) return status;
    qkv_text note = {0};
    qkv_text_printf(&note, "mean over %zu tokens of %zu prompts, which have the hash %s",
                    set->n_tokens, set->n, set->hash);
    return write_note(edit, &note, err);
}

/* ---- drawing ---- */

/* Can values of this prompt take the place of the plan's own? Of a longer one the beginning is taken,
 * which in a causal model is the same as in the whole. */
static int is_candidate(const qkv_plan *plan, const qkv_prompt_set *set, size_t index) {
    const size_t n = (size_t)plan->text.n_prompt, length = set->lengths[index];
    if (plan->model->hp.causal ? length < n : length != n) return 0;
    return memcmp(set->tokens[index], plan->tokens, n * sizeof *plan->tokens) != 0;
}

static int fail_candidates(const qkv_plan *plan, const qkv_edit *edit, const qkv_prompt_set *set,
                           qkv_error *err) {
    const char *wanted = plan->model->hp.causal ? "at least as many" : "just as many";
    return qkv_fail(
        err, QKV_ERR_PLAN,
        "edit '%s': no other prompt of the set can be taken: the prompt has %lld tokens "
        "and the others must have %s; those of the set have %zu to %zu",
        edit->text, (long long)plan->text.n_prompt, wanted, set->shortest, set->longest);
}

/* Another number for every seed and prompt, the same on every machine. */
static uint64_t draw(const qkv_plan *plan, const qkv_edit *edit) {
    uint64_t key = qkv_random_mix(edit->seed, (uint64_t)plan->text.n_prompt);
    for (int64_t t = 0; t < plan->text.n_prompt; t++)
        key = qkv_random_mix(key, (uint64_t)plan->tokens[t]);
    return key;
}

/* The number of the prompt drawn; set->n: there is none. */
static size_t choose(const qkv_plan *plan, const qkv_edit *edit, const qkv_prompt_set *set) {
    size_t n = 0, i = 0;
    for (size_t k = 0; k < set->n; k++) n += (size_t)is_candidate(plan, set, k);
    if (n == 0) return set->n;
    size_t left = (size_t)(draw(plan, edit) % n);
    for (; !is_candidate(plan, set, i) || left > 0; i++) left -= (size_t)is_candidate(plan, set, i);
    return i;
}

/* The prompt as a source: as long as the plan's own, and followed by what was generated. */
static int take_drawn(qkv_plan *plan, qkv_edit *edit, const qkv_prompt_set *set, size_t chosen,
                      qkv_error *err) {
    char name[32];
    snprintf(name, sizeof name, "set:%zu", chosen);
    for (edit->source = 0; edit->source < plan->n_sources; edit->source++) {
        if (strcmp(plan->sources[edit->source].name, name) == 0) return QKV_OK;
    }
    int32_t *tokens = qkv_tokens_copy(plan->tokens, (size_t)plan->n_tokens);
    if (tokens) memcpy(tokens, set->tokens[chosen], (size_t)plan->text.n_prompt * sizeof *tokens);
    const size_t n = (size_t)plan->n_tokens;
    return push_source(plan, name, tokens, n, n, 1, err);
}

static int resample(qkv_plan *plan, qkv_edit *edit, qkv_error *err) {
    const qkv_prompt_set *set;
    int status = find_set(plan, edit, &set, err);
    if (status != QKV_OK) return status;
    const size_t chosen = choose(plan, edit, set);
    if (chosen == set->n) return fail_candidates(plan, edit, set, err);
    status = take_drawn(plan, edit, set, chosen, err);
    if (status != QKV_OK) return status;
    qkv_text note = {0};
    qkv_text_printf(&note, "drew prompt %zu of the set's 0 to %zu, which have the hash %s", chosen,
                    set->n - 1, set->hash);
    return write_note(edit, &note, err);
}

int qkv_other_prompt_check(qkv_plan *plan, qkv_edit *edit, qkv_error *err) {
    if (edit->flags & QKV_EDIT_TAKES_SET) return check_mean(plan, edit, err);
    if (!(edit->flags & QKV_EDIT_TAKES_PROMPT)) return QKV_OK;
    return edit->resample ? resample(plan, edit, err) : check_length(plan, edit, err);
}
