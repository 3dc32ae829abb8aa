/*
 * Circuits of heads, of every family: against D x D and V x V matrices that are written out in double
 * precision from the reference's own copy of the weights.
 *
 * Singular values are checked by a Jacobi method of their own, eigenvalues by their power sums:
 * Σλ, Σλ² and Σλ³ are the traces of the matrix, its square and its cube.
 */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/circuits.h"
#include "reference/ref_cases.h"
#include "reference/ref_model.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

static qkv_error err;

static double *zeros(int n) {
    double *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    return x;
}

/* ---- matrices, row-major ---- */

/* a [n][m] · b [m][k] */
static double *product(const double *a, const double *b, int n, int m, int k) {
    double *out = zeros(n * k);
    for (int i = 0; i < n; i++) {
        for (int l = 0; l < m; l++) {
            for (int j = 0; j < k; j++) out[i * k + j] += a[i * m + l] * b[l * k + j];
        }
    }
    return out;
}

static double *transpose(const double *a, int n, int m) {
    double *out = zeros(n * m);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++) out[j * n + i] = a[i * m + j];
    }
    return out;
}

static double frobenius(const double *a, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * a[i];
    return sqrt(sum);
}

static double trace(const double *a, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i * n + i];
    return sum;
}

static int descending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Columns p and q become orthogonal; how far from it they were. */
static double rotate_columns(double *a, int n, int p, int q) {
    double pp = 0, qq = 0, pq = 0;
    for (int i = 0; i < n; i++) {
        pp += a[i * n + p] * a[i * n + p];
        qq += a[i * n + q] * a[i * n + q];
        pq += a[i * n + p] * a[i * n + q];
    }
    if (fabs(pq) <= 1e-300) return 0;
    const double z = (qq - pp) / (2 * pq), t = (z < 0 ? -1 : 1) / (fabs(z) + sqrt(1 + z * z));
    const double c = 1 / sqrt(1 + t * t), s = c * t;
    for (int i = 0; i < n; i++) {
        const double x = a[i * n + p], y = a[i * n + q];
        a[i * n + p] = c * x - s * y;
        a[i * n + q] = s * x + c * y;
    }
    return fabs(pq);
}

/* One-sided Jacobi: the lengths of the columns when all are orthogonal. */
static double *jacobi_singular(const double *a, int n) {
    double *work = zeros(n * n), *values = zeros(n), size = frobenius(a, n * n);
    memcpy(work, a, (size_t)(n * n) * sizeof *work);
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0;
        for (int p = 0; p < n; p++) {
            for (int q = p + 1; q < n; q++) off = fmax(off, rotate_columns(work, n, p, q));
        }
        if (off <= 1e-15 * size * size) break;
    }
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < n; i++) values[j] += work[i * n + j] * work[i * n + j];
        values[j] = sqrt(values[j]);
    }
    qsort(values, (size_t)n, sizeof *values, descending);
    free(work);
    return values;
}

/* ---- the reference's matrices ---- */

/* c x = x - mean, as a matrix [n][n]; the identity where no mean is taken away. */
static double *centring(int n, int takes_mean) {
    double *c = zeros(n * n);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) c[i * n + j] = (i == j) - (takes_mean ? 1.0 / n : 0);
    }
    return c;
}

/* diag(weight) c: a norm without its division. */
static double *norm_matrix(const ref_model *m, const float *weight, int n) {
    double *c = centring(n, m->family->norm == REF_LAYER);
    for (int i = 0; i < n * n; i++) c[i] *= (double)weight[i / n];
    return c;
}

static double *rows_of(const float *w, int first, int n, int width) {
    double *out = zeros(n * width);
    for (int i = 0; i < n * width; i++) out[i] = (double)w[first * width + i];
    return out;
}

/* Replaces *a by left · *a or *a · right. */
static void from_left(double **a, double *left, int n, int m) {
    double *out = product(left, *a, n, n, m);
    free(left);
    free(*a);
    *a = out;
}

static void from_right(double **a, double *right, int n, int m) {
    double *out = product(*a, right, n, m, m);
    free(right);
    free(*a);
    *a = out;
}

/* What the weights of a norm of queries or keys are for one head. */
static const float *head_weights(const ref_model *m, const ref_norm *norm, int head) {
    return norm->weight + (m->family->head_norm == REF_SHARED_WEIGHTS ? 0 : head * m->d);
}

/* Rows of W_Q, W_K or W_V [d][D] of head number `head`; norm: NULL for W_V. */
static double *reading(const ref_model *m, const ref_layer *l, const ref_linear *w,
                       const ref_norm *norm, int head, int fold) {
    double *x = rows_of(w->w, head * m->d, m->d, m->D);
    if (fold && norm && norm->weight)
        from_left(&x, norm_matrix(m, head_weights(m, norm, head), m->d), m->d, m->D);
    if (fold && l->attn_before.weight)
        from_right(&x, norm_matrix(m, l->attn_before.weight, m->D), m->d, m->D);
    return x;
}

/* W_O [D][d]. */
static double *writing(const ref_model *m, const ref_layer *l, int head, int fold) {
    double *x = zeros(m->D * m->d);
    for (int i = 0; i < m->D * m->d; i++)
        x[i] = (double)l->o.w[i / m->d * m->H * m->d + head * m->d + i % m->d];
    if (!fold) return x;
    if (l->attn_after.weight) from_left(&x, norm_matrix(m, l->attn_after.weight, m->D), m->D, m->d);
    for (int i = 0; i < m->D * m->d; i++) x[i] *= m->residual_scale;
    if (m->family->norm == REF_LAYER && m->family->place != REF_ON_SUM)
        from_left(&x, centring(m->D, 1), m->D, m->d);
    return x;
}

static double *explicit_ov(const ref_model *m, int layer, int head, int fold) {
    const ref_layer *l = &m->layers[layer];
    double *o = writing(m, l, head, fold);
    double *v = reading(m, l, &l->v, NULL, head / (m->H / m->G), fold);
    double *out = product(o, v, m->D, m->d, m->D);
    free(o);
    free(v);
    return out;
}

static double *explicit_qk(const ref_model *m, int layer, int head, int fold) {
    const ref_layer *l = &m->layers[layer];
    double *q = reading(m, l, &l->q, &l->q_norm, head, fold), *turned = transpose(q, m->d, m->D);
    double *k = reading(m, l, &l->k, &l->k_norm, head / (m->H / m->G), fold);
    double *out = product(turned, k, m->D, m->d, m->D);
    free(q);
    free(turned);
    free(k);
    return out;
}

/* [D][V]: W_E. */
static double *embedding(const ref_model *m, int fold) {
    double *rows = rows_of(m->token_embd, 0, m->V, m->D), *e = transpose(rows, m->V, m->D);
    free(rows);
    for (int i = 0; fold && i < m->D * m->V; i++) e[i] *= m->embedding_scale;
    if (fold && m->embd_norm.weight)
        from_left(&e, norm_matrix(m, m->embd_norm.weight, m->D), m->D, m->V);
    return e;
}

/* [V][D]: W_U. */
static double *unembedding(const ref_model *m, int fold) {
    double *u = rows_of(m->output.w, 0, m->V, m->D);
    if (fold && m->output_norm.weight)
        from_right(&u, norm_matrix(m, m->output_norm.weight, m->D), m->V, m->D);
    for (int i = 0; fold && i < m->D * m->V; i++) u[i] *= m->logit_scale;
    return u;
}

/* ---- one head ---- */

static void expect_near(double got, double wanted, double scale, const char *what) {
    if (!(fabs(got - wanted) <= 2e-5 * scale)) fail_msg("%s: %.9g, not %.9g", what, got, wanted);
}

static void check_singular(const qkv_circuit *c, const double *w, int D) {
    double *wanted = jacobi_singular(w, D), sum = 0, entropy = 0;
    const int n = (int)c->n_singular;
    for (int i = 0; i < n; i++) {
        expect_near(c->singular[i], wanted[i], wanted[0], "singular value");
        sum += wanted[i];
    }
    for (int i = 0; i < n; i++) {
        const double p = wanted[i] / sum;
        if (p > 0) entropy -= p * log(p);
    }
    /* Nothing is left out. */
    for (int i = n; i < D; i++) assert_true(wanted[i] <= 1e-6 * wanted[0]);
    expect_near(c->norm, frobenius(w, D * D), c->norm, "norm");
    expect_near(c->effective_rank, exp(entropy), (double)n, "effective rank");
    free(wanted);
}

static void check_eigen(const qkv_circuit *c, const double *full, int n) {
    double *square = product(full, full, n, n, n), *cube = product(square, full, n, n, n);
    const double traces[] = {trace(full, n), trace(square, n), trace(cube, n)};
    double complex sums[3] = {0};
    double sizes[3] = {0}, real = 0;
    for (size_t i = 0; i < c->n_eigen; i++) {
        const double complex x = c->real[i] + c->imaginary[i] * (double complex)I;
        double complex power = x;
        for (int k = 0; k < 3; k++, power *= x) {
            sums[k] += power;
            sizes[k] += cabs(power);
        }
        real += c->real[i];
        if (i) assert_true(cabs(x) <= hypot(c->real[i - 1], c->imaginary[i - 1]));
    }
    for (int k = 0; k < 3; k++) {
        expect_near(creal(sums[k]), traces[k], sizes[k], "power sum of eigenvalues");
        expect_near(cimag(sums[k]), 0, sizes[k], "imaginary part");
    }
    expect_near(c->score, real / sizes[0], 1, "score");
    free(square);
    free(cube);
}

static void check_head(const ref_model *m, qkv_circuit_kind kind, const qkv_circuit *c, int fold) {
    const int is_ov = kind == QKV_CIRCUIT_OV, D = m->D, V = m->V;
    double *w = (is_ov ? explicit_ov : explicit_qk)(m, c->layer, c->head, fold);
    check_singular(c, w, D);
    /* |Σλ| of W itself is its trace, and no score is beyond 1. */
    assert_true(fabs(c->stream_score) <= 1 + 1e-9);
    if (fabs(trace(w, D)) > 1e-3 * c->norm) assert_true((c->stream_score > 0) == (trace(w, D) > 0));
    if (is_ov && !m->output.w) {
        assert_true(isnan(c->score) && !c->n_eigen);
    } else {
        double *e = embedding(m, fold);
        double *left = is_ov ? unembedding(m, fold) : transpose(e, D, V);
        double *half = product(left, w, V, D, D), *full = product(half, e, V, D, V);
        check_eigen(c, full, V);
        free(e);
        free(left);
        free(half);
        free(full);
    }
    free(w);
}

/* Layers with the shape of the first with attention, which circuits are computed of together: their number, and a list. */
static int alike_layers(const ref_model *m, int *layers, char text[64]) {
    const ref_shape_of_layer *first = &m->layers[ref_nth_layer(m, QKV_SITE_Z, 0)].shape;
    int n = 0;
    text[0] = '\0';
    for (int il = 0; il < m->n_layer; il++) {
        const ref_shape_of_layer *s = &m->layers[il].shape;
        if (!m->layers[il].has_attention || s->H != first->H || s->G != first->G ||
            s->d != first->d || m->layers[il].kv_layer != il)
            continue;
        snprintf(text + strlen(text), 64 - strlen(text), "%s%d", n ? "," : "", il);
        layers[n++] = il;
    }
    return n;
}

/* Without a choice the layers of a model must have one shape. */
static void check_refusal(engine *e, const ref_model *m) {
    int layers[EXPECT_MAX_LAYERS];
    char text[64];
    qkv_circuit_options how = QKV_CIRCUIT_OPTIONS_INIT;
    qkv_circuits *circuits = NULL;
    if (alike_layers(m, layers, text) == ref_count_layers(m, QKV_SITE_Z)) return;
    assert_int_equal(qkv_circuits_new(&circuits, e->session, QKV_CIRCUIT_OV, &how, &err),
                     QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "`layers`"));
}

static void check_kind(engine *e, const ref_model *m, qkv_circuit_kind kind, int fold) {
    qkv_circuit_options how = QKV_CIRCUIT_OPTIONS_INIT;
    qkv_circuits *circuits = NULL;
    qkv_circuit c = QKV_CIRCUIT_INIT;
    int layers[EXPECT_MAX_LAYERS];
    char text[64];
    const int n_layers = alike_layers(m, layers, text);
    size_t n = 0;
    how.raw = !fold;
    how.layers = text;
    expect_ok(qkv_circuits_new(&circuits, e->session, kind, &how, &err), &err, "circuits");
    for (; qkv_circuits_get(circuits, n, &c); n++) {
        assert_int_equal(c.layer, layers[n / (size_t)m->H]);
        assert_int_equal(c.head, n % (size_t)m->H);
        /* V x V matrices take their time. */
        if (c.head == (fold ? c.layer % m->H : 0) && (fold || n < (size_t)m->H))
            check_head(m, kind, &c, fold);
    }
    assert_int_equal(n, n_layers * m->H);
    qkv_circuits_free(circuits);
}

/* ---- two heads ---- */

static double relative(const double *a, const double *b, int n) {
    double *ab = product(a, b, n, n, n);
    const double score = frobenius(ab, n * n) / (frobenius(a, n * n) * frobenius(b, n * n));
    free(ab);
    return score;
}

static void check_pair(const ref_model *m, const qkv_composition *c, size_t later, size_t earlier,
                       int fold) {
    int32_t at[2], head[2];
    assert_true(qkv_composition_head(c, later, &at[0], &head[0]));
    assert_true(qkv_composition_head(c, earlier, &at[1], &head[1]));
    double *qk = explicit_qk(m, at[0], head[0], fold), *turned = transpose(qk, m->D, m->D);
    double *ov = explicit_ov(m, at[0], head[0], fold);
    double *written = explicit_ov(m, at[1], head[1], fold);
    const double *const readers[] = {turned, qk, ov};
    for (int kind = 0; kind < QKV_COMPOSITION_COUNT; kind++) {
        const double got = qkv_composition_score(c, (qkv_composition_kind)kind, later, earlier);
        if (at[0] <= at[1])
            assert_true(isnan(got));
        else
            expect_near(got, relative(readers[kind], written, m->D), 1, "composition");
    }
    free(qk);
    free(turned);
    free(ov);
    free(written);
}

static void check_composition(engine *e, const ref_model *m, int fold) {
    qkv_circuit_options how = QKV_CIRCUIT_OPTIONS_INIT;
    qkv_composition *c = NULL;
    int layers[EXPECT_MAX_LAYERS];
    char text[64];
    const int n_layers = alike_layers(m, layers, text);
    how.raw = !fold;
    how.layers = text;
    how.heads = "0,2-3";
    if (m->family->place == REF_ON_SUM) {
        assert_int_equal(qkv_composition_new(&c, e->session, &how, &err), QKV_ERR_UNSUPPORTED);
        assert_null(c);
        return;
    }
    expect_ok(qkv_composition_new(&c, e->session, &how, &err), &err, "composition");
    const size_t n = (size_t)n_layers * 3;
    assert_false(qkv_composition_head(c, n, NULL, NULL));
    for (size_t i = 0; i < n; i += 2) {
        for (size_t j = 0; j < n; j++) check_pair(m, c, i, j, fold);
    }
    const int centred = fold && m->family->norm == REF_LAYER;
    expect_near(qkv_composition_random(c), 1 / sqrt(m->D - centred), 1, "random");
    qkv_composition_free(c);
}

static void check_family(const char *name) {
    expectations x;
    engine e;
    assert_true(expectations_open(&x, QKV_TEST_SOURCE_DIR "/vectors", name, "model.gguf"));
    ref_model *m = ref_model_load(x.model);
    engine_open(&e, x.model, strcmp(name, "gpt2") == 0 ? 2 : 1);
    const ref_model first = ref_in_layer(m, ref_nth_layer(m, QKV_SITE_Z, 0));
    for (int fold = 0; fold < 2; fold++) {
        check_kind(&e, &first, QKV_CIRCUIT_OV, fold);
        check_kind(&e, &first, QKV_CIRCUIT_QK, fold);
        check_composition(&e, &first, fold);
    }
    check_refusal(&e, m);
    engine_close(&e);
    ref_model_free(m);
    expectations_close(&x);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void circuits_of_##name(void **state) {                                                 \
        (void)state;                                                                               \
        check_family(#name);                                                                       \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

int main(void) {
#define FAMILY_ENTRY(name, flags) cmocka_unit_test(circuits_of_##name),
    const struct CMUnitTest tests[] = {VECTOR_LIST(FAMILY_ENTRY)};
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
