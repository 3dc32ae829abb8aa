/*
 * What a run promises beside its numbers: captures of single heads, shared tensors, noise that can
 * be repeated, not-finite results reported, weights of other types than F32, sessions used again.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "reference/ref_forward.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { T = 24 };

static const tiny_options grouped = {"llama", .n_kv_head = 2};

static const int32_t *prompt(void) {
    static int32_t tokens[T];
    dice d = {11};
    for (int t = 0; t < T; t++) tokens[t] = t == 0 ? 1 : 3 + (int32_t)dice_below(&d, 256);
    return tokens;
}

static qkv_result *run(engine *e, const char *const *variants, const char *const *captures) {
    return engine_execute(
        e, &(engine_run){
               .tokens = prompt(), .n_tokens = T, .variants = variants, .captures = captures});
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- captures ---- */

/* Rows of a head in [T][heads][d] and in [H][T][T]. */
static const float *head_row(const qkv_tensor *t, qkv_site site, int head, int row, size_t *n) {
    *n = (size_t)t->shape[2];
    const size_t outer = site == QKV_SITE_PATTERN ? (size_t)head : (size_t)row;
    const size_t inner = site == QKV_SITE_PATTERN ? (size_t)row : (size_t)head;
    return t->data + (outer * (size_t)t->shape[1] + inner) * *n;
}

static void check_heads(engine *e, const char *capture, qkv_site site, int layer, int n_heads,
                        const int32_t *heads) {
    char whole[32];
    snprintf(whole, sizeof whole, "%s@*", qkv_site_name(site));
    qkv_result *part = run(e, LIST("q@0=scale:0.5"), LIST(capture));
    qkv_result *all = run(e, LIST("q@0=scale:0.5"), LIST(whole));
    for (size_t v = 0; v < 2; v++) {
        const qkv_tensor a = engine_tensor(part, v, site, layer);
        const qkv_tensor b = engine_tensor(all, v, site, layer);
        assert_int_equal(a.n_dims, 3);
        assert_int_equal(a.n_heads, n_heads);
        assert_memory_equal(a.heads, heads, (size_t)n_heads * sizeof *heads);
        assert_int_equal(a.shape[site == QKV_SITE_PATTERN ? 0 : 1], n_heads);
        for (int i = 0; i < n_heads; i++)
            for (int t = 0; t < T; t++) {
                size_t n = 0;
                const float *x = head_row(&a, site, i, t, &n);
                const float *y = head_row(&b, site, heads[i], t, &n);
                assert_true(same_bits(x, y, n));
            }
    }
    qkv_result_free(part);
    qkv_result_free(all);
}

static void captures_of_single_heads(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    check_heads(&e, "pattern@1.h2", QKV_SITE_PATTERN, 1, 1, (const int32_t[]){2});
    check_heads(&e, "pattern@0-2.h0,3", QKV_SITE_PATTERN, 2, 2, (const int32_t[]){0, 3});
    check_heads(&e, "q@1.h1-2", QKV_SITE_Q, 1, 2, (const int32_t[]){1, 2});
    check_heads(&e, "z@0.h*", QKV_SITE_Z, 0, 4, (const int32_t[]){0, 1, 2, 3});
    check_heads(&e, "k@1.g1", QKV_SITE_K, 1, 1, (const int32_t[]){1});
    check_heads(&e, "v@2", QKV_SITE_V, 2, 2, (const int32_t[]){0, 1});
    engine_close(&e);
}

static void only_what_was_asked_for(void **state) {
    (void)state;
    engine e;
    qkv_tensor t = QKV_TENSOR_INIT;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    qkv_result *result = run(&e, LIST("v@1=zero"), LIST("pattern@1", "resid_post@2"));
    assert_int_equal(qkv_result_n_variants(result), 2);
    assert_int_equal(qkv_result_get(result, 0, QKV_SITE_PATTERN, 0, &t), 0);
    assert_int_equal(qkv_result_get(result, 0, QKV_SITE_LOGITS, 0, &t), 0);
    assert_int_equal(qkv_result_get(result, 2, QKV_SITE_PATTERN, 1, &t), 0);
    assert_int_equal(qkv_result_n_edits(result, 0), 0);
    assert_int_equal(qkv_result_n_edits(result, 1), 1);
    t = engine_tensor(result, 0, QKV_SITE_RESID_POST, 2);
    assert_int_equal(t.n_dims, 2);
    assert_int_equal(t.shape[0], T);
    assert_int_equal(t.shape[1], 32);
    assert_null(t.heads);
    size_t items = 0, v = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    while (qkv_result_item(result, items, &v, &site, &layer, &t)) items++;
    assert_int_equal(items, 4);
    qkv_result_free(result);
    engine_close(&e);
}

/* Where no edit can reach, the tensor is the baseline's own. */
static void unreachable_tensors_are_shared(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    qkv_result *result = run(&e, LIST("v@1.h0=zero", "q@2=zero", "logits=zero"),
                             LIST("pattern@*", "resid_pre@*", "k@*", "logits"));
    static const struct {
        size_t variant;
        qkv_site site;
        int32_t layer;
        int shared;
    } facts[] = {
        {1, QKV_SITE_PATTERN, 0, 1},   {1, QKV_SITE_PATTERN, 1, 1}, {1, QKV_SITE_PATTERN, 2, 0},
        {1, QKV_SITE_RESID_PRE, 1, 1}, {1, QKV_SITE_K, 1, 1},       {1, QKV_SITE_LOGITS, 0, 0},
        {2, QKV_SITE_PATTERN, 1, 1},   {2, QKV_SITE_K, 2, 1},       {2, QKV_SITE_PATTERN, 2, 0},
        {3, QKV_SITE_PATTERN, 2, 1},   {3, QKV_SITE_LOGITS, 0, 0},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const qkv_tensor base = engine_tensor(result, 0, facts[i].site, facts[i].layer);
        const qkv_tensor t = engine_tensor(result, facts[i].variant, facts[i].site, facts[i].layer);
        if ((t.data == base.data) != facts[i].shared)
            fail_msg("variant %zu, %s of layer %d is %s the baseline's own", facts[i].variant,
                     qkv_site_name(facts[i].site), (int)facts[i].layer,
                     facts[i].shared ? "not" : "wrongly");
    }
    qkv_result_free(result);
    engine_close(&e);
}

/* A split group has no one value: it must be captured as its query heads see it. */
static void captures_of_split_groups(void **state) {
    (void)state;
    engine e;
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    expect_ok(qkv_plan_new(&plan, e.model, prompt(), T, &err), &err, "plan");
    expect_ok(qkv_plan_add_capture(plan, "k@1", &err), &err, "capture");
    expect_ok(qkv_plan_add_variant(plan, "k@0.h3=zero", NULL, &err), &err, "another layer");
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "run");
    qkv_result_free(result);
    result = NULL;
    int status = qkv_plan_add_variant(plan, "k@1.h3=zero", NULL, &err);
    if (status == QKV_OK) status = qkv_session_run(e.session, &result, plan, &err);
    assert_int_equal(status, QKV_ERR_PLAN);
    assert_null(result);
    assert_non_null(strstr(err.message, "k@1.h3=zero"));
    assert_non_null(strstr(err.message, "k@1.h*"));
    qkv_plan_free(plan);
    engine_close(&e);
}

/* ---- noise ---- */

typedef struct moments {
    double mean, deviation, within; /* share within one standard deviation */
    size_t n;
} moments;

static moments moments_of(const float *a, const float *b, size_t n, double sigma) {
    moments m = {.n = n};
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)a[i] - (double)b[i];
        m.mean += x / (double)n;
        square += x * x / (double)n;
        m.within += (fabs(x) < sigma) / (double)n;
    }
    m.deviation = sqrt(square - m.mean * m.mean);
    return m;
}

static void check_noise(const qkv_result *result, size_t variant, qkv_site site, int layer,
                        double sigma) {
    const qkv_tensor base = engine_tensor(result, 0, site, layer);
    const qkv_tensor t = engine_tensor(result, variant, site, layer);
    const moments m = moments_of(t.data, base.data, tensor_count(&t), sigma);
    const double error = sigma / sqrt((double)m.n);
    if (fabs(m.mean) > 5 * error || fabs(m.deviation - sigma) > 5 * error ||
        fabs(m.within - 0.6827) > 5 * 0.47 / sqrt((double)m.n))
        fail_msg("noise on %s: mean %g, deviation %g, within one sigma %g of %zu",
                 qkv_site_name(site), m.mean, m.deviation, m.within, m.n);
    assert_int_equal(qkv_result_edit_selected(result, variant, 0), m.n);
    assert_true(qkv_result_edit_changed(result, variant, 0) > m.n - m.n / 100 - 1);
}

static void noise_is_gaussian_and_repeatable(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    const char *const variants[] = {"q@1=noise:0.5,seed=7",  "q@1=noise:0.5,seed=7",
                                    "q@1=noise:0.5,seed=8",  "q@1=noise:0.5",
                                    "logits=noise:2,seed=7", NULL};
    qkv_result *a = run(&e, variants, LIST("q@1", "logits"));
    qkv_result *b = run(&e, LIST("q@1=noise:0.5", "q@1=noise:0.5,seed=7"), LIST("q@1", "logits"));
    for (size_t v = 1; v <= 4; v++) check_noise(a, v, QKV_SITE_Q, 1, 0.5);
    check_noise(a, 5, QKV_SITE_LOGITS, 0, 2);
    const qkv_tensor seven = engine_tensor(a, 1, QKV_SITE_Q, 1);
    const size_t n = tensor_count(&seven);
    assert_true(same_bits(seven.data, engine_tensor(a, 2, QKV_SITE_Q, 1).data, n));
    assert_false(same_bits(seven.data, engine_tensor(a, 3, QKV_SITE_Q, 1).data, n));
    assert_true(same_bits(seven.data, engine_tensor(b, 2, QKV_SITE_Q, 1).data, n));
    assert_true(same_bits(engine_tensor(a, 4, QKV_SITE_Q, 1).data,
                          engine_tensor(b, 1, QKV_SITE_Q, 1).data, n));
    qkv_result_free(a);
    qkv_result_free(b);
    engine_close(&e);
}

static void noise_stays_in_its_selection(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    qkv_result *result = run(&e, LIST("q@0.h1[3:5]=noise:0.5,seed=2"), LIST("q@0"));
    const qkv_tensor base = engine_tensor(result, 0, QKV_SITE_Q, 0);
    const qkv_tensor t = engine_tensor(result, 1, QKV_SITE_Q, 0);
    size_t changed = 0;
    for (size_t i = 0; i < tensor_count(&t); i++) {
        const size_t head = i / 8 % 4, token = i / 32;
        const int selected = head == 1 && token >= 3 && token < 5;
        if (!selected) assert_true(same_bits(&t.data[i], &base.data[i], 1));
        changed += !same_bits(&t.data[i], &base.data[i], 1);
    }
    assert_int_equal(changed, 16);
    assert_int_equal(qkv_result_edit_selected(result, 1, 0), 16);
    qkv_result_free(result);
    engine_close(&e);
}

/* One seed, but layers, heads and tokens each get noise of their own. Only one layer is edited in a
 * variant: what it adds there is the noise and nothing else. */
static void noise_differs_from_place_to_place(void **state) {
    (void)state;
    enum { D = 8, PLACES = 4 };
    static const struct {
        size_t variant;
        int layer, head, token;
    } places[PLACES] = {{1, 0, 1, 3}, {1, 0, 2, 3}, {1, 0, 1, 4}, {2, 1, 1, 3}};
    float drawn[PLACES][D];
    engine e;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    qkv_result *result = run(&e, LIST("q@0=noise:0.5,seed=2", "q@1=noise:0.5,seed=2"), LIST("q"));
    for (int p = 0; p < PLACES; p++)
        for (int c = 0; c < D; c++) {
            const size_t at = (size_t)((places[p].token * 4 + places[p].head) * D + c);
            const int layer = places[p].layer;
            drawn[p][c] = engine_tensor(result, places[p].variant, QKV_SITE_Q, layer).data[at] -
                          engine_tensor(result, 0, QKV_SITE_Q, layer).data[at];
        }
    for (int p = 1; p < PLACES; p++) assert_true(compare_floats(drawn[p], drawn[0], D).max > 0.05);
    qkv_result_free(result);
    engine_close(&e);
}

/* ---- numbers that are not finite ---- */

static void not_finite_is_reported(void **state) {
    (void)state;
    engine e;
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 1);
    expect_ok(qkv_plan_new(&plan, e.model, prompt(), T, &err), &err, "plan");
    expect_ok(qkv_plan_add_capture(plan, "pattern@1", &err), &err, "capture");
    expect_ok(qkv_plan_add_variant(plan, "q@1.h0=scale:0.5", NULL, &err), &err, "variant");
    expect_ok(qkv_plan_add_variant(plan, "q@1.h2=scale:3e38", NULL, &err), &err, "variant");
    assert_int_equal(qkv_session_run(e.session, &result, plan, &err), QKV_ERR_NUMERIC);
    assert_null(result);
    assert_non_null(strstr(err.message, "variant 2 (q@1.h2=scale:3e38)"));
    assert_non_null(strstr(err.message, "layer 1"));
    qkv_plan_free(plan);
    /* the session is still good */
    qkv_result_free(run(&e, LIST("q@1=zero"), LIST("pattern@1")));
    engine_close(&e);
}

/* ---- tensor types ---- */

/* Products of weights that are not F32 may be rounded to the weights' own precision. */
static void other_tensor_types(void **state) {
    (void)state;
    static const struct {
        enum ggml_type type;
        double bound;
    } types[] = {
        {GGML_TYPE_F16, 5e-3},  {GGML_TYPE_BF16, 3e-2}, {GGML_TYPE_Q8_0, 5e-2},
        {GGML_TYPE_Q4_0, 2e-1}, {GGML_TYPE_Q5_1, 1e-1}, {GGML_TYPE_IQ4_NL, 2e-1},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        engine e;
        const tiny_options options = {"llama", .n_kv_head = 2, .n_embd = 64, .head_dim = 16,
                                      .type = types[i].type};
        const char *path = tiny_model(&options, "typed.gguf");
        engine_open(&e, path, 1);
        ref_model *ref = ref_model_load(path);
        ref_run *expected = ref_forward(ref, prompt(), T, NULL, 0, NULL);
        qkv_result *result = run(&e, NULL, LIST("logits"));
        const qkv_tensor t = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
        const difference d =
            compare_to_doubles(t.data, expected->site[QKV_SITE_LOGITS][0], tensor_count(&t));
        print_message("%-7s logits off by %.1e of their scale\n", ggml_type_name(types[i].type),
                      d.max / d.scale);
        if (d.max > types[i].bound * d.scale)
            fail_msg("%s: off by %g", ggml_type_name(types[i].type), d.max / d.scale);
        qkv_result_free(result);
        ref_run_free(expected);
        ref_model_free(ref);
        engine_close(&e);
    }
}

/* ---- split files ---- */

static void split_models_are_one(void **state) {
    (void)state;
    tiny_file file;
    engine whole, split;
    tiny_build(&file, &grouped);
    engine_open(&whole, tiny_save(&file, "whole.gguf"), 1);
    const char *path = tiny_save_split(&file, "part");
    tiny_free(&file);
    qkv_result *expected = run(&whole, NULL, LIST("logits"));
    const qkv_tensor a = engine_tensor(expected, 0, QKV_SITE_LOGITS, 0);
    for (int part = 0; part < 2; part++) {
        engine_open(&split, part ? scratch_path("part-00002-of-00002.gguf") : path, 1);
        assert_int_equal(split.info->n_files, 2);
        assert_int_equal(split.info->n_params, whole.info->n_params);
        qkv_result *result = run(&split, NULL, LIST("logits"));
        const qkv_tensor b = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
        assert_true(same_bits(a.data, b.data, tensor_count(&a)));
        qkv_result_free(result);
        engine_close(&split);
    }
    qkv_result_free(expected);
    engine_close(&whole);
}

/* ---- sessions ---- */

static void results_outlive_their_session(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&grouped, "rules.gguf"), 2);
    qkv_result *first = run(&e, LIST("k@1.g0=zero"), LIST("pattern@*", "logits"));
    qkv_result *second = run(&e, LIST("k@1.g0=zero"), LIST("pattern@*", "logits"));
    engine_close(&e);
    size_t v = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(first, i, &v, &site, &layer, &t); i++)
        assert_true(
            same_bits(t.data, engine_tensor(second, v, site, layer).data, tensor_count(&t)));
    assert_string_equal(qkv_result_edit_text(first, 1, 0), "k@1.g0=zero");
    qkv_result_free(first);
    qkv_result_free(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures_of_single_heads),
        cmocka_unit_test(only_what_was_asked_for),
        cmocka_unit_test(unreachable_tensors_are_shared),
        cmocka_unit_test(captures_of_split_groups),
        cmocka_unit_test(noise_is_gaussian_and_repeatable),
        cmocka_unit_test(noise_stays_in_its_selection),
        cmocka_unit_test(noise_differs_from_place_to_place),
        cmocka_unit_test(not_finite_is_reported),
        cmocka_unit_test(other_tensor_types),
        cmocka_unit_test(split_models_are_one),
        cmocka_unit_test(results_outlive_their_session),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
