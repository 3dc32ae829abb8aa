/*
 * Every public function is called with NULL in place of each pointer and with indices that are out
 * of range: that is an error, or nothing found, and never a crash. Afterwards everything still
 * works. tests/headers/interface.sh fails when a function of the public headers is called neither
 * here nor in test_arguments_files.c.
 *
 * Here: lists, models, plans, sessions, results, measures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "draw/draw.h"
#include "hub/package.h"
#include "model/synthetic.h"
#include "qkv/qkv.h"
#include "run/run.h"
#include "store/store_formats.h"
#include "study/prompt.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "sweep/sweep.h"

static const int32_t TOKENS[] = {5, 9, 40, 77};
enum { N = 4 };

static qkv_error err;

static struct {
    engine e;
    qkv_plan *plan;
    qkv_result *result;
    qkv_measure *measure;
    qkv_table *table;
} it;

static int make_all(void **state) {
    (void)state;
    static const char *const variants[] = {"q@1.h0=zero", NULL};
    static const char *const captures[] = {"pattern", NULL};
    engine_open(&it.e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    const engine_run run = {
        .tokens = TOKENS, .n_tokens = N, .variants = variants, .captures = captures};
    it.plan = engine_plan(&it.e, &run);
    it.result = engine_execute(&it.e, &run);
    qkv_plan *plan = NULL;
    OK(qkv_measure_new(&it.measure, "sink,tv", NULL, &err));
    OK(qkv_plan_new(&plan, it.e.model, TOKENS, N, &err));
    OK(qkv_measure_run(it.measure, &it.table, it.e.session, plan, &err));
    qkv_plan_free(plan);
    return 0;
}

static int free_all(void **state) {
    qkv_table_free(it.table);
    qkv_measure_free(it.measure);
    qkv_result_free(it.result);
    qkv_plan_free(it.plan);
    engine_close(&it.e);
    return scratch_clean(state);
}

/* ---- lists ---- */

static void test_lists(void **state) {
    (void)state;
    const size_t far = (size_t)-1;
    assert_null(qkv_status_name(far, NULL));
    assert_non_null(qkv_status_name(0, NULL));
    assert_non_null(qkv_status_text(12345));
    assert_non_null(qkv_version());
    assert_null(qkv_family_name(far));
    assert_null(qkv_site_name(QKV_SITE_COUNT));
    assert_null(qkv_site_name((qkv_site)-1));
    assert_null(qkv_site_shape(QKV_SITE_COUNT));
    assert_null(qkv_site_description(QKV_SITE_COUNT));
    assert_false(qkv_site_has_layer(QKV_SITE_COUNT));
    assert_true(qkv_site_has_layer(QKV_SITE_Q));
    assert_false(qkv_site_has_layer(QKV_SITE_FINAL_NORM));
    assert_false(qkv_plan_wants_token(NULL, QKV_SITE_LOGITS, 0));
    assert_int_equal(qkv_site_by_name(NULL), QKV_SITE_COUNT);
    assert_null(qkv_reduction_name(QKV_REDUCTION_COUNT));
    assert_null(qkv_reduction_description((qkv_reduction)-1));
    assert_null(qkv_op_name(far));
    assert_null(qkv_op_arguments(far));
    assert_null(qkv_op_description(far));
    assert_null(qkv_metric_get(far));
    assert_null(qkv_metric_find(NULL));
    assert_null(qkv_metric_scope_name((qkv_metric_scope)99));
    assert_null(qkv_script_name(far));
    assert_null(qkv_script_package(far));
    assert_null(qkv_scale_name((qkv_scale)99));
    assert_null(qkv_colormap_name((qkv_colormap)99));
    assert_null(qkv_masked_name((qkv_masked)99));
    assert_null(qkv_pooling_name((qkv_pooling)99));
    assert_null(qkv_grid_format(far));
    assert_null(qkv_store_format(far));
    assert_null(qkv_synthetic_shape_name(far));
    assert_null(qkv_package_get(far));
    assert_null(qkv_package_get(qkv_package_count()));
    assert_null(qkv_default_prompt(far));
    qkv_host_on_abort(NULL);
}

static void test_free_nothing(void **state) {
    (void)state;
    qkv_bytes_free(NULL);
    qkv_tokens_free(NULL);
    qkv_text_free(NULL);
    qkv_model_free(NULL);
    qkv_plan_free(NULL);
    qkv_session_free(NULL);
    qkv_result_free(NULL);
    qkv_measure_free(NULL);
    qkv_table_free(NULL);
    qkv_grid_free(NULL);
    qkv_sweep_free(NULL);
    qkv_sweep_reader_close(NULL);
    qkv_sweep_rows_free(NULL);
    assert_int_equal(qkv_sweep_writer_close(NULL, NULL), QKV_OK);
    assert_null(qkv_model_retain(NULL));
}

/* ---- models and prompts ---- */

static void test_model(void **state) {
    (void)state;
    qkv_model *model = NULL;
    char hash[33], *text = NULL;
    int32_t *ids = NULL;
    const int32_t beyond = 1 << 30;
    size_t n = 0;
    const qkv_model *m = it.e.model;
    REFUSED(qkv_model_open(NULL, "x.gguf", &err));
    REFUSED(qkv_model_open(&model, NULL, &err));
    assert_null(model);
    assert_null(qkv_model_get_info(NULL));
    assert_null(qkv_model_notice(NULL, 0));
    qkv_layer_info layer = QKV_LAYER_INFO_INIT;
    assert_int_equal(qkv_model_get_layer(NULL, 0, &layer), 0);
    assert_int_equal(qkv_model_get_layer(m, 0, NULL), 0);
    assert_int_equal(qkv_model_get_layer(m, -1, &layer), 0);
    assert_int_equal(qkv_model_get_layer(m, beyond, &layer), 0);
    assert_int_equal(qkv_model_get_layer(m, 0, &layer), 1);
    assert_int_equal(layer.n_head, qkv_model_get_info(m)->n_head);
    assert_int_equal(layer.kv_layer, 0);
    REFUSED(qkv_model_hash(NULL, hash, &err));
    REFUSED(qkv_model_hash(m, NULL, &err));
    REFUSED(qkv_tokenize(NULL, &ids, &n, "a", 1, 0, &err));
    REFUSED(qkv_tokenize(m, NULL, &n, "a", 1, 0, &err));
    REFUSED(qkv_tokenize(m, &ids, NULL, "a", 1, 0, &err));
    REFUSED(qkv_tokenize(m, &ids, &n, NULL, 1, 0, &err));
    OK(qkv_tokenize(m, &ids, &n, NULL, 0, 0, &err));
    qkv_tokens_free(ids);
    REFUSED(qkv_detokenize(NULL, &text, &n, TOKENS, N, 0, &err));
    REFUSED(qkv_detokenize(m, NULL, &n, TOKENS, N, 0, &err));
    REFUSED(qkv_detokenize(m, &text, NULL, TOKENS, N, 0, &err));
    REFUSED(qkv_detokenize(m, &text, &n, NULL, N, 0, &err));
    REFUSED(qkv_detokenize(m, &text, &n, &beyond, 1, 0, &err));
    REFUSED(qkv_token_text(NULL, &text, &n, 1, &err));
    REFUSED(qkv_token_text(m, NULL, &n, 1, &err));
    REFUSED(qkv_token_text(m, &text, NULL, 1, &err));
    REFUSED(qkv_token_text(m, &text, &n, -1, &err));
    REFUSED(qkv_token_text(m, &text, &n, beyond, &err));
    REFUSED(qkv_model_convert(NULL, "out.gguf", NULL, &err));
    REFUSED(qkv_model_convert("in.gguf", NULL, NULL, &err));
    REFUSED(qkv_model_convert("in.gguf", "out.gguf", &(qkv_convert_options){0}, &err));
    REFUSED(qkv_pull(NULL, NULL, &err));
    REFUSED(qkv_pull("", NULL, &err));
    REFUSED(qkv_pull("../x", NULL, &err));
    REFUSED(qkv_pull("org/name:../x", NULL, &err));
    REFUSED(qkv_pull("org/name", &(qkv_pull_options){0}, &err));
    REFUSED(qkv_synthetic_write(NULL, "gpt2-124m", "f32", 1, &err));
    REFUSED(qkv_synthetic_write("out.gguf", NULL, "f32", 1, &err));
    REFUSED(qkv_synthetic_write("out.gguf", "gpt2-124m", NULL, 1, &err));
    qkv_prompt prompt = QKV_PROMPT_INIT;
    REFUSED(qkv_prompt_tokenize(&prompt, m, &ids, &n, &err));
    prompt.text = "a";
    REFUSED(qkv_prompt_tokenize(NULL, m, &ids, &n, &err));
    REFUSED(qkv_prompt_tokenize(&prompt, NULL, &ids, &n, &err));
    REFUSED(qkv_prompt_tokenize(&prompt, m, NULL, &n, &err));
    REFUSED(qkv_prompt_tokenize(&prompt, m, &ids, NULL, &err));
}

/* ---- plans ---- */

static void test_plan(void **state) {
    (void)state;
    qkv_plan *plan = NULL;
    uint8_t layers[8], heads[8];
    const int32_t *tokens;
    size_t n;
    int64_t first = 7, end = 7;
    REFUSED(qkv_plan_new(NULL, it.e.model, TOKENS, N, &err));
    REFUSED(qkv_plan_new(&plan, NULL, TOKENS, N, &err));
    REFUSED(qkv_plan_new(&plan, it.e.model, NULL, N, &err));
    assert_int_equal(qkv_plan_new(&plan, it.e.model, NULL, 0, &err), QKV_ERR_PLAN);
    REFUSED(qkv_plan_new_answer(NULL, it.e.model, TOKENS, N, 1, &err));
    REFUSED(qkv_plan_new_answer(&plan, NULL, TOKENS, N, 1, &err));
    REFUSED(qkv_plan_new_answer(&plan, it.e.model, NULL, N, 1, &err));
    REFUSED(qkv_plan_new_answer(&plan, it.e.model, TOKENS, N, 0, &err));
    REFUSED(qkv_plan_new_answer(&plan, it.e.model, TOKENS, N, N + 1, &err));
    REFUSED(qkv_plan_add_source(NULL, "a", TOKENS, N, &err));
    REFUSED(qkv_plan_add_source(it.plan, NULL, TOKENS, N, &err));
    REFUSED(qkv_plan_add_source(it.plan, "a", NULL, N, &err));
    REFUSED(qkv_plan_add_variant(NULL, "q@0=zero", NULL, &err));
    REFUSED(qkv_plan_add_variant(it.plan, NULL, NULL, &err));
    REFUSED(qkv_plan_add_capture(NULL, "pattern", &err));
    REFUSED(qkv_plan_add_capture(it.plan, NULL, &err));
    assert_int_equal(qkv_plan_mistake(NULL, NULL, NULL), 0);
    REFUSED(qkv_plan_prepare(NULL, "pattern", &err));
    REFUSED(qkv_plan_prepare(it.plan, NULL, &err));
    assert_int_equal(qkv_plan_prepare(it.plan, "pattern@99", &err), QKV_ERR_PLAN);
    REFUSED(qkv_plan_observe(NULL, "pattern", &err));
    REFUSED(qkv_plan_observe(it.plan, NULL, &err));
    REFUSED(qkv_plan_select(NULL, "pattern", layers, heads, &err));
    REFUSED(qkv_plan_select(it.plan, NULL, layers, heads, &err));
    REFUSED(qkv_plan_select(it.plan, "pattern", NULL, heads, &err));
    REFUSED(qkv_plan_select(it.plan, "pattern", layers, NULL, &err));
    assert_int_equal(qkv_plan_n_variants(NULL), 0);
    qkv_edit_info edit = QKV_EDIT_INFO_INIT;
    assert_int_equal(qkv_plan_get_edit(NULL, 1, 0, &edit), 0);
    assert_int_equal(qkv_plan_get_edit(it.plan, 1, 0, NULL), 0);
    assert_int_equal(qkv_plan_get_edit(it.plan, 0, 0, &edit), 0);
    assert_int_equal(qkv_plan_get_edit(it.plan, 9, 0, &edit), 0);
    assert_int_equal(qkv_plan_edit_covers(NULL, 1, 0, 0, 0), 0);
    assert_int_equal(qkv_plan_edit_covers(it.plan, 1, 9, 0, 0), 0);
    assert_int_equal(qkv_plan_edit_covers(it.plan, 1, 0, -1, 0), 0);
    assert_int_equal(qkv_plan_edit_covers(it.plan, 1, 0, 0, 1 << 30), 0);
    assert_null(qkv_plan_variant_text(NULL, 0));
    assert_null(qkv_plan_variant_text(it.plan, 2));
    assert_null(qkv_plan_tokens(NULL, &n));
    assert_int_equal(n, 0);
    assert_non_null(qkv_plan_tokens(it.plan, NULL));
    REFUSED(qkv_plan_set_prompt(NULL, "x", 1, &err));
    REFUSED(qkv_plan_set_prompt(it.plan, NULL, 0, &err));
    assert_null(qkv_plan_prompt(NULL, NULL));
    assert_null(qkv_plan_prompt(it.plan, NULL));
    assert_null(qkv_plan_capture_text(NULL, 0));
    assert_null(qkv_plan_capture_text(it.plan, 9));
    assert_int_equal(qkv_plan_wants_logits(NULL, 0), 0);
    assert_int_equal(qkv_plan_wants_logits(it.plan, 99), 0);
    assert_null(qkv_plan_source(NULL, 0, &tokens));
    assert_int_equal(qkv_plan_source_length(NULL, 0), 0);
    assert_int_equal(qkv_plan_source_length(it.plan, 0), 0);
    assert_null(qkv_plan_source(it.plan, 0, NULL));
    qkv_visible_keys(NULL, 0, N, 0, &first, &end);
    assert_true(first == 0 && end == 0);
    qkv_visible_keys(it.e.model, 99, N, 0, &first, &end);
    qkv_visible_keys(it.e.model, 0, N, N, &first, &end);
    assert_true(first == 0 && end == 0);
    qkv_visible_keys(it.e.model, 0, N, 0, NULL, NULL);
}

/* What could not be added has left no trace: the plan runs as before, captures and all. */
static void test_failed_adds(void **state) {
    (void)state;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    const engine_run grouped = {.tokens = TOKENS, .n_tokens = N};
    engine e;
    const tiny_options options = {.family = "llama", .n_kv_head = 2};
    engine_open(&e, tiny_model(&options, "grouped.gguf"), 1);
    plan = engine_plan(&e, &grouped);
    OK(qkv_plan_add_capture(plan, "k@2.g*", &err));
    /* Layers 0 and 1 would take it, layer 2 has the other kind of heads. */
    assert_int_equal(qkv_plan_add_capture(plan, "k@*.h*", &err), QKV_ERR_PLAN);
    OK(qkv_plan_add_capture(plan, "pattern@2:mean=2", &err));
    assert_int_equal(qkv_plan_add_capture(plan, "pattern@*:mean=3", &err), QKV_ERR_PLAN);
    assert_int_equal(qkv_plan_add_capture(plan, "pattern@99", &err), QKV_ERR_PLAN);
    assert_int_not_equal(qkv_plan_add_variant(plan, "q@0=zero + q@0.h1=zero", NULL, &err), QKV_OK);
    assert_int_not_equal(qkv_plan_add_variant(plan, "q@0=zero + nonsense", NULL, &err), QKV_OK);
    assert_int_not_equal(qkv_plan_add_source(plan, "resample", TOKENS, N, &err), QKV_OK);
    assert_int_not_equal(qkv_plan_observe(plan, "q@0", &err), QKV_OK);
    assert_int_not_equal(qkv_plan_observe(plan, "pattern@99", &err), QKV_OK);
    assert_int_equal(qkv_plan_n_variants(plan), 1);
    assert_null(qkv_plan_source(plan, 0, NULL));
    assert_null(qkv_plan_capture_text(plan, 2));
    OK(qkv_session_run(e.session, &result, plan, &err));
    size_t items = 0;
    while (qkv_result_item(result, items, NULL, NULL, NULL, NULL)) items++;
    assert_int_equal(items, 2);
    qkv_tensor t = QKV_TENSOR_INIT;
    assert_true(qkv_result_get(result, 0, QKV_SITE_K, 2, &t) && t.head_kind == 'g');
    assert_true(qkv_result_get_reduced(result, 0, QKV_REDUCTION_MEAN, 2, &t) && t.shape[1] == 2);
    qkv_result_free(result);
    qkv_plan_free(plan);
    engine_close(&e);
}

/* ---- sessions and results ---- */

static void look(void *user, const qkv_rows *rows) {
    (void)user;
    (void)rows;
}

static void test_session(void **state) {
    (void)state;
    qkv_session *session = NULL, *s = it.e.session;
    qkv_result *result = NULL;
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    qkv_observer observer = {.size = sizeof observer, .rows = look};
    char *text = NULL;
    REFUSED(qkv_session_new(NULL, it.e.model, NULL, &err));
    REFUSED(qkv_session_new(&session, NULL, NULL, &err));
    REFUSED(qkv_session_new(&session, it.e.model, &(qkv_session_options){0}, &err));
    assert_null(qkv_session_model(NULL));
    assert_null(qkv_session_backend(NULL));
    assert_null(qkv_session_ggml(NULL));
    assert_int_equal(qkv_session_memory(NULL), 0);
    REFUSED(qkv_session_run(NULL, &result, it.plan, &err));
    REFUSED(qkv_session_run(s, NULL, it.plan, &err));
    REFUSED(qkv_session_run(s, &result, NULL, &err));
    REFUSED(qkv_session_observe(NULL, &result, it.plan, &observer, &err));
    REFUSED(qkv_session_observe(s, NULL, it.plan, &observer, &err));
    REFUSED(qkv_session_observe(s, &result, NULL, &observer, &err));
    REFUSED(qkv_session_explain(NULL, &text, it.plan, &err));
    REFUSED(qkv_session_explain(s, NULL, it.plan, &err));
    REFUSED(qkv_session_explain(s, &text, NULL, &err));
    REFUSED(qkv_session_estimate(NULL, &stats, it.plan, &err));
    REFUSED(qkv_session_estimate(s, NULL, it.plan, &err));
    REFUSED(qkv_session_estimate(s, &stats, NULL, &err));
    REFUSED(qkv_session_estimate(s, &(qkv_run_stats){0}, it.plan, &err));
    assert_false(qkv_session_get_stats(NULL, &stats));
    assert_false(qkv_session_get_stats(s, NULL));
    assert_false(qkv_session_get_stats(s, &(qkv_run_stats){0}));
    qkv_plan *watched = NULL;
    OK(qkv_plan_new(&watched, it.e.model, TOKENS, N, &err));
    OK(qkv_plan_observe(watched, "pattern@0", &err));
    observer.rows = NULL;
    REFUSED(qkv_session_observe(s, &result, watched, &observer, &err));
    qkv_plan_free(watched);
    /* A plan of another model. */
    engine other;
    engine_open(&other, tiny_model(&(tiny_options){.family = "gpt2"}, "other.gguf"), 1);
    REFUSED(qkv_session_run(other.session, &result, it.plan, &err));
    engine_close(&other);
    OK(qkv_session_run(s, &result, it.plan, &err));
    qkv_result_free(result);
}

static void test_result(void **state) {
    (void)state;
    qkv_tensor t = QKV_TENSOR_INIT, shapeless = {0};
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    size_t variant;
    const qkv_result *r = it.result;
    assert_int_equal(qkv_result_n_variants(NULL), 0);
    assert_false(qkv_result_get_stats(NULL, &stats));
    assert_false(qkv_result_get_stats(r, NULL));
    assert_false(qkv_result_get(NULL, 0, QKV_SITE_PATTERN, 0, &t));
    assert_false(qkv_result_get(r, 0, QKV_SITE_PATTERN, 0, NULL));
    assert_false(qkv_result_get(r, 0, QKV_SITE_PATTERN, 0, &shapeless));
    assert_false(qkv_result_get(r, 99, QKV_SITE_PATTERN, 0, &t));
    assert_false(qkv_result_get(r, 0, (qkv_site)99, 0, &t));
    assert_false(qkv_result_get(r, 0, QKV_SITE_PATTERN, -1, &t));
    assert_false(qkv_result_get_reduced(NULL, 0, QKV_REDUCTION_NONE, 0, &t));
    assert_false(qkv_result_get_reduced(r, 0, QKV_REDUCTION_NONE, 0, NULL));
    assert_false(qkv_result_get_reduced(r, 0, (qkv_reduction)99, 0, &t));
    assert_false(qkv_result_item(NULL, 0, &variant, NULL, NULL, &t));
    assert_false(qkv_result_item(r, 999, &variant, NULL, NULL, &t));
    assert_true(qkv_result_item(r, 0, NULL, NULL, NULL, NULL));
    assert_int_equal(qkv_result_n_edits(NULL, 0), 0);
    assert_int_equal(qkv_result_n_edits(r, 99), 0);
    assert_null(qkv_result_edit_text(NULL, 1, 0));
    assert_null(qkv_result_edit_text(r, 1, 9));
    assert_int_equal(qkv_result_edit_changed(NULL, 1, 0), 0);
    assert_int_equal(qkv_result_edit_changed(r, 9, 0), 0);
    assert_int_equal(qkv_result_edit_ran(NULL, 1, 0), 0);
    assert_int_equal(qkv_result_edit_is_idle(NULL, 1, 0), 1);
    assert_int_equal(qkv_result_edit_selected(NULL, 1, 0), 0);
}

/* ---- measuring ---- */

static void test_measure(void **state) {
    (void)state;
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    double values[2];
    const float one = 1;
    qkv_pattern pattern = {.size = sizeof pattern, .weights = &one, .n_tokens = 1};
    REFUSED(qkv_measure_new(NULL, "sink", NULL, &err));
    REFUSED(qkv_measure_new(&measure, "sink", &(qkv_measure_options){0}, &err));
    assert_null(qkv_measure_text(NULL, 0));
    assert_null(qkv_measure_text(it.measure, 9));
    assert_null(qkv_measure_info(NULL, 0));
    assert_null(qkv_measure_info(it.measure, 9));
    REFUSED(qkv_measure_run(NULL, &table, it.e.session, it.plan, &err));
    REFUSED(qkv_measure_run(it.measure, NULL, it.e.session, it.plan, &err));
    REFUSED(qkv_measure_run(it.measure, &table, NULL, it.plan, &err));
    REFUSED(qkv_measure_run(it.measure, &table, it.e.session, NULL, &err));
    REFUSED(qkv_measure_finish(NULL, &table, &err));
    REFUSED(qkv_measure_finish(it.measure, NULL, &err));
    REFUSED(qkv_measure_pattern(NULL, &pattern, values, &err));
    REFUSED(qkv_measure_pattern(it.measure, NULL, values, &err));
    REFUSED(qkv_measure_pattern(it.measure, &pattern, NULL, &err));
    pattern.window = -1;
    pattern.bidirectional = 1;
    REFUSED(qkv_measure_pattern(it.measure, &pattern, values, &err));
    pattern = (qkv_pattern){.size = sizeof pattern, .n_tokens = 1};
    REFUSED(qkv_measure_pattern(it.measure, &pattern, values, &err));
    assert_true(qkv_measure_sink(NULL, 4, 0) == 0);
    assert_true(qkv_measure_sink(&one, 1, 1) == 0);
    assert_true(qkv_measure_first_column(NULL, 4) == 1);
    assert_int_equal(qkv_table_size(NULL), 0);
    assert_false(qkv_table_get(NULL, 0, &row));
    assert_false(qkv_table_get(it.table, 0, NULL));
    assert_false(qkv_table_get(it.table, qkv_table_size(it.table), &row));
    assert_false(qkv_table_stats(NULL, &stats));
    assert_false(qkv_table_stats(it.table, NULL));
    assert_null(qkv_table_result(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_free_nothing),
        cmocka_unit_test(test_model),       cmocka_unit_test(test_plan),
        cmocka_unit_test(test_failed_adds), cmocka_unit_test(test_session),
        cmocka_unit_test(test_result),      cmocka_unit_test(test_measure)};
    return cmocka_run_group_tests(tests, make_all, free_all);
}
