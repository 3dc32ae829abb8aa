/*
 * Seeded random numbers for tests: the same on every machine, so that a failure can be repeated.
 */
#ifndef QKV_TESTS_DICE_H
#define QKV_TESTS_DICE_H

#include <stdint.h>

typedef struct dice {
    uint64_t state;
} dice;

uint64_t dice_u64(dice *r);
/* 0 .. bound - 1 */
uint64_t dice_below(dice *r, uint64_t bound);
/* Close to a standard normal distribution (a sum of twelve uniform numbers). */
double dice_normal(dice *r);

#endif
