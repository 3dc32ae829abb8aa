/* Distances between arrays, see compare.h. */
#include "support/compare.h"

#include <math.h>
#include <string.h>

static void observe(difference *d, double actual, double expected, size_t index) {
    if (isinf(expected) && actual == expected) return; /* a score that is masked */
    double distance = fabs(actual - expected);
    if (!isfinite(distance)) distance = INFINITY;
    if (distance > d->max) {
        d->max = distance;
        d->where = index;
    }
    if (fabs(expected) > d->scale) d->scale = fabs(expected);
}

difference compare_floats(const float *actual, const float *expected, size_t n) {
    difference d = {0};
    for (size_t i = 0; i < n; i++) observe(&d, (double)actual[i], (double)expected[i], i);
    return d;
}

difference compare_to_doubles(const float *actual, const double *expected, size_t n) {
    difference d = {0};
    for (size_t i = 0; i < n; i++) observe(&d, (double)actual[i], expected[i], i);
    return d;
}

int same_bits(const float *a, const float *b, size_t n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}
