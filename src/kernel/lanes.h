/*
 * Small numbers to floats, eight lanes at a time (AVX2, F16C, FMA): what all converters are made of.
 *
 * A weight is an integer of at most a byte times a scale, and for some types plus or minus a minimum.
 * ggml rounds after the product and after the sum. Where there is a sum the product is exact (11 bits of
 * scale, 6 of an inner scale, 5 of a weight), so that one fused operation gives the same bits.
 */
#ifndef QKV_KERNEL_LANES_H
#define QKV_KERNEL_LANES_H

#include <immintrin.h>
#include <stddef.h>
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

/* The same sixteen bytes in both halves. */
static inline __m256i lanes_twice(const void *bytes) {
    return _mm256_broadcastsi128_si256(lanes_load16(bytes));
}

/* Eight bytes, each in a lane, and what their halves are. */
static inline __m256i lanes_bytes(const void *bytes) {
    return _mm256_cvtepu8_epi32(lanes_load8(bytes));
}

static inline __m256 lanes_low_nibbles(__m256i bytes) {
    return _mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(0x0f)));
}

static inline __m256 lanes_high_nibbles(__m256i bytes) {
    return _mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4));
}

/* The low nibbles of sixteen bytes, then their high ones. */
static inline __m256i lanes_nibbles(const void *bytes) {
    const __m256i shifted = _mm256_srlv_epi64(lanes_twice(bytes), _mm256_setr_epi64x(0, 0, 4, 4));
    return _mm256_and_si256(shifted, _mm256_set1_epi8(0x0f));
}

/* The lower eight signed bytes. */
static inline __m256 lanes_floats(__m128i bytes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

static inline __m128i lanes_upper8(__m128i bytes) {
    return _mm_unpackhi_epi64(bytes, bytes);
}

/* Signed bytes as floats, 2^24 times too large: each lies on top of its lane, which needs no extension of
 * the sign. `halves` holds the same sixteen bytes twice. */
static inline __m256 lanes_tops(__m256i halves, int upper8) {
    const __m256i lower =
        _mm256_setr_epi8(-1, -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1, 4,
                         -1, -1, -1, 5, -1, -1, -1, 6, -1, -1, -1, 7);
    const __m256i upper = _mm256_add_epi8(lower, _mm256_set1_epi32(8 << 24));
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(halves, upper8 ? upper : lower));
}

/* Undoes that, in a scale. It is exact: no scale that comes from an F16 becomes too small. */
#define LANES_TOP 0x1p-24f

#ifdef __AVX512F__
/* Sixteen signed bytes as floats. */
static inline __m512 lanes_floats16(__m128i bytes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

/* Such a scale without its factor, for all lanes. */
static inline __m512 lanes_whole_scale(float scale) {
    return _mm512_set1_ps(scale * (1 / LANES_TOP));
}
#endif

/* Sixteen signed bytes, there twice, times a scale that has the factor LANES_TOP in it. */
static inline void lanes_scale16(float *to, __m256i halves, float scale) {
#ifdef __AVX512F__
    const __m512 weights = lanes_floats16(_mm256_castsi256_si128(halves));
    _mm512_storeu_ps(to, _mm512_mul_ps(weights, lanes_whole_scale(scale)));
#else
    const __m256 s = _mm256_set1_ps(scale);
    _mm256_storeu_ps(to, _mm256_mul_ps(lanes_tops(halves, 0), s));
    _mm256_storeu_ps(to + 8, _mm256_mul_ps(lanes_tops(halves, 1), s));
#endif
}

/* The low nibbles of sixteen bytes, there twice, then their high ones: indices of sixteen values. */
static inline void lanes_look_up32(float *to, __m256i values, __m256i halves, float scale) {
    const __m256i mask = _mm256_set1_epi8(0x0f);
    const __m256i low = _mm256_and_si256(halves, mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(halves, 4), mask);
    lanes_scale16(to, _mm256_shuffle_epi8(values, low), scale);
    lanes_scale16(to + 16, _mm256_shuffle_epi8(values, high), scale);
}

static inline __m256i lanes_lower_half(__m256i bytes) {
    return _mm256_permute2x128_si256(bytes, bytes, 0x00);
}

static inline __m256i lanes_upper_half(__m256i bytes) {
    return _mm256_permute2x128_si256(bytes, bytes, 0x11);
}

static inline void lanes_scale32(float *to, __m256i bytes, float scale) {
    lanes_scale16(to, lanes_lower_half(bytes), scale);
    lanes_scale16(to + 16, lanes_upper_half(bytes), scale);
}

/* Times such a scale, then less a minimum. */
static inline void lanes_lower_by16(float *to, __m256i halves, float scale, float minimum) {
#ifdef __AVX512F__
    const __m512 weights = lanes_floats16(_mm256_castsi256_si128(halves));
    _mm512_storeu_ps(to,
                     _mm512_fmsub_ps(weights, lanes_whole_scale(scale), _mm512_set1_ps(minimum)));
#else
    const __m256 s = _mm256_set1_ps(scale), m = _mm256_set1_ps(minimum);
    _mm256_storeu_ps(to, _mm256_fmsub_ps(lanes_tops(halves, 0), s, m));
    _mm256_storeu_ps(to + 8, _mm256_fmsub_ps(lanes_tops(halves, 1), s, m));
#endif
}

static inline void lanes_lower_by32(float *to, __m256i bytes, float scale, float minimum) {
    lanes_lower_by16(to, lanes_lower_half(bytes), scale, minimum);
    lanes_lower_by16(to + 16, lanes_upper_half(bytes), scale, minimum);
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
static inline __m256 lanes_signs(__m256i bits, size_t group) {
    const __m256i last = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i shift = _mm256_sub_epi32(last, _mm256_set1_epi32(8 * (int)group));
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(bits, shift)),
                         _mm256_set1_ps(-0.0f));
}

#endif
