/*
 * How far work is, as a callback is told: of one kind of thing from the beginning to the end, never of less
 * than before, of all of it at the end, and in between by what is done.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/steps.h"
#define QKV_UNSTABLE
#include "model/synthetic.h"
#include "qkv/qkv.h"
#include "run/run.h"
#include "run/session.h"
#include "study/figure.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "support/study_maker.h"
#include "sweep/sweep.h"

enum { T = 24, N_PROMPTS = 4, MOST = 1 << 16 };

/* Everything that the callback was told. */
typedef struct record {
    double shares[MOST];
    int n, is_over;
    const char *what;
    double total;
} record;

static record told;
static engine e, other;
static int32_t tokens[N_PROMPTS][T];
static qkv_prompt prompts[N_PROMPTS];
static const qkv_session_options one_thread = {.size = sizeof one_thread, .n_threads = 1};

static int step(void *user, const char *what, double done, double total) {
    record *r = user;
    if (r->is_over) fail_msg("%s: told of %g of %g after the end", what, done, total);
    if (!r->what) r->what = what;
    if (r->total == 0) r->total = total;
    if (strcmp(r->what, what) != 0 || r->total != total)
        fail_msg("%g %s became %g %s", r->total, r->what, total, what);
    if (done > total) fail_msg("%g of %g %s", done, total, what);
    assert_true(r->n < MOST);
    r->shares[r->n++] = done / total;
    return 0;
}

static void watch(qkv_session *session) {
    qkv_error err = {0};
    qkv_progress progress = QKV_PROGRESS_INIT;
    progress.step = step;
    progress.user = &told;
    expect_ok(qkv_session_set_progress(session, &progress, &err), &err, "watching");
    session->steps.interval = 0; /* after every operation */
}

static void begin(void) {
    told = (record){.n = 0};
}

/* `most`: the largest share that may pass between two calls. */
static void expect_even(const char *name, double most) {
    double before = 0;
    if (told.n < 10) fail_msg("%s: told %d times", name, told.n);
    for (int i = 0; i < told.n; i++) {
        if (told.shares[i] < before)
            fail_msg("%s: back from %g to %g", name, before, told.shares[i]);
        if (told.shares[i] - before > most)
            fail_msg("%s: from %g to %g at once", name, before, told.shares[i]);
        before = told.shares[i];
    }
    if (before < 1) fail_msg("%s: ends at %g", name, before);
    assert_int_equal(e.session->steps.n_levels, 0);
}

/* ---- runs ---- */

static void runs(void **state) {
    (void)state;
    static const char *const variants[] = {"q@0.h1=scale:0.5", "k@2=zero + v@1=scale:2",
                                           "q@1=patch:src", "v@3=zero", NULL};
    static const char *const captures[] = {"pattern", "resid_post@2", "logits", NULL};
    begin();
    qkv_result_free(engine_execute(&e, &(engine_run){tokens[0], T, variants, captures, tokens[1]}));
    expect_even("a run", 0.2);
    assert_string_equal(told.what, "variants");
    begin();
    qkv_result_free(engine_execute(&e, &(engine_run){tokens[2], T, NULL, captures, NULL}));
    expect_even("a run without variants", 0.1);
}

/* Passes count by their operations where there are many: edits in the last layer are nearly nothing. */
static void runs_by_operations(void **state) {
    (void)state;
    char path[4096];
    engine wide;
    qkv_error err = {0};
    snprintf(path, sizeof path, "%s", scratch_path("wide.gguf"));
    expect_ok(qkv_synthetic_write(path, "12,8,8,512,2048,600", "f16", 1, &err), &err, "writing");
    engine_open(&wide, path, 1);
    watch(wide.session);
    enum { LONG = 220 };
    int32_t text[LONG];
    for (int i = 0; i < LONG; i++) text[i] = i * 7 % 600;
    static const char *const variants[] = {"q@11.h0=zero", "q@11.h1=zero", "q@11.h2=zero", NULL};
    static const char *const captures[] = {"pattern@11", NULL};
    begin();
    qkv_result_free(engine_execute(&wide, &(engine_run){text, LONG, variants, captures, NULL}));
    expect_even("by operations", 0.1);
    /* Of four variants that count the same, the baseline would be a quarter. */
    const int from = told.n * 3 / 4;
    if (told.shares[from] < 0.6) fail_msg("the baseline ends at %g", told.shares[from]);
    engine_close(&wide);
}

static void generators(void **state) {
    (void)state;
    qkv_error err = {0};
    int32_t *text = NULL;
    size_t n = 0;
    begin();
    expect_ok(qkv_session_continue(e.session, tokens[0], T, 12, &text, &n, &err), &err, "text");
    expect_even("a text", 0.5);
    assert_string_equal(told.what, "tokens");
    qkv_tokens_free(text);
}

/* ---- figures ---- */

static void figures(void **state) {
    (void)state;
    static const qkv_figure_kind kinds[] = {QKV_FIGURE_MODIFY, QKV_FIGURE_MEAN, QKV_FIGURE_HEADS,
                                            QKV_FIGURE_ROWS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int full = 0; full < 2; full++) {
            qkv_error err = {0};
            qkv_figure *figure = NULL;
            qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
            const int is_one_head = kinds[i] == QKV_FIGURE_MODIFY || kinds[i] == QKV_FIGURE_MEAN;
            options.prompts = prompts;
            options.n_prompts = kinds[i] == QKV_FIGURE_MEAN ? 3 : 1;
            options.report = full && is_one_head;
            options.page = full;
            begin();
            engine_renew(&e, &one_thread);
            watch(e.session);
            expect_ok(qkv_figure_make(&figure, e.session, kinds[i], &options, &err), &err,
                      qkv_figure_kind_name(kinds[i]));
            expect_even(qkv_figure_kind_name(kinds[i]), 0.5);
            qkv_figure_free(figure);
        }
    }
}

/* ---- studies ---- */

static void studies(void **state) {
    (void)state;
    static const struct {
        const char *kind, *options;
        size_t n_prompts;
        int of_texts;
    } cases[] = {
        {"lens", "{}", 1, 0},
        {"lens", "{\"answer\": \" the\", \"heads\": true}", 1, 1},
        {"patch", "{\"site\": \"resid_pre\", \"metric\": \"kl\", \"layers\": \"0-1\"}", 2, 0},
        {"roles", "{\"length\": 8, \"sequences\": 2}", 3, 0},
        {"roles", "{\"pairs\": \"Once upon a time the cat sat\\t time\", \"length\": 8}", 2, 1},
        {"compare", "{\"edit\": \"q@1=scale:0.9\"}", 2, 0},
        {"weights", "{\"circuit\": \"ov\"}", 0, 0},
        {"weights", "{\"circuit\": \"composition\"}", 0, 0},
        {"massive", "{\"size\": 5, \"ratio\": 10}", 2, 0},
        {"ships", "{}", 2, 0},
        {"sahara", "{\"steps\": 1, \"rank\": 1}", 2, 0},
        {"streaming-llm", "{\"mean_map\": true, \"sinks\": \"0,1\", \"recent\": 8}", 2, 0},
        {"phrase-rates", "{\"heads\": \"0.h0\", \"phrases\": \"the\", \"tokens\": 6}", 2, 1},
        {"retrieval-heads",
         "{\"lengths\": \"60\", \"tokens\": 4, \"depths\": \"0,1\", \"needle\": \"The key hangs here.\","
         " \"question\": \"Where?\", \"answer\": \"hangs here\", \"decode\": \"greedy\"}",
         1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int page = 0; page < 2; page++) {
            qkv_error err = {0};
            qkv_study *study = NULL;
            qkv_prompt texts[3] = {QKV_PROMPT_INIT, QKV_PROMPT_INIT, QKV_PROMPT_INIT};
            for (int k = 0; k < 3; k++) {
                texts[k].text = qkv_default_prompt((size_t)k);
                texts[k].length = strlen(texts[k].text);
            }
            engine_renew(&e, &one_thread);
            watch(e.session);
            const int is_pair = strcmp(cases[i].kind, "compare") == 0;
            const study_case of = {.kind = cases[i].kind,
                                   .options = cases[i].options,
                                   .prompts = cases[i].of_texts ? texts : prompts,
                                   .n_prompts = cases[i].n_prompts,
                                   .session = e.session,
                                   .other = is_pair ? other.session : NULL,
                                   .page = page};
            begin();
            const int status = study_make(&study, &of, &err);
            expect_ok(status, &err, cases[i].kind);
            expect_even(cases[i].kind, 0.6);
            qkv_study_free(study);
        }
    }
}

/* ---- sweeps ---- */

static qkv_sweep *make_sweep(void) {
    static const char spec[] =
        "{\"prompts\": [[1,2,3,4,5,6,7,8], [8,7,6,5,4,3,2,1]], \"targets\": \"q\","
        " \"epsilon\": \"0.5,2\", \"at\": \"output\", \"metrics\": \"output_kl\"}";
    qkv_sweep *sweep = NULL;
    qkv_error err = {0};
    expect_ok(qkv_sweep_new(&sweep, e.model, spec, &err), &err, "sweep");
    return sweep;
}

static void sweeps(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_sweep *sweep = make_sweep();
    qkv_sweep_writer *results = NULL;
    expect_ok(qkv_sweep_writer_open(&results, sweep, scratch_path("own.sqlite"), NULL, &err), &err,
              "own.sqlite");
    begin();
    expect_ok(qkv_sweep_run(sweep, e.session, results, NULL, NULL, &err), &err, "running");
    expect_even("a sweep", 0.3);
    assert_string_equal(told.what, "cells");
    expect_ok(qkv_sweep_writer_close(results, &err), &err, "closing");
    for (int32_t n = 1; n <= 2; n++) {
        qkv_progress progress = QKV_PROGRESS_INIT;
        qkv_sweep_share_options options = QKV_SWEEP_SHARE_OPTIONS_INIT;
        progress.step = step;
        progress.user = &told;
        options.n_processes = n;
        options.session_progress = &progress;
        char name[32];
        snprintf(name, sizeof name, "shared%d.sqlite", (int)n);
        begin();
        expect_ok(qkv_sweep_share(sweep, scratch_path(name), &options, NULL, &err), &err, name);
        expect_even(name, 0.6);
    }
    qkv_sweep_free(sweep);
}

/* ---- works inside each other ---- */

static void works(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_session *s = e.session;
    begin();
    expect_ok(qkv_session_begin_work(s, "prompts", 2, &err), &err, "begin");
    expect_ok(qkv_session_report(s, "states", 1, 4, &err), &err, "report");
    assert_true(told.shares[0] == 0.125);
    expect_ok(qkv_session_begin_work(s, "layers", 5, &err), &err, "begin");
    expect_ok(qkv_session_reach(s, 2, 1, &err), &err, "reach");
    assert_true(told.shares[1] == 0.2);
    expect_ok(qkv_session_report(s, "states", 1, 2, &err), &err, "report");
    assert_true(told.shares[2] == 0.25);
    expect_ok(qkv_session_reach(s, 1, 1, &err), &err, "back");
    assert_true(told.shares[3] == 0.25); /* never less */
    expect_ok(qkv_session_reach(s, 9, 1, &err), &err, "too far");
    assert_true(told.shares[4] == 0.5); /* of its own part at most */
    assert_int_equal(qkv_session_end_work(s, QKV_OK), QKV_OK);
    expect_ok(qkv_session_report(s, "states", 1, 2, &err), &err, "report");
    assert_true(told.shares[5] == 0.75);
    /* A work that failed says nothing of its end. */
    assert_int_equal(qkv_session_end_work(s, QKV_ERR_MEMORY), QKV_ERR_MEMORY);
    assert_int_equal(told.n, 6);
    assert_int_equal(s->steps.n_levels, 0);
    /* More than are counted. */
    begin();
    enum { DEEP = QKV_STEPS_LEVELS + 3 };
    for (int i = 0; i < DEEP; i++)
        expect_ok(qkv_session_begin_work(s, "parts", 1, &err), &err, "begin");
    expect_ok(qkv_session_reach(s, 1, 0, &err), &err, "reach");
    for (int i = 0; i < DEEP; i++) (void)qkv_session_end_work(s, QKV_OK);
    assert_true(told.n == 2 && told.shares[1] == 1);
    assert_int_equal(s->steps.n_levels, 0);
}

static int prepare(void **state) {
    (void)state;
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    engine_open(&other, QKV_TEST_MODELS "/default.gguf", 1);
    watch(e.session);
    watch(other.session);
    for (int p = 0; p < N_PROMPTS; p++) {
        for (int i = 0; i < T; i++) tokens[p][i] = 3 + (i * 7 + p * 13) % (e.info->n_vocab - 3);
        prompts[p] = (qkv_prompt)QKV_PROMPT_INIT;
        prompts[p].tokens = tokens[p];
        prompts[p].n_tokens = T;
    }
    return 0;
}

static int finish(void **state) {
    engine_close(&e);
    engine_close(&other);
    return remove_scratch(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),    cmocka_unit_test(runs_by_operations),
        cmocka_unit_test(works),   cmocka_unit_test(generators),
        cmocka_unit_test(figures), cmocka_unit_test(studies),
        cmocka_unit_test(sweeps),
    };
    return cmocka_run_group_tests(tests, prepare, finish);
}
