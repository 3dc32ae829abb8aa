/*
 * The five facts about editing queries, keys and values that the figures show, for every layer and
 * head of the default model on three prompts, and of random models:
 *
 *   1 saturation   scaling q or k towards 0 makes row i uniform over the keys it may see
 *   2 symmetry     scaling q and scaling k by the same number give the same weights
 *   3 values       no edit of v moves the weights of its own layer, not by a bit; later ones move
 *   4 sink         a head that rests on the first key keeps that under v, and loses it under q or k
 *   5 temperature  scaling by 1/2 is a temperature of 2: a row becomes its normalised square root
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

/* X(enumerator, edit after the head) */
#define PANEL_LIST(X)                                                                              \
    X(Q_HALF, "q", "scale:5e-1")                                                                   \
    X(Q_SMALL, "q", "scale:1e-3")                                                                  \
    X(Q_NONE, "q", "scale:1e-10")                                                                  \
    X(K_HALF, "k", "scale:5e-1")                                                                   \
    X(K_SMALL, "k", "scale:1e-3")                                                                  \
    X(K_NONE, "k", "scale:1e-10")                                                                  \
    X(V_HALF, "v", "scale:5e-1")                                                                   \
    X(V_SMALL, "v", "scale:1e-3")                                                                  \
    X(V_NONE, "v", "scale:1e-10")                                                                  \
    X(V_MEAN, "v", "mean:head")

#define PANEL_ENUM(id, site, op) id,
enum { BASELINE = -1, PANEL_LIST(PANEL_ENUM) PANELS };
#undef PANEL_ENUM

static const char *const panel_site[] = {
#define PANEL_SITE(id, site, op) site,
    PANEL_LIST(PANEL_SITE)
#undef PANEL_SITE
};
static const char *const panel_op[] = {
#define PANEL_OP(id, site, op) op,
    PANEL_LIST(PANEL_OP)
#undef PANEL_OP
};

enum { MAX_HEADS = 32, MAX_VARIANTS = MAX_HEADS * PANELS, TEXT_SIZE = 40 };

/* Every panel of every head of one layer. */
typedef struct layer_panels {
    const engine *eng;
    qkv_result *result;
    int layer;
    int T;
} layer_panels;

static layer_panels run_layer(engine *e, const int32_t *tokens, size_t n, int layer) {
    static char text[MAX_VARIANTS][TEXT_SIZE];
    static const char *variants[MAX_VARIANTS + 1];
    size_t count = 0;
    char scores[32];
    assert_true(e->info->n_head <= MAX_HEADS);
    for (int h = 0; h < e->info->n_head; h++)
        for (int p = 0; p < PANELS; p++, count++) {
            snprintf(text[count], TEXT_SIZE, "%s@%d.h%d=%s", panel_site[p], layer, h, panel_op[p]);
            variants[count] = text[count];
        }
    variants[count] = NULL;
    snprintf(scores, sizeof scores, "scores@%d", layer);
    const char *const captures[] = {"pattern@*", "logits", scores, NULL};
    qkv_result *result = engine_execute(
        e,
        &(engine_run){.tokens = tokens, .n_tokens = n, .variants = variants, .captures = captures});
    return (layer_panels){.eng = e, .result = result, .layer = layer, .T = (int)n};
}

static size_t variant_of(int head, int panel) {
    return panel == BASELINE ? 0 : (size_t)(head * PANELS + panel + 1);
}

/* The T x T weights of a head when a panel's edit is made to it. */
static const float *weights(const layer_panels *l, int head, int panel) {
    const qkv_tensor t =
        engine_tensor(l->result, variant_of(head, panel), QKV_SITE_PATTERN, l->layer);
    return t.data + (size_t)head * (size_t)l->T * (size_t)l->T;
}

static int first_key(const layer_panels *l, int row) {
    const int window = l->eng->info->window;
    return window && row >= window ? row - window + 1 : 0;
}

/* ---- facts 1, 2, 3, 5 for one head ---- */

/* Largest distance of a cell from the uniform row. */
static double from_uniform(const layer_panels *l, const float *a) {
    double largest = 0;
    for (int i = 0; i < l->T; i++)
        for (int j = 0; j < l->T; j++) {
            const int first = first_key(l, i);
            const double uniform = j < first || j > i ? 0 : 1.0 / (i - first + 1);
            largest = fmax(largest, fabs((double)a[i * l->T + j] - uniform));
        }
    return largest;
}

/* Largest spread of the scores within a row of the unedited head. */
static double spread_of_scores(const layer_panels *l, int head) {
    const qkv_tensor t = engine_tensor(l->result, 0, QKV_SITE_SCORES, l->layer);
    const float *s = t.data + (size_t)head * (size_t)l->T * (size_t)l->T;
    double largest = 0;
    for (int i = 0; i < l->T; i++) {
        double low = INFINITY, high = -INFINITY;
        for (int j = first_key(l, i); j <= i; j++) {
            low = fmin(low, (double)s[i * l->T + j]);
            high = fmax(high, (double)s[i * l->T + j]);
        }
        largest = fmax(largest, high - low);
    }
    return largest;
}

static void check_saturation(const layer_panels *l, int head) {
    assert_true(from_uniform(l, weights(l, head, Q_NONE)) < 1e-6);
    assert_true(from_uniform(l, weights(l, head, K_NONE)) < 1e-6);
    /* weights within a row differ by a factor of at most e^(spread of scores) */
    const double spread = spread_of_scores(l, head);
    const double allowed = expm1(1e-3 * spread) + 1e-6;
    const double q = from_uniform(l, weights(l, head, Q_SMALL));
    const double k = from_uniform(l, weights(l, head, K_SMALL));
    if (q > allowed || k > allowed || (spread < 10 && fmax(q, k) > 1e-2))
        fail_msg("layer %d head %d: 1e-3 leaves %g and %g, spread of scores %g", l->layer, head, q,
                 k, spread);
}

static void check_symmetry(const layer_panels *l, int head) {
    static const int pairs[][2] = {{Q_HALF, K_HALF}, {Q_SMALL, K_SMALL}, {Q_NONE, K_NONE}};
    const size_t n = (size_t)l->T * (size_t)l->T;
    for (int i = 0; i < 3; i++) {
        const difference d =
            compare_floats(weights(l, head, pairs[i][0]), weights(l, head, pairs[i][1]), n);
        if (d.max > 1e-5) fail_msg("layer %d head %d: q and k differ by %g", l->layer, head, d.max);
    }
}

static void check_values(const layer_panels *l, int head) {
    static const int panels[] = {V_HALF, V_SMALL, V_NONE, V_MEAN};
    const qkv_tensor base = engine_tensor(l->result, 0, QKV_SITE_PATTERN, l->layer);
    const qkv_tensor logits = engine_tensor(l->result, 0, QKV_SITE_LOGITS, 0);
    for (int i = 0; i < 4; i++) {
        if (panels[i] == V_MEAN && l->eng->info->n_kv_head == 1) continue;
        const size_t v = variant_of(head, panels[i]);
        const qkv_tensor own = engine_tensor(l->result, v, QKV_SITE_PATTERN, l->layer);
        assert_true(same_bits(own.data, base.data, tensor_count(&base)));
        assert_true(qkv_result_edit_changed(l->result, v, 0) > 0);
        const qkv_tensor out = engine_tensor(l->result, v, QKV_SITE_LOGITS, 0);
        assert_true(compare_floats(out.data, logits.data, tensor_count(&out)).max > 1e-6);
        if (l->layer + 1 == l->eng->info->n_layer) continue;
        const qkv_tensor a = engine_tensor(l->result, v, QKV_SITE_PATTERN, l->layer + 1);
        const qkv_tensor b = engine_tensor(l->result, 0, QKV_SITE_PATTERN, l->layer + 1);
        if (l->eng->info->window != 1)
            assert_true(compare_floats(a.data, b.data, tensor_count(&a)).max > 1e-7);
    }
}

static double entropy(const float *row, int n) {
    double sum = 0;
    for (int j = 0; j < n; j++)
        if (row[j] > 0) sum -= (double)row[j] * log((double)row[j]);
    return sum;
}

static void check_temperature(const layer_panels *l, int head) {
    const float *base = weights(l, head, BASELINE), *half = weights(l, head, Q_HALF);
    for (int i = 0; i < l->T; i++) {
        const float *p = base + i * l->T, *q = half + i * l->T;
        double sum = 0;
        for (int j = 0; j <= i; j++) sum += sqrt((double)p[j]);
        for (int j = 0; j <= i; j++) {
            const double expected = sqrt((double)p[j]) / sum;
            if (fabs((double)q[j] - expected) > 2e-5)
                fail_msg("layer %d head %d row %d key %d: %g, not %g", l->layer, head, i, j,
                         (double)q[j], expected);
        }
        const int seen = i - first_key(l, i) + 1;
        assert_true(entropy(p, l->T) <= entropy(q, l->T) + 1e-5);
        assert_true(entropy(q, l->T) <= log(seen) + 1e-5);
    }
}

/* Rows sum to 1, and nothing lies above the diagonal. */
static void check_causal(const layer_panels *l, int head, int panel) {
    const float *a = weights(l, head, panel);
    for (int i = 0; i < l->T; i++) {
        double sum = 0;
        for (int j = 0; j < l->T; j++) {
            sum += (double)a[i * l->T + j];
            if (j > i || j < first_key(l, i)) assert_true(a[i * l->T + j] == 0);
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
}

static void check_layer(const layer_panels *l) {
    for (int h = 0; h < l->eng->info->n_head; h++) {
        check_saturation(l, h);
        check_symmetry(l, h);
        check_values(l, h);
        check_temperature(l, h);
        for (int p = BASELINE; p < PANELS; p++) check_causal(l, h, p);
    }
}

static void check_prompt(engine *e, const int32_t *tokens, size_t n) {
    for (int il = 0; il < e->info->n_layer; il++) {
        const layer_panels l = run_layer(e, tokens, n, il);
        check_layer(&l);
        qkv_result_free(l.result);
    }
}

/* ---- the models ---- */

static void facts_on_random_models(void **state) {
    (void)state;
    static const tiny_options models[] = {
        {.family = "llama"},
        {"llama", .n_kv_head = 2, .qkv_bias = 1, .rope = TINY_ROPE_YARN, .seed = 3},
        {"llama", .n_kv_head = 1, .window = 5, .seed = 4},
        {"llama", .n_kv_head = 2, .head_dim = 12, .rope = TINY_ROPE_LLAMA3, .seed = 5},
        {.family = "gpt2"},
        {"gpt2", .seed = 6},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        engine e;
        dice d = {i + 1};
        int32_t tokens[14] = {1};
        for (int t = 1; t < 14; t++) tokens[t] = 3 + (int32_t)dice_below(&d, TINY_VOCAB - 3);
        engine_open(&e, tiny_model(&models[i], "facts.gguf"), 1);
        check_prompt(&e, tokens, 14);
        engine_close(&e);
    }
}

static const char *const prompts[] = {
    "The river runs past the old mill and down to the sea.",
    "A good teacher explains the same idea in many ways.",
    "In the morning the children walk to the village school.",
};

static size_t tokenize(const engine *e, const char *text, int32_t **tokens) {
    qkv_error err = {0};
    size_t n = 0;
    const int status =
        qkv_tokenize(e->model, tokens, &n, text, strlen(text), QKV_TOKENIZE_ADD_SPECIAL, &err);
    expect_ok(status, &err, text);
    return n;
}

static void facts_on_the_default_model(void **state) {
    (void)state;
    engine e;
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        int32_t *tokens = NULL;
        const size_t n = tokenize(&e, prompts[i], &tokens);
        check_prompt(&e, tokens, n);
        qkv_tokens_free(tokens);
    }
    engine_close(&e);
}

/* ---- fact 4 ---- */

static double first_column(const float *a, int T) {
    double sum = 0;
    for (int i = 1; i < T; i++) sum += (double)a[i * T] / (T - 1);
    return sum;
}

static void find_sink(engine *e, const int32_t *tokens, size_t n, int *layer, int *head) {
    const char *const captures[] = {"pattern", NULL};
    qkv_result *result =
        engine_execute(e, &(engine_run){.tokens = tokens, .n_tokens = n, .captures = captures});
    double strongest = -1;
    for (int il = 0; il < e->info->n_layer; il++)
        for (int h = 0; h < e->info->n_head; h++) {
            const qkv_tensor t = engine_tensor(result, 0, QKV_SITE_PATTERN, il);
            const double mass = first_column(t.data + (size_t)h * n * n, (int)n);
            if (mass <= strongest) continue;
            strongest = mass;
            *layer = il;
            *head = h;
        }
    qkv_result_free(result);
}

static void check_sink(const layer_panels *l, int head) {
    static const int values[] = {V_HALF, V_SMALL, V_NONE, V_MEAN};
    static const int others[] = {Q_SMALL, Q_NONE, K_SMALL, K_NONE};
    const float *base = weights(l, head, BASELINE);
    const double mass = first_column(base, l->T);
    double uniform = 0;
    for (int i = 1; i < l->T; i++) uniform += 1.0 / (i + 1) / (l->T - 1);
    print_message("layer %d head %d: first-column mass %.3f, with q or k at 1e-3 %.3f\n", l->layer,
                  head, mass, first_column(weights(l, head, Q_SMALL), l->T));
    assert_true(mass > 0.5);
    for (int i = 0; i < 4; i++) {
        const float *v = weights(l, head, values[i]);
        assert_true(same_bits(v, base, (size_t)l->T * (size_t)l->T));
        const double rest = first_column(weights(l, head, others[i]), l->T);
        assert_true(rest < 0.6 * mass);
        assert_true(fabs(rest - uniform) < 0.02);
    }
}

static void sink_of_the_default_model(void **state) {
    (void)state;
    engine e;
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        int32_t *tokens = NULL;
        int layer = 0, head = 0;
        const size_t n = tokenize(&e, prompts[i], &tokens);
        find_sink(&e, tokens, n, &layer, &head);
        const layer_panels l = run_layer(&e, tokens, n, layer);
        check_sink(&l, head);
        qkv_result_free(l.result);
        qkv_tokens_free(tokens);
    }
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_on_random_models),
        cmocka_unit_test(facts_on_the_default_model),
        cmocka_unit_test(sink_of_the_default_model),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
