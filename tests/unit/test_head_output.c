/*
 * What a head writes, of every family: against the reference's plain sums over its own copy of the
 * weights, and against the engine's attn_out, which is the sum over heads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/head_output.h"
#include "reference/ref_model.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

static qkv_error err;

/* Differs from channel to channel, and is not small anywhere. */
static void fill_value(float *value, int n) {
    for (int i = 0; i < n; i++) value[i] = sinf((float)i * 1.7f) + 0.25f;
}

/* ---- against the reference ---- */

static double *expect_output(const ref_model *m, int layer, int head, const float *value) {
    double *out = calloc((size_t)m->D, sizeof *out);
    assert_non_null(out);
    for (int i = 0; i < m->D; i++) {
        const float *row = m->layers[layer].o.w + (size_t)i * (size_t)(m->H * m->d);
        for (int k = 0; k < m->d; k++) out[i] += (double)row[head * m->d + k] * (double)value[k];
    }
    return out;
}

static double *expect_logits(const ref_model *m, int layer, double *x) {
    double *out = calloc((size_t)m->V, sizeof *out), mean = 0;
    const float *after = m->layers[layer].attn_after.weight;
    assert_non_null(out);
    for (int i = 0; i < m->D; i++) {
        x[i] *= m->residual_scale * (after ? (double)after[i] : 1);
        mean += x[i] / m->D;
    }
    for (int i = 0; i < m->D; i++) {
        if (m->family->norm == REF_LAYER) x[i] -= mean;
        if (m->output_norm.weight) x[i] *= (double)m->output_norm.weight[i];
    }
    for (int t = 0; t < m->V; t++) {
        for (int i = 0; i < m->D; i++)
            out[t] +=
                m->logit_scale * (double)m->output.w[(size_t)t * (size_t)m->D + (size_t)i] * x[i];
    }
    return out;
}

static void expect_close(const float *got, const double *wanted, int n, const char *what) {
    double scale = 0;
    for (int i = 0; i < n; i++) scale = fmax(scale, fabs(wanted[i]));
    assert_true(scale > 0);
    for (int i = 0; i < n; i++) {
        if (!(fabs((double)got[i] - wanted[i]) <= 1e-5 * scale))
            fail_msg("%s %d: %g, not %g", what, i, (double)got[i], wanted[i]);
    }
}

static void check_head(const engine *e, const ref_model *m, int layer, int head) {
    float *value = calloc((size_t)m->d, sizeof *value), *out = calloc((size_t)m->D, sizeof *out);
    float *logits = calloc((size_t)m->V, sizeof *logits);
    assert_true(value && out && logits);
    fill_value(value, m->d);
    double *wanted = expect_output(m, layer, head, value);
    expect_ok(qkv_head_output(e->model, layer, head, value, out, &err), &err, "output");
    expect_close(out, wanted, m->D, "channel");
    if (e->info->has_logits) {
        double *expected = expect_logits(m, layer, wanted);
        expect_ok(qkv_head_logits(e->model, layer, head, value, logits, &err), &err, "logits");
        expect_close(logits, expected, m->V, "token");
        free(expected);
    } else {
        assert_int_equal(qkv_head_logits(e->model, layer, head, value, logits, &err),
                         QKV_ERR_UNSUPPORTED);
    }
    free(wanted);
    free(value);
    free(out);
    free(logits);
}

/* ---- against the engine ---- */

/* attn_out of two tokens differs by what the heads write for the difference of their z: biases
 * cancel. Where a norm follows, that is not so. */
static void check_sum(engine *e, const ref_model *m, const expected_prompt *prompt, int layer) {
    char z_text[32], out_text[32];
    snprintf(z_text, sizeof z_text, "z@%d", layer);
    snprintf(out_text, sizeof out_text, "attn_out@%d", layer);
    const char *const captures[] = {z_text, out_text, NULL};
    const engine_run run = {prompt->tokens, prompt->n_tokens, NULL, captures, NULL};
    qkv_result *result = engine_execute(e, &run);
    const qkv_tensor z = engine_tensor(result, 0, QKV_SITE_Z, layer);
    const qkv_tensor attn = engine_tensor(result, 0, QKV_SITE_ATTN_OUT, layer);
    float *value = calloc((size_t)m->d, sizeof *value), *out = calloc((size_t)m->D, sizeof *out);
    double *sum = calloc((size_t)m->D, sizeof *sum), scale = 0;
    assert_true(value && out && sum);
    for (int h = 0; h < m->H; h++) {
        for (int k = 0; k < m->d; k++)
            value[k] = z.data[(m->H + h) * m->d + k] - z.data[h * m->d + k];
        expect_ok(qkv_head_output(e->model, layer, h, value, out, &err), &err, "output");
        for (int i = 0; i < m->D; i++) sum[i] += m->residual_scale * (double)out[i];
    }
    for (int i = 0; i < m->D; i++) scale = fmax(scale, fabs(sum[i]));
    for (int i = 0; i < m->D; i++) {
        const double wanted = (double)attn.data[m->D + i] - (double)attn.data[i];
        if (fabs(sum[i] - wanted) > 2e-5 * (scale + 1))
            fail_msg("layer %d, channel %d: %g, not %g", layer, i, sum[i], wanted);
    }
    free(value);
    free(out);
    free(sum);
    qkv_result_free(result);
}

static void check_family(const char *name) {
    expectations x;
    engine e;
    assert_true(expectations_open(&x, QKV_TEST_SOURCE_DIR "/vectors", name, "model.gguf"));
    ref_model *m = ref_model_load(x.model);
    engine_open(&e, x.model, 1);
    for (int layer = 0; layer < m->n_layer; layer++) {
        const ref_model own = ref_in_layer(m, layer);
        for (int head = 0; head < own.H; head++) check_head(&e, &own, layer, head);
        if (!m->layers[layer].attn_after.weight) check_sum(&e, &own, &x.prompts[0], layer);
    }
    engine_close(&e);
    ref_model_free(m);
    expectations_close(&x);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void written_by_##name(void **state) {                                                  \
        (void)state;                                                                               \
        check_family(#name);                                                                       \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

int main(void) {
#define FAMILY_ENTRY(name, flags) cmocka_unit_test(written_by_##name),
    const struct CMUnitTest tests[] = {VECTOR_LIST(FAMILY_ENTRY)};
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
