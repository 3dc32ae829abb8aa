/* F16, and types with one scale for 16 to 128 weights, and a minimum where there is one. */
#include "kernel/convert_types.h"

#ifdef QKV_CONVERT_HERE
#include "kernel/grids.h"
#include "kernel/lanes.h"

void qkv_convert_f16(const void *from, float *to, int64_t n) {
    const uint8_t *x = from;
#ifdef __AVX512F__
    for (; n >= 16; n -= 16, x += 32, to += 16)
        _mm512_storeu_ps(to, _mm512_cvtph_ps(lanes_load32(x)));
#endif
    for (; n >= 8; n -= 8, x += 16, to += 8) _mm256_storeu_ps(to, _mm256_cvtph_ps(lanes_load16(x)));
    for (; n > 0; n--, x += 2) *to++ = lanes_half(x);
}

typedef struct {
    uint8_t scale[2];
    uint8_t bits[16];
} block_q1_0;

/* The scale, or minus the scale where the bit is not set. */
void qkv_convert_q1_0(const void *from, float *to, int64_t n) {
    for (const block_q1_0 *x = from; n > 0; n -= 128, x++) {
        const __m256 scale = _mm256_set1_ps(lanes_half(x->scale));
        for (size_t i = 0; i < 4; i++) {
            const __m256i minus = _mm256_set1_epi32((int32_t)~lanes_u32(x->bits + 4 * i));
            for (size_t group = 0; group < 4; group++, to += 8)
                _mm256_storeu_ps(to, _mm256_xor_ps(scale, lanes_signs(minus, group)));
        }
    }
}

typedef struct {
    uint8_t scale[2];
    uint8_t quarters[16];
} block_q2_0;

void qkv_convert_q2_0(const void *from, float *to, int64_t n) {
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    for (const block_q2_0 *x = from; n > 0; n -= 64, x++) {
        const __m256 scale = _mm256_set1_ps(lanes_half(x->scale));
        for (size_t i = 0; i < 8; i++, to += 8) {
            const int pair = x->quarters[2 * i] | x->quarters[2 * i + 1] << 8;
            const __m256i q = _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(pair), shift),
                                               _mm256_set1_epi32(3));
            const __m256 weight = _mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(1)));
            _mm256_storeu_ps(to, _mm256_mul_ps(weight, scale));
        }
    }
}

typedef struct {
    uint8_t scale[2];
    uint8_t nibbles[16];
} block_q4_0;

/* Less eight: as numbers of four bits with a sign, on top of a byte and so 16 times too large. */
void qkv_convert_q4_0(const void *from, float *to, int64_t n) {
    const __m256i mask = _mm256_set1_epi8((char)0xf0), eights = _mm256_set1_epi8((char)0x88);
    for (const block_q4_0 *x = from; n > 0; n -= 32, x++, to += 32) {
        const __m256i q = _mm256_xor_si256(lanes_twice(x->nibbles), eights);
        const float scale = lanes_half(x->scale) * (LANES_TOP / 16);
        lanes_scale16(to, _mm256_and_si256(_mm256_slli_epi16(q, 4), mask), scale);
        lanes_scale16(to + 16, _mm256_and_si256(q, mask), scale);
    }
}

typedef struct {
    uint8_t scale[2], minimum[2];
    uint8_t nibbles[16];
} block_q4_1;

void qkv_convert_q4_1(const void *from, float *to, int64_t n) {
    for (const block_q4_1 *x = from; n > 0; n -= 32, x++, to += 32) {
        const __m256 scale = _mm256_set1_ps(lanes_half(x->scale));
        const __m256 minimum = _mm256_set1_ps(lanes_half(x->minimum));
        for (size_t i = 0; i < 16; i += 8) {
            const __m256i bytes = lanes_bytes(x->nibbles + i);
            const __m256 low = lanes_low_nibbles(bytes), high = lanes_high_nibbles(bytes);
            _mm256_storeu_ps(to + i, _mm256_fmadd_ps(low, scale, minimum));
            _mm256_storeu_ps(to + 16 + i, _mm256_fmadd_ps(high, scale, minimum));
        }
    }
}

typedef struct {
    uint8_t scale[2];
    uint8_t fifth[4];
    uint8_t nibbles[16];
} block_q5_0;

/* Less 16, which is to say: with all upper bits set where the fifth is not. */
void qkv_convert_q5_0(const void *from, float *to, int64_t n) {
    const __m256i upper = _mm256_set1_epi8((char)0xf0);
    for (const block_q5_0 *x = from; n > 0; n -= 32, x++, to += 32) {
        const __m256i fifth = lanes_spread_bits(lanes_u32(x->fifth));
        const __m256i missing = _mm256_andnot_si256(fifth, upper);
        lanes_scale32(to, _mm256_or_si256(lanes_nibbles(x->nibbles), missing),
                      lanes_half(x->scale) * LANES_TOP);
    }
}

typedef struct {
    uint8_t scale[2], minimum[2];
    uint8_t fifth[4];
    uint8_t nibbles[16];
} block_q5_1;

/* More by a minimum is less by its negative. */
void qkv_convert_q5_1(const void *from, float *to, int64_t n) {
    for (const block_q5_1 *x = from; n > 0; n -= 32, x++, to += 32) {
        const __m256i fifth = lanes_spread_bits(lanes_u32(x->fifth));
        const __m256i sixteens = _mm256_and_si256(fifth, _mm256_set1_epi8(16));
        lanes_lower_by32(to, _mm256_or_si256(lanes_nibbles(x->nibbles), sixteens),
                         lanes_half(x->scale) * LANES_TOP, -lanes_half(x->minimum));
    }
}

typedef struct {
    uint8_t scale[2];
    int8_t weights[32];
} block_q8_0;

void qkv_convert_q8_0(const void *from, float *to, int64_t n) {
    for (const block_q8_0 *x = from; n > 0; n -= 32, x++, to += 32) {
#ifdef __AVX512F__
        const __m512 scale = _mm512_set1_ps(lanes_half(x->scale));
        for (size_t i = 0; i < 32; i += 16) {
            const __m512 weights = lanes_floats16(lanes_load16(x->weights + i));
            _mm512_storeu_ps(to + i, _mm512_mul_ps(weights, scale));
        }
#else
        const __m256 scale = _mm256_set1_ps(lanes_half(x->scale));
        for (size_t i = 0; i < 32; i += 8) {
            const __m256 weights = lanes_floats(lanes_load8(x->weights + i));
            _mm256_storeu_ps(to + i, _mm256_mul_ps(weights, scale));
        }
#endif
    }
}

void qkv_convert_iq4_nl(const void *from, float *to, int64_t n) {
    const __m256i values = lanes_twice(qkv_grids.iq4);
    for (const block_q4_0 *x = from; n > 0; n -= 32, x++, to += 32)
        lanes_look_up32(to, values, lanes_twice(x->nibbles), lanes_half(x->scale) * LANES_TOP);
}

typedef struct {
    uint8_t scale;
    uint8_t nibbles[16];
} block_mxfp4;

/* Scales may be as small as 2^-128: they cannot take another factor. */
void qkv_convert_mxfp4(const void *from, float *to, int64_t n) {
    const __m256i values = lanes_twice(qkv_grids.fp4);
    for (const block_mxfp4 *x = from; n > 0; n -= 32, x++) {
        const __m256i q = _mm256_shuffle_epi8(values, lanes_nibbles(x->nibbles));
        const __m256 scale = _mm256_set1_ps(qkv_grids.mxfp4_scale[x->scale]);
        const __m128i half[] = {_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1)};
        for (size_t i = 0; i < 2; i++, to += 16) {
            _mm256_storeu_ps(to, _mm256_mul_ps(lanes_floats(half[i]), scale));
            _mm256_storeu_ps(to + 8, _mm256_mul_ps(lanes_floats(lanes_upper8(half[i])), scale));
        }
    }
}

typedef struct {
    uint8_t scale[4];
    uint8_t nibbles[32];
} block_nvfp4;

/* Four groups of 16, the low nibbles of each first. */
void qkv_convert_nvfp4(const void *from, float *to, int64_t n) {
    const __m128i values = lanes_load16(qkv_grids.fp4), mask = _mm_set1_epi8(0x0f);
    for (const block_nvfp4 *x = from; n > 0; n -= 64, x++) {
        for (size_t i = 0; i < 4; i++, to += 16) {
            const __m128i bytes = lanes_load8(x->nibbles + 8 * i);
            const __m128i q = _mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4));
            const __m128i weights = _mm_shuffle_epi8(values, _mm_and_si128(q, mask));
            lanes_scale16(to, _mm256_broadcastsi128_si256(weights),
                          qkv_grids.nvfp4_scale[x->scale[i]] * LANES_TOP);
        }
    }
}

#endif
