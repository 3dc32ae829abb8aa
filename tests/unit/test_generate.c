/*
 * Token by token against passes over the whole text: every family of tests/vectors x every site x every
 * operation that can be had token by token; windows, long texts, split groups, texts that part.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/generate.h"
#include "reference/ref_other.h"
#include "run/run.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/expectations.h"
#include "support/judge.h"
#include "support/scratch.h"
#include "support/stretched.h"
#include "support/tiny_model.h"

enum { T = JUDGE_TOKENS, PROMPT = 4 };

/* Times the largest logit of the model, or 1. Softmax rounds by the number of keys, which is another one
 * token by token than in a pass over all. */
static const double bound = 1e-5;
/* A product of one token is rounded in another way than that of several; in tiny hybrids, the norm of what is
 * read from a state that holds little blows that up: by 40 at most, at single tokens. */
static double depth = 1;

static qkv_generator *make(const engine *e, const int32_t *tokens, size_t n_tokens,
                           const qkv_generator_options *options) {
    qkv_generator *gen = NULL;
    qkv_error err = {0};
    expect_ok(qkv_generator_new(&gen, e->model, tokens, n_tokens, options, &err), &err,
              "qkv_generator_new");
    return gen;
}

static void feed(engine *e, qkv_generator *gen, const int32_t *next) {
    qkv_error err = {0};
    expect_ok(qkv_session_feed(e->session, gen, next, &err), &err, "qkv_session_feed");
}

/* The same token for all variants. */
static void feed_all(engine *e, qkv_generator *gen, int32_t token) {
    int32_t next[REF_MAX_CASES + 1];
    for (size_t v = 0; v < qkv_generator_n_variants(gen); v++) next[v] = token;
    feed(e, gen, next);
}

/* The mean over all channels of the residual stream leaves the next norm nothing but rounding errors,
 * which it blows up; narrow bounds nearly so. Passes over texts of different lengths differ by as much. */
static double allowed(const char *edit) {
    const int narrows = strstr(edit, "=mean:dim") || strstr(edit, "=clamp");
    const int is_stream = strncmp(edit, "resid_", 6) == 0 || strncmp(edit + 1, "_in@", 4) == 0;
    if (is_stream && narrows) return 100 * bound;
    /* the same of the norm after attention, less so: the other heads remain */
    return strncmp(edit, "z@", 2) == 0 && strstr(edit, "=mean:dim") ? 3 * bound : bound;
}

static void expect_logits(const qkv_generator *gen, size_t variant, const float *expected,
                          size_t n_vocab, const char *what) {
    const float *logits = qkv_generator_logits(gen, variant);
    const float *plain = qkv_generator_logits(gen, 0);
    assert_non_null(logits);
    const difference d = compare_floats(logits, expected, n_vocab);
    const double scale = plain ? compare_floats(plain, plain, n_vocab).scale : d.scale;
    if (!(d.max <= depth * allowed(what) * fmax(fmax(d.scale, scale), 1)))
        fail_msg("%s: logits are off by %g (scale %g, %g)", what, d.max, d.scale, scale);
}

/* Feeds the tokens one by one, and compares with the rows of one pass over all of them. */
static void check_text(engine *e, const int32_t *tokens, size_t n_tokens, size_t n_prompt,
                       const char *const *variants) {
    static const char *const logits[] = {"logits", NULL};
    const size_t V = (size_t)e->info->n_vocab;
    size_t n_variants = 0;
    while (variants && variants[n_variants]) n_variants++;
    qkv_result *result = engine_execute(
        e, &(engine_run){
               .tokens = tokens, .n_tokens = n_tokens, .variants = variants, .captures = logits});
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = n_tokens - n_prompt;
    how.variants = variants;
    how.n_variants = n_variants;
    qkv_edit_data *data = engine_data(e, variants, tokens, n_tokens);
    int far_length;
    int32_t *far = ref_set_prompt(REF_FAR, tokens, (int)n_tokens, (int)V, &far_length);
    const size_t length = (size_t)far_length;
    how.data = data;
    how.source_names = (const char *const[]){"far"};
    how.source_tokens = (const int32_t *const[]){far};
    how.source_lengths = &length;
    how.n_sources = n_tokens == T; /* longer texts have no such edits */
    qkv_generator *gen = make(e, tokens, n_prompt, &how);
    qkv_edit_data_free(data);
    free(far);
    for (size_t t = n_prompt - 1; t < n_tokens; t++) {
        if (t == n_prompt - 1)
            feed(e, gen, NULL);
        else
            feed_all(e, gen, tokens[t]);
        for (size_t v = 0; v <= n_variants; v++) {
            const qkv_tensor full = engine_tensor(result, v, QKV_SITE_LOGITS, 0);
            char what[160];
            snprintf(what, sizeof what, "%s, token %zu", v ? variants[v - 1] : "baseline", t);
            expect_logits(gen, v, full.data + t * V, V, what);
        }
    }
    qkv_generator_free(gen);
    qkv_result_free(result);
}

/* ---- every family ---- */

static int keeps_hidden_weights(const ref_edit *e) {
    return e->op == REF_SCALE || e->op == REF_ZERO || e->op == REF_MEAN_HEAD ||
           e->op == REF_MEAN_OTHERS;
}

/* May the edit look at tokens that come later? */
static int looks_ahead(const ref_edit *e) {
    if (e->op == REF_MEAN_TOKEN || e->op == REF_QUANT_CHANNEL || e->op == REF_QUANT_TOKEN ||
        ref_is_late(e->op))
        return 1;
    if (e->op == REF_MEAN_DIM && ref_is_map(e->site)) return 1;
    if (e->site != QKV_SITE_PATTERN || keeps_hidden_weights(e)) return 0;
    const int last = e->cols.end ? e->cols.end - 1 : T - 1;
    return last > e->rows.begin;
}

static void expect_refused(const engine *e, const int32_t *tokens, const char *edit,
                           const char *message) {
    qkv_generator *gen = NULL;
    qkv_error err = {0};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = T - PROMPT;
    how.variants = &edit;
    how.n_variants = 1;
    qkv_edit_data *data = engine_data(e, (const char *const[]){edit, NULL}, tokens, T);
    how.data = data;
    assert_int_equal(qkv_generator_new(&gen, e->model, tokens, PROMPT, &how, &err), QKV_ERR_PLAN);
    qkv_edit_data_free(data);
    assert_null(gen);
    if (!strstr(err.message, message)) fail_msg("'%s': %s", edit, err.message);
}

/* Rows for tokens of the prompt, or for heads? */
static int is_unclear(const ref_edit *e) {
    return ref_is_input(e->site) && e->vector.width && e->vector.heads == PROMPT;
}

/* Two experts of the last layer have so nearly the same score at token 8 that noise of 3e-6 in layer 3 decides. */
static int ties_experts(const judge *j, const char *edit) {
    return j->ref->family->mixer == REF_DELTA_RUNS && strcmp(edit, "q_in@3=mean:dim") == 0;
}

static void check_cases(judge *j, const ref_cases *list) {
    const char *variants[REF_MAX_CASES + 1] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        /* see patches_of_the_prompt */
        if (list->edits[i].op == REF_PATCH || list->edits[i].op == REF_RESAMPLE) continue;
        if (ties_experts(j, list->text[i])) continue;
        if (list->edits[i].vector.tokens) /* has a row for each of T tokens, not of the prompt's */
            expect_refused(&j->eng, j->tokens, list->text[i], "the vector has shape");
        else if (is_unclear(&list->edits[i]))
            expect_refused(&j->eng, j->tokens, list->text[i], "tokens or heads");
        else if (!looks_ahead(&list->edits[i]))
            variants[n++] = list->text[i];
        else if (!(list->edits[i].site == QKV_SITE_PATTERN && list->edits[i].op == REF_CLAMP))
            expect_refused(&j->eng, j->tokens, list->text[i], "`recompute`");
    }
    assert_true(n > 20);
    check_text(&j->eng, j->tokens, T, PROMPT, variants);
}

static void check_family(const char *name) {
    judge j;
    judge_open(&j, vector_model(name), 1);
    depth = j.ref->family->mixer == REF_NO_MIXER ? 1 : 40;
    for (int turn = 0; turn < 3; turn++) {
        ref_cases *list = ref_make_cases_once(j.ref, T, turn);
        check_cases(&j, list);
        free(list);
    }
    depth = 1;
    judge_close(&j);
}

static void check_encoder(const char *name) {
    engine e;
    qkv_generator *gen = NULL;
    qkv_error err = {0};
    engine_open(&e, vector_model(name), 1);
    assert_int_equal(qkv_generator_new(&gen, e.model, (const int32_t[]){1, 2}, 2, NULL, &err),
                     QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "has no next token"));
    engine_close(&e);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void family_##name(void **state) {                                                      \
        (void)state;                                                                               \
        (flags) & GENERATES ? check_family(#name) : check_encoder(#name);                          \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

/* ---- kinds of models that the families do not have ---- */

static void other_models(void **state) {
    (void)state;
    static const tiny_options models[] = {{"llama", .n_kv_head = 2, .window = 4},
                                          {"llama", .n_kv_head = 1, .window = 3, .untied = 1},
                                          {"llama", .n_kv_head = 2, .head_dim = 12, .qkv_bias = 1},
                                          {"phi3", .n_kv_head = 2, .rope = TINY_ROPE_LONG}};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        judge j;
        judge_open(&j, tiny_model(&models[m], "generate.gguf"), 2);
        ref_cases *list = ref_make_cases(j.ref, T);
        check_cases(&j, list);
        free(list);
        judge_close(&j);
    }
}

/* Feeds the judge's tokens one by one, and compares with a pass over each beginning of the text. */
static void check_beginnings(judge *j, qkv_generator *gen, const char *const *variants) {
    static const char *const logits[] = {"logits[-1]", NULL};
    for (size_t n = PROMPT; n <= T; n++) {
        if (n == PROMPT)
            feed(&j->eng, gen, NULL);
        else
            feed_all(&j->eng, gen, j->tokens[n - 1]);
        qkv_result *full = engine_execute(&j->eng, &(engine_run){.tokens = j->tokens,
                                                                 .n_tokens = n,
                                                                 .variants = variants,
                                                                 .captures = logits,
                                                                 .source = j->other});
        for (size_t v = 0; v < qkv_generator_n_variants(gen); v++)
            expect_logits(gen, v, engine_tensor(full, v, QKV_SITE_LOGITS, 0).data, TINY_VOCAB,
                          v ? variants[v - 1] : "baseline");
        qkv_result_free(full);
    }
}

/* Past its first context such a model turns all keys by other angles, also those that edits take from other
 * runs. */
static void keys_turn_anew(void **state) {
    (void)state;
    enum { N = 4 };
    static const char *const variants[N + 1] = {"k@1.h2=scale:0.5", "resid_post@0[3:]=noise:0.1",
                                                "v@0=scale:2 + freeze:k_rot@1-2[:4]",
                                                "k_rot@1[1:4]=patch:src", NULL};
    judge j;
    judge_open(&j,
               tiny_model(&(tiny_options){"phi3", .n_kv_head = 2, .rope = TINY_ROPE_LONG,
                                          .rope_context = T - 2},
                          "turn.gguf"),
               1);
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = T - PROMPT;
    how.variants = variants;
    how.n_variants = N;
    how.source_names = (const char *const[]){"src"};
    how.source_tokens = (const int32_t *const[]){j.other};
    how.n_sources = 1;
    qkv_generator *gen = make(&j.eng, j.tokens, PROMPT, &how);
    check_beginnings(&j, gen, variants);
    qkv_generator_free(gen);
    judge_close(&j);
}

/* ---- long texts ---- */

enum { LONG = 1500 };

static void random_tokens(int32_t *tokens, size_t n, int32_t n_vocab) {
    dice d = {7};
    for (size_t i = 0; i < n; i++) tokens[i] = (int32_t)dice_below(&d, (uint64_t)n_vocab);
}

/* A window of 40 in a text of 1500: caches drop tokens several times. */
static void windows_drop_tokens(void **state) {
    (void)state;
    static const char *const variants[] = {
        "v@1.h1=scale:2", "scores@0[1200:]=scale:0.5", "pattern@1[1100:,1060:1070]=zero",
        "q_rot@0[1490:]=noise:0.3", "scores@*=mask:sink=4,recent=16",
        /* in the first layer: later ones have scores with other last
                                            * bits, and sums that are nearly equal */
        "scores@0=keep:h2o,budget=24,recent=8",
        "scores@1=keep:snapkv,budget=24,window=8,prompt=1465", NULL};
    static int32_t tokens[LONG];
    engine e;
    engine_open(&e,
                tiny_model(&(tiny_options){"llama", .n_kv_head = 2, .window = 40, .n_ctx = LONG},
                           "window.gguf"),
                2);
    random_tokens(tokens, LONG, e.info->n_vocab);
    check_text(&e, tokens, LONG, LONG - 30, variants);
    check_text(&e, tokens, 1050, 3, variants + 7);
    /* and weight on keys outside the window */
    static const char *const outside[] = {"pattern@1[1300:,5:8]=set:0.25", NULL};
    check_text(&e, tokens, LONG, 1490, outside);
    engine_close(&e);
}

/* Chunks of 40: a cache drops what was before the chunk; temperatures grow. */
static void chunks_drop_tokens(void **state) {
    (void)state;
    static const char *const variants[] = {"v@1.h1=scale:2", "q_rot@0[1490:]=noise:0.3",
                                           "pattern@1[1100:,1085:1090]=zero", "q@3=scale:0.5",
                                           NULL};
    static const model_key keys[] = {{"attention.chunk_size", MODEL_KEY_INT, 40},
                                     {"attention.temperature_length", MODEL_KEY_INT, 100},
                                     {"context_length", MODEL_KEY_INT, LONG}};
    static int32_t tokens[LONG];
    engine e;
    engine_open(&e, keyed_model(vector_model("llama4"), keys, 3), 2);
    random_tokens(tokens, LONG, e.info->n_vocab);
    check_text(&e, tokens, LONG, LONG - 30, variants);
    check_text(&e, tokens, 1050, 3, variants + 3);
    engine_close(&e);
}

static size_t memory_of(const engine *e, size_t max_new) {
    static const int32_t tokens[] = {1, 2, 3};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = max_new;
    qkv_generator *gen = make(e, tokens, 3, &how);
    const size_t size = qkv_generator_memory(gen);
    qkv_generator_free(gen);
    return size;
}

static void memory_ends_at_the_window(void **state) {
    (void)state;
    engine e;
    engine_open(&e,
                tiny_model(&(tiny_options){"llama", .n_kv_head = 2, .window = 40, .n_ctx = 16384},
                           "memory.gguf"),
                1);
    assert_int_equal(memory_of(&e, 2000), memory_of(&e, 16000));
    assert_true(memory_of(&e, 2000) > memory_of(&e, 100));
    engine_close(&e);
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_ctx = 16384}, "memory.gguf"), 1);
    assert_true(memory_of(&e, 16000) > 7 * memory_of(&e, 2000));
    engine_close(&e);
}

/* The memory budget decides how a prompt is cut, and shows in no bit. */
static void chunks_do_not_show(void **state) {
    (void)state;
    /* what the last layer keeps depends on all rows, also of parts whose logits are not asked for */
    enum { N = 4 };
    static const char *const variants[N - 1] = {"k@1.h1=scale:2", "z@0[700:]=add:0.1",
                                                "scores@2=keep:h2o,budget=24,recent=8"};
    static int32_t tokens[LONG];
    static float first[N][TINY_VOCAB];
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){"llama", .n_kv_head = 2, .n_ctx = LONG}, "cut.gguf"),
                1);
    random_tokens(tokens, LONG, e.info->n_vocab);
    for (int turn = 0; turn < 2; turn++) {
        qkv_session_options small = QKV_SESSION_OPTIONS_INIT;
        small.n_threads = 1 + turn;
        small.memory_budget = turn ? 1 << 20 : 0;
        engine_renew(&e, &small);
        qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
        how.variants = variants;
        how.n_variants = N - 1;
        how.max_new = 1;
        qkv_generator *gen = make(&e, tokens, 1200, &how);
        feed(&e, gen, NULL);
        feed_all(&e, gen, 5);
        for (size_t v = 0; v < N; v++) {
            const float *logits = qkv_generator_logits(gen, v);
            if (turn)
                assert_memory_equal(logits, first[v], sizeof first[v]);
            else
                memcpy(first[v], logits, sizeof first[v]);
        }
        qkv_generator_free(gen);
    }
    engine_close(&e);
}

/* ---- texts that part ---- */

/* Each variant has a text of its own from some token on; some end. */
static void texts_part(void **state) {
    (void)state;
    static const char *const variants[] = {"z@1.h0=zero", "k@0.h1=scale:3", "logits=scale:0.5",
                                           "v@1.h3=add:0.2"};
    static const char *const logits[] = {"logits[-1]", NULL};
    enum { N = 5, STEPS = 5 };
    /* Which token each variant gets at each step; -1: it ends. The baseline ends before others. */
    static const int32_t texts[STEPS][N] = {
        {5, 5, 5, 5, 5}, {6, 6, 9, 6, 6}, {7, 8, 7, 7, 7}, {-1, 4, 4, 4, -1}, {-1, 3, -1, 2, -1}};
    judge j;
    judge_open(&j, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "part.gguf"), 1);
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = STEPS;
    how.variants = variants;
    how.n_variants = N - 1;
    qkv_generator *gen = make(&j.eng, j.tokens, PROMPT, &how);
    feed(&j.eng, gen, NULL);
    for (int step = 0; step < STEPS; step++) {
        feed(&j.eng, gen, texts[step]);
        for (size_t v = 0; v < N; v++) {
            size_t n;
            const int32_t *tokens = qkv_generator_tokens(gen, v, &n);
            if (texts[step][v] < 0) {
                assert_null(qkv_generator_logits(gen, v));
                continue;
            }
            assert_int_equal(n, PROMPT + step + 1);
            assert_int_equal(tokens[n - 1], texts[step][v]);
            qkv_result *full = engine_execute(
                &j.eng,
                &(engine_run){.tokens = tokens,
                              .n_tokens = n,
                              .variants = (const char *const[]){v ? variants[v - 1] : NULL, NULL},
                              .captures = logits});
            expect_logits(gen, v, engine_tensor(full, v > 0, QKV_SITE_LOGITS, 0).data, TINY_VOCAB,
                          v ? variants[v - 1] : "baseline");
            qkv_result_free(full);
        }
    }
    qkv_generator_free(gen);
    judge_close(&j);
}

/* ---- which tokens edits act on ---- */

static void check_same_effect(judge *j, const char *edit, int32_t edit_tokens, const char *full) {
    static const char *const logits[] = {"logits[-1]", NULL};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = T - PROMPT;
    how.variants = &edit;
    how.n_variants = 1;
    how.edit_tokens = edit_tokens;
    qkv_generator *gen = make(&j->eng, j->tokens, PROMPT, &how);
    feed(&j->eng, gen, NULL);
    for (int t = PROMPT; t < T; t++) feed_all(&j->eng, gen, j->tokens[t]);
    qkv_result *result = judge_run(j, (const char *const[]){full, NULL}, logits);
    expect_logits(gen, 1, engine_tensor(result, 1, QKV_SITE_LOGITS, 0).data,
                  (size_t)j->eng.info->n_vocab, edit);
    qkv_result_free(result);
    /* and the plan of the text says the same */
    qkv_plan *plan = NULL;
    qkv_error err = {0};
    expect_ok(qkv_generator_plan(gen, &plan, 1, &err), &err, "qkv_generator_plan");
    expect_ok(qkv_plan_add_capture(plan, "logits[-1]", &err), &err, "capture");
    expect_ok(qkv_session_run(j->eng.session, &result, plan, &err), &err, "run");
    expect_logits(gen, 1, engine_tensor(result, 1, QKV_SITE_LOGITS, 0).data,
                  (size_t)j->eng.info->n_vocab, edit);
    assert_int_equal(qkv_generator_edit_changed(gen, 1, 0), qkv_result_edit_changed(result, 1, 0));
    qkv_result_free(result);
    qkv_plan_free(plan);
    qkv_generator_free(gen);
}

static void edits_act_on_some_tokens(void **state) {
    (void)state;
    judge j;
    judge_open(&j, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "some.gguf"), 1);
    check_same_effect(&j, "v@0=scale:2", QKV_EDIT_PROMPT, "v@0[:4]=scale:2");
    check_same_effect(&j, "v@0=scale:2", QKV_EDIT_NEW, "v@0[4:]=scale:2");
    check_same_effect(&j, "k@1.h2[2:]=scale:2", QKV_EDIT_PROMPT, "k@1.h2[2:4]=scale:2");
    check_same_effect(&j, "scores@0[:,0]=zero", QKV_EDIT_NEW, "scores@0[4:,0]=zero");
    check_same_effect(&j, "resid_pre@0[-1]=scale:3", QKV_EDIT_ALL, "resid_pre@0[3]=scale:3");
    check_same_effect(&j, "z@1[:-2]=zero", QKV_EDIT_ALL, "z@1[:2]=zero");
    check_same_effect(&j, "pattern@0[6,1:3]=set:0.25", QKV_EDIT_ALL, "pattern@0[6,1:3]=set:0.25");
    judge_close(&j);
}

/* ---- patches ---- */

/* The plan of the whole text gives the same as `full` on all of it. */
static void check_plan(judge *j, const qkv_generator *gen, const float *expected,
                       const char *what) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    expect_ok(qkv_generator_plan(gen, &plan, 1, &err), &err, "qkv_generator_plan");
    expect_ok(qkv_plan_add_capture(plan, "logits", &err), &err, "qkv_plan_add_capture");
    expect_ok(qkv_session_run(j->eng.session, &result, plan, &err), &err, what);
    const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    const size_t n = (size_t)T * (size_t)j->eng.info->n_vocab;
    assert_int_equal(t.shape[0], T);
    const difference d = compare_floats(t.data, expected, n);
    if (!(d.max <= bound * fmax(d.scale, 1)))
        fail_msg("%s: logits of the plan are off by %g", what, d.max);
    qkv_result_free(result);
    qkv_plan_free(plan);
}

static void check_patch(judge *j, qkv_site site) {
    static const char *const logits[] = {"logits", NULL}, *const names[] = {"src"};
    const int32_t *sources[] = {j->other};
    const char *name = qkv_site_name(site);
    char edit[64], full[64];
    const char *layer = qkv_site_has_layer(site) ? "@1" : "";
    snprintf(edit, sizeof edit, "%s%s=patch:src", name, layer);
    snprintf(full, sizeof full, "%s%s[:%d]=patch:src", name, layer, PROMPT);
    const char *variant = edit;
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = T - PROMPT;
    how.variants = &variant;
    how.n_variants = 1;
    how.source_names = names;
    how.source_tokens = sources;
    how.n_sources = 1;
    qkv_generator *gen = NULL;
    qkv_error err = {0};
    assert_int_equal(qkv_generator_new(&gen, j->eng.model, j->tokens, PROMPT, &how, &err),
                     QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "new tokens"));
    how.edit_tokens = QKV_EDIT_PROMPT;
    gen = make(&j->eng, j->tokens, PROMPT, &how);
    qkv_result *result = judge_run(j, (const char *const[]){full, NULL}, logits);
    const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    const size_t V = (size_t)j->eng.info->n_vocab;
    feed(&j->eng, gen, NULL);
    for (size_t n = PROMPT; n < T; n++) {
        expect_logits(gen, 1, t.data + (n - 1) * V, V, full);
        feed_all(&j->eng, gen, j->tokens[n]);
    }
    expect_logits(gen, 1, t.data + (T - 1) * V, V, full);
    check_plan(j, gen, t.data, full);
    qkv_result_free(result);
    qkv_generator_free(gen);
}

static void patches_of_the_prompt(void **state) {
    (void)state;
    static const tiny_options models[] = {{"llama", .n_kv_head = 2, .window = 3},
                                          {.family = "gpt2"}};
    for (size_t m = 0; m < 2; m++) {
        judge j;
        judge_open(&j, tiny_model(&models[m], "patch.gguf"), 1);
        for (int site = 0; site < QKV_SITE_COUNT; site++)
            if (ref_has_site(j.ref, (qkv_site)site)) check_patch(&j, (qkv_site)site);
        judge_close(&j);
    }
}

/* ---- the text as a whole ---- */

/* Token by token it is what passes over the whole text say. */
static void continuing(void **state) {
    (void)state;
    static const char *const logits[] = {"logits[-1]", NULL};
    judge j;
    judge_open(&j, tiny_model(&(tiny_options){.family = "llama"}, "continue.gguf"), 1);
    const size_t V = (size_t)j.eng.info->n_vocab;
    int32_t *text = NULL;
    size_t n = 0;
    qkv_error err = {0};
    expect_ok(qkv_session_continue(j.eng.session, j.tokens, PROMPT, T - PROMPT, &text, &n, &err),
              &err, "qkv_session_continue");
    assert_true(n > PROMPT);
    assert_memory_equal(text, j.tokens, PROMPT * sizeof *text);
    for (size_t i = PROMPT; i <= n; i++) {
        qkv_result *result = engine_execute(
            &j.eng, &(engine_run){.tokens = text, .n_tokens = i, .captures = logits});
        const qkv_tensor t = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
        const int32_t next = qkv_sample_greedy(t.data, V);
        if (i < n)
            assert_int_equal(next, text[i]);
        else
            assert_true(n == T || qkv_is_end_token(j.eng.model, next));
        qkv_result_free(result);
    }
    qkv_tokens_free(text);
    judge_close(&j);
}

/* ---- recomputing ---- */

static void recomputing(void **state) {
    (void)state;
    static const char *const variants[] = {"v@0=mean:token", "pattern@1=mean:dim",
                                           "pattern@0=add:0.1", "z@1.h1=zero", NULL};
    judge j;
    judge_open(&j, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "again.gguf"), 1);
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = T - PROMPT;
    how.variants = variants;
    how.n_variants = 4;
    how.recompute = 1;
    qkv_generator *gen = make(&j.eng, j.tokens, PROMPT, &how);
    assert_int_equal(qkv_generator_memory(gen), 0);
    check_beginnings(&j, gen, variants);
    qkv_generator_free(gen);
    judge_close(&j);
}

/* ---- mistakes ---- */

static void mistakes(void **state) {
    (void)state;
    judge j;
    qkv_generator *gen = NULL;
    qkv_error err = {0};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    judge_open(&j, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "wrong.gguf"), 1);
    expect_refused(&j.eng, j.tokens, "v@0[9]=zero", "the prompt with all new tokens");
    expect_refused(&j.eng, j.tokens, "v@0[-5]=zero", "-5 is out of range");
    how.max_new = (size_t)j.eng.info->n_ctx - 3;
    assert_int_equal(qkv_generator_new(&gen, j.eng.model, j.tokens, 4, &how, &err), QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "context"));
    how.max_new = SIZE_MAX;
    assert_int_equal(qkv_generator_new(&gen, j.eng.model, j.tokens, 4, &how, &err), QKV_ERR_PLAN);
    how.max_new = 1;
    assert_int_equal(qkv_generator_new(&gen, j.eng.model, j.tokens, 0, &how, &err), QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "empty"));

    gen = make(&j.eng, j.tokens, 4, &how);
    const int32_t next[] = {3}, bad[] = {TINY_VOCAB}, none[] = {QKV_NO_NEXT};
    assert_int_equal(qkv_session_feed(j.eng.session, gen, next, &err), QKV_ERR_ARGUMENT);
    feed(&j.eng, gen, NULL);
    assert_int_equal(qkv_session_feed(j.eng.session, gen, NULL, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_session_feed(j.eng.session, gen, bad, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_session_feed(j.eng.session, gen, none, &err), QKV_ERR_ARGUMENT);
    feed(&j.eng, gen, next);
    assert_int_equal(qkv_session_feed(j.eng.session, gen, next, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "max_new"));
    qkv_generator_free(gen);

    /* A number that is too large says whose it is and where; the next feed is as if nothing was. */
    const char *huge = "resid_pre@0[5]=set:1e30";
    how = (qkv_generator_options)QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = 3;
    how.variants = &huge;
    how.n_variants = 1;
    gen = make(&j.eng, j.tokens, 4, &how);
    feed(&j.eng, gen, NULL);
    feed_all(&j.eng, gen, 3);
    assert_int_equal(qkv_session_feed(j.eng.session, gen, (const int32_t[]){4, 4}, &err),
                     QKV_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "variant 1"));
    assert_non_null(strstr(err.message, "token 5"));
    feed(&j.eng, gen, (const int32_t[]){4, QKV_NO_NEXT});
    assert_non_null(qkv_generator_logits(gen, 0));
    qkv_generator_free(gen);
    judge_close(&j);
}

static void explanations(void **state) {
    (void)state;
    static const char *const variants[] = {"z@1.h0=zero", "q@0=zero", "logits=scale:2"};
    judge j;
    char *text = NULL;
    qkv_error err = {0};
    judge_open(&j, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "says.gguf"), 1);
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = 3;
    how.variants = variants;
    how.n_variants = 3;
    qkv_generator *gen = make(&j.eng, j.tokens, 4, &how);
    expect_ok(qkv_generator_explain(gen, &text, &err), &err, "explain");
    assert_non_null(strstr(text, "4 tokens of the prompt, up to 3 new ones, 3 variants"));
    assert_non_null(strstr(text, "layers 0 to 0 are the baseline's"));
    assert_non_null(strstr(text, "shares no layer"));
    assert_non_null(strstr(text, "all layers are the baseline's; 0 MB"));
    qkv_text_free(text);
    qkv_generator_free(gen);
    judge_close(&j);
}

int main(void) {
#define FAMILY_ENTRY(name, flags) cmocka_unit_test(family_##name),
    const struct CMUnitTest tests[] = {
        VECTOR_LIST(FAMILY_ENTRY) cmocka_unit_test(other_models),
        cmocka_unit_test(keys_turn_anew),
        cmocka_unit_test(windows_drop_tokens),
        cmocka_unit_test(chunks_drop_tokens),
        cmocka_unit_test(memory_ends_at_the_window),
        cmocka_unit_test(chunks_do_not_show),
        cmocka_unit_test(texts_part),
        cmocka_unit_test(edits_act_on_some_tokens),
        cmocka_unit_test(patches_of_the_prompt),
        cmocka_unit_test(continuing),
        cmocka_unit_test(recomputing),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(explanations),
    };
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
