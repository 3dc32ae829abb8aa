/* Servers, what heads write, their circuits, and figures by their names, called with NULL and with
 * numbers out of range: see test_arguments.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "measure/circuits.h"
#include "model/head_output.h"
#include "qkv/qkv.h"
#include "study/head_scores.h"
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
    assert_int_equal(qkv_server_wait(server, 0), 0);
    assert_int_equal(qkv_server_wait(server, -1), 0);
    qkv_server_stop(server);
    qkv_server_stop(server);
    assert_int_equal(qkv_server_wait(server, 1000), 1);
    qkv_server_free(server);
    assert_null(qkv_server_url(NULL));
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

/* Options of a figure as JSON: set and checked. */
static int try_figure(const char *kind, const char *json) {
    qkv_study *study = NULL;
    OK(qkv_study_new(&study, kind, &err));
    int status = qkv_study_set_json(study, json, &err);
    if (status == QKV_OK) status = qkv_study_check(study, &err);
    qkv_study_free(study);
    return status;
}

static void figure_options(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"modify", "{\"x\": 1}"},
        {"modify", "{\"layer\": \"1\"}"},
        {"modify", "{\"variant\": \"q@0=zero\"}"},
        {"modify", "{\"scale\": \"cubic\"}"},
        {"modify", "{\"range\": \"1\"}"},
        {"modify", "{\"range\": \"1,0\"}"},
        {"modify", "{\"gamma\": 11, \"scale\": \"power\"}"},
        {"modify", "{\"gamma\": 0.5}"},
        {"modify", "{\"dpi\": 9}"},
        {"modify", "{\"eps\": \"a\"}"},
        {"grid", "{}"},
        {"grid", "{\"row\": 1}"},
        {"grid", "{\"row\": [1]}"},
        {"grid", "{\"row\": [\"label\"]}"},
        {"grid", "{\"row\": [\"q@1=zero\"]}"},
        {"grid", "{\"col\": [\"a=\"], \"show\": \"scores\", \"report\": true}"},
        {"heads", "{\"report\": true}"},
        {"heads", "{\"diff\": true}"},
        {"rows", "{\"masked\": \"zero\"}"},
        {"rows", "{\"layer\": 1, \"layers\": \"2\"}"},
        {"pattern", "{\"head\": \"first\"}"},
        {"pattern", "{\"head\": \"0-1\"}"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err.message[0] = '\0';
        if (try_figure(wrong[i][0], wrong[i][1]) == QKV_OK)
            fail_msg("%s %s was accepted", wrong[i][0], wrong[i][1]);
        assert_true(err.message[0]);
    }
    OK(try_figure("modify",
                  "{\"scale\": \"linear\", \"range\": \"auto\", \"edit_heads\": \"all\"}"));
    OK(try_figure("modify", "{\"hide_notes\": true, \"no_axis_labels\": true, \"width\": 240}"));
    OK(try_figure("grid", "{\"row\": [\"A=\", \"B=q@0=zero\"], \"report\": true}"));
    OK(try_figure("pattern", "{\"layer\": 1, \"head\": \"0-1\"}"));
}

/* What a figure is asked for beside its tables: panels and prompts. */
static void figure_studies(void **state) {
    (void)state;
    engine e;
    qkv_study *study = NULL;
    char *bytes;
    size_t size;
    qkv_prompt prompt = QKV_PROMPT_INIT, source = QKV_PROMPT_INIT, shown = QKV_PROMPT_INIT;
    qkv_study_map map = QKV_STUDY_MAP_INIT;
    engine_open(&e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    prompt.text = "a b c";
    source.text = "c b a";
    source.name = "other";
    OK(qkv_study_new(&study, "grid", &err));
    OK(qkv_study_set_json(study,
                          "{\"layer\": 1, \"head\": 0, \"no_axis_labels\": true, \"scale\": "
                          "\"linear\", \"width\": \"240pt\"}",
                          &err));
    OK(qkv_study_set(study, "col", "Plain=", &err));
    OK(qkv_study_set(study, "col", "Patched=q@{layer}=patch:other", &err));
    OK(qkv_study_add_prompt(study, &prompt, &err));
    OK(qkv_study_add_prompt(study, &source, &err));
    REFUSED(qkv_study_get_map(study, 0, &map, &err)); /* it has not run */
    REFUSED(qkv_study_get_prompt(study, 0, &shown, &err));
    OK(qkv_study_run(study, e.session, NULL, &err));
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    qkv_study_table panels = QKV_STUDY_TABLE_INIT;
    OK(qkv_study_get_info(study, &info, &err));
    assert_int_equal(info.n_maps, 2);
    assert_int_equal(info.map_rows, 1);
    assert_int_equal(info.map_columns, 2);
    assert_int_equal(info.layer, 1);
    assert_int_equal(info.n_prompts, 1);
    OK(qkv_study_get_map(study, 1, &map, &err));
    assert_string_equal(map.edits, "q@1=patch:other");
    assert_int_equal(map.n_rows, map.n_columns);
    assert_null(map.whole); /* a report was not asked for */
    OK(qkv_study_get_prompt(study, map.prompt, &shown, &err));
    assert_int_equal(shown.n_tokens, map.n_rows);
    REFUSED(qkv_study_get_map(NULL, 0, &map, &err));
    REFUSED(qkv_study_get_map(study, 2, &map, &err));
    REFUSED(qkv_study_get_map(study, 0, NULL, &err));
    REFUSED(qkv_study_get_map(study, 0, &(qkv_study_map){0}, &err));
    REFUSED(qkv_study_get_prompt(NULL, 0, &shown, &err));
    REFUSED(qkv_study_get_prompt(study, 1, &shown, &err));
    REFUSED(qkv_study_get_prompt(study, 0, NULL, &err));
    OK(qkv_study_get_table(study, 0, &panels, &err));
    assert_string_equal(panels.name, "panels");
    assert_int_equal(panels.n_rows, 2);
    REFUSED(qkv_study_set(study, "title", "Later", &err));
    REFUSED(qkv_study_render(study, "html", &bytes, &size, &err));
    REFUSED(qkv_study_render(study, "md", &bytes, &size, &err));
    qkv_study_free(study);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers),        cmocka_unit_test(written),
        cmocka_unit_test(scored),         cmocka_unit_test(circuits),
        cmocka_unit_test(figure_options), cmocka_unit_test(figure_studies),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
