/* Sweeps that patch: their specification, how cells are numbered, and what they are worth, against
 * the scalar reference and against one run for each cell. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/edit_data.h"
#include "qkv/next.h"
#include "qkv/study.h"
#include "qkv/sweep_reader.h"
#include "reference/ref_forward.h"
#include "run/run.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/values.h"
#include "sweep/sweep.h"

#define MODEL QKV_TEST_MODELS "/default.gguf"

#define CLEAN "The river runs past the city, and people swim in the"
#define CORRUPT "The church runs past the city, and people swim in the"
#define PAIR "\"clean\": \"" CLEAN "\", \"corrupt\": \"" CORRUPT "\""
#define DIFF "logit_diff: river/ church"

static engine e;

static int open_model(void **state) {
    (void)state;
    engine_open(&e, MODEL, 1);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    engine_close(&e);
    scratch_remove();
    return 0;
}

static qkv_sweep *make(const char *spec) {
    qkv_sweep *sweep = NULL;
    qkv_error err = {0};
    if (qkv_sweep_new(&sweep, e.model, spec, &err) != QKV_OK) fail_msg("%s", err.message);
    return sweep;
}

static void refuse(const char *spec, const char *named) {
    qkv_sweep *sweep;
    qkv_error err = {0};
    assert_int_not_equal(qkv_sweep_new(&sweep, e.model, spec, &err), QKV_OK);
    assert_null(sweep);
    if (!strstr(err.message, named)) fail_msg("'%s' does not name %s", err.message, named);
}

/* The values of all cells, n_metrics each. */
static double *compute(const qkv_sweep *sweep) {
    const size_t n_metrics = qkv_sweep_n_metrics(sweep);
    double *values = calloc((size_t)qkv_sweep_n_cells(sweep) * n_metrics, sizeof *values);
    assert_non_null(values);
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep); b++) {
        qkv_error err = {0};
        const int64_t first = qkv_sweep_block(sweep, b, NULL);
        expect_ok(qkv_sweep_compute(sweep, e.session, b, values + (size_t)first * n_metrics, &err),
                  &err, "a block");
    }
    return values;
}

/* ---- specifications ---- */

static void cells_count_by_direction_layer_map_and_column(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{" PAIR ", \"layers\": \"1,4\", \"heads\": \"0,3\","
                            " \"positions\": \"2-3,12\", \"targets\": \"resid_pre,z\","
                            " \"direction\": \"both\", \"metrics\": \"" DIFF "\"}");
    static const struct {
        int64_t id;
        size_t prompt;
        int layer, head;
        int64_t position;
        const char *op, *edit;
    } wanted[] = {{0, 0, -1, -1, -1, "", ""},
                  {1, 1, -1, -1, -1, "", ""},
                  {2, 1, 1, -1, 2, "patch:clean", "resid_pre@1[2]=patch:clean"},
                  {4, 1, 1, -1, 12, "patch:clean", "resid_pre@1[12]=patch:clean"},
                  {5, 1, 1, 0, -1, "patch:clean", "z@1.h0=patch:clean"},
                  {6, 1, 1, 3, -1, "patch:clean", "z@1.h3=patch:clean"},
                  {7, 1, 4, -1, 2, "patch:clean", "resid_pre@4[2]=patch:clean"},
                  {12, 0, 1, -1, 2, "patch:corrupt", "resid_pre@1[2]=patch:corrupt"},
                  {21, 0, 4, 3, -1, "patch:corrupt", "z@4.h3=patch:corrupt"}};
    assert_int_equal(qkv_sweep_n_cells(sweep), 22);
    assert_int_equal(qkv_sweep_n_blocks(sweep), 5);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const qkv_cell cell = sweep_cell(sweep, wanted[i].id);
        assert_int_equal(cell.prompt, wanted[i].prompt);
        assert_int_equal(cell.layer, wanted[i].layer);
        assert_int_equal(cell.head, wanted[i].head);
        assert_int_equal(cell.position, wanted[i].position);
        assert_string_equal(cell.op, wanted[i].op);
        assert_string_equal(cell.edit, wanted[i].edit);
    }
    int64_t next = 0;
    for (int64_t b = 0, n; b < qkv_sweep_n_blocks(sweep); b++, next += n)
        assert_int_equal(qkv_sweep_block(sweep, b, &n), next);
    assert_int_equal(next, 22);
    qkv_sweep_free(sweep);
}

static void specifications_that_mean_the_same_are_the_same(void **state) {
    (void)state;
    qkv_sweep *a = make("{" PAIR ", \"metrics\": [\"" DIFF "\"]}");
    qkv_sweep *b = make("{\"pairs\": [{" PAIR "}], \"metrics\": \"" DIFF "\","
                        " \"direction\": \"denoise\", \"layers\": \"0-5\","
                        " \"targets\": [\"resid_pre\", \"z\"]}");
    qkv_sweep *c = make(qkv_sweep_spec(a));
    assert_string_equal(qkv_sweep_spec(a), qkv_sweep_spec(b));
    assert_string_equal(qkv_sweep_hash(a), qkv_sweep_hash(c));
    assert_string_equal(qkv_sweep_metric(a, 0), DIFF);
    assert_null(qkv_sweep_metric(a, 1));
    qkv_sweep_free(a);
    qkv_sweep_free(b);
    qkv_sweep_free(c);
}

static void quotes_around_tokens_do_not_count(void **state) {
    (void)state;
    qkv_sweep *a = make("{" PAIR ", \"layers\": 0, \"metrics\": [\"" DIFF "\","
                        " \"logit_diff:\\\" river\\\"/\\\" church\\\"@-1\"]}");
    double *values = compute(a);
    for (int64_t i = 0; i < qkv_sweep_n_cells(a); i++)
        assert_true(values[2 * i] == values[2 * i + 1]);
    free(values);
    qkv_sweep_free(a);
}

static void mistakes_are_named(void **state) {
    (void)state;
    refuse("{\"clean\": \"The river\", \"metrics\": \"kl\"}", "the corrupt prompt is missing");
    refuse("{\"clean\": \"\", \"corrupt\": \"The river\", \"metrics\": \"kl\"}",
           "the clean prompt is empty");
    refuse("{\"clean\": \"The river\", \"corrupt\": \"The river\", \"metrics\": \"kl\"}",
           "same tokens");
    refuse(
        "{\"clean\": \"The river runs\", \"corrupt\": \"The old river runs\", \"metrics\": \"kl\"}",
        "the clean prompt has 5 tokens and the corrupt one 6, and they differ from position 2 on "
        "(\" river\" and \" old\")");
    refuse("{" PAIR "}", "needs a metric");
    refuse("{" PAIR ", \"metrics\": \"logit_diff\"}", "needs two tokens");
    refuse("{" PAIR ", \"metrics\": \"logit_dif: river/ church\"}", "did you mean 'logit_diff'");
    refuse("{" PAIR ", \"metrics\": \"logit_diff: river\"}", "two tokens");
    refuse("{" PAIR ", \"metrics\": \"logit: riverbank\"}", "\" riverbank\" is not one token");
    refuse("{" PAIR ", \"metrics\": \"logit_diff: riverbank/ river\"}", "logprob_diff:A/B takes");
    refuse("{" PAIR ", \"metrics\": \"prob: riverbank@-2\"}", "follows the whole prompt");
    refuse("{" PAIR ", \"metrics\": \"kl: river\"}", "has no tokens");
    refuse("{" PAIR ", \"metrics\": \"kl@40\"}", "position @40 is out of range");
    refuse("{" PAIR ", \"metrics\": [\"kl\", \"kl@-2\"]}", "one position");
    refuse("{" PAIR ", \"metrics\": [\"kl\", \"kl\"]}", "twice");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"targets\": \"resid\"}", "did you mean 'resid_pre'");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"targets\": \"mlp_out\", \"by\": \"head\"}",
           "no heads");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"targets\": \"z,z\"}", "twice");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"direction\": \"up\"}", "direction is denoise");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"positions\": \"3-40\"}", "position 40");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"layers\": \"all\"}", "one by one");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"layers\": \"9\"}", "9");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"position\": 3}", "did you mean 'positions'");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"prompts\": \"one\"}", "has no 'prompts'");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"align\": \"0-2=1-2\"}", "different length");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"align\": \"0-2=0-2,50=50\"}", "leaves the prompts");
    refuse("{" PAIR ", \"metrics\": \"kl\", \"align\": \"middle\"}", "align is prefix");
    refuse("{\"pairs\": [], \"metrics\": \"kl\"}", "pairs must be");
    refuse("{\"pairs\": [{" PAIR "}], " PAIR ", \"metrics\": \"kl\"}", "not both");
    refuse("{\"pairs\": [{" PAIR ", \"answer\": \" riverbank\"}], \"metrics\": \"logit\"}",
           "pair 0: \" riverbank\" is 3 tokens");
    refuse("{\"pairs\": [{" PAIR "}, {\"clean\": \"The river\", \"corrupt\": \"The church\"}],"
           " \"metrics\": \"kl\"}",
           "of one length");
}

/* The logit of a token that both prompts give the same: only possible where nothing before the
 * position differs. */
static void equal_values_cannot_be_recovered(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{" PAIR ", \"metrics\": \"logit: river@1\"}");
    double values[2];
    qkv_error err = {0};
    assert_int_equal(qkv_sweep_compute(sweep, e.session, 0, values, &err), QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "nothing to recover"));
    qkv_sweep_free(sweep);
}

/* A text that is a token only with a space before it is taken so, and the metric is named so. */
static void blanks_that_were_left_out_are_put_in(void **state) {
    (void)state;
    qkv_sweep *a = make("{" PAIR ", \"metrics\": [\"" DIFF "\", \"logit: sea@-1\"]}");
    qkv_sweep *b = make("{" PAIR ", \"metrics\": [\"logit_diff:river/church\","
                        " \"logit:sea@-1\"]}");
    assert_string_equal(qkv_sweep_spec(a), qkv_sweep_spec(b));
    assert_string_equal(qkv_sweep_metric(b, 0), DIFF);
    assert_string_equal(qkv_sweep_metric(b, 1), "logit: sea@-1");
    qkv_sweep_free(a);
    qkv_sweep_free(b);
    a = make("{\"pairs\": [{" PAIR ", \"answer\": \"river\", \"wrong\": \" church\"}],"
             " \"metrics\": \"logit_diff\"}");
    assert_non_null(strstr(qkv_sweep_spec(a), "\" river\""));
    qkv_sweep_free(a);
}

/* "or" is a token with and without a space: beside "river", which needs one, it has one. */
static void pairs_of_answers_have_blanks_alike(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{" PAIR ", \"metrics\": [\"logit_diff:river/or\","
                            " \"logprob_diff:\\\"or\\\"/river\", \"logit:or\"]}");
    assert_string_equal(qkv_sweep_metric(sweep, 0), "logit_diff: river/ or");
    assert_string_equal(qkv_sweep_metric(sweep, 1), "logprob_diff:\" or\"/ river");
    assert_string_equal(qkv_sweep_metric(sweep, 2), "logit:or");
    qkv_sweep_free(sweep);
    sweep = make("{\"pairs\": [{" PAIR ", \"answer\": \"or\", \"wrong\": \"river\"}],"
                 " \"metrics\": \"logit_diff\"}");
    assert_non_null(strstr(qkv_sweep_spec(sweep), "\"answer\":\" or\""));
    assert_non_null(strstr(qkv_sweep_spec(sweep), "\"wrong\":\" river\""));
    qkv_sweep_free(sweep);
    refuse("{" PAIR ", \"metrics\": \"logit_diff:river/ing\"}", "as in \" river/ing\"");
    refuse("{\"pairs\": [{" PAIR ", \"answer\": \"ing\", \"wrong\": \"river\"}],"
           " \"metrics\": \"logit_diff\"}",
           "the answers of pair 0: \"river\" is a token only with a space before it");
    refuse("{\"pairs\": [{" PAIR ", \"answer\": \"\", \"wrong\": \"river\"}],"
           " \"metrics\": \"logit_diff\"}",
           "pair 0: answer is empty");
    refuse("{" PAIR ", \"metrics\": \"logprob:river/or\"}", "logprob wants one answer, not 2");
    refuse("{" PAIR ", \"metrics\": \"logprob_diff:river\"}", "logprob_diff wants two answers");
    refuse("{" PAIR ", \"metrics\": \"logit: river/ or\"}", "logit wants one token, not 2");
}

/* Answers of several tokens are as they are written; that they lack a space is said. */
static void answers_without_a_space_are_warned_of(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{\"pairs\": [{" PAIR ", \"answer\": \"river bank\","
                            " \"wrong\": \"church yard\"}],"
                            " \"metrics\": [\"logprob:river bank\", \"logprob_diff\","
                            " \"prob: river bank\"]}");
    assert_string_equal(qkv_sweep_warning(sweep, 0),
                        "pairs: \"river bank\" follows the prompt without a space; with one it is "
                        "written \" river bank\" (and 1 more)");
    assert_string_equal(qkv_sweep_warning(sweep, 1),
                        "metric 'logprob:river bank': \"river bank\" follows the prompt without a "
                        "space; with one it is written \" river bank\"");
    assert_null(qkv_sweep_warning(sweep, 2));
    assert_string_equal(qkv_sweep_metric(sweep, 0), "logprob:river bank");
    qkv_sweep_free(sweep);
    assert_null(qkv_sweep_warning(NULL, 0));
}

/* ---- values ---- */

static int32_t token_of(const char *text) {
    int32_t token;
    qkv_error err = {0};
    expect_ok(qkv_find_token(e.model, &token, text, strlen(text), &err), &err, text);
    return token;
}

/* What one run with the cell's edit alone gives, without any of the sweep's code. */
static void run_alone(const qkv_cell *cell, int32_t *const prompts[2], size_t n, double out[2]) {
    const int32_t diff[] = {token_of(" river"), token_of(" church")};
    const char *variants[] = {cell->edit};
    const char *names[] = {"clean", "corrupt"};
    const int32_t *sources[] = {prompts[0], prompts[1]};
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    qkv_next_token river = QKV_NEXT_TOKEN_INIT;
    qkv_next *next = NULL;
    qkv_error err = {0};
    const size_t v = cell->edit[0] ? 1 : 0;
    how.variants = variants;
    how.n_variants = v;
    how.source_names = names;
    how.source_tokens = sources;
    how.n_sources = 2;
    how.diff = diff;
    how.n_diff = 1;
    how.of = diff;
    how.n_of = 1;
    expect_ok(qkv_next_new(&next, e.session, prompts[cell->prompt % 2], n, &how, &err), &err,
              cell->edit);
    assert_true(qkv_next_get_diff(next, v, 0, &out[0], NULL));
    assert_true(qkv_next_get_of(next, v, 0, &river));
    out[1] = river.probability;
    qkv_next_free(next);
}

static void tokenize(const char *text, int32_t **tokens, size_t *n) {
    qkv_error err = {0};
    expect_ok(qkv_tokenize(e.model, tokens, n, text, strlen(text), QKV_TOKENIZE_ADD_SPECIAL, &err),
              &err, text);
}

static void cells_are_what_each_gives_alone(void **state) {
    (void)state;
    qkv_sweep *sweep =
        make("{" PAIR ", \"direction\": \"both\", \"layers\": \"0,3,5\", \"by\": \"position,head\","
             " \"targets\": \"resid_pre,attn_out,mlp_out,z,q,k,v,q_in,k_in\","
             " \"metrics\": [\"" DIFF "\", \"prob: river\"]}");
    double *values = compute(sweep);
    int32_t *prompts[2];
    size_t n[2], changed = 0;
    tokenize(CLEAN, &prompts[0], &n[0]);
    tokenize(CORRUPT, &prompts[1], &n[1]);
    assert_int_equal(n[0], n[1]);
    for (int64_t i = 0; i < qkv_sweep_n_cells(sweep); i++) {
        const qkv_cell cell = sweep_cell(sweep, i);
        double alone[2];
        run_alone(&cell, prompts, n[0], alone);
        if (values[2 * i] != alone[0] || values[2 * i + 1] != alone[1])
            fail_msg("%s: %.17g and %.17g, alone %.17g and %.17g", cell.edit, values[2 * i],
                     values[2 * i + 1], alone[0], alone[1]);
        changed += alone[0] != values[cell.prompt % 2 ? 2 : 0];
    }
    assert_true(changed > (size_t)qkv_sweep_n_cells(sweep) / 2);
    qkv_tokens_free(prompts[0]);
    qkv_tokens_free(prompts[1]);
    free(values);
    qkv_sweep_free(sweep);
}

/* ---- against the scalar reference ---- */

typedef struct row {
    double diff, prob, kl;
} row;

static double log_sum(const double *x, int n) {
    double most = x[0], sum = 0;
    for (int i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int i = 0; i < n; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

static row row_of(const double *logits, const double *clean, int n) {
    const int32_t a = token_of(" river"), b = token_of(" church");
    const double sum = log_sum(logits, n), clean_sum = log_sum(clean, n);
    row r = {logits[a] - logits[b], exp(logits[a] - sum), 0};
    for (int i = 0; i < n; i++)
        r.kl += exp(clean[i] - clean_sum) * (clean[i] - clean_sum - logits[i] + sum);
    return r;
}

static const double *last_row(const ref_run *run) {
    return run->site[QKV_SITE_LOGITS][0] + (size_t)(run->T - 1) * (size_t)run->model->V;
}

static row reference_of(const ref_model *model, const qkv_cell *cell, int32_t *const prompts[2],
                        int n, ref_run *const plain[2]) {
    ref_edit edit = {.site = qkv_site_by_name(cell->target), .op = REF_PATCH};
    edit.layers = cell->layer >= 0 ? UINT64_C(1) << cell->layer : 0;
    edit.head_kind = cell->head >= 0 ? 'h' : 0;
    edit.heads = cell->head >= 0 ? UINT64_C(1) << cell->head : 0;
    if (cell->position >= 0) edit.rows = (ref_range){(int)cell->position, (int)cell->position + 1};
    const size_t run = cell->prompt % 2;
    if (!cell->op[0]) return row_of(last_row(plain[run]), last_row(plain[0]), model->V);
    ref_run *patched = ref_forward(model, prompts[run], n, &edit, 1, plain[1 - run]);
    const row r = row_of(last_row(patched), last_row(plain[0]), model->V);
    ref_run_free(patched);
    return r;
}

/* Answers of several tokens: what `next` gives with the cell's edits, digit by digit; prompts of different
 * length, too, where edits say which token takes which. */
static void check_answers(const char *spec, const char *clean, const char *corrupt) {
    qkv_sweep *sweep = make(spec);
    double *values = compute(sweep);
    const char *texts[] = {" river bank", " church yard"}, *names[] = {"clean", "corrupt"};
    int32_t *answers[2], *prompts[2];
    size_t lengths[2], n[2], changed = 0;
    qkv_error err = {0};
    tokenize(clean, &prompts[0], &n[0]);
    tokenize(corrupt, &prompts[1], &n[1]);
    for (size_t i = 0; i < 2; i++)
        expect_ok(qkv_find_answer(e.model, &answers[i], &lengths[i], NULL, texts[i],
                                  strlen(texts[i]), &err),
                  &err, texts[i]);
    assert_int_equal(lengths[0], 2);
    for (int64_t i = 0; i < qkv_sweep_n_cells(sweep); i++) {
        const qkv_cell cell = sweep_cell(sweep, i);
        const char *variants[] = {cell.edit};
        const int32_t *sources[] = {prompts[0], prompts[1]};
        const size_t own = cell.prompt % 2, v = cell.edit[0] ? 1 : 0;
        qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
        qkv_next_answer a = QKV_NEXT_ANSWER_INIT, b = QKV_NEXT_ANSWER_INIT;
        qkv_next *next = NULL;
        how.variants = variants;
        how.n_variants = v;
        how.source_names = names;
        how.source_tokens = sources;
        how.source_lengths = n;
        how.n_sources = 2;
        how.answers = (const int32_t *const *)answers;
        how.answer_lengths = lengths;
        how.n_answers = 2;
        expect_ok(qkv_next_new(&next, e.session, prompts[own], n[own], &how, &err), &err,
                  cell.edit);
        assert_true(qkv_next_get_answer(next, v, 0, &a) && qkv_next_get_answer(next, v, 1, &b));
        const double wanted[] = {a.log_probability - b.log_probability, a.log_probability,
                                 a.probability};
        for (size_t m = 0; m < 3; m++) {
            if (values[3 * i + (int64_t)m] != wanted[m])
                fail_msg("%s: %.17g and not %.17g", cell.edit, values[3 * i + (int64_t)m],
                         wanted[m]);
        }
        changed += v && wanted[0] != values[own ? 3 : 0];
        qkv_next_free(next);
    }
    assert_true(changed > (size_t)qkv_sweep_n_cells(sweep) / 2);
    for (size_t i = 0; i < 2; i++) {
        qkv_tokens_free(answers[i]);
        qkv_tokens_free(prompts[i]);
    }
    free(values);
    qkv_sweep_free(sweep);
}

#define ANSWERS                                                                                    \
    " \"metrics\": [\"logprob_diff: river bank/ church yard\", \"logprob: river bank\","           \
    " \"prob: river bank\"]}"

static void answers_of_several_tokens(void **state) {
    (void)state;
    check_answers("{" PAIR ", \"direction\": \"both\", \"layers\": \"1,4\", \"heads\": \"0-1\","
                  " \"targets\": \"resid_pre,z,q\", \"positions\": \"2,12\"," ANSWERS,
                  CLEAN, CORRUPT);
    /* By position alone: by head, cells patch the answer's tokens too, and `next` does not. */
    check_answers("{\"clean\": \"" CLEAN "\", \"corrupt\": \"See: " CORRUPT "\","
                  " \"align\": \"suffix\", \"layers\": \"1,4\", \"positions\": \"2,12\","
                  " \"targets\": \"resid_pre\"," ANSWERS,
                  CLEAN, "See: " CORRUPT);
}

/* By head, every stretch of tokens has an edit, and the answer's too. */
static void answers_behind_prompts_of_different_length(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{\"clean\": \"" CLEAN "\", \"corrupt\": \"See: " CORRUPT "\","
                            " \"align\": \"suffix\", \"layers\": \"5\", \"targets\": \"z\","
                            " \"metrics\": \"logprob: river bank\"}");
    double *values = compute(sweep);
    for (int64_t i = 2; i < qkv_sweep_n_cells(sweep); i++)
        assert_true(isfinite(values[i]) && values[i] != values[1]);
    free(values);
    qkv_sweep_free(sweep);
}

/* ---- paths ---- */

/* What the residual stream before a layer is when a sender is patched. */
static float *sent(const qkv_cell *cell, int32_t *const prompts[2], size_t n, int layer, int last,
                   int freeze_mlps) {
    const size_t own = cell->prompt % 2;
    char edit[200], capture[32];
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_error err = {0};
    int at = snprintf(edit, sizeof edit, "z@%d.h%d=patch:other", cell->layer, cell->head);
    for (int il = cell->layer + 1; il < last; il++)
        at += snprintf(edit + at, sizeof edit - (size_t)at, " + freeze:z@%d", il);
    for (int il = cell->layer; il < last && freeze_mlps; il++)
        at += snprintf(edit + at, sizeof edit - (size_t)at, " + freeze:mlp_out@%d", il);
    snprintf(capture, sizeof capture, "resid_pre@%d", layer);
    expect_ok(qkv_plan_new(&plan, e.model, prompts[own], n, &err), &err, "a plan");
    expect_ok(qkv_plan_add_source(plan, "other", prompts[1 - own], n, &err), &err, "a source");
    expect_ok(qkv_plan_add_variant(plan, edit, NULL, &err), &err, edit);
    expect_ok(qkv_plan_add_capture(plan, capture, &err), &err, capture);
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "the first run");
    const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_RESID_PRE, layer);
    const size_t size = n * (size_t)e.info->n_embd * sizeof(float);
    float *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, t.data, size);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return copy;
}

/* The difference of logits with these edits, which name the vectors a and b. */
static double received(const qkv_cell *cell, int32_t *const prompts[2], size_t n,
                       float *const inputs[2], const char *edits) {
    const size_t own = cell->prompt % 2;
    const int32_t diff[] = {token_of(" river"), token_of(" church")};
    const int64_t shape[] = {(int64_t)n, e.info->n_embd};
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    qkv_edit_data *data = NULL;
    qkv_next *next = NULL;
    qkv_error err = {0};
    double value = NAN;
    expect_ok(qkv_edit_data_new(&data, &err), &err, "data");
    for (size_t i = 0; i < 2 && inputs[i]; i++)
        expect_ok(qkv_edit_data_add_vector(data, i ? "b" : "a", inputs[i], shape, 2, &err), &err,
                  "a vector");
    how.variants = &edits;
    how.n_variants = 1;
    how.diff = diff;
    how.n_diff = 1;
    how.data = data;
    expect_ok(qkv_next_new(&next, e.session, prompts[own], n, &how, &err), &err, edits);
    assert_true(qkv_next_get_diff(next, 1, 0, &value, NULL));
    qkv_next_free(next);
    qkv_edit_data_free(data);
    return value;
}

/* Every cell of a sweep against two runs: `edits` for senders before layer 3, `later` for those after it,
 * which reach the receivers of layer 5 only. */
static void check_paths(const char *spec, const char *edits, const char *later, int freeze_mlps) {
    qkv_sweep *sweep = make(spec);
    double *values = compute(sweep);
    int32_t *prompts[2];
    size_t n[2], changed = 0;
    tokenize(CLEAN, &prompts[0], &n[0]);
    tokenize(CORRUPT, &prompts[1], &n[1]);
    for (int64_t i = 2; i < qkv_sweep_n_cells(sweep); i++) {
        const qkv_cell cell = sweep_cell(sweep, i);
        const int early = cell.layer < 3;
        float *inputs[2] = {sent(&cell, prompts, n[0], 5, 5, freeze_mlps),
                            early ? sent(&cell, prompts, n[0], 3, 5, freeze_mlps) : NULL};
        const double wanted = received(&cell, prompts, n[0], inputs, early ? edits : later);
        if (values[i] != wanted) fail_msg("%s: %.17g and not %.17g", cell.edit, values[i], wanted);
        changed += wanted != values[cell.prompt % 2];
        free(inputs[0]);
        free(inputs[1]);
    }
    assert_int_equal(qkv_sweep_n_cells(sweep) % 2, 0);
    assert_true(changed > (size_t)qkv_sweep_n_cells(sweep) / 2);
    qkv_tokens_free(prompts[0]);
    qkv_tokens_free(prompts[1]);
    free(values);
    qkv_sweep_free(sweep);
}

static void paths_are_two_runs(void **state) {
    (void)state;
    check_paths("{" PAIR ", \"receivers\": \"q@5.h1\", \"metrics\": \"" DIFF "\"}",
                "q_in@5.h1=set:@a", "q_in@5.h1=set:@a", 0);
    check_paths("{" PAIR
                ", \"receivers\": [\"q@3,5.h0,2\", \"v_in@5.h1[-3:]\"], \"heads\": \"1-2\","
                " \"freeze_mlps\": true, \"direction\": \"both\", \"metrics\": \"" DIFF "\"}",
                "q_in@3.h0,2=set:@b + q_in@5.h0,2=set:@a + v_in@5.h1[-3:]=set:@a",
                "q_in@5.h0,2=set:@a + v_in@5.h1[-3:]=set:@a", 1);
    check_paths("{" PAIR ", \"receivers\": [\"k@5.h3\", \"resid_post@2\"], \"layers\": \"0,2-4\","
                " \"direction\": \"denoise\", \"metrics\": \"" DIFF "\"}",
                "resid_pre@3=set:@b + k_in@5.h3=set:@a", "k_in@5.h3=set:@a", 0);
}

/* To the logits, the run with everything after the sender frozen is all. */
static void paths_to_the_logits(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{" PAIR ", \"receivers\": [\"logits\"], \"direction\": \"both\","
                            " \"metrics\": [\"" DIFF "\", \"prob: river\"]}");
    double *values = compute(sweep);
    int32_t *prompts[2];
    size_t n[2];
    tokenize(CLEAN, &prompts[0], &n[0]);
    tokenize(CORRUPT, &prompts[1], &n[1]);
    assert_int_equal(qkv_sweep_n_cells(sweep), 2 + 2 * 6 * 4);
    assert_string_equal(sweep_cell(sweep, 2).edit, "z@0.h0=patch:clean + freeze:z@1-5");
    assert_string_equal(sweep_cell(sweep, 49).edit, "z@5.h3=patch:corrupt");
    for (int64_t i = 0; i < qkv_sweep_n_cells(sweep); i++) {
        const qkv_cell cell = sweep_cell(sweep, i);
        double alone[2];
        run_alone(&cell, prompts, n[0], alone);
        assert_true(values[2 * i] == alone[0] && values[2 * i + 1] == alone[1]);
    }
    qkv_tokens_free(prompts[0]);
    qkv_tokens_free(prompts[1]);
    free(values);
    qkv_sweep_free(sweep);
}

static void paths_are_specified(void **state) {
    (void)state;
    qkv_sweep *a = make("{" PAIR ", \"receivers\": \"q@3.h1\", \"metrics\": \"kl\"}");
    qkv_sweep *b = make(qkv_sweep_spec(a));
    assert_string_equal(qkv_sweep_spec(a), qkv_sweep_spec(b));
    assert_non_null(strstr(qkv_sweep_spec(a), "\"noise\""));
    assert_int_equal(qkv_sweep_n_cells(a), 2 + 3 * 4); /* heads of the layers before the receiver */
    qkv_sweep_free(a);
    qkv_sweep_free(b);
#define PATHS(rest) "{" PAIR ", \"metrics\": \"kl\", " rest "}"
    refuse(PATHS("\"receivers\": \"q@0.h1\""), "none can send");
    refuse(PATHS("\"receivers\": \"q@3.h1\", \"layers\": \"2-3\""), "from layer 3 no path");
    refuse(PATHS("\"receivers\": \"z@3.h1\""), "receivers are q@9.h9");
    refuse(PATHS("\"receivers\": \"logit\""), "did you mean 'logits'");
    refuse(PATHS("\"receivers\": \"q\""), "which layer");
    refuse(PATHS("\"receivers\": \"q@9.h0\""), "layer 9 is out of range");
    refuse(PATHS("\"receivers\": \"q@3.h1{4}\""), "no channels");
    refuse(PATHS("\"receivers\": \"q@3.h1[40]\""), "token 40");
    refuse(PATHS("\"receivers\": [\"q@3.h1\", \"q@2-4\"]"), "overlap");
    refuse(PATHS("\"receivers\": [\"q@3.h1\", \"logits\"]"), "the only receiver");
    refuse(PATHS("\"receivers\": []"), "a list of texts");
    refuse(PATHS("\"receivers\": [3]"), "a list of texts");
    refuse(PATHS("\"receivers\": \"q@3.h1\", \"targets\": \"q\""), "leave out targets");
    refuse(PATHS("\"receivers\": \"q@3.h1\", \"by\": \"position\""), "leave out by");
    refuse(PATHS("\"freeze_mlps\": true"), "give receivers");
    refuse(PATHS("\"receivers\": \"q@3.h1\", \"freeze_mlps\": 1"), "true or false");
#undef PATHS
}

static void expect_near(const qkv_cell *cell, const char *what, double got, double wanted,
                        double least) {
    const double allowed = least + 2e-3 * fabs(wanted);
    if (!(fabs(got - wanted) <= allowed))
        fail_msg("%s: %s is %g, and %g in the reference", cell->edit, what, got, wanted);
}

static void cells_agree_with_the_reference(void **state) {
    (void)state;
    qkv_sweep *sweep =
        make("{" PAIR ", \"direction\": \"both\", \"layers\": \"1,5\", \"heads\": \"1,2\","
             " \"positions\": \"1-3,8,13\", \"by\": \"position,head\","
             " \"targets\": \"resid_pre,attn_out,mlp_out,z,k,q_in,v_in\","
             " \"metrics\": [\"" DIFF "\", \"prob: river\", \"kl\"]}");
    double *values = compute(sweep);
    ref_model *model = ref_model_load(MODEL);
    int32_t *prompts[2];
    size_t n[2];
    ref_run *plain[2];
    tokenize(CLEAN, &prompts[0], &n[0]);
    tokenize(CORRUPT, &prompts[1], &n[1]);
    for (int i = 0; i < 2; i++) plain[i] = ref_forward(model, prompts[i], (int)n[0], NULL, 0, NULL);
    for (int64_t i = 0; i < qkv_sweep_n_cells(sweep); i++) {
        const qkv_cell cell = sweep_cell(sweep, i);
        const row r = reference_of(model, &cell, prompts, (int)n[0], plain);
        expect_near(&cell, "logit_diff", values[3 * i], r.diff, 2e-3);
        expect_near(&cell, "prob", values[3 * i + 1], r.prob, 2e-5);
        expect_near(&cell, "kl", values[3 * i + 2], r.kl, 2e-4);
    }
    assert_true(values[2] == 0); /* the clean prompt is not away from itself */
    for (int i = 0; i < 2; i++) {
        ref_run_free(plain[i]);
        qkv_tokens_free(prompts[i]);
    }
    ref_model_free(model);
    free(values);
    qkv_sweep_free(sweep);
}

/* ---- files ---- */

static void files_hold_positions_and_recovery(void **state) {
    (void)state;
    qkv_sweep *sweep = make("{" PAIR ", \"layers\": \"2\", \"metrics\": [\"" DIFF "\"]}");
    const char *path = scratch_path("patching.sqlite");
    qkv_sweep_reader *file = NULL;
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row r = QKV_SWEEP_ROW_INIT;
    qkv_error err = {0};
    remove(path);
    expect_ok(qkv_sweep_share(sweep, path, NULL, NULL, &err), &err, "running it");
    double *values = compute(sweep);
    expect_ok(qkv_sweep_reader_open(&file, path, &err), &err, "opening it");
    assert_int_equal(qkv_sweep_reader_get_info(file)->patches, 1);
    expect_ok(qkv_sweep_reader_rows(file, DIFF, &rows, &err), &err, "reading it");
    assert_int_equal(qkv_sweep_rows_count(rows), qkv_sweep_n_cells(sweep));
    for (size_t i = 0; qkv_sweep_rows_get(rows, i, &r); i++) {
        const qkv_cell cell = sweep_cell(sweep, (int64_t)i);
        assert_int_equal(r.position, cell.position);
        assert_int_equal(r.head, cell.head);
        assert_string_equal(qkv_sweep_reader_op(file, (size_t)r.op), cell.op);
        assert_true(r.value == values[i]);
    }
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
    free(values);
    qkv_sweep_free(sweep);
}

/* ---- the study's sweep ---- */

static void add_prompt(qkv_study *study, const char *text, int32_t *tokens, size_t n) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    qkv_error err = {0};
    prompt.text = n ? NULL : text;
    prompt.tokens = tokens;
    prompt.n_tokens = n;
    prompt.written = n ? text : NULL;
    expect_ok(qkv_study_add_prompt(study, &prompt, &err), &err, text);
}

static qkv_sweep *sweep_of(qkv_study *study) {
    qkv_sweep *sweep = NULL;
    qkv_error err = {0};
    expect_ok(qkv_study_make_sweep(study, e.model, &sweep, &err), &err, "the study's sweep");
    return sweep;
}

/* It is that of the specification, made once, and made anew when options change. */
static void a_study_has_the_sweep_of_its_specification(void **state) {
    (void)state;
    qkv_study *study = NULL;
    qkv_error err = {0};
    expect_ok(qkv_study_new(&study, "patch", &err), &err, "patch");
    expect_ok(qkv_study_set(study, "metric", DIFF, &err), &err, "metric");
    add_prompt(study, CLEAN, NULL, 0);
    add_prompt(study, CORRUPT, NULL, 0);
    qkv_sweep *wanted = make("{" PAIR ", \"metrics\": [\"" DIFF "\"]}");
    qkv_sweep *first = sweep_of(study), *again = sweep_of(study);
    assert_string_equal(qkv_sweep_spec(first), qkv_sweep_spec(wanted));
    assert_ptr_equal(first, again);
    expect_ok(qkv_study_set(study, "layers", "2", &err), &err, "layers");
    qkv_sweep *other = sweep_of(study);
    assert_true(qkv_sweep_n_cells(other) < qkv_sweep_n_cells(first));
    add_prompt(study, CLEAN, NULL, 0);
    add_prompt(study, CORRUPT, NULL, 0);
    qkv_sweep *more = sweep_of(study);
    assert_int_equal(qkv_sweep_n_prompts(more), 4);
    expect_ok(qkv_study_run(study, e.session, NULL, &err), &err, "run");
    qkv_study_free(study); /* before its sweeps */
    assert_int_equal(qkv_sweep_n_cells(more), 2 * qkv_sweep_n_cells(other));
    qkv_sweep *const all[] = {wanted, first, again, other, more};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) qkv_sweep_free(all[i]);
}

/* Tokens that come with a text for records are not made of that text. */
static void given_tokens_are_what_is_patched(void **state) {
    (void)state;
    qkv_study *study = NULL;
    qkv_error err = {0};
    int32_t *tokens[2] = {NULL, NULL};
    size_t n[2] = {0};
    tokenize(CLEAN, &tokens[0], &n[0]);
    tokenize(CORRUPT, &tokens[1], &n[1]);
    expect_ok(qkv_study_new(&study, "patch", &err), &err, "patch");
    expect_ok(qkv_study_set(study, "metric", DIFF, &err), &err, "metric");
    for (int i = 0; i < 2; i++) add_prompt(study, "user: a river?", tokens[i], n[i]);
    qkv_sweep *sweep = sweep_of(study);
    assert_null(strstr(qkv_sweep_spec(sweep), "user"));
    qkv_sweep_free(sweep);
    expect_ok(qkv_study_run(study, e.session, NULL, &err), &err, "run");
    qkv_study_free(study);
    for (int i = 0; i < 2; i++) qkv_tokens_free(tokens[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_count_by_direction_layer_map_and_column),
        cmocka_unit_test(specifications_that_mean_the_same_are_the_same),
        cmocka_unit_test(quotes_around_tokens_do_not_count),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(equal_values_cannot_be_recovered),
        cmocka_unit_test(blanks_that_were_left_out_are_put_in),
        cmocka_unit_test(pairs_of_answers_have_blanks_alike),
        cmocka_unit_test(answers_without_a_space_are_warned_of),
        cmocka_unit_test(cells_are_what_each_gives_alone),
        cmocka_unit_test(answers_of_several_tokens),
        cmocka_unit_test(answers_behind_prompts_of_different_length),
        cmocka_unit_test(paths_are_two_runs),
        cmocka_unit_test(paths_to_the_logits),
        cmocka_unit_test(paths_are_specified),
        cmocka_unit_test(cells_agree_with_the_reference),
        cmocka_unit_test(files_hold_positions_and_recovery),
        cmocka_unit_test(a_study_has_the_sweep_of_its_specification),
        cmocka_unit_test(given_tokens_are_what_is_patched),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
