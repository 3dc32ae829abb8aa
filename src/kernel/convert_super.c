/* Types whose blocks of 256 weights hold a scale, and smaller scales for each 16 or 32 weights. */
#include "kernel/convert_types.h"

#ifdef QKV_CONVERT_HERE
#include "kernel/grids.h"
#include "kernel/lanes.h"

enum { SUPER = 256 };

typedef struct {
    uint8_t inner[16]; /* four bits of scale, four of minimum */
    uint8_t quarters[64];
    uint8_t scale[2], minimum[2];
} block_q2_k;

/* Sixteen bytes times a factor. */
static inline void inner_scales(float out[16], __m128i bytes, float factor) {
    lanes_scale16(out, _mm256_broadcastsi128_si256(bytes), factor * LANES_TOP);
}

void qkv_convert_q2_k(const void *from, float *to, int64_t n) {
    const __m256i two_bits = _mm256_set1_epi8(3);
    const __m128i four_bits = _mm_set1_epi8(0x0f);
    float scale[16], minimum[16];
    for (const block_q2_k *x = from; n > 0; n -= SUPER, x++) {
        const __m128i inner = lanes_load16(x->inner);
        inner_scales(scale, _mm_and_si128(inner, four_bits), lanes_half(x->scale) * LANES_TOP);
        inner_scales(minimum, _mm_and_si128(_mm_srli_epi16(inner, 4), four_bits),
                     lanes_half(x->minimum));
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++, to += 32) {
            const __m256i bytes = lanes_load32(x->quarters + 32 * (i / 4));
            const __m256i q = _mm256_and_si256(_mm256_srli_epi16(bytes, 2 * (i % 4)), two_bits);
            lanes_lower_by16(to, lanes_lower_half(q), scale[2 * i], minimum[2 * i]);
            lanes_lower_by16(to + 16, lanes_upper_half(q), scale[2 * i + 1], minimum[2 * i + 1]);
        }
    }
}

typedef struct {
    uint8_t third[32];
    uint8_t quarters[64];
    uint8_t inner[12];
    uint8_t scale[2];
} block_q3_k;

/* Sixteen scales of six bits, less 32: four bits of each in the first eight bytes, two in the rest. */
static inline __m128i q3_k_scales(const uint8_t inner[12]) {
    const __m128i low = lanes_load8(inner);
    const __m128i nibbles =
        _mm_and_si128(_mm_unpacklo_epi64(low, _mm_srli_epi16(low, 4)), _mm_set1_epi8(0x0f));
    const __m128i rest = _mm_set1_epi32((int32_t)lanes_u32(inner + 8));
    const __m128i pairs =
        _mm_and_si128(_mm_srlv_epi32(rest, _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
    return _mm_sub_epi8(_mm_or_si128(nibbles, _mm_slli_epi16(pairs, 4)), _mm_set1_epi8(32));
}

/* Less four where the third bit is not set, which is to say: with all upper bits set there. */
void qkv_convert_q3_k(const void *from, float *to, int64_t n) {
    const __m256i two_bits = _mm256_set1_epi8(3), upper = _mm256_set1_epi8((char)0xfc);
    float scale[16];
    for (const block_q3_k *x = from; n > 0; n -= SUPER, x++) {
        const __m256i third = lanes_load32(x->third);
        inner_scales(scale, q3_k_scales(x->inner), lanes_half(x->scale) * LANES_TOP);
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++, to += 32) {
            const __m256i bytes = lanes_load32(x->quarters + 32 * (i / 4));
            const __m256i q = _mm256_and_si256(_mm256_srli_epi16(bytes, 2 * (i % 4)), two_bits);
            const __m256i bit = _mm256_set1_epi8((char)(1 << i));
            const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(third, bit), bit);
            const __m256i weights = _mm256_or_si256(q, _mm256_andnot_si256(set, upper));
            lanes_scale16(to, lanes_lower_half(weights), scale[2 * i]);
            lanes_scale16(to + 16, lanes_upper_half(weights), scale[2 * i + 1]);
        }
    }
}

/* Eight scales and eight minima of six bits in twelve bytes: the first four of each lie in the low bits
 * of the first eight bytes, of the last four of each four bits in the last four bytes and two bits on
 * top of the first ones. */
static inline void six_bit_scales(float scale[8], float minimum[8], const uint8_t inner[12],
                                  float factor, float minimum_factor) {
    const uint32_t a = lanes_u32(inner), b = lanes_u32(inner + 4), c = lanes_u32(inner + 8);
    const uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, top = 0x30303030;
    const __m128i q =
        _mm_setr_epi32((int32_t)(a & six), (int32_t)((c & four) | (a >> 2 & top)),
                       (int32_t)(b & six), (int32_t)((c >> 4 & four) | (b >> 2 & top)));
    _mm256_storeu_ps(scale, _mm256_mul_ps(lanes_floats(q), _mm256_set1_ps(factor)));
    _mm256_storeu_ps(minimum,
                     _mm256_mul_ps(lanes_floats(lanes_upper8(q)), _mm256_set1_ps(minimum_factor)));
}

typedef struct {
    uint8_t scale[2], minimum[2];
    uint8_t inner[12];
    uint8_t nibbles[128];
} block_q4_k;

void qkv_convert_q4_k(const void *from, float *to, int64_t n) {
    float scale[8], minimum[8];
    for (const block_q4_k *x = from; n > 0; n -= SUPER, x++) {
        six_bit_scales(scale, minimum, x->inner, lanes_half(x->scale), lanes_half(x->minimum));
        for (size_t i = 0; i < 8; i += 2, to += 64) {
            const __m256 s = _mm256_set1_ps(scale[i]), m = _mm256_set1_ps(minimum[i]);
            const __m256 s2 = _mm256_set1_ps(scale[i + 1]), m2 = _mm256_set1_ps(minimum[i + 1]);
            for (size_t k = 0; k < 32; k += 8) {
                const __m256i bytes = lanes_bytes(x->nibbles + 16 * i + k);
                _mm256_storeu_ps(to + k, _mm256_fmsub_ps(lanes_low_nibbles(bytes), s, m));
                _mm256_storeu_ps(to + 32 + k, _mm256_fmsub_ps(lanes_high_nibbles(bytes), s2, m2));
            }
        }
    }
}

typedef struct {
    uint8_t scale[2], minimum[2];
    uint8_t inner[12];
    uint8_t fifth[32];
    uint8_t nibbles[128];
} block_q5_k;

void qkv_convert_q5_k(const void *from, float *to, int64_t n) {
    const __m256i mask = _mm256_set1_epi8(0x0f), one = _mm256_set1_epi8(1);
    float scale[8], minimum[8];
    for (const block_q5_k *x = from; n > 0; n -= SUPER, x++) {
        const __m256i fifth = lanes_load32(x->fifth);
        six_bit_scales(scale, minimum, x->inner, lanes_half(x->scale) * LANES_TOP,
                       lanes_half(x->minimum));
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++, to += 32) {
            const __m256i bytes = lanes_load32(x->nibbles + 32 * (i / 2));
            const __m256i low = _mm256_and_si256(_mm256_srli_epi16(bytes, 4 * (i % 2)), mask);
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(fifth, i), one);
            lanes_lower_by32(to, _mm256_or_si256(low, _mm256_slli_epi16(high, 4)), scale[i],
                             minimum[i]);
        }
    }
}

typedef struct {
    uint8_t nibbles[128];
    uint8_t upper[64];
    int8_t inner[16];
    uint8_t scale[2];
} block_q6_k;

/* Halves of 128 weights: 64 low nibbles, then their high ones; two more bits for each. The six bits are put
 * together on top of a byte, where less 32 means the other top bit: four times too large. */
void qkv_convert_q6_k(const void *from, float *to, int64_t n) {
    const __m256i four_bits = _mm256_set1_epi8(0x3c), two_bits = _mm256_set1_epi8((char)0xc0);
    const __m256i top = _mm256_set1_epi8((char)0x80);
    float scale[16];
    for (const block_q6_k *x = from; n > 0; n -= SUPER, x++) {
        inner_scales(scale, lanes_load16(x->inner), lanes_half(x->scale) * (LANES_TOP / 4));
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++, to += 32) {
            const size_t half = i / 4, part = i % 4;
            const __m256i bytes = lanes_load32(x->nibbles + 64 * half + 32 * (part % 2));
            const __m256i pairs = lanes_load32(x->upper + 32 * half);
            const __m256i nibbles =
                part < 2 ? _mm256_slli_epi16(bytes, 2) : _mm256_srli_epi16(bytes, 2);
            const __m256i low = _mm256_and_si256(nibbles, four_bits);
            const __m256i high = _mm256_and_si256(_mm256_slli_epi16(pairs, 6 - 2 * part), two_bits);
            const __m256i q = _mm256_xor_si256(_mm256_or_si256(low, high), top);
            lanes_scale16(to, lanes_lower_half(q), scale[2 * i]);
            lanes_scale16(to + 16, lanes_upper_half(q), scale[2 * i + 1]);
        }
    }
}

typedef struct {
    uint8_t scale[2];
    uint8_t inner_high[2];
    uint8_t inner_low[4];
    uint8_t nibbles[128];
} block_iq4_xs;

/* Eight scales of six bits, less 32, times a factor. */
static inline void iq4_xs_scales(float scale[8], const block_iq4_xs *x) {
    const int high = x->inner_high[0] | x->inner_high[1] << 8;
    const __m256i four = _mm256_srlv_epi32(_mm256_set1_epi32((int32_t)lanes_u32(x->inner_low)),
                                           _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i two =
        _mm256_srlv_epi32(_mm256_set1_epi32(high), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i six =
        _mm256_or_si256(_mm256_and_si256(four, _mm256_set1_epi32(15)),
                        _mm256_slli_epi32(_mm256_and_si256(two, _mm256_set1_epi32(3)), 4));
    const __m256 s = _mm256_cvtepi32_ps(_mm256_sub_epi32(six, _mm256_set1_epi32(32)));
    _mm256_storeu_ps(scale, _mm256_mul_ps(s, _mm256_set1_ps(lanes_half(x->scale) * LANES_TOP)));
}

void qkv_convert_iq4_xs(const void *from, float *to, int64_t n) {
    const __m256i values = lanes_twice(qkv_grids.iq4);
    float scale[8];
    for (const block_iq4_xs *x = from; n > 0; n -= SUPER, x++) {
        iq4_xs_scales(scale, x);
        for (size_t i = 0; i < 8; i++, to += 32)
            lanes_look_up32(to, values, lanes_twice(x->nibbles + 16 * i), scale[i]);
    }
}

typedef struct {
    uint8_t fives[48];
    uint8_t fours[4];
    uint8_t scale[2];
} block_tq1_0;

/* The next of the base-3 digits -1, 0, 1 that a byte holds as a fraction: what three times it carries. */
static inline __m256i next_digits(__m256i *fraction) {
    const __m256i q = *fraction, third = _mm256_set1_epi8(86), two = _mm256_set1_epi8((char)171);
    const __m256i one = _mm256_cmpeq_epi8(_mm256_max_epu8(q, third), q);
    const __m256i more = _mm256_cmpeq_epi8(_mm256_max_epu8(q, two), q);
    *fraction = _mm256_add_epi8(q, _mm256_add_epi8(q, q));
    return _mm256_sub_epi8(_mm256_set1_epi8(-1), _mm256_add_epi8(one, more));
}

void qkv_convert_tq1_0(const void *from, float *to, int64_t n) {
    for (const block_tq1_0 *x = from; n > 0; n -= SUPER, x++) {
        const float scale = lanes_half(x->scale) * LANES_TOP;
        __m256i first = lanes_load32(x->fives);
        for (size_t i = 0; i < 5; i++, to += 32) lanes_scale32(to, next_digits(&first), scale);
        /* Sixteen bytes of five digits and four bytes of four, side by side. */
        __m256i rest = _mm256_set_m128i(_mm_cvtsi32_si128((int32_t)lanes_u32(x->fours)),
                                        lanes_load16(x->fives + 32));
        uint32_t fours[4];
        for (size_t i = 0; i < 5; i++, to += 16) {
            const __m256i digits = next_digits(&rest);
            lanes_scale16(to, lanes_lower_half(digits), scale);
            if (i < 4) fours[i] = (uint32_t)_mm_cvtsi128_si32(_mm256_extracti128_si256(digits, 1));
        }
        lanes_scale16(to, lanes_twice(fours), scale);
        to += 16;
    }
}

typedef struct {
    uint8_t quarters[64];
    uint8_t scale[2];
} block_tq2_0;

void qkv_convert_tq2_0(const void *from, float *to, int64_t n) {
    const __m256i two_bits = _mm256_set1_epi8(3), one = _mm256_set1_epi8(1);
    for (const block_tq2_0 *x = from; n > 0; n -= SUPER, x++) {
        const float scale = lanes_half(x->scale) * LANES_TOP;
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++, to += 32) {
            const __m256i bytes = lanes_load32(x->quarters + 32 * (i / 4));
            const __m256i q = _mm256_and_si256(_mm256_srli_epi16(bytes, 2 * (i % 4)), two_bits);
            lanes_scale32(to, _mm256_sub_epi8(q, one), scale);
        }
    }
}

#endif
