/* Plans: built up piece by piece, each piece checked when it is added. */
#include "run/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/edit_words.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "run/notation/notation.h"
#include "run/ops/edit_apply.h"
#include "run/plan/edit_data.h"
#include "run/plan/other_prompt.h"
#include "run/run.h"

int qkv_plan_new(qkv_plan **out, const qkv_model *model, const int32_t *tokens, size_t n_tokens,
                 qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, model);
    if (n_tokens) QKV_NEED(err, tokens);
    const int64_t n = (int64_t)n_tokens;
    const qkv_edit_range text = {.n_prompt = n, .n_positions = n, .end = n};
    return qkv_plan_new_text(out, model, tokens, n_tokens, &text, err);
}

int qkv_plan_new_answer(qkv_plan **out, const qkv_model *model, const int32_t *tokens,
                        size_t n_tokens, size_t n_prompt, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, model);
    if (n_tokens) QKV_NEED(err, tokens);
    if (n_prompt == 0 || n_prompt > n_tokens)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a prompt of %zu token%s cannot be the beginning of %zu", n_prompt,
                        qkv_plural(n_prompt), n_tokens);
    const int64_t n = (int64_t)n_tokens;
    const qkv_edit_range text = {.n_prompt = (int64_t)n_prompt, .n_positions = n, .end = n};
    return qkv_plan_new_text(out, model, tokens, n_tokens, &text, err);
}

int qkv_plan_new_text(qkv_plan **out, const qkv_model *model, const int32_t *tokens,
                      size_t n_tokens, const qkv_edit_range *text, qkv_error *err) {
    int status = qkv_tokens_check(model, tokens, n_tokens, "the prompt", err);
    if (status != QKV_OK) return status;
    qkv_plan *plan = qkv_calloc(1, sizeof *plan);
    if (!plan) return qkv_fail_memory(err);
    plan->model = qkv_model_retain(model);
    plan->n_tokens = (int64_t)n_tokens;
    plan->text = *text;
    plan->tokens = qkv_tokens_copy(tokens, n_tokens);
    plan->variants = qkv_calloc(1, sizeof *plan->variants);
    plan->n_variants = plan->variants_capacity = 1;
    plan->wanted =
        qkv_calloc((size_t)(model->hp.n_layer + 1) * QKV_SITE_COUNT, sizeof *plan->wanted);
    plan->prepared = qkv_calloc((size_t)model->hp.n_layer + 1, sizeof *plan->prepared);
    if (plan->variants) plan->variants[0].text = qkv_strdup("");
    if (!plan->tokens || !plan->variants || !plan->wanted || !plan->prepared ||
        !plan->variants[0].text) {
        qkv_plan_free(plan);
        return qkv_fail_memory(err);
    }
    *out = plan;
    return QKV_OK;
}

static void release_variant(qkv_variant *variant) {
    for (size_t i = 0; i < variant->n_edits; i++) qkv_edit_release(&variant->edits[i]);
    free(variant->edits);
    free(variant->text);
    *variant = (qkv_variant){0};
}

void qkv_plan_free(qkv_plan *plan) {
    if (!plan) return;
    for (size_t i = 0; plan->variants && i < plan->n_variants; i++)
        release_variant(&plan->variants[i]);
    qkv_plan_drop_sources(plan, 0);
    for (size_t i = 0; i < plan->n_customs; i++) qkv_custom_free(plan->customs[i]);
    size_t n_wanted = (size_t)(plan->model->hp.n_layer + 1) * QKV_SITE_COUNT;
    for (size_t i = 0; plan->wanted && i < n_wanted; i++) qkv_wanted_release(&plan->wanted[i]);
    for (size_t i = 0; i < plan->n_captures; i++) free(plan->captures[i]);
    free(plan->captures);
    free(plan->variants);
    free(plan->sources);
    free((void *)plan->customs);
    qkv_edit_data_free(plan->data);
    free(plan->wanted);
    free(plan->prepared);
    free(plan->tokens);
    free(plan->prompt);
    qkv_model_free(plan->model);
    free(plan);
}

int qkv_plan_set_prompt(qkv_plan *plan, const char *text, size_t length, qkv_error *err) {
    QKV_NEED(err, plan);
    QKV_NEED(err, text);
    char *copy = qkv_calloc(length + 1, 1);
    if (!copy) return qkv_fail_memory(err);
    memcpy(copy, text, length);
    free(plan->prompt);
    plan->prompt = copy;
    plan->prompt_length = length;
    return QKV_OK;
}

/* ---- variants ---- */

/* The end of the edit that starts at text: a '+' between white space separates two, one inside 1e+3
 * does not. */
static const char *end_of_edit(const char *text) {
    for (const char *at = text; *at; at++) {
        if (*at == '+' && at > text && qkv_is_space(at[-1]) && (qkv_is_space(at[1]) || !at[1]))
            return at;
    }
    return text + strlen(text);
}

static int check_overlap(const qkv_plan *plan, const qkv_variant *variant, qkv_error *err) {
    for (size_t i = 0; i < variant->n_edits; i++) {
        for (size_t j = 0; j < i; j++) {
            if (!qkv_selector_overlap(&variant->edits[i].where, &variant->edits[j].where,
                                      &plan->model->hp, plan->text.n_positions))
                continue;
            return qkv_fail(err, QKV_ERR_PLAN,
                            "edits '%s' and '%s' overlap: which of them should hold is undefined",
                            variant->edits[j].text, variant->edits[i].text);
        }
    }
    return QKV_OK;
}

/* A norm over all key heads has one value for each of them: no query head has a key head of its own. */
static int check_inputs(const qkv_plan *plan, const qkv_variant *variant, qkv_error *err) {
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_selector *where = &variant->edits[i].where;
        for (int32_t il = 0; il < plan->model->hp.n_layer; il++) {
            if (!where->layers || !where->layers[il] ||
                !qkv_selector_splits(where, &plan->model->hp, il) ||
                !qkv_heads_are_normed_together(plan->model, where->site, il))
                continue;
            return qkv_fail(err, QKV_ERR_PLAN,
                            "edit '%s': this model normalises the keys of all heads together, so "
                            "that query heads cannot have key heads of their own; name key/value "
                            "heads, e.g. k_in@%d.g0",
                            variant->edits[i].text, il);
        }
    }
    return QKV_OK;
}

static int check_operations(const qkv_plan *plan, qkv_variant *variant, qkv_error *err) {
    int status = QKV_OK;
    for (int op = 0; op < QKV_OP_COUNT && status == QKV_OK; op++) {
        const qkv_operation *code = qkv_op_get((qkv_op)op);
        if (code->check) status = code->check(plan, variant, err);
    }
    return status;
}

/* Edits of a text act on a part of it only. */
static int limit_tokens(const qkv_plan *plan, qkv_edit *edit, qkv_error *err) {
    const qkv_edit_range *text = &plan->text;
    const int64_t n = text->n_positions;
    if (text->first == 0 && text->end == n) return QKV_OK;
    if (!edit->where.rows) {
        edit->where.rows = qkv_calloc((size_t)n, 1);
        if (!edit->where.rows) return qkv_fail_memory(err);
        memset(edit->where.rows, 1, (size_t)n);
    }
    for (int64_t i = 0; i < n; i++) edit->where.rows[i] &= i >= text->first && i < text->end;
    edit->selected = qkv_selector_count(&edit->where, &plan->model->hp, n);
    if (edit->selected) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edit '%s' selects none of the %s tokens, which edits act on", edit->text,
                    text->first ? "new" : "prompt's");
}

enum { NO_PART = INT32_MAX };

/* One edit, with all that can be said about it alone. *part: what is wrong about an edit that cannot be
 * read. */
static int parse_one(qkv_plan *plan, const char *text, size_t length, qkv_edit *edit,
                     qkv_span *part, qkv_error *err) {
    const qkv_notation notation = {.hp = &plan->model->hp,
                                   .n_tokens = plan->text.n_positions,
                                   .n_prompt = plan->text.n_prompt,
                                   .sources = plan->sources,
                                   .n_sources = plan->n_sources,
                                   .customs = plan->customs,
                                   .n_customs = plan->n_customs,
                                   .data = plan->data,
                                   .mistake = part};
    int status = qkv_notation_edit(&notation, edit, text, length, err);
    if (status != QKV_OK) return status;
    part->at = NO_PART; /* from here on it is about all of it */
    status = limit_tokens(plan, edit, err);
    if (status == QKV_OK) status = qkv_vector_check(edit, plan->text.n_positions, err);
    if (status == QKV_OK) status = qkv_other_prompt_check(plan, edit, err);
    if (status == QKV_OK)
        status = qkv_visible_check(plan->model, edit, plan->text.n_positions, err);
    if (status != QKV_OK) qkv_edit_release(edit);
    return status;
}

/* An edit without the spaces around it. */
static qkv_span trimmed_span(const char *text, const char *at, const char *end) {
    while (at < end && qkv_is_space(*at)) at++;
    while (end > at && qkv_is_space(end[-1])) end--;
    return (qkv_span){(size_t)(at - text), (size_t)(end - at)};
}

/* The text of a variant whose edits were rewritten. */
static int join_edits(qkv_variant *variant, qkv_error *err) {
    qkv_text text = {0};
    for (size_t i = 0; i < variant->n_edits; i++)
        qkv_text_printf(&text, "%s%s", i ? " + " : "", variant->edits[i].text);
    if (text.failed) {
        qkv_text_release(&text);
        return qkv_fail_memory(err);
    }
    free(variant->text);
    variant->text = text.data;
    return QKV_OK;
}

/* *mistake: of an edit that is refused by itself. */
static int parse_variant(qkv_plan *plan, qkv_variant *variant, qkv_span *mistake, qkv_error *err) {
    int status = QKV_OK, rewritten = 0;
    size_t capacity = 0;
    const char *at = variant->text;
    for (;;) {
        const char *end = end_of_edit(at);
        qkv_edit edit;
        qkv_span part = {0};
        *mistake = trimmed_span(variant->text, at, end);
        status = parse_one(plan, at, (size_t)(end - at), &edit, &part, err);
        if (status != QKV_OK && part.at != NO_PART)
            *mistake = (qkv_span){mistake->at + part.at, part.length};
        if (status == QKV_OK && !QKV_PUSH(variant->edits, capacity, variant->n_edits, edit)) {
            qkv_edit_release(&edit);
            status = qkv_fail_memory(err);
        }
        if (status != QKV_OK) return status;
        rewritten |= strlen(edit.text) != mistake->length ||
                     memcmp(edit.text, variant->text + mistake->at, mistake->length) != 0;
        if (!*end) break;
        at = end + 1;
    }
    if (rewritten) status = join_edits(variant, err);
    if (status != QKV_OK) return status;
    *mistake = (qkv_span){0, variant->text ? strlen(variant->text)
                                           : 0}; /* from here on it is about several */
    status = check_overlap(plan, variant, err);
    if (status == QKV_OK) status = check_inputs(plan, variant, err);
    return status == QKV_OK ? check_operations(plan, variant, err) : status;
}

int qkv_plan_add_variant(qkv_plan *plan, const char *edits, size_t *index, qkv_error *err) {
    QKV_NEED(err, plan);
    QKV_NEED(err, edits);
    const size_t n_sources = plan->n_sources;
    qkv_variant variant = {.text = qkv_strdup(edits)};
    if (variant.text) qkv_vector_names_shorten(variant.text);
    plan->has_mistake = 0;
    int status =
        variant.text ? parse_variant(plan, &variant, &plan->mistake, err) : qkv_fail_memory(err);
    /* Places in a text whose file names were made shorter are not those of the given one. */
    if (status != QKV_OK && variant.text) plan->has_mistake = strlen(variant.text) == strlen(edits);
    if (status == QKV_OK &&
        !QKV_PUSH(plan->variants, plan->variants_capacity, plan->n_variants, variant))
        status = qkv_fail_memory(err);
    if (status != QKV_OK) {
        release_variant(&variant);
        qkv_plan_drop_sources(plan, n_sources);
        return status;
    }
    if (index) *index = plan->n_variants - 1;
    return QKV_OK;
}

int qkv_plan_mistake(const qkv_plan *plan, size_t *at, size_t *length) {
    if (at) *at = 0;
    if (length) *length = 0;
    if (!plan || !plan->has_mistake) return 0;
    if (at) *at = plan->mistake.at;
    if (length) *length = plan->mistake.length;
    return 1;
}

/* ---- captures ---- */

qkv_wanted *qkv_plan_wanted(const qkv_plan *plan, int32_t layer, qkv_site site) {
    return &plan->wanted[(size_t)qkv_plan_layer(plan, site, layer) * QKV_SITE_COUNT + (size_t)site];
}

int32_t qkv_plan_layer(const qkv_plan *plan, qkv_site site, int32_t layer) {
    return qkv_site_has_layer(site) ? layer : plan->model->hp.n_layer;
}

/* As the notation has it. */
static int remember_capture(qkv_plan *plan, const char *text, qkv_error *err) {
    char *copy = qkv_strdup(text);
    int status = copy ? qkv_notation_canonical(&plan->model->hp, &copy, err) : qkv_fail_memory(err);
    if (status == QKV_OK &&
        !QKV_PUSH(plan->captures, plan->captures_capacity, plan->n_captures, copy))
        status = qkv_fail_memory(err);
    if (status != QKV_OK) free(copy);
    return status;
}

int qkv_plan_add_capture(qkv_plan *plan, const char *text, qkv_error *err) {
    QKV_NEED(err, plan);
    if (!text) return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: no capture was given", __func__);
    qkv_notation notation = {.hp = &plan->model->hp, .n_tokens = plan->n_tokens};
    qkv_capture capture;
    int status = qkv_notation_capture(&notation, &capture, text, err);
    if (status != QKV_OK) return status;
    status = remember_capture(plan, text, err);
    if (status == QKV_OK) {
        status =
            qkv_wanted_merge_layers(plan, &capture.where, qkv_wanted_merge_capture, &capture, err);
        if (status != QKV_OK) free(plan->captures[--plan->n_captures]);
    }
    qkv_selector_release(&capture.where);
    return status;
}

int qkv_plan_prepare(qkv_plan *plan, const char *text, qkv_error *err) {
    QKV_NEED(err, plan);
    QKV_NEED(err, text);
    const qkv_hparams *hp = &plan->model->hp;
    qkv_notation notation = {.hp = hp, .n_tokens = plan->n_tokens};
    qkv_capture capture;
    int status = qkv_notation_capture(&notation, &capture, text, err);
    if (status != QKV_OK) return status;
    for (int32_t il = 0; capture.where.layers && il < hp->n_layer; il++)
        plan->prepared[il] |= capture.where.layers[il];
    if (!qkv_site_has_layer(capture.where.site)) plan->prepared[hp->n_layer] = 1;
    if (qkv_site_get_axes(capture.where.site) == QKV_AXES_MAP && !capture.reduction)
        plan->prepares_maps = 1;
    qkv_selector_release(&capture.where);
    return QKV_OK;
}

/* ---- questions about the whole plan ---- */

/* A capture by key/value heads cannot show a group whose query heads see different keys. */
static int check_split(const qkv_plan *plan, const qkv_edit *edit, qkv_error *err) {
    if (!qkv_selector_splits_any(&edit->where, &plan->model->hp)) return QKV_OK;
    for (int32_t il = 0; il < plan->model->hp.n_layer; il++) {
        if (!edit->where.layers[il] || !qkv_selector_splits(&edit->where, &plan->model->hp, il))
            continue;
        for (int site = 0; site < QKV_SITE_COUNT; site++) {
            const qkv_wanted *wanted = qkv_plan_wanted(plan, il, (qkv_site)site);
            if (!qkv_site_has_layer((qkv_site)site) || !wanted->wanted || wanted->letter != 'g')
                continue;
            if (!qkv_site_reaches(&plan->model->hp, edit->where.site, il, (qkv_site)site, il))
                continue;
            return qkv_fail(
                err, QKV_ERR_PLAN,
                "edit '%s' splits a key/value head between its query heads; capture %s@%d by query "
                "heads: %s@%d.h*",
                edit->text, qkv_site_name((qkv_site)site), il, qkv_site_name((qkv_site)site), il);
        }
    }
    return QKV_OK;
}

int qkv_plan_check(const qkv_plan *plan, qkv_error *err) {
    size_t n = (size_t)(plan->model->hp.n_layer + 1) * QKV_SITE_COUNT, captures = 0;
    for (size_t i = 0; i < n; i++) captures += (size_t)qkv_wanted_any(&plan->wanted[i]);
    if (captures == 0)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "the plan captures nothing; add a capture such as pattern@0");
    for (size_t v = 0; v < plan->n_variants; v++) {
        for (size_t i = 0; i < plan->variants[v].n_edits; i++) {
            int status = check_split(plan, &plan->variants[v].edits[i], err);
            if (status != QKV_OK) return status;
        }
    }
    return QKV_OK;
}

size_t qkv_plan_n_variants(const qkv_plan *plan) {
    return plan ? plan->n_variants : 0;
}

const char *qkv_plan_variant_text(const qkv_plan *plan, size_t variant) {
    return plan && variant < plan->n_variants ? plan->variants[variant].text : NULL;
}

/* ---- edits as they were understood ---- */

static const qkv_edit *edit_of(const qkv_plan *plan, size_t variant, size_t edit) {
    if (!plan || variant >= plan->n_variants || edit >= plan->variants[variant].n_edits)
        return NULL;
    return &plan->variants[variant].edits[edit];
}

int qkv_plan_has(const qkv_plan *plan, unsigned flags) {
    for (size_t v = 0; v < plan->n_variants; v++) {
        for (size_t i = 0; i < plan->variants[v].n_edits; i++) {
            if (plan->variants[v].edits[i].flags & flags) return 1;
        }
    }
    return 0;
}

int qkv_plan_get_edit(const qkv_plan *plan, size_t variant, size_t edit, qkv_edit_info *info) {
    const qkv_edit *e = edit_of(plan, variant, edit);
    if (!e || !info) return 0;
    const int has_number = (e->flags & QKV_EDIT_HAS_NUMBER) != 0;
    const qkv_hparams *hp = &plan->model->hp;
    const int is_map = qkv_site_get_axes(e->where.site) == QKV_AXES_MAP;
    const qkv_edit_info own = {.text = e->text,
                               .site = e->where.site,
                               .op = qkv_op_name((size_t)e->op),
                               .number = has_number ? (double)e->a : 0,
                               .selected = e->selected,
                               .layers = e->where.layers,
                               .head_kind = e->where.letter,
                               .heads = e->where.heads,
                               .n_heads = e->where.n_heads,
                               .rows = e->where.rows,
                               .cols = e->where.cols,
                               .channels = e->where.channels,
                               .n_channels =
                                   is_map ? 0
                                          : qkv_site_width(e->where.site, hp,
                                                           qkv_selector_first_layer(&e->where, hp),
                                                           plan->n_tokens)};
    return qkv_sized_write(info, &own, sizeof own, "qkv_edit_info", NULL) == QKV_OK;
}

int qkv_plan_edit_covers(const qkv_plan *plan, size_t variant, size_t edit, int32_t layer,
                         int32_t head) {
    const qkv_edit *e = edit_of(plan, variant, edit);
    if (!e || !qkv_site_has_layer(e->where.site)) return 0;
    const qkv_hparams *hp = &plan->model->hp;
    if (layer < 0 || layer >= hp->n_layer || head < 0 || head >= hp->layers[layer].n_head) return 0;
    return qkv_selector_has_layer(&e->where, layer) &&
           qkv_selector_has_query_head(&e->where, hp, layer, head);
}

const int32_t *qkv_plan_tokens(const qkv_plan *plan, size_t *n_tokens) {
    if (n_tokens) *n_tokens = plan ? (size_t)plan->n_tokens : 0;
    return plan ? plan->tokens : NULL;
}

const char *qkv_plan_prompt(const qkv_plan *plan, size_t *length) {
    if (length) *length = plan ? plan->prompt_length : 0;
    return plan ? plan->prompt : NULL;
}

const char *qkv_plan_capture_text(const qkv_plan *plan, size_t index) {
    return plan && index < plan->n_captures ? plan->captures[index] : NULL;
}

int qkv_plan_wants_logits(const qkv_plan *plan, size_t token) {
    return qkv_plan_wants_token(plan, QKV_SITE_LOGITS, token);
}

int qkv_plan_wants_token(const qkv_plan *plan, qkv_site site, size_t token) {
    if (!plan || (unsigned)site >= QKV_SITE_COUNT || qkv_site_has_layer(site)) return 0;
    const qkv_wanted *wanted = qkv_plan_wanted(plan, 0, site);
    if (!wanted->wanted || token >= (size_t)plan->n_tokens) return 0;
    return !wanted->rows || wanted->rows[token];
}
