/* Comparisons as objects: the sums over prompts, and what is read off them. */
#include "measure/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"

/* ---- sums ---- */

int qkv_compare_sums_new(compare_sums *sums, int32_t n_layer, int32_t n_head, qkv_error *err) {
    *sums = (compare_sums){0};
    sums->heads = qkv_calloc((size_t)n_layer * (size_t)n_head, sizeof *sums->heads);
    sums->layers = qkv_calloc((size_t)n_layer, sizeof *sums->layers);
    return sums->heads && sums->layers ? QKV_OK : qkv_fail_memory(err);
}

void qkv_compare_sums_release(compare_sums *sums) {
    free(sums->heads);
    free(sums->layers);
}

void qkv_compare_add_distance(qkv_metric id, double *to, const double *from) {
    if (id == QKV_METRIC_MAX_CHANGE) {
        to[0] = fmax(to[0], from[0]);
        return;
    }
    for (int i = 0; i < QKV_METRIC_SUMS; i++) to[i] += from[i];
}

static void add_sums(qkv_compare *c, const compare_sums *from) {
    compare_sums *to = &c->sums;
    for (size_t h = 0; h < (size_t)c->n_layer * (size_t)c->n_head; h++) {
        const double distance = qkv_metric_value(&c->distance, from->heads[h]);
        c->lowest[h] = fmin(c->lowest[h], distance);
        c->highest[h] = fmax(c->highest[h], distance);
        qkv_compare_add_distance(c->distance.id, to->heads[h], from->heads[h]);
    }
    for (int32_t l = 0; l < c->n_layer; l++) {
        to->layers[l].angle += from->layers[l].angle;
        to->layers[l].error += from->layers[l].error;
        to->layers[l].n += from->layers[l].n;
    }
    to->kl += from->kl;
    to->kl_last += from->kl_last;
    for (int m = 0; m < 2; m++) to->loss[m] += from->loss[m];
    to->flips += from->flips;
    to->n_positions += from->n_positions;
    to->n_losses += from->n_losses;
    to->n_prompts += from->n_prompts;
    to->n_tokens += from->n_tokens;
    to->n_passes += from->n_passes;
    to->changed += from->changed;
    to->selected += from->selected;
}

/* ---- positions of a prompt ---- */

static void sum_positions(compare_sums *sums, const compare_position *positions, size_t n,
                          int is_causal) {
    for (size_t t = 0; t < n; t++) {
        sums->kl += positions[t].kl;
        sums->flips += positions[t].tokens[0] != positions[t].tokens[1];
        if (!is_causal || t + 1 == n) continue;
        for (int m = 0; m < 2; m++) sums->loss[m] += positions[t].loss[m];
        sums->n_losses++;
    }
    sums->kl_last = positions[n - 1].kl;
    sums->n_positions = n;
}

static int make_room(qkv_compare *c, size_t n, qkv_error *err) {
    if (n <= c->n_positions) return QKV_OK;
    double *kl = qkv_calloc(n, sizeof *kl);
    uint64_t *count = qkv_calloc(n, sizeof *count);
    if (!kl || !count) {
        free(kl);
        free(count);
        return qkv_fail_memory(err);
    }
    for (size_t i = 0; i < c->n_positions; i++) {
        kl[i] = c->kl_at[i];
        count[i] = c->n_at[i];
    }
    free(c->kl_at);
    free(c->n_at);
    c->kl_at = kl;
    c->n_at = count;
    c->n_positions = n;
    return QKV_OK;
}

static void note_flip(qkv_compare *c, size_t position, const compare_position *at) {
    const qkv_compare_flip flip = {.size = sizeof flip,
                                   .prompt = c->sums.n_prompts,
                                   .position = (int64_t)position,
                                   .tokens = {at->tokens[0], at->tokens[1]},
                                   .probabilities = {at->probabilities[0], at->probabilities[1]},
                                   .kl = at->kl};
    size_t place = c->n_flips;
    while (place > 0 && c->flips[place - 1].kl < flip.kl) place--;
    if (place == COMPARE_FLIPS) return;
    if (c->n_flips < COMPARE_FLIPS) c->n_flips++;
    memmove(&c->flips[place + 1], &c->flips[place], (c->n_flips - place - 1) * sizeof *c->flips);
    c->flips[place] = flip;
}

static void note_positions(qkv_compare *c, const compare_position *positions, size_t n) {
    for (size_t t = 0; t < n; t++) {
        c->kl_at[t] += positions[t].kl;
        c->n_at[t]++;
        if (positions[t].tokens[0] != positions[t].tokens[1]) note_flip(c, t, &positions[t]);
    }
}

/* ---- the object ---- */

static const char *const distances[] = {"tv", "js", "kl", "max_change"};

static int read_distance(qkv_compare *c, const char *name, qkv_error *err) {
    if (!name) name = distances[0];
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        if (strcmp(distances[i], name) == 0)
            return qkv_metric_parse(&c->distance, name, strlen(name), err);
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "`distance`: there is no '%s'; give tv, js, kl or max_change", name);
}

/* A mistake in the edits shows before anything is computed. */
static int check_edits(const qkv_compare *c, const int32_t *tokens, size_t n_tokens,
                       qkv_error *err) {
    qkv_plan *plan = NULL;
    if (!c->edits) return QKV_OK;
    int status = qkv_plan_new(&plan, c->models[1], tokens, n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_variant(plan, c->edits, NULL, err);
    qkv_plan_free(plan);
    return status;
}

static int new_ranges(qkv_compare *c, qkv_error *err) {
    const size_t n = (size_t)c->n_layer * (size_t)c->n_head;
    c->lowest = qkv_calloc(n, sizeof *c->lowest);
    c->highest = qkv_calloc(n, sizeof *c->highest);
    if (!c->lowest || !c->highest) return qkv_fail_memory(err);
    for (size_t h = 0; h < n; h++) c->lowest[h] = c->highest[h] = (double)NAN;
    return QKV_OK;
}

int qkv_compare_new(qkv_compare **out, const qkv_model *first, const qkv_model *second,
                    const qkv_compare_options *options, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, first);
    QKV_NEED(err, second);
    qkv_compare_options how = QKV_COMPARE_OPTIONS_INIT;
    int status = qkv_sized_read(&how, sizeof how, options, "qkv_compare_options", err);
    if (status == QKV_OK) status = qkv_compare_models(first, second, err);
    if (status != QKV_OK) return status;
    qkv_compare *c = qkv_calloc(1, sizeof *c);
    if (!c) return qkv_fail_memory(err);
    c->models[0] = qkv_model_retain(first);
    c->models[1] = qkv_model_retain(second);
    c->n_layer = qkv_model_get_info(first)->n_layer;
    c->n_head = qkv_model_get_info(first)->n_head;
    c->memory = how.memory;
    status = read_distance(c, how.distance, err);
    if (status == QKV_OK && how.edits && how.edits[0]) {
        c->edits = qkv_strdup(how.edits);
        if (!c->edits) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = qkv_compare_sums_new(&c->sums, c->n_layer, c->n_head, err);
    if (status == QKV_OK) status = new_ranges(c, err);
    if (status == QKV_OK)
        *out = c;
    else
        qkv_compare_free(c);
    return status;
}

void qkv_compare_free(qkv_compare *compare) {
    if (!compare) return;
    qkv_model_free(compare->models[0]);
    qkv_model_free(compare->models[1]);
    free(compare->distance.text);
    free(compare->edits);
    qkv_compare_sums_release(&compare->sums);
    free(compare->lowest);
    free(compare->highest);
    free(compare->kl_at);
    free(compare->n_at);
    free(compare);
}

/* ---- results ---- */

static double share(double sum, uint64_t n) {
    return n ? sum / (double)n : (double)NAN;
}

static qkv_compared compared_of(const compare_sums *sums) {
    qkv_compared out = QKV_COMPARED_INIT;
    out.n_prompts = sums->n_prompts;
    out.n_tokens = sums->n_tokens;
    out.kl = share(sums->kl, sums->n_positions);
    out.kl_last = share(sums->kl_last, sums->n_positions ? sums->n_prompts : 0);
    out.flips = share((double)sums->flips, sums->n_positions);
    for (int m = 0; m < 2; m++) out.loss[m] = share(sums->loss[m], sums->n_losses);
    out.n_passes = sums->n_passes;
    out.changed = sums->changed;
    out.selected = sums->selected;
    return out;
}

int qkv_compare_get(const qkv_compare *compare, qkv_compared *out) {
    if (!compare || !out) return 0;
    const qkv_compared own = compared_of(&compare->sums);
    return qkv_sized_write(out, &own, sizeof own, "qkv_compared", NULL) == QKV_OK;
}

/* The head's number; -1: there is none, or nothing was added. */
static int64_t head_at(const qkv_compare *compare, int32_t layer, int32_t head) {
    if (!compare || layer < 0 || layer >= compare->n_layer || head < 0 || head >= compare->n_head ||
        !compare->sums.n_prompts)
        return -1;
    return (int64_t)layer * compare->n_head + head;
}

double qkv_compare_head(const qkv_compare *compare, int32_t layer, int32_t head) {
    const int64_t at = head_at(compare, layer, head);
    return at < 0 ? (double)NAN : qkv_metric_value(&compare->distance, compare->sums.heads[at]);
}

int qkv_compare_head_range(const qkv_compare *compare, int32_t layer, int32_t head, double *lowest,
                           double *highest) {
    const int64_t at = head_at(compare, layer, head);
    if (at < 0) return 0;
    if (lowest) *lowest = compare->lowest[at];
    if (highest) *highest = compare->highest[at];
    return 1;
}

int qkv_compare_layer(const qkv_compare *compare, int32_t layer, double *angle, double *error) {
    if (!compare || layer < 0 || layer >= compare->n_layer) return 0;
    const compare_states *states = &compare->sums.layers[layer];
    if (angle) *angle = share(states->angle, states->n);
    if (error) *error = share(states->error, states->n);
    return 1;
}

int qkv_compare_position(const qkv_compare *compare, size_t position, double *kl,
                         uint64_t *n_prompts) {
    if (!compare || position >= compare->n_positions) return 0;
    if (kl) *kl = share(compare->kl_at[position], compare->n_at[position]);
    if (n_prompts) *n_prompts = compare->n_at[position];
    return 1;
}

int qkv_compare_get_flip(const qkv_compare *compare, size_t index, qkv_compare_flip *flip) {
    if (!compare || !flip || index >= compare->n_flips) return 0;
    return qkv_sized_write(flip, &compare->flips[index], sizeof *flip, "qkv_compare_flip", NULL) ==
           QKV_OK;
}

/* ---- a prompt ---- */

static int check_sessions(const qkv_compare *c, qkv_session *const sessions[2], qkv_error *err) {
    static const char *const names[] = {"first", "second"};
    for (int m = 0; m < 2; m++) {
        if (qkv_session_model(sessions[m]) != c->models[m])
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "the %s session is of another model than the %s one of the comparison",
                            names[m], names[m]);
    }
    return QKV_OK;
}

/* Adds a prompt that was computed; what the caller is told comes first, as it may fail. */
static int finish_prompt(qkv_compare *c, compare_sums *sums, const compare_position *positions,
                         size_t n_tokens, qkv_compared *told, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(c->models[0]);
    sums->n_prompts = 1;
    sums->n_tokens = n_tokens;
    if (info->has_logits) sum_positions(sums, positions, n_tokens, info->causal);
    const qkv_compared own = compared_of(sums);
    const int status = told ? qkv_sized_write(told, &own, sizeof own, "qkv_compared", err) : QKV_OK;
    if (status != QKV_OK) return status;
    if (info->has_logits) note_positions(c, positions, n_tokens);
    add_sums(c, sums);
    return QKV_OK;
}

int qkv_compare_add(qkv_compare *compare, qkv_session *first, qkv_session *second,
                    const int32_t *tokens, size_t n_tokens, qkv_compared *of_prompt,
                    qkv_error *err) {
    QKV_NEED(err, compare);
    QKV_NEED(err, first);
    QKV_NEED(err, second);
    QKV_NEED(err, tokens);
    if (!n_tokens) return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt has no tokens");
    qkv_session *const sessions[2] = {first, second};
    const qkv_model_info *info = qkv_model_get_info(compare->models[0]);
    compare_position *positions = qkv_calloc(n_tokens, sizeof *positions);
    compare_sums sums = {0};
    int status = positions ? check_sessions(compare, sessions, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = check_edits(compare, tokens, n_tokens, err);
    if (status == QKV_OK)
        status = qkv_compare_sums_new(&sums, compare->n_layer, compare->n_head, err);
    if (status == QKV_OK && info->has_logits) status = make_room(compare, n_tokens, err);
    if (status == QKV_OK)
        status = qkv_compare_run(compare, sessions, tokens, n_tokens, &sums, positions, err);
    if (status == QKV_OK)
        status = finish_prompt(compare, &sums, positions, n_tokens, of_prompt, err);
    qkv_compare_sums_release(&sums);
    free(positions);
    return status;
}
