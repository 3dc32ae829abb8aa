/*
 * How far edits turn the last hidden states of many prompts.
 *
 * They are a matrix, and its leading left singular vectors are what is compared. With a row per prompt
 * these say how the prompts lie to each other; with a column per prompt, in which directions of the
 * residual stream they lie.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "measure/metric_sums.h"
#include "measure/spectrum.h"

#define DEGREES (180 / 3.14159265358979323846)

int qkv_subspace_add(qkv_measure *measure, const qkv_metric_sums *totals, size_t width,
                     qkv_error *err) {
    size_t n = totals->n_variants;
    if (measure->n_hidden && (measure->n_variants != n || measure->width != width))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "subspace_angle needs the same variants for every prompt: %zu and %zu",
                        measure->n_variants, n);
    float *moved = realloc(measure->hidden, (measure->n_hidden + 1) * n * width * sizeof *moved);
    if (!moved) return qkv_fail_memory(err);
    measure->hidden = moved;
    measure->n_variants = n;
    measure->width = width;
    float *to = moved + measure->n_hidden++ * n * width;
    for (size_t v = 0; v < n; v++)
        memcpy(to + v * width, totals->hidden + (totals->has_hidden[v] ? v : 0) * width,
               width * sizeof *to);
    return QKV_OK;
}

/* How far edits turn those vectors. `space` says what has an element in them. */
typedef struct turn {
    const qkv_measure *measure;
    int space, rank;
    size_t rows, cols; /* of a variant's matrix of states */
} turn;

static turn turn_of(const qkv_measure *measure, const qkv_chosen_metric *metric) {
    const int of_prompts = (int)metric->parameters[1] == QKV_SPACE_PROMPT;
    return (turn){.measure = measure,
                  .space = (int)metric->parameters[1],
                  .rank = (int)metric->parameters[0],
                  .rows = of_prompts ? measure->n_hidden : measure->width,
                  .cols = of_prompts ? measure->width : measure->n_hidden};
}

/* As many vectors as there are rows span everything: nothing can turn. */
static int is_defined(const turn *t) {
    const size_t rank = (size_t)t->rank, least = t->rows < t->cols ? t->rows : t->cols;
    return t->space == QKV_SPACE_PROMPT ? rank < t->rows && rank <= least : rank <= least;
}

static int leading_vectors(const turn *t, size_t variant, double *vectors, qkv_error *err) {
    const qkv_measure *m = t->measure;
    double *a = qkv_calloc(t->rows * t->cols, sizeof *a); /* column-major */
    if (!a) return qkv_fail_memory(err);
    for (size_t prompt = 0; prompt < m->n_hidden; prompt++) {
        const float *x = m->hidden + (prompt * m->n_variants + variant) * m->width;
        for (size_t i = 0; i < m->width; i++)
            a[t->space == QKV_SPACE_PROMPT ? i * t->rows + prompt : prompt * t->rows + i] = x[i];
    }
    int status = qkv_left_vectors(vectors, a, (int)t->rows, (int)t->cols, t->rank, err);
    free(a);
    return status;
}

int qkv_subspace_measure(const qkv_measure *measure, size_t variant,
                         const qkv_chosen_metric *metric, double *degrees, qkv_error *err) {
    const turn t = turn_of(measure, metric);
    *degrees = NAN;
    if (!is_defined(&t)) return QKV_OK;
    size_t size = t.rows * (size_t)t.rank;
    double *base = qkv_calloc(size, sizeof *base), *edited = qkv_calloc(size, sizeof *edited);
    double angle = 0;
    int status = base && edited ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = leading_vectors(&t, 0, base, err);
    if (status == QKV_OK) status = leading_vectors(&t, variant, edited, err);
    if (status == QKV_OK && memcmp(base, edited, size * sizeof *base) != 0)
        status = qkv_subspace_angle(&angle, base, edited, (int)t.rows, t.rank, err);
    if (status == QKV_OK) *degrees = angle * DEGREES;
    free(base);
    free(edited);
    return status;
}
