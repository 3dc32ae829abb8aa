/* Servers, what heads write, their circuits, and figures by their names, called with NULL and with
 * numbers out of range: see test_arguments.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "qkv/qkv.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static qkv_error err;

static void servers(void **state) {
    (void)state;
    qkv_server *server = NULL;
    qkv_server_model model = QKV_SERVER_MODEL_INIT;
    qkv_server_options options = QKV_SERVER_OPTIONS_INIT;
    REFUSED(qkv_server_new(NULL, &options, &err));
    REFUSED(qkv_server_new(&server, NULL, &err));
    REFUSED(qkv_server_new(&server, &(qkv_server_options){0}, &err));
    REFUSED(qkv_server_new(&server, &options, &err)); /* no models */
    options.n_models = 1;
    REFUSED(qkv_server_new(&server, &options, &err));
    options.models = &model;
    REFUSED(qkv_server_new(&server, &options, &err)); /* no name */
    model.name = "tiny";
    REFUSED(qkv_server_new(&server, &options, &err)); /* no path */
    model.path = tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf");
    options.port = 65536;
    REFUSED(qkv_server_new(&server, &options, &err));
    options.port = -1;
    REFUSED(qkv_server_new(&server, &options, &err));
    options.port = 0;
    options.bind = "0.0.0.0";
    REFUSED(qkv_server_new(&server, &options, &err)); /* without a token */
    options.token = "too short";
    REFUSED(qkv_server_new(&server, &options, &err));
    options.token = "0123456789abcdef";
    options.bind = "no address";
    REFUSED(qkv_server_new(&server, &options, &err));
    options.bind = NULL;
    options.max_connections = 7;
    REFUSED(qkv_server_new(&server, &options, &err));
    options.max_connections = 0;
    options.max_tokens = -1;
    REFUSED(qkv_server_new(&server, &options, &err));
    options.max_tokens = 0;
    options.time_limit = -1;
    REFUSED(qkv_server_new(&server, &options, &err));
    options.time_limit = 0;
    options.frame_ancestors = "http://a; script-src *";
    REFUSED(qkv_server_new(&server, &options, &err));
    assert_null(server);
    options.frame_ancestors = NULL;

    OK(qkv_server_new(&server, &options, &err));
    assert_non_null(strstr(qkv_server_url(server), "token=0123456789abcdef"));
    assert_in_range(qkv_server_port(server), 1, 65535);
    assert_int_equal(qkv_server_wait(server, 0), 0);
    assert_int_equal(qkv_server_wait(server, -1), 0);
    qkv_server_stop(server);
    qkv_server_stop(server);
    assert_int_equal(qkv_server_wait(server, 1000), 1);
    qkv_server_free(server);
    assert_null(qkv_server_url(NULL));
    assert_int_equal(qkv_server_port(NULL), 0);
    assert_int_equal(qkv_server_wait(NULL, 1), 1);
    qkv_server_stop(NULL);
    qkv_server_free(NULL);
}

static void written(void **state) {
    (void)state;
    engine e;
    float value[8] = {1}, out[TINY_VOCAB];
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    REFUSED(qkv_head_output(NULL, 0, 0, value, out, &err));
    REFUSED(qkv_head_output(e.model, 0, 0, NULL, out, &err));
    REFUSED(qkv_head_output(e.model, 0, 0, value, NULL, &err));
    REFUSED(qkv_head_output(e.model, -1, 0, value, out, &err));
    REFUSED(qkv_head_output(e.model, e.info->n_layer, 0, value, out, &err));
    REFUSED(qkv_head_output(e.model, 0, -1, value, out, &err));
    REFUSED(qkv_head_output(e.model, 0, e.info->n_head, value, out, &err));
    REFUSED(qkv_head_logits(NULL, 0, 0, value, out, &err));
    REFUSED(qkv_head_logits(e.model, 0, 0, NULL, out, &err));
    REFUSED(qkv_head_logits(e.model, 0, 0, value, NULL, &err));
    REFUSED(qkv_head_logits(e.model, 9, 0, value, out, &err));
    OK(qkv_head_logits(e.model, 0, 0, value, out, &err));
    engine_close(&e);
}

static void scored(void **state) {
    (void)state;
    engine e;
    const int32_t tokens[] = {1, 2, 3};
    float out[9];
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    REFUSED(qkv_head_scores(NULL, tokens, 3, 0, 0, out, &err));
    REFUSED(qkv_head_scores(e.session, NULL, 3, 0, 0, out, &err));
    REFUSED(qkv_head_scores(e.session, tokens, 3, 0, 0, NULL, &err));
    assert_int_not_equal(qkv_head_scores(e.session, tokens, 0, 0, 0, out, &err), QKV_OK);
    REFUSED(qkv_head_scores(e.session, tokens, 3, -1, 0, out, &err));
    REFUSED(qkv_head_scores(e.session, tokens, 3, e.info->n_layer, 0, out, &err));
    REFUSED(qkv_head_scores(e.session, tokens, 3, 0, -1, out, &err));
    REFUSED(qkv_head_scores(e.session, tokens, 3, 0, e.info->n_head, out, &err));
    OK(qkv_head_scores(e.session, tokens, 3, 0, 0, out, &err));

    OK(qkv_plan_new(&plan, e.model, tokens, 3, &err));
    OK(qkv_plan_add_variant(plan, "q@1.h0=scale:2 + k@1[1]=zero + v@1=scale:2 + q@1.h1{0}=scale:2",
                            NULL, &err));
    OK(qkv_plan_add_capture(plan, "pattern@1", &err));
    OK(qkv_session_run(e.session, &result, plan, &err));
    assert_int_equal(qkv_edit_score_role(NULL, result, 1, 0, 1, 0), QKV_SCORE_OTHER);
    assert_int_equal(qkv_edit_score_role(plan, NULL, 1, 0, 1, 0), QKV_SCORE_OTHER);
    assert_int_equal(qkv_edit_score_role(plan, result, 1, 9, 1, 0), QKV_SCORE_OTHER);
    assert_int_equal(qkv_edit_score_role(plan, result, 7, 0, 1, 0), QKV_SCORE_OTHER);
    assert_int_equal(qkv_edit_score_role(plan, result, 1, 0, -1, 0), QKV_SCORE_OTHER);
    assert_int_equal(qkv_edit_score_role(plan, result, 1, 0, 1, 0), QKV_SCORE_QUERY);
    assert_int_equal(qkv_edit_score_role(plan, result, 1, 1, 1, 0), QKV_SCORE_KEY);
    assert_int_equal(qkv_edit_score_role(plan, result, 1, 2, 1, 0), QKV_SCORE_VALUE);
    assert_int_equal(qkv_edit_score_role(plan, result, 1, 3, 1, 1), QKV_SCORE_OTHER);
    qkv_result_free(result);
    qkv_plan_free(plan);
    engine_close(&e);
}

static int stop_at_once(void *user, const char *what, double done, double total) {
    (void)what, (void)done, (void)total;
    return ++*(int *)user;
}

static int stop_after_one(void *user, int64_t done, int64_t wanted) {
    assert_true(done == 0 && wanted > 0);
    return ++*(int *)user;
}

static void circuits(void **state) {
    (void)state;
    engine e;
    int calls = 0;
    int32_t layer;
    qkv_circuits *c = NULL;
    qkv_composition *pairs = NULL;
    qkv_circuit one = QKV_CIRCUIT_INIT, unsized = {0};
    qkv_circuit_options how = QKV_CIRCUIT_OPTIONS_INIT, bad = QKV_CIRCUIT_OPTIONS_INIT;
    qkv_progress progress = QKV_PROGRESS_INIT;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    REFUSED(qkv_circuits_new(NULL, e.session, QKV_CIRCUIT_OV, &how, &err));
    REFUSED(qkv_circuits_new(&c, NULL, QKV_CIRCUIT_OV, &how, &err));
    REFUSED(qkv_circuits_new(&c, e.session, (qkv_circuit_kind)2, &how, &err));
    bad.size = 0;
    REFUSED(qkv_circuits_new(&c, e.session, QKV_CIRCUIT_OV, &bad, &err));
    bad = (qkv_circuit_options){.size = sizeof bad, .layers = "99"};
    assert_int_not_equal(qkv_circuits_new(&c, e.session, QKV_CIRCUIT_OV, &bad, &err), QKV_OK);
    assert_null(c);
    bad = (qkv_circuit_options){.size = sizeof bad, .layers = "1"};
    REFUSED(qkv_composition_new(&pairs, e.session, &bad, &err));
    REFUSED(qkv_composition_new(NULL, e.session, &how, &err));
    REFUSED(qkv_composition_new(&pairs, NULL, &how, &err));
    progress.step = stop_at_once;
    progress.user = &calls;
    OK(qkv_session_set_progress(e.session, &progress, &err));
    assert_int_equal(qkv_circuits_new(&c, e.session, QKV_CIRCUIT_OV, &how, &err),
                     QKV_ERR_CANCELLED);
    assert_int_equal(qkv_composition_new(&pairs, e.session, &how, &err), QKV_ERR_CANCELLED);
    assert_int_equal(calls, 2);
    OK(qkv_session_set_progress(e.session, NULL, &err));
    bad = (qkv_circuit_options){.size = sizeof bad, .progress = stop_after_one, .user = &calls};
    assert_int_equal(qkv_circuits_new(&c, e.session, QKV_CIRCUIT_QK, &bad, &err),
                     QKV_ERR_CANCELLED);
    assert_int_equal(qkv_composition_new(&pairs, e.session, &bad, &err), QKV_ERR_CANCELLED);
    assert_int_equal(calls, 4);
    assert_true(!c && !pairs);
    OK(qkv_circuits_new(&c, e.session, QKV_CIRCUIT_OV, NULL, &err));
    assert_int_equal(qkv_circuits_get(NULL, 0, &one), 0);
    assert_int_equal(qkv_circuits_get(c, 0, NULL), 0);
    assert_int_equal(qkv_circuits_get(c, 0, &unsized), 0);
    assert_int_equal(qkv_circuits_get(c, 1000000, &one), 0);
    assert_int_equal(qkv_circuits_get(c, 0, &one), 1);
    OK(qkv_composition_new(&pairs, e.session, NULL, &err));
    assert_int_equal(qkv_composition_head(NULL, 0, &layer, NULL), 0);
    assert_int_equal(qkv_composition_head(pairs, 1000000, &layer, NULL), 0);
    assert_int_equal(qkv_composition_head(pairs, 0, NULL, NULL), 1);
    assert_true(isnan(qkv_composition_score(NULL, QKV_COMPOSITION_Q, 1, 0)));
    assert_true(isnan(qkv_composition_score(pairs, QKV_COMPOSITION_COUNT, 1, 0)));
    assert_true(isnan(qkv_composition_score(pairs, QKV_COMPOSITION_Q, 1000000, 0)));
    assert_true(isnan(qkv_composition_random(NULL)));
    qkv_circuits_free(c);
    qkv_circuits_free(NULL);
    qkv_composition_free(pairs);
    qkv_composition_free(NULL);
    engine_close(&e);
}

static int try_spec(const char *json) {
    qkv_figure_spec *spec = NULL;
    const int status = qkv_figure_spec_new(&spec, json, strlen(json), &err);
    assert_true((spec != NULL) == (status == QKV_OK));
    qkv_figure_spec_free(spec);
    return status;
}

static void specs(void **state) {
    (void)state;
    engine e;
    qkv_figure_spec *spec = NULL;
    qkv_figure *figure = NULL;
    static const char json[] = "{\"kind\": \"modify\", \"layer\": 1, \"head\": 0}";
    REFUSED(qkv_figure_spec_new(NULL, json, sizeof json - 1, &err));
    REFUSED(qkv_figure_spec_new(&spec, NULL, 0, &err));
    static const char *const wrong[] = {
        "",
        "1",
        "[]",
        "{}",
        "{\"kind\": 1}",
        "{\"kind\": \"x\"}",
        "{\"kind\": \"modify\", \"x\": 1}",
        "{\"kind\": \"modify\", \"layer\": \"1\"}",
        "{\"kind\": \"modify\", \"report\": true}",
        "{\"kind\": \"modify\", \"always_linear\": true}",
        "{\"kind\": \"modify\", \"scale\": \"cubic\"}",
        "{\"kind\": \"modify\", \"range\": [1]}",
        "{\"kind\": \"grid\", \"rows\": 1}",
        "{\"kind\": \"grid\", \"rows\": [1]}",
        "{\"kind\": \"grid\", \"rows\": [{\"label\": \"a=b\", \"edits\": \"\"}]}",
        "{\"kind\": \"grid\", \"rows\": [{\"label\": \"\", \"edits\": \"\"}]}",
        "{\"kind\": \"grid\", \"cols\": [{\"label\": \"a\"}]}",
        "{\"kind\": \"rows\", \"masked\": \"zero\"}",
        "{\"kind\": \"modify\", \"kind\": \"mean\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (try_spec(wrong[i]) == QKV_OK) fail_msg("%s was accepted", wrong[i]);
        assert_true(err.message[0]);
    }
    OK(qkv_figure_spec_new(&spec, json, sizeof json - 1, &err));
    assert_int_equal(qkv_figure_spec_kind(spec), QKV_FIGURE_MODIFY);
    assert_string_equal(qkv_figure_spec_word(spec, 0), "--layer");
    assert_string_equal(qkv_figure_spec_word(spec, 1), "1");
    assert_null(qkv_figure_spec_word(spec, 4));
    assert_int_equal(qkv_figure_spec_kind(NULL), QKV_FIGURE_KINDS);
    assert_null(qkv_figure_spec_word(NULL, 0));
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    REFUSED(qkv_figure_spec_make(NULL, &figure, e.session, NULL, 0, "svg", NULL, 0, &err));
    REFUSED(qkv_figure_spec_make(spec, NULL, e.session, NULL, 0, "svg", NULL, 0, &err));
    REFUSED(qkv_figure_spec_make(spec, &figure, NULL, NULL, 0, "svg", NULL, 0, &err));
    REFUSED(qkv_figure_spec_make(spec, &figure, e.session, NULL, 0, NULL, NULL, 0, &err));
    REFUSED(qkv_figure_spec_make(spec, &figure, e.session, NULL, 1, "svg", NULL, 0, &err));
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.text = "a b c";
    OK(qkv_figure_spec_make(spec, &figure, e.session, &prompt, 1, "svg", NULL, 0, &err));
    qkv_figure_free(figure);
    qkv_figure_spec_free(spec);
    qkv_figure_spec_free(NULL);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers),  cmocka_unit_test(written), cmocka_unit_test(scored),
        cmocka_unit_test(circuits), cmocka_unit_test(specs),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
