/*
 * The types that have a converter of their own: one line each. A converter X is qkv_convert_X; where this
 * processor lacks the instructions (AVX2, F16C, FMA) the list is empty and ggml's converters are used.
 *
 * convert_small.c has the types with one scale a block, convert_super.c those whose blocks of 256 hold
 * scales of their own, convert_grid.c those whose weights are entries of a table (grids.h).
 */
#ifndef QKV_KERNEL_CONVERT_TYPES_H
#define QKV_KERNEL_CONVERT_TYPES_H

#include <stdint.h>

#if defined(__AVX2__) && defined(__F16C__) && defined(__FMA__)
#define QKV_CONVERT_HERE
#define QKV_CONVERT_LIST(X)                                                                        \
    X(GGML_TYPE_F16, f16)                                                                          \
    X(GGML_TYPE_Q1_0, q1_0)                                                                        \
    X(GGML_TYPE_Q2_0, q2_0)                                                                        \
    X(GGML_TYPE_Q4_0, q4_0)                                                                        \
    X(GGML_TYPE_Q4_1, q4_1)                                                                        \
    X(GGML_TYPE_Q5_0, q5_0)                                                                        \
    X(GGML_TYPE_Q5_1, q5_1)                                                                        \
    X(GGML_TYPE_Q8_0, q8_0)                                                                        \
    X(GGML_TYPE_IQ4_NL, iq4_nl)                                                                    \
    X(GGML_TYPE_MXFP4, mxfp4)                                                                      \
    X(GGML_TYPE_NVFP4, nvfp4)                                                                      \
    X(GGML_TYPE_Q2_K, q2_k)                                                                        \
    X(GGML_TYPE_Q3_K, q3_k)                                                                        \
    X(GGML_TYPE_Q4_K, q4_k)                                                                        \
    X(GGML_TYPE_Q5_K, q5_k)                                                                        \
    X(GGML_TYPE_Q6_K, q6_k)                                                                        \
    X(GGML_TYPE_IQ4_XS, iq4_xs)                                                                    \
    X(GGML_TYPE_TQ1_0, tq1_0)                                                                      \
    X(GGML_TYPE_TQ2_0, tq2_0)                                                                      \
    X(GGML_TYPE_IQ1_S, iq1_s)                                                                      \
    X(GGML_TYPE_IQ1_M, iq1_m)                                                                      \
    X(GGML_TYPE_IQ2_XXS, iq2_xxs)                                                                  \
    X(GGML_TYPE_IQ2_XS, iq2_xs)                                                                    \
    X(GGML_TYPE_IQ2_S, iq2_s)                                                                      \
    X(GGML_TYPE_IQ3_XXS, iq3_xxs)                                                                  \
    X(GGML_TYPE_IQ3_S, iq3_s)
#else
#define QKV_CONVERT_LIST(X)
#endif

#define QKV_CONVERT_DECLARE(type, name)                                                            \
    void qkv_convert_##name(const void *from, float *to, int64_t n);
QKV_CONVERT_LIST(QKV_CONVERT_DECLARE)
#undef QKV_CONVERT_DECLARE

#endif
