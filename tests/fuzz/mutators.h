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

/* Mutates a JSON text, which stays one, of `length` bytes, in front of which there are `before` bytes and after which
 * there are others up to `size`: these stay as they are and move along. Returns the new length of
 * the text, or 0 when it is not JSON or what comes out is too long; then nothing was changed. */
size_t fuzz_mutate_json(uint8_t *data, size_t size, size_t max_size, size_t before, size_t length,
                        unsigned seed);

#endif
