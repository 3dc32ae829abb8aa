#include "base/random.h"

#include <math.h>

#define TWO_PI 6.283185307179586

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t scramble(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t qkv_random_mix(uint64_t key, uint64_t value) {
    return scramble(key ^ scramble(value));
}

float qkv_random_gaussian(uint64_t key) {
    uint64_t bits = scramble(key), more = scramble(bits);
    double u = ((double)(bits >> 11) + 0.5) / 9007199254740992.0; /* in (0, 1), 53 bits */
    double v = (double)(more >> 11) / 9007199254740992.0;
    return (float)(sqrt(-2 * log(u)) * cos(TWO_PI * v));
}
