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
#include "qkv/study.h"
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
    assert_false(qkv_next_edit_ran(next, 2, 0)); /* after the last token there is none to predict */
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
    refused(e.model, N, &how, "leave out `of`, `diff` and `answer`");
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

/* The tokens of an answer; 1: a space was put before it. */
static int answer_of(const qkv_model *model, const char *text, size_t n, const int32_t *wanted) {
    qkv_error err = {0};
    int32_t *tokens = NULL;
    size_t found = 0;
    int spaced = -1;
    expect_ok(qkv_find_answer(model, &tokens, &found, &spaced, text, strlen(text), &err), &err,
              text);
    assert_int_equal(found, n);
    assert_memory_equal(tokens, wanted, n * sizeof *tokens);
    qkv_tokens_free(tokens);
    return spaced;
}

static int32_t id_of(const qkv_model *model, const char *text) {
    qkv_error err = {0};
    int32_t token = -1;
    expect_ok(qkv_find_token(model, &token, text, strlen(text), &err), &err, text);
    return token;
}

static void answers_by_text(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_model *model = NULL;
    expect_ok(qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", &err), &err, "default.gguf");
    const int32_t sea = id_of(model, " sea");
    const int32_t bank[] = {id_of(model, " river"), id_of(model, " bank")};
    assert_int_equal(answer_of(model, " sea", 1, &sea), 0);
    assert_int_equal(answer_of(model, "sea", 1, &sea), 1);
    assert_int_equal(answer_of(model, " river bank", 2, bank), 0);
    qkv_model_free(model);
}

/* A pair of answers as one finds it: tokens, and how many spaces were put in. */
static int pair_of(const qkv_model *model, const char *a, const char *b, const int32_t wanted[2]) {
    const char *const texts[2] = {a, b};
    const size_t lengths[2] = {strlen(a), strlen(b)};
    qkv_error err = {0};
    int32_t *tokens[2] = {0};
    size_t n[2];
    int spaced[2];
    expect_ok(qkv_find_answer_pair(model, tokens, n, spaced, texts, lengths, &err), &err, a);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(n[i], 1);
        assert_int_equal(tokens[i][0], wanted[i]);
        qkv_tokens_free(tokens[i]);
    }
    return spaced[0] + spaced[1];
}

/* "sea" is a token only with a space before it; "or" is one either way, "ing" only without. */
static void pairs_of_answers_have_blanks_alike(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_model *model = NULL;
    expect_ok(qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", &err), &err, "default.gguf");
    const int32_t sea = id_of(model, " sea"), or = id_of(model, "or"),
                  spaced_or = id_of(model, " or");
    const int32_t land = id_of(model, " land"), ing = id_of(model, "ing");
    assert_int_equal(pair_of(model, "sea", "or", (int32_t[]){sea, spaced_or}), 2);
    assert_int_equal(pair_of(model, "or", "sea", (int32_t[]){spaced_or, sea}), 2);
    assert_int_equal(pair_of(model, "sea", " or", (int32_t[]){sea, spaced_or}), 1);
    assert_int_equal(pair_of(model, "sea", "land", (int32_t[]){sea, land}), 2);
    assert_int_equal(pair_of(model, "or", "ing", (int32_t[]){ or, ing}), 0);
    assert_int_equal(pair_of(model, " sea", "ing", (int32_t[]){sea, ing}), 0);
    const char *const mixed[][3] = {{"sea", "ing", "as in \" sea/ing\""},
                                    {"ing", "sea", "as in \"ing/ sea\""},
                                    {"sea", "blue river", "as in \" sea/ blue river\""}};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        const size_t lengths[2] = {strlen(mixed[i][0]), strlen(mixed[i][1])};
        int32_t *tokens[2];
        size_t n[2];
        int spaced[2];
        assert_int_equal(qkv_find_answer_pair(model, tokens, n, spaced, mixed[i], lengths, &err),
                         QKV_ERR_ARGUMENT);
        assert_null(tokens[0]);
        assert_null(tokens[1]);
        assert_non_null(strstr(err.message, mixed[i][2]));
    }
    qkv_model_free(model);
}

static int lacks_space(const qkv_model *model, const char *prompt, const char *answer) {
    qkv_error err = {0};
    int32_t *before = NULL, *tokens = NULL;
    size_t n_before, n;
    int lacks = -1;
    expect_ok(qkv_tokenize(model, &before, &n_before, prompt, strlen(prompt), 0, &err), &err,
              prompt);
    expect_ok(qkv_find_answer(model, &tokens, &n, NULL, answer, strlen(answer), &err), &err,
              answer);
    expect_ok(qkv_answer_lacks_space(model, &lacks, before, n_before, tokens, n, &err), &err,
              answer);
    qkv_tokens_free(before);
    qkv_tokens_free(tokens);
    return lacks;
}

static void answers_that_lack_a_space(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_model *model = NULL;
    expect_ok(qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", &err), &err, "default.gguf");
    assert_int_equal(lacks_space(model, "The river runs to the", "wide blue sea"), 1);
    assert_int_equal(lacks_space(model, "The river runs to the", " wide blue sea"), 0);
    assert_int_equal(lacks_space(model, "The river runs to the ", "wide blue sea"), 0);
    assert_int_equal(lacks_space(model, "The river runs to the\n", "wide blue sea"), 0);
    assert_int_equal(lacks_space(model, "The river runs to the", "sea"), 0); /* one token */
    assert_int_equal(lacks_space(model, "The river runs", ", and the sea"), 0);
    qkv_model_free(model);
}

/* Answers are what a run of the whole text gives; edits count as in the prompt. */
static void answers_are_those_of_the_whole_text(void **state) {
    (void)state;
    enum { PROMPT = 4 };
    static const char *const edits[] = {"z@1.h2=zero", "z@0[-1]=zero", "v@1[0]=zero",
                                        "resid_pre@0=patch:other"};
    /* The same, in a prompt that has the answer's tokens. */
    static const char *const whole[] = {"z@1.h2=zero", "z@0[3]=zero", "v@1[0]=zero",
                                        "resid_pre@0=patch:other", NULL};
    static const int32_t other[] = {6, 10, 41, 78, 9, 101};
    const int32_t *answers[] = {TOKENS + PROMPT, TOKENS + PROMPT};
    const size_t lengths[] = {3, 1}, source = PROMPT;
    const char *names[] = {"other"};
    const int32_t *sources[] = {other};
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    how.variants = edits;
    how.n_variants = 4;
    how.source_names = names;
    how.source_tokens = sources;
    how.source_lengths = &source;
    how.n_sources = 1;
    how.answers = answers;
    how.answer_lengths = lengths;
    how.n_answers = 2;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_error err = {0};
    expect_ok(qkv_plan_new(&plan, e.model, TOKENS, N - 1, &err), &err, "a plan");
    expect_ok(qkv_plan_add_source(plan, "other", other, N - 1, &err), &err, "a source");
    for (size_t v = 0; whole[v]; v++)
        expect_ok(qkv_plan_add_variant(plan, whole[v], NULL, &err), &err, whole[v]);
    expect_ok(qkv_plan_add_capture(plan, "logits", &err), &err, "a capture");
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "a run");
    for (size_t memory = 0; memory < 2; memory++) { /* all rows at once, and one at a time */
        qkv_next *next = NULL;
        how.memory = memory;
        expect_ok(qkv_next_new(&next, e.session, TOKENS, PROMPT, &how, &err), &err, "next");
        for (size_t v = 0; v <= 4; v++) {
            const float *rows = engine_tensor(result, v, QKV_SITE_LOGITS, 0).data;
            qkv_next_answer all = QKV_NEXT_ANSWER_INIT, first = QKV_NEXT_ANSWER_INIT,
                            base = QKV_NEXT_ANSWER_INIT;
            double sum = 0, one = 0;
            for (size_t i = PROMPT - 1; i < N - 1; i++) {
                double norm = 0;
                for (size_t t = 0; t < V; t++) norm += exp((double)rows[i * V + t]);
                sum += (double)rows[i * V + (size_t)TOKENS[i + 1]] - log(norm);
                if (i == PROMPT - 1) one = sum;
            }
            assert_true(qkv_next_get_answer(next, v, 0, &all));
            assert_true(qkv_next_get_answer(next, v, 1, &first));
            assert_true(qkv_next_get_answer(next, 0, 0, &base));
            assert_false(qkv_next_get_answer(next, v, 2, &first));
            assert_int_equal(all.n_tokens, 3);
            assert_true(fabs(all.log_probability - sum) < 1e-9);
            assert_true(fabs(first.log_probability - one) < 1e-9);
            assert_true(fabs(all.probability - exp(sum)) < 1e-12);
            assert_true(all.log_probability_change == all.log_probability - base.log_probability);
            assert_true(v == 0 || all.log_probability_change != 0);
        }
        qkv_next_free(next);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    how.at = 1;
    assert_int_equal(qkv_next_check(e.model, TOKENS, PROMPT, &how, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "last token"));
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

/* ---- the study ---- */

static qkv_study *study_of(const char *variant) {
    qkv_error err = {0};
    qkv_study *study = NULL;
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = TOKENS;
    prompt.n_tokens = N;
    expect_ok(qkv_study_new(&study, "next", &err), &err, "qkv_study_new");
    expect_ok(qkv_study_set(study, "variant", variant, &err), &err, "variant");
    expect_ok(qkv_study_add_prompt(study, &prompt, &err), &err, "qkv_study_add_prompt");
    return study;
}

/* A number of the study's table `tokens`, the last one. */
static double number_at(const qkv_study *study, size_t row, const char *column) {
    qkv_error err = {0};
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    double number = 0;
    const char *text = NULL, *name;
    expect_ok(qkv_study_get_info(study, &info, &err), &err, "qkv_study_get_info");
    for (size_t c = 0; (name = qkv_study_column(study, info.n_tables - 1, c)); c++) {
        if (strcmp(name, column) != 0) continue;
        expect_ok(qkv_study_get_value(study, info.n_tables - 1, row, c, &number, &text, &err), &err,
                  column);
        return number;
    }
    fail_msg("no column %s", column);
    return 0;
}

static void the_study_has_the_same_numbers(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_next_options how = usual();
    how.n_variants = 1;
    how.top = V;
    qkv_next *next = make(&how);
    qkv_study *study = study_of(EDITS[0]);
    expect_ok(qkv_study_set(study, "top", "100000", &err), &err, "top");
    expect_ok(qkv_study_run(study, e.session, NULL, &err), &err, "qkv_study_run");
    for (size_t v = 0; v < 2; v++) {
        qkv_next_token t = QKV_NEXT_TOKEN_INIT;
        for (size_t i = 0; qkv_next_get(next, v, i, &t); i++) {
            assert_true(number_at(study, v * V + i, "token") == t.token);
            assert_true(number_at(study, v * V + i, "logit") == t.logit);
            assert_true(number_at(study, v * V + i, "probability") == t.probability);
            assert_true(number_at(study, v * V + i, "kl") == qkv_next_kl(next, v));
        }
    }
    qkv_study_free(study);
    qkv_next_free(next);
}

/* Fields and prompts with names are two ways to the same. */
static void sources_of_the_study(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_study *fields = study_of("v@0[1<-2]=patch:far + z@1=mean:set");
    qkv_study *prompts = study_of("v@0[1<-2]=patch:far + z@1=mean:set");
    static const char *const named[][2] = {
        {"far", "the thin end"}, {QKV_SET_PROMPT, "one"}, {QKV_SET_PROMPT, "another one"}};
    expect_ok(qkv_study_set(fields, "source", "far=the thin end", &err), &err, "source");
    expect_ok(qkv_study_set(fields, "set_prompts", "one\n\nanother one\n", &err), &err, "set");
    for (size_t i = 0; i < 3; i++) {
        qkv_prompt prompt = QKV_PROMPT_INIT;
        prompt.name = named[i][0];
        prompt.text = named[i][1];
        expect_ok(qkv_study_add_prompt(prompts, &prompt, &err), &err, "qkv_study_add_prompt");
    }
    expect_ok(qkv_study_run(fields, e.session, NULL, &err), &err, "of fields");
    expect_ok(qkv_study_run(prompts, e.session, NULL, &err), &err, "of prompts");
    qkv_study_info a = QKV_STUDY_INFO_INIT, b = QKV_STUDY_INFO_INIT;
    expect_ok(qkv_study_get_info(fields, &a, &err), &err, "qkv_study_get_info");
    expect_ok(qkv_study_get_info(prompts, &b, &err), &err, "qkv_study_get_info");
    assert_string_equal(a.recipe, b.recipe);
    assert_true(number_at(fields, 10, "kl") > 0);
    qkv_study_free(fields);
    qkv_study_free(prompts);
}

static void expect_study_fails(const char *variant, const char *field, const char *value,
                               const char *message) {
    qkv_error err = {0};
    qkv_study *study = study_of(variant);
    if (field) expect_ok(qkv_study_set(study, field, value, &err), &err, field);
    assert_int_not_equal(qkv_study_run(study, e.session, NULL, &err), QKV_OK);
    assert_string_equal(err.message, message);
    qkv_study_free(study);
}

static void mistakes_of_the_study(void **state) {
    (void)state;
    expect_study_fails("v@0=zero", "source", "far=a b",
                       "no edit uses the source 'far'; write "
                       "SITE@LAYERS=patch:far");
    expect_study_fails("v@0=zero", "source", "far", "a `source` is written NAME=TEXT, not 'far'");
    expect_study_fails("v@0=zero", "set_prompts", "one\ntwo",
                       "no edit uses `set_prompts`; write SITE@LAYERS=mean:set or "
                       "SITE@LAYERS=patch:resample");
    expect_study_fails("v@0=zero", "diff", "a/b/c", "`diff` wants two tokens, A/B, not 'a/b/c'");
    expect_study_fails("v@0=zero", "of", "a,,b", "`of`: the text of a token is empty");
    /* Files are read where that was allowed, and nowhere else. */
    qkv_error err = {0};
    qkv_study *study = study_of("v@0=set:@/nowhere/x.safetensors#y");
    assert_int_not_equal(qkv_study_run(study, e.session, NULL, &err), QKV_OK);
    assert_null(strstr(err.message, "No such file"));
    qkv_study_free(study);
    study = study_of("v@0=set:@/nowhere/x.safetensors#y");
    expect_ok(qkv_study_set(study, "read_vectors", NULL, &err), &err, "read_vectors");
    assert_int_not_equal(qkv_study_run(study, e.session, NULL, &err), QKV_OK);
    assert_non_null(strstr(err.message, "No such file"));
    qkv_study_free(study);
}

/* Edits of other kinds name nothing. */
static void kinds_without_sources(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_study *study = NULL;
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.text = "one";
    prompt.name = "far";
    expect_ok(qkv_study_new(&study, "lens", &err), &err, "qkv_study_new");
    assert_int_not_equal(qkv_study_set(study, "source", "far=a", &err), QKV_OK);
    expect_ok(qkv_study_add_prompt(study, &prompt, &err), &err, "qkv_study_add_prompt");
    assert_int_not_equal(qkv_study_run(study, e.session, NULL, &err), QKV_OK);
    assert_string_equal(err.message, "the study 'lens' has no edits that name prompts");
    qkv_study_free(study);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(positions),
                                       cmocka_unit_test(every_token_can_be_asked_for),
                                       cmocka_unit_test(unreached),
                                       cmocka_unit_test(sources),
                                       cmocka_unit_test(losses),
                                       cmocka_unit_test(edits_of_blocks),
                                       cmocka_unit_test(metrics_agree),
                                       cmocka_unit_test(mistakes),
                                       cmocka_unit_test(most_likely),
                                       cmocka_unit_test(tokens_by_text),
                                       cmocka_unit_test(answers_by_text),
                                       cmocka_unit_test(pairs_of_answers_have_blanks_alike),
                                       cmocka_unit_test(answers_that_lack_a_space),
                                       cmocka_unit_test(answers_are_those_of_the_whole_text),
                                       cmocka_unit_test(the_study_has_the_same_numbers),
                                       cmocka_unit_test(sources_of_the_study),
                                       cmocka_unit_test(mistakes_of_the_study),
                                       cmocka_unit_test(kinds_without_sources)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
