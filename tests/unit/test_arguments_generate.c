/* Generators, samplers and next tokens called with NULL and with numbers out of range: see test_arguments.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "qkv/qkv.h"
#include "run/run.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static const int32_t TOKENS[] = {5, 9, 40, 77};
enum { N = 4 };

static qkv_error err;

static void generators(void **state) {
    (void)state;
    engine e, other;
    qkv_generator *gen = NULL;
    qkv_plan *plan = NULL;
    char *text = NULL;
    int32_t *tokens = NULL;
    size_t n = 7;
    const char *const names[] = {"src"}, *const nothing[] = {NULL};
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    engine_open(&other, tiny_model(&(tiny_options){.family = "gpt2"}, "other.gguf"), 1);
    REFUSED(qkv_generator_new(NULL, e.model, TOKENS, N, NULL, &err));
    REFUSED(qkv_generator_new(&gen, NULL, TOKENS, N, NULL, &err));
    REFUSED(qkv_generator_new(&gen, e.model, NULL, N, NULL, &err));
    REFUSED(qkv_generator_new(&gen, e.model, TOKENS, N, &(qkv_generator_options){0}, &err));
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.edit_tokens = 3;
    REFUSED(qkv_generator_new(&gen, e.model, TOKENS, N, &how, &err));
    how = (qkv_generator_options)QKV_GENERATOR_OPTIONS_INIT;
    how.n_variants = 1;
    REFUSED(qkv_generator_new(&gen, e.model, TOKENS, N, &how, &err));
    how.variants = nothing;
    REFUSED(qkv_generator_new(&gen, e.model, TOKENS, N, &how, &err));
    how = (qkv_generator_options)QKV_GENERATOR_OPTIONS_INIT;
    how.n_sources = 1;
    REFUSED(qkv_generator_new(&gen, e.model, TOKENS, N, &how, &err));
    how.source_names = names;
    REFUSED(qkv_generator_new(&gen, e.model, TOKENS, N, &how, &err));
    qkv_generator_free(NULL);

    OK(qkv_generator_new(&gen, e.model, TOKENS, N, NULL, &err));
    assert_null(qkv_generator_logits(gen, 0));
    REFUSED(qkv_session_feed(NULL, gen, NULL, &err));
    REFUSED(qkv_session_feed(e.session, NULL, NULL, &err));
    REFUSED(qkv_session_feed(other.session, gen, NULL, &err));
    OK(qkv_session_feed(e.session, gen, NULL, &err));
    assert_int_equal(qkv_generator_n_variants(NULL), 0);
    assert_int_equal(qkv_generator_memory(NULL), 0);
    REFUSED(qkv_generator_explain(NULL, &text, &err));
    REFUSED(qkv_generator_explain(gen, NULL, &err));
    assert_null(qkv_generator_logits(NULL, 0));
    assert_null(qkv_generator_logits(gen, 1));
    assert_null(qkv_generator_tokens(NULL, 0, &n));
    assert_int_equal(n, 0);
    assert_null(qkv_generator_tokens(gen, 1, NULL));
    assert_non_null(qkv_generator_tokens(gen, 0, NULL));
    assert_null(qkv_generator_edit_text(NULL, 0, 0));
    assert_null(qkv_generator_edit_text(gen, 0, 0));
    assert_int_equal(qkv_generator_edit_changed(NULL, 0, 0), 0);
    assert_int_equal(qkv_generator_edit_changed(gen, 1, 0), 0);
    REFUSED(qkv_generator_plan(NULL, &plan, 0, &err));
    REFUSED(qkv_generator_plan(gen, NULL, 0, &err));
    REFUSED(qkv_generator_plan(gen, &plan, 1, &err));
    REFUSED(qkv_session_continue(NULL, TOKENS, N, 2, &tokens, &n, &err));
    REFUSED(qkv_session_continue(e.session, NULL, N, 2, &tokens, &n, &err));
    REFUSED(qkv_session_continue(e.session, TOKENS, N, 2, NULL, &n, &err));
    REFUSED(qkv_session_continue(e.session, TOKENS, N, 2, &tokens, NULL, &err));
    assert_int_equal(qkv_session_continue(e.session, TOKENS, N, SIZE_MAX, &tokens, &n, &err),
                     QKV_ERR_PLAN);
    engine_close(&e); /* the generator keeps the model */
    assert_non_null(qkv_generator_logits(gen, 0));
    qkv_generator_free(gen);
    engine_close(&other);
}

static void samplers(void **state) {
    (void)state;
    const float logits[] = {1, 2, 0}, bad[] = {1, NAN};
    int32_t token;
    qkv_sampler_options how = QKV_SAMPLER_OPTIONS_INIT;
    assert_int_equal(qkv_sample_greedy(NULL, 3), -1);
    assert_int_equal(qkv_sample_greedy(logits, 0), -1);
    REFUSED(qkv_sample(&how, NULL, 3, 0, &token, &err));
    REFUSED(qkv_sample(&how, logits, 0, 0, &token, &err));
    REFUSED(qkv_sample(&how, logits, 3, 0, NULL, &err));
    REFUSED(qkv_sample(&(qkv_sampler_options){0}, logits, 3, 0, &token, &err));
    assert_int_equal(qkv_sample(&how, bad, 2, 0, &token, &err), QKV_ERR_NUMERIC);
    OK(qkv_sample(NULL, logits, 3, 0, &token, &err));
    assert_int_equal(token, 1);
    REFUSED(qkv_sampler_check(&(qkv_sampler_options){0}, &err));
    OK(qkv_sampler_check(NULL, &err));
    assert_true(isnan(qkv_log_probability(NULL, 3, 0)));
    assert_true(isnan(qkv_log_probability(logits, 3, 3)));
    assert_true(isnan(qkv_log_probability(logits, 3, -1)));
}

static void ends(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    assert_false(qkv_is_end_token(NULL, 0));
    assert_false(qkv_is_end_token(e.model, -1));
    engine_close(&e);
}

static void next_options(const engine *e) {
    const char *const nothing[] = {NULL}, *const names[] = {"src"};
    qkv_next_options how = {0};
    REFUSED(qkv_next_check(NULL, TOKENS, N, NULL, &err));
    REFUSED(qkv_next_check(e->model, NULL, N, NULL, &err));
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err)); /* without its size */
    how = (qkv_next_options)QKV_NEXT_OPTIONS_INIT;
    how.top = -1;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.top = 0;
    how.n_variants = 1;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.variants = nothing;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.n_variants = 0;
    how.n_sources = 1;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.source_names = names;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.n_sources = 0;
    how.n_of = 1;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.n_of = 0;
    how.n_diff = 1;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.n_diff = 0;
    how.at = INT64_MIN;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
    how.at = INT64_MAX;
    REFUSED(qkv_next_check(e->model, TOKENS, N, &how, &err));
}

static void next_tokens(void **state) {
    (void)state;
    engine e;
    qkv_next *next = NULL;
    qkv_next_token t = QKV_NEXT_TOKEN_INIT, unsized = {0};
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    double value;
    int32_t ids[2], token;
    const float logits[] = {1, 2};
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    next_options(&e);
    REFUSED(qkv_next_new(NULL, e.session, TOKENS, N, NULL, &err));
    REFUSED(qkv_next_new(&next, NULL, TOKENS, N, NULL, &err));
    REFUSED(qkv_next_new(&next, e.session, NULL, N, NULL, &err));
    REFUSED(qkv_next_new(&next, e.session, TOKENS, N, &(qkv_next_options){0}, &err));
    OK(qkv_next_new(&next, e.session, TOKENS, N, NULL, &err));
    REFUSED(qkv_find_token(NULL, &token, "a", 1, &err));
    REFUSED(qkv_find_token(e.model, NULL, "a", 1, &err));
    REFUSED(qkv_find_token(e.model, &token, NULL, 1, &err));
    REFUSED(qkv_find_token(e.model, &token, "", 0, &err));
    int32_t *found = NULL;
    size_t n_found;
    REFUSED(qkv_find_answer(NULL, &found, &n_found, NULL, "a", 1, &err));
    REFUSED(qkv_find_answer(e.model, NULL, &n_found, NULL, "a", 1, &err));
    REFUSED(qkv_find_answer(e.model, &found, NULL, NULL, "a", 1, &err));
    REFUSED(qkv_find_answer(e.model, &found, &n_found, NULL, NULL, 1, &err));
    REFUSED(qkv_find_answer(e.model, &found, &n_found, NULL, "", 0, &err));
    int32_t *both[2];
    size_t n_both[2];
    int spaced[2], lacks;
    const char *const texts[] = {"a", "b"}, *const half[] = {"a", NULL};
    const size_t lengths[] = {1, 1};
    REFUSED(qkv_find_answer_pair(NULL, both, n_both, spaced, texts, lengths, &err));
    REFUSED(qkv_find_answer_pair(e.model, NULL, n_both, spaced, texts, lengths, &err));
    REFUSED(qkv_find_answer_pair(e.model, both, NULL, spaced, texts, lengths, &err));
    REFUSED(qkv_find_answer_pair(e.model, both, n_both, NULL, texts, lengths, &err));
    REFUSED(qkv_find_answer_pair(e.model, both, n_both, spaced, NULL, lengths, &err));
    REFUSED(qkv_find_answer_pair(e.model, both, n_both, spaced, half, lengths, &err));
    REFUSED(qkv_find_answer_pair(e.model, both, n_both, spaced, texts, NULL, &err));
    REFUSED(qkv_answer_lacks_space(NULL, &lacks, TOKENS, N, TOKENS, N, &err));
    REFUSED(qkv_answer_lacks_space(e.model, NULL, TOKENS, N, TOKENS, N, &err));
    REFUSED(qkv_answer_lacks_space(e.model, &lacks, NULL, N, TOKENS, N, &err));
    REFUSED(qkv_answer_lacks_space(e.model, &lacks, TOKENS, N, NULL, N, &err));
    engine_close(&e); /* what came out stays */
    qkv_next_answer answer = QKV_NEXT_ANSWER_INIT;
    assert_false(qkv_next_get_answer(NULL, 0, 0, &answer) ||
                 qkv_next_get_answer(next, 0, 0, &answer) || qkv_next_get_answer(next, 0, 0, NULL));
    assert_true(qkv_next_get(next, 0, 0, &t));
    assert_false(qkv_next_get(next, 0, 0, NULL) || qkv_next_get(next, 0, 0, &unsized));
    assert_false(qkv_next_get(NULL, 0, 0, &t) || qkv_next_get(next, 1, 0, &t));
    assert_false(qkv_next_get(next, 0, SIZE_MAX, &t));
    assert_false(qkv_next_get_of(NULL, 0, 0, &t) || qkv_next_get_of(next, 0, 0, &t));
    assert_false(qkv_next_get_diff(NULL, 0, 0, &value, NULL));
    assert_false(qkv_next_get_diff(next, 0, 0, &value, NULL));
    assert_false(qkv_next_get_loss(NULL, 0, 0, &loss) || qkv_next_get_loss(next, 0, 0, &loss));
    assert_true(isnan(qkv_next_kl(NULL, 0)) && isnan(qkv_next_kl(next, 1)));
    assert_true(isnan(qkv_next_mean_loss(NULL, 0)) && isnan(qkv_next_mean_loss(next, 0)));
    assert_int_equal(qkv_next_n_variants(NULL), 0);
    assert_int_equal(qkv_next_position(NULL), -1);
    assert_null(qkv_next_edit_text(NULL, 0, 0));
    assert_null(qkv_next_edit_text(next, 0, 0));
    assert_false(qkv_next_edit_ran(NULL, 0, 0) || qkv_next_edit_ran(next, 1, 0));
    assert_int_equal(qkv_next_edit_changed(NULL, 0, 0) + qkv_next_edit_changed(next, 1, 0), 0);
    assert_int_equal(qkv_most_likely_tokens(NULL, 2, ids, 2), 0);
    assert_int_equal(qkv_most_likely_tokens(logits, 2, NULL, 2), 0);
    assert_int_equal(qkv_most_likely_tokens(logits, 0, ids, 2), 0);
    qkv_next_free(next);
    qkv_next_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(generators), cmocka_unit_test(samplers),
                                       cmocka_unit_test(next_tokens), cmocka_unit_test(ends)};
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
