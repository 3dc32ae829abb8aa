/*
 * Comparing tensors: how far apart two arrays are, where, and how large the numbers are that the
 * distance has to be judged against.
 */
#ifndef QKV_TESTS_COMPARE_H
#define QKV_TESTS_COMPARE_H

#include <stddef.h>

typedef struct difference {
    double
        max; /* largest absolute difference; infinite where just one side is not finite, or NaN */
    size_t where; /* index of it */
    double scale; /* largest absolute value of the expected side */
} difference;

difference compare_floats(const float *actual, const float *expected, size_t n);
difference compare_to_doubles(const float *actual, const double *expected, size_t n);

/* 1 when every bit is the same. */
int same_bits(const float *a, const float *b, size_t n);

#endif
