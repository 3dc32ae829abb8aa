/*
 * Next tokens against a softmax of the test's own, over logits that an ordinary run captured; losses in
 * blocks of any size; tokens by their text.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/measure.h"
#include "qkv/next.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { N = 7, V = TINY_VOCAB, VARIANTS = 3 };

static const int32_t TOKENS[N] = {5, 9, 40, 77, 9, 101, 13};
static const char *const EDITS[] = {"z@1.h2=zero", "v@*=scale:0.2 + q@0.h1=scale:3",
                                    "logits=scale:1.5", NULL};
static const char *const LOGITS[] = {"logits", NULL};

static engine e;
static float logits[VARIANTS + 1][N][V];

static int set_up(void **state) {
    (void)state;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    qkv_result *result = engine_execute(
        &e, &(engine_run){.tokens = TOKENS, .n_tokens = N, .variants = EDITS, .captures = LOGITS});
    for (size_t v = 0; v <= VARIANTS; v++)
        memcpy(logits[v], engine_tensor(result, v, QKV_SITE_LOGITS, 0).data, sizeof logits[v]);
    qkv_result_free(result);
    return 0;
}

static int tear_down(void **state) {
    engine_close(&e);
    return scratch_clean(state);
}

static qkv_next_options usual(void) {
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    how.variants = EDITS;
    how.n_variants = VARIANTS;
    return how;
}

static qkv_next *make(const qkv_next_options *how) {
    qkv_error err = {0};
    qkv_next *next = NULL;
    expect_ok(qkv_next_new(&next, e.session, TOKENS, N, how, &err), &err, "qkv_next_new");
    return next;
}

/* ---- what is expected ---- */

static double probability(const float *row, int32_t token) {
    double sum = 0;
    for (int i = 0; i < V; i++) sum += exp((double)row[i] - (double)row[token]);
    return 1 / sum;
}

static int64_t rank_of(const float *row, int32_t token) {
    int64_t rank = 1;
    for (int32_t i = 0; i < V; i++)
        rank += row[i] > row[token] || (row[i] == row[token] && i < token);
    return rank;
}

static double kl(const float *p, const float *q) {
    double sum = 0;
    for (int32_t i = 0; i < V; i++) {
        const double share = probability(p, i);
        sum += share * log(share / probability(q, i));
    }
    return sum;
}

static void expect_near(double actual, double expected) {
    if (!(fabs(actual - expected) <= 1e-10 * fmax(1, fabs(expected))))
        fail_msg("%.17g, not %.17g", actual, expected);
}

static void expect_token(const qkv_next_token *t, size_t variant, size_t at, int32_t token) {
    const float *row = logits[variant][at], *base = logits[0][at];
    assert_int_equal(t->token, token);
    assert_int_equal(t->rank, rank_of(row, token));
    assert_int_equal(t->rank_change, rank_of(row, token) - rank_of(base, token));
    expect_near(t->logit, (double)row[token]);
    expect_near(t->logit_change, (double)row[token] - (double)base[token]);
    expect_near(t->probability, probability(row, token));
    expect_near(t->probability_change, probability(row, token) - probability(base, token));
}

/* ---- one position ---- */

static void check_position(int64_t given, size_t at) {
    static const int32_t of[] = {0, 261, 77}, diff[] = {10, 20, 77, 3};
    qkv_next_options how = usual();
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    how.at = given;
    how.of = of;
    how.n_of = 3;
    how.diff = diff;
    how.n_diff = 2;
    qkv_next *next = make(&how);
    assert_int_equal(qkv_next_n_variants(next), VARIANTS + 1);
    assert_int_equal(qkv_next_position(next), at);
    for (size_t v = 0; v <= VARIANTS; v++) {
        const float *row = logits[v][at], *base = logits[0][at];
        size_t n = 0;
        for (; qkv_next_get(next, v, n, &t); n++) {
            assert_int_equal(t.rank, n + 1);
            expect_token(&t, v, at, t.token);
        }
        assert_int_equal(n, 10);
        for (size_t i = 0; i < 3; i++) {
            assert_true(qkv_next_get_of(next, v, i, &t));
            expect_token(&t, v, at, of[i]);
        }
        for (size_t i = 0; i < 2; i++) {
            double value, change;
            const int32_t a = diff[2 * i], b = diff[2 * i + 1];
            assert_true(qkv_next_get_diff(next, v, i, &value, &change));
            expect_near(value, (double)row[a] - (double)row[b]);
            expect_near(change, value - ((double)base[a] - (double)base[b]));
        }
        expect_near(qkv_next_kl(next, v), kl(base, row));
        assert_true(v == 0 || qkv_next_kl(next, v) > 1e-7);
    }
    assert_false(qkv_next_get_of(next, 0, 3, &t));
    qkv_next_free(next);
}

static void positions(void **state) {
    (void)state;
    check_position(-1, N - 1);
    check_position(-N, 0);
    check_position(0, 0);
    check_position(3, 3);
}

static void every_token_can_be_asked_for(void **state) {
    (void)state;
    qkv_next_options how = usual();
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    how.top = 100000;
    qkv_next *next = make(&how);
    double sum = 0;
    size_t n = 0;
    for (; qkv_next_get(next, 1, n, &t); n++) sum += t.probability;
    assert_int_equal(n, V);
    expect_near(sum, 1);
    qkv_next_free(next);
}

/* A later token cannot change what an earlier one predicts. */
static void unreached(void **state) {
    (void)state;
    const char *const edits[] = {"v@0[5]=zero + v@1[1]=zero", "v@0[6]=zero"};
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    qkv_next_token t = QKV_NEXT_TOKEN_INIT, base = QKV_NEXT_TOKEN_INIT;
    how.variants = edits;
    how.n_variants = 2;
    how.at = 2;
    qkv_next *next = make(&how);
    assert_string_equal(qkv_next_edit_text(next, 1, 0), "v@0[5]=zero");
    assert_true(qkv_next_edit_ran(next, 1, 1));
    assert_int_equal(qkv_next_edit_changed(next, 1, 1), 32);
    assert_true(qkv_next_kl(next, 1) > 0);
    assert_false(qkv_next_edit_ran(next, 2, 0));
    assert_int_equal(qkv_next_edit_changed(next, 2, 0), 0);
    assert_true(qkv_next_kl(next, 2) == 0);
    for (size_t i = 0; qkv_next_get(next, 0, i, &base); i++) {
        assert_true(qkv_next_get(next, 2, i, &t));
        assert_memory_equal(&t, &base, sizeof t);
    }
    qkv_next_free(next);
}

static void sources(void **state) {
    (void)state;
    static const int32_t other[N] = {5, 8, 41, 70, 9, 100, 14};
    const char *const names[] = {"src"}, *const edits[] = {"resid_pre@0=patch:src"};
    const int32_t *const ids[] = {other};
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    how.variants = edits;
    how.n_variants = how.n_sources = 1;
    how.source_names = names;
    how.source_tokens = ids;
    qkv_next *next = make(&how);
    qkv_result *result =
        engine_execute(&e, &(engine_run){.tokens = other, .n_tokens = N, .captures = LOGITS});
    const float *row = engine_tensor(result, 0, QKV_SITE_LOGITS, 0).data + (N - 1) * V;
    for (size_t i = 0; qkv_next_get(next, 1, i, &t); i++) {
        assert_int_equal(t.rank, rank_of(row, t.token));
        expect_near(t.probability, probability(row, t.token));
    }
    qkv_result_free(result);
    qkv_next_free(next);
}

/* ---- all positions ---- */

static void check_losses(size_t memory) {
    qkv_next_options how = usual();
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    how.all = 1;
    how.memory = memory;
    qkv_next *next = make(&how);
    assert_int_equal(qkv_next_position(next), -1);
    assert_true(isnan(qkv_next_kl(next, 1)));
    assert_false(qkv_next_get(next, 0, 0, &t));
    for (size_t v = 0; v <= VARIANTS; v++) {
        double sum = 0;
        for (size_t i = 0; i < N - 1; i++) {
            const float *row = logits[v][i], *base = logits[0][i];
            const int32_t token = TOKENS[i + 1];
            assert_true(qkv_next_get_loss(next, v, i, &loss));
            assert_int_equal(loss.position, i + 1);
            assert_int_equal(loss.token, token);
            expect_near(loss.loss, -log(probability(row, token)));
            expect_near(loss.loss_change, log(probability(base, token) / probability(row, token)));
            assert_int_equal(loss.rank, rank_of(row, token));
            assert_int_equal(loss.rank_change, rank_of(row, token) - rank_of(base, token));
            expect_near(loss.kl, kl(base, row));
            sum += loss.loss;
        }
        assert_false(qkv_next_get_loss(next, v, N - 1, &loss));
        expect_near(qkv_next_mean_loss(next, v), sum / (N - 1));
    }
    qkv_next_free(next);
}

static void losses(void **state) {
    (void)state;
    check_losses(0);
    check_losses(1); /* a row at a time */
    check_losses(4 * V * sizeof(float));
}

/* An edit that shows in one block alone has been computed. */
static void edits_of_blocks(void **state) {
    (void)state;
    const char *const edits[] = {"q@2[1]=zero", "q@2[6]=zero"};
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    how.variants = edits;
    how.n_variants = 2;
    how.all = 1;
    how.memory = 1;
    qkv_next *next = make(&how);
    assert_true(qkv_next_edit_ran(next, 1, 0));
    assert_int_equal(qkv_next_edit_changed(next, 1, 0), 32);
    for (size_t i = 0; qkv_next_get_loss(next, 1, i, &loss); i++)
        assert_int_equal(loss.kl > 0, i == 1);
    assert_false(
        qkv_next_edit_ran(next, 2, 0)); /* behind the last token there is none to predict */
    qkv_next_free(next);
}

/* The same formulas as the metrics. */
static void metrics_agree(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    qkv_measurement m = QKV_MEASUREMENT_INIT;
    qkv_next_options how = usual();
    qkv_plan *plan =
        engine_plan(&e, &(engine_run){.tokens = TOKENS, .n_tokens = N, .variants = EDITS});
    expect_ok(qkv_measure_new(&measure, "output_kl,loss", NULL, &err), &err, "qkv_measure_new");
    expect_ok(qkv_measure_run(measure, &table, e.session, plan, &err), &err, "qkv_measure_run");
    qkv_next *at_end = make(&how);
    how.all = 1;
    qkv_next *all = make(&how);
    assert_int_equal(qkv_table_size(table), 2 * (VARIANTS + 1));
    for (size_t i = 0; qkv_table_get(table, i, &m); i++)
        expect_near(m.metric ? qkv_next_mean_loss(all, m.variant) : qkv_next_kl(at_end, m.variant),
                    m.value);
    qkv_next_free(at_end);
    qkv_next_free(all);
    qkv_table_free(table);
    qkv_measure_free(measure);
    qkv_plan_free(plan);
}

/* ---- mistakes ---- */

static void refused(const qkv_model *model, size_t n, const qkv_next_options *how,
                    const char *message) {
    qkv_error err = {0};
    assert_int_not_equal(qkv_next_check(model, TOKENS, n, how, &err), QKV_OK);
    if (!strstr(err.message, message)) fail_msg("'%s' lacks '%s'", err.message, message);
}

static void mistakes(void **state) {
    (void)state;
    static const int32_t of[] = {3, V};
    engine encoder;
    qkv_error err = {0};
    qkv_next *next = NULL;
    qkv_next_options how = usual();
    how.at = N;
    refused(e.model, N, &how, "position 7 is out of range; the prompt has 0 to 6, or -7 to -1");
    how.at = -N - 1;
    refused(e.model, N, &how, "position -8");
    how = usual();
    how.of = of;
    how.n_of = 2;
    refused(e.model, N, &how, "token 262 is out of range");
    how.all = 1;
    how.n_of = 1;
    refused(e.model, N, &how, "leave out `of` and `diff`");
    how.n_of = 0;
    refused(e.model, 1, &how, "a prompt of one token has no losses");
    refused(e.model, 0, NULL, "");
    engine_open(&encoder, QKV_TEST_SOURCE_DIR "/vectors/bert/model.gguf", 1);
    refused(encoder.model, N, NULL, "is an encoder, which has no next token");
    engine_close(&encoder);

    const char *const edits[] = {"q@0=zero", "logits=scale:3e38"};
    how = usual();
    how.variants = edits;
    how.n_variants = 2;
    assert_int_equal(qkv_next_new(&next, e.session, TOKENS, N, &how, &err), QKV_ERR_NUMERIC);
    assert_null(next);
    assert_non_null(strstr(err.message, "variant 2 (logits=scale:3e38)"));
}

/* ---- parts ---- */

static void most_likely(void **state) {
    (void)state;
    const float row[] = {1, 5, 3, 5, -2, 3};
    static const int32_t expected[] = {1, 3, 2, 5, 0, 4};
    int32_t found[8];
    for (size_t n = 0; n <= 8; n++) {
        const size_t given = qkv_most_likely_tokens(row, 6, found, n);
        assert_int_equal(given, n < 6 ? n : 6);
        assert_memory_equal(found, expected, given * sizeof *found);
    }
}

static void expect_found(const char *text, const char *message) {
    qkv_error err = {0};
    int32_t token = -7;
    const int status = qkv_find_token(e.model, &token, text, strlen(text), &err);
    if (message) {
        assert_int_equal(status, QKV_ERR_ARGUMENT);
        assert_int_equal(token, -1);
        assert_string_equal(err.message, message);
        return;
    }
    char *bytes = NULL;
    size_t length = 0;
    expect_ok(status, &err, text);
    expect_ok(qkv_token_text(e.model, &bytes, &length, token, &err), &err, "qkv_token_text");
    assert_string_equal(bytes, text);
    qkv_text_free(bytes);
}

static void tokens_by_text(void **state) {
    (void)state;
    expect_found("a", NULL);
    expect_found(" ", NULL);
    expect_found("\n", NULL);
    expect_found("the", NULL);
    expect_found("</s>", NULL);
    expect_found("then", "\"then\" is not one token but 2: \"the\" \"n\"");
    expect_found("the thin\n",
                 "\"the thin\\n\" is not one token but 5: \"the\" \" \" \"th\" \"in\" "
                 "\"\\n\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),     cmocka_unit_test(every_token_can_be_asked_for),
        cmocka_unit_test(unreached),     cmocka_unit_test(sources),
        cmocka_unit_test(losses),        cmocka_unit_test(edits_of_blocks),
        cmocka_unit_test(metrics_agree), cmocka_unit_test(mistakes),
        cmocka_unit_test(most_likely),   cmocka_unit_test(tokens_by_text)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
