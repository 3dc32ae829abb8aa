/*
 * Measuring plans: rows that stream by in blocks against whole maps, what is shared with the
 * baseline, what it costs, and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/output_gram.h"
#include "qkv/measure.h"
#include "run/run.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "support/values.h"

enum { LONG = 300, SHORT = 21, LAYERS = 2, HEADS = 4 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SHAPE .n_layer = LAYERS, .n_head = HEADS, .n_embd = 32, .head_dim = 8, .n_ctx = 2048

static const tiny_options models[] = {
    {"llama", .n_kv_head = 2, SHAPE},
    {"llama", .window = 100, SHAPE},
    {"gpt2", SHAPE},
};
enum { MODELS = sizeof models / sizeof *models };

static const char *const edits[] = {
    "q@0.h1=scale:0.3",     "k@1=zero",         "v@0=zero", "scores@1[:,3]=add:2",
    "pattern@1.h2=set:0.1", "resid_pre@1=zero", NULL};
enum { VARIANTS = sizeof edits / sizeof *edits }; /* with the baseline */

static const int32_t *prompt(void) {
    static int32_t tokens[LONG];
    dice d = {11};
    for (int t = 0; t < LONG; t++) tokens[t] = t == 0 ? 1 : 3 + (int32_t)dice_below(&d, 40);
    return tokens;
}

static qkv_plan *plan_of(const engine *e, size_t n_tokens, const char *const *variants) {
    return engine_plan(e, &(engine_run){prompt(), n_tokens, variants, NULL, NULL});
}

static qkv_table *measured(engine *e, qkv_measure *m, size_t n_tokens,
                           const char *const *variants) {
    qkv_error err = {0};
    qkv_table *table = NULL;
    qkv_plan *plan = plan_of(e, n_tokens, variants);
    expect_ok(qkv_measure_run(m, &table, e->session, plan, &err), &err, "measure");
    qkv_plan_free(plan);
    return table;
}

static qkv_measure *measure_of(const char *metrics, const char *layers, const char *heads) {
    qkv_error err = {0};
    qkv_measure *m = NULL;
    const qkv_measure_options options = {sizeof options, layers, heads};
    expect_ok(qkv_measure_new(&m, metrics, &options, &err), &err, metrics);
    return m;
}

static double value_at(const qkv_table *table, size_t variant, int32_t layer, int32_t head,
                       size_t metric) {
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        const qkv_measurement m = table_row(table, i);
        if (m.variant == variant && m.layer == layer && m.head == head && m.metric == metric)
            return m.value;
    }
    fail_msg("no value of metric %zu at variant %zu, layer %d, head %d", metric, variant,
             (int)layer, (int)head);
    return 0;
}

/* ---- rows put together again ---- */

typedef struct album {
    int64_t n_tokens;
    float *maps; /* variants x layers x heads, of T x T */
    int64_t seen[VARIANTS][LAYERS][HEADS];
    atomic_int wrong_baselines;
} album;

static float *map_of(const album *a, size_t variant, int32_t layer, int32_t head) {
    const size_t at = (variant * LAYERS + (size_t)layer) * HEADS + (size_t)head;
    return a->maps + at * (size_t)(a->n_tokens * a->n_tokens);
}

static void paste(void *user, const qkv_rows *rows) {
    album *a = user;
    a->seen[rows->variant][rows->layer][rows->head] += rows->n_rows;
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const int64_t at = (rows->first_row + r) * a->n_tokens;
        memcpy(map_of(a, rows->variant, rows->layer, rows->head) + at,
               rows->data + r * rows->n_keys, (size_t)rows->n_keys * sizeof(float));
        const float *base = map_of(a, 0, rows->layer, rows->head) + at;
        if (!rows->baseline ||
            !same_bits(base, rows->baseline + r * rows->n_keys, (size_t)rows->n_keys))
            a->wrong_baselines++;
    }
}

/* Rows that did not arrive are the baseline's. */
static void fill_album(album *a, engine *e, size_t n_tokens) {
    qkv_error err = {0};
    qkv_result *result = NULL;
    qkv_plan *plan = plan_of(e, n_tokens, edits);
    const qkv_observer observer = {
        .size = sizeof(qkv_observer), .user = a, .rows = paste, .compare = 1};
    *a = (album){.n_tokens = (int64_t)n_tokens};
    a->maps = calloc(VARIANTS * LAYERS * HEADS * n_tokens * n_tokens, sizeof(float));
    assert_non_null(a->maps);
    expect_ok(qkv_plan_observe(plan, "pattern", &err), &err, "observe");
    expect_ok(qkv_session_observe(e->session, &result, plan, &observer, &err), &err, "run");
    assert_int_equal(a->wrong_baselines, 0);
    for (size_t v = 0; v < VARIANTS; v++) {
        for (int32_t i = 0; i < LAYERS * HEADS; i++) {
            const int64_t seen = a->seen[v][i / HEADS][i % HEADS];
            assert_true(seen == (int64_t)n_tokens || (seen == 0 && v > 0));
            if (seen == 0)
                memcpy(map_of(a, v, i / HEADS, i % HEADS), map_of(a, 0, i / HEADS, i % HEADS),
                       n_tokens * n_tokens * sizeof(float));
        }
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
}

/* The measured value of every metric, head and variant against that of the whole map. */
static void compare_with_maps(const album *a, const engine *e, const qkv_measure *m,
                              const qkv_table *table) {
    double values[64];
    qkv_error err = {0};
    qkv_measurement last = {.size = sizeof(qkv_measurement), .layer = -1};
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        const qkv_measurement row = table_row(table, i);
        if (row.layer < 0) continue;
        const qkv_pattern pattern = {.size = sizeof(qkv_pattern),
                                     .weights = map_of(a, row.variant, row.layer, row.head),
                                     .baseline = map_of(a, 0, row.layer, row.head),
                                     .tokens = prompt(),
                                     .n_tokens = a->n_tokens,
                                     .window = e->info->window,
                                     .bidirectional = !e->info->causal};
        if (row.variant != last.variant || row.layer != last.layer || row.head != last.head)
            expect_ok(qkv_measure_pattern(m, &pattern, values, &err), &err, "pattern");
        last = row;
        const double expected = values[row.metric];
        if (!(fabs(row.value - expected) <= 1e-12 * fmax(1, fabs(expected))))
            fail_msg("%s, variant %zu, layer %d, head %d: %.15g, not %.15g",
                     qkv_measure_text(m, row.metric), row.variant, (int)row.layer, (int)row.head,
                     row.value, expected);
    }
}

static void check_model(const char *path, size_t n_tokens, size_t budget, const char *metrics) {
    engine e;
    album a;
    engine_open(&e, path, 1);
    engine_renew(&e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                            .n_threads = 1,
                                            .memory_budget = budget});
    qkv_measure *m = measure_of(metrics, NULL, NULL);
    fill_album(&a, &e, n_tokens);
    qkv_table *table = measured(&e, m, n_tokens, edits);
    compare_with_maps(&a, &e, m, table);
    qkv_table_free(table);
    qkv_measure_free(m);
    free(a.maps);
    engine_close(&e);
}

static void check_streaming(size_t n_tokens, size_t budget, const char *metrics) {
    for (int i = 0; i < MODELS; i++)
        check_model(tiny_model(&models[i], "measure.gguf"), n_tokens, budget, metrics);
}

/* A model whose queries see later keys too: there is weight above the diagonal, and symmetry needs
 * the map. */
static void queries_that_look_ahead(void **state) {
    (void)state;
    tiny_file file;
    tiny_build(&file, &models[0]);
    gguf_set_val_bool(file.gguf, "llama.attention.causal", false);
    const char *path = tiny_save(&file, "ahead.gguf");
    tiny_free(&file);
    check_model(path, SHORT, 1, NULL);
    check_model(path, LONG, 1, "upper,symmetry,uniformity,far,near_diagonal,tv");
    engine e;
    engine_open(&e, path, 1);
    qkv_measure *m = measure_of("upper,symmetry", NULL, NULL);
    qkv_table *table = measured(&e, m, SHORT, NULL);
    for (size_t i = 0; i < qkv_table_size(table); i++)
        assert_true(table_row(table, i).value > 0.3); /* a causal one has 0 and 0.29 */
    qkv_table_free(table);
    qkv_measure_free(m);
    engine_close(&e);
}

/* One variant at a time; then several. */
static void blocks_add_up(void **state) {
    (void)state;
    static const char *const cheap =
        "sink,first_column,diagonal,near_diagonal,far,upper,symmetry,entropy,entropy_norm,support,"
        "distance,induction,duplicate,uniformity,tv,js,kl,max_change";
    check_streaming(LONG, 1, cheap);
    check_streaming(LONG, (size_t)1 << 30, cheap);
}

static void whole_maps_add_up(void **state) {
    (void)state;
    check_streaming(SHORT, 1, NULL);
    check_streaming(SHORT, (size_t)1 << 30, "effective_rank,symmetry,tv");
    check_streaming(260, 1, "effective_rank,symmetry");
}

/* ---- every kind of attention ---- */

/* Encoders, windows in some layers, learned sinks, shared keys: rows that stream by against the
 * captured maps. */
static void check_family(const char *name) {
    engine e;
    qkv_error err = {0};
    char path[512];
    double values[64];
    snprintf(path, sizeof path, "%s/vectors/%s/model.gguf", QKV_TEST_SOURCE_DIR, name);
    engine_open(&e, path, 1);
    qkv_measure *m = measure_of("uniformity,entropy_norm,symmetry,upper,tv,js,kl,distance,"
                                "effective_rank,norm_weighted,ahon_ratio,massive_k,massive_ratio",
                                NULL, NULL);
    const char *const *variants = LIST("q@1.h1=scale:0.3", "k@0=mean:head");
    const engine_run whole = {prompt(), SHORT, variants, LIST("pattern"), NULL};
    qkv_result *result = engine_execute(&e, &whole);
    qkv_table *table = measured(&e, m, SHORT, variants);
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        const qkv_measurement row = table_row(table, i);
        if (!isfinite(row.value)) fail_msg("%s: %s", name, qkv_measure_text(m, row.metric));
        if (row.head < 0 || row.metric > 8) continue;
        int64_t first = 0, end = 0;
        qkv_visible_keys(e.model, row.layer, SHORT, SHORT - 1, &first, &end);
        const size_t at = (size_t)row.head * SHORT * SHORT;
        const qkv_pattern pattern = {
            .size = sizeof(qkv_pattern),
            .weights = engine_tensor(result, row.variant, QKV_SITE_PATTERN, row.layer).data + at,
            .baseline = engine_tensor(result, 0, QKV_SITE_PATTERN, row.layer).data + at,
            .n_tokens = SHORT,
            .window = first ? SHORT - first : 0,
            .bidirectional = !e.info->causal};
        expect_ok(qkv_measure_pattern(m, &pattern, values, &err), &err, "pattern");
        if (!(fabs(row.value - values[row.metric]) < 1e-5 * fmax(1, values[row.metric])))
            fail_msg("%s: %s, layer %d, head %d: %g, not %g", name, qkv_measure_text(m, row.metric),
                     (int)row.layer, (int)row.head, row.value, values[row.metric]);
    }
    qkv_table_free(table);
    qkv_measure_free(m);
    qkv_result_free(result);
    engine_close(&e);
}

static void every_kind_of_attention(void **state) {
    (void)state;
    static const char *const names[] = {"bert",    "gemma2",     "gemma3",  "gpt_oss", "mistral",
                                        "cohere2", "falcon_mqa", "mixtral", "olmo2",   "phi3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_family(names[i]);
}

/* ---- what is shared ---- */

/* Values edited: nothing of their own layer's pattern changes, and nothing is computed again. */
static void unreached_is_shared(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&models[0], "measure.gguf"), 1);
    qkv_measure *m = measure_of(NULL, "0", NULL);
    qkv_table *plain = measured(&e, m, SHORT, NULL);
    qkv_table *table = measured(&e, m, SHORT, LIST("v@0=zero", "q@0.h1=zero"));
    assert_true(table_stats(table).n_passes == 2); /* the baseline, and the queries */
    const size_t n = qkv_table_size(plain);
    assert_int_equal(qkv_table_size(table), 3 * n);
    for (size_t i = 0; i < n; i++) {
        const qkv_measurement base = table_row(plain, i), v = table_row(table, n + i);
        const qkv_measurement q = table_row(table, 2 * n + i);
        assert_true(memcmp(&base.value, &v.value, sizeof v.value) == 0);
        if (q.head != 1 && q.layer >= 0)
            assert_true(memcmp(&base.value, &q.value, sizeof q.value) == 0);
        if (qkv_measure_info(m, v.metric)->compares) assert_true(v.value == 0);
        if (qkv_measure_info(m, v.metric)->compares && q.head == 1) assert_true(q.value > 0);
    }
    assert_int_equal(qkv_result_n_edits(qkv_table_result(table), 1), 1);
    qkv_table_free(plain);
    qkv_table_free(table);
    qkv_measure_free(m);
    engine_close(&e);
}

/* Every head of every layer, edited and measured in its own layer: no product with a weight but
 * those of one forward pass. */
static void sweep_costs_one_pass(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&models[2], "measure.gguf"), 1);
    qkv_result *forward =
        engine_execute(&e, &(engine_run){prompt(), SHORT, NULL, LIST("logits"), NULL});
    engine_renew(&e, NULL);
    uint64_t products = 0;
    for (int il = 0; il < LAYERS; il++) {
        char layer[8], text[HEADS][32];
        const char *variants[HEADS + 1] = {NULL};
        snprintf(layer, sizeof layer, "%d", il);
        for (int h = 0; h < HEADS; h++) {
            snprintf(text[h], sizeof text[h], "q@%d.h%d=scale:1e-3", il, h);
            variants[h] = text[h];
        }
        qkv_measure *m = measure_of("sink,entropy,tv,kl", layer, NULL);
        qkv_table *table = measured(&e, m, SHORT, variants);
        products += table_stats(table).n_matmul;
        qkv_table_free(table);
        qkv_measure_free(m);
    }
    assert_true(products <= result_stats(forward).n_matmul);
    qkv_result_free(forward);
    engine_close(&e);
}

static void sink_rate_counts_heads(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&models[0], "measure.gguf"), 1);
    qkv_measure *m = measure_of("sink,sink_rate:0.2", NULL, "0-2");
    qkv_table *table = measured(&e, m, SHORT, LIST("q@0=scale:5"));
    for (size_t v = 0; v < 2; v++) {
        int above = 0;
        for (int32_t i = 0; i < LAYERS * 3; i++) above += value_at(table, v, i / 3, i % 3, 0) > 0.2;
        assert_true(fabs(value_at(table, v, -1, -1, 1) - above / 6.0) < 1e-12);
    }
    qkv_table_free(table);
    qkv_measure_free(m);
    engine_close(&e);
}

/* ---- tensors ---- */

static double log_softmax(const float *x, int32_t n, int32_t at) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += exp((double)x[i] - (double)x[at]);
    return -log(sum);
}

static void outputs_from_logits(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&models[2], "measure.gguf"), 1);
    const char *const *variants = LIST("v@0=zero", "z@1.h2=scale:3");
    qkv_result *result =
        engine_execute(&e, &(engine_run){prompt(), SHORT, variants, LIST("logits"), NULL});
    qkv_measure *m = measure_of("output_kl,loss,delta_loss,output_kl_mean,answer:3", NULL, NULL);
    qkv_table *table = measured(&e, m, SHORT, variants);
    const int32_t V = e.info->n_vocab;
    for (size_t v = 0; v < 3; v++) {
        const float *p = engine_tensor(result, 0, QKV_SITE_LOGITS, 0).data;
        const float *q = engine_tensor(result, v, QKV_SITE_LOGITS, 0).data;
        double kl = 0, loss = 0, base = 0, answer = 0;
        for (int32_t i = 0; i < V; i++) {
            const double lp = log_softmax(p + (SHORT - 1) * V, V, i);
            kl += exp(lp) * (lp - log_softmax(q + (SHORT - 1) * V, V, i));
        }
        for (int t = 0; t + 1 < SHORT; t++) {
            loss -= log_softmax(q + t * V, V, prompt()[t + 1]) / (SHORT - 1);
            base -= log_softmax(p + t * V, V, prompt()[t + 1]) / (SHORT - 1);
            if (t + 4 >= SHORT) answer += log_softmax(q + t * V, V, prompt()[t + 1]);
        }
        assert_true(fabs(value_at(table, v, -1, -1, 0) - kl) < 1e-9);
        assert_true(fabs(value_at(table, v, -1, -1, 1) - loss) < 1e-9);
        assert_true(fabs(value_at(table, v, -1, -1, 2) - (loss - base)) < 1e-9);
        assert_true(v == 0 || value_at(table, v, -1, -1, 3) > 0);
        assert_true(fabs(value_at(table, v, -1, -1, 4) - answer) < 1e-9);
    }
    qkv_table_free(table);
    qkv_measure_free(m);
    qkv_result_free(result);
    engine_close(&e);
}

/* At a single token the pattern is 1, so z is v, and with the other heads' z at zero attn_out is
 * one head's projected value. The gram matrix must give its length. */
static void projected_lengths(void **state) {
    (void)state;
    engine e;
    qkv_error err = {0};
    const tiny_options options = {"llama", .n_kv_head = 2, .type = GGML_TYPE_F16, SHAPE};
    engine_open(&e, tiny_model(&options, "measure.gguf"), 1);
    const engine_run r = {prompt(), 1, LIST("z@1.h0,1,3=zero"), LIST("attn_out@1", "v@1.h2"), NULL};
    qkv_result *result = engine_execute(&e, &r);
    const qkv_tensor out = engine_tensor(result, 1, QKV_SITE_ATTN_OUT, 1);
    const qkv_tensor v = engine_tensor(result, 1, QKV_SITE_V, 1);
    double *gram = NULL, expected = 0, squared = 0;
    expect_ok(qkv_output_gram(&gram, e.model, 1, &err), &err, "gram");
    for (int i = 0; i < 32; i++) expected += (double)out.data[i] * (double)out.data[i];
    for (int i = 0; i < 64; i++)
        squared += gram[2 * 64 + i] * (double)v.data[i / 8] * (double)v.data[i % 8];
    assert_true(expected > 0 && fabs(squared - expected) < 1e-5 * expected);
    free(gram);
    qkv_result_free(result);
    engine_close(&e);
}

/* All of them at once, on grouped heads: every row is there, in order, and finite or explained. */
static void all_metrics_run(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&models[0], "measure.gguf"), 1);
    qkv_measure *m = measure_of("all", "1", "0,3");
    qkv_table *table = measured(&e, m, SHORT, LIST("k@0.h1=scale:0.1", "v@1.h3=scale:2"));
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        const qkv_measurement row = table_row(table, i);
        const qkv_metric_info *info = qkv_measure_info(m, row.metric);
        if (!isfinite(row.value)) fail_msg("%s of variant %zu", info->name, row.variant);
        assert_true((row.layer == 1) == (info->scope <= QKV_SCOPE_LAYER));
        assert_true((row.head >= 0) == (info->scope == QKV_SCOPE_HEAD));
    }
    qkv_table *over = NULL;
    qkv_error err = {0};
    expect_ok(qkv_measure_finish(m, &over, &err), &err, "finish");
    assert_int_equal(qkv_table_size(over), 3);
    assert_true(isnan(table_row(over, 1).value)); /* one prompt has nothing to lie to */
    qkv_table_free(over);
    qkv_table_free(table);
    qkv_measure_free(m);
    engine_close(&e);
}

/* The states of two prompts turn where one of them is changed more than the other; in space feature
 * they do so of one prompt already. */
static void states_turn(void **state) {
    (void)state;
    engine e;
    qkv_error err = {0};
    qkv_table *over = NULL;
    engine_open(&e, tiny_model(&models[0], "measure.gguf"), 1);
    qkv_measure *m = measure_of("subspace_angle,subspace_angle:space=feature", NULL, NULL);
    for (size_t n = SHORT; n > SHORT - 2; n--)
        qkv_table_free(measured(&e, m, n, LIST("v@1.h3=scale:2")));
    expect_ok(qkv_measure_finish(m, &over, &err), &err, "finish");
    assert_int_equal(qkv_table_size(over), 4);
    for (size_t i = 0; i < 4; i++) {
        const double value = table_row(over, i).value;
        assert_true(i < 2 ? value == 0 : value > 0 && value < 90);
    }
    qkv_table_free(over);
    qkv_measure_free(m);
    engine_close(&e);
}

/* ---- what is refused ---- */

static void expect_refused(engine *e, const char *metrics, const char *layers, size_t n_tokens,
                           const char *variant, int status, const char *part) {
    qkv_error err = {0};
    qkv_table *table = NULL;
    qkv_measure *m = measure_of(metrics, layers, NULL);
    qkv_plan *plan = plan_of(e, n_tokens, variant ? LIST(variant) : NULL);
    assert_int_equal(qkv_measure_run(m, &table, e->session, plan, &err), status);
    assert_null(table);
    if (!strstr(err.message, part)) fail_msg("%s", err.message);
    qkv_plan_free(plan);
    qkv_measure_free(m);
}

static void refusals(void **state) {
    (void)state;
    static int32_t tokens[1100];
    engine e;
    qkv_error err = {0};
    qkv_result *result = NULL;
    engine_open(&e, tiny_model(&models[0], "measure.gguf"), 1);
    expect_refused(&e, "sink", "5", SHORT, NULL, QKV_ERR_PLAN, "layer");
    expect_refused(&e, "sink", NULL, SHORT, "q@0=scale:1e30 + k@0=scale:1e30", QKV_ERR_NUMERIC,
                   "not finite");
    qkv_plan *plan = plan_of(&e, SHORT, NULL);
    expect_ok(qkv_plan_observe(plan, "pattern@0", &err), &err, "observe");
    assert_int_equal(qkv_session_run(e.session, &result, plan, &err), QKV_ERR_PLAN);
    assert_int_equal(qkv_plan_observe(plan, "scores@0", &err), QKV_ERR_PLAN);
    qkv_plan_free(plan);

    qkv_measure *m = measure_of("effective_rank", NULL, NULL);
    qkv_table *table = NULL;
    plan = engine_plan(&e, &(engine_run){tokens, 1100, NULL, NULL, NULL});
    assert_int_equal(qkv_measure_run(m, &table, e.session, plan, &err), QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "1024"));
    qkv_plan_free(plan);
    qkv_measure_free(m);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_add_up),
        cmocka_unit_test(whole_maps_add_up),
        cmocka_unit_test(queries_that_look_ahead),
        cmocka_unit_test(every_kind_of_attention),
        cmocka_unit_test(unreached_is_shared),
        cmocka_unit_test(sweep_costs_one_pass),
        cmocka_unit_test(sink_rate_counts_heads),
        cmocka_unit_test(outputs_from_logits),
        cmocka_unit_test(projected_lengths),
        cmocka_unit_test(all_metrics_run),
        cmocka_unit_test(states_turn),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("measure", tests, NULL, scratch_clean);
}
