/*
 * The logit lens, of every family: logits of every layer's residual stream against plain sums over the
 * reference's own copy of the weights, those of the last layer against the engine's; and the parts of
 * a logit, which must add up to the engine's and be those that plain sums give.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/study.h"
#include "reference/ref_cases.h"
#include "reference/ref_model.h"
#include "run/unembed.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

static qkv_error err;

/* ---- the reference ---- */

/* What the final norm divides by, and what it takes away first. */
static double divisor_of(const ref_model *m, const float *x, double *mean) {
    double sum = 0, squares = 0;
    for (int i = 0; i < m->D; i++) sum += (double)x[i];
    *mean = m->family->norm == REF_LAYER ? sum / m->D : 0;
    for (int i = 0; i < m->D; i++) squares += pow((double)x[i] - *mean, 2);
    return sqrt(squares / m->D + m->norm_epsilon);
}

static double weight_at(const float *weights, int i, double none) {
    return weights ? (double)weights[i] : none;
}

/* Before scale and cap. */
static double plain_logit(const ref_model *m, const float *x, int token) {
    double mean, logit = m->output.b ? (double)m->output.b[token] : 0;
    const double divisor = divisor_of(m, x, &mean);
    const float *row = m->output.w + (size_t)token * (size_t)m->D;
    for (int i = 0; i < m->D; i++) {
        const double normal =
            ((double)x[i] - mean) / divisor * weight_at(m->output_norm.weight, i, 1) +
            weight_at(m->output_norm.bias, i, 0);
        logit += (double)row[i] * normal;
    }
    return logit * m->logit_scale;
}

static double capped(const ref_model *m, double logit) {
    return m->logit_cap > 0 ? m->logit_cap * tanh(logit / m->logit_cap) : logit;
}

static void expect_near(double got, double wanted, double scale, const char *what, int at) {
    if (!(fabs(got - wanted) <= 1e-4 * (fabs(scale) + 1e-3)))
        fail_msg("%s %d: %.9g, not %.9g", what, at, got, wanted);
}

/* ---- lens ---- */

static void check_layer(engine *e, const ref_model *m, const qkv_tensor *states, int layer) {
    float *logits = calloc((size_t)m->V * (size_t)states->shape[0], sizeof *logits);
    assert_non_null(logits);
    expect_ok(qkv_unembed(e->session, states->data, (size_t)states->shape[0], logits, &err), &err,
              "unembed");
    for (int64_t t = 0; t < states->shape[0]; t++) {
        double scale = 0;
        for (int v = 0; v < m->V; v++) scale = fmax(scale, fabs((double)logits[t * m->V + v]));
        for (int v = 0; v < m->V; v++)
            expect_near((double)logits[t * m->V + v],
                        capped(m, plain_logit(m, states->data + t * m->D, v)), scale, "layer",
                        layer);
    }
    free(logits);
}

/* ---- parts ---- */

/* What a head adds to the stream, by plain sums, where no norm stands after attention. */
static double plain_head(const ref_model *m, int layer, int head, const float *z,
                         const double *direction) {
    double part = 0;
    for (int i = 0; i < m->D; i++) {
        const float *row = m->layers[layer].o.w + (size_t)i * (size_t)(m->H * m->d);
        double sum = 0;
        for (int k = head * m->d; k < (head + 1) * m->d; k++) sum += (double)row[k] * (double)z[k];
        part += m->residual_scale * direction[i] * sum;
    }
    return part;
}

static double along(const ref_model *m, const double *direction, const float *x) {
    double sum = 0;
    for (int i = 0; i < m->D; i++) sum += direction[i] * (double)x[i];
    return sum;
}

/* A stream that is multiplied on its way is not a sum of what was added to it. */
static void check_no_parts(const engine *e, const ref_model *m, const qkv_result *result) {
    const qkv_tensor z = engine_tensor(result, 0, QKV_SITE_Z, 0);
    double *direction = calloc((size_t)m->D, sizeof *direction), heads[64], bias;
    assert_non_null(direction);
    assert_int_equal(qkv_unembed_heads(e->model, 0, z.data, direction, heads, &bias, &err),
                     QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "not a sum of parts"));
    free(direction);
}

static void check_parts(engine *e, const ref_model *m, const qkv_result *result, size_t last,
                        int token) {
    const qkv_tensor first = engine_tensor(result, 0, QKV_SITE_RESID_PRE, 0);
    const qkv_tensor states = engine_tensor(result, 0, QKV_SITE_RESID_POST, m->n_layer - 1);
    const qkv_tensor logits = engine_tensor(result, 0, QKV_SITE_LOGITS, 0);
    const float *state = states.data + last * (size_t)m->D;
    double *direction = calloc((size_t)m->D, sizeof *direction), offset, largest = 0;
    double *heads = calloc((size_t)m->H, sizeof *heads);
    assert_true(direction && heads);
    expect_ok(qkv_unembed_direction(e->model, state, token, direction, &offset, &err), &err,
              "direction");
    expect_near(along(m, direction, state) + offset, plain_logit(m, state, token), 1, "logit", 0);
    double sum = offset + along(m, direction, first.data + last * (size_t)m->D);
    for (int layer = 0; layer < m->n_layer; layer++) {
        const qkv_tensor attn = engine_tensor(result, 0, QKV_SITE_ATTN_OUT, layer);
        const qkv_tensor mlp = engine_tensor(result, 0, QKV_SITE_MLP_OUT, layer);
        if (!m->layers[layer].has_attention) {
            sum += along(m, direction, attn.data + last * (size_t)m->D) +
                   along(m, direction, mlp.data + last * (size_t)m->D);
            continue;
        }
        const qkv_tensor z = engine_tensor(result, 0, QKV_SITE_Z, layer);
        const size_t wide = (size_t)(m->H * m->d);
        float own[256];
        assert_true(wide <= 256);
        memcpy(own, z.data + last * wide, wide * sizeof *own);
        if (m->layers[layer].q_gate.w) {
            const qkv_tensor gate = engine_tensor(result, 0, QKV_SITE_GATE, layer);
            for (size_t i = 0; i < wide; i++) own[i] *= gate.data[last * wide + i];
        }
        double bias, attention = 0;
        expect_ok(qkv_unembed_heads(e->model, layer, own, direction, heads, &bias, &err), &err,
                  "heads");
        for (int h = 0; h < m->H; h++) {
            attention += heads[h];
            largest = fmax(largest, fabs(heads[h]));
            if (!m->layers[layer].attn_after.weight)
                expect_near(heads[h], plain_head(m, layer, h, own, direction), largest, "head", h);
        }
        expect_near(attention + bias, along(m, direction, attn.data + last * (size_t)m->D), largest,
                    "attention of layer", layer);
        sum += attention + bias + along(m, direction, mlp.data + last * (size_t)m->D);
    }
    const double logit = (double)logits.data[last * (size_t)m->V + (size_t)token];
    expect_near(qkv_unembed_cap(e->model, sum), logit, fmax(fabs(logit), largest), "sum of token",
                token);
    free(direction);
    free(heads);
}

static void check_family(const char *name) {
    expectations x;
    engine e;
    assert_true(expectations_open(&x, QKV_TEST_SOURCE_DIR "/vectors", name, "model.gguf"));
    ref_model *m = ref_model_load(x.model);
    engine_open(&e, x.model, 1);
    const expected_prompt *prompt = &x.prompts[0];
    if (e.info->has_logits && e.info->causal) {
        const char *const captures[] = {"resid_pre@0",
                                        "resid_post@*",
                                        "z@*",
                                        "attn_out@*",
                                        "mlp_out@*",
                                        "logits",
                                        ref_has_site(m, QKV_SITE_GATE) ? "gate@*" : NULL,
                                        NULL};
        const engine_run run = {prompt->tokens, prompt->n_tokens, NULL, captures, NULL};
        qkv_result *result = engine_execute(&e, &run);
        for (int layer = 0; layer < m->n_layer; layer++) {
            const qkv_tensor t = engine_tensor(result, 0, QKV_SITE_RESID_POST, layer);
            check_layer(&e, m, &t, layer);
        }
        if (m->layers[0].scale) check_no_parts(&e, m, result);
        for (int token = 0; !m->layers[0].scale && token < m->V; token += m->V / 5 + 1)
            check_parts(&e, m, result, prompt->n_tokens - 1, token);
        qkv_result_free(result);
    }
    engine_close(&e);
    ref_model_free(m);
    expectations_close(&x);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void lens_of_##name(void **state) {                                                     \
        (void)state;                                                                               \
        check_family(#name);                                                                       \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

int main(void) {
#define FAMILY_ENTRY(name, flags) cmocka_unit_test(lens_of_##name),
    const struct CMUnitTest tests[] = {VECTOR_LIST(FAMILY_ENTRY)};
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
