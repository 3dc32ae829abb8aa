/* See walk_case.h. */
#include "walk_case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_cases.h"
#include "reference/ref_other.h"

static int below(dice *d, int bound) {
    return (int)dice_below(d, (uint64_t)bound);
}

static int chance(dice *d, int percent) {
    return below(d, 100) < percent;
}

size_t walk_choose_model(dice *d, size_t n_models) {
    return (size_t)dice_below(d, n_models);
}

/* ---- the prompt ---- */

/* One token, as many as the model takes, more than one block of queries has; mostly a few. */
static int draw_length(dice *d, int n_ctx) {
    const int r = below(d, 100), most = n_ctx < WALK_TOKENS ? n_ctx : WALK_TOKENS;
    if (r < 12) return 1;
    if (r < 20) return 2;
    if (r < 23) return most;
    if (r < 26 && most > 257) return 257 + below(d, most - 257);
    return most < 3 ? most : 3 + below(d, most < 12 ? most - 2 : 10);
}

static void draw_prompt(walk_case *c, dice *d) {
    const int V = c->model->ref->V;
    c->T = draw_length(d, c->model->eng.info->n_ctx);
    for (int t = 0; t < c->T; t++) {
        c->tokens[t] = 3 + below(d, V - 3);
        c->other[t] = 3 + below(d, V - 3);
    }
}

/* ---- selectors ---- */

/* Some of n, as bits; 0 is all. */
static uint64_t draw_set(dice *d, int n) {
    const uint64_t all = ((uint64_t)1 << n) - 1;
    if (chance(d, 25)) return 0;
    if (chance(d, 60)) return (uint64_t)1 << below(d, n);
    const uint64_t set = dice_u64(d) & all;
    return set ? set : 1;
}

static ref_range draw_range(dice *d, int n, int percent) {
    if (!chance(d, percent)) return (ref_range){0, 0};
    const int begin = below(d, n);
    return (ref_range){begin, chance(d, 40) ? begin + 1 : begin + 1 + below(d, n - begin)};
}

static void draw_selector(const ref_model *m, int T, ref_edit *e, dice *d) {
    const int width = ref_view_of(m, e->site, T, NULL).n_col;
    if (ref_has_layer(e->site)) e->layers = draw_set(d, m->n_layer);
    if (ref_has_heads(e->site) && chance(d, 65)) {
        e->head_kind = ref_is_shared(e->site) && chance(d, 50) ? 'g' : 'h';
        e->heads = draw_set(d, e->head_kind == 'g' ? m->G : m->H);
    }
    e->rows = draw_range(d, T, 55);
    if (ref_is_map(e->site))
        e->cols = draw_range(d, T, ref_is_compression(e->op) ? 0 : 40);
    else
        e->channels = draw_range(d, width, e->op == REF_REMOVE_VECTOR ? 0 : 25);
}

/* ---- edits ---- */

/* A LayerNorm makes rounding errors large where all channels of a row are nearly equal. */
static int leaves_rounding(const ref_model *m, const ref_edit *e) {
    const int is_flat = e->op == REF_MEAN_DIM || e->op == REF_CLAMP || e->op == REF_MEAN_TOKEN;
    return m->family->norm == REF_LAYER && is_flat && !ref_is_map(e->site) &&
           (ref_is_input(e->site) || !ref_has_heads(e->site));
}

/* Is there such an edit, in a prompt of T tokens? Of other prompts some are longer. */
static int is_possible(const walk_model *w, int T, const ref_edit *e) {
    const ref_model *m = w->ref;
    const int keeps = e->op == REF_H2O || e->op == REF_H2O_EVAL || e->op == REF_SNAPKV;
    if (e->op == REF_FREEZE) return 1;
    if (!ref_allows(e->site, e->op) || e->op == REF_MASK) return 0; /* rows need a key */
    if (e->op == REF_MEAN_HEAD && !ref_has_heads(e->site)) return 0;
    if (e->op == REF_MEAN_OTHERS && !ref_has_other_heads(m, e->site)) return 0;
    if (m->family->encoder && (keeps || ref_is_late(e->op))) return 0;
    if (ref_takes_other(e->op) && T + REF_SHIFT > w->eng.info->n_ctx) return 0;
    if (e->op == REF_RESAMPLE && T < 4) return 0; /* which one depends on which are alike */
    return !leaves_rounding(m, e);
}

static void draw_numbers(ref_edit *e, dice *d) {
    static const double factors[] = {-1, 0, 0.3, 1, 2}, values[] = {-0.5, 0, 0.25, 1};
    if (e->op != REF_FREEZE) ref_choose_arguments(e);
    if (e->op == REF_SCALE) e->a = factors[below(d, 5)];
    if (e->op == REF_SET || e->op == REF_ADD) e->a = values[below(d, 4)];
    e->seed = below(d, 100);
}

/* Passes may compute some tokens of logits and final_norm only: these come more often than others. */
static qkv_site draw_site(const ref_model *m, dice *d) {
    qkv_site site = (qkv_site)below(d, QKV_SITE_COUNT);
    if (chance(d, 15)) site = chance(d, 50) ? QKV_SITE_LOGITS : QKV_SITE_FINAL_NORM;
    return ref_has_site(m, site) ? site : QKV_SITE_RESID_POST;
}

/* Freezing comes after an edit whose effects it ends. */
static void draw_edit(const walk_model *w, int T, int can_freeze, ref_edit *e, dice *d) {
    for (;;) {
        *e = (ref_edit){.site = draw_site(w->ref, d)};
        e->op = can_freeze && chance(d, 20) ? REF_FREEZE : (ref_op)below(d, REF_OP_COUNT);
        if (!is_possible(w, T, e)) continue;
        draw_numbers(e, d);
        draw_selector(w->ref, T, e, d);
        ref_choose_vector(w->ref, T, e, below(d, 3));
        if (e->op == REF_MASK_CACHE && !ref_can_move(w->ref, e)) continue;
        if (!ref_refuses(w->ref, e)) return;
    }
}

static void draw_variant(const walk_case *c, walk_variant *v, dice *d) {
    v->n = 1 + (size_t)below(d, WALK_EDITS);
    v->text[0] = '\0';
    for (size_t i = 0; i < v->n; i++) {
        char text[REF_TEXT_SIZE];
        draw_edit(c->model, c->T, i > 0, &v->edits[i], d);
        ref_edit_text(&v->edits[i], text, sizeof text);
        const size_t used = strlen(v->text);
        snprintf(v->text + used, sizeof v->text - used, "%s%s", i ? " + " : "", text);
    }
}

/* Two edits may overlap, and more of the kind. What is refused leaves the plan as it was. */
static int is_accepted(const walk_case *c, const char *text) {
    const engine *e = &c->model->eng;
    const engine_run run = {c->tokens, (size_t)c->T, NULL, NULL, c->other};
    const char *const texts[] = {text, NULL};
    qkv_error err = {0};
    qkv_plan *plan = engine_plan_for(e, &run, texts);
    const int status = qkv_plan_add_variant(plan, text, NULL, &err);
    if (qkv_plan_n_variants(plan) != (status == QKV_OK ? 2u : 1u)) abort();
    if (status != QKV_OK && getenv("WALK_REFUSALS")) printf("  %s: %s\n", text, err.message);
    qkv_plan_free(plan);
    return status == QKV_OK;
}

static void draw_variants(walk_case *c, dice *d) {
    const size_t wanted = 1 + (size_t)below(d, WALK_VARIANTS);
    for (size_t i = 0; i < wanted; i++) {
        walk_variant *v = &c->variants[c->n_variants];
        draw_variant(c, v, d);
        if (is_accepted(c, v->text))
            c->texts[c->n_variants++] = v->text;
        else
            c->refused++;
    }
}

/* ---- captures ---- */

static int splits_groups(const walk_case *c) {
    for (size_t v = 0; v < c->n_variants; v++)
        for (size_t i = 0; i < c->variants[v].n; i++)
            if (ref_is_shared(c->variants[v].edits[i].site) &&
                c->variants[v].edits[i].head_kind == 'h')
                return 1;
    return 0;
}

__attribute__((format(printf, 2, 3))) static void add(char *out, const char *format, ...) {
    const size_t used = strlen(out);
    va_list values;
    va_start(values, format);
    vsnprintf(out + used, WALK_TEXT - used, format, values);
    va_end(values);
}

static void draw_heads(const walk_case *c, qkv_site site, char *out, dice *d) {
    const ref_model *m = c->model->ref;
    const int shared = ref_is_shared(site), by_group = shared && !splits_groups(c) && chance(d, 50);
    if (!ref_has_heads(site) || (chance(d, 40) && !shared)) return;
    if (by_group)
        add(out, ".g%d", below(d, m->G));
    else if (chance(d, 40))
        add(out, ".h*");
    else
        add(out, ".h%d,%d", below(d, m->H), below(d, m->H));
}

static void draw_rows(const walk_case *c, char *out, dice *d) {
    const int r = below(d, 5), t = below(d, c->T);
    if (r == 1) add(out, "[-1]");
    if (r == 2) add(out, "[%d]", t);
    if (r == 3) add(out, "[%d:]", t);
    if (r == 4) add(out, "[0,%d]", t);
}

static void draw_reduction(const walk_case *c, char *out, dice *d) {
    const int has_sink = c->model->ref->layers[0].sinks != NULL;
    const qkv_reduction kind =
        (qkv_reduction)(1 + below(d, QKV_REDUCTION_COUNT - (has_sink ? 1 : 2)));
    const int is_pooled = kind == QKV_REDUCTION_MEAN || kind == QKV_REDUCTION_MAX;
    add(out, ":%s", qkv_reduction_name(kind));
    if (is_pooled) add(out, "=%d", 1 + below(d, c->T + 3));
}

static void draw_capture(const walk_case *c, char *out, dice *d) {
    const ref_model *m = c->model->ref;
    const qkv_site site = draw_site(m, d);
    snprintf(out, WALK_TEXT, "%s", qkv_site_name(site));
    if (!ref_has_layer(site)) {
        draw_rows(c, out, d);
        return;
    }
    if (chance(d, 25))
        add(out, "@*");
    else
        add(out, "@%d", below(d, m->n_layer));
    draw_heads(c, site, out, d);
    if (site == QKV_SITE_PATTERN && chance(d, 50))
        draw_reduction(c, out, d);
    else if (!ref_is_map(site) && chance(d, 15))
        add(out, "{%d:}", below(d, ref_view_of(m, site, c->T, NULL).n_col));
}

/* Together they may say two things of one tensor: what is refused is left out. */
static void draw_captures(walk_case *c, dice *d) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    const int wanted = 1 + below(d, WALK_CAPTURES);
    size_t n = 0;
    expect_ok(qkv_plan_new(&plan, c->model->eng.model, c->tokens, (size_t)c->T, &err), &err,
              "plan");
    for (int i = 0; i < wanted || n == 0; i++) {
        draw_capture(c, c->captures[n], d);
        if (qkv_plan_add_capture(plan, c->captures[n], &err) == QKV_OK)
            c->captured[n] = c->captures[n], n++;
    }
    qkv_plan_free(plan);
}

/* ---- the whole ---- */

void walk_draw(walk_case *c, const walk_model *model, dice *d) {
    static const size_t budgets[] = {0, 0, 1, 1 << 16, 1 << 20};
    memset(c, 0, sizeof *c);
    c->model = model;
    draw_prompt(c, d);
    draw_variants(c, d);
    draw_captures(c, d);
    c->session = (qkv_session_options){.size = sizeof c->session,
                                       .n_threads = 1 + below(d, 3),
                                       .memory_budget = budgets[below(d, 5)]};
    c->history = (walk_history)below(d, WALK_HISTORIES);
    draw_capture(c, c->prepared, d);
    if (model->ref->family->encoder || !chance(d, 35)) return;
    c->n_prompt = chance(d, 20) ? c->T : 1 + below(d, c->T);
    if (c->T > 64 && c->n_prompt < c->T - 5) c->n_prompt = c->T - 5;
    c->recompute = chance(d, 15);
}

void walk_print(const walk_case *c) {
    static const char *const histories[] = {"a new session", "a session with prepared layers",
                                            "the plan for the second time",
                                            "a session that ran another prompt"};
    printf("  model %s, %d threads, memory budget %zu, %s\n  tokens", c->model->path,
           (int)c->session.n_threads, c->session.memory_budget, histories[c->history]);
    for (int t = 0; t < c->T; t++) printf("%c%d", t ? ',' : ' ', (int)c->tokens[t]);
    printf("\n");
    for (size_t v = 0; v < c->n_variants; v++) printf("  --variant '%s'\n", c->texts[v]);
    for (size_t i = 0; c->captured[i]; i++) printf("  --capture '%s'\n", c->captured[i]);
    if (c->n_prompt)
        printf("  and token by token after the first %d%s\n", c->n_prompt,
               c->recompute ? ", all computed anew" : "");
}
