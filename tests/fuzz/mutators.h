/*
 * Mutations that know a format. Changes of single bytes mostly end at a length that no longer fits or
 * a bracket that is missing; these get past them. libFuzzer's own mutations are used too.
 */
#ifndef QKV_TESTS_FUZZ_MUTATORS_H
#define QKV_TESTS_FUZZ_MUTATORS_H

#include <stddef.h>
#include <stdint.h>

/* Of libFuzzer: mutates bytes in place and returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#endif
