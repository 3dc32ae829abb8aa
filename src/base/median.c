#include "base/median.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The k-th smallest of n numbers that are not negative: their bit patterns are ordered like they
 * are, so counting the upper and then the lower halves finds it. */
static float kth_smallest(const float *x, size_t n, size_t k, uint32_t *counts) {
    uint32_t bits = 0, known = 0; /* what is known of the bits of the answer, and which */
    for (int shift = 16; shift >= 0; shift -= 16) {
        memset(counts, 0, 65536 * sizeof *counts);
        for (size_t i = 0; i < n; i++) {
            uint32_t own;
            memcpy(&own, &x[i], sizeof own);
            if ((own & known) == bits) counts[own >> shift & 0xffff]++;
        }
        uint32_t half = 0;
        while (half < 0xffff && k >= counts[half]) k -= counts[half++];
        bits |= half << shift;
        known |= 0xffffu << shift;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int qkv_median(double *out, const float *x, size_t n) {
    uint32_t *counts = qkv_calloc(65536, sizeof *counts);
    if (!counts) return 0;
    const double upper = (double)kth_smallest(x, n, n / 2, counts);
    *out = n % 2 ? upper : (upper + (double)kth_smallest(x, n, n / 2 - 1, counts)) / 2;
    free(counts);
    return 1;
}
