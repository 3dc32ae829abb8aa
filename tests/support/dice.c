/* The splitmix64 sequence and what is made from it. */
#include "support/dice.h"

uint64_t dice_u64(dice *r) {
    r->state += 0x9E3779B97F4A7C15u;
    uint64_t z = r->state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t dice_below(dice *r, uint64_t bound) {
    return dice_u64(r) % bound;
}

double dice_normal(dice *r) {
    double sum = -6.0;
    for (int i = 0; i < 12; i++) sum += (double)(dice_u64(r) >> 11) * 0x1p-53;
    return sum;
}
