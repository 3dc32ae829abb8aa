/* The median of many numbers, without sorting or changing them. */
#ifndef QKV_BASE_MEDIAN_H
#define QKV_BASE_MEDIAN_H

#include <stddef.h>

/* Of at least one number, none of them negative; of an even number of them the mean of the two in the
 * middle. Returns 0 when memory is short. */
int qkv_median(double *out, const float *x, size_t n);

#endif
