/*
 * Model files that must be refused: the smallest model to spoil, how to spoil its bytes, and what a
 * refusal looks like.
 */
#ifndef QKV_TESTS_REFUSALS_H
#define QKV_TESTS_REFUSALS_H

#include <stddef.h>

#include "support/tiny_model.h"

/* A llama with one layer, two heads and 16 positions. */
extern const tiny_options smallest_model;

/* Opening must fail with one line that has the word (NULL: any). */
void refuse_model(const char *path, const char *word);

/* Replaces a text by another one as long, wherever it stands in the data. */
void replace_bytes(unsigned char *data, size_t size, const char *from, const char *to);

#endif
