#define _DEFAULT_SOURCE
#include "base/random.h"

#include <math.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

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

/* Never 0. Where the system has no random numbers at hand, the clock and an address must do. */
static uint64_t draw_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = qkv_random_mix((uint64_t)time(NULL) ^ (uint64_t)clock(), (uint64_t)(uintptr_t)&seed);
    return seed ? seed : 1;
}

uint64_t qkv_random_seed(void) {
    static _Atomic uint64_t seed;
    uint64_t known = atomic_load(&seed);
    if (known) return known;
    const uint64_t drawn = draw_seed();
    return atomic_compare_exchange_strong(&seed, &known, drawn) ? drawn : known;
}
