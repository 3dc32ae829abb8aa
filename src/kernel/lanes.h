/*
 * Small quantities to floats, eight lanes at a time (AVX2, F16C): what all converters are made of.
 *
 * A weight is an integer of at most a byte times a scale, and for some types plus or minus a minimum. The
 * products are exact (11 bits of scale, at most 6 of an inner scale, 5 of a weight), so it does not matter
 * whether a compiler fuses them with what follows.
 */
#ifndef QKV_KERNEL_LANES_H
#define QKV_KERNEL_LANES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

static inline float lanes_half(const uint8_t bytes[2]) {
    uint16_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return _cvtsh_ss(bits);
}

static inline uint32_t lanes_u32(const uint8_t *bytes) {
    uint32_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return bits;
}

static inline __m128i lanes_load8(const void *bytes) {
    return _mm_loadl_epi64((const __m128i *)bytes);
}

static inline __m128i lanes_load16(const void *bytes) {
    return _mm_loadu_si128((const __m128i *)bytes);
}

static inline __m256i lanes_load32(const void *bytes) {
    return _mm256_loadu_si256((const __m256i *)bytes);
}

/* The lower and the upper half of 16 bytes: the nibbles of a block, first all low ones. */
static inline __m256i lanes_nibbles(__m128i bytes) {
    const __m128i mask = _mm_set1_epi8(0x0f);
    return _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(bytes, 4), mask),
                            _mm_and_si128(bytes, mask));
}

/* The lower eight signed bytes. */
static inline __m256 lanes_floats(__m128i bytes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

static inline __m128i lanes_upper8(__m128i bytes) {
    return _mm_unpackhi_epi64(bytes, bytes);
}

static inline __m128i lanes_lower16(__m256i bytes) {
    return _mm256_castsi256_si128(bytes);
}

static inline __m128i lanes_upper16(__m256i bytes) {
    return _mm256_extracti128_si256(bytes, 1);
}

/* Sixteen signed bytes times a scale. */
static inline void lanes_scale16(float *to, __m128i bytes, float scale) {
    const __m256 s = _mm256_set1_ps(scale);
    _mm256_storeu_ps(to, _mm256_mul_ps(lanes_floats(bytes), s));
    _mm256_storeu_ps(to + 8, _mm256_mul_ps(lanes_floats(lanes_upper8(bytes)), s));
}

static inline void lanes_scale32(float *to, __m256i bytes, float scale) {
    lanes_scale16(to, lanes_lower16(bytes), scale);
    lanes_scale16(to + 16, lanes_upper16(bytes), scale);
}

/* Times a scale, then less a minimum. */
static inline void lanes_lower_by16(float *to, __m128i bytes, float scale, float minimum) {
    const __m256 s = _mm256_set1_ps(scale), m = _mm256_set1_ps(minimum);
    _mm256_storeu_ps(to, _mm256_sub_ps(_mm256_mul_ps(lanes_floats(bytes), s), m));
    _mm256_storeu_ps(to + 8, _mm256_sub_ps(_mm256_mul_ps(lanes_floats(lanes_upper8(bytes)), s), m));
}

static inline void lanes_lower_by32(float *to, __m256i bytes, float scale, float minimum) {
    lanes_lower_by16(to, lanes_lower16(bytes), scale, minimum);
    lanes_lower_by16(to + 16, lanes_upper16(bytes), scale, minimum);
}

/* All bits of byte i set where bit i is. */
static inline __m256i lanes_spread_bits(uint32_t bits) {
    const __m256i source =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int32_t)bits), source);
    return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}

/* Eight lanes whose sign bits are bits 8 * group ... 8 * group + 7 of a number that all lanes hold. */
static inline __m256 lanes_signs(__m256i bits, int group) {
    const __m256i last = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i shift = _mm256_sub_epi32(last, _mm256_set1_epi32(8 * group));
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(bits, shift)),
                         _mm256_set1_ps(-0.0f));
}

#endif
