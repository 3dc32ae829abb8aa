/*
 * Edits that take values of other prompts: means over a set, prompts drawn from it, and tokens of a prompt
 * of another length. That the values are right at every site is shown by test_conformance.c,
 * test_families.c and test_generate.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "qkv/qkv.h"
#include "run/run.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { T = 5, N = 4 };

static const int32_t own[T] = {1, 20, 30, 40, 50};
static const int32_t longer[7] = {1, 21, 31, 41, 51, 61, 71};
static const int32_t other[T] = {1, 22, 32, 42, 52};
static const int32_t begins_alike[6] = {1, 20, 30, 40, 50, 60};
static const int32_t shorter[3] = {1, 23, 33};
static const int32_t unknown[2] = {1, TINY_VOCAB};

static engine eng;
static qkv_error err;

typedef struct set {
    const int32_t *tokens[N];
    size_t lengths[N];
    size_t n;
} set;

static const set usual = {{longer, other, begins_alike, shorter}, {7, T, 6, 3}, N};

static qkv_plan *plan_with(const set *s, const char *const *variants, const char *capture) {
    qkv_plan *plan = NULL;
    qkv_edit_data *data = NULL;
    OK(qkv_edit_data_new(&data, &err));
    if (s) OK(qkv_edit_data_set_prompts(data, s->tokens, s->lengths, s->n, &err));
    OK(qkv_plan_new(&plan, eng.model, own, T, &err));
    OK(qkv_plan_set_edit_data(plan, data, &err));
    qkv_edit_data_free(data);
    for (size_t i = 0; variants && variants[i]; i++)
        OK(qkv_plan_add_variant(plan, variants[i], NULL, &err));
    if (capture) OK(qkv_plan_add_capture(plan, capture, &err));
    return plan;
}

static qkv_result *run_in(qkv_session *session, const set *s, const char *const *variants,
                          const char *capture) {
    qkv_plan *plan = plan_with(s, variants, capture);
    qkv_result *result = NULL;
    OK(qkv_session_run(session, &result, plan, &err));
    qkv_plan_free(plan);
    return result;
}

static void expect_refused(const set *s, const char *edit, const char *message) {
    qkv_plan *plan = plan_with(s, NULL, NULL);
    err = (qkv_error){0};
    assert_int_equal(qkv_plan_add_variant(plan, edit, NULL, &err), QKV_ERR_PLAN);
    if (!strstr(err.message, message)) fail_msg("'%s': %s", edit, err.message);
    assert_null(strchr(err.message, '\n'));
    assert_null(qkv_plan_source(plan, 0, NULL));
    qkv_plan_free(plan);
}

/* ---- what is refused ---- */

static void mistakes(void **state) {
    (void)state;
    static const set one = {{other}, {T}, 1}, alike = {{begins_alike, own}, {6, T}, 2};
    static const set strange = {{other, unknown}, {T, 2}, 2}, small = {{shorter, other}, {3, 4}, 2};
    expect_refused(NULL, "z@1=mean:set", "there is no set of prompts here");
    expect_refused(NULL, "z@1=patch:resample", "there is no set of prompts here");
    expect_refused(&one, "z@1=mean:set", "a set of one prompt has no mean");
    expect_refused(&one, "z@1=patch:resample", "a set of one prompt has nothing to draw from");
    expect_refused(&strange, "z@1=mean:set", "prompt 1 of the set: token id");
    expect_refused(&strange, "z@1=patch:resample", "prompt 1 of the set: token id");
    expect_refused(&small, "z@1=mean:set,per=position",
                   "no prompt of the set has token 4; the "
                   "longest has tokens 0 to 3");
    expect_refused(&small, "z@1[-1]=mean:set,per=position", "no prompt of the set has token 4");
    expect_refused(&small, "z@1=patch:resample",
                   "the prompt has 5 tokens and the others must have "
                   "at least as many; those of the set have 3 to 4");
    expect_refused(&alike, "z@1=patch:resample", "no other prompt of the set can be taken");
    expect_refused(&usual, "pattern@1=mean:set", "no mean over prompts of different lengths");
    expect_refused(&usual, "scores@1=mean:set,per=position", "no mean over prompts");
    expect_refused(&usual, "z@1=patch:resample + z@1.h0=zero", "overlap"); /* drawn, and dropped */
    qkv_plan *plan = plan_with(&small, NULL, NULL);
    OK(qkv_plan_add_variant(plan, "z@1[:4]=mean:set,per=position", NULL, &err));
    OK(qkv_plan_add_variant(plan, "z@1=mean:set", NULL, &err));
    qkv_plan_free(plan);
}

/* ---- means ---- */

static const char *const means[] = {"v@0=mean:set", "resid_post@1[1:4]=mean:set,per=position",
                                    "q@1.h2=mean:set,per=position + logits=mean:set", NULL};

/* A mean is the same to the last bit whatever else happens. */
static void means_are_exact(void **state) {
    (void)state;
    qkv_result *first = run_in(eng.session, &usual, means, "logits");
    static const struct {
        int32_t threads;
        size_t memory;
    } settings[] = {{1, 0}, {3, 0}, {2, 1}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        qkv_session_options how = QKV_SESSION_OPTIONS_INIT;
        qkv_session *session = NULL;
        how.n_threads = settings[i].threads;
        how.memory_budget = settings[i].memory;
        OK(qkv_session_new(&session, eng.model, &how, &err));
        for (size_t v = 0; v < 3; v++) { /* one by one, in an order of their own */
            qkv_result *alone =
                run_in(session, &usual, (const char *const[]){means[2 - v], NULL}, "logits");
            const qkv_tensor a = engine_tensor(first, 3 - v, QKV_SITE_LOGITS, 0);
            const qkv_tensor b = engine_tensor(alone, 1, QKV_SITE_LOGITS, 0);
            if (!same_bits(a.data, b.data, tensor_count(&a))) fail_msg("%s", means[2 - v]);
            qkv_result_free(alone);
        }
        qkv_session_free(session);
    }
    assert_non_null(strstr(qkv_result_edit_note(first, 1, 0), "mean over 21 tokens of 4 prompts"));
    qkv_result_free(first);
}

static uint64_t passes_of(const qkv_result *result) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    qkv_result_get_stats(result, &stats);
    return stats.n_passes;
}

/* The session computes the means once, and again for another set or other places. */
static void means_are_kept(void **state) {
    (void)state;
    static const set two = {{longer, other}, {7, T}, 2};
    static const char *const edit[] = {"v@0=mean:set", NULL}, *const more[] = {"v@0-1=mean:set",
                                                                               NULL};
    const struct {
        const set *s;
        const char *const *edits;
        uint64_t passes; /* of the set */
    } runs[] = {{&usual, edit, 4}, {&usual, edit, 0}, {&usual, more, 4}, {&usual, edit, 0},
                {&two, edit, 2},   {&two, edit, 0},   {&usual, edit, 4}};
    float kept[T * TINY_VOCAB];
    engine_renew(&eng, NULL);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        qkv_plan *plan = plan_with(runs[i].s, runs[i].edits, "logits");
        qkv_run_stats expected = QKV_RUN_STATS_INIT;
        qkv_result *result = NULL;
        OK(qkv_session_estimate(eng.session, &expected, plan, &err));
        OK(qkv_session_run(eng.session, &result, plan, &err));
        assert_int_equal(passes_of(result), expected.n_passes);
        assert_int_equal(passes_of(result), runs[i].passes + 2);
        const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
        const int same = i > 0 && same_bits(t.data, kept, tensor_count(&t));
        if (i == 0) memcpy(kept, t.data, sizeof kept);
        if (i > 0 && runs[i].edits == edit) assert_int_equal(same, runs[i].s == &usual);
        qkv_result_free(result);
        qkv_plan_free(plan);
    }
}

static void explained(void **state) {
    (void)state;
    char *text = NULL;
    engine_renew(&eng, NULL);
    qkv_plan *plan = plan_with(&usual, means, "logits");
    OK(qkv_session_explain(eng.session, &text, plan, &err));
    if (!strstr(text, "set of 4 prompts, 21 tokens: each by itself; keeps the mean of 4 tensors; "))
        fail_msg("%s", text);
    assert_null(strstr(text, "other prompt"));
    qkv_text_free(text);
    qkv_plan_free(plan);
}

/* More positions than a plan before needed. */
static void positions_grow(void **state) {
    (void)state;
    static const char *const edit[] = {"resid_post@1=mean:set,per=position", NULL};
    engine_renew(&eng, NULL);
    qkv_plan *plan = NULL;
    qkv_edit_data *data = NULL;
    qkv_result *result = NULL;
    OK(qkv_edit_data_new(&data, &err));
    OK(qkv_edit_data_set_prompts(data, usual.tokens, usual.lengths, N, &err));
    for (size_t n = 1; n <= 7; n += 2) {
        qkv_result *fresh = NULL;
        OK(qkv_plan_new(&plan, eng.model, longer, n, &err));
        OK(qkv_plan_set_edit_data(plan, data, &err));
        OK(qkv_plan_add_variant(plan, edit[0], NULL, &err));
        OK(qkv_plan_add_capture(plan, "logits", &err));
        OK(qkv_session_run(eng.session, &result, plan, &err));
        qkv_session *session = NULL;
        OK(qkv_session_new(&session, eng.model, NULL, &err));
        OK(qkv_session_run(session, &fresh, plan, &err));
        const qkv_tensor a = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
        const qkv_tensor b = engine_tensor(fresh, 1, QKV_SITE_LOGITS, 0);
        assert_true(same_bits(a.data, b.data, tensor_count(&a)));
        qkv_result_free(fresh);
        qkv_result_free(result);
        qkv_session_free(session);
        qkv_plan_free(plan);
    }
    qkv_edit_data_free(data);
}

/* ---- drawing ---- */

/* Which prompt a seed draws is the same everywhere, and the prompt itself is never drawn. */
static void draws(void **state) {
    (void)state;
    static const int expected[] = {0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0};
    size_t n_first = 0;
    for (int seed = 0; seed < 64; seed++) {
        char edit[64], name[16];
        const int32_t *tokens = NULL;
        snprintf(edit, sizeof edit, "resid_pre@1=patch:resample,seed=%d", seed);
        qkv_plan *plan = plan_with(&usual, (const char *const[]){edit, edit, NULL}, NULL);
        const char *drawn = qkv_plan_source(plan, 0, &tokens);
        assert_non_null(drawn);
        assert_int_equal(qkv_plan_source_length(plan, 0), T);
        assert_null(qkv_plan_source(plan, 1, NULL)); /* the same one for both */
        const int chosen = drawn[4] - '0';
        snprintf(name, sizeof name, "set:%d", chosen);
        assert_string_equal(drawn, name);
        assert_true(chosen == 0 || chosen == 1);
        assert_memory_equal(tokens, usual.tokens[chosen], T * sizeof *tokens);
        if (seed < (int)(sizeof expected / sizeof *expected))
            assert_int_equal(chosen, expected[seed]);
        n_first += chosen == 0;
        qkv_plan_free(plan);
    }
    assert_in_range(n_first, 16, 48);
}

/* It is the patch from the drawn prompt's beginning, bit for bit. */
static void drawn_values(void **state) {
    (void)state;
    for (int seed = 0; seed < 4; seed++) {
        char edit[64];
        const int32_t *tokens = NULL;
        snprintf(edit, sizeof edit, "pattern@1=patch:resample,seed=%d", seed);
        qkv_plan *plan = plan_with(&usual, (const char *const[]){edit, NULL}, "logits");
        qkv_plan_source(plan, 0, &tokens);
        qkv_plan *named = plan_with(NULL, NULL, "logits");
        OK(qkv_plan_add_source(named, "src", tokens, T, &err));
        OK(qkv_plan_add_variant(named, "pattern@1=patch:src", NULL, &err));
        qkv_result *a = NULL, *b = NULL;
        OK(qkv_session_run(eng.session, &a, plan, &err));
        OK(qkv_session_run(eng.session, &b, named, &err));
        const qkv_tensor x = engine_tensor(a, 1, QKV_SITE_LOGITS, 0);
        const qkv_tensor y = engine_tensor(b, 1, QKV_SITE_LOGITS, 0);
        assert_true(same_bits(x.data, y.data, tensor_count(&x)));
        char note[32];
        snprintf(note, sizeof note, "drew prompt %d of", tokens == NULL ? 9 : tokens[1] == 22);
        if (!strstr(qkv_result_edit_note(a, 1, 0), note)) fail_msg("%s", note);
        qkv_result_free(a);
        qkv_result_free(b);
        qkv_plan_free(plan);
        qkv_plan_free(named);
    }
}

/* ---- generation ---- */

static void expect_row(const qkv_generator *gen, const qkv_result *result, size_t row) {
    const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_LOGITS, 0);
    const difference d =
        compare_floats(qkv_generator_logits(gen, 1), t.data + row * TINY_VOCAB, TINY_VOCAB);
    if (d.max > 1e-5 * (d.scale > 1 ? d.scale : 1)) fail_msg("off by %g at %zu", d.max, row);
}

static void generation(void **state) {
    (void)state;
    enum { PROMPT = 3 };
    static const char *const edits[] = {"z@1[:3]=patch:resample,seed=3", "z@1[4,0<-6,2]=patch:far"};
    for (size_t i = 0; i < 2; i++) {
        qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
        qkv_generator *gen = NULL;
        qkv_edit_data *data = NULL;
        qkv_plan *plan = NULL, *whole = NULL;
        qkv_result *result = NULL;
        static const size_t length = 7;
        OK(qkv_edit_data_new(&data, &err));
        OK(qkv_edit_data_set_prompts(data, usual.tokens, usual.lengths, N, &err));
        how.max_new = T - PROMPT;
        how.variants = &edits[i];
        how.n_variants = 1;
        how.data = data;
        how.source_names = (const char *const[]){"far"};
        how.source_tokens = (const int32_t *const[]){longer};
        how.source_lengths = &length;
        how.n_sources = 1;
        OK(qkv_generator_new(&gen, eng.model, own, PROMPT, &how, &err));
        OK(qkv_session_feed(eng.session, gen, NULL, &err));
        for (size_t t = PROMPT; t < T; t++)
            OK(qkv_session_feed(eng.session, gen, (const int32_t[]){own[t], own[t]}, &err));
        /* The text as a whole has the same edit, and draws the same prompt. */
        OK(qkv_generator_plan(gen, &whole, 1, &err));
        OK(qkv_plan_add_capture(whole, "logits", &err));
        OK(qkv_session_run(eng.session, &result, whole, &err));
        expect_row(gen, result, T - 1);
        assert_true(qkv_result_edit_changed(result, 1, 0) > 0);
        qkv_result_free(result);
        how.recompute = 1;
        assert_int_equal(
            qkv_generator_new(&(qkv_generator *){NULL}, eng.model, own, PROMPT, &how, &err),
            QKV_ERR_PLAN);
        assert_non_null(strstr(err.message, "patching needs no `recompute`"));
        qkv_generator_free(gen);
        qkv_plan_free(plan);
        qkv_plan_free(whole);
        qkv_edit_data_free(data);
    }
}

/* Means work token by token and anew for every token; positions must be there for new tokens too. */
static void generation_of_means(void **state) {
    (void)state;
    static const char *const edit = "z@0-1=mean:set,per=position";
    for (int recompute = 0; recompute < 2; recompute++) {
        qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
        qkv_generator *gen = NULL;
        qkv_edit_data *data = NULL;
        OK(qkv_edit_data_new(&data, &err));
        OK(qkv_edit_data_set_prompts(data, usual.tokens, usual.lengths, N, &err));
        how.max_new = 2;
        how.variants = &edit;
        how.n_variants = 1;
        how.data = data;
        how.recompute = recompute;
        OK(qkv_generator_new(&gen, eng.model, own, 3, &how, &err));
        OK(qkv_session_feed(eng.session, gen, NULL, &err));
        OK(qkv_session_feed(eng.session, gen, (const int32_t[]){own[3], own[3]}, &err));
        OK(qkv_session_feed(eng.session, gen, (const int32_t[]){own[4], own[4]}, &err));
        qkv_result *result =
            run_in(eng.session, &usual, (const char *const[]){edit, NULL}, "logits");
        expect_row(gen, result, T - 1);
        qkv_result_free(result);
        qkv_generator_free(gen);
        gen = NULL;
        how.max_new = 10;
        assert_int_equal(qkv_generator_new(&gen, eng.model, own, 3, &how, &err), QKV_ERR_PLAN);
        assert_non_null(strstr(err.message, "no prompt of the set has token 7"));
        qkv_edit_data_free(data);
    }
}

static int open_model(void **state) {
    (void)state;
    engine_open(&eng, tiny_model(&(tiny_options){"llama", .n_kv_head = 2}, "sets.gguf"), 2);
    return 0;
}

static int close_model(void **state) {
    engine_close(&eng);
    return scratch_clean(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes),
        cmocka_unit_test(means_are_exact),
        cmocka_unit_test(means_are_kept),
        cmocka_unit_test(explained),
        cmocka_unit_test(positions_grow),
        cmocka_unit_test(draws),
        cmocka_unit_test(drawn_values),
        cmocka_unit_test(generation),
        cmocka_unit_test(generation_of_means),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
