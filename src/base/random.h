/*
 * Random numbers that depend only on a key: the n-th number of a stream is computed directly, so
 * that it does not matter in which order, batch or thread the numbers are asked for.
 */
#ifndef QKV_BASE_RANDOM_H
#define QKV_BASE_RANDOM_H

#include <stdint.h>

/* Folds one more value into a key. */
uint64_t qkv_random_mix(uint64_t key, uint64_t value);

/* A number from the standard normal distribution. */
float qkv_random_gaussian(uint64_t key);

/* The seed of hash tables, another one in each process: a writer of files cannot know which of
 * its keys will meet in a table. Nothing that is shown may depend on it. */
uint64_t qkv_random_seed(void);

#endif
