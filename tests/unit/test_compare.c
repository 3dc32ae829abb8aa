/*
 * Comparisons of two models against whole tensors of both: every number is computed here once more,
 * from maps, states and logits that plain runs capture. However little memory there is, and with edits
 * of the second model, the numbers are the same; what cannot be compared is refused by name.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "measure/compare.h"
#include "qkv/convert.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { LAYERS = 3, HEADS = 4, WIDTH = 32, LONG = 24, PROMPTS = 3 };

static const size_t lengths[PROMPTS] = {LONG, 1, 13};
static const char *const distances[] = {"tv", "js", "kl", "max_change"};

static const tiny_options families[] = {
    {"llama", .n_kv_head = 2, .n_ctx = 64},
    {"llama", .window = 9, .n_ctx = 64},
    {"gpt2", .n_ctx = 64},
};
enum { FAMILIES = sizeof families / sizeof *families };

static qkv_error err;

typedef struct couple {
    engine first, second;
} couple;

static void open_couple(couple *c, const tiny_options *options) {
    qkv_convert_options how = QKV_CONVERT_OPTIONS_INIT;
    const char *path = tiny_model(options, "full.gguf"), *small = scratch_path("small.gguf");
    how.type = "q8_0";
    expect_ok(qkv_model_convert(path, small, &how, &err), &err, "convert");
    engine_open(&c->first, path, 1);
    engine_open(&c->second, small, 1);
}

static void close_couple(couple *c) {
    engine_close(&c->first);
    engine_close(&c->second);
}

static const int32_t *prompt(size_t number) {
    static int32_t tokens[PROMPTS][LONG];
    dice d = {5 + number};
    for (int t = 0; t < LONG; t++) tokens[number][t] = 3 + (int32_t)dice_below(&d, 200);
    return tokens[number];
}

/* ---- once more, from whole tensors ---- */

typedef struct expected {
    double heads[4][LAYERS][HEADS]; /* by distance; sums until finish */
    double angle[LAYERS], error[LAYERS];
    double kl, kl_last, loss[2];
    double rows, flips, losses, prompts;
} expected;

static double kl_of(const double *p, const double *q, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += p[i] > 0 ? p[i] * log(p[i] / q[i]) : 0;
    return sum;
}

static void expect_row(expected *to, int layer, int head, const float *a, const float *b,
                       size_t n) {
    double p[LONG], q[LONG], m[LONG], tv = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        p[i] = a[i];
        q[i] = b[i];
        m[i] = (p[i] + q[i]) / 2;
        tv += fabs(p[i] - q[i]) / 2;
        most = fmax(most, fabs(p[i] - q[i]));
    }
    to->heads[0][layer][head] += tv;
    /* Rows sum to 1 only nearly; a divergence below 0 is none. */
    to->heads[1][layer][head] += fmax(0, (kl_of(p, m, n) + kl_of(q, m, n)) / 2);
    to->heads[2][layer][head] += fmax(0, kl_of(p, q, n));
    to->heads[3][layer][head] = fmax(to->heads[3][layer][head], most);
}

static void expect_state(expected *to, int layer, const float *a, const float *b) {
    double ab = 0, aa = 0, bb = 0, dd = 0;
    for (int i = 0; i < WIDTH; i++) {
        const double x = a[i], y = b[i];
        ab += x * y;
        aa += x * x;
        bb += y * y;
        dd += (y - x) * (y - x);
    }
    to->angle[layer] += acos(fmin(1, ab / sqrt(aa * bb))) * 180 / acos(-1);
    to->error[layer] += sqrt(dd / aa);
}

static void softmax(const float *row, double *p) {
    double most = row[0], sum = 0;
    for (int i = 0; i < TINY_VOCAB; i++) most = fmax(most, row[i]);
    for (int i = 0; i < TINY_VOCAB; i++) sum += p[i] = exp(row[i] - most);
    for (int i = 0; i < TINY_VOCAB; i++) p[i] /= sum;
}

static void expect_logits(expected *to, const float *a, const float *b, int32_t next, int is_last) {
    double p[TINY_VOCAB], q[TINY_VOCAB];
    int best[2] = {0, 0};
    softmax(a, p);
    softmax(b, q);
    for (int i = 1; i < TINY_VOCAB; i++) {
        if (p[i] > p[best[0]]) best[0] = i;
        if (q[i] > q[best[1]]) best[1] = i;
    }
    const double kl = kl_of(p, q, TINY_VOCAB);
    to->kl += kl;
    to->rows += 1;
    to->flips += best[0] != best[1];
    if (is_last) {
        to->kl_last += kl;
        return;
    }
    to->loss[0] -= log(p[next]);
    to->loss[1] -= log(q[next]);
    to->losses += 1;
}

static void expect_prompt(expected *to, couple *c, size_t number, const char *edits) {
    static const char *const captures[] = {"pattern@*", "resid_post@*", "logits", NULL};
    const char *const variants[] = {edits, NULL};
    const size_t n = lengths[number], v = edits ? 1 : 0;
    const int32_t *tokens = prompt(number);
    qkv_result *a = engine_execute(&c->first, &(engine_run){tokens, n, NULL, captures, NULL});
    qkv_result *b = engine_execute(&c->second, &(engine_run){tokens, n, variants, captures, NULL});
    for (int l = 0; l < LAYERS; l++) {
        const qkv_tensor x = engine_tensor(a, 0, QKV_SITE_PATTERN, l);
        const qkv_tensor y = engine_tensor(b, v, QKV_SITE_PATTERN, l);
        const qkv_tensor r = engine_tensor(a, 0, QKV_SITE_RESID_POST, l);
        const qkv_tensor s = engine_tensor(b, v, QKV_SITE_RESID_POST, l);
        for (size_t t = 0; t < n; t++) {
            for (size_t h = 0; h < HEADS; h++) {
                const size_t at = (h * n + t) * n;
                expect_row(to, l, (int)h, x.data + at, y.data + at, n);
            }
            expect_state(to, l, r.data + t * WIDTH, s.data + t * WIDTH);
        }
    }
    const qkv_tensor x = engine_tensor(a, 0, QKV_SITE_LOGITS, 0);
    const qkv_tensor y = engine_tensor(b, v, QKV_SITE_LOGITS, 0);
    for (size_t t = 0; t < n; t++)
        expect_logits(to, x.data + t * TINY_VOCAB, y.data + t * TINY_VOCAB,
                      t + 1 < n ? tokens[t + 1] : 0, t + 1 == n);
    to->prompts += 1;
    qkv_result_free(a);
    qkv_result_free(b);
}

static void expect_near(double actual, double wanted, double tolerance, const char *what) {
    if (!(fabs(actual - wanted) <= tolerance * fmax(1, fabs(wanted))))
        fail_msg("%s: %.17g in place of %.17g", what, actual, wanted);
}

static void expect_same(const qkv_compare *compare, const expected *e, int distance) {
    qkv_compared out = QKV_COMPARED_INIT;
    assert_int_equal(qkv_compare_get(compare, &out), 1);
    for (int l = 0; l < LAYERS; l++) {
        double angle = 0, error = 0;
        for (int h = 0; h < HEADS; h++) {
            const double sum = e->heads[distance][l][h];
            expect_near(qkv_compare_head(compare, l, h), distance == 3 ? sum : sum / e->rows, 1e-9,
                        distances[distance]);
        }
        assert_int_equal(qkv_compare_layer(compare, l, &angle, &error), 1);
        expect_near(angle, e->angle[l] / e->rows, 1e-5, "angle"); /* of the arc cosine's making */
        expect_near(error, e->error[l] / e->rows, 1e-9, "error");
    }
    expect_near(out.kl, e->kl / e->rows, 1e-9, "kl");
    expect_near(out.kl_last, e->kl_last / e->prompts, 1e-9, "kl_last");
    expect_near(out.flips, e->flips / e->rows, 1e-12, "flips");
    for (int m = 0; m < 2; m++) expect_near(out.loss[m], e->loss[m] / e->losses, 1e-9, "loss");
    assert_int_equal(out.n_prompts, PROMPTS);
    assert_int_equal(out.n_tokens, (uint64_t)e->rows);
}

static qkv_compare *compared(couple *c, const qkv_compare_options *options) {
    qkv_compare *compare = NULL;
    expect_ok(qkv_compare_new(&compare, c->first.model, c->second.model, options, &err), &err,
              "new");
    for (size_t i = 0; i < PROMPTS; i++)
        expect_ok(qkv_compare_add(compare, c->first.session, c->second.session, prompt(i),
                                  lengths[i], NULL, &err),
                  &err, "add");
    return compare;
}

static uint64_t passes_of(const qkv_compare *compare) {
    qkv_compared out = QKV_COMPARED_INIT;
    assert_int_equal(qkv_compare_get(compare, &out), 1);
    return out.n_passes;
}

/* ---- tests ---- */

static void test_against_tensors(void **state) {
    (void)state;
    for (size_t f = 0; f < FAMILIES; f++) {
        couple c;
        expected e = {0};
        open_couple(&c, &families[f]);
        for (size_t i = 0; i < PROMPTS; i++) expect_prompt(&e, &c, i, NULL);
        assert_true(e.kl > 0 && e.angle[0] > 0); /* there is something to see */
        for (int d = 0; d < 4; d++) {
            qkv_compare_options options = QKV_COMPARE_OPTIONS_INIT;
            options.distance = distances[d];
            qkv_compare *compare = compared(&c, &options);
            expect_same(compare, &e, d);
            qkv_compare_free(compare);
        }
        close_couple(&c);
    }
}

/* Down to a row at a time, to the last bit. */
static void test_memory(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 40000, 9000, 1};
    couple c;
    expected e = {0};
    double first[LAYERS][HEADS];
    uint64_t passes = 0;
    open_couple(&c, &families[0]);
    for (size_t i = 0; i < PROMPTS; i++) expect_prompt(&e, &c, i, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        qkv_compare_options options = QKV_COMPARE_OPTIONS_INIT;
        options.memory = sizes[i];
        qkv_compare *compare = compared(&c, &options);
        expect_same(compare, &e, 0);
        if (i == 0) assert_int_equal(passes_of(compare), PROMPTS);
        for (int at = 0; at < LAYERS * HEADS; at++) {
            double *kept = &first[at / HEADS][at % HEADS];
            const double value = qkv_compare_head(compare, at / HEADS, at % HEADS);
            if (i == 0) *kept = value;
            assert_true(value == *kept);
        }
        assert_true(passes_of(compare) > passes);
        passes = passes_of(compare);
        qkv_compare_free(compare);
    }
    close_couple(&c);
}

/* What an edit cannot change is the second model's own. */
static void test_edits(void **state) {
    (void)state;
    static const char *const edits[] = {"q@1.h2=zero", "z@2.h0=scale:0.5 + v@0=zero",
                                        "pattern@1.h1=set:0.1"};
    couple c;
    open_couple(&c, &families[0]);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        expected e = {0};
        qkv_compare_options options = QKV_COMPARE_OPTIONS_INIT;
        options.edits = edits[i];
        options.memory = i ? 20000 : 0;
        for (size_t p = 0; p < PROMPTS; p++) expect_prompt(&e, &c, p, edits[i]);
        qkv_compare *compare = compared(&c, &options);
        if (i < 2) expect_same(compare, &e, 0); /* rows of set:0.1 sum to more than 1 */
        qkv_compared out = QKV_COMPARED_INIT;
        assert_int_equal(qkv_compare_get(compare, &out), 1);
        assert_true(out.changed > 0 && out.changed <= out.selected);
        expect_near(out.kl, e.kl / e.rows, 1e-9, "kl");
        qkv_compare_free(compare);
    }
    close_couple(&c);
}

/* A model and itself differ nowhere, and not by rounding. */
static void test_itself(void **state) {
    (void)state;
    couple c;
    open_couple(&c, &families[0]);
    engine_close(&c.second);
    engine_open(&c.second, tiny_model(&families[0], "again.gguf"), 1);
    qkv_compare *compare = compared(&c, NULL);
    qkv_compared out = QKV_COMPARED_INIT;
    qkv_compare_flip flip = QKV_COMPARE_FLIP_INIT;
    assert_int_equal(qkv_compare_get(compare, &out), 1);
    assert_true(out.kl == 0 && out.kl_last == 0 && out.flips == 0);
    assert_true(out.loss[0] == out.loss[1]);
    assert_int_equal(qkv_compare_get_flip(compare, 0, &flip), 0);
    for (int l = 0; l < LAYERS; l++) {
        double angle = 1, error = 1;
        qkv_compare_layer(compare, l, &angle, &error);
        assert_true(angle == 0 && error == 0);
        for (int h = 0; h < HEADS; h++) assert_true(qkv_compare_head(compare, l, h) == 0);
    }
    qkv_compare_free(compare);
    close_couple(&c);
}

static void test_positions_and_flips(void **state) {
    (void)state;
    couple c;
    double sum = 0;
    open_couple(&c, &families[2]);
    qkv_compare *compare = compared(&c, NULL);
    qkv_compared out = QKV_COMPARED_INIT;
    qkv_compare_get(compare, &out);
    for (size_t t = 0; t < LONG; t++) {
        double kl = 0;
        uint64_t n = 0;
        assert_int_equal(qkv_compare_position(compare, t, &kl, &n), 1);
        assert_int_equal(n, t == 0 ? 3 : t < 13 ? 2 : 1);
        sum += kl * (double)n;
    }
    expect_near(sum / (double)out.n_tokens, out.kl, 1e-12, "kl by position");
    assert_int_equal(qkv_compare_position(compare, LONG, NULL, NULL), 0);
    double last = INFINITY;
    size_t n = 0;
    qkv_compare_flip flip = QKV_COMPARE_FLIP_INIT;
    for (; qkv_compare_get_flip(compare, n, &flip); n++) {
        assert_true(flip.kl <= last && flip.tokens[0] != flip.tokens[1]);
        assert_true(flip.prompt < PROMPTS && flip.position < (int64_t)lengths[flip.prompt]);
        last = flip.kl;
    }
    assert_int_equal(n, (size_t)llround(out.flips * (double)out.n_tokens));
    qkv_compare_free(compare);
    close_couple(&c);
}

/* ---- what is refused ---- */

static void expect_refused(const char *other, const char *words) {
    couple c;
    qkv_compare *compare = NULL;
    open_couple(&c, &families[0]);
    engine_close(&c.second);
    engine_open(&c.second, other, 1);
    assert_int_equal(qkv_compare_new(&compare, c.first.model, c.second.model, NULL, &err),
                     QKV_ERR_ARGUMENT);
    if (!strstr(err.message, words)) fail_msg("'%s' is not in: %s", words, err.message);
    assert_null(compare);
    close_couple(&c);
}

static const char *with_other_token(void) {
    tiny_file file;
    tiny_build(&file, &families[0]);
    const int64_t key = gguf_find_key(file.gguf, "tokenizer.ggml.tokens");
    const size_t n = gguf_get_arr_n(file.gguf, key);
    const char **texts = calloc(n, sizeof *texts);
    for (size_t i = 0; i < n; i++) texts[i] = gguf_get_arr_str(file.gguf, key, i);
    char **copies = calloc(n, sizeof *copies);
    for (size_t i = 0; i < n; i++) copies[i] = qkv_strdup(i == 0 ? "<other>" : texts[i]);
    gguf_set_arr_str(file.gguf, "tokenizer.ggml.tokens", (const char **)copies, n);
    for (size_t i = 0; i < n; i++) free(copies[i]);
    free(copies);
    free((void *)texts);
    const char *path = tiny_save(&file, "words.gguf");
    tiny_free(&file);
    return path;
}

static void test_refused(void **state) {
    (void)state;
    expect_refused(tiny_model(&families[2], "gpt2.gguf"), "different architectures, llama");
    expect_refused(tiny_model(&(tiny_options){"llama", .n_layer = 2}, "l.gguf"), "3 layers");
    expect_refused(tiny_model(&(tiny_options){"llama", .n_kv_head = 4}, "g.gguf"),
                   "2 key/value heads");
    expect_refused(tiny_model(&(tiny_options){"llama", .n_kv_head = 2, .n_ff = 48}, "f.gguf"),
                   "64 numbers in the feed-forward block");
    expect_refused(with_other_token(), "token 0 is");
}

static void test_bad_prompts(void **state) {
    (void)state;
    couple c;
    qkv_compare *compare = NULL;
    qkv_compare_options options = QKV_COMPARE_OPTIONS_INIT;
    qkv_compared out = QKV_COMPARED_INIT;
    open_couple(&c, &families[0]);
    options.distance = "cosine";
    REFUSED(qkv_compare_new(&compare, c.first.model, c.second.model, &options, &err));
    options.distance = NULL;
    options.edits = "q@9=zero";
    OK(qkv_compare_new(&compare, c.first.model, c.second.model, &options, &err));
    qkv_session *const a = c.first.session, *const b = c.second.session;
    assert_int_not_equal(qkv_compare_add(compare, a, b, prompt(0), 4, NULL, &err), QKV_OK);
    qkv_compare_free(compare);
    OK(qkv_compare_new(&compare, c.first.model, c.second.model, NULL, &err));
    REFUSED(qkv_compare_add(compare, b, a, prompt(0), 4, NULL, &err)); /* the other way round */
    assert_int_not_equal(qkv_compare_add(compare, a, b, (int32_t[]){1, 9999}, 2, NULL, &err),
                         QKV_OK);
    assert_int_equal(qkv_compare_get(compare, &out), 1);
    assert_int_equal(out.n_prompts, 0); /* nothing was added */
    assert_true(isnan(out.kl) && isnan(qkv_compare_head(compare, 0, 0)));
    qkv_compare_free(compare);
    close_couple(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_tensors),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_itself),
        cmocka_unit_test(test_positions_and_flips),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bad_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
