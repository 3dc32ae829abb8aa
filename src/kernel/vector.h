/*
 * Vectors as wide as the processor has them. Kernels keep lanes apart, or bring them together in an
 * order that is fixed, so that the width does not show in the results.
 */
#ifndef QKV_KERNEL_VECTOR_H
#define QKV_KERNEL_VECTOR_H

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef float loose_vector
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

static inline vector vector_load(const float *at) {
    return *(const loose_vector *)at;
}

static inline void vector_store(float *at, vector value) {
    *(loose_vector *)at = value;
}

#endif
