/*
 * Objects are freed in every order, as a garbage collector would, and those that are left are used
 * in between. Under AddressSanitizer this fails when one of them needs what is gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/qkv.h"
#include "study/figure.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "sweep/sweep.h"

static const int32_t TOKENS[] = {5, 9, 40, 77};
enum { N = 4, MOST = 6 };

static qkv_error err;
#define OK(call) expect_ok(call, &err, #call)

/* A kind of object: how it is used and freed. Names say which it is when a test fails. */
typedef struct object {
    const char *name;
    void *it;
    void (*use)(void *it);
    void (*drop)(void *it);
} object;

/* ---- one set of objects, in all orders ---- */

typedef void (*maker)(object *objects, size_t *n);

static void free_in_order(object *objects, size_t n, const size_t *order) {
    for (size_t i = 0; i < n; i++) {
        object *gone = &objects[order[i]];
        gone->drop(gone->it);
        gone->it = NULL;
        for (size_t k = 0; k < n; k++) {
            if (objects[k].it) objects[k].use(objects[k].it);
        }
    }
}

/* The next order after this one; 0 after the last. */
static int next_order(size_t *order, size_t n) {
    size_t i = n - 1;
    while (i > 0 && order[i - 1] > order[i]) i--;
    if (i == 0) return 0;
    size_t k = n - 1;
    while (order[k] < order[i - 1]) k--;
    const size_t moved = order[i - 1];
    order[i - 1] = order[k];
    order[k] = moved;
    for (size_t a = i, b = n - 1; a < b; a++, b--) {
        const size_t other = order[a];
        order[a] = order[b];
        order[b] = other;
    }
    return 1;
}

static size_t try_all_orders(maker make) {
    size_t order[MOST], n_orders = 0;
    for (size_t i = 0; i < MOST; i++) order[i] = i;
    size_t n = 0;
    do {
        object objects[MOST] = {0};
        make(objects, &n);
        free_in_order(objects, n, order);
        n_orders++;
    } while (next_order(order, n));
    return n_orders;
}

/* ---- how objects are used ---- */

static void use_model(void *it) {
    char *text = NULL;
    size_t length;
    assert_int_equal(qkv_model_get_info(it)->n_layer, 3);
    OK(qkv_token_text(it, &text, &length, TOKENS[0], &err));
    qkv_text_free(text);
}

static void drop_model(void *it) {
    qkv_model_free(it);
}

/* Makes a plan of its own with whatever keeps the model alive, and runs it. */
static void use_session(void *it) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    OK(qkv_plan_new(&plan, qkv_session_model(it), TOKENS, N, &err));
    OK(qkv_plan_add_capture(plan, "resid_post@0", &err));
    OK(qkv_session_run(it, &result, plan, &err));
    qkv_plan_free(plan);
    qkv_result_free(result);
}

static void drop_session(void *it) {
    qkv_session_free(it);
}

static void use_plan(void *it) {
    OK(qkv_plan_add_variant(it, "q@1.h0=scale:0.5", NULL, &err));
    OK(qkv_plan_add_capture(it, "v@1", &err));
}

static void drop_plan(void *it) {
    qkv_plan_free(it);
}

static void use_result(void *it) {
    qkv_tensor t = QKV_TENSOR_INIT;
    assert_true(qkv_result_get(it, 1, QKV_SITE_PATTERN, 1, &t));
    assert_true(t.data[0] == 1 && t.heads[0] == 0); /* the first token sees itself alone */
    assert_string_equal(qkv_result_edit_text(it, 1, 0), "q@1.h0=zero");
}

static void drop_result(void *it) {
    qkv_result_free(it);
}

static void use_measure(void *it) {
    assert_string_equal(qkv_measure_text(it, 0), "sink");
}

static void drop_measure(void *it) {
    qkv_measure_free(it);
}

static void use_table(void *it) {
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    assert_true(qkv_table_get(it, qkv_table_size(it) - 1, &row) && row.value >= 0);
    assert_true(qkv_table_stats(it, &stats) && stats.n_passes > 0);
    assert_string_equal(qkv_result_edit_text(qkv_table_result(it), 1, 0), "q@1.h0=zero");
}

static void drop_table(void *it) {
    qkv_table_free(it);
}

static void use_figure(void *it) {
    char *bytes = NULL;
    size_t n = 0;
    OK(qkv_figure_render(it, "md", &bytes, &n, &err));
    assert_true(n > 0);
    qkv_bytes_free(bytes);
}

static void drop_figure(void *it) {
    qkv_figure_free(it);
}

static void use_sweep(void *it) {
    qkv_cell cell = QKV_CELL_INIT;
    assert_true(qkv_sweep_get_cell(it, 0, &cell));
    assert_string_equal(cell.target, "q");
}

static void drop_sweep(void *it) {
    qkv_sweep_free(it);
}

static void use_writer(void *it) {
    int64_t n = 0;
    OK(qkv_sweep_writer_n_done(it, &n, &err));
    assert_true(n > 0);
}

static void drop_writer(void *it) {
    OK(qkv_sweep_writer_close(it, &err));
}

static void use_reader(void *it) {
    assert_string_equal(qkv_sweep_reader_target(it, 0), "q");
}

static void drop_reader(void *it) {
    qkv_sweep_reader_close(it);
}

static void use_rows(void *it) {
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    assert_true(qkv_sweep_rows_get(it, 0, &row) && row.value >= 0);
}

static void drop_rows(void *it) {
    qkv_sweep_rows_free(it);
}

/* ---- the sets ---- */

static const char *model_path;

#define ADD(kind, it)                                                                              \
    objects[(*n)++] = (object) {                                                                   \
#kind, it, use_##kind, drop_##kind                                                         \
    }

static void open_model(object *objects, size_t *n, qkv_model **model, qkv_session **session) {
    const qkv_session_options options = {.size = sizeof options, .n_threads = 1};
    *n = 0;
    OK(qkv_model_open(model, model_path, &err));
    OK(qkv_session_new(session, *model, &options, &err));
    ADD(model, *model);
    ADD(session, *session);
}

static qkv_plan *edited_plan(const qkv_model *model) {
    qkv_plan *plan = NULL;
    OK(qkv_plan_new(&plan, model, TOKENS, N, &err));
    OK(qkv_plan_add_variant(plan, "q@1.h0=zero", NULL, &err));
    return plan;
}

static void make_run(object *objects, size_t *n) {
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_result *result = NULL;
    open_model(objects, n, &model, &session);
    qkv_plan *plan = edited_plan(model);
    OK(qkv_plan_add_capture(plan, "pattern@1.h0", &err));
    OK(qkv_session_run(session, &result, plan, &err));
    ADD(plan, plan);
    ADD(result, result);
}

static void make_measured(object *objects, size_t *n) {
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    open_model(objects, n, &model, &session);
    qkv_plan *plan = edited_plan(model);
    OK(qkv_measure_new(&measure, "sink,tv,output_kl", NULL, &err));
    OK(qkv_measure_run(measure, &table, session, plan, &err));
    qkv_plan_free(plan);
    ADD(measure, measure);
    ADD(table, table);
}

static void make_figure(object *objects, size_t *n) {
    const qkv_prompt prompt = {.size = sizeof prompt, .tokens = TOKENS, .n_tokens = N};
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_figure *figure = NULL;
    options.prompts = &prompt;
    options.n_prompts = 1;
    options.report = 1;
    open_model(objects, n, &model, &session);
    OK(qkv_figure_make(&figure, session, QKV_FIGURE_MODIFY, &options, &err));
    ADD(figure, figure);
}

static void make_sweep(object *objects, size_t *n) {
    static const char spec[] = "{\"prompts\": [\"abc\"], \"layers\": \"0\", \"targets\": \"q\","
                               " \"ops\": \"zero\", \"metrics\": \"sink\"}";
    const char *path = scratch_path("results.sqlite");
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_sweep *sweep = NULL;
    qkv_sweep_writer *writer = NULL;
    remove(path);
    open_model(objects, n, &model, &session);
    OK(qkv_sweep_new(&sweep, model, spec, &err));
    OK(qkv_sweep_writer_open(&writer, sweep, path, NULL, &err));
    OK(qkv_sweep_run(sweep, session, writer, NULL, NULL, &err));
    ADD(sweep, sweep);
    ADD(writer, writer);
}

static void make_read(object *objects, size_t *n) {
    qkv_sweep_reader *reader = NULL;
    qkv_sweep_rows *rows = NULL;
    *n = 0;
    OK(qkv_sweep_reader_open(&reader, scratch_path("results.sqlite"), &err));
    OK(qkv_sweep_reader_rows(reader, "sink", &rows, &err));
    ADD(reader, reader);
    ADD(rows, rows);
}

/* ---- the tests ---- */

static void test_orders(void **state) {
    (void)state;
    assert_int_equal(try_all_orders(make_run), 24);
    assert_int_equal(try_all_orders(make_measured), 24);
    assert_int_equal(try_all_orders(make_figure), 6);
    assert_int_equal(try_all_orders(make_sweep), 24);
    assert_int_equal(try_all_orders(make_read), 2);
}

/* A part in a model is given up once for each that was taken. */
static void test_retain(void **state) {
    (void)state;
    qkv_model *model = NULL;
    OK(qkv_model_open(&model, model_path, &err));
    qkv_model *again = qkv_model_retain(model);
    assert_ptr_equal(again, model);
    qkv_model_free(model);
    use_model(again);
    qkv_model_free(again);
}

/* Nothing that fails to be made keeps a model alive: the leak checker of a sanitizer would see. */
static void test_failures(void **state) {
    (void)state;
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_plan *plan = NULL;
    qkv_sweep *sweep = NULL;
    const qkv_session_options options = {.size = sizeof options, .n_threads = -1};
    const int32_t beyond = 1 << 30;
    OK(qkv_model_open(&model, model_path, &err));
    assert_int_equal(qkv_session_new(&session, model, &options, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_plan_new(&plan, model, &beyond, 1, &err), QKV_ERR_PLAN);
    assert_int_equal(qkv_sweep_new(&sweep, model, "{\"prompts\": []}", &err), QKV_ERR_SYNTAX);
    assert_true(!session && !plan && !sweep);
    qkv_model_free(model);
}

static int make_model(void **state) {
    (void)state;
    static char path[512];
    snprintf(path, sizeof path, "%s", tiny_model(&(tiny_options){.family = "llama"}, "m.gguf"));
    model_path = path;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_retain),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, make_model, scratch_clean);
}
