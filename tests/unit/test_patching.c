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

#include "qkv/next.h"
#include "qkv/sweep_blocks.h"
#include "qkv/sweep_reader.h"
#include "reference/ref_forward.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/values.h"

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
    refuse("{" PAIR ", \"metrics\": \"prob: riverbank\"}", "\" riverbank\" is not one token");
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
           "pair 0: answer:");
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_count_by_direction_layer_map_and_column),
        cmocka_unit_test(specifications_that_mean_the_same_are_the_same),
        cmocka_unit_test(quotes_around_tokens_do_not_count),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(equal_values_cannot_be_recovered),
        cmocka_unit_test(cells_are_what_each_gives_alone),
        cmocka_unit_test(cells_agree_with_the_reference),
        cmocka_unit_test(files_hold_positions_and_recovery),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
