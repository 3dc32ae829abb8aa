/*
 * Types whose weights come four or eight at a time from a table (grids.h), with signs and scales beside.
 */
#include "kernel/convert_types.h"

#ifdef QKV_CONVERT_HERE
#include "kernel/grids.h"
#include "kernel/lanes.h"

enum { SUPER = 256 };

/* Eight weights; the signs are the given bits of a number that all lanes hold. */
static inline void put8(float *to, __m128i numbers, __m256i signs, size_t group, __m256 scale) {
    const __m256 weights = _mm256_mul_ps(lanes_floats(numbers), scale);
    _mm256_storeu_ps(to, _mm256_xor_ps(weights, lanes_signs(signs, group)));
}

static inline __m128i two_of_four(const int8_t a[4], const int8_t b[4]) {
    int32_t low, high;
    memcpy(&low, a, sizeof low);
    memcpy(&high, b, sizeof high);
    return _mm_insert_epi32(_mm_cvtsi32_si128(low), high, 1);
}

/* Seven signs in the low bits of each byte; the eighth is such that the minus signs are even in number. */
static inline __m256i eighth_signs(__m256i signs) {
    const char odd = (char)0x80;
    const __m256i parity =
        _mm256_setr_epi8(0, odd, odd, 0, odd, 0, 0, odd, odd, 0, 0, odd, 0, odd, odd, 0, 0, odd,
                         odd, 0, odd, 0, 0, odd, odd, 0, 0, odd, 0, odd, odd, 0);
    const __m256i mask = _mm256_set1_epi8(0x0f);
    const __m256i low = _mm256_shuffle_epi8(parity, _mm256_and_si256(signs, mask));
    const __m256i high =
        _mm256_shuffle_epi8(parity, _mm256_and_si256(_mm256_srli_epi16(signs, 4), mask));
    return _mm256_or_si256(signs, _mm256_xor_si256(low, high));
}

/* Four times seven signs in the low 28 bits of each lane. */
static inline __m256i signs_of_28_bits(__m256i bits) {
    const __m256i a = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f));
    const __m256i b = _mm256_and_si256(_mm256_slli_epi32(bits, 1), _mm256_set1_epi32(0x7f00));
    const __m256i c = _mm256_and_si256(_mm256_slli_epi32(bits, 2), _mm256_set1_epi32(0x7f0000));
    const __m256i d = _mm256_and_si256(_mm256_slli_epi32(bits, 3), _mm256_set1_epi32(0x7f000000));
    return eighth_signs(_mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d)));
}

/* factor * (1/2 + number) * unit, in this order. */
static inline void half_step_scales(float scale[8], __m256i numbers, float factor, float unit) {
    const __m256 steps = _mm256_add_ps(_mm256_cvtepi32_ps(numbers), _mm256_set1_ps(0.5f));
    const __m256 product = _mm256_mul_ps(_mm256_set1_ps(factor), steps);
    _mm256_storeu_ps(scale, _mm256_mul_ps(product, _mm256_set1_ps(unit)));
}

typedef struct {
    uint8_t scale[2];
    struct {
        uint8_t index[4], signs[4]; /* and a scale in the four bits above 28 signs */
    } part[8];
} block_iq2_xxs;

void qkv_convert_iq2_xxs(const void *from, float *to, int64_t n) {
    int8_t(*table)[8] = qkv_grids.iq2_xxs;
    uint32_t signs[8];
    float scale[8];
    for (const block_iq2_xxs *x = from; n > 0; n -= SUPER, x++) {
        const __m256 a = _mm256_castsi256_ps(lanes_load32(x->part));
        const __m256 b = _mm256_castsi256_ps(lanes_load32(x->part + 4));
        const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
        const __m256i bits = _mm256_permute4x64_epi64(odd, 0xd8);
        _mm256_storeu_si256((__m256i *)signs, signs_of_28_bits(bits));
        half_step_scales(scale, _mm256_srli_epi32(bits, 28), lanes_half(x->scale), 0.25f);
        for (size_t i = 0; i < 8; i++) {
            const __m256i sign = _mm256_set1_epi32((int32_t)signs[i]);
            const __m256 s = _mm256_set1_ps(scale[i]);
            for (size_t k = 0; k < 4; k++, to += 8)
                put8(to, lanes_load8(table[x->part[i].index[k]]), sign, k, s);
        }
    }
}

/* Eight bytes with two scales of four bits each. */
static inline void half_step_pairs(float scale[16], const uint8_t inner[8], float factor) {
    const __m128i bytes = lanes_load8(inner);
    const __m128i nibbles = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
    const __m128i four = _mm_and_si128(nibbles, _mm_set1_epi8(0x0f));
    half_step_scales(scale, _mm256_cvtepi8_epi32(four), factor, 0.25f);
    half_step_scales(scale + 8, _mm256_cvtepi8_epi32(lanes_upper8(four)), factor, 0.25f);
}

typedef struct {
    uint8_t scale[2];
    uint8_t index[32][2]; /* nine bits, and seven signs */
    uint8_t inner[8];
} block_iq2_xs;

void qkv_convert_iq2_xs(const void *from, float *to, int64_t n) {
    int8_t(*table)[8] = qkv_grids.iq2_xs;
    uint32_t signs[8];
    float scale[16];
    for (const block_iq2_xs *x = from; n > 0; n -= SUPER, x++) {
        const __m256i a = _mm256_srli_epi16(lanes_load32(x->index), 9);
        const __m256i b = _mm256_srli_epi16(lanes_load32(x->index + 16), 9);
        const __m256i seven = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
        _mm256_storeu_si256((__m256i *)signs, eighth_signs(seven));
        half_step_pairs(scale, x->inner, lanes_half(x->scale));
        for (size_t i = 0; i < 8; i++) {
            const __m256i sign = _mm256_set1_epi32((int32_t)signs[i]);
            for (size_t k = 0; k < 4; k++, to += 8) {
                uint16_t bits;
                memcpy(&bits, x->index[4 * i + k], sizeof bits);
                put8(to, lanes_load8(table[bits & 0x1ff]), sign, k,
                     _mm256_set1_ps(scale[2 * i + k / 2]));
            }
        }
    }
}

typedef struct {
    uint8_t scale[2];
    uint8_t index[32];
    uint8_t signs[32];
    uint8_t high[8]; /* two more bits for each of four indices */
    uint8_t inner[8];
} block_iq2_s;

void qkv_convert_iq2_s(const void *from, float *to, int64_t n) {
    int8_t(*table)[8] = qkv_grids.iq2_s;
    float scale[16];
    for (const block_iq2_s *x = from; n > 0; n -= SUPER, x++) {
        half_step_pairs(scale, x->inner, lanes_half(x->scale));
        for (size_t i = 0; i < 8; i++) {
            const __m256i sign = _mm256_set1_epi32((int32_t)lanes_u32(x->signs + 4 * i));
            const size_t high = x->high[i];
            for (size_t k = 0; k < 4; k++, to += 8) {
                const size_t index = x->index[4 * i + k] | (high << (8 - 2 * k) & 0x300);
                put8(to, lanes_load8(table[index]), sign, k, _mm256_set1_ps(scale[2 * i + k / 2]));
            }
        }
    }
}

typedef struct {
    uint8_t scale[2];
    uint8_t index[64];
    uint8_t signs[32]; /* eight times 28, and a scale of four bits above */
} block_iq3_xxs;

void qkv_convert_iq3_xxs(const void *from, float *to, int64_t n) {
    int8_t(*table)[4] = qkv_grids.iq3_xxs;
    uint32_t signs[8];
    float scale[8];
    for (const block_iq3_xxs *x = from; n > 0; n -= SUPER, x++) {
        const __m256i bits = lanes_load32(x->signs);
        _mm256_storeu_si256((__m256i *)signs, signs_of_28_bits(bits));
        half_step_scales(scale, _mm256_srli_epi32(bits, 28), lanes_half(x->scale), 0.5f);
        for (size_t i = 0; i < 8; i++) {
            const __m256i sign = _mm256_set1_epi32((int32_t)signs[i]);
            const __m256 s = _mm256_set1_ps(scale[i]);
            for (size_t k = 0; k < 4; k++, to += 8) {
                const uint8_t *pair = x->index + 8 * i + 2 * k;
                put8(to, two_of_four(table[pair[0]], table[pair[1]]), sign, k, s);
            }
        }
    }
}

/* factor * (1 + 2 * number): the scales of these types are odd. */
static inline __m256 odd_scales(__m256i numbers, float factor) {
    const __m256i odd = _mm256_add_epi32(_mm256_slli_epi32(numbers, 1), _mm256_set1_epi32(1));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(odd), _mm256_set1_ps(factor));
}

typedef struct {
    uint8_t scale[2];
    uint8_t index[64];
    uint8_t high[8]; /* the ninth bits */
    uint8_t signs[32];
    uint8_t inner[4];
} block_iq3_s;

void qkv_convert_iq3_s(const void *from, float *to, int64_t n) {
    int8_t(*table)[4] = qkv_grids.iq3_s;
    const __m256i nibble = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    float scale[8];
    for (const block_iq3_s *x = from; n > 0; n -= SUPER, x++) {
        const __m256i inner = _mm256_set1_epi32((int32_t)lanes_u32(x->inner));
        const __m256i numbers =
            _mm256_and_si256(_mm256_srlv_epi32(inner, nibble), _mm256_set1_epi32(15));
        _mm256_storeu_ps(scale, odd_scales(numbers, lanes_half(x->scale)));
        for (size_t i = 0; i < 8; i++) {
            const __m256i sign = _mm256_set1_epi32((int32_t)lanes_u32(x->signs + 4 * i));
            const __m256 s = _mm256_set1_ps(scale[i]);
            const size_t high = x->high[i];
            for (size_t k = 0; k < 4; k++, to += 8) {
                const uint8_t *pair = x->index + 8 * i + 2 * k;
                const int8_t *a = table[pair[0] | (high << (8 - 2 * k) & 0x100)];
                const int8_t *b = table[pair[1] | (high << (7 - 2 * k) & 0x100)];
                put8(to, two_of_four(a, b), sign, k, s);
            }
        }
    }
}

/* Eight weights beside the table's -1, 0 and 1: an eighth above, or below. */
static inline void put8_shifted(float *to, size_t index, size_t below, float scale) {
    static const float shift[] = {0.125f, -0.125f};
    const __m256 numbers = lanes_floats(lanes_load8(qkv_grids.iq1[index]));
    const __m256 weights = _mm256_add_ps(numbers, _mm256_set1_ps(shift[below]));
    _mm256_storeu_ps(to, _mm256_mul_ps(weights, _mm256_set1_ps(scale)));
}

typedef struct {
    uint8_t scale[2];
    uint8_t index[32];
    uint8_t high[8][2]; /* four times three bits of index, three of scale, one of shift */
} block_iq1_s;

void qkv_convert_iq1_s(const void *from, float *to, int64_t n) {
    float scale[8];
    for (const block_iq1_s *x = from; n > 0; n -= SUPER, x++) {
        const __m256i high = _mm256_cvtepu16_epi32(lanes_load16(x->high));
        const __m256i numbers = _mm256_and_si256(_mm256_srli_epi32(high, 12), _mm256_set1_epi32(7));
        _mm256_storeu_ps(scale, odd_scales(numbers, lanes_half(x->scale)));
        for (size_t i = 0; i < 8; i++) {
            uint16_t bits;
            memcpy(&bits, x->high[i], sizeof bits);
            for (size_t k = 0; k < 4; k++, to += 8)
                put8_shifted(to, x->index[4 * i + k] | (bits >> 3 * k & 7) << 8, bits >> 15,
                             scale[i]);
        }
    }
}

typedef struct {
    uint8_t index[32];
    uint8_t high[16]; /* for each index three bits and one of shift */
    uint8_t
        inner[8]; /* four times: four scales of three bits, and four bits of the block's scale */
} block_iq1_m;

static inline void iq1_m_scales(float scale[16], const uint8_t inner[8]) {
    const uint32_t low = lanes_u32(inner), high = lanes_u32(inner + 4);
    const uint8_t half[] = {(uint8_t)((low >> 12 & 0x0f) | (low >> 24 & 0xf0)),
                            (uint8_t)((high >> 12 & 0x0f) | (high >> 24 & 0xf0))};
    const float factor = lanes_half(half);
    const __m256i seven = _mm256_set1_epi32(7);
    const __m256i shift = _mm256_setr_epi32(0, 3, 6, 9, 16, 19, 22, 25);
    const __m256i a = _mm256_srlv_epi32(_mm256_set1_epi32((int32_t)low), shift);
    const __m256i b = _mm256_srlv_epi32(_mm256_set1_epi32((int32_t)high), shift);
    _mm256_storeu_ps(scale, odd_scales(_mm256_and_si256(a, seven), factor));
    _mm256_storeu_ps(scale + 8, odd_scales(_mm256_and_si256(b, seven), factor));
}

void qkv_convert_iq1_m(const void *from, float *to, int64_t n) {
    float scale[16];
    for (const block_iq1_m *x = from; n > 0; n -= SUPER, x++) {
        iq1_m_scales(scale, x->inner);
        for (size_t i = 0; i < 16; i++, to += 16) {
            const uint8_t *pair = x->index + 2 * i;
            const size_t bits = x->high[i];
            put8_shifted(to, pair[0] | (bits << 8 & 0x700), bits >> 3 & 1, scale[i]);
            put8_shifted(to + 8, pair[1] | (bits << 4 & 0x700), bits >> 7, scale[i]);
        }
    }
}

#endif
