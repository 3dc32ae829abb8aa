/* See judge.h. */
#include "support/judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/dice.h"

enum { T = JUDGE_TOKENS, IDENTITIES = 2 * QKV_SITE_COUNT };

const double judge_bound = 1e-4;

void judge_open(judge *j, const char *path, int32_t n_threads) {
    dice d = {7};
    memset(j, 0, sizeof *j);
    engine_open(&j->eng, path, n_threads);
    j->ref = ref_model_load(path);
    const uint64_t n_plain = (uint64_t)j->ref->V - 3; /* the first three are control tokens */
    for (int t = 0; t < T; t++) {
        j->tokens[t] = t == 0 ? 1 : 3 + (int32_t)dice_below(&d, n_plain);
        j->other[t] = t == 0 ? 1 : 3 + (int32_t)dice_below(&d, n_plain);
    }
    j->baseline = ref_forward(j->ref, j->tokens, T, NULL, 0, NULL);
    j->source = ref_forward(j->ref, j->other, T, NULL, 0, NULL);
}

void judge_close(judge *j) {
    ref_run_free(j->baseline);
    ref_run_free(j->source);
    ref_model_free(j->ref);
    engine_close(&j->eng);
}

const char *const *judge_everything(const judge *j) {
    static char text[QKV_SITE_COUNT][32];
    static const char *list[QKV_SITE_COUNT + 1];
    size_t n = 0;
    for (int s = 0; s < QKV_SITE_COUNT; s++) {
        const qkv_site site = (qkv_site)s;
        if (!ref_has_site(j->ref, site)) continue;
        snprintf(text[n], sizeof text[n], "%s%s", qkv_site_name(site),
                 ref_is_shared(site) ? "@*.h*" : "");
        list[n] = text[n];
        n++;
    }
    list[n] = NULL;
    return list;
}

qkv_result *judge_run(judge *j, const char *const *variants, const char *const *captures) {
    return engine_execute(&j->eng, &(engine_run){.tokens = j->tokens,
                                                 .n_tokens = T,
                                                 .variants = variants,
                                                 .captures = captures,
                                                 .source = j->other});
}

/* ---- comparing ---- */

static void check_tensor(const judge *j, const ref_run *expected, qkv_site site, int layer,
                         const qkv_tensor *t, const char *text) {
    const int seen = ref_is_shared(site) && t->head_kind == 'h';
    const double *values = seen ? expected->seen[site][layer] : expected->site[site][layer];
    const ref_model own = ref_in_layer(j->ref, layer);
    const size_t count = ref_site_count(&own, seen ? ref_seen_like(site) : site, T);
    assert_int_equal(tensor_count(t), count);
    const difference d = compare_to_doubles(t->data, values, count);
    if (d.max > judge_bound * fmax(d.scale, 1))
        fail_msg("'%s': %s of layer %d is off by %g at %zu (%g, not %g)", text, qkv_site_name(site),
                 layer, d.max, d.where, (double)t->data[d.where], values[d.where]);
}

size_t judge_tensors(const judge *j, const qkv_result *result, size_t variant,
                     const ref_run *expected, const char *text) {
    size_t v = 0, n = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(result, i, &v, &site, &layer, &t); i++) {
        if (v != variant) continue;
        check_tensor(j, expected, site, ref_has_layer(site) ? layer : 0, &t, text);
        n++;
    }
    return n;
}

/* Does the first site come right before the second? */
static int comes_before(qkv_site site, qkv_site other) {
    if (site == QKV_SITE_K_IN) return other == QKV_SITE_K || other == QKV_SITE_K_ROT;
    return (site == QKV_SITE_K && other == QKV_SITE_K_ROT) ||
           (site == QKV_SITE_V_IN && other == QKV_SITE_V);
}

/* A group whose query heads already see different keys has no one number of changed elements. */
static int is_ambiguous(const ref_edit *edits, size_t n, const ref_edit *edit) {
    for (size_t i = 0; i < n; i++)
        if (edits[i].head_kind == 'h' && edit->head_kind != 'h' &&
            comes_before(edits[i].site, edit->site))
            return 1;
    return 0;
}

static void check_counts(const qkv_result *result, size_t variant, const ref_run *expected,
                         const ref_edit *edits, size_t n, const char *text) {
    assert_int_equal(qkv_result_n_edits(result, variant), n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t selected = qkv_result_edit_selected(result, variant, i);
        const uint64_t changed = qkv_result_edit_changed(result, variant, i);
        if (selected != expected->selected[i])
            fail_msg("'%s': edit %zu selects %llu elements, not %llu", text, i,
                     (unsigned long long)selected, (unsigned long long)expected->selected[i]);
        if (changed > selected)
            fail_msg("'%s': edit %zu changed %llu of %llu elements", text, i,
                     (unsigned long long)changed, (unsigned long long)selected);
        const uint64_t fewest = expected->changed[i], most = fewest + expected->rounded[i];
        if ((changed < fewest || changed > most) && !is_ambiguous(edits, n, &edits[i]))
            fail_msg("'%s': edit %zu changed %llu elements, not %llu", text, i,
                     (unsigned long long)changed, (unsigned long long)expected->changed[i]);
    }
}

void judge_variant(const judge *j, const qkv_result *result, size_t variant,
                   const ref_run *expected, const ref_edit *edits, size_t n, const char *text) {
    int everything = 0;
    for (int s = 0; s < QKV_SITE_COUNT; s++) {
        if (!ref_has_layer((qkv_site)s)) everything += ref_has_site(j->ref, (qkv_site)s);
        for (int il = 0; ref_has_layer((qkv_site)s) && il < j->ref->n_layer; il++)
            everything += ref_layer_has_site(j->ref, (qkv_site)s, il);
    }
    const size_t n_tensors = judge_tensors(j, result, variant, expected, text);
    assert_int_equal(n_tensors, everything);
    check_counts(result, variant, expected, edits, n, text);
}

void judge_groups(judge *j, const ref_cases *list) {
    static const char *const groups[] = {"k", "v", "k_rot", "k_in", "v_in", NULL};
    for (size_t i = 0; i < list->n; i++) {
        const ref_edit *e = &list->edits[i];
        if (!ref_is_shared(e->site) || (e->head_kind == 'h' && j->ref->H != j->ref->G)) continue;
        ref_run *expected = ref_forward(j->ref, j->tokens, T, e, 1, j->source);
        qkv_result *result = judge_run(j, (const char *const[]){list->text[i], NULL}, groups);
        const size_t n = judge_tensors(j, result, 1, expected, list->text[i]);
        int with_own = 0;
        for (int il = 0; il < j->ref->n_layer; il++)
            with_own += ref_layer_has_site(j->ref, QKV_SITE_K, il);
        assert_int_equal(n, 5 * with_own);
        qkv_result_free(result);
        ref_run_free(expected);
    }
}

/* ---- identity ---- */

/* Writes `scale:1` and `add:0` of every site; returns how many. */
static size_t write_identities(const judge *j, char text[IDENTITIES][REF_TEXT_SIZE]) {
    size_t n = 0;
    for (int i = 0; i < IDENTITIES; i++) {
        const ref_op op = i % 2 ? REF_ADD : REF_SCALE;
        const ref_edit e = {.site = (qkv_site)(i / 2), .op = op, .a = i % 2 ? 0 : 1};
        if (ref_has_site(j->ref, e.site)) ref_edit_text(&e, text[n++], REF_TEXT_SIZE);
    }
    return n;
}

/* An edit of the last layer's output beside an identity: then nothing is shared because nothing was changed,
 * and all that comes before must be the same bits. Heads are named, and groups split. */
static void check_recomputed(judge *j, qkv_site site) {
    const int last = j->ref->n_layer - 1;
    char text[3 * REF_TEXT_SIZE];
    snprintf(text, sizeof text, "%s@*%s=scale:1 + resid_post@%d[%d]{0}=add:1", qkv_site_name(site),
             ref_has_heads(site) ? ".h1" : "", last, T - 1);
    qkv_result *result = judge_run(j, (const char *const[]){text, NULL}, judge_everything(j));
    size_t variant = 0, n = 0;
    qkv_site seen = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &seen, &layer, &t); i++) {
        if (!variant || !ref_has_layer(seen) || (seen == QKV_SITE_RESID_POST && layer == last))
            continue;
        const qkv_tensor base = engine_tensor(result, 0, seen, layer);
        if (!same_bits(t.data, base.data, tensor_count(&t)))
            fail_msg("'%s' changes %s of layer %d", text, qkv_site_name(seen), (int)layer);
        n += t.data != base.data;
    }
    assert_true(n > 0);
    qkv_result_free(result);
}

void judge_identity(judge *j) {
    char text[IDENTITIES][REF_TEXT_SIZE];
    const char *variants[IDENTITIES + 1] = {NULL};
    const size_t n = write_identities(j, text);
    for (size_t i = 0; i < n; i++) variants[i] = text[i];
    qkv_result *result = judge_run(j, variants, judge_everything(j));
    size_t variant = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &t); i++) {
        const qkv_tensor base = engine_tensor(result, 0, site, layer);
        if (!same_bits(t.data, base.data, tensor_count(&t)))
            fail_msg("'%s' changes %s of layer %d", variants[variant - 1], qkv_site_name(site),
                     (int)layer);
    }
    for (size_t v = 1; v <= n; v++) {
        assert_int_equal(qkv_result_edit_changed(result, v, 0), 0);
        assert_int_equal(qkv_result_edit_ran(result, v, 0), 1);
        assert_true(qkv_result_edit_selected(result, v, 0) > 0);
    }
    qkv_result_free(result);
    for (int s = 0; s < QKV_SITE_COUNT; s++) {
        const ref_edit e = {.site = (qkv_site)s, .head_kind = 'h'};
        if (ref_has_layer(e.site) && e.site != QKV_SITE_RESID_POST &&
            ref_has_site(j->ref, e.site) && !ref_refuses(j->ref, &e))
            check_recomputed(j, e.site);
    }
}

/* ---- the planner ---- */

observed judge_observe(qkv_site site, int layer) {
    observed o = {.site = site, .layer = layer};
    if (!ref_has_layer(site))
        snprintf(o.text, sizeof o.text, "%s", qkv_site_name(site));
    else
        snprintf(o.text, sizeof o.text, "%s@%d%s", qkv_site_name(site), layer,
                 ref_is_shared(site) ? ".h*" : "");
    return o;
}

static void check_against_reference(const qkv_tensor *t, const ref_run *expected, const observed *o,
                                    const char *edit) {
    double *const *values =
        ref_is_shared(o->site) ? expected->seen[o->site] : expected->site[o->site];
    const difference d = compare_to_doubles(t->data, values[o->layer], tensor_count(t));
    if (d.max > judge_bound * fmax(d.scale, 1))
        fail_msg("'%s' seen at %s: off by %g at %zu", edit, o->text, d.max, d.where);
}

void judge_observed(const qkv_result *result, const ref_cases *list, ref_run *const *expected,
                    const observed *o) {
    const qkv_tensor base = engine_tensor(result, 0, o->site, o->layer);
    for (size_t i = 0; i < list->n; i++) {
        const qkv_tensor t = engine_tensor(result, i + 1, o->site, o->layer);
        const int reached = ref_reaches(expected[i]->model, &list->edits[i], o->site, o->layer);
        const int changed = qkv_result_edit_changed(result, i + 1, 0) > 0;
        check_against_reference(&t, expected[i], o, list->text[i]);
        if ((t.data == base.data) == (reached && changed))
            fail_msg("'%s' seen at %s is %s the baseline's own", list->text[i], o->text,
                     reached ? "wrongly" : "not");
        assert_int_equal(qkv_result_edit_ran(result, i + 1, 0), reached);
    }
}
