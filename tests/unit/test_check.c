/*
 * The study `check`: every family keeps the invariants, and each of them fails when a layout is read wrongly. What
 * is read wrongly here are captures and weights of sound models, which go through the same functions: a file that is
 * wrong in itself computes what it says, and is consistent.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/study.h"
#include "qkv/weights.h"
#include "study/invariants.h"
#include "study/study.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

static const double wrong = 1e-2; /* what a wrong layout gives at least */

/* ---- every family ---- */

static const char *text_of(const qkv_study *study, size_t row, size_t column) {
    double number;
    const char *text = NULL;
    qkv_error err = {0};
    expect_ok(qkv_study_get_value(study, 0, row, column, &number, &text, &err), &err, "cell");
    return text;
}

static const char *verdict_of(const qkv_study *study, const char *check) {
    qkv_study_table table = QKV_STUDY_TABLE_INIT;
    qkv_error err = {0};
    expect_ok(qkv_study_get_table(study, 0, &table, &err), &err, "table");
    for (size_t row = 0; row < table.n_rows; row++)
        if (strcmp(text_of(study, row, 0), check) == 0) return text_of(study, row, 1);
    fail_msg("there is no line %s", check);
    return NULL;
}

static qkv_study *run_check(engine *eng, const qkv_prompt *prompt) {
    qkv_study *study = NULL;
    qkv_error err = {0};
    expect_ok(qkv_study_new(&study, "check", &err), &err, "new");
    if (prompt) expect_ok(qkv_study_add_prompt(study, prompt, &err), &err, "prompt");
    expect_ok(qkv_study_run(study, eng->session, NULL, &err), &err, "run");
    return study;
}

static void check_family(const char *path, unsigned flags) {
    static const char *const always[] = {"values", "rows", "attn_out", "layers"};
    engine eng;
    qkv_error err = {0};
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    engine_open(&eng, path, 1);
    qkv_study *study = run_check(&eng, NULL);
    for (size_t row = 0; row < 8; row++) {
        const char *verdict = text_of(study, row, 1);
        if (strcmp(verdict, "FAILED") == 0)
            fail_msg("%s: %s fails at %s", path, text_of(study, row, 0), text_of(study, row, 4));
    }
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        assert_string_equal(verdict_of(study, always[i]), "ok");
    const int has_factor = strcmp(eng.info->architecture, "gemma4") == 0;
    assert_string_equal(verdict_of(study, "residual"), has_factor ? "skipped" : "ok");
    assert_string_equal(verdict_of(study, "mlp_out"), eng.info->n_expert ? "skipped" : "ok");
    const char *in_time = flags & GENERATES ? "ok" : "skipped";
    assert_string_equal(verdict_of(study, "causality"), in_time);
    assert_string_equal(verdict_of(study, "generation"), in_time);
    expect_ok(qkv_study_get_info(study, &info, &err), &err, "info");
    assert_int_equal(info.n_failed, 0);
    qkv_study_free(study);
    engine_close(&eng);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void family_##name(void **state) {                                                      \
        (void)state;                                                                               \
        check_family(vector_model(#name), flags);                                                  \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

/* ---- prompts ---- */

static void prompts(void **state) {
    (void)state;
    static const int32_t tokens[] = {5, 9, 20, 7, 31, 11, 8, 6, 77, 3};
    engine eng;
    engine_open(&eng, vector_model("llama_gqa"), 1);
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = tokens;
    prompt.n_tokens = 10;
    qkv_study *study = run_check(&eng, &prompt);
    assert_string_equal(verdict_of(study, "generation"), "ok");
    assert_non_null(strstr(qkv_study_get_note(study, 0), "10 tokens"));
    qkv_study_free(study);
    prompt.n_tokens = 1;
    study = run_check(&eng, &prompt);
    assert_string_equal(verdict_of(study, "values"), "ok");
    assert_string_equal(verdict_of(study, "causality"), "skipped");
    assert_string_equal(verdict_of(study, "generation"), "skipped");
    qkv_study_free(study);
    engine_close(&eng);
}

/* ---- wrong readings ---- */

enum { T = 12, LAYER = 1 };

typedef struct look {
    engine eng;
    qkv_result *result;
} look;

static const int32_t look_tokens[T] = {1, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120};

static void look_open(look *l, const char *name) {
    static const char *const captures[] = {"pattern@*",   "v@*",          "z@*",
                                           "attn_out@*",  "mlp_out@*",    "mlp_act@*",
                                           "resid_pre@*", "resid_post@*", NULL};
    engine_open(&l->eng, vector_model(name), 1);
    l->result = engine_execute(
        &l->eng, &(engine_run){.tokens = look_tokens, .n_tokens = T, .captures = captures});
}

static void look_close(look *l) {
    qkv_result_free(l->result);
    engine_close(&l->eng);
}

static qkv_tensor seen(const look *l, qkv_site site) {
    return engine_tensor(l->result, 0, site, LAYER);
}

static invariant_gap none(void) {
    return (invariant_gap){.layer = -1, .head = -1, .token = -1};
}

/* A tensor [a, b, c] with its parts b in another order; the caller frees its data. */
static qkv_tensor reordered(const qkv_tensor *t, const int *order) {
    const int64_t a = t->shape[0], b = t->shape[1], c = t->shape[2];
    float *data = malloc((size_t)(a * b * c) * sizeof *data);
    qkv_tensor out = *t;
    assert_non_null(data);
    for (int64_t i = 0; i < a; i++)
        for (int64_t j = 0; j < b; j++)
            memcpy(data + (i * b + j) * c, t->data + (i * b + order[j]) * c,
                   (size_t)c * sizeof *data);
    out.data = data;
    return out;
}

static void heads_in_another_order(void **state) {
    (void)state;
    static const int swapped[] = {1, 0, 3, 2};
    look l;
    look_open(&l, "llama_gqa");
    const qkv_tensor pattern = seen(&l, QKV_SITE_PATTERN), v = seen(&l, QKV_SITE_V),
                     z = seen(&l, QKV_SITE_Z);
    qkv_tensor wrong_v = reordered(&v, swapped), wrong_z = reordered(&z, swapped);
    invariant_gap sound = none(), groups = none(), heads = none();
    qkv_invariant_mix(&sound, LAYER, &pattern, &v, &z);
    assert_true(sound.largest < 1e-5);
    qkv_invariant_mix(&groups, LAYER, &pattern, &wrong_v, &z);
    assert_true(groups.largest > wrong);
    assert_int_equal(groups.layer, LAYER);
    assert_true(groups.head >= 0 && groups.token >= 0);
    qkv_invariant_mix(&heads, LAYER, &pattern, &v, &wrong_z);
    assert_true(heads.largest > wrong);
    free((void *)wrong_v.data);
    free((void *)wrong_z.data);
    look_close(&l);
}

/* Queries and keys of a map exchanged. */
static void a_map_the_wrong_way(void **state) {
    (void)state;
    look l;
    look_open(&l, "llama");
    const qkv_tensor pattern = seen(&l, QKV_SITE_PATTERN);
    float *turned = malloc((size_t)(pattern.shape[0] * T * T) * sizeof *turned);
    qkv_tensor wrong_map = pattern;
    invariant_gap sound = none(), sums = none(), future = none();
    assert_non_null(turned);
    for (int64_t h = 0; h < pattern.shape[0]; h++)
        for (int i = 0; i < T; i++)
            for (int j = 0; j < T; j++)
                turned[(h * T + i) * T + j] = pattern.data[(h * T + j) * T + i];
    wrong_map.data = turned;
    qkv_invariant_rows(&sound, LAYER, &pattern, NULL, NULL);
    qkv_invariant_no_future(&sound, LAYER, &pattern);
    assert_true(sound.largest < 1e-5);
    qkv_invariant_rows(&sums, LAYER, &wrong_map, NULL, NULL);
    qkv_invariant_no_future(&future, LAYER, &wrong_map);
    assert_true(sums.largest > wrong && future.largest > wrong);
    free(turned);
    look_close(&l);
}

/* Without the share of the sinks the rows are too short. */
static void sinks_forgotten(void **state) {
    (void)state;
    look l;
    const char *captures[] = {"pattern@1", NULL};
    engine_open(&l.eng, vector_model("gpt_oss"), 1);
    l.result = engine_execute(
        &l.eng, &(engine_run){.tokens = look_tokens, .n_tokens = T, .captures = captures});
    const qkv_tensor pattern = seen(&l, QKV_SITE_PATTERN);
    invariant_gap gap = none();
    qkv_invariant_rows(&gap, LAYER, &pattern, NULL, NULL);
    assert_true(gap.largest > wrong);
    look_close(&l);
}

/* A norm of the sum that is left out, and a block that is. */
static void sums_without_their_norm(void **state) {
    (void)state;
    static const char *const names[] = {"bert", "llama"};
    for (size_t i = 0; i < 2; i++) {
        look l;
        qkv_error err = {0};
        look_open(&l, names[i]);
        const qkv_tensor pre = seen(&l, QKV_SITE_RESID_PRE), attn = seen(&l, QKV_SITE_ATTN_OUT),
                         mlp = seen(&l, QKV_SITE_MLP_OUT), post = seen(&l, QKV_SITE_RESID_POST);
        const invariant_stream plain = {&pre, &attn, &mlp, &post, {0}, {0}},
                               twice = {&pre, &attn, &attn, &post, {0}, {0}};
        invariant_gap gap = none(), other = none();
        expect_ok(qkv_invariant_residual(&gap, LAYER, &plain, &err), &err, "sum");
        expect_ok(qkv_invariant_residual(&other, LAYER, &twice, &err), &err, "sum");
        assert_true(i == 0 ? gap.largest > wrong : gap.largest < 1e-5);
        assert_true(other.largest > wrong);
        look_close(&l);
    }
}

/* ---- output matrices ---- */

typedef struct source {
    const qkv_model *model;
    const char *name;
    int turned; /* rows are read as if they were columns */
    int64_t n, width;
} source;

static int read_rows(void *user, int64_t first, int64_t n, float *rows, qkv_error *err) {
    const source *s = user;
    if (!s->turned) return qkv_weight_read(s->model, s->name, LAYER, first, n, rows, err);
    float *all = malloc((size_t)(s->n * s->width) * sizeof *all);
    assert_non_null(all);
    const int status = qkv_weight_read(s->model, s->name, LAYER, 0, s->n, all, err);
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < s->width; k++)
            rows[r * s->width + k] = all[(k * s->n + first + r) % (s->n * s->width)];
    free(all);
    return status;
}

static double product_gap(const look *l, const char *name, const qkv_tensor *x, const qkv_tensor *y,
                          int turned, double factor) {
    qkv_weight weight = QKV_WEIGHT_INIT;
    qkv_error err = {0};
    invariant_gap gap = none();
    expect_ok(qkv_weight_find(l->eng.model, name, LAYER, &weight, &err), &err, name);
    source s = {l->eng.model, name, turned, weight.shape[0], weight.shape[1]};
    const invariant_matrix m = {
        .read = read_rows, .user = &s, .n = s.n, .width = s.width, .factor = factor};
    expect_ok(qkv_invariant_product(&gap, LAYER, &m, x, y, &err), &err, name);
    return gap.largest;
}

static void output_matrices_read_wrongly(void **state) {
    (void)state;
    static const int swapped[] = {1, 0, 3, 2};
    look l;
    look_open(&l, "llama");
    const qkv_tensor z = seen(&l, QKV_SITE_Z), attn = seen(&l, QKV_SITE_ATTN_OUT),
                     act = seen(&l, QKV_SITE_MLP_ACT), mlp = seen(&l, QKV_SITE_MLP_OUT);
    qkv_tensor wrong_z = reordered(&z, swapped);
    assert_true(product_gap(&l, "o", &z, &attn, 0, 1) < 1e-5);
    assert_true(product_gap(&l, "down", &act, &mlp, 0, 1) < 1e-5);
    assert_true(product_gap(&l, "o", &wrong_z, &attn, 0, 1) > wrong);
    assert_true(product_gap(&l, "o", &z, &attn, 1, 1) > wrong);
    assert_true(product_gap(&l, "down", &act, &mlp, 1, 1) > wrong);
    assert_true(product_gap(&l, "down", &act, &mlp, 0, 0.5) > wrong); /* a factor forgotten */
    free((void *)wrong_z.data);
    look_close(&l);
}

/* ---- time ---- */

/* An encoder's tokens see later ones; so would a decoder's whose mask is wrong. */
static void tokens_that_see_later_ones(void **state) {
    (void)state;
    static const char *const names[] = {"llama", "bert"};
    const char *captures[] = {"pattern@1", "resid_post@1", NULL};
    for (size_t i = 0; i < 2; i++) {
        engine eng;
        int32_t tokens[T];
        qkv_result *r[2];
        invariant_gap map = none(), stream = none(), future = none();
        memcpy(tokens, look_tokens, sizeof tokens);
        engine_open(&eng, vector_model(names[i]), 1);
        for (size_t k = 0; k < 2; k++, tokens[T - 1]++)
            r[k] = engine_execute(
                &eng, &(engine_run){.tokens = tokens, .n_tokens = T, .captures = captures});
        const qkv_tensor a = engine_tensor(r[0], 0, QKV_SITE_PATTERN, 1),
                         b = engine_tensor(r[1], 0, QKV_SITE_PATTERN, 1),
                         c = engine_tensor(r[0], 0, QKV_SITE_RESID_POST, 1),
                         d = engine_tensor(r[1], 0, QKV_SITE_RESID_POST, 1);
        qkv_invariant_earlier_rows(&map, 1, &a, &b);
        qkv_invariant_earlier_rows(&stream, 1, &c, &d);
        qkv_invariant_no_future(&future, 1, &a);
        assert_true((map.largest > 0) == (i == 1));
        assert_true((stream.largest > 0) == (i == 1));
        assert_true((future.largest > 0) == (i == 1));
        for (size_t k = 0; k < 2; k++) qkv_result_free(r[k]);
        engine_close(&eng);
    }
}

/* Positions that are one off in generation, and numbers that are none. */
static void rows_that_differ(void **state) {
    (void)state;
    const char *captures[] = {"logits", NULL};
    engine eng;
    engine_open(&eng, vector_model("llama"), 1);
    qkv_result *r = engine_execute(
        &eng, &(engine_run){.tokens = look_tokens, .n_tokens = T, .captures = captures});
    const qkv_tensor logits = engine_tensor(r, 0, QKV_SITE_LOGITS, 0);
    const int64_t V = logits.shape[1];
    invariant_gap same = none(), off = none(), nothing = none();
    qkv_invariant_same(&same, -1, 3, logits.data + 3 * V, logits.data + 3 * V, V);
    assert_true(same.largest == 0);
    qkv_invariant_same(&off, -1, 3, logits.data + 3 * V, logits.data + 4 * V, V);
    assert_true(off.largest > wrong);
    assert_int_equal(off.token, 3);
    const float numbers[2] = {1, NAN};
    qkv_invariant_same(&nothing, 2, -1, numbers, numbers, 2);
    assert_true(isinf(nothing.largest));
    assert_int_equal(nothing.layer, 2);
    qkv_result_free(r);
    engine_close(&eng);
}

int main(void) {
#define FAMILY_ENTRY(name, flags) cmocka_unit_test(family_##name),
    const struct CMUnitTest tests[] = {
        VECTOR_LIST(FAMILY_ENTRY) cmocka_unit_test(prompts),
        cmocka_unit_test(heads_in_another_order),
        cmocka_unit_test(a_map_the_wrong_way),
        cmocka_unit_test(sinks_forgotten),
        cmocka_unit_test(sums_without_their_norm),
        cmocka_unit_test(output_matrices_read_wrongly),
        cmocka_unit_test(tokens_that_see_later_ones),
        cmocka_unit_test(rows_that_differ),
    };
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
