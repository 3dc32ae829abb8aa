/*
 * Means of sites over a set of prompts, of the unedited model.
 *
 * A session keeps them from one plan to the next, as long as plans have the same set. Prompts go through
 * one by one, each as if it were alone, and are added up in their order in double precision: no bit of a
 * mean depends on threads, memory, or on what else a plan computes.
 */
#ifndef QKV_RUN_SET_MEANS_H
#define QKV_RUN_SET_MEANS_H

#include <stddef.h>
#include <stdint.h>

#include "base/fingerprint.h"

/* Kinds of means × (n_layer + 1) × sites. */
typedef struct qkv_set_means {
    char hash[QKV_FINGERPRINT_SIZE]; /* of the set */
    float **tensors;                 /* NULL where not computed yet */
    int64_t *n_rows;                 /* that they have: 1, or positions */
    size_t n;
} qkv_set_means;

void qkv_set_means_release(qkv_set_means *means);

#endif
